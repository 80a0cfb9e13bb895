//! From the analysed file to open calls and findings.

use std::collections::BTreeMap;

use ruff_text_size::{Ranged, TextRange, TextSize};
use tilewright_contract::{Finding, OpenCall, Tier, Watched};

use super::engine::{Body, Engine};
use super::value::{COMPUTED, Effect, Guard, MIXED, Origin, STATE, Set, UnitId, Value};
use crate::source::Source;

/// Longest text of a call, in characters.
const MOST_TEXT: usize = 120;
/// Open calls that are listed; the next one is listed as certain, so that a file cannot hide one behind a thousand.
const MOST_CALLS: usize = 1000;

/// What is seen in the last round over code that `forward` reaches.
#[derive(Default)]
pub(super) struct Report {
    /// By place: whether it surely may compute.
    open: BTreeMap<(TextSize, TextSize), bool>,
    /// Computations below a condition that the signature settles.
    fallbacks: BTreeMap<(TextSize, TextSize), ()>,
    /// Launches that are reached on a path that is not settled.
    launches: BTreeMap<(TextSize, TextSize), ()>,
    /// Branches whose tests are open, and what each unit does.
    pub(super) forks: Vec<super::arms::Fork>,
    units: Vec<(UnitId, super::arms::Touch)>,
    /// Allocations that may or may not be what runs: by origin, the place and whether the callee itself is picked.
    allocations: Vec<(Origin, TextRange, bool)>,
    /// The first place that found no room.
    too_many: Option<(TextSize, TextSize)>,
    /// Something was called of which nothing is known.
    unknown: bool,
    /// A computation of torch may run.
    computes: bool,
}

impl Engine<'_, '_> {
    /// Notes what happens at a place. `open`: which thing it happens to is not settled.
    pub(super) fn note(&mut self, place: TextRange, effect: Effect, open: bool) {
        if effect == Effect::Compute {
            self.touch();
        }
        let guard = self.reached();
        let Some(report) = &mut self.report else { return };
        if guard == Guard::Never || effect == Effect::Clear {
            return;
        }
        report.unknown |= effect == Effect::Unknown;
        report.computes |= effect == Effect::Compute;
        let key = (place.start(), place.end());
        if guard == Guard::Open || open {
            if report.open.len() < MOST_CALLS || report.open.contains_key(&key) {
                *report.open.entry(key).or_default() |= effect == Effect::Compute;
            } else {
                report.too_many.get_or_insert(key);
            }
        } else if guard == Guard::Settled && effect == Effect::Compute {
            report.fallbacks.insert(key, ());
        }
    }

    /// Notes a launch: on a path that is not settled, a trace must have made it.
    pub(super) fn launches_at(&mut self, place: TextRange) {
        self.touch();
        let guard = self.reached();
        if let Some(report) = &mut self.report
            && guard == Guard::Open
            && !self.no_room
            && !place.is_empty()
        {
            if report.launches.len() < MOST_CALLS {
                report.launches.insert((place.start(), place.end()), ());
            } else {
                report.too_many.get_or_insert((place.start(), place.end()));
            }
        }
    }

    /// Notes an allocation that is reached on a path that is not settled.
    pub(super) fn allocates(&mut self, origin: Origin, place: TextRange) {
        let guard = self.reached();
        if let Some(report) = &mut self.report
            && guard == Guard::Open
        {
            if report.allocations.len() < MOST_CALLS {
                report.allocations.push((origin, place, self.picked));
            } else {
                report.too_many.get_or_insert((place.start(), place.end()));
            }
        }
    }

    /// Memory that no launch is given, and that `forward` may return all the same.
    fn unlaunched_results(&mut self, report: &mut Report) {
        let Some(returned) = self.returned() else { return };
        let reached = self.written_by_launches();
        for &(origin, place, picked) in &report.allocations {
            if returned.contains(&origin) && !reached.contains(&origin) {
                *report.open.entry((place.start(), place.end())).or_default() |= picked;
            }
        }
    }

    /// Notes that a kernel is launched, or handed to one that is.
    pub(super) fn launches(&mut self, kernel: UnitId, forward: bool) {
        let kernels = if forward { &mut self.launched_kernels } else { &mut self.used_kernels };
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }

    /// The last round: every unit that is reached, once, and what was seen there.
    pub(super) fn round(&mut self) -> Report {
        self.report = Some(Report::default());
        for unit in 0..self.units.len() as UnitId {
            if self.units[unit as usize].guard != Guard::Never {
                let ((), touch) = self.touching(|it| it.evaluate(unit));
                if let Some(report) = &mut self.report {
                    report.units.push((unit, touch));
                }
            }
        }
        self.report.take().unwrap_or_default()
    }

