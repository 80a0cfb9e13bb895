//! Standard output that takes no more, and input that is no file: a clean end each.

use std::fs::{self, File};
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use assert_cmd::Command;

fn tilewright() -> Process {
    let mut process = Process::new(assert_cmd::cargo::cargo_bin("tilewright"));
    process.env_clear();
    process
}

#[test]
fn a_full_disk_is_told_and_a_reader_that_went_away_is_not() {
    for arguments in [&["rule"][..], &["schema", "verdict"], &["rule", "torch-compute"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = tilewright().args(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {told}");
        assert!(told.starts_with("tilewright: failed to write to standard output: No space left"), "{told}");

        let mut gone = tilewright().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(gone.stdout.take());
        let output = gone.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        // It may have been done before the reader went.
        assert!(matches!(output.status.code(), Some(0 | 3)) && told.is_empty(), "{arguments:?}: {told}");
    }
}

#[test]
fn what_is_no_file_is_named_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("file.py"), "x = 1\n").unwrap();
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("folder/problem.py"), "x = 1\n").unwrap();
    std::os::unix::fs::symlink(at("loop.py"), at("loop.py")).unwrap();
    assert!(Process::new("mkfifo").arg(at("pipe.py")).status().unwrap().success());
    let (file, pipe, circle) = (at("file.py"), at("pipe.py"), at("loop.py"));
    let inside = format!("give {}", at("folder/problem.py"));
    let nowhere = at("file.py/pages");
    let cases: [(&[&str], &str); 10] = [
        (&["verify", &file, &pipe], "is no regular file"),
        (&["sanitize", &file, &pipe], "is no regular file"),
        (&["screen", &pipe], "is no regular file"),
        (&["screen", &circle], "Too many levels of symbolic links"),
        (&["screen", "nothing.py"], "no file or folder nothing.py"),
        (&["verify", &at("folder"), &file], &inside),
        (&["verify", &file, &file, "--resume", "log"], "--resume and --jobs are for --batch"),
        (&["verify", &file, &file, "--python", "/nope"], "/nope, which is not there"),
        (&["rule", "--pages", &nowhere], "--pages: failed to make"),
        (&["sanitize", &file, &file, "--target", "cuda:99"], "--target cuda:99"),
    ];
    for (arguments, wanted) in cases {
        let mut command = Command::cargo_bin("tilewright").unwrap();
        let output = command.env_clear().args(arguments).timeout(Duration::from_secs(30)).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(wanted) && told.lines().count() == 1, "{arguments:?}: {told}");
    }
}

/// Files that hold something else than what a log should: told before Python starts, and left as they were.
#[test]
fn a_log_of_something_else_is_named_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(at("corpus/honest")).unwrap();
    fs::write(at("corpus/p.py"), "x = 1\n").unwrap();
    fs::write(at("corpus/honest/right.py"), "x = 1\n").unwrap();
    let rows = "id,problem,label,mechanism,kind,verdict,targets,note\nright,p.py,honest,,plain,accepted,cpu,\n";
    fs::write(at("corpus/labels.csv"), rows).unwrap();
    let (corpus, log) = (at("corpus"), at("log.jsonl"));
    let audit = |more: &[&str]| {
        let mut command = Command::cargo_bin("tilewright").unwrap();
        command.env_clear().args(["audit", &corpus]).args(more).timeout(Duration::from_secs(30)).output().unwrap()
    };
    for (held, wanted) in [
        ("{\"schema\":\"tilewright.verdict/1\"}\n", "holds something else than an audit's verdicts"),
        ("{\"some\":\"configuration\"}\n{}\n", "holds something else than an audit's verdicts"),
        ("x = 1\ny = 2\n", ":1: not a line of an earlier run"),
    ] {
        fs::write(&log, held).unwrap();
        let output = audit(&["--resume", &log]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{held}: {told}");
        assert!(told.contains(wanted) && told.contains(&log) && told.lines().count() == 1, "{held}: {told}");
        assert_eq!(fs::read_to_string(&log).unwrap(), held);
    }
    let nowhere = at("corpus/p.py/report.html");
    let output = audit(&["--html", &nowhere]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains(&format!("--html {nowhere}: Not a directory")) && told.lines().count() == 1, "{told}");
}
