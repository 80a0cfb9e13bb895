//! A GPU, and whose turn it is there.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilewright_contract::DeviceLimits;
use tilewright_replay::cuda::CudaDevice;
use tilewright_stage::{Permit, Permits};

/// Those that may use a GPU side by side. A process that starts to use it takes locks of the driver, so that many at a time
/// take longer than in turns.
pub(crate) const LOADS: u32 = 4;

/// One GPU with its executor process. Candidates take turns there: nothing else of ours computes on it during a turn, so
/// that what is measured is measured alone.
pub(crate) struct Lane {
    /// Which of the verifier's lanes it is.
    pub(crate) index: usize,
    ordinal: usize,
    device: Mutex<CudaDevice>,
    floor: Permits,
    /// Candidates that have a turn or wait for one.
    queue: AtomicUsize,
    /// Time that turns have taken, in microseconds.
    busy: AtomicU64,
    /// Of the GPU, once they are known.
    pub(crate) limits: Mutex<Option<DeviceLimits>>,
}

/// A candidate's place on a lane.
pub(crate) struct Seat<'a> {
    pub(crate) lane: &'a Lane,
    /// Time that it has waited for turns, in microseconds.
    waited: AtomicU64,
}

/// A turn on a lane.
pub(crate) struct Turn<'a> {
    lane: &'a Lane,
    start: Instant,
    _floor: Permit<'a>,
}

impl Lane {
    pub(crate) fn new(index: usize, ordinal: usize) -> Self {
        Self {
            index,
            ordinal,
            device: Mutex::new(CudaDevice::new(ordinal)),
            floor: Permits::new(u64::from(LOADS)),
            queue: AtomicUsize::new(0),
            busy: AtomicU64::new(0),
            limits: Mutex::new(None),
        }
    }

    /// The executor.
    pub(crate) fn device(&self) -> MutexGuard<'_, CudaDevice> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the executor ready before it is needed: the first use of a GPU takes a good part of a second.
    pub(crate) fn wake(&self) {
        self.device().wake();
    }

    /// Does some work on the GPU that others may do theirs beside, but no candidate has its turn meanwhile.
    pub(crate) fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        let _floor = self.floor.take(1);
        work()
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.ordinal)
    }
}

impl<'a> Seat<'a> {
    /// A place on the lane with the fewest candidates.
    pub(crate) fn find(lanes: &'a [Lane]) -> Option<Self> {
        let lane = lanes.iter().min_by_key(|lane| lane.queue.load(Ordering::Relaxed))?;
        lane.queue.fetch_add(1, Ordering::Relaxed);
        Some(Self { lane, waited: AtomicU64::new(0) })
    }

    /// Waits for a turn.
    pub(crate) fn turn(&self) -> Turn<'a> {
        let start = Instant::now();
        let floor = self.lane.floor.take_all();
        self.waited.fetch_add(micros(start.elapsed()), Ordering::Relaxed);
        Turn { lane: self.lane, start: Instant::now(), _floor: floor }
    }

    /// How long it has waited for turns.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.load(Ordering::Relaxed))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.lane.queue.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lane.busy.fetch_add(micros(self.start.elapsed()), Ordering::Relaxed);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
