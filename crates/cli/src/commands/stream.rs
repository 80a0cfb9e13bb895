//! `verify --batch -`: requests on standard input, verdicts on standard output, as they come.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use anyhow::Context;
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
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
    /// Comes back with the answer.
    id: Option<Box<RawValue>>,
    problem: Option<Utf8PathBuf>,
    candidate: Option<Utf8PathBuf>,
    /// The candidate's text, in place of a file.
    source: Option<String>,
}

/// What an answer is told by.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Id {
    /// As it came, digit by digit.
    Given(Box<RawValue>),
    /// The number of a line that gives none.
    Line(usize),
}

/// A line of standard output.
#[derive(Debug, Serialize)]
struct Answer {
    id: Id,
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
    id: Id,
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
        let number = at + 1;
        let task = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => understand(&line, number, problem, read),
            Err(error) => Err((Id::Line(number), format!("failed to read the line: {error}"))),
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
fn understand(line: &str, number: usize, problem: Option<&Utf8Path>, read: Instant) -> Result<Task<Tag>, (Id, String)> {
    let request = request(line);
    let id = request.as_ref().map_or_else(|_| id_of(line), |request| request.id.clone());
    let tag = Tag { id: id.map_or(Id::Line(number), Id::Given), read };
    match request.and_then(|request| files(request, problem)) {
        Ok((problem, candidate, source)) => Ok(Task {
            tag,
            problem: problem.into(),
            candidate: candidate.into(),
            source: source.map(String::into_bytes),
        }),
        Err(why) => Err((tag.id, why)),
    }
}

fn request(line: &str) -> Result<Request, String> {
    let line: &RawValue = serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    // To serde, a list of its fields in order is a structure too.
    if !line.get().starts_with('{') {
        return Err("no request: give an object, as {\"problem\": FILE, \"candidate\": FILE}".into());
    }
    serde_json::from_str(line.get()).map_err(|error| format!("no request: {error}"))
}

/// The id of an object that is no request otherwise.
fn id_of(line: &str) -> Option<Box<RawValue>> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(line).ok()?;
    fields.remove("id").filter(|id| id.get() != "null")
}

/// Problem, candidate, and the candidate's text where it comes with the request.
fn files(request: Request, problem: Option<&Utf8Path>) -> Result<(Utf8PathBuf, Utf8PathBuf, Option<String>), String> {
    let problem = request.problem.or_else(|| problem.map(Utf8Path::to_owned));
    let problem = problem.ok_or("it names no problem: add \"problem\": FILE")?;
    session::check_file(&problem, "problem").map_err(|error| error.to_string())?;
    match (request.candidate, request.source) {
        (Some(path), None) => {
            session::check_file(&path, "candidate").map_err(|error| error.to_string())?;
            Ok((problem, path, None))
        }
        (path, Some(source)) => Ok((problem, path.unwrap_or_else(|| "request.py".into()), Some(source))),
        (None, None) => Err("it names no candidate: add \"candidate\": FILE or \"source\": TEXT".into()),
    }
}

fn answer(answer: &Answer) -> anyhow::Result<()> {
    let line = serde_json::to_string(answer).context("failed to write an answer")?;
    Ok(output::line(line)?)
}