    /// Findings and calls, in source order.
    pub(super) fn finish(&mut self, report: &mut Report, source: &Source) -> (Vec<OpenCall>, Vec<Finding>) {
        self.unlaunched_results(report);
        report.open.extend(report.too_many.map(|key| (key, true)));
        for &key in report.launches.keys() {
            report.open.entry(key).or_default();
        }
        let mut calls: Vec<OpenCall> =
            report.open.iter().map(|(&(start, end), &certain)| open_call(source, start, end, certain)).collect();
        for way in self.ways(&report.forks, &report.units).into_iter().take(MOST_CALLS) {
            let what = if way.otherwise { Watched::Otherwise } else { Watched::Branch };
            calls.push(OpenCall { what, ..open_call(source, way.place.0, way.place.1, false) });
        }
        let mut findings: Vec<Finding> = Vec::new();
        for &(start, end) in report.fallbacks.keys() {
            let text = shorten(source.slice(TextRange::new(start, end)));
            findings.push(finding(
                "other-inputs-fallback",
                Tier::Evidence,
                format!("`{text}` computes with torch for other inputs than these"),
                Some((source, start)),
                "let every input take the path of the kernel, or raise an error",
            ));
        }
        let mut told = (TextSize::new(0), false);
        for (&(start, end), &random) in &self.orders {
            // `iter(names)` within `next(iter(names))`.
            if end <= told.0 && told.1 >= random {
                continue;
            }
            told = (end, random);
            let text = shorten(source.slice(TextRange::new(start, end)));
            findings.push(finding(
                "set-order",
                if random { Tier::Proof } else { Tier::Evidence },
                format!("`{text}` depends on the order of a set or on a hash, which change from process to process"),
                Some((source, start)),
                "use a tuple or a list; use sets only to ask what is in them",
            ));
        }
        if self.has_model() {
            findings.extend(self.launch_findings(report));
            findings.extend(self.unreached_kernels(source));
        }
        (calls, findings)
    }

    fn launch_findings(&mut self, report: &Report) -> Option<Finding> {
        if self.found.jitted.is_empty() {
            return None;
        }
        if self.launched_kernels.is_empty() {
            let tier = if report.unknown || !self.found.strange.is_empty() { Tier::Evidence } else { Tier::Proof };
            return Some(finding(
                "no-launch-reachable",
                tier,
                "nothing that `forward` calls launches a kernel".to_owned(),
                None,
                "launch a kernel of the file from `forward`",
            ));
        }
        let returned = self.returned()?;
        let reached = self.written_by_launches();
        (!returned.iter().any(|origin| reached.contains(origin))).then(|| {
            finding(
                "result-not-from-launch",
                Tier::Evidence,
                "nothing that `forward` returns comes from a buffer that a kernel was given".to_owned(),
                None,
                "return the buffer that the kernel fills",
            )
        })
    }

    /// Where the tensors that `forward` returns come from; `None` if that is not known.
    fn returned(&mut self) -> Option<Vec<Origin>> {
        let result = self.units[self.entry as usize].result;
        let mut todo = vec![self.read(result)];
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        while let Some(set) = todo.pop() {
            for &value in set.values() {
                match value {
                    Value::Tensor(MIXED) => return None,
                    Value::Tensor(origin) => found.push(origin),
                    Value::Object(object) if !seen.contains(&object) => {
                        seen.push(object);
                        let inner: Set = self.elements(object);
                        todo.push(inner);
                    }
                    Value::Object(_) | Value::Plain | Value::Int(_) | Value::Str(_) => {}
                    _ => return None,
                }
            }
        }
        (!found.is_empty() && !self.launched_unknown).then_some(found)
    }

    /// The memory that launches were given, and what is copied from it.
    fn written_by_launches(&self) -> Vec<Origin> {
        let mut reached: Vec<Origin> = self.launched.iter().copied().filter(|&origin| origin != COMPUTED).collect();
        let mut before = 0;
        while reached.len() > before {
            before = reached.len();
            for &(to, from) in &self.copied {
                if reached.contains(&from) && !reached.contains(&to) && to != COMPUTED && to != STATE {
                    reached.push(to);
                }
            }
        }
        reached
    }

    fn unreached_kernels(&mut self, source: &Source) -> Vec<Finding> {
        let used = self.all_used_kernels();
        let mut found = Vec::new();
        for jitted in self.found.jitted.values() {
            if !used.contains(&jitted.def.range()) {
                found.push(finding(
                    "unreached-kernel",
                    Tier::Advice,
                    format!("nothing launches the kernel `{}`", jitted.def.name),
                    Some((source, jitted.def.name.start())),
                    "remove it, or launch it",
                ));
            }
        }
        found
    }

    /// Kernels that are launched or handed over anywhere, and all that these call.
    fn all_used_kernels(&self) -> Vec<TextRange> {
        let mut used: Vec<TextRange> = Vec::new();
        let mut todo: Vec<TextRange> = Vec::new();
        for &kernel in self.launched_kernels.iter().chain(&self.used_kernels) {
            if let Body::Function(def) = self.units[kernel as usize].body {
                todo.push(def.range());
            }
        }
        while let Some(place) = todo.pop() {
            if used.contains(&place) {
                continue;
            }
            used.push(place);
            if let Some(jitted) = self.found.jitted.get(&place) {
                todo.extend(crate::cut::functions_used(jitted.def, self.scopes));
            }
        }
        used
    }
}

fn finding(rule: &str, tier: Tier, message: String, at: Option<(&Source, TextSize)>, help: &str) -> Finding {
    let (line, column) = at.map_or((0, 0), |(source, at)| (source.line(at), source.column(at)));
    Finding { rule: rule.to_owned(), tier, message, line, column, help: Some(help.to_owned()) }
}

pub(super) fn open_call(source: &Source, start: TextSize, end: TextSize, certain: bool) -> OpenCall {
    let (line, end_line) = (source.line(start), source.line(end));
    OpenCall {
        line,
        column: start.to_u32() - source.line_start(line) as u32,
        end_line,
        end_column: end.to_u32() - source.line_start(end_line) as u32,
        text: shorten(source.slice(TextRange::new(start, end))),
        certain,
        what: Watched::Call,
    }
}

/// A text on one line, cut where it is too long.
fn shorten(text: &str) -> String {
    let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST_TEXT {
        return line;
    }
    line.chars().take(MOST_TEXT - 1).chain(['…']).collect()
}
