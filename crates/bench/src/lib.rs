//! Benchmarks: suites of problems, samples that answer them, and numbers that can be believed.
//!
//! [`Suite`] and [`Samples`] say what is to be verified, [`RunFolder`] has it verified and keeps the verdicts, [`Run`] reads
//! them back, and [`Report`] is what they say: pass@k, fast_p and speedups with intervals, by level and by precision
//! profile, with and without problems that cannot tell right from wrong. Definitions: `docs/guides/bench.md`.

mod author;
mod bootstrap;
mod compare;
mod error;
mod exchange;
mod formula;
mod html;
mod log;
mod outcome;
mod plot;
mod report;
mod run;
mod samples;
mod setting;
mod suite;
mod table;

pub use author::{Author, Problem, Written, write_samples};
pub use bootstrap::RESAMPLES;
pub use compare::{Change, Comparison, Flip, Side, SpeedChange};
pub use error::BenchError;
pub use exchange::{Import, eval_results, import, leaderboard};
pub use formula::{geometric_mean, is_fast, pass_at_k};
pub use log::{Imported, Line, Listed, ListedSample, Manifest, Mean};
pub use outcome::{Outcome, Run, RunProblem, Speedup};
pub use report::{
    Asked, Counts, CurvePoint, Fast, Group, Kind, Limits, Marks, MeanSpeedup, PassAt, ProblemRow, ReasonCount, Report,
    SampleRow, Share, Speed, SpeedupOf, Standard,
};
pub use run::{Event, RunFolder, Work, plan};
pub use samples::{Sample, Samples};
pub use setting::{Difference, Setting};
pub use suite::{Code, Filter, Item, Suite};
