//! What a launch does wrong, in parts that a person and a program can read.

use tilewright_contract::{Arg, Deed, Hazard, HazardKind, KernelSpec, Param, Party, Plan, Step};
use tilewright_emulate as emulate;
use tilewright_emulate::{Access, DefectKind, Kernel, Limits, Site, Usage};

use crate::cpu::{Session, translate};
use crate::run::{Fault, RunResult, writer};

/// What an execution that goes on after mistakes left behind.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Its `defects` are hazards too, if they matter: the caller knows which memory counts as a result.
    pub result: RunResult,
    /// In the order in which they were met.
    pub hazards: Vec<Hazard>,
    /// Where NaN and infinities were made, if that was asked for. Whether they reach anything is not known.
    pub births: Vec<Hazard>,
}

/// A launch of a plan with its kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// Index among the plan's kernels.
    pub(crate) kernel: usize,
    pub(crate) spec: &'a KernelSpec,
    pub(crate) grid: [u32; 3],
    pub(crate) args: &'a [Arg],
    pub(crate) line: u32,
}

impl<'a> Launch<'a> {
    pub(crate) fn of(plan: &'a Plan, step: &'a Step) -> Option<Self> {
        let Step::Launch { kernel, grid, args, line } = step else { return None };
        Some(Self { kernel: *kernel, spec: &plan.kernels[*kernel], grid: *grid, args, line: *line })
    }

    /// The run-time arguments with their parameters.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (&'a Param, &'a Arg)> + use<'a> {
        self.spec.params.iter().filter(|param| param.ty != "constexpr").zip(self.args)
    }

    /// The parameters through which it gets a buffer.
    fn parameters(&self, buffer: usize) -> Vec<&'a str> {
        let names = self.arguments().filter(|(_, arg)| match arg {
            Arg::Pointer { buffer: given, .. } => *given == buffer,
            Arg::Descriptor { tensor, .. } => tensor.buffer == buffer,
            _ => false,
        });
        names.map(|(param, _)| param.name.as_str()).collect()
    }

    fn hazard(&self, kind: HazardKind, message: String) -> Hazard {
        Hazard { kernel: self.spec.function.clone(), launch: self.line, ..Hazard::new(kind, message) }
    }
}

impl<'a> Session<'a> {
    /// Runs a launch and enters what it does wrong.
    pub(crate) fn survey(
        &mut self,
        launch: &Launch<'a>,
        kernel: &Kernel,
        births: bool,
        survey: &mut Survey,
    ) -> Result<(), Fault> {
        // What the memory knows of earlier launches.
        let (faults, known_births) = (self.memory.faults().count(), self.memory.births().count());
        let limits = Limits { go_on: true, births, ..Limits::default() };
        let outcome = self.launch(launch, kernel, limits);
        let met = self.memory.faults().skip(faults);
        survey.hazards.extend(met.filter_map(|(fault, count)| {
            self.of_fault(fault, launch).map(|hazard| Hazard { count: *count, ..hazard })
        }));
        let born = self.memory.births().skip(known_births);
        survey.births.extend(born.map(|(birth, count)| of_birth(birth, *count, launch)));
        let Err(fault) = outcome else { return Ok(()) };
        let Some(hazard) = self.of_fault(&fault, launch) else { return Err(translate(&fault, launch.line)) };
        survey.hazards.push(hazard);
        self.excuse(launch);
        Ok(())
    }

    /// What a launch that ended early did not write is not the fault of the launches that read it.
    fn excuse(&mut self, launch: &Launch<'_>) {
        for (number, &id) in self.buffers.iter().enumerate() {
            if launch.parameters(number).is_empty() {
                continue;
            }
            let mut start = 0;
            let runs: Vec<_> = self.memory.shadow(id).chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
            for (mark, len) in runs {
                if mark == writer::UNWRITTEN {
                    self.memory.mark(id, start..start + len, writer::LAUNCH);
                }
                start += len;
            }
        }
    }

