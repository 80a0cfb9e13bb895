//! Precision profiles, the comparison of outputs with the oracle's, and what a failure most likely means.
//!
//! [`check_output`] holds a plan's output against the output contract, without values. [`Tally`] takes every tensor
//! of every call, judges it under each profile ([`judge`]) and gives the outcome and its reasons.
//! The design is in `docs/design/precision.md`, the profiles' figures in `docs/reference/profiles.md`.

mod compare;
mod diagnose;
mod facts;
mod figures;
mod groups;
mod joint;
mod output;
mod profiles;
mod scan;
mod stochastic;
mod tally;
mod value;

pub use compare::{Comparison, JudgeError, judge, judge_figures, must_equal};
pub use diagnose::{Cause, Evidence, diagnose, precision_hint};
pub use figures::Figures;
pub use groups::SHORT as POOLED_BELOW;
pub use output::check_output;
pub use profiles::{DEFAULT_PROFILE, profile, profile_names};
pub use stochastic::{FEWEST_DRAWS, Side, judge_stochastic, judge_together};
pub use tally::{Judged, OWN_CASE, OWN_REGIME, Place, Tally};
pub use value::{decode, round_to, text};
