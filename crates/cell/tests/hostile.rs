//! What hostile code may try in a job, and what must come of it. All in one zygote, which must live through it.

mod common;

use std::time::{Duration, Instant};

use common::{answer, assert_refused, children, eventually, leftover_groups, probe, repository, zygote};
use serde_json::{Value, json};
use tilewright_cell::{CellError, Death, Job, Layer};

fn short(job: &mut Job) {
    job.limits.wall = Duration::from_millis(700);
}

#[test]
fn an_answer_comes_back() {
    let outcome = probe(json!({"do": "echo", "value": {"a": [1, null, "ä"]}})).run();
    assert_eq!(answer(&outcome), json!({"a": [1, null, "ä"]}));
    assert!(outcome.layers.has(Layer::Seccomp) && outcome.layers.has(Layer::NoNewPrivileges));
    assert!(outcome.max_rss_kb > 1000 && outcome.seconds > 0.0);
}

#[test]
fn a_large_request_and_answer_come_through() {
    let text = "x".repeat(8 << 20);
    assert_eq!(probe(json!({"do": "echo", "value": text})).answer(), json!(text));
}

#[test]
fn torch_works_in_a_cell() {
    let first = probe(json!({"do": "torch"})).answer();
    assert_eq!(first, probe(json!({"do": "torch"})).answer());
}

#[test]
fn output_is_drained_and_its_head_kept() {
    let outcome = probe(json!({"do": "print", "bytes": 10 << 20})).run();
    assert_eq!(answer(&outcome), json!(10 << 20));
    assert_eq!(outcome.output_bytes, 10 << 20);
    assert_eq!(outcome.output.len(), 64 << 10);
}

#[test]
fn sleeping_and_spinning_end_at_the_deadline() {
    for action in ["sleep", "spin"] {
        assert_eq!(probe(json!({"do": action})).with(short).death(), Death::Timeout);
    }
}

#[test]
fn processor_time_is_bounded_too() {
    let job = probe(json!({"do": "spin"})).with(|job| job.limits.cpu = Duration::from_secs(1));
    assert_eq!(job.death(), Death::Timeout);
}

#[test]
fn a_job_of_one_process_cannot_fork_or_start_a_program() {
    assert_eq!(probe(json!({"do": "fork", "children": 3})).answer(), json!({"made": 0, "refused": "EPERM"}));
    let program = probe(json!({"do": "program", "command": ["/usr/bin/true"]})).answer();
    assert_eq!(program, json!("EPERM"));
}

#[test]
fn forks_are_bounded_and_die_with_their_job() {
    let forking =
        |children: u32| probe(json!({"do": "fork", "children": children})).with(|job| job.limits.processes = 8);
    assert_eq!(forking(4).answer(), json!({"made": 4, "refused": null}));
    let bomb = forking(200).answer();
    assert!(bomb["made"].as_u64().unwrap() < 64, "{bomb}");
    assert_eq!(bomb["refused"], "EAGAIN");
}

#[test]
fn threads_are_bounded() {
    let made = probe(json!({"do": "threads", "threads": 500})).answer().as_u64().unwrap();
    assert!((1..64).contains(&made), "{made} threads");
}

#[test]
fn memory_is_bounded() {
    let job = probe(json!({"do": "memory", "bytes": 1_u64 << 30})).with(|job| job.limits.memory_bytes = 200 << 20);
    assert_eq!(job.death(), Death::OutOfMemory);
    let enough = probe(json!({"do": "memory", "bytes": 100 << 20})).with(|job| job.limits.memory_bytes = 200 << 20);
    assert_eq!(enough.answer(), json!(100));
    assert_eq!(probe(json!({"do": "shared_memory"})).answer(), json!("EPERM"));
}

#[test]
fn files_count_as_memory_where_there_is_a_control_group() {
    let job = probe(json!({"do": "disk", "bytes": 256 << 20, "files": 1})).with(|job| {
        job.limits.disk_bytes = 512 << 20;
        job.limits.memory_bytes = 100 << 20;
    });
    let outcome = job.run();
    if outcome.layers.has(Layer::ControlGroup) && outcome.layers.has(Layer::MountNamespace) {
        assert_eq!(outcome.response.unwrap_err(), Death::OutOfMemory);
        assert_eq!(std::fs::read_dir(job.scratch.path()).unwrap().count(), 0, "nothing reaches the disk");
    }
}

