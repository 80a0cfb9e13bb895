//! Where the buffers of a plan lie in a recording: equal up to the names of places.

use std::ops::Range;

use crate::expected::{Expected, ExpectedStep, Param, Role};

/// The address of each buffer, as far as it is known.
pub(crate) struct Places {
    buffers: Vec<Place>,
}

struct Place {
    base: Option<u64>,
    nbytes: u64,
    /// Steps during which its contents matter.
    life: Range<usize>,
}

impl Places {
    /// `known` are the addresses that are known beforehand.
    pub(crate) fn new(plan: &Expected, known: Vec<Option<u64>>) -> Self {
        let last = plan.steps.len() + 1;
        let mut buffers: Vec<Place> = plan
            .buffers
            .iter()
            .zip(known)
            .map(|(buffer, base)| Place { base, nbytes: buffer.nbytes, life: last..0 })
            .collect();
        let mut used = |buffer: usize, step: usize| {
            let life = &mut buffers[buffer].life;
            *life = life.start.min(step)..life.end.max(step + 1);
        };
        for (number, step) in plan.steps.iter().enumerate() {
            let ExpectedStep::Launch(launch) = step else { continue };
            for param in &launch.params {
                match param {
                    Param::Pointer { buffer, .. } => used(*buffer, number),
                    Param::TensorMap(map) => used(map.buffer, number),
                    Param::Bytes(_) | Param::Drawn { .. } | Param::Scratch { .. } => {}
                }
            }
        }
        for &buffer in &plan.outputs {
            used(buffer, plan.steps.len());
        }
        for (place, buffer) in buffers.iter_mut().zip(&plan.buffers) {
            // Inputs and weights are there all the time.
            if buffer.role != Role::Own {
                place.life = 0..last;
            }
        }
        Self { buffers }
    }

    /// The buffer's byte `offset` is at `address`.
    pub(crate) fn bind_pointer(&mut self, buffer: usize, address: u64, offset: u64) -> Result<(), String> {
        // Nothing is in it: torch gives such a tensor no address.
        if self.buffers[buffer].nbytes == 0 {
            return Ok(());
        }
        let base = address.checked_sub(offset).ok_or("points below the memory that the plan has there")?;
        self.bind(buffer, base)
    }

    /// The buffer starts at `base`: the same place as ever, and one where no other is that matters at the same time.
    pub(crate) fn bind(&mut self, buffer: usize, base: u64) -> Result<(), String> {
        let place = &self.buffers[buffer];
        match place.base {
            Some(known) if known == base => return Ok(()),
            Some(_) => return Err("points to other memory than in the plan".into()),
            None => {}
        }
        let end = base.saturating_add(place.nbytes);
        let meets = |other: &Place| {
            let Some(start) = other.base else { return false };
            let both = start < end && base < start.saturating_add(other.nbytes);
            both && other.life.start < place.life.end && place.life.start < other.life.end
        };
        if self.buffers.iter().any(meets) {
            return Err("points to memory that the plan has for something else".into());
        }
        self.buffers[buffer].base = Some(base);
        Ok(())
    }
}
