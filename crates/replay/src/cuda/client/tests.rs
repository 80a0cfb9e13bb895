//! The client against an executor that does what its script says: dies, hangs, faults or answers. The process is this test
//! program again.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tilewright_contract::{Buffer, BufferSource, Value};

use super::*;
use crate::program::Program;
use crate::run::Source;
use crate::wire::{Content, Start};

/// Names the folder with the script, one word a line, each taken by one request of whatever process; none left: `ok`.
const FOLDER: &str = "TILEWRIGHT_FAKE_EXECUTOR";

/// Not a test unless it is run by [`device`].
#[test]
fn fake_executor() {
    use std::os::fd::AsFd;
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    fs::write(folder.join("pid"), std::process::id().to_string()).unwrap();
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let mut from = socket.try_clone().unwrap();
    while let Ok((request, blobs)) = receive::<Request>(&mut from) {
        let word = if matches!(request, Request::Probe) { "healthy".into() } else { next_word(folder) };
        let failed =
            |code: &str| Response::Failed(Failure { code: code.into(), what: "a launch".into(), line: Some(7) });
        if let ("ok" | "short", Request::RunAll { starts, read_back, .. }) = (word.as_str(), &request) {
            // What each run starts from, in the place of what it leaves.
            let left = starts.iter().flat_map(|start| read_back.iter().map(|&at| start.contents[at]));
            let left = left.map(|content| match content {
                Some(Content::Blob(blob)) => blobs[blob].clone(),
                other => format!("{other:?}").into_bytes(),
            });
            let loan = Loan { handle: vec![7], nbytes: 1 << 21, spans: vec![(4096, 8), (8448, 2)] };
            let response = Response::RanAll { guard: None, loan, pitch: 16384, spent: Vec::new() };
            let left = left.skip(usize::from(word == "short")).collect::<Vec<_>>();
            send(&mut socket, &response, &left).unwrap();
            continue;
        }
        let response = match word.as_str() {
            "healthy" => Response::Healthy,
            "die" => std::process::exit(9),
            "hang" => loop {
                std::thread::park();
            },
            "guard" => Response::Ran { guard: Some(0) },
            "ok" => Response::Ran { guard: None },
            code => failed(code),
        };
        let last = matches!(response, Response::Failed(_));
        send(&mut socket, &response, &blobs).unwrap();
        if last {
            return;
        }
    }
}

fn next_word(folder: &Path) -> String {
    let script = fs::read_to_string(folder.join("script")).unwrap_or_default();
    let (word, rest) = script.split_once('\n').unwrap_or(("ok", ""));
    fs::write(folder.join("script"), rest).unwrap();
    // Long enough to be killed in between.
    std::thread::sleep(Duration::from_millis(2));
    word.to_owned()
}

thread_local! {
    static WORK: std::cell::RefCell<Option<tempfile::TempDir>> = const { std::cell::RefCell::new(None) };
}

/// A device whose executor follows a script.
fn device(script: &[&str]) -> (CudaDevice, std::path::PathBuf) {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().to_owned();
    fs::write(folder.join("script"), script.iter().map(|word| format!("{word}\n")).collect::<String>()).unwrap();
    WORK.with(|kept| *kept.borrow_mut() = Some(work));
    let command = |_| {
        let mut command = Command::new(std::env::current_exe()?);
        let folder = WORK.with(|work| work.borrow().as_ref().map(|work| work.path().to_owned()));
        command.args(["--exact", "cuda::client::tests::fake_executor", "--nocapture"]).env(FOLDER, folder.unwrap());
        Ok(command)
    };
    (CudaDevice { command, ..CudaDevice::new(0) }, folder)
}

