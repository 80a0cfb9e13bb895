//! A GPU, and whose turn it is there.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilewright_contract::DeviceLimits;
use tilewright_replay::cuda::CudaDevice;
use tilewright_stage::{Permit, Permits};

use crate::floor::{Floor, Place};

/// Problems that are loaded on a GPU at a time, at most. A process that starts to use it takes locks of the driver, so that
/// many at a time take longer than in turns.
const LOADS: u32 = 8;

/// How long a GPU is left alone that did not compute, where there are others.
const REST: Duration = Duration::from_secs(60);

/// Executor processes of a GPU: while one candidate is timed, others have what they will be timed on ready, and replays
/// keep each other's host busy. Each has a context of its own on the GPU, which takes memory.
const EXECUTORS: usize = 4;

/// A candidate whose buffers take more bytes has all executors' memory to itself.
const LARGE: u64 = 512 << 20;

/// One GPU with its executor processes. Candidates are replayed beside each other, each in a process of its own, and timed
/// in turns: nothing else of ours computes on it during a turn, so that what is measured is measured alone.
pub(crate) struct Lane {
    /// Which of the verifier's lanes it is.
    pub(crate) index: usize,
    ordinal: usize,
    executors: Vec<Mutex<CudaDevice>>,
    /// Those that nobody has, the one that was used last at the end.
    free: Mutex<Vec<usize>>,
    room: Permits,
    /// For those who load problems.
    loads: Permits,
    floor: Floor,
    /// Candidates that have a place here.
    queue: AtomicUsize,
    /// When its GPU was found not to compute.
    fell: Mutex<Option<Instant>>,
    /// Of the GPU, once they are known.
    pub(crate) limits: Mutex<Option<DeviceLimits>>,
}

/// Time that somebody has waited for others.
#[derive(Default)]
pub(crate) struct Waited {
    micros: AtomicU64,
}

/// A candidate's place on a lane.
pub(crate) struct Seat<'a> {
    pub(crate) lane: &'a Lane,
    pub(crate) waited: Waited,
}

/// An executor that nobody else has.
pub(crate) struct Slot<'a> {
    lane: &'a Lane,
    index: usize,
    _room: Permit<'a>,
}

impl Lane {
    pub(crate) fn new(index: usize, ordinal: usize) -> Self {
        Self {
            index,
            ordinal,
            executors: (0..EXECUTORS).map(|_| Mutex::new(CudaDevice::new(ordinal))).collect(),
            free: Mutex::new((0..EXECUTORS).rev().collect()),
            room: Permits::new(EXECUTORS as u64),
            loads: Permits::new(loads().into()),
            floor: Floor::new(loads() + EXECUTORS as u32),
            queue: AtomicUsize::new(0),
            fell: Mutex::new(None),
            limits: Mutex::new(None),
        }
    }

    /// Has an executor ready before it is needed: the first use of a GPU takes a good part of a second.
    pub(crate) fn wake(&self) {
        self.executor(0).device().wake();
    }

    /// Whether its GPU computes. One that does not is left alone for a while.
    pub(crate) fn works(&self) -> bool {
        let works = self.executor(0).device().works();
        *self.fell.lock().unwrap_or_else(PoisonError::into_inner) = (!works).then(Instant::now);
        works
    }

    /// Whether its GPU did not compute a short time ago.
    pub(crate) fn rests(&self) -> bool {
        let fell = *self.fell.lock().unwrap_or_else(PoisonError::into_inner);
        fell.is_some_and(|fell| fell.elapsed() < REST)
    }

    /// An executor, when one is free; alone on the lane for a candidate whose buffers take as many bytes as a large one's.
    fn executor(&self, nbytes: u64) -> Slot<'_> {
        let room = self.room.take(if nbytes > LARGE { EXECUTORS as u64 } else { 1 });
        // The one that was used last has its process and its kernels.
        let index = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        Slot { lane: self, index, _room: room }
    }

    /// Loads something, or runs a file: replays and others' loads go on beside it, but no candidate has its turn meanwhile.
    pub(crate) fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
        // Not the other way round: who waits for a permit would keep a place that replays could have.
        let _load = self.loads.take(1);
        let _place = self.floor.beside();
        work()
    }
}

/// Problems that are loaded at a time: each keeps about two cores busy.
pub(crate) fn loads() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    (cores / 2).clamp(1, LOADS)
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.ordinal)
    }
}

impl<'a> Seat<'a> {
    /// A place on the lane with the fewest candidates, of those that work.
    pub(crate) fn find(lanes: &'a [Lane]) -> Option<Self> {
        // One that fails at once has always the fewest.
        let lane = lanes.iter().min_by_key(|lane| (lane.rests(), lane.queue.load(Ordering::Relaxed)))?;
        lane.queue.fetch_add(1, Ordering::Relaxed);
        Some(Self { lane, waited: Waited::default() })
    }

    /// Waits for an executor; `nbytes` are those of the candidate's buffers.
    pub(crate) fn executor(&self, nbytes: u64) -> Slot<'a> {
        self.waited.during(|| self.lane.executor(nbytes))
    }

    /// Waits for a turn: nobody else uses the GPU until it ends.
    pub(crate) fn turn(&self) -> Place<'a> {
        self.waited.during(|| self.lane.floor.alone())
    }

    /// Waits until nobody has a turn, and lets nobody have one.
    pub(crate) fn beside(&self) -> Place<'a> {
        self.waited.during(|| self.lane.floor.beside())
    }
}

impl Waited {
    pub(crate) fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let found = wait();
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        found
    }

    /// All of it.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

impl Slot<'_> {
    pub(crate) fn device(&self) -> MutexGuard<'_, CudaDevice> {
        self.lane.executors[self.index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.lane.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.lane.queue.fetch_sub(1, Ordering::Relaxed);
    }
}
