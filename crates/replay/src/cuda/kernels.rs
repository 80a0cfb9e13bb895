//! Loaded kernels with their scratch memory.

use std::collections::HashMap;
use std::rc::Rc;

use super::arena::Places;
use super::driver::{Context, Function, Memory, Shape, tensor_map};
use crate::program::{Loadable, Op, Program, Slot};
use crate::wire::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// Modules that stay loaded. Loading one takes longer than most launches of it.
const MODULES: usize = 512;

/// Modules by the digest of their image, entry and shared memory.
#[derive(Default)]
pub(super) struct Modules(HashMap<[u8; 32], Rc<Function>>);

impl Modules {
    fn load(&mut self, image: &[u8], spec: &Loadable) -> Result<Rc<Function>> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(image).update(spec.entry.as_bytes()).update(&spec.shared.to_le_bytes());
        let digest = *hasher.finalize().as_bytes();
        if let Some(function) = self.0.get(&digest) {
            return Ok(function.clone());
        }
        if self.0.len() >= MODULES {
            self.0.clear();
        }
        let function = Rc::new(Function::load(image, &spec.entry, spec.shared, spec.options.num_ctas)?);
        self.0.insert(digest, function.clone());
        Ok(function)
    }
}

/// A kernel of a program, ready to be launched.
pub(super) struct Kernel {
    spec: Loadable,
    function: Rc<Function>,
    global: Option<Memory>,
    profile: Option<Memory>,
}

impl Kernel {
    /// All kernels of a program, whose images are among `blobs`.
    pub(super) fn load_all(
        context: &Context,
        modules: &mut Modules,
        program: &Program,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<Self>> {
        let load = |(at, spec): (usize, &Loadable)| {
            let function = modules.load(&blobs[spec.blob], spec)?;
            Self::new(context, at, spec, function, &program.ops)
        };
        program.kernels.iter().enumerate().map(load).collect()
    }

    fn new(context: &Context, at: usize, spec: &Loadable, function: Rc<Function>, ops: &[Op]) -> Result<Self> {
        let programs = ops.iter().filter_map(|op| match op {
            Op::Launch { kernel, grid, .. } if *kernel == at => {
                Some(grid.iter().map(|&extent| u64::from(extent)).product::<u64>())
            }
            _ => None,
        });
        let programs = programs.max().unwrap_or(0) * u64::from(spec.options.num_ctas.max(1));
        let scratch = |size: u64| match size.saturating_mul(programs) {
            0 => Ok(None),
            bytes => context.alloc(bytes).map(Some),
        };
        let (global, profile) = (scratch(spec.global_scratch.0)?, scratch(spec.profile_scratch.0)?);
        Ok(Self { spec: spec.clone(), function, global, profile })
    }

    /// Puts a launch into the context's stream.
    pub(super) fn launch(&self, context: &Context, grid: [u32; 3], params: &[Slot], arena: &impl Places) -> Result<()> {
        let values = params
            .iter()
            .map(|slot| match slot {
                Slot::Pointer { buffer, offset } => Ok(arena.address(*buffer, *offset).to_le_bytes().to_vec()),
                Slot::Value(bytes) => Ok(bytes.clone()),
                Slot::TensorMap(map) => tensor_map(arena.address(map.buffer, map.view.offset), map),
            })
            .collect::<Result<_>>()?;
        self.launch_values(context, grid, values)
    }

    /// The same with the bytes of each parameter.
    pub(super) fn launch_values(&self, context: &Context, grid: [u32; 3], mut values: Vec<Vec<u8>>) -> Result<()> {
        if grid.contains(&0) {
            return Ok(());
        }
        let address = |memory: &Option<Memory>| memory.as_ref().map_or(0, |memory| memory.address);
        // Triton's kernels end with two scratch pointers.
        values.push(address(&self.global).to_le_bytes().to_vec());
        values.push(address(&self.profile).to_le_bytes().to_vec());
        let ctas = self.spec.options.num_ctas.max(1);
        let shape = Shape {
            grid: [grid[0].saturating_mul(ctas), grid[1], grid[2]],
            threads: self.spec.threads,
            shared: self.spec.shared,
            ctas,
            cooperative: self.spec.options.launch_cooperative_grid,
            dependent: self.spec.options.launch_pdl,
        };
        self.function.launch(context, &shape, &values)
    }
}
