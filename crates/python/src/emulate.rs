//! Kernels of the user's own process, run by the emulator on the memory of tensors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_emulate::{self as emulate, AllocId, Init, Kernel, Limits, Memory, shadow};

use crate::addresses::Translation;
use crate::finding::{defect, fault, report};
use crate::recycled;

/// What a fresh tensor's memory is filled with: NaN as float64, float32, float16, bfloat16 and float8_e5m2, and no
/// number that anybody writes as an integer.
const POISON: [u8; 8] = [0xfd, 0x7f, 0xfe, 0xff, 0xfd, 0xff, 0xfe, 0x7f];

/// A kernel that the emulator can run: made from Triton IR text.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Emulated {
    kernel: Arc<Kernel>,
}

/// The memory of a tensor's storage, as the tuple `(label, bytes, written, address, numbers)`.
#[derive(FromPyObject)]
pub(crate) struct Buffer(
    /// How messages name it.
    String,
    PyBuffer<u8>,
    /// One byte for each, 0 where nothing has written it; the storage is all written if this is None.
    Option<PyBuffer<u8>>,
    /// Its address, where numbers may point there.
    Option<u64>,
    /// It holds 64-bit integers, which may be addresses.
    bool,
);

/// How to run a launch.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    /// Look for races and follow what depends on memory that nothing wrote. Bounds are checked in any case.
    sanitise: bool,
    /// Start the last program first.
    reverse: bool,
    /// Note faults and go on, instead of ending at the first.
    go_on: bool,
    /// Programs that run beside each other at most; 0: as many as there are cores.
    threads: u32,
    /// End the launch after so many.
    seconds: Option<f64>,
}

/// A run-time argument, as the tuple `(kind, …)`.
pub(crate) enum Argument {
    Pointer(usize, u64),
    Null,
    Int(i64),
    Float(f64),
    Descriptor { buffer: usize, offset: u64, shape: Vec<i64>, strides: Vec<i64>, pad_nan: bool },
}

impl<'py> FromPyObject<'_, 'py> for Argument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let kind: String = object.get_item(0)?.extract()?;
        Ok(match kind.as_str() {
            "pointer" => Self::Pointer(object.get_item(1)?.extract()?, object.get_item(2)?.extract()?),
            "null" => Self::Null,
            "int" => Self::Int(integer(&object.get_item(1)?)?),
            "float" => Self::Float(object.get_item(1)?.extract()?),
            "descriptor" => Self::Descriptor {
                buffer: object.get_item(1)?.extract()?,
                offset: object.get_item(2)?.extract()?,
                shape: object.get_item(3)?.extract()?,
                strides: object.get_item(4)?.extract()?,
                pad_nan: object.get_item(5)?.extract()?,
            },
            _ => return Err(PyValueError::new_err(format!("unknown kind of argument {kind:?}"))),
        })
    }
}

/// The bits of a signed or an unsigned 64-bit integer.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract::<i64>().or_else(|_| {
        let unsigned: u64 = value.extract().map_err(|_| PyOverflowError::new_err("an integer exceeds 64 bits"))?;
        Ok(unsigned as i64)
    })
}

#[pymethods]
impl Emulated {
    /// Lowers the function `entry` of Triton IR text.
    ///
    /// Raises ValueError if the text is no valid IR, NotImplementedError with `(operation, line, why)` for an
    /// operation that the emulator does not execute.
    #[new]
    fn new(py: Python<'_>, ttir: &str, entry: &str) -> PyResult<Self> {
        py.detach(|| {
            let module = tilewright_ttir::parse(ttir).map_err(|error| PyValueError::new_err(error.to_string()))?;
            let kernel = Kernel::new(&module, entry).map_err(|error| {
                pyo3::exceptions::PyNotImplementedError::new_err((error.op.clone(), error.line, error.why))
            })?;
            Ok(Self { kernel: Arc::new(kernel) })
        })
    }

    /// Runs every program of a grid on the memory of the buffers, which then hold what the launch left there.
    ///
    /// Returns a dict: `report` (what the launch moved and computed; None if it ended early), `faults` (if it did,
    /// the last says why) and `defects` (uses of values that no result should depend on).
    fn launch<'py>(
        &self,
        py: Python<'py>,
        grid: [u32; 3],
        buffers: Vec<Buffer>,
        args: Vec<Argument>,
        options: Options,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut memory = Memory::new();
        let ids = buffers.iter().map(|buffer| load(py, buffer, &mut memory)).collect::<PyResult<Vec<_>>>()?;
        let mut inwards = Translation::default();
        for (buffer, &id) in buffers.iter().zip(&ids) {
            if let Some(real) = buffer.3 {
                inwards.add(real, memory.bytes(id).len() as u64, memory.address(id, 0));
            }
        }
        if !inwards.is_empty() {
            let holding = buffers.iter().zip(&ids).filter(|(buffer, _)| buffer.4);
            holding.for_each(|(_, &id)| inwards.numbers(memory.bytes_mut(id)));
        }
        let args = arguments(&args, &ids, &memory, &inwards)?;
        let seconds = options.seconds.map(Duration::try_from_secs_f64).transpose();
        let deadline = seconds.map_err(|error| PyValueError::new_err(error.to_string()))?.map(|it| Instant::now() + it);
        let Options { sanitise, reverse, go_on, threads, .. } = options;
        let limits = Limits { deadline, reverse, go_on, threads, bare: !sanitise, ..Limits::default() };
        let (ended, mut memory) = py.detach(|| {
            let ended = emulate::launch(&self.kernel, grid, &args, &mut memory, &limits);
            (ended, memory)
        });
        for (buffer, &id) in buffers.iter().zip(&ids) {
            if !sanitise || written(&memory, id) {
                if buffer.4 && !inwards.is_empty() {
                    inwards.back().numbers(memory.bytes_mut(id));
                }
                buffer.1.copy_from_slice(py, memory.bytes(id))?;
            }
            if let Some(written) = &buffer.2 {
                let flags: Vec<u8> = memory.shadow(id).iter().map(|&it| u8::from(it != shadow::UNWRITTEN)).collect();
                written.copy_from_slice(py, &flags)?;
            }
            recycled::give(memory.take(id));
        }
        let result = PyDict::new(py);
        result.set_item("report", ended.as_ref().ok().map(|it| report(py, it)).transpose()?)?;
        let faults = memory.faults().map(|(it, _)| it).chain(ended.as_ref().err());
        result.set_item("faults", faults.map(|it| fault(py, it)).collect::<PyResult<Vec<_>>>()?)?;
        let used = memory.defects().filter(|(_, it)| it.used.is_some() || it.stored.is_some());
        result.set_item("defects", used.map(|(_, it)| defect(py, it)).collect::<PyResult<Vec<_>>>()?)?;
        Ok(result)
    }
}