    /// None for what says nothing about the kernel's accesses.
    fn of_fault(&self, fault: &emulate::Fault, launch: &Launch<'_>) -> Option<Hazard> {
        use emulate::Fault as F;
        let mut fault = fault.clone();
        // Where it happens, the other side, and the memory.
        let (kind, at, other, memory) = match &mut fault {
            F::OutOfBounds { access, allocation, offset, site, .. } => {
                (HazardKind::OutOfBounds, party(*access, site), None, Some((allocation, *offset)))
            }
            F::BadAddress { access, site, .. } => (HazardKind::OutOfBounds, party(*access, site), None, None),
            F::Position { site, .. } => (HazardKind::OutOfBounds, compute(site), None, None),
            F::Misaligned { access, allocation, offset, site, .. } => {
                (HazardKind::Misaligned, party(*access, site), None, Some((allocation, *offset)))
            }
            F::Race { allocation, offset, first, second } => {
                let first = party(first.0, &first.1);
                (HazardKind::Race, party(second.0, &second.1), Some(first), Some((allocation, *offset)))
            }
            F::Lanes { allocation, offset, site } => {
                (HazardKind::StoreConflict, party(Access::Store, site), None, Some((allocation, *offset)))
            }
            F::Promise { site, .. } => (HazardKind::Misaligned, compute(site), None, None),
            F::Assert { site, .. } => (HazardKind::Assertion, compute(site), None, None),
            F::Deadlock { site } => (HazardKind::Deadlock, compute(site), None, None),
            F::Deadline { .. } | F::Arguments { .. } | F::Argument { .. } | F::Unsupported(_) | F::Malformed { .. } => {
                return None;
            }
        };
        let mut memory = memory;
        if let Some((allocation, _)) = &mut memory {
            **allocation = self.named(allocation, launch);
        }
        let (tensor, offset) = memory.map(|(name, offset)| (name.clone(), offset)).unzip();
        Some(Hazard { at: Some(at), other, tensor, offset, ..launch.hazard(kind, fault.to_string()) })
    }

    /// A buffer under its parameter's name too: `x_ptr [input 0]`.
    fn named(&self, label: &str, launch: &Launch<'_>) -> String {
        let buffer = self.buffers.iter().position(|&id| self.memory.label(id) == label);
        let names = buffer.map(|buffer| launch.parameters(buffer)).unwrap_or_default();
        match &names[..] {
            [] => label.to_owned(),
            names if names.contains(&label) => label.to_owned(),
            names => format!("{} [{label}]", names.join(", ")),
        }
    }
}

/// A defect with the launch in which it was born.
pub(crate) fn of_defect(defect: &emulate::Defect, launch: Option<&Launch<'_>>, session: &Session<'_>) -> Hazard {
    let (kind, does) = match defect.kind {
        DefectKind::DivisionByZero => (HazardKind::DivisionByZero, Deed::Compute),
        DefectKind::Overflow => (HazardKind::OffsetOverflow, Deed::Compute),
        DefectKind::LeftOver => (HazardKind::LeftOver, Deed::Load),
        DefectKind::Uninitialised => (HazardKind::Uninitialised, Deed::Load),
    };
    let mut defect = defect.clone();
    let read = !defect.allocation.is_empty();
    if let (true, Some(launch)) = (read, launch) {
        defect.allocation = session.named(&defect.allocation, launch);
    }
    let other = match (defect.used, defect.stored) {
        (Some((usage, site)), _) => Some((if usage == Usage::Address { Deed::Address } else { Deed::Branch }, site)),
        (None, stored) => stored.map(|site| (Deed::Store, site)),
    };
    let hazard = match launch {
        Some(launch) => launch.hazard(kind, defect.to_string()),
        None => Hazard::new(kind, defect.to_string()),
    };
    Hazard {
        at: Some(Party { does, program: defect.site.program, line: defect.site.line }),
        other: other.map(|(does, site)| Party { does, program: site.program, line: site.line }),
        tensor: read.then(|| defect.allocation.clone()),
        offset: read.then_some(defect.offset as i64),
        ..hazard
    }
}

fn of_birth(birth: &emulate::Birth, count: u64, launch: &Launch<'_>) -> Hazard {
    let kind = if birth.infinite { HazardKind::Infinity } else { HazardKind::Nan };
    Hazard { at: Some(compute(&birth.site)), count, ..launch.hazard(kind, birth.to_string()) }
}

fn party(access: Access, site: &Site) -> Party {
    let does = match access {
        Access::Load => Deed::Load,
        Access::Store => Deed::Store,
        Access::Atomic => Deed::Atomic,
    };
    Party { does, program: site.program, line: site.line }
}

fn compute(site: &Site) -> Party {
    Party { does: Deed::Compute, program: site.program, line: site.line }
}