#[test]
fn disk_is_bounded_over_all_files() {
    for files in [1, 16] {
        let job = probe(json!({"do": "disk", "bytes": 256 << 20, "files": files}))
            .with(|job| job.limits.disk_bytes = 32 << 20);
        let outcome = job.run();
        match &outcome.response {
            Ok(_) => {
                let answer = answer(&outcome);
                assert!(answer["written"].as_u64().unwrap() <= 32 << 20, "{answer}");
                assert!(["ENOSPC", "EFBIG"].contains(&answer["refused"].as_str().unwrap()), "{answer}");
            }
            Err(death) => assert_eq!(*death, Death::DiskFull),
        }
    }
}

#[test]
fn honest_files_are_taken_over_and_links_are_not() {
    let job = probe(json!({"do": "files"}));
    job.answer();
    let read = |name: &str| std::fs::read(job.scratch.path().join(name));
    assert_eq!(read("a/b/data").unwrap(), b"hello");
    assert_eq!(read("sparse").unwrap().len(), 1 << 20);
    assert!(!job.scratch.path().join("link").exists());
    assert!(job.scratch.path().join("root").symlink_metadata().is_err());
    assert!(job.scratch.path().join("pipe").symlink_metadata().is_err());
}

#[test]
fn a_scratch_named_through_a_link_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("real")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
    std::fs::create_dir(folder.path().join("real/scratch")).unwrap();
    probe(json!({"do": "files"})).with(|job| job.scratch = folder.path().join("link/scratch")).answer();
    assert_eq!(std::fs::read(folder.path().join("real/scratch/a/b/data")).unwrap(), b"hello");
}

#[test]
fn programs_can_be_granted() {
    let job = probe(json!({"do": "program", "command": ["/usr/bin/uname"]})).with(|job| {
        job.limits.processes = 4;
        job.execute_paths.push("/usr/bin/uname".into());
    });
    assert_eq!(job.answer(), json!("done: (0, 'Linux\\n', '')"));
}

#[test]
fn there_is_no_network() {
    assert_refused(&probe(json!({"do": "socket"})).answer());
}

#[test]
fn only_python_and_the_system_can_be_read() {
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("secret"), "42").unwrap();
    let repository = repository();
    let refused = [
        "/etc/shadow".into(),
        "/etc/passwd".into(),
        "/root".into(),
        "/tmp".into(),
        "/sys/kernel".into(),
        other.path().to_owned(),
        other.path().join("secret"),
        repository.join("Cargo.toml"),
        repository.join("crates/cell/tests/probe.py"),
        repository.join(".git"),
    ];
    assert_refused(&probe(json!({"do": "read", "paths": refused})).answer());

    let package = repository.join("python/tilewright/__init__.py");
    let allowed = probe(json!({"do": "read", "paths": [package, "/dev/urandom", "/usr/lib", "/proc/self/status"]}));
    for (path, outcome) in allowed.answer().as_object().unwrap() {
        assert!(outcome.as_str().unwrap().starts_with("done"), "{path}: {outcome}");
    }
    let granted = probe(json!({"do": "read", "paths": [other.path().join("secret")]}))
        .with(|job| job.read_paths.push(other.path().to_owned()));
    let granted = granted.answer();
    assert!(granted.as_object().unwrap().values().all(|outcome| outcome == "done: b'42'"), "{granted}");
}

#[test]
fn only_the_scratch_can_be_written() {
    let other = tempfile::tempdir().unwrap();
    let package = repository().join("python/tilewright/__init__.py");
    let before = std::fs::metadata(&package).unwrap();
    let paths =
        [other.path().join("x"), package.clone(), "/usr/x".into(), "/x".into(), "/tmp/x".into(), "/dev/shm/x".into()];
    assert_refused(&probe(json!({"do": "write", "paths": paths})).answer());
    assert_refused(&probe(json!({"do": "attributes", "path": package})).answer());
    assert_refused(&probe(json!({"do": "attributes", "path": "/usr/lib"})).answer());
    let after = std::fs::metadata(&package).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(before.permissions(), after.permissions());
}

