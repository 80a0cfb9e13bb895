//! Many candidates against one or more problems.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};

use tilewright_contract::Verdict;

use crate::draft::Stop;
use crate::pipeline::Verifier;
use crate::problem::Problem;
use crate::shelf::Shelf;

/// Candidates for each GPU beyond those that the cores work on: so many wait there, and no more. Twelve gained nothing.
const QUEUE: usize = 3;

/// A problem with some of its candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub problem: PathBuf,
    pub candidates: Vec<PathBuf>,
}

/// One candidate to be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task<T> {
    /// Comes back with the verdict.
    pub tag: T,
    pub problem: PathBuf,
    pub candidate: PathBuf,
    /// The candidate's text; without it, what the file holds.
    pub source: Option<Vec<u8>>,
}

/// How much is done side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    /// Candidates that are on their way at the same time.
    pub jobs: usize,
    /// Problems that stay loaded while nobody asks for them.
    pub problems: usize,
}

impl Verifier {
    /// The number of cores, and some candidates more that wait for each GPU: it should never wait for them.
    pub fn default_jobs(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from) + QUEUE * self.lanes.len()
    }
}

/// Verifies each candidate and hands over each verdict as it comes, with the indices of its group and of the candidate in
/// it. Every candidate gets exactly one. The oracle's data of a problem is made when its first candidate starts, and shared
/// by all.
///
/// # Errors
/// Whatever `on_verdict` returns ends the batch early.
pub fn batch<E>(
    verifier: &Verifier,
    groups: &[Group],
    jobs: usize,
    mut on_verdict: impl FnMut(usize, usize, Verdict) -> Result<(), E>,
) -> Result<(), E> {
    let tasks = groups.iter().enumerate().flat_map(|(group, of)| {
        of.candidates.iter().enumerate().map(move |(candidate, path)| Task {
            tag: (group, candidate),
            problem: of.problem.clone(),
            candidate: path.clone(),
            source: None,
        })
    });
    // Groups come one after the other: a problem is not asked for again.
    serve(verifier, tasks, Width { jobs, problems: 1 }, |(group, candidate), verdict| {
        on_verdict(group, candidate, verdict)
    })
}

/// Verifies candidates as they come and hands over each verdict as it comes: one for every task. A task is asked for when
/// there is a hand free for it, so that no more than `width.jobs` of them are held at a time.
///
/// # Errors
/// Whatever `on_verdict` returns: no further task is asked for then.
pub fn serve<T: Send, E>(
    verifier: &Verifier,
    tasks: impl Iterator<Item = Task<T>> + Send,
    width: Width,
    mut on_verdict: impl FnMut(T, Verdict) -> Result<(), E>,
) -> Result<(), E> {
    let shelf = Shelf::new(verifier, width.problems);
    // None once it has ended: an iterator need not stay at its end.
    let tasks = Mutex::new(Some(tasks));
    let next = || {
        let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let task = tasks.as_mut()?.next();
        if task.is_none() {
            *tasks = None;
        }
        task
    };
    // Whoever is slow to take verdicts slows the rest down.
    let (sender, verdicts) = sync_channel(width.jobs.max(1));
    std::thread::scope(|threads| {
        for _ in 0..width.jobs.max(1) {
            let (sender, next, shelf) = (sender.clone(), &next, &shelf);
            threads.spawn(move || {
                while let Some(task) = next() {
                    let verdict = shelf.with(&task.problem, |problem| one(verifier, problem, &task));
                    // A failed send means that the batch has ended early.
                    if sender.send((task.tag, verdict)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        verdicts.into_iter().try_for_each(|(tag, verdict)| on_verdict(tag, verdict))
    })
}

/// One verdict, whatever happens: also for an unreadable file.
fn one<T>(verifier: &Verifier, problem: &Problem, task: &Task<T>) -> Verdict {
    let file = &task.candidate;
    let source = match task.source.clone().map_or_else(|| std::fs::read(file), Ok) {
        Ok(source) => source,
        Err(error) => {
            let stop = Stop::infrastructure(format!("failed to read the candidate: {error}"));
            return verifier.stopped(problem, file, &[], stop);
        }
    };
    verifier.verify(problem, file, &source)
}