/// A buffer as an allocation of the emulator.
fn load(py: Python<'_>, buffer: &Buffer, memory: &mut Memory) -> PyResult<AllocId> {
    let Buffer(label, bytes, written, ..) = buffer;
    let bytes = recycled::copy(py, bytes)?;
    let Some(written) = written else { return Ok(memory.alloc(label, bytes, Init::Written)) };
    let mut written = written.to_vec(py)?;
    if written.len() != bytes.len() {
        return Err(PyValueError::new_err(format!("{label}: one mark a byte is needed")));
    }
    host_wrote(&bytes, &mut written);
    let id = memory.alloc(label, bytes, Init::Uninitialised);
    if all(&written, 1) {
        memory.mark(id, 0..written.len(), shadow::HOST);
    } else if !all(&written, 0) {
        for (start, run) in runs(&written).filter(|(_, run)| run[0] != 0) {
            memory.mark(id, start..start + run.len(), shadow::HOST);
        }
    }
    Ok(id)
}

/// Marks what is no poison any more as written.
fn host_wrote(bytes: &[u8], written: &mut [u8]) {
    let (words, rest) = bytes.as_chunks::<8>();
    let (marks, marks_of_rest) = written.as_chunks_mut::<8>();
    for (word, marks) in words.iter().zip(marks) {
        if *word != POISON {
            *marks = [1; 8];
        }
    }
    if *rest != POISON[..rest.len()] {
        marks_of_rest.fill(1);
    }
}

/// Whether all of them are `value`. In chunks without a branch, which the compiler makes wide.
fn all(marks: &[u8], value: u8) -> bool {
    marks.chunks(4096).all(|marks| marks.iter().fold(0, |all, mark| all | (mark ^ value)) == 0)
}

/// Stretches of equal values with their starts.
fn runs(values: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    values.chunk_by(|a, b| a == b).map(move |run| {
        let at = start;
        start += run.len();
        (at, run)
    })
}

/// Whether a launch stored anything there: it leaves greater marks than `HOST` and `UNWRITTEN`.
fn written(memory: &Memory, id: AllocId) -> bool {
    const { assert!(shadow::UNWRITTEN == 0 && shadow::HOST == 1) };
    match memory.uniform(id) {
        Some(mark) => mark > 1,
        None => memory.shadow(id).chunks(4096).any(|marks| marks.iter().fold(0, |all, mark| all | mark) > 1),
    }
}

fn arguments(
    args: &[Argument],
    ids: &[AllocId],
    memory: &Memory,
    inwards: &Translation,
) -> PyResult<Vec<emulate::Arg>> {
    let address = |buffer: usize, offset: u64| {
        let id = ids.get(buffer).ok_or_else(|| PyValueError::new_err(format!("there is no buffer {buffer}")))?;
        Ok::<_, PyErr>(memory.address(*id, offset))
    };
    let mut all = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Argument::Pointer(buffer, offset) => all.push(emulate::Arg::Pointer(address(*buffer, *offset)?)),
            Argument::Null => all.push(emulate::Arg::Pointer(0)),
            Argument::Int(value) => {
                all.push(emulate::Arg::Int(inwards.number(*value as u64).map_or(*value, |address| address as i64)));
            }
            Argument::Float(value) => all.push(emulate::Arg::Float(*value)),
            Argument::Descriptor { buffer, offset, shape, strides, pad_nan } => {
                let (shape, strides) = (shape.clone(), strides.clone());
                let numbers: Vec<_> = shape.iter().chain(&strides).map(|&n| emulate::Arg::Int(n)).collect();
                let base = address(*buffer, *offset)?;
                all.push(emulate::Arg::Descriptor { base, shape, strides, pad_nan: *pad_nan });
                // The function's parameters go on with the descriptor's shape and strides.
                all.extend(numbers);
            }
        }
    }
    Ok(all)
}

/// Fills fresh memory with what nobody writes.
#[pyfunction]
pub(crate) fn poison(py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<()> {
    let mut bytes = POISON.repeat(buffer.len_bytes().div_ceil(POISON.len()));
    bytes.truncate(buffer.len_bytes());
    buffer.copy_from_slice(py, &bytes)
}