#[test]
fn another_job_and_its_scratch_are_out_of_reach() {
    let victim = probe(json!({"do": "sleep"})).with(|job| job.limits.wall = Duration::from_secs(3));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| victim.death());
        std::thread::sleep(Duration::from_millis(300));
        let paths = [victim.scratch.path().to_owned(), victim.scratch.path().join("x")];
        assert_refused(&probe(json!({"do": "read", "paths": paths})).answer());
        assert_refused(&probe(json!({"do": "write", "paths": paths})).answer());
        probe(json!({"do": "kill"})).run();
        assert_eq!(running.join().unwrap(), Death::Timeout, "the victim must outlive the attack");
    });
}

#[test]
fn other_processes_are_out_of_reach() {
    let pid = zygote().pid();
    let mut answer = probe(json!({"do": "processes", "zygote": pid})).answer();
    let seen = answer.as_object_mut().unwrap().remove("seen").unwrap();
    assert!(seen.as_array().unwrap().iter().all(|pid| pid == "1"), "{seen}");
    assert_refused(&answer);
    // Killing the parent, the group and everybody must leave everybody alive.
    probe(json!({"do": "kill"})).run();
    assert_eq!(zygote().pid(), pid);
    assert_eq!(probe(json!({"do": "echo", "value": 1})).answer(), json!(1));
}

#[test]
fn dangerous_system_calls_are_refused() {
    assert_refused(&probe(json!({"do": "calls"})).answer());
}

/// Files of Python and the system are the same for all jobs, so nobody may leave or see a mark on them.
#[test]
fn files_that_all_jobs_read_are_no_channel() {
    assert_refused(&probe(json!({"do": "shared_files", "other": zygote().pid()})).answer());
}

#[test]
fn other_processes_keep_their_pace() {
    assert_refused(&probe(json!({"do": "schedule", "other": zygote().pid()})).answer());
}

#[test]
fn what_the_memory_limit_does_not_count_is_bounded_by_itself() {
    let limits = probe(json!({"do": "limits"})).answer();
    assert!(limits["stack"].as_i64().is_some_and(|bytes| (1..=64 << 20).contains(&bytes)), "{limits}");
    assert_eq!(limits["core"], 0);
}

#[test]
fn a_descriptor_that_a_job_is_given_is_its_own_and_is_closed_after_it() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut job = probe(json!({"do": "write_given", "text": "by hand"}));
    job.job.descriptor = Some(std::sync::Arc::new(writer.into()));
    assert_eq!(job.answer(), json!([0, 1, 2, 3, 4]));
    drop(job);
    // It ends: neither the zygote nor another job holds a copy.
    assert_eq!(std::io::read_to_string(&mut reader).unwrap(), "by hand");
}

#[test]
fn a_child_has_only_its_own_descriptors() {
    let waiting = probe(json!({"do": "sleep"})).with(short);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| waiting.death());
        std::thread::sleep(Duration::from_millis(200));
        let descriptors = probe(json!({"do": "descriptors"})).answer();
        let numbers: Vec<&str> = descriptors.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(numbers, ["0", "1", "2", "3"], "{descriptors}");
        running.join().unwrap();
    });
}

#[test]
fn the_users_environment_reaches_trusted_code_only() {
    // PATH is the one variable of the user that is sure to be set.
    let path = std::env::var("PATH").unwrap();
    let hostile = probe(json!({"do": "environment"})).answer();
    assert_eq!(hostile["environment"]["PATH"], "/usr/bin:/bin");
    assert_eq!(hostile["environment"].get("CARGO_MANIFEST_DIR"), None);
    let trusted = probe(json!({"do": "environment"})).with(|job| job.trusted = true).answer();
    assert_eq!(trusted["environment"]["PATH"], json!(path));
    assert_eq!(trusted["environment"]["CARGO_MANIFEST_DIR"], env!("CARGO_MANIFEST_DIR"));
    assert_eq!(trusted["folder"], json!(std::env::current_dir().unwrap()));
    // Children inherit the zygote's memory, so it must not have it either.
    let inherited = std::fs::read_to_string(format!("/proc/{}/environ", zygote().pid())).unwrap();
    assert!(!inherited.contains("CARGO_MANIFEST_DIR"));
}

