use tilewright_contract::Tier;

use super::{PathRule, Rule};

/// # What it does
/// Reports streams and events of the file's own.
///
/// # Why is this bad?
/// Work on another stream than the current one may not be counted in measurements, nor be done when the result is read. The
/// trace refuses it unless it is ordered with the current stream in both directions.
///
/// # Example
/// ```python
/// with torch.cuda.stream(torch.cuda.Stream()): kernel[grid](x)
/// ```
///
/// # Use instead
/// The current stream.
pub(crate) const RULE: PathRule = PathRule {
    rule: Rule { id: "side-stream", tier: Tier::Evidence, help: "launch on the current stream" },
    paths: &["torch.cuda.Stream", "torch.cuda.set_stream", "torch.cuda.streams"],
    except: &[],
    what: "makes or sets a stream",
};
