//! `tilewright screen`: what the screen sees in files, without Python and without running them.

mod sarif;
mod show;

use std::io::{IsTerminal, Read, stdin, stdout};
use std::process::ExitCode;

use camino::{Utf8Path, Utf8PathBuf};
use tilewright_contract::{CandidateId, OpenCall, ScreenedFile, Screening, Tier};

use super::usage;
use super::verify::candidates;
use crate::args::{Hardware, ScreenArgs};
use crate::output;

/// A file and its bytes, as far as they could be read.
struct Input {
    path: Utf8PathBuf,
    bytes: Result<Vec<u8>, String>,
}

pub(crate) fn run(args: &ScreenArgs) -> anyhow::Result<ExitCode> {
    let files = files(&args.paths)?;
    let mut screened = Vec::with_capacity(files.len());
    for path in files {
        let input = Input { bytes: read(&path), path };
        let file = screen(&input, args.hardware);
        if !args.json && !args.sarif {
            output::text(show::file(&file, input.bytes.as_deref().unwrap_or_default(), stdout().is_terminal()))?;
        }
        screened.push(file);
    }
    let screening = Screening { schema: Screening::SCHEMA.into(), files: screened };
    if args.json {
        output::json(&screening)?;
    } else if args.sarif {
        output::json(&sarif::log(&screening))?;
    } else {
        output::line(show::summary(&screening))?;
    }
    Ok(ExitCode::from(exit_code(&screening, args.strict)))
}

/// 3 if a file could not be read, 1 if one is refused, else 0.
fn exit_code(screening: &Screening, strict: bool) -> u8 {
    let suspicious = |file: &ScreenedFile| file.findings.iter().any(|finding| finding.tier == Tier::Evidence);
    let fails = |file: &ScreenedFile| !file.clean || (strict && suspicious(file));
    match &screening.files {
        files if files.iter().any(|file| file.error.is_some()) => 3,
        files if files.iter().any(fails) => 1,
        _ => 0,
    }
}

/// The files to screen, folders opened.
fn files(paths: &[Utf8PathBuf]) -> anyhow::Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for file in candidates(path)? {
                let file = Utf8PathBuf::from_path_buf(file);
                files.push(file.map_err(|file| usage(format!("{} is not named in UTF-8", file.display())))?);
            }
        } else if path == "-" {
            files.push(path.clone());
        } else {
            let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => usage(format!("no file or folder {path}")),
                _ => usage(format!("failed to read {path}: {error}")),
            })?;
            if !metadata.is_file() {
                return Err(usage(format!("{path} is no regular file: give - for standard input")));
            }
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, String> {
    // One byte more than a candidate may have: enough to refuse it, whatever is behind the name.
    let limit = tilewright_screen::MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let outcome = match path.as_str() {
        "-" => stdin().lock().take(limit).read_to_end(&mut bytes),
        _ => std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    outcome.map(|_| bytes).map_err(|error| format!("failed to read {path}: {error}"))
}

fn screen(input: &Input, hardware: Option<Hardware>) -> ScreenedFile {
    let mut file = ScreenedFile {
        candidate: CandidateId { path: input.path.to_string(), digest: String::new() },
        clean: false,
        kernels: Vec::new(),
        findings: Vec::new(),
        error: None,
    };
    match &input.bytes {
        Err(error) => file.error = Some(error.clone()),
        Ok(bytes) => {
            file.candidate.digest = tilewright_verify::digest(bytes);
            match tilewright_screen::cut(bytes) {
                Ok(cut) => {
                    file.kernels = cut.kernels.into_iter().map(|kernel| kernel.name).collect();
                    file.findings = cut.findings;
                    // Of the open calls, these are refused whatever a trace says.
                    file.findings.extend(cut.calls.iter().filter(|call| call.certain).map(OpenCall::unproven));
                    if hardware == Some(Hardware::Ascend) {
                        // What can be cut can be looked at again.
                        file.findings.extend(tilewright_screen::ascend(bytes).unwrap_or_default());
                    }
                    file.findings.sort_by_key(|finding| (finding.line, finding.column));
                }
                Err(error) => match tilewright_screen::unscreened(&error) {
                    Some(finding) => file.findings.push(finding),
                    None => file.error = Some(error.to_string()),
                },
            }
        }
    }
    file.clean = file.error.is_none() && file.findings.iter().all(|finding| finding.tier != Tier::Proof);
    file
}
