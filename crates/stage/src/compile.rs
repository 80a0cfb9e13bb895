//! Kernel-only module -> TTIR -> machine code, each step cached under everything that it depends on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::json;
use tilewright_contract::{CompiledKernel, KernelSpec, LaunchOptions, Resources, Target};

use crate::cache::Key;
use crate::jobs::open_left;
use crate::locations::strip_locations;
use crate::runner::{Answer, crash_is_compile_error};
use crate::{Stage, StageError};

/// Part of every key: raised when the Python side comes to compile the same input into something else.
const REVISION: &str = "1";

/// A kernel as Triton IR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ttir {
    /// The text, with locations in the candidate's lines.
    pub text: String,
    /// Name of the entry point.
    pub entry: String,
    /// Whether the cache had it.
    pub cached: bool,
}

/// A kernel as machine code. The bytes lie in the cache under their digests.
#[derive(Debug, Clone, PartialEq)]
pub struct Binary {
    /// Digest of the cubin or hsaco.
    pub binary: String,
    /// Digest of the PTX or AMD assembly text.
    pub asm: String,
    pub threads: u32,
    pub resources: Resources,
    /// Bytes of global scratch memory per program, and their alignment.
    pub global_scratch: (u64, u64),
    /// Bytes of profile scratch memory per program, and their alignment.
    pub profile_scratch: (u64, u64),
    /// Triton's `tensordesc_meta`, one per descriptor argument.
    pub tensordesc_meta: Vec<serde_json::Value>,
    /// Whether the cache had it.
    pub cached: bool,
}

/// A kernel after both steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    pub kernel: CompiledKernel,
    /// Digest of the PTX or AMD assembly text.
    pub asm: String,
    /// Whether the cache had both steps.
    pub cached: bool,
}

#[derive(Serialize, Deserialize)]
struct TtirEntry {
    /// Digest of the text.
    text: String,
    entry: String,
}

#[derive(Deserialize)]
struct TtirAnswer {
    ttir: String,
    entry: String,
}

/// What the compiler says of a binary, and what the cache keeps beside the bytes.
#[derive(Serialize, Deserialize)]
struct Facts {
    threads: u32,
    resources: Resources,
    global_scratch: (u64, u64),
    profile_scratch: (u64, u64),
    #[serde(default)]
    tensordesc_meta: Vec<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct BinaryEntry {
    binary: String,
    asm: String,
    facts: Facts,
}

impl Stage {
    /// One specialisation of a kernel-only module as Triton IR. A crash of the compiler is a `compile_error` too.
    pub fn ttir(&self, module: &str, spec: &KernelSpec, target: &Target) -> Result<Ttir, StageError> {
        let key = self.key("tilewright ttir", &[module, &document(spec), &document(target)]);
        if let Some(found) = self.cache.entry::<TtirEntry>(key)
            && let Some(text) = self.cache.get(&found.text).and_then(|bytes| String::from_utf8(bytes).ok())
        {
            return Ok(Ttir { text, entry: found.entry, cached: true });
        }
        let job =
            self.job("ttir", &self.options.limits.ttir, |_| json!({"module": module, "spec": spec, "target": target}))?;
        let TtirAnswer { ttir: text, entry } =
            self.answer::<TtirAnswer>("ttir", job).map_err(crash_is_compile_error)?.value;
        keep(
            self.cache
                .put(text.as_bytes())
                .and_then(|digest| self.cache.set_entry(key, &TtirEntry { text: digest, entry: entry.clone() })),
        );
        Ok(Ttir { text, entry, cached: false })
    }

    /// Triton IR as machine code. Locations in the text do not matter, except for the line of an error.
    pub fn binary(&self, ttir: &str, options: &LaunchOptions, target: &Target) -> Result<Binary, StageError> {
        let stripped = strip_locations(ttir);
        let key = self.key("tilewright binary", &[&stripped.text, &document(options), &document(target)]);
        if let Some(found) = self.cache.entry::<BinaryEntry>(key)
            && [&found.binary, &found.asm].into_iter().all(|digest| self.cache.get(digest).is_some())
        {
            return Ok(found.into_binary(true));
        }
        let job = self.job(
            "binary",
            &self.options.limits.binary,
            |scratch| json!({"ttir": stripped.text, "spec_options": options, "target": target, "out": scratch}),
        )?;
        let answer: Answer<Facts> =
            self.answer("binary", job).map_err(crash_is_compile_error).map_err(|error| match error {
                StageError::Candidate(mut failure) => {
                    failure.line = failure.line.and_then(|line| stripped.source_line(line));
                    StageError::Candidate(failure)
                }
                other => other,
            })?;
        let (binary, asm) = match target.backend.as_str() {
            "hip" => ("kernel.hsaco", "kernel.amdgcn"),
            _ => ("kernel.cubin", "kernel.ptx"),
        };
        let entry =
            BinaryEntry { binary: self.take(&answer, binary)?, asm: self.take(&answer, asm)?, facts: answer.value };
        keep(self.cache.set_entry(key, &entry));
        Ok(entry.into_binary(false))
    }

    /// Both steps for one kernel.
    pub fn compile(&self, module: &str, spec: &KernelSpec, target: &Target) -> Result<Compiled, StageError> {
        let ttir = self.ttir(module, spec, target)?;
        let binary = self.binary(&ttir.text, &spec.options, target)?;
        Ok(Compiled {
            kernel: CompiledKernel {
                ttir: ttir.text,
                entry: ttir.entry,
                binary: Some(binary.binary),
                threads: binary.threads,
                resources: binary.resources,
                global_scratch: binary.global_scratch,
                profile_scratch: binary.profile_scratch,
                tensordesc_meta: binary.tensordesc_meta,
            },
            asm: binary.asm,
            cached: ttir.cached && binary.cached,
        })
    }

    /// Both steps for many kernels of one module, `threads` at a time; results in the order of `specs`.
    pub fn compile_all(
        &self,
        module: &str,
        specs: &[KernelSpec],
        target: &Target,
        threads: usize,
    ) -> Vec<Result<Compiled, StageError>> {
        let next = AtomicUsize::new(0);
        let results: Vec<_> = specs.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, specs.len().max(1)) {
                scope.spawn(|| {
                    while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < specs.len()) {
                        let result = self.compile(module, &specs[at], target);
                        *results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                    }
                });
            }
        });
        results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    fn key(&self, purpose: &str, parts: &[&str]) -> Key {
        let (torch, triton) = self.runner.versions();
        Key::new(purpose, &[&[REVISION, &torch, &triton], parts].concat())
    }

    /// Moves a file that the compiler left into the cache; its digest.
    fn take(&self, answer: &Answer<Facts>, name: &str) -> Result<String, StageError> {
        let left = open_left("binary", &answer.scratch, name)?;
        let bytes = left.read_all().map_err(StageError::io("read what the compiler left"))?;
        self.cache.put(&bytes).map_err(StageError::io("write to the cache"))
    }
}

impl BinaryEntry {
    fn into_binary(self, cached: bool) -> Binary {
        let Self { binary, asm, facts } = self;
        let Facts { threads, resources, global_scratch, profile_scratch, tensordesc_meta } = facts;
        Binary { binary, asm, threads, resources, global_scratch, profile_scratch, tensordesc_meta, cached }
    }
}

/// A document as text for a key: maps in it are ordered.
fn document<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A cache that cannot be written costs time, nothing else.
fn keep(result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "failed to write to the cache of compiled kernels");
    }
}
