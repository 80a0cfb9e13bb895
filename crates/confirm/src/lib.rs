//! Confirms that a candidate's file, run unmodified on real tensors, hands the driver what its plan says.
//!
//! A library under the driver's name stands in front of it in the candidate's process ([`Library`]), tells this process
//! of each call ([`listen`]), and [`compare`] holds the recording against the plan. The design is in
//! `docs/design/confirm.md`.

mod channel;
mod compare;
mod descriptor;
mod expected;
mod image;
mod library;
mod places;
mod record;
mod torch;

pub use channel::{ChannelError, Key, Listener, Recording, listen};
pub use compare::{Confirmed, Difference, Uploads, compare};
pub use expected::{Buffer, Expected, ExpectedLaunch, ExpectedStep, Param, Role, Work, mixtures};
pub use image::{ImageDifference, same_code};
pub use library::{Library, find_driver};
pub use record::{Attribute, Axis, Copy, Direction, Launch, Phase, Record, TensorMap};
