//! What a trace has seen, where the traced file cannot take it back.
//!
//! The tracer shares its process with hostile Python, which may reach any Python object in it. So each step and each
//! finding is handed over as text the moment it is seen, and Python can add to a record and read it, but not change
//! it. Records are of the process: there is no object that another could stand in for.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger::new());

/// Record 0 holds what is seen outside of every other one.
struct Ledger {
    records: Vec<Record>,
    open: Option<usize>,
}

#[derive(Default)]
struct Record {
    /// Kind and text, in order.
    entries: Vec<(String, String)>,
    once: HashSet<(String, String)>,
}

impl Ledger {
    const fn new() -> Self {
        Self { records: Vec::new(), open: None }
    }

    fn current(&mut self) -> &mut Record {
        let at = self.open.unwrap_or(0);
        while self.records.len() <= at {
            self.records.push(Record::default());
        }
        &mut self.records[at]
    }
}

fn ledger() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Open a new record and return its number. While it is open, all that is written goes to it.
///
/// Raises RuntimeError if another is open.
#[pyfunction]
pub(crate) fn open_record() -> PyResult<usize> {
    let mut ledger = ledger();
    if let Some(open) = ledger.open {
        return Err(PyRuntimeError::new_err(format!("record {open} is open")));
    }
    let number = ledger.records.len().max(1);
    ledger.open = Some(number);
    ledger.current();
    Ok(number)
}

/// Close the record; a closed one takes nothing more. Raises RuntimeError if it is not the open one.
#[pyfunction]
pub(crate) fn close_record(number: usize) -> PyResult<()> {
    let mut ledger = ledger();
    if ledger.open != Some(number) {
        return Err(PyRuntimeError::new_err(format!("record {number} is not open")));
    }
    ledger.open = None;
    Ok(())
}

/// Add an entry to the open record.
#[pyfunction]
pub(crate) fn write_record(kind: String, text: String) {
    ledger().current().entries.push((kind, text));
}

/// Add an entry to the open record, unless it has the same one or `limit` such entries already.
#[pyfunction]
pub(crate) fn write_once(kind: String, text: String, limit: usize) {
    let mut ledger = ledger();
    let record = ledger.current();
    let entry = (kind, text);
    if record.once.len() < limit && record.once.insert(entry.clone()) {
        record.entries.push(entry);
    }
}

/// The texts of one kind in a record, in order.
#[pyfunction]
pub(crate) fn read_record(number: usize, kind: &str) -> PyResult<Vec<String>> {
    let ledger = ledger();
    match ledger.records.get(number) {
        Some(record) => {
            Ok(record.entries.iter().filter(|entry| entry.0 == kind).map(|entry| entry.1.clone()).collect())
        }
        None if number == 0 => Ok(Vec::new()),
        None => Err(PyValueError::new_err(format!("there is no record {number}"))),
    }
}
