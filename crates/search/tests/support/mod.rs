//! A checker and an author that need no GPU, no Python and no model.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tilewright_author::{
    Answer, Author, AuthorError, ChatError, Goal, Hardware, Listener, NoCode, Piece, Request, Usage,
};
use tilewright_contract::{CandidateId, Target, Verdict, VerdictKind};
use tilewright_search::{Checker, Event, Folder, Limits, Plan, Report, Run, Settings, Tree};

/// A verdict of this kind; with a speedup, a timed one.
pub(crate) fn verdict(kind: VerdictKind, speedup: Option<f64>) -> Verdict {
    let estimate = |value: f64| json!({"value": value, "low": value * 0.95, "high": value * 1.05});
    let timing = speedup.map(|speedup| {
        json!({"device_us": estimate(10.0), "warm_us": estimate(9.0), "calls": 10, "overhead_us": 1.0, "launches": [],
            "baselines": [{"baseline": "eager", "device_us": estimate(10.0 * speedup), "calls": 10, "graph": true,
                "speedup": estimate(speedup)}]})
    });
    serde_json::from_value(json!({
        "schema": Verdict::SCHEMA, "verdict": kind.name(), "fault": kind.fault(), "target": "cpu", "arch": null, "trust": "replay",
        "problem": {"path": "p.py", "digest": "p"}, "candidate": {"path": "c.py", "digest": "c"}, "profiles": {},
        "reasons": [{"code": "values", "message": "because"}], "resources": {}, "timing": timing, "stages": [], "weights": null,
    }))
    .expect("a verdict")
}

/// Reads the verdict off the candidate: `kind` or `accepted SPEEDUP`.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) checks: AtomicUsize,
    /// The texts that were verified, in order.
    pub(crate) seen: Mutex<Vec<String>>,
    pub(crate) pause: Duration,
    /// Texts that do not stand a closer look; without it there is none.
    pub(crate) closer: Option<Vec<&'static str>>,
    /// What a text does; without it nobody knows.
    pub(crate) twin: Option<fn(&str) -> String>,
    /// The number of the text at which it panics, counted from one.
    pub(crate) breaks_at: usize,
}

impl Checker for Reader {
    fn check(&self, _: &Path, source: &str, _: tilewright_verify::Watch<'_>) -> Verdict {
        let number = self.checks.fetch_add(1, Ordering::SeqCst) + 1;
        self.seen.lock().expect("the texts").push(source.to_owned());
        std::thread::sleep(self.pause);
        assert_ne!(number, self.breaks_at, "for the test");
        let mut words = source.split_whitespace();
        let name = words.next().unwrap_or_default();
        let kind = VerdictKind::ALL.into_iter().find(|kind| kind.name() == name).expect("a kind of verdict");
        verdict(kind, words.next().and_then(|word| word.parse().ok()))
    }

    fn twin(&self, _: &Path, source: &str) -> Option<String> {
        self.twin.map(|twin| twin(source))
    }

    fn confirm(&self, _: &Path, source: &str) -> Option<Verdict> {
        let fails = holds(self.closer.as_ref()?, source);
        let speedup = source.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        Some(if fails { verdict(VerdictKind::Rejected, None) } else { verdict(VerdictKind::Accepted, speedup) })
    }
}

/// Whether a text is among some.
fn holds(texts: &[&str], source: &str) -> bool {
    texts.contains(&source)
}

/// Writes what a function says, from the number of the candidate and the verdicts before it.
pub(crate) struct Writer<F>(pub(crate) F);

/// What a [`Writer`] may say.
pub(crate) enum Said {
    Code(String),
    NoCode,
    Nothing(AuthorError),
}

impl<F: Fn(&Request<'_>) -> Said + Send + Sync> Author for Writer<F> {
    fn name(&self) -> &str {
        "writer"
    }

    fn write(&self, request: &Request<'_>, _: &mut Listener<'_>) -> Result<Answer, AuthorError> {
        let source = match (self.0)(request) {
            Said::Code(source) => Ok(source),
            Said::NoCode => Err(NoCode::NoBlock),
            Said::Nothing(error) => return Err(error),
        };
        Ok(Answer {
            variant: format!("answer {}", request.sample),
            source,
            notes: Vec::new(),
            messages: Vec::new(),
            reply: String::new(),
            truncated: false,
            usage: Usage { input_tokens: 10, output_tokens: 5, cost: 0.5, ..Usage::default() },
        })
    }
}

/// Says its piece before it answers, and heeds who breaks it off.
pub(crate) struct Talker;

impl Author for Talker {
    fn name(&self) -> &str {
        "talker"
    }

    fn write(&self, request: &Request<'_>, listener: &mut Listener<'_>) -> Result<Answer, AuthorError> {
        if listener(Piece::Text("incorrect")).is_break() {
            return Err(ChatError::Stopped.into());
        }
        Writer(|request: &Request<'_>| Said::Code(format!("incorrect {}", request.sample))).write(request, listener)
    }
}

pub(crate) fn settings() -> Settings {
    Settings {
        schema: Settings::SCHEMA.into(),
        problem: CandidateId { path: "p.py".into(), digest: "p".into() },
        author: "writer".into(),
        goal: Goal {
            hardware: Hardware::Cuda,
            target: Target { backend: "cuda".into(), arch: "90".into(), warp_size: 32 },
            device: "cpu".into(),
        },
        profiles: vec!["tilewright-1/1".into()],
        trials: 3,
        seed: 7,
    }
}

/// A run with all that it needs.
pub(crate) struct Setting {
    pub(crate) folder: PathBuf,
    pub(crate) plan: Plan,
    pub(crate) limits: Limits,
    pub(crate) jobs: usize,
    /// For the author who breaks himself off.
    pub(crate) interrupted: AtomicBool,
}

impl Setting {
    pub(crate) fn go(&self, author: &dyn Author, checker: &dyn Checker) -> (Tree, Report) {
        self.heard(author, checker, &|_| {})
    }

    pub(crate) fn heard(
        &self,
        author: &dyn Author,
        checker: &dyn Checker,
        watch: &(dyn Fn(Event<'_>) + Sync),
    ) -> (Tree, Report) {
        let mut settings = settings();
        let (mut folder, tree) = Folder::open(&self.folder, &mut settings, b"the problem").expect("a folder");
        let run = Run {
            problem: Path::new("p.py"),
            text: "the problem",
            author,
            checker,
            settings: &settings,
            plan: self.plan,
            limits: self.limits,
            jobs: self.jobs,
            watch,
            interrupted: &self.interrupted,
        };
        run.go(&mut folder, tree).expect("a run")
    }
}
