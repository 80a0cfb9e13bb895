//! Searches for the best candidate: asks an author, verifies what it writes, tells the author what came out, and keeps every
//! step in a folder from which a killed run goes on. Design: `docs/design/search.md`.
//!
//! The main path is [`Run::go`] in `run`; what is asked next is decided by the pure functions in `plan`.

mod budget;
mod check;
mod draw;
mod folder;
mod plan;
mod report;
mod reward;
mod run;
mod tree;

pub use budget::{Limits, Stop, Until};
pub use check::{Checker, Verifying};
pub use draw::{DrawError, html, svg};
pub use folder::{Folder, FolderError};
pub use plan::{Plan, Planned, Selection, Window};
pub use report::{Report, Row};
pub use reward::reward;
pub use run::{Event, Run, RunError};
pub use tree::{Checked, Node, Settings, Tree};
