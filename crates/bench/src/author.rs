//! Samples that are written for the run, by whatever writes them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use crate::error::BenchError;
use crate::samples::{Sample, Samples, file_name};
use crate::suite::{Code, Suite};

/// Writes candidates.
pub trait Author: Sync {
    /// What reports call it: the model, and how it was asked.
    fn name(&self) -> String;

    /// The text of one candidate for a problem. What came back without a candidate in it is text too: it is a sample
    /// that fails.
    ///
    /// # Errors
    /// Why there is no answer at all: a fault of the server, not of the author.
    fn write(&self, problem: &Problem<'_>, sample: u32) -> Result<String, String>;
}

/// What an author is asked to solve.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    pub id: &'a str,
    /// Its text.
    pub text: &'a str,
    /// A file with that text.
    pub path: &'a Path,
}

/// What became of one sample that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written<'a> {
    /// An earlier run has written it.
    Earlier,
    New,
    /// There was no answer: the next run asks again.
    Failed(&'a str),
}

/// Has `each` samples of every problem written into a run's folder, `jobs` at a time. A file appears as a whole; one
/// that is there is not written again.
///
/// # Errors
/// A file cannot be read or written, or there is no answer for any sample.
pub fn write_samples(
    author: &dyn Author,
    suite: &Suite,
    run: &Path,
    each: u32,
    jobs: usize,
    mut on_sample: impl FnMut(&str, u32, Written<'_>),
) -> Result<Samples, BenchError> {
    let folder = run.join("samples");
    std::fs::create_dir_all(&folder).map_err(BenchError::io("make", &folder))?;
    let (mut found, mut todo) = (Vec::new(), VecDeque::new());
    for item in 0..suite.items.len() {
        for index in 0..each {
            if folder.join(file_name(suite, item, index)).exists() {
                on_sample(&suite.items[item].id, index, Written::Earlier);
                found.push((item, index));
            } else {
                todo.push_back((item, index));
            }
        }
    }
    let todo = Mutex::new(todo);
    let (sender, answers) = channel();
    let (mut last_failure, mut lacking) = (None, Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..jobs.max(1) {
            let (sender, todo) = (sender.clone(), &todo);
            threads.spawn(move || {
                loop {
                    let next = todo.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((item, index)) = next else { return };
                    // A failed send means that a file could not be written.
                    if sender.send((item, index, ask(author, suite, item, index))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (item, index, answer) in answers {
            let id = &suite.items[item].id;
            match answer? {
                Ok(text) => {
                    write_whole(&folder.join(file_name(suite, item, index)), &text)?;
                    on_sample(id, index, Written::New);
                    found.push((item, index));
                }
                Err(why) => {
                    on_sample(id, index, Written::Failed(&why));
                    last_failure = Some(why);
                    lacking.push((item, index));
                }
            }
        }
        Ok::<(), BenchError>(())
    })?;
    if let (true, Some(why)) = (found.is_empty(), last_failure) {
        return Err(BenchError::usage(format!("{} wrote no sample: {why}", author.name())));
    }
    found.sort_unstable();
    let sample = |(item, index)| {
        let code = Code::File(folder.join(file_name(suite, item, index)));
        Sample { item, index, code }
    };
    lacking.sort_unstable();
    Ok(Samples { found: found.into_iter().map(sample).collect(), lacking, strangers: 0 })
}

type Answer = Result<Result<String, String>, BenchError>;

fn ask(author: &dyn Author, suite: &Suite, item: usize, index: u32) -> Answer {
    let item = &suite.items[item];
    let text = String::from_utf8_lossy(&item.code.read()?).into_owned();
    let ask = |path: &Path| author.write(&Problem { id: &item.id, text: &text, path }, index);
    match &item.code {
        Code::File(path) => Ok(ask(path)),
        Code::Text(text) => {
            let file = tempfile::Builder::new().suffix(".py").tempfile();
            let file = file.map_err(|why| BenchError::Io("make a temporary file".into(), why))?;
            write_whole(file.path(), text)?;
            Ok(ask(file.path()))
        }
    }
}

/// Writes a file that is there as a whole or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), BenchError> {
    let part = path.with_extension("part");
    std::fs::write(&part, text).map_err(BenchError::io("write", &part))?;
    std::fs::rename(&part, path).map_err(BenchError::io("write", path))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Answers with the problem's id; the server fails at every `fails`-th request.
    struct Scripted {
        asked: AtomicU32,
        fails: u32,
    }

    impl Author for Scripted {
        fn name(&self) -> String {
            "scripted".into()
        }

        fn write(&self, problem: &Problem<'_>, sample: u32) -> Result<String, String> {
            assert_eq!(std::fs::read_to_string(problem.path).unwrap(), problem.text);
            let asked = 1 + self.asked.fetch_add(1, Ordering::Relaxed);
            if asked.is_multiple_of(self.fails) { Err("busy".into()) } else { Ok(format!("{} {sample}", problem.id)) }
        }
    }

    fn suite() -> Suite {
        let item = |id: &str| crate::suite::Item {
            id: id.into(),
            level: None,
            number: None,
            code: Code::Text(format!("text of {id}")),
            digest: String::new(),
        };
        Suite { name: "s".into(), items: vec![item("a/b"), item("c")], whole: 2 }
    }

    #[test]
    fn what_failed_is_asked_again_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let author = Scripted { asked: AtomicU32::new(0), fails: 3 };
        let write = |author: &Scripted| write_samples(author, &suite(), folder.path(), 4, 2, |_, _, _| {}).unwrap();
        let first = write(&author);
        assert_eq!((first.found.len(), first.lacking.len()), (6, 2));
        let patient = Scripted { asked: AtomicU32::new(0), fails: 100 };
        let samples = write(&patient);
        assert_eq!((samples.found.len(), patient.asked.into_inner()), (8, 2));
        for sample in &samples.found {
            let text = String::from_utf8(sample.code.read().unwrap()).unwrap();
            assert_eq!(text, format!("{} {}", suite().items[sample.item].id, sample.index));
        }
        // The folder can be verified by itself.
        assert_eq!(Samples::read(&folder.path().join("samples"), &suite()).unwrap(), samples);
    }

    #[test]
    fn a_server_that_never_answers_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let author = Scripted { asked: AtomicU32::new(0), fails: 1 };
        let error = write_samples(&author, &suite(), folder.path(), 1, 1, |_, _, _| {}).unwrap_err();
        assert!(error.to_string().contains("busy"), "{error}");
    }
}
