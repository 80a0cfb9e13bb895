//! What the calls of torch's own do, by what they are called.

use crate::expected::Work;
use crate::record::{Direction, Record};

/// Parts of the names of torch's kernels that move elements without arithmetic between them.
const MOVES: [&str; 4] = ["copy_kernel", "CatArrayBatchedCopy", "copy_device_to_device", "CopyFunctor"];
const FILLS: [&str; 5] = ["FillFunctor", "arange", "elementwise_kernel_with_index", "ZeroFunctor", "eye_kernel"];
const DRAWS: [&str; 3] = ["distribution_", "philox", "curand"];

/// What a call does; none for anything that may compute, or that no plan has.
pub(crate) fn work(record: &Record) -> Option<Work> {
    match record {
        Record::Launch(launch) => {
            let named = |parts: &[&str]| parts.iter().any(|part| launch.name.contains(part));
            // A fill's name may have a copy in it, as the type of something.
            if named(&FILLS) {
                Some(Work::Fill)
            } else if named(&MOVES) {
                Some(Work::Move)
            } else {
                named(&DRAWS).then_some(Work::Draw)
            }
        }
        Record::Copy(copy) => match copy.direction {
            Direction::DeviceToDevice | Direction::HostToDevice => Some(Work::Move),
            Direction::DeviceToHost | Direction::HostToHost => None,
        },
        Record::Set { .. } => Some(Work::Fill),
        Record::Mark { .. } | Record::Image { .. } | Record::Other { .. } | Record::TensorMap(_) => None,
    }
}

/// A call in words.
pub(crate) fn describe(record: &Record) -> String {
    match record {
        Record::Launch(launch) => format!("a launch of {}", short(&launch.name)),
        Record::Copy(copy) => {
            let way = match copy.direction {
                Direction::HostToDevice => "to the device",
                Direction::DeviceToHost => "from the device",
                Direction::DeviceToDevice => "on the device",
                Direction::HostToHost => "on the host",
            };
            format!("a copy of {} bytes {way}", copy.bytes)
        }
        Record::Set { width, count, .. } => format!("a fill of {} bytes", u64::from(*width).saturating_mul(*count)),
        Record::Other { name } => format!("a call of {name}"),
        Record::Mark { .. } | Record::Image { .. } | Record::TensorMap(_) => "nothing".into(),
    }
}

fn short(name: &str) -> String {
    const LONGEST: usize = 160;
    if name.is_empty() {
        return "a kernel without a name".into();
    }
    let cut: String = name.chars().take(LONGEST).collect();
    if cut.len() < name.len() { format!("{cut}…") } else { cut }
}
