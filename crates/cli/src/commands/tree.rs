use std::process::ExitCode;

use camino::Utf8Path;
use tilewright_search::{Folder, FolderError, Report, Stop, html, svg};

use super::usage;
use crate::args::TreeArgs;
use crate::{output, render};

pub(crate) fn run(args: &TreeArgs) -> anyhow::Result<ExitCode> {
    let (settings, tree) = Folder::look(args.run.as_std_path()).map_err(|error| match error {
        FolderError::Io { .. } => error.into(),
        other => usage(other.to_string()),
    })?;
    if let Some(path) = &args.svg {
        write(path, svg(&tree))?;
    }
    if let Some(path) = &args.html {
        write(path, html(&settings, &tree)?)?;
    }
    if args.json {
        output::json(&Report::new(&settings, &tree, Stop::Done))?;
    } else {
        if tree.nodes.is_empty() {
            eprintln!("tilewright: the author of {} has given no candidate", args.run);
        }
        output::text(render::tree(&tree))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Utf8Path, text: String) -> anyhow::Result<()> {
    std::fs::write(path, text).map_err(|error| usage(format!("failed to write {path}: {error}")))
}
