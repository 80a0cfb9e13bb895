//! KernelBench's result files, both ways, and tables for leaderboards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Map, Value, json};
use tilewright_contract::{Fault, VerdictKind};
use tilewright_verify::Log;

use crate::error::BenchError;
use crate::log::{FILE, Imported, Line, Listed, ListedSample, Manifest, Mean};
use crate::outcome::{Outcome, Run};
use crate::report::{Group, Report, Share, Speed};
use crate::setting::Setting;
use crate::suite::Suite;
use crate::table;

/// One level's `eval_results.json`.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    pub results: &'a Path,
    /// The file does not say.
    pub level: u32,
    /// A file of `results/timing/HARDWARE`, for speedups.
    pub baseline: Option<&'a Path>,
    /// What that baseline is called.
    pub baseline_name: &'a str,
    /// All problems of the level, so that those without a result count too.
    pub suite: Option<&'a Suite>,
}

/// Makes a run of what KernelBench found. Its file cannot tell a crashed machine from a wrong candidate: what it calls
/// a CUDA error, a GPU error or another error is not decided.
///
/// # Errors
/// A file cannot be read or is none of KernelBench's, the baseline lacks a problem, or the folder holds a run already.
pub fn import(from: &Import<'_>, run: &Path) -> Result<usize, BenchError> {
    let results = object(from.results)?;
    let baselines = from.baseline.map(|path| Baseline::read(path, from.level)).transpose()?;
    let (mut listed, mut lines) = (BTreeMap::new(), Vec::new());
    for item in from.suite.iter().flat_map(|suite| &suite.items).filter(|item| item.level == Some(from.level)) {
        if let Some(number) = item.number {
            listed.insert(number, (item.id.clone(), item.digest.clone(), Vec::new()));
        }
    }
    for (number, entries) in &results {
        let wrong = |what: &str| BenchError::usage(format!("{}, problem {number}: {what}", from.results.display()));
        let number: u32 = number.parse().map_err(|_| wrong("its name is no number"))?;
        let name = || (format!("level{}/{number}", from.level), String::new(), Vec::new());
        let (id, _, samples) = listed.entry(number).or_insert_with(name);
        // Older files hold one result where newer ones hold a list.
        let entries = entries.as_array().cloned().unwrap_or_else(|| vec![entries.clone()]);
        for (at, entry) in entries.iter().enumerate() {
            let baseline = match &baselines {
                Some(baselines) => Some(baselines.of(number)?),
                None => None,
            };
            let imported = result(id, at, entry, baseline).map_err(|what| wrong(&what))?;
            samples.push(ListedSample { index: imported.index, digest: String::new() });
            lines.push(imported);
        }
        samples.sort_by_key(|sample| sample.index);
        if let Some(pair) = samples.windows(2).find(|pair| pair[0].index == pair[1].index) {
            return Err(wrong(&format!("sample {} is there twice", pair[0].index)));
        }
    }
    if lines.is_empty() {
        return Err(BenchError::usage(format!("{}: no results in it", from.results.display())));
    }
    let problems = listed.into_iter().map(|(number, (id, digest, samples))| Listed {
        id,
        level: Some(from.level),
        number: Some(number),
        digest,
        samples,
    });
    let manifest = Manifest {
        schema: Manifest::SCHEMA.into(),
        setting: setting(from, &results),
        suite: from.suite.map_or_else(|| "KernelBench".into(), |suite| suite.name.clone()),
        samples: from.results.display().to_string(),
        suite_problems: None,
        problems: problems.collect(),
    };
    write(run, manifest, lines)
}

fn write(run: &Path, manifest: Manifest, results: Vec<Imported>) -> Result<usize, BenchError> {
    std::fs::create_dir_all(run).map_err(BenchError::io("make", run))?;
    let file = run.join(FILE);
    let (mut log, before) = Log::open(&file).map_err(BenchError::log)?;
    if !before.is_empty() {
        return Err(BenchError::usage(format!("{} is there already: give another folder", file.display())));
    }
    let count = results.len();
    let lines = std::iter::once(Line::Run(Box::new(manifest)));
    for line in lines.chain(results.into_iter().map(|result| Line::Imported(Box::new(result)))) {
        let text = serde_json::to_string(&line).map_err(|why| BenchError::Io("write a line".into(), why.into()))?;
        log.append(&text).map_err(BenchError::io("write", &file))?;
    }
    Ok(count)
}

fn object(path: &Path) -> Result<Map<String, Value>, BenchError> {
    let text = std::fs::read(path).map_err(BenchError::io("read", path))?;
    serde_json::from_slice(&table::plain_json(&text))
        .map_err(|why| BenchError::usage(format!("{}: no JSON object: {why}", path.display())))
}

/// Keys of `metadata` behind which either the machine or the candidate may be.
const NOT_SEPARABLE: [&str; 3] = ["cuda_error", "gpu_error", "other_error"];
const ERRORS: [&str; 5] =
    ["compilation_error", "runtime_error", "correctness_issue", "max_difference", "error_message"];

