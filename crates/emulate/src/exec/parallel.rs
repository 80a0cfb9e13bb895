//! Programs of a launch beside each other on several threads, with the outcome of running them one after the other.
//!
//! The grid is run in rounds. In a round each thread takes chunks of programs that follow each other, and runs them
//! on memory as it was when the round began, with pages of its own over what they write. Then the chunks are taken over
//! in the order of their programs: a chunk that accessed nothing that one before it wrote, and wrote nothing that one
//! before it accessed, did what it would have done after them. The first chunk that did otherwise is dropped, as one is that met
//! a fault or waits, and from its first program on the launch goes on in one thread, whose meaning is the only one there
//! is: what that thread finds is found whatever the number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::race::{Races, Trace};
use super::space::{Index, Page, Pages, Space, write_back};
use super::task::State;
use super::traffic::Traffic;
use super::{Launch, Machine};
use crate::defects::Defects;
use crate::fault::{Fault, Report};
use crate::memory::Memory;

/// How long programs run alone, to see how long one takes.
const TRIAL: Duration = Duration::from_micros(150);
/// What is left must be worth more than starting threads.
const WORTHWHILE: Duration = Duration::from_micros(400);
/// How long a chunk should take, and how much it may write.
const CHUNK: Duration = Duration::from_micros(300);
const WRITTEN: u64 = 4 << 20;
/// Chunks of a thread in the first round, and in later ones.
const CHUNKS: [u64; 2] = [2, 16];

/// Threads of this process that run launches at present, or help to.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Some of these threads, until it is dropped.
pub(super) struct Busy(usize);

impl Busy {
    /// The thread of a launch.
    pub(super) fn launch() -> Self {
        BUSY.fetch_add(1, Ordering::AcqRel);
        Self(1)
    }

    /// Up to `wanted` helpers; if cores are shared with the launches of the whole process, only as many as are left.
    fn helpers(wanted: usize, shared: bool) -> Self {
        let free = |busy: usize| if shared { wanted.min(cores().saturating_sub(busy)) } else { wanted };
        let busy = BUSY.fetch_update(Ordering::AcqRel, Ordering::Acquire, |busy| Some(busy + free(busy)));
        Self(free(busy.unwrap_or_else(|busy| busy)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.0, Ordering::AcqRel);
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What a thread keeps from chunk to chunk.
struct Worker {
    pages: Pages,
    races: Races,
}

/// What the programs of a chunk did.
struct Done {
    programs: u64,
    pages: Vec<Page>,
    trace: Trace,
    defects: Defects,
    traffic: Traffic,
    report: Report,
}

/// The chunks of a round.
struct Queue<'a> {
    launch: Launch<'a>,
    base: &'a Memory,
    chunks: Vec<Range<u64>>,
    next: AtomicUsize,
    /// The first chunk that must be run again; those after it need not run.
    failed: AtomicUsize,
}

/// Runs programs from the first one on until threads do not pay any more, and gives where to go on.
pub(super) fn run<'a>(machine: &mut Machine<'a>, launch: Launch<'a>) -> Result<u64, Fault> {
    let shared = launch.limits.threads == 0;
    let threads = if shared { cores() } else { launch.limits.threads as usize };
    let count = launch.programs();
    if threads < 2 || count < 2 {
        return Ok(0);
    }
    let (mut started, chunk) = match launch.limits.chunk {
        0 => match trial(machine, launch)? {
            (started, Some(chunk)) => (started, chunk),
            (started, None) => return Ok(started),
        },
        chunk => (0, u64::from(chunk)),
    };
    // Without marks and races, chunks are compared all the same, but only with those of their round.
    let mut apart = match (&machine.space, launch.limits.bare) {
        (Space::Whole(memory), true) => Some(Races::new(launch.program, launch.grid, launch.params, memory)),
        _ => None,
    };
    let mut workers: Vec<Worker> = Vec::new();
    let mut chunks = CHUNKS[0] * threads as u64;
    while started < count {
        let helpers = Busy::helpers(threads - 1, shared);
        if helpers.0 == 0 {
            // All cores have enough to do.
            let until = started + chunk * CHUNKS[0];
            started = machine.run_from(launch, started, |started| started >= until)?;
            continue;
        }
        let known = apart.as_ref().unwrap_or(&machine.races);
        workers.resize_with((helpers.0 + 1).max(workers.len()), || Worker {
            pages: Pages::new(known.watched()),
            races: known.beside(),
        });
        let Space::Whole(base) = &machine.space else { return Ok(started) };
        let chunk = if launch.limits.chunk > 0 { chunk } else { chunk.min((count - started).div_ceil(chunks)) };
        let bounds = (started..count).step_by(chunk as usize).take(chunks as usize);
        let queue = Queue {
            launch,
            base,
            chunks: bounds.map(|start| start..(start + chunk).min(count)).collect(),
            next: AtomicUsize::new(0),
            failed: AtomicUsize::new(usize::MAX),
        };
        let wanted = queue.chunks.len();
        let done = round(&queue, &mut workers[..=helpers.0]);
        drop(helpers);
        let mut taken = 0;
        for (at, done) in done {
            if at != taken {
                break;
            }
            let known = apart.as_mut().unwrap_or(&mut machine.races);
            let Space::Whole(memory) = &mut machine.space else { break };
            let Some(pages) = take_over(done, known, memory, &mut machine.report, &mut machine.traffic, &mut started)
            else {
                break;
            };
            let to = taken % workers.len();
            workers[to].pages.reuse(pages);
            taken += 1;
        }
        if taken < wanted {
            return Ok(started);
        }
        if let Some(apart) = &mut apart {
            apart.clear();
        }
        chunks = (chunks * 2).min(CHUNKS[1] * threads as u64);
    }
    Ok(started)
}

/// Runs the first programs alone. Gives where to go on, and how many programs make a chunk, if threads pay.
fn trial<'a>(machine: &mut Machine<'a>, launch: Launch<'a>) -> Result<(u64, Option<u64>), Fault> {
    let begin = Instant::now();
    let started = machine.run_from(launch, 0, |_| begin.elapsed() >= TRIAL)?;
    let each = begin.elapsed().as_secs_f64() / started as f64;
    let left = launch.programs() - started;
    if each * (left as f64) < WORTHWHILE.as_secs_f64() {
        return Ok((started, None));
    }
    let written = (machine.report.bytes_stored / started).max(1);
    let chunk = (CHUNK.as_secs_f64() / each) as u64;
    Ok((started, Some(chunk.min(WRITTEN / written).clamp(1, u64::from(u32::MAX)))))
}

