//! Processes that hold a problem's data and end, with something in their place.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tilewright_cell::{CellError, Job, Layers, Outcome};
use tilewright_contract::{BaselineKind, Verdict};
use tilewright_stage::{Cache, ChangeRule, Runner, Stage, StageOptions};

use super::*;
use crate::draft::Draft;
use crate::lane::Seat;
use crate::options::{Mode, Options};
use crate::problem::Problem;
use crate::target::{Device, parse_arch};

/// Processes that hold no more than the number of their start.
#[derive(Default)]
struct Holders {
    started: AtomicUsize,
    /// Of those, how many end before they answer.
    stillborn: AtomicUsize,
    /// Those with weights under this rule answer when the other end of the channel is gone.
    slow: Mutex<Option<(ChangeRule, Receiver<()>)>>,
    connections: Mutex<Vec<UnixStream>>,
}

impl Holders {
    fn kill_all(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            connection.shutdown(std::net::Shutdown::Both).unwrap();
        }
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

impl Runner for Holders {
    fn run(&self, job: &Job) -> Result<Outcome, CellError> {
        if job.kind != "resident" {
            return Err(CellError::Refused { kind: job.kind.clone(), why: "for the test".into() });
        }
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let (stream, _) = UnixListener::bind(job.request["socket"].as_str().unwrap()).unwrap().accept().unwrap();
        self.connections.lock().unwrap().push(stream.try_clone().unwrap());
        let slow = self.slow.lock().unwrap().take_if(|(rule, _)| job.request["init_rule"] == json!(rule));
        if let Some((_, gate)) = slow {
            gate.iter().for_each(drop);
        }
        if self.stillborn.load(Ordering::SeqCst) == 0 {
            hold(stream, number as u8);
        } else {
            self.stillborn.fetch_sub(1, Ordering::SeqCst);
            self.connections.lock().unwrap().pop();
        }
        Ok(Outcome {
            response: Ok(json!({})),
            output: String::new(),
            output_bytes: 0,
            seconds: 0.0,
            max_rss_kb: 0,
            cpu_seconds: 0.0,
            layers: Layers::default(),
        })
    }

    fn versions(&self) -> (String, String) {
        ("2".into(), "3".into())
    }
}

/// Says that the data are made, and answers until the connection is closed.
fn hold(mut stream: UnixStream, number: u8) {
    let data = json!({
        "schema": "tilewright.oracle/1", "no_float64": null, "stochastic": false, "defect": null, "cases": [], "notes": [],
    });
    let send = |stream: &mut UnixStream, answer: &Value| {
        let text = serde_json::to_vec(answer).unwrap();
        stream.write_all(&(text.len() as u32).to_le_bytes()).unwrap();
        stream.write_all(&text).unwrap();
    };
    send(&mut stream, &data);
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut question = vec![0; u32::from_le_bytes(length) as usize];
        stream.read_exact(&mut question).unwrap();
        let question: Value = serde_json::from_slice(&question).unwrap();
        let Some(nbytes) = question["read"]["nbytes"].as_u64() else {
            send(&mut stream, &json!({}));
            continue;
        };
        send(&mut stream, &json!({"nbytes": nbytes}));
        stream.write_all(&vec![number; nbytes as usize]).unwrap();
    }
}

struct Bench {
    holders: Arc<Holders>,
    verifier: Verifier,
    problem: Problem,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// A problem that is loaded, for as many GPUs.
    fn new(gpus: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let holders = Arc::<Holders>::default();
        let options = Options {
            device: Device::Cuda(gpus[0]),
            target: parse_arch("sm_90").unwrap(),
            profiles: vec![tilewright_judge::profile(tilewright_judge::DEFAULT_PROFILE).unwrap().unwrap()],
            trials: 1,
            seed: 1,
            mode: Mode::Replay,
            timing: Some(vec![BaselineKind::Eager]),
            timeout: Duration::from_secs(60),
            strict: false,
            keep: None,
            confirm: 0.0,
        };
        let cache = Cache::open(folder.path().join("cache")).unwrap();
        let stage = Stage::new(holders.clone(), cache, StageOptions::default());
        let verifier = Verifier::new(stage, options).with_gpus(gpus);
        let path = folder.path().join("p.py");
        std::fs::write(&path, "").unwrap();
        let problem = verifier.load(&path);
        Self { holders, verifier, problem, _folder: folder }
    }

    /// Ends all processes that hold data, and waits until that is known.
    fn kill(&self) {
        let before = self.set().losses();
        self.holders.kill_all();
        while self.set().losses() == before {
            std::thread::yield_now();
        }
    }