fn result(id: &str, at: usize, entry: &Value, baseline: Option<Mean>) -> Result<Imported, String> {
    let flag = |name: &str| entry[name].as_bool().ok_or(format!("no truth value {name:?} in a result"));
    let metadata = &entry["metadata"];
    let text =
        |name: &&str| metadata.get(*name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let correct = flag("correctness")?;
    let undecided = NOT_SEPARABLE.iter().find_map(text).filter(|_| !correct);
    let stats = &entry["runtime_stats"];
    // A failed timing is written as -1: it is no time. What is no number at all is no result of KernelBench's.
    let runtime = match &entry["runtime"] {
        Value::Null => None,
        value => Some(value.as_f64().ok_or(format!("its runtime {value} is no number"))?),
    };
    let runtime = runtime.filter(|&ms| ms.is_finite() && ms > 0.0);
    let index = match &entry["sample_id"] {
        Value::Null => at as u32,
        value => {
            let index = value.as_u64().and_then(|index| u32::try_from(index).ok());
            index.ok_or(format!("its sample_id {value} is no number of a sample"))?
        }
    };
    Ok(Imported {
        problem: id.into(),
        index,
        compiled: flag("compiled")?,
        correct,
        undecided,
        error: ERRORS.iter().find_map(text),
        runtime_us: runtime.map(|ms| mean(ms, stats)),
        baseline_us: baseline,
    })
}

/// Milliseconds, with what is known of their spread.
fn mean(ms: f64, stats: &Value) -> Mean {
    Mean {
        mean: ms * 1e3,
        std: stats["std"].as_f64().map(|ms| ms * 1e3),
        trials: stats["num_trials"].as_u64().map(|trials| trials as u32),
    }
}

/// Times of the reference, by number.
struct Baseline<'a> {
    path: &'a Path,
    times: HashMap<u32, Mean>,
}

impl<'a> Baseline<'a> {
    fn read(path: &'a Path, level: u32) -> Result<Self, BenchError> {
        let wrong = |what: String| BenchError::usage(format!("{}: {what}", path.display()));
        let all = object(path)?;
        let of_level = all.get(&format!("level{level}")).and_then(Value::as_object);
        let of_level = of_level.ok_or_else(|| wrong(format!("no level{level} in it")))?;
        let time = |(name, stats): (&String, &Value)| {
            let number = name.split('_').next().and_then(|number| number.parse().ok());
            // A mean that is written as text, or is missing, is no time.
            let ms = stats["mean"].as_f64().filter(|&ms| ms.is_finite() && ms > 0.0);
            let (Some(number), Some(ms)) = (number, ms) else {
                return Err(wrong(format!("{name}: no number in its name, or no mean time above 0")));
            };
            Ok((number, mean(ms, stats)))
        };
        Ok(Self { path, times: of_level.iter().map(time).collect::<Result<_, _>>()? })
    }

    /// A problem that is missing here would silently shrink the suite.
    fn of(&self, number: u32) -> Result<Mean, BenchError> {
        let missing = || BenchError::usage(format!("{}: no time of problem {number}", self.path.display()));
        self.times.get(&number).copied().ok_or_else(missing)
    }
}

fn setting(from: &Import<'_>, results: &Map<String, Value>) -> Setting {
    let hardware: BTreeSet<&str> = results
        .values()
        .flat_map(|entries| entries.as_array().map_or(std::slice::from_ref(entries), Vec::as_slice))
        .filter_map(|entry| entry["metadata"]["hardware"].as_str())
        .collect();
    let unknown = || "unknown".to_owned();
    let device = hardware.into_iter().collect::<Vec<_>>().join(", ");
    Setting {
        tilewright: "none: KernelBench's own results".into(),
        torch: unknown(),
        triton: unknown(),
        target: "cuda".into(),
        device: if device.is_empty() { unknown() } else { device },
        arch: unknown(),
        trust: "kernelbench".into(),
        profiles: vec!["as-imported/0".into()],
        baselines: if from.baseline.is_some() { vec![from.baseline_name.into()] } else { Vec::new() },
        trials: 0,
        timeout: 0.0,
        seed: 0,
    }
}

/// What KernelBench would write of the problems of one level. Its format has no place for a fault of the machine: such
/// a sample is left out, as one that is to be evaluated again; their number is given too.
///
/// # Errors
/// The run has no problem of this level with a number.
pub fn eval_results(run: &Run, level: u32) -> Result<(Value, usize), BenchError> {
    let (mut results, mut left_out, mut any) = (BTreeMap::new(), 0, false);
    for problem in run.problems.iter().filter(|problem| problem.level == Some(level)) {
        let Some(number) = problem.number else { continue };
        any = true;
        let decided = || problem.outcomes.iter().filter(|outcome| outcome.decided());
        left_out += problem.outcomes.len() - decided().count();
        let entries: Vec<Value> = decided().map(|outcome| entry(run, outcome)).collect();
        if !entries.is_empty() {
            results.insert(number, entries);
        }
    }
    if !any {
        return Err(BenchError::usage(format!("no numbered problem of level {level} in the run")));
    }
    let results: Map<String, Value> = results.into_iter().map(|(number, of)| (number.to_string(), of.into())).collect();
    Ok((results.into(), left_out))
}

