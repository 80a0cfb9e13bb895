//! Many candidates against one or more problems.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_contract::Verdict;

use crate::draft::{Draft, Stop};
use crate::pipeline::Verifier;
use crate::problem::{Problem, identify};

/// A problem with some of its candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub problem: PathBuf,
    pub candidates: Vec<PathBuf>,
}

/// Verifies each candidate, `jobs` at a time, and hands over each verdict as it comes, with the indices of its group
/// and of the candidate in it. Every candidate gets exactly one. The oracle's data of a problem is made when its first
/// candidate starts, shared by all, and dropped with the last.
///
/// # Errors
/// Whatever `on_verdict` returns ends the batch early.
pub fn batch<E>(
    verifier: &Verifier,
    groups: &[Group],
    jobs: usize,
    mut on_verdict: impl FnMut(usize, usize, Verdict) -> Result<(), E>,
) -> Result<(), E> {
    let tasks: Vec<(usize, usize)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, of)| (0..of.candidates.len()).map(move |candidate| (group, candidate)))
        .collect();
    let shared: Vec<Shared> = groups.iter().map(Shared::new).collect();
    let next = AtomicUsize::new(0);
    let (sender, verdicts) = channel();
    std::thread::scope(|threads| {
        for _ in 0..jobs.max(1) {
            let sender = sender.clone();
            let (next, tasks, shared) = (&next, &tasks, &shared);
            threads.spawn(move || {
                while let Some(&(group, candidate)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let problem = shared[group].get(verifier);
                    let verdict = one(verifier, &problem, &groups[group].candidates[candidate]);
                    drop(problem);
                    shared[group].done();
                    // A failed send means that the batch has ended early.
                    if sender.send((group, candidate, verdict)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        verdicts.into_iter().try_for_each(|(group, candidate, verdict)| on_verdict(group, candidate, verdict))
    })
}

/// A problem that is loaded for its first candidate and dropped after its last.
struct Shared<'a> {
    path: &'a Path,
    loaded: Mutex<Option<Arc<Problem>>>,
    left: AtomicUsize,
}

impl<'a> Shared<'a> {
    fn new(group: &'a Group) -> Self {
        Self { path: &group.problem, loaded: Mutex::new(None), left: AtomicUsize::new(group.candidates.len()) }
    }

    /// The problem; the first to ask loads it, the others wait for that.
    fn get(&self, verifier: &Verifier) -> Arc<Problem> {
        let mut slot = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slot.get_or_insert_with(|| Arc::new(verifier.load(self.path))))
    }

    fn done(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.loaded.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

/// One verdict, whatever happens: also for an unreadable file and for a bug of ours.
fn one(verifier: &Verifier, problem: &Problem, file: &Path) -> Verdict {
    let source = match std::fs::read(file) {
        Ok(source) => source,
        Err(error) => return failed(verifier, problem, file, &[], format!("failed to read the candidate: {error}")),
    };
    catch_unwind(AssertUnwindSafe(|| verifier.verify(problem, file, &source))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        failed(verifier, problem, file, &source, format!("a bug in Tilewright: {text}"))
    })
}

fn failed(verifier: &Verifier, problem: &Problem, file: &Path, source: &[u8], message: String) -> Verdict {
    let draft = Draft::new(&verifier.options, problem.id.clone(), identify(file, source));
    draft.finish(Err(Stop::infrastructure(message)))
}
