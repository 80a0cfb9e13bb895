//! `verify --batch -`: requests on standard input, verdicts on standard output, as they come.

use std::io::BufRead;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tilewright_contract::Verdict;
use tilewright_verify::{Task, Verifier, Width, serve};

use super::session;
use crate::args::VerifyArgs;
use crate::output;

/// Lines that are read before somebody is free for them.
const READ_AHEAD: usize = 1;

/// A line of standard input.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Comes back with the answer; the number of the line, where there is none.
    id: Option<Value>,
    problem: Option<Utf8PathBuf>,
    candidate: Option<Utf8PathBuf>,
    /// The candidate's text, in place of a file.
    source: Option<String>,
}

/// A line of standard output.
#[derive(Debug, Serialize)]
struct Answer {
    id: Value,
    /// From reading the request to its verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    /// Why the line is no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a verdict needs to become an answer.
struct Tag {
    id: Value,
    read: Instant,
}

/// Serves until standard input ends; exit status 0 once every line has its answer.
pub(crate) fn run(verifier: &Verifier, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let width =
        Width { jobs: session::candidates_at_once(verifier, args.jobs), problems: args.problems.get() as usize };
    let (sender, lines) = sync_channel(READ_AHEAD);
    let over = sender.clone();
    let problem = args.problem.clone();
    std::thread::spawn(move || read(problem.as_deref(), &sender));
    let tasks = Tasks { lines };
    let served = serve(verifier, tasks, width, |tag: Tag, verdict| {
        answer(&Answer {
            id: tag.id,
            seconds: Some(tag.read.elapsed().as_secs_f64()),
            verdict: Some(verdict),
            error: None,
        })
        .inspect_err(|_| end(over.clone()))
    });
    served.map(|()| ExitCode::SUCCESS)
}

/// Wakes whoever waits for a line that nobody needs any more: standard output is closed.
fn end(over: SyncSender<Option<Task<Tag>>>) {
    // A failed send means that it has ended by itself.
    std::thread::spawn(move || over.send(None).is_ok());
}

/// Requests until the first `None`.
struct Tasks {
    lines: Receiver<Option<Task<Tag>>>,
}

impl Iterator for Tasks {
    type Item = Task<Tag>;

    fn next(&mut self) -> Option<Self::Item> {
        self.lines.recv().ok().flatten()
    }
}

/// Reads requests; answers at once what is none.
fn read(problem: Option<&Utf8Path>, requests: &SyncSender<Option<Task<Tag>>>) {
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let read = Instant::now();
        let number = Value::from(at + 1);
        let task = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => understand(&line, number, problem, read),
            Err(error) => Err((number, format!("failed to read the line: {error}"))),
        };
        let going = match task {
            Ok(task) => requests.send(Some(task)).is_ok(),
            Err((id, error)) => answer(&Answer { id, seconds: None, verdict: None, error: Some(error) }).is_ok(),
        };
        if !going {
            break;
        }
    }
    // A failed send means that the requests have ended already.
    let _ = requests.send(None);
}

/// The task in a line, or why there is none, with the line's id.
fn understand(
    line: &str,
    number: Value,
    problem: Option<&Utf8Path>,
    read: Instant,
) -> Result<Task<Tag>, (Value, String)> {
    let value: Value = serde_json::from_str(line).map_err(|error| (number.clone(), format!("no JSON: {error}")))?;
    let id = value.get("id").filter(|id| !id.is_null()).cloned().unwrap_or(number);
    let wrong = |why: String| (id.clone(), why);
    let request: Request = serde_json::from_value(value).map_err(|error| wrong(format!("no request: {error}")))?;
    let problem = request.problem.as_deref().or(problem);
    let problem = problem.ok_or_else(|| wrong("it names no problem: add \"problem\": FILE".into()))?;
    session::check_file(problem, "problem").map_err(|error| wrong(error.to_string()))?;
    let (candidate, source) = match (request.candidate, request.source) {
        (Some(path), None) => {
            session::check_file(&path, "candidate").map_err(|error| wrong(error.to_string()))?;
            (path, None)
        }
        (path, Some(source)) => (path.unwrap_or_else(|| "request.py".into()), Some(source.into_bytes())),
        (None, None) => return Err(wrong("it names no candidate: add \"candidate\": FILE or \"source\": TEXT".into())),
    };
    let tag = Tag { id: request.id.unwrap_or(id), read };
    Ok(Task { tag, problem: problem.into(), candidate: candidate.into(), source })
}

fn answer(answer: &Answer) -> anyhow::Result<()> {
    let line = serde_json::to_string(answer).context("failed to write an answer")?;
    Ok(output::line(line)?)
}
