use std::io::Read;
use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Context;
use tilewright_author::{Message, OFFLINE, Piece, Sampling};

use super::usage;
use crate::args::AskArgs;
use crate::output;

/// Characters go out as they are: this is for programs.
pub(crate) fn run(args: &AskArgs) -> anyhow::Result<ExitCode> {
    if args.author == OFFLINE {
        return Err(usage(
            "--author offline: it answers no questions; name a model in tilewright.toml, or replay:PATH",
        ));
    }
    let chat = args.model.chat(&args.author)?;
    let mut question = String::new();
    std::io::stdin().read_to_string(&mut question).map_err(|error| usage(format!("standard input: {error}")))?;
    // What has been printed cannot be taken back: where the question is asked again, the answer is printed whole.
    let (mut printed, mut whole, mut closed) = (String::new(), false, None);
    let reply = chat.say(&[Message::user(question)], Sampling { sample: 0, seed: args.seed }, &mut |piece| {
        match piece {
            Piece::Text(text) if !whole => {
                printed += text;
                closed = output::text(text).err();
            }
            Piece::Again(why) => {
                eprintln!("asking again: {why}");
                whole = !printed.is_empty();
            }
            Piece::Reading(tokens) => eprintln!("reading {tokens} tokens …"),
            _ => {}
        }
        // Nobody reads the rest.
        if closed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Some(error) = closed {
        return Err(error.into());
    }
    let reply = reply.context("no answer")?;
    if let Some(rest) = reply.text.strip_prefix(&printed) {
        output::text(rest)?;
    } else {
        eprintln!("the answer begins anew");
        output::text(format_args!("\n{}", reply.text))?;
    }
    let usage = reply.usage;
    let rate = usage.output_tokens as f64 / usage.seconds.max(1e-9);
    eprintln!("\n{} + {} tokens, {rate:.1} a second", usage.input_tokens, usage.output_tokens);
    Ok(ExitCode::SUCCESS)
}