    fn set(&self) -> &OracleSet {
        self.problem.oracle.as_ref().unwrap()
    }

    fn finish(&self, outcome: Result<(), Stop>) -> Verdict {
        Draft::new(&self.verifier.options, self.problem.id.clone(), self.problem.id.clone()).finish(outcome)
    }
}

/// A blob of its own for each place.
fn blob(offset: u64) -> Blob {
    Blob { offset, nbytes: 3 }
}

#[test]
fn data_are_made_anew_by_whoever_needs_them_first() {
    let bench = Bench::new(&[0, 1]);
    let (set, verifier) = (bench.set(), &bench.verifier);
    let held = || verifier.lanes.iter().map(|lane| set.hold(verifier, lane).unwrap().unwrap()).collect::<Vec<_>>();
    let before = held();
    assert_eq!(bench.holders.started(), 2);
    assert_eq!(set.bytes(blob(0)).unwrap(), [0; 3]);

    bench.holders.kill_all();
    assert!(set.bytes(blob(64)).is_err());
    // Of the other one it is known when its thread has seen it.
    while set.losses() < 2 {
        std::thread::yield_now();
    }
    // Many come at once: it is done once for each GPU.
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(held);
        }
    });
    assert_eq!(bench.holders.started(), 4);
    assert_eq!(set.losses(), 2);
    // Whoever had it has it again.
    assert!(before.iter().zip(held()).all(|(before, after)| Arc::ptr_eq(before, &after)));
    assert!(matches!(set.bytes(blob(64)).unwrap(), [2 | 3, ..]));
}

#[test]
fn a_process_that_ends_while_it_makes_data_is_started_again_and_not_for_ever() {
    let bench = Bench::new(&[0]);
    bench.kill();
    bench.holders.stillborn.store(2, Ordering::SeqCst);
    assert!(bench.problem.revive(&bench.verifier).is_ok());
    assert_eq!(bench.holders.started(), 4);

    bench.kill();
    bench.holders.stillborn.store(100, Ordering::SeqCst);
    assert!(matches!(bench.problem.revive(&bench.verifier), Err(StageError::Lost(_))));
    assert_eq!(bench.holders.started(), 7);
}

#[test]
fn candidates_are_verified_again_where_the_data_went_and_only_there() {
    let bench = Bench::new(&[0]);
    let verify = |outcomes: &dyn Fn(usize) -> (bool, Result<(), Stop>)| {
        let times = AtomicUsize::new(0);
        let verdict = bench.verifier.outliving(&bench.problem, |notes| {
            let (kill, outcome) = outcomes(times.fetch_add(1, Ordering::SeqCst));
            assert_eq!(notes.len() + 1, times.load(Ordering::SeqCst));
            if kill {
                bench.kill();
            }
            bench.finish(outcome)
        });
        (verdict.verdict, times.into_inner())
    };
    let trouble = || Err(Stop::infrastructure("for the test"));
    let wrong = || Err(Stop::new(VerdictKind::Incorrect, "values", "for the test"));
    // Lost twice, then whatever it is.
    assert_eq!(verify(&|time| (time < 2, trouble())), (VerdictKind::Infrastructure, 3));
    assert_eq!(verify(&|time| (time < 2, if time < 2 { trouble() } else { Ok(()) })), (VerdictKind::Accepted, 3));
    // Accepted, but without a baseline.
    assert_eq!(verify(&|time| (time == 0, Ok(()))), (VerdictKind::Accepted, 2));
    assert_eq!(verify(&|_| (false, Ok(()))), (VerdictKind::Accepted, 1));
    // Another candidate has had the data made anew meanwhile.
    let revived = |time| {
        if time == 0 {
            bench.kill();
            bench.problem.revive(&bench.verifier).unwrap();
        }
        (false, if time == 0 { trouble() } else { Ok(()) })
    };
    assert_eq!(verify(&revived), (VerdictKind::Accepted, 2));
    // What it says of the candidate stands.
    assert_eq!(verify(&|time| (time == 0, wrong())), (VerdictKind::Incorrect, 1));
    bench.problem.revive(&bench.verifier).unwrap();
    assert_eq!(verify(&|_| (false, trouble())), (VerdictKind::Infrastructure, 1));

    bench.holders.stillborn.store(100, Ordering::SeqCst);
    assert_eq!(verify(&|_| (true, trouble())), (VerdictKind::Infrastructure, 1));
}

