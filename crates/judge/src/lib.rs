//! Precision profiles, the comparison of outputs with the oracle's, and what a failure most likely means.
//!
//! The design is in `docs/design/precision.md`, the profiles' figures in `docs/reference/profiles.md`.

mod compare;
mod groups;
mod profiles;
mod scan;
mod value;

pub use compare::{Comparison, JudgeError, judge};
pub use profiles::{DEFAULT_PROFILE, profile, profile_names};
pub use value::{decode, round_to, text};
