//! The zygote and its children killed at any moment: every job still ends in one outcome, and nothing is left.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{alive, answer, children, eventually, leftover_groups, options, probe, script, start};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tilewright_cell::{CellError, Death, Zygote};

fn murder(pid: u32) {
    // It may have ended by itself meanwhile.
    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
}

/// A small generator is enough for moments in time.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn jobs_survive_the_zygotes_death_at_random_moments() {
    let zygote = start();
    let mut random = u64::from(std::process::id());
    for round in 0..20 {
        let job = probe(json!({"do": "echo", "value": round}));
        let pid = zygote.pid();
        let delay = Duration::from_micros(next_random(&mut random) % 25_000);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| zygote.run(&job.job));
            std::thread::sleep(delay);
            if round % 7 == 0 {
                murder(pid);
            } else {
                children(pid).into_iter().for_each(murder);
            }
            match running.join().unwrap() {
                Ok(outcome) => match outcome.response {
                    Ok(_) => assert_eq!(answer(&outcome), json!(round)),
                    Err(death) => assert_eq!(death, Death::Signal(9)),
                },
                // Killed before it could say that it is confined: our fault, and said so.
                Err(error) => assert!(matches!(error, CellError::Refused { .. }), "{error}"),
            }
        });
    }
    let job = probe(json!({"do": "echo", "value": "after"}));
    assert_eq!(answer(&zygote.run(&job.job).unwrap()), json!("after"));
    let last = zygote.pid();
    drop(zygote);
    assert!(!alive(last));
    let left = leftover_groups(std::process::id());
    // Other tests of this program may be running jobs.
    assert!(left.len() <= 2, "{left:?}");
}

#[test]
fn dropping_a_zygote_ends_all_that_it_runs() {
    let zygote = start();
    let pid = zygote.pid();
    let job = probe(json!({"do": "sleep"}));
    let mut running = Vec::new();
    std::thread::scope(|scope| {
        let handle = scope.spawn(|| zygote.run(&job.job));
        assert!(eventually(Duration::from_secs(30), || !children(pid).is_empty()));
        running.extend(children(pid));
        // The zygote dies twice: the second death is reported.
        murder(pid);
        assert!(eventually(Duration::from_secs(60), || zygote.pid() != pid && !children(zygote.pid()).is_empty()));
        running.extend(children(zygote.pid()));
        murder(zygote.pid());
        assert!(matches!(handle.join().unwrap(), Err(CellError::ZygoteDied(_))));
    });
    drop(zygote);
    assert!(eventually(Duration::from_secs(30), || !running.iter().any(|pid| alive(*pid))));
}

/// Not a test by itself: what `everything_dies_with_the_rust_process` starts and kills.
#[test]
#[ignore = "a helper of another test"]
fn helper_that_runs_a_job_until_it_is_killed() {
    let zygote = start();
    let job = probe(json!({"do": "sleep"}));
    let pid = zygote.pid();
    std::thread::scope(|scope| {
        scope.spawn(|| zygote.run(&job.job));
        assert!(eventually(Duration::from_secs(30), || !children(pid).is_empty()));
        println!("\npids {pid} {}", children(pid)[0]);
        std::io::stdout().flush().unwrap();
    });
}

#[test]
fn everything_dies_with_the_rust_process() {
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "--exact", "helper_that_runs_a_job_until_it_is_killed"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pids: Vec<u32> = BufReader::new(helper.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("pids ")?.split(' ').map(|pid| pid.parse().unwrap()).collect()))
        .expect("the helper runs a job");
    assert!(pids.iter().all(|pid| alive(*pid)));
    murder(helper.id());
    helper.wait().unwrap();
    assert!(eventually(Duration::from_secs(30), || !pids.iter().any(|pid| alive(*pid))));
    // What the dead process could not remove, the next one does.
    drop(start());
    assert!(leftover_groups(helper.id()).is_empty());
}

#[test]
fn a_zygote_that_does_not_start_says_why() {
    let error = |commands: &str, change: fn(&mut tilewright_cell::ZygoteOptions)| {
        let python = script(commands);
        let mut options = options(python.path.clone());
        change(&mut options);
        Zygote::start(options).unwrap_err().to_string()
    };
    let failed = error("echo no torch here >&2; exit 3", |_| ());
    assert!(failed.contains("no torch here") && failed.contains("exit status: 3"), "{failed}");
    let slow = error("exec sleep 600", |options| options.start_timeout = Duration::from_millis(300));
    assert!(slow.contains("not ready"), "{slow}");
    let absent = Zygote::start(options("/nowhere/python")).unwrap_err().to_string();
    assert!(absent.contains("No such file"), "{absent}");
}
