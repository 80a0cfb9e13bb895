//! Many candidates against one problem.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use tilewright_contract::Verdict;

use crate::draft::{Draft, Stop};
use crate::pipeline::Verifier;
use crate::problem::{Problem, identify};

/// Verifies each file, `jobs` at a time, and hands each verdict over as it comes. Every file gets exactly one.
///
/// # Errors
/// Whatever `on_verdict` returns ends the batch early.
pub fn batch<E>(
    verifier: &Verifier,
    problem: &Problem,
    files: &[PathBuf],
    jobs: usize,
    mut on_verdict: impl FnMut(Verdict) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (sender, verdicts) = channel();
    std::thread::scope(|threads| {
        for _ in 0..jobs.max(1) {
            let sender = sender.clone();
            let next = &next;
            threads.spawn(move || {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A failed send means that the batch has ended early.
                    if sender.send(one(verifier, problem, file)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        verdicts.into_iter().try_for_each(&mut on_verdict)
    })
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