/// One request; its answer holds what it sent.
fn ask(device: &mut CudaDevice, content: u8, seconds: u64) -> Result<Option<usize>, Fault> {
    let program = Program { buffers: vec![1], kernels: Vec::new(), ops: Vec::new() };
    let contents = vec![Some(Content::Blob(0))];
    let request = Request::Run { program, contents, poison: 0, read_back: vec![0] };
    let deadline = Instant::now() + Duration::from_secs(seconds);
    match device.exchange(&request, &[vec![content]], Some(deadline))? {
        (Response::Ran { guard }, blobs) => {
            assert_eq!(blobs, [vec![content]]);
            Ok(guard)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_dies_is_asked_again_a_few_times() {
    let (mut device, _) = device(&["ok", "die", "die", "die", "ok", "die"]);
    for content in 0..4 {
        assert_eq!(ask(&mut device, content, 60), Ok(None));
    }
    let (mut device, _) = self::device(&["die", "die", "die", "die", "ok"]);
    assert_eq!(ask(&mut device, 1, 60).unwrap_err().kind, FaultKind::Lost);
    assert_eq!(ask(&mut device, 1, 60), Ok(None));
}

#[test]
fn a_fault_counts_in_a_fresh_process() {
    let illegal = "CUDA_ERROR_ILLEGAL_ADDRESS";
    // Alone from the start: the fault is its own.
    let (mut device, folder) = device(&[illegal, "ok"]);
    let fault = ask(&mut device, 1, 60).unwrap_err();
    assert_eq!((fault.kind, fault.line), (FaultKind::OutOfBounds, Some(7)));
    // After others: it is asked again, alone.
    for (script, wanted) in [
        (vec!["ok", illegal, "ok"], Ok(None)),
        (vec!["ok", illegal, illegal], Err(FaultKind::OutOfBounds)),
        (vec!["ok", illegal, "die", "CUDA_ERROR_MISALIGNED_ADDRESS"], Err(FaultKind::Misaligned)),
        (vec!["ok", "CUDA_ERROR_OUT_OF_MEMORY", "ok"], Ok(None)),
    ] {
        device.restart();
        fs::write(folder.join("script"), script.join("\n") + "\n").unwrap();
        assert_eq!(ask(&mut device, 1, 60), Ok(None));
        assert_eq!(ask(&mut device, 2, 60).map_err(|fault| fault.kind), wanted, "{script:?}");
    }
}

/// What an earlier request left in a process is gone with it: such a request is not asked again by itself.
#[test]
fn who_needs_what_was_kept_begins_anew() {
    let (mut device, _) = device(&["ok", "die", "ok"]);
    assert_eq!(ask(&mut device, 1, 60), Ok(None));
    let program = Program { buffers: vec![1], kernels: Vec::new(), ops: Vec::new() };
    let starts = vec![Start { contents: vec![Some(Content::Kept)], poison: 0 }];
    let request = Request::RunAll { program, starts, handles: Vec::new(), read_back: Vec::new(), confirm: true };
    assert_eq!(device.exchange(&request, &[], None).unwrap_err().kind, FaultKind::Lost);
    assert_eq!(ask(&mut device, 2, 60), Ok(None));
}

/// Runs that are asked for together have places of their own, name each allocation once, and send equal bytes once.
#[test]
fn each_of_several_runs_has_its_place() {
    let buffer = |nbytes, source| Buffer { nbytes, source };
    let plan = Plan {
        schema: Plan::SCHEMA.into(),
        buffers: vec![
            buffer(8, BufferSource::Input { index: 0 }),
            buffer(2, BufferSource::Constant { path: "table".into() }),
        ],
        kernels: Vec::new(),
        steps: Vec::new(),
        output: Value::None,
        choices: Vec::new(),
        regime: None,
        findings: Vec::new(),
    };
    let run = |handle: u8, offset: u64, table: [u8; 2]| SharedRun {
        contents: vec![Some(Source::Mapped { handle: 0, offset }), Some(Source::Bytes(table.to_vec()))],
        handles: vec![vec![handle]],
        poison: 0,
        seed: 0,
        deadline: None,
    };
    let (mut device, _) = device(&["die"]);
    let runs = [run(1, 256, [4, 5]), run(2, 0, [4, 5]), run(1, 512, [6, 7])];
    let loans = device.run_all(&plan, (&[], &[]), &runs, &[1, 0], true).unwrap();
    assert_eq!((loans.handle, loans.nbytes), (vec![7], 1 << 21));
    let places = |at: u64| vec![(4096 + at * 16384, 8), (8448 + at * 16384, 2)];
    assert_eq!(loans.runs, [places(0), places(1), places(2)]);
    let mapped = |handle: usize, offset: u64| format!("{:?}", Some(Content::Mapped { handle, offset })).into_bytes();
    let read = [vec![vec![4, 5], mapped(0, 256)], vec![vec![4, 5], mapped(1, 0)], vec![vec![6, 7], mapped(0, 512)]];
    assert_eq!(loans.read, read);
    // What is missing is not taken for nothing to look at.
    let (mut device, _) = self::device(&["short"]);
    assert_eq!(device.run_all(&plan, (&[], &[]), &runs, &[1, 0], true).unwrap_err().kind, FaultKind::Infrastructure);
    // A fault is seen again alone, unless the caller finds out by itself.
    let illegal = "CUDA_ERROR_ILLEGAL_ADDRESS";
    for (confirm, right) in [(true, true), (false, false)] {
        let (mut device, _) = self::device(&["ok", illegal, "ok"]);
        assert!(device.run_all(&plan, (&[], &[]), &runs, &[], confirm).is_ok());
        assert_eq!(device.run_all(&plan, (&[], &[]), &runs, &[], confirm).is_ok(), right);
        assert_eq!(device.process.is_some(), right);
    }
}

#[test]
fn what_hangs_is_ended_at_its_deadline_and_the_next_one_is_served() {
    let (mut device, folder) = device(&["ok", "hang"]);
    assert_eq!(ask(&mut device, 1, 60), Ok(None));
    let hung: u32 = fs::read_to_string(folder.join("pid")).unwrap().parse().unwrap();
    assert_eq!(ask(&mut device, 2, 1).unwrap_err().kind, FaultKind::Timeout);
    assert!(!Path::new(&format!("/proc/{hung}")).exists());
    assert_eq!(ask(&mut device, 3, 60), Ok(None));
}

#[test]
fn who_writes_a_guard_zone_leaves_no_process_behind() {
    let (mut device, _) = device(&["guard"]);
    let guard = ask(&mut device, 1, 60).unwrap();
    assert_eq!(device.intact(guard).unwrap_err().kind, FaultKind::Guard);
    assert!(device.process.is_none());
}

/// Killed from outside again and again: every request is answered, each with its own answer.
#[test]
fn nothing_is_lost_when_executors_are_killed() {
    let (mut device, folder) = device(&[]);
    let (over, killed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut lost, mut asked) = (0, 0);
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut last = String::new();
            while !over.load(Ordering::Relaxed) {
                let pid = fs::read_to_string(folder.join("pid")).unwrap_or_default();
                if !pid.is_empty() && pid != last {
                    std::thread::sleep(Duration::from_millis(killed.load(Ordering::Relaxed) as u64 * 7 % 40));
                    Command::new("kill").args(["-9", &pid]).status().unwrap();
                    killed.fetch_add(1, Ordering::Relaxed);
                    last = pid;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // Also where a request panics: nobody else ends the thread.
        let _ends = Ends(&over);
        while killed.load(Ordering::Relaxed) < 20 {
            match ask(&mut device, asked as u8, 60) {
                Ok(guard) => assert_eq!(guard, None),
                Err(fault) => {
                    // The second where it was killed before it said that it is well.
                    assert!(matches!(fault.kind, FaultKind::Lost | FaultKind::Infrastructure), "{fault}");
                    lost += 1;
                }
            }
            asked += 1;
        }
    });
    // Four in a row of one request are given up: rare, and told.
    let killed = killed.into_inner();
    assert!(asked > 0 && lost <= killed / 4, "{lost} of {asked} requests, {killed} kills");
}
