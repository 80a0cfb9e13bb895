//! Verdicts on every sample of a suite, kept as they come.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use tilewright_contract::{Certificate, Verdict, VerdictKind};
use tilewright_verify::{Group, Log, Verifier, batch, digest};

use crate::author::write_whole;
use crate::error::BenchError;
use crate::log::{FILE, Key, Known, Line, Listed, ListedSample, Manifest, file_of, key, read};
use crate::samples::{Samples, file_name};
use crate::setting::{Setting, list};
use crate::suite::{Code, Suite, flat};

/// A run's folder, open for writing: `run.jsonl`, and the texts that lie nowhere else as files.
pub struct RunFolder {
    path: PathBuf,
    log: Log,
    known: Known,
    verdicts: HashSet<Key>,
    /// What other runs have found out: written once it is settled under which circumstances.
    joined: Vec<Line>,
}

/// What happens during a run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// So many problems to be looked at, so many texts to be verified; the others have a verdict.
    Start {
        controls: usize,
        verdicts: usize,
        known: usize,
    },
    Controls(&'a Certificate),
    Verdict(&'a Verdict),
}

impl RunFolder {
    /// Opens or creates a run's folder, and locks it.
    ///
    /// # Errors
    /// It cannot be made, another run has it open, or there is something else in it.
    pub fn open(path: &Path) -> Result<Self, BenchError> {
        std::fs::create_dir_all(path).map_err(BenchError::io("make", path))?;
        let file = path.join(FILE);
        let (log, lines) = Log::open(&file).map_err(BenchError::log)?;
        let (mut known, mut verdicts) = (Known::default(), HashSet::new());
        for line in lines {
            let other = |what: String| {
                BenchError::usage(format!(
                    "{} holds something else than a run ({what}): give another folder",
                    file.display()
                ))
            };
            let line: Line = serde_json::from_value(line).map_err(|why| other(why.to_string()))?;
            if let Some(schema) = line.foreign() {
                return Err(other(format!("{schema}, of another version")));
            }
            // Faults of the machine are tried again.
            let verdict = known.take(line).filter(|verdict| verdict.verdict != VerdictKind::Infrastructure);
            verdicts.extend(verdict.as_ref().map(key));
        }
        Ok(Self { path: path.to_owned(), log, known, verdicts, joined: Vec::new() })
    }

    /// The seed of the run so far.
    pub fn seed(&self) -> Option<u64> {
        self.known.manifests.last().map(|manifest| manifest.setting.seed)
    }

    /// Begins a run of which `each` samples of every problem are yet to be written: whatever stops it, it goes on under the same circumstances, with
    /// the same author and the same problems.
    ///
    /// # Errors
    /// The folder is of a run under another setting, of another author's samples or of other texts of the problems.
    pub fn begin(&mut self, setting: &Setting, suite: &Suite, author: &str, each: u32) -> Result<(), BenchError> {
        let mut problems = listed(suite);
        for problem in &mut problems {
            problem.samples = (0..each).map(not_there).collect();
        }
        let manifest = Manifest {
            schema: Manifest::SCHEMA.into(),
            setting: setting.clone(),
            suite: suite.name.clone(),
            samples: author.into(),
            suite_problems: Some(suite.whole),
            problems,
        };
        if let Some(other) = self.known.manifests.iter().find(|earlier| earlier.samples != author) {
            let (file, who) = (self.path.join(FILE), &other.samples);
            let message = format!("{} is about samples of {who}, not of {author}: give another folder", file.display());
            return Err(BenchError::usage(message));
        }
        if self.known.manifests.is_empty() { self.settle(manifest) } else { self.fits(&manifest) }
    }

    /// Takes over what another run has found out under the same circumstances. Gives the number of verdicts.
    ///
    /// # Errors
    /// It was another setting, or it is no run.
    pub fn join(&mut self, other: &Path, setting: &Setting) -> Result<usize, BenchError> {
        let (mut known, mut new) = (Known::default(), Vec::new());
        read(other, |line| {
            if let Line::Verdict(verdict) = &line
                && verdict.verdict != VerdictKind::Infrastructure
                && !self.verdicts.contains(&key(verdict))
            {
                new.push(line);
                return;
            }
            known.take(line);
        })?;
        for manifest in &known.manifests {
            check(&file_of(other), setting, &manifest.setting)?;
        }
        let before = self.joined.len();
        for line in new {
            if let Line::Verdict(verdict) = &line
                && self.verdicts.insert(key(verdict))
            {
                self.joined.push(line);
            }
        }
        let joined = self.joined.len() - before;
        for (digest, certificate) in known.certificates {
            if !self.known.certificates.contains_key(&digest) {
                self.joined.push(Line::Controls(Box::new(certificate.clone())));
                self.known.certificates.insert(digest, certificate);
            }
        }
        Ok(joined)
    }

    fn append(&mut self, line: &Line) -> Result<(), BenchError> {
        let file = self.path.join(FILE);
        let text = serde_json::to_string(line).map_err(|why| BenchError::Io("write a line".into(), why.into()))?;
        self.log.append(&text).map_err(BenchError::io("write", &file))
    }

    /// Verifies every sample that has no verdict yet, `jobs` at a time, and looks at the problems first if asked.
    ///
    /// # Errors
    /// A file cannot be read or written, or the folder is of a run under another setting.
    pub fn run(
        &mut self,
        verifier: &Verifier,
        manifest: Manifest,
        work: &Work,
        jobs: usize,
        controls: bool,
        mut on_event: impl FnMut(Event<'_>),
    ) -> Result<(), BenchError> {
        self.settle(manifest)?;
        for line in std::mem::take(&mut self.joined) {
            self.append(&line)?;
        }
        let problems = if controls { self.unseen(work) } else { Vec::new() };
        let groups = self.open_groups(work);
        let todo = groups.iter().map(|group| group.candidates.len()).sum();
        let known = work.groups.iter().map(|(_, of)| of.len()).sum::<usize>() - todo;
        on_event(Event::Start { controls: problems.len(), verdicts: todo, known });
        look(verifier, &problems, jobs, |certificate| {
            on_event(Event::Controls(&certificate));
            self.append(&Line::Controls(Box::new(certificate)))
        })?;
        batch(verifier, &groups, jobs, |_, _, verdict| {
            on_event(Event::Verdict(&verdict));
            self.append(&Line::Verdict(Box::new(verdict)))
        })
    }

    /// Holds the run to the circumstances of its beginning, and notes what is new.
    fn settle(&mut self, manifest: Manifest) -> Result<(), BenchError> {
        self.fits(&manifest)?;
        if self.known.manifests.last() == Some(&manifest) {
            return Ok(());
        }
        let line = Line::Run(Box::new(manifest.clone()));
        self.append(&line)?;
        self.known.manifests.push(manifest);
        Ok(())
    }

    /// Refuses another setting, and another text of a problem: its verdicts would stand beside those of the first.
    fn fits(&self, manifest: &Manifest) -> Result<(), BenchError> {
        let file = self.path.join(FILE);
        for earlier in &self.known.manifests {
            check(&file, &manifest.setting, &earlier.setting)?;
            let digests: HashMap<&str, &str> =
                earlier.problems.iter().map(|problem| (problem.id.as_str(), problem.digest.as_str())).collect();
            let other = |problem: &&Listed| digests.get(problem.id.as_str()).is_some_and(|of| *of != problem.digest);
            if let Some(problem) = manifest.problems.iter().find(other) {
                let (file, id) = (file.display(), &problem.id);
                return Err(BenchError::usage(format!(
                    "{file} is about another text of problem {id}: give another folder"
                )));
            }
        }
        Ok(())
    }

    fn unseen(&self, work: &Work) -> Vec<PathBuf> {
        let new = work.groups.iter().filter(|((digest, _), _)| !self.known.certificates.contains_key(digest));
        new.map(|((_, path), _)| path.clone()).collect()
    }

    fn open_groups(&self, work: &Work) -> Vec<Group> {
        let open = |(problem, of): &(Text, Vec<Text>)| {
            let is_new = |digest: &String| !self.verdicts.contains(&(problem.0.clone(), digest.clone()));
            let candidates: Vec<_> =
                of.iter().filter(|(digest, _)| is_new(digest)).map(|(_, path)| path.clone()).collect();
            (!candidates.is_empty()).then(|| Group { problem: problem.1.clone(), candidates })
        };
        work.groups.iter().filter_map(open).collect()
    }
}

/// Refuses what would mix figures that are not comparable.
fn check(file: &Path, here: &Setting, there: &Setting) -> Result<(), BenchError> {
    let differences = there.differences(here);
    if differences.is_empty() {
        return Ok(());
    }
    let message = format!("{} is of another run; there and here: {}", file.display(), list(&differences));
    Err(BenchError::usage(message))
}

/// Certificates of problems, as they come. One that cannot be made is not kept: the next run tries again.
fn look(
    verifier: &Verifier,
    problems: &[PathBuf],
    jobs: usize,
    mut on_certificate: impl FnMut(Certificate) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let next = AtomicUsize::new(0);
    let (sender, certificates) = channel();
    std::thread::scope(|threads| {
        for _ in 0..jobs.max(1).min(problems.len()) {
            let (sender, next) = (sender.clone(), &next);
            threads.spawn(move || {
                while let Some(problem) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Ok(certificate) = verifier.controls(problem)
                        && sender.send(certificate).is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        certificates.into_iter().try_for_each(&mut on_certificate)
    })
}

/// The digest of a text, and a file with it.
type Text = (String, PathBuf);

/// Files to be verified, each text once: problems with their candidates, by digest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Work {
    groups: Vec<(Text, Vec<Text>)>,
}

/// Lists all samples of a run, and the files to be verified for them. Texts that lie in no file of their own are
/// written into the run's folder.
///
/// # Errors
/// A file cannot be read or written.
pub fn plan(
    run: &Path,
    setting: Setting,
    suite: &Suite,
    samples: &Samples,
    from: &str,
) -> Result<(Manifest, Work), BenchError> {
    let mut problems = listed(suite);
    let (mut work, mut places, mut seen) = (Work::default(), HashMap::new(), HashSet::new());
    for sample in &samples.found {
        let item = &suite.items[sample.item];
        let digest = digest(&sample.code.read()?);
        problems[sample.item].samples.push(ListedSample { index: sample.index, digest: digest.clone() });
        if !seen.insert((item.digest.clone(), digest.clone())) {
            continue;
        }
        let place = match places.get(&item.digest) {
            Some(&place) => place,
            None => {
                let name = format!("{}.py", flat(&item.id));
                let path = as_file(&item.code, &run.join("problems"), &name)?;
                work.groups.push(((item.digest.clone(), path), Vec::new()));
                places.insert(item.digest.clone(), work.groups.len() - 1);
                work.groups.len() - 1
            }
        };
        let path = as_file(&sample.code, &run.join("samples"), &file_name(suite, sample.item, sample.index))?;
        work.groups[place].1.push((digest, path));
    }
    for &(item, index) in &samples.lacking {
        problems[item].samples.push(not_there(index));
    }
    let schema = Manifest::SCHEMA.into();
    let (suite_problems, suite) = (Some(suite.whole), suite.name.clone());
    Ok((Manifest { schema, setting, suite, samples: from.into(), suite_problems, problems }, work))
}

/// A sample that is asked for: until there is a text it has no verdict.
fn not_there(index: u32) -> ListedSample {
    ListedSample { index, digest: String::new() }
}

/// All problems of a suite, without samples.
fn listed(suite: &Suite) -> Vec<Listed> {
    let of = suite.items.iter().map(|item| Listed {
        id: item.id.clone(),
        level: item.level,
        number: item.number,
        digest: item.digest.clone(),
        samples: Vec::new(),
    });
    of.collect()
}

fn as_file(code: &Code, folder: &Path, name: &str) -> Result<PathBuf, BenchError> {
    let text = match code {
        Code::File(path) => return Ok(path.clone()),
        Code::Text(text) => text,
    };
    std::fs::create_dir_all(folder).map_err(BenchError::io("make", folder))?;
    let path = folder.join(name);
    write_whole(&path, text)?;
    Ok(path)
}
