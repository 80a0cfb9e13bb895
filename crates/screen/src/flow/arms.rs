//! Branches that `forward` takes or not for reasons that a trace may see otherwise: each must have been seen.
//!
//! What a branch does counts where it touches tensors or launches: choosing a block size does not.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::engine::Engine;
use super::value::{MIXED, Origin, PLACES, Set, UnitId, Value};

/// What code does that matters to the result.
#[derive(Debug, Clone, Default)]
pub(super) struct Touch {
    /// It launches, moves or returns tensors itself.
    direct: bool,
    /// Functions of the file that it calls.
    calls: Vec<UnitId>,
}

impl Touch {
    fn join(&mut self, other: &Self) {
        self.direct |= other.direct;
        self.calls.extend(other.calls.iter().filter(|unit| !self.calls.contains(unit)).copied().collect::<Vec<_>>());
    }
}

/// An `if` whose tests are open: one of its arms runs, or none.
#[derive(Debug, Clone, Default)]
pub(super) struct Fork {
    arms: Vec<(TextRange, Touch)>,
    /// The last test, where there is no `else`.
    tail: Option<TextRange>,
}

/// One of `if`, `elif` and `else`.
pub(super) struct Clause<'a> {
    pub(super) test: Option<&'a Expr>,
    pub(super) body: &'a [Stmt],
    /// Whether its own test is open.
    pub(super) open: bool,
    pub(super) touch: Touch,
}

impl Clause<'_> {
    fn start(&self) -> TextSize {
        self.test.map(Ranged::start).or(self.body.first().map(Ranged::start)).unwrap_or_default()
    }

    fn end(&self) -> TextSize {
        self.body.last().map(Ranged::end).unwrap_or_default()
    }

    fn raises(&self) -> bool {
        matches!(self.body.last(), Some(Stmt::Raise(_)))
    }
}

/// Place of a fork's arm, or of the last test, which must be seen to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) place: (TextSize, TextSize),
    pub(super) otherwise: bool,
}

impl<'a> Engine<'_, 'a> {
    /// Notes that code of the arm under way launches, or moves tensors.
    pub(super) fn touch(&mut self) {
        if let Some(touch) = self.touches.last_mut() {
            touch.direct = true;
        }
    }

    /// Notes that code of the arm under way calls a function of the file.
    pub(super) fn touch_by(&mut self, unit: UnitId) {
        if let Some(touch) = self.touches.last_mut()
            && !touch.calls.contains(&unit)
        {
            touch.calls.push(unit);
        }
    }

    /// Runs something and says what it touches, which counts for what is around it too.
    pub(super) fn touching<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> (T, Touch) {
        self.touches.push(Touch::default());
        let result = run(self);
        let touch = self.touches.pop().unwrap_or_default();
        if let Some(around) = self.touches.last_mut() {
            around.join(&touch);
        }
        (result, touch)
    }

    /// An `if` with its further clauses: where a test is open, its own body and all that follows are two arms. Arms that
    /// end in `raise` give no result.
    pub(super) fn chain(&mut self, clauses: &[Clause<'a>]) {
        for (at, clause) in clauses.iter().enumerate().filter(|(_, clause)| clause.open) {
            let mut fork = Fork::default();
            if let Some(first) = clause.body.first()
                && !clause.raises()
            {
                fork.arms.push((TextRange::new(first.start(), clause.end()), clause.touch.clone()));
            }
            match &clauses[at + 1..] {
                [] => fork.tail = clause.test.map(Ranged::range),
                [other] if other.raises() && other.test.is_none() => {}
                [first, ..] => {
                    let last = clauses.last().unwrap_or(first);
                    let mut touch = Touch::default();
                    clauses[at + 1..].iter().for_each(|clause| touch.join(&clause.touch));
                    fork.arms.push((TextRange::new(first.start(), last.end()), touch));
                }
            }
            self.forked(fork);
        }
    }

    /// The arms of `a if test else b`, of which both are needed if they differ in their tensors.
    pub(super) fn choice_arms(&mut self, arms: [(&'a Expr, &Set, Touch); 2]) {
        let [first, second] = &arms;
        let differs = tensors_but(first.1, first.0.range()) != tensors_but(second.1, second.0.range());
        let mut fork = Fork::default();
        for (expr, _, mut touch) in arms {
            touch.direct |= differs;
            fork.arms.push((expr.range(), touch));
        }
        self.forked(fork);
    }

    /// Keeps a fork for the report.
    pub(super) fn forked(&mut self, fork: Fork) {
        if self.reached() != super::value::Guard::Never
            && let Some(report) = &mut self.report
            && !fork.arms.is_empty()
        {
            report.forks.push(fork);
        }
    }

    /// A tensor is given to a variable: that matters if the variable may hold another one too.
    pub(super) fn touch_binding(&mut self, all: &Set, given: &Set) {
        let (all, given) = (tensors(all), tensors(given));
        if !given.is_empty() && all != given && given.iter().any(|origin| *origin < PLACES) {
            self.touch();
        }
    }

    /// A result is returned: that matters if it is or holds a tensor.
    pub(super) fn touch_result(&mut self, set: &Set) {
        let matters = |value: &Value| matches!(value, Value::Tensor(_) | Value::Any);
        let within = |it: &mut Self, value: &Value| match value {
            Value::Object(object) => it.elements(*object).values().iter().any(matters),
            value => matters(value),
        };
        if self.report.is_some() && set.values().iter().any(|value| within(self, value)) {
            self.touch();
        }
    }

    /// The ways of forks that touch tensors; each must have been seen.
    pub(super) fn ways(&self, forks: &[Fork], units: &[(UnitId, Touch)]) -> Vec<Way> {
        let mut touched: Vec<UnitId> = units.iter().filter(|(_, touch)| touch.direct).map(|(unit, _)| *unit).collect();
        let mut before = 0;
        while touched.len() > before {
            before = touched.len();
            for (unit, touch) in units {
                if !touched.contains(unit) && touch.calls.iter().any(|called| touched.contains(called)) {
                    touched.push(*unit);
                }
            }
        }
        let matters = |touch: &Touch| touch.direct || touch.calls.iter().any(|unit| touched.contains(unit));
        let mut ways = Vec::new();
        for fork in forks.iter().filter(|fork| fork.arms.iter().any(|(_, touch)| matters(touch))) {
            let arms = fork.arms.iter().map(|(place, _)| (place, false));
            for (place, otherwise) in arms.chain(fork.tail.iter().map(|place| (place, true))) {
                let way = Way { place: (place.start(), place.end()), otherwise };
                if !ways.contains(&way) {
                    ways.push(way);
                }
            }
        }
        ways
    }
}

/// Where the tensors in a set come from.
fn tensors(set: &Set) -> Vec<Origin> {
    let origin = |value: &Value| match value {
        Value::Tensor(origin) => Some(*origin),
        Value::Any => Some(MIXED),
        _ => None,
    };
    set.values().iter().filter_map(origin).collect()
}

/// Where they come from, but for new memory that is made within a place.
fn tensors_but(set: &Set, place: TextRange) -> Vec<Origin> {
    let here = PLACES + place.start().to_u32()..PLACES + place.end().to_u32();
    let mut found = tensors(set);
    found.retain(|origin| !here.contains(origin));
    found
}