#[test]
fn trusted_code_reads_and_writes_where_it_likes() {
    let folder = tempfile::tempdir().unwrap();
    let job = probe(json!({"do": "write", "paths": [folder.path().join("x")]})).with(|job| job.trusted = true);
    job.answer();
    assert!(folder.path().join("x").is_file());
}

#[test]
fn garbage_is_no_answer() {
    let garbage = |bytes: &str| probe(json!({"do": "garbage", "bytes": bytes})).with(short).death();
    assert!(matches!(garbage("\u{5}\0\0\0hello"), Death::Garbled(_)));
    assert_eq!(garbage("not a length at all"), Death::TooLarge);
    assert_eq!(probe(json!({"do": "huge"})).with(short).death(), Death::TooLarge);
    assert!(matches!(probe(json!({"do": "half"})).death(), Death::Garbled(_)));
    let small = probe(json!({"do": "echo", "value": "x".repeat(1000)})).with(|job| job.limits.response_bytes = 500);
    assert_eq!(small.death(), Death::TooLarge);
}

#[test]
fn ends_without_an_answer_are_told_apart() {
    assert_eq!(probe(json!({"do": "exit", "status": 0})).death(), Death::Exit(0));
    assert_eq!(probe(json!({"do": "exit", "status": 7})).death(), Death::Exit(7));
    assert_eq!(probe(json!({"do": "crash"})).death(), Death::Signal(11));
    assert_eq!(probe(json!({"do": "close_all"})).with(short).death(), Death::Timeout);
}

#[test]
fn an_answer_counts_even_if_its_process_stays() {
    let job = probe(json!({"do": "answer_and_stay"})).with(|job| job.limits.wall = Duration::from_secs(600));
    zygote();
    let start = Instant::now();
    assert_eq!(job.answer(), json!("early"));
    // Well under what the job asks for; a loaded machine may take its time.
    assert!(start.elapsed() < Duration::from_secs(300));
}

#[test]
fn exceptions_of_a_handler_are_internal_errors() {
    for (action, name) in [("raise", "KeyError"), ("system_exit", "SystemExit")] {
        let response = probe(json!({"do": action})).run().response.unwrap();
        assert_eq!(response["error"]["kind"], "internal");
        assert_eq!(response["error"]["type"], name);
    }
}

#[test]
fn a_missing_handler_is_an_error_of_ours() {
    let job = probe(json!({})).with(|job| job.kind = "nonsense".into());
    let error = zygote().run(&job.job).unwrap_err();
    assert!(matches!(&error, CellError::Refused { kind, .. } if kind == "nonsense"), "{error}");
}

#[test]
fn assemblers_run_where_processes_are_allowed_and_compilers_do_not() {
    let site = zygote().versions().execute_paths[0].join("ptxas");
    let run = |command: Value| {
        probe(json!({"do": "program", "command": command})).with(|job| job.limits.processes = 4).answer()
    };
    let version = run(json!([site, "--version"]));
    assert!(version.as_str().unwrap().starts_with("done: (0, "), "{version}");
    for program in ["/usr/bin/gcc", "/bin/sh", "/usr/bin/env"] {
        let refused = run(json!([program, "--version"]));
        assert!(["EACCES", "ENOENT"].contains(&refused.as_str().unwrap()), "{program}: {refused}");
    }
}

#[test]
fn many_jobs_run_at_a_time_and_nothing_is_left() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for round in 0..4 {
                    let value = json!([thread, round]);
                    assert_eq!(probe(json!({"do": "echo", "value": value})).answer(), value);
                }
            });
        }
    });
    let job = probe(json!({"do": "fork", "children": 4})).with(|job| job.limits.processes = 8);
    job.answer();
    drop(job);
    // Jobs of other tests of this program may be running: sooner or later there is a moment without any.
    assert!(eventually(Duration::from_secs(20), || children(zygote().pid()).is_empty()
        && leftover_groups(std::process::id()).is_empty()));
}
