//! Samples that an author writes while the benchmark runs.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_author::{Author, AuthorError, Conversation, Goal, Hardware, Model, OFFLINE, Offline, Request, Style};
use tilewright_bench::{Problem, Samples, Suite, Written, write_samples};
use tilewright_stage::Stage;
use tilewright_verify::Options;

use crate::args::bench::BenchRunArgs;
use crate::commands::session;

/// First answers only: a sample is one answer to one question, and knows of no other.
struct Live {
    name: String,
    goal: Goal,
    seed: u64,
    who: Who,
}

enum Who {
    Model(Box<dyn Author>),
    /// One for each problem: it lists its candidates once.
    Offline {
        stage: Box<Stage>,
        each: u32,
        by_problem: Mutex<HashMap<String, Arc<Offline<Stage>>>>,
    },
}

/// Has `each` samples of every problem written into the run's folder; what is there already is not written again.
pub(super) fn samples(
    args: &BenchRunArgs,
    name: &str,
    suite: &Suite,
    options: &Options,
    stage: Stage,
) -> anyhow::Result<Samples> {
    let goal = Goal { hardware: Hardware::Cuda, target: options.target.clone(), device: options.device.to_string() };
    let who = match name {
        OFFLINE => Who::Offline { stage: Box::new(stage), each: args.each, by_problem: Mutex::default() },
        _ => Who::Model(model(name, args)?),
    };
    let live = Live { name: name.into(), goal, seed: options.seed, who };
    let bar = session::progress(suite.items.len() * args.each as usize)?;
    let mut failed = 0;
    let samples = write_samples(
        &live,
        suite,
        args.out.as_std_path(),
        args.each,
        session::jobs(args.jobs),
        |id, index, written| {
            if let Written::Failed(why) = written {
                failed += 1;
                bar.suspend(|| eprintln!("tilewright: no sample {index} of {id}: {why}"));
            }
            bar.set_message(format!("{id} sample {index}"));
            bar.inc(1);
        },
    )
    .map_err(super::bench)?;
    bar.finish_and_clear();
    if failed > 0 {
        eprintln!("tilewright: {failed} samples were not written; the same command asks for them again");
    }
    Ok(samples)
}

fn model(name: &str, args: &BenchRunArgs) -> anyhow::Result<Box<dyn Author>> {
    let chat = args.model.chat(name)?;
    let prompts = args.prompts.as_ref().map(|folder| folder.as_std_path().to_owned());
    Ok(Box::new(Model::new(chat, Conversation { style: Style::Coach, window: 1, prompts })))
}

impl tilewright_bench::Author for Live {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn write(&self, problem: &Problem<'_>, sample: u32) -> Result<String, String> {
        let request = Request {
            problem: problem.path,
            text: problem.text,
            goal: &self.goal,
            sample: sample.into(),
            seed: self.seed.wrapping_add(sample.into()),
            turns: &[],
        };
        let answer = match &self.who {
            Who::Model(model) => model.write(&request, &mut |_| ControlFlow::Continue(())),
            Who::Offline { stage, each, by_problem } => {
                let offline = {
                    let mut by_problem = by_problem.lock().unwrap_or_else(PoisonError::into_inner);
                    let new = || Arc::new(Offline::new(Stage::clone(stage), *each));
                    Arc::clone(by_problem.entry(problem.id.to_owned()).or_insert_with(new))
                };
                offline.write(&request, &mut |_| ControlFlow::Continue(()))
            }
        };
        match answer {
            // What has no code in it is a sample that fails; it says why.
            Ok(answer) => Ok(answer.source.unwrap_or_else(|why| no_candidate(&why.to_string()))),
            Err(AuthorError::Cannot(why) | AuthorError::Problem(why)) => Ok(no_candidate(&why)),
            Err(AuthorError::Exhausted) => Ok(no_candidate("the author has no further candidate")),
            Err(other) => Err(other.to_string()),
        }
    }
}

/// A file that says why it is empty.
fn no_candidate(why: &str) -> String {
    why.lines().fold(String::from("# no candidate:\n"), |text, line| format!("{text}# {line}\n"))
}