/// Runs chunks on all workers, and gives what they did in order.
fn round(queue: &Queue, workers: &mut [Worker]) -> Vec<(usize, Done)> {
    let mut done = thread::scope(|scope| {
        let mut workers = workers.iter_mut();
        let first = workers.next();
        // Where no thread is to be had, the others do its work.
        let helpers: Vec<_> = workers
            .map_while(|worker| thread::Builder::new().spawn_scoped(scope, || worker.work(queue)).ok())
            .collect();
        let mut done = first.map_or_else(Vec::new, |worker| worker.work(queue));
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done
}

/// Makes what a chunk did part of the launch, unless it would have done something else after the programs before it.
fn take_over(
    done: Done,
    known: &mut Races,
    memory: &mut Memory,
    report: &mut Report,
    traffic: &mut Traffic,
    started: &mut u64,
) -> Option<Vec<Page>> {
    if known.meets(&done.trace) || !memory.defects.agrees(&done.defects) {
        return None;
    }
    let index = Index::new(&done.pages);
    done.trace.written(known, |allocation, bytes| {
        if let Some(page) = index.find(allocation, bytes.start) {
            write_back(memory, page, bytes);
        }
    });
    memory.defects.join(done.defects);
    known.join(done.trace);
    traffic.join(done.traffic);
    report.add(&done.report);
    *started += done.programs;
    Some(done.pages)
}

impl Worker {
    fn work(&mut self, queue: &Queue) -> Vec<(usize, Done)> {
        let space = Space::part(queue.base, std::mem::take(&mut self.pages));
        let mut machine = Machine::new(queue.launch, space, std::mem::take(&mut self.races));
        let mut all = Vec::new();
        loop {
            let at = queue.next.fetch_add(1, Ordering::Relaxed);
            let Some(programs) = queue.chunks.get(at) else { break };
            match machine.chunk(queue, at, programs.clone()) {
                Some(done) => all.push((at, done)),
                None => {
                    queue.failed.fetch_min(at, Ordering::Relaxed);
                    break;
                }
            }
        }
        if let Machine { space: Space::Part(overlay), races, .. } = machine {
            (self.pages, self.races) = (overlay.pages, races);
        }
        all
    }
}

impl<'a> Machine<'a> {
    /// None if the programs met something that only one thread decides, or need not go on.
    fn chunk(&mut self, queue: &Queue<'a>, at: usize, programs: Range<u64>) -> Option<Done> {
        let launch = queue.launch;
        let count = programs.end - programs.start;
        let mut finished = true;
        for place in programs {
            self.task.start(launch.program, launch.grid, launch.number(place));
            let needless = at > queue.failed.load(Ordering::Relaxed);
            if needless || self.check_deadline().is_err() || !matches!(self.resume(), Ok(State::Done)) {
                finished = false;
                break;
            }
        }
        let trace = self.races.take();
        // Nobody looks at races alone either then, and that shows in the counts.
        finished &= !launch.limits.bare || trace.conflicts == 0;
        let Space::Part(overlay) = &mut self.space else { return None };
        finished &= !overlay.pages.stray;
        let done = Done {
            programs: count,
            pages: overlay.pages.take(),
            trace,
            defects: std::mem::replace(&mut overlay.defects, queue.base.defects.clone()),
            traffic: std::mem::take(&mut self.traffic),
            report: std::mem::take(&mut self.report),
        };
        finished.then_some(done)
    }
}
