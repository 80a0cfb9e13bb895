//! How often the evaluator itself is wrong: the whole pipeline over labelled corpora.
//!
//! [`select`] reads the labels, [`run()`] gets a verdict for every candidate, and [`Audit`] is what they say: the shares
//! of false accepts and false rejects with exact intervals, by label, mechanism, verdict and stage.

mod html;
mod interval;
mod labels;
mod report;
mod run;

pub use interval::{CONFIDENCE, Rate, clopper_pearson};
pub use labels::{Label, LabelError, Labelled, read};
pub use report::{Audit, Counts, LabelCounts, Outcome, Row};
pub use run::{Resume, ResumeError, Selection, Setting, run, select};