fn entry(run: &Run, outcome: &Outcome) -> Value {
    let correct = outcome.kind.is_some_and(|kind| kind.fault() == Fault::None);
    let runtime = outcome.device_us.map_or(-1.0, |us| us / 1e3);
    let mut metadata = json!({
        "hardware": run.setting.device,
        "tilewright_verdict": outcome.kind.map(VerdictKind::name),
    });
    if let Some(reason) = &outcome.reason {
        let name = match outcome.kind {
            Some(VerdictKind::CompileError) => "compilation_error",
            Some(VerdictKind::Incorrect) => "correctness_issue",
            _ => "runtime_error",
        };
        metadata[name] = format!("{}: {}", reason.code, reason.message).into();
    }
    let stats = outcome.device_us.map_or_else(|| json!({}), |us| json!({"mean": us / 1e3}));
    json!({
        "sample_id": outcome.index,
        "compiled": outcome.compiled,
        "correctness": correct,
        "metadata": metadata,
        "runtime": runtime,
        "runtime_stats": stats,
    })
}

/// One line for each report, profile, group and baseline.
///
/// # Errors
/// The table cannot be written.
pub fn leaderboard(reports: &[Report]) -> Result<String, BenchError> {
    let mut ks: Vec<u32> = figures(reports).flat_map(|(_, _, group)| &group.pass_at).map(|of| of.k).collect();
    ks.sort_unstable();
    ks.dedup();
    let mut ps: Vec<f64> =
        figures(reports).flat_map(|(_, _, group)| &group.speed).flat_map(|of| &of.fast).map(|of| of.p).collect();
    ps.sort_by(f64::total_cmp);
    ps.dedup();
    let mut csv = csv::Writer::from_writer(Vec::new());
    let failed = |why: csv::Error| BenchError::Io("write a table".into(), std::io::Error::other(why));
    csv.write_record(header(&ks, &ps)).map_err(failed)?;
    for (report, profile, group) in figures(reports) {
        let speeds: Vec<Option<&Speed>> = match group.speed.len() {
            0 => vec![None],
            _ => group.speed.iter().map(Some).collect(),
        };
        for speed in speeds {
            csv.write_record(record(report, profile, group, speed, &ks, &ps)).map_err(failed)?;
        }
    }
    let bytes = csv.into_inner().map_err(|why| failed(why.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn figures(reports: &[Report]) -> impl Iterator<Item = (&Report, &str, &Group)> {
    reports.iter().flat_map(|report| {
        let standards = report.standards.iter();
        standards.flat_map(move |of| of.groups.iter().map(move |group| (report, of.profile.as_str(), group)))
    })
}

fn header(ks: &[u32], ps: &[f64]) -> Vec<String> {
    let plain = "samples_from,suite,device,profile,group,problems,samples,baseline".split(',').map(str::to_owned);
    let shares = ["valid", "compiled", "correct"].map(str::to_owned).into_iter();
    let shares = shares.chain(ks.iter().map(|k| format!("pass@{k}"))).chain(ps.iter().map(|p| format!("fast_{p}")));
    let limits = |name: String| [name.clone(), format!("{name}_low"), format!("{name}_high")];
    let mean = "geometric_mean_speedup,geometric_mean_speedup_low,geometric_mean_speedup_high,problems_timed";
    plain.chain(shares.flat_map(limits)).chain(mean.split(',').map(str::to_owned)).collect()
}

fn record(report: &Report, profile: &str, group: &Group, speed: Option<&Speed>, ks: &[u32], ps: &[f64]) -> Vec<String> {
    let limits = |share: Option<&Share>| {
        let cell = |of: fn(&Share) -> f64| share.map_or_else(String::new, |share| format!("{:.6}", of(share)));
        [cell(|share| share.value), cell(|share| share.low), cell(|share| share.high)]
    };
    let mut record = vec![
        report.samples_from.clone(),
        report.suite.clone(),
        report.setting.device.clone(),
        profile.into(),
        group.name.clone(),
        group.problems.to_string(),
        group.samples.to_string(),
        speed.map_or_else(String::new, |speed| speed.baseline.clone()),
    ];
    for share in [&group.valid, &group.compiled, &group.correct] {
        record.extend(limits(share.as_ref()));
    }
    for k in ks {
        record.extend(limits(group.pass_at.iter().find(|of| of.k == *k).map(|of| &of.share)));
    }
    for p in ps {
        let fast = speed.and_then(|speed| speed.fast.iter().find(|of| of.p == *p));
        record.extend(limits(fast.map(|of| &of.share)));
    }
    let mean = speed.and_then(|speed| speed.mean);
    let figures = mean.map_or([None; 3], |mean| [Some(mean.geometric), mean.low, mean.high]);
    record.extend(figures.map(|figure| figure.map_or_else(String::new, |figure| format!("{figure:.6}"))));
    record.push(mean.map_or_else(String::new, |mean| mean.problems.to_string()));
    record
}