#[test]
fn a_bug_of_ours_is_a_verdict_too() {
    let bench = Bench::new(&[0]);
    let (path, stage) = (&bench.problem.path, |_: &str| panic!("for the test"));
    let verdict = bench.verifier.verify_watched(&bench.problem, path, b"x = 1", &stage);
    assert_eq!(verdict.verdict, VerdictKind::Infrastructure);
    assert_eq!(verdict.reasons[0].message, "a bug in Tilewright: for the test");
    // Nobody waits for what it held.
    bench.verifier.verify(&bench.problem, path, b"x = 1");
}

#[test]
fn turns_are_those_of_a_gpu() {
    let bench = Bench::new(&[0, 1]);
    let seats = [0, 1].map(|_| Seat::find(&bench.verifier.lanes).unwrap());
    assert_ne!(seats[0].lane.index, seats[1].lane.index);
    let _turns = seats.each_ref().map(Seat::turn);
}

#[test]
fn the_work_of_a_gpu_that_does_not_compute_goes_to_the_others() {
    // No executor can be started here: whichever GPU is tried does not compute.
    let bench = Bench::new(&[0, 1, 2]);
    let lanes = &bench.verifier.lanes;
    let fails = |broken: &dyn Fn(usize) -> bool| {
        let tried = Mutex::new(Vec::new());
        let verdict = bench.verifier.outliving(&bench.problem, |_| {
            let seat = Seat::find(lanes).unwrap();
            tried.lock().unwrap().push(seat.lane.index);
            let outcome = if broken(seat.lane.index) { Err(Stop::infrastructure("for the test")) } else { Ok(()) };
            Verdict { target: seat.lane.to_string(), ..bench.finish(outcome) }
        });
        (verdict.verdict, tried.into_inner().unwrap())
    };
    assert_eq!(fails(&|lane| lane == 0), (VerdictKind::Accepted, vec![0, 1]));
    // It is left alone, also by those who load problems.
    assert_eq!(fails(&|_| false), (VerdictKind::Accepted, vec![1]));
    let problem = bench.verifier.load(&bench.problem.path);
    assert!(problem.reference(&lanes[0]).is_none() && problem.reference(&lanes[1]).is_some());
    // Each is tried before nobody is left.
    assert_eq!(fails(&|_| true), (VerdictKind::Infrastructure, vec![1, 2]));
    assert!(lanes[..2].iter().all(Lane::rests));
}

#[test]
fn data_that_are_being_made_keep_nobody_waiting_who_does_not_need_them() {
    let bench = Bench::new(&[0]);
    let (verifier, problem) = (&bench.verifier, &bench.problem);
    let initial = |rule| verifier.initial(problem, rule).unwrap();
    let same = initial(ChangeRule::Same);
    let (gate, slow) = channel();
    *bench.holders.slow.lock().unwrap() = Some((ChangeRule::Each, slow));
    std::thread::scope(|threads| {
        let each = [0, 1].map(|_| threads.spawn(|| initial(ChangeRule::Each)));
        while bench.holders.started() < 3 {
            std::thread::yield_now();
        }
        let (sender, others) = channel();
        threads.spawn(move || {
            let found =
                (initial(ChangeRule::Same), problem.losses(), problem.copied(), problem.revive(verifier).is_ok());
            sender.send(found).unwrap();
        });
        // Ends early only where it is right.
        let found = others.recv_timeout(Duration::from_secs(60));
        drop(gate);
        let [one, other] = each.map(|each| each.join().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        let (found, losses, copied, revived) = found.expect("waits for data that it does not need");
        assert!(Arc::ptr_eq(&found, &same) && (losses, copied, revived) == (0, 0, true));
    });
    assert_eq!(bench.holders.started(), 3);
}

#[test]
fn bytes_that_several_read_at_the_same_time_count_once() {
    let data = json!({
        "schema": "tilewright.oracle/1", "no_float64": null, "stochastic": false, "defect": null, "cases": [], "notes": [],
    });
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[7; 6]).unwrap();
    let file = DataFile::open(file.path()).unwrap();
    let set = OracleSet::in_file(serde_json::from_value(data).unwrap(), file).unwrap();
    // Each has read them before any of them keeps them.
    let kept = [(); 3].map(|()| set.keep((0, 3), vec![7; 3]).as_ptr());
    assert_eq!(kept, [set.bytes(blob(0)).unwrap().as_ptr(); 3]);
    assert_eq!(set.copied(), 3);
    for _ in 0..2 {
        assert_eq!(set.bytes(blob(3)).unwrap(), [7; 3]);
    }
    assert_eq!(set.copied(), 6);
}
