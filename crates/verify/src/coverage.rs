//! The screen's open calls against what the traces ran: a trace proves only what it executed.

use tilewright_contract::{Finding, OpenCall};
use tilewright_stage::Trace;

/// A finding for each open call that stays unproven: no trace of any case ran it, or it may compute although one did
/// (which branch of it a trace takes is the file's own choice).
pub(crate) fn unproven(calls: &[OpenCall], traces: &[Trace]) -> Vec<Finding> {
    let ran = |index| traces.iter().any(|trace| trace.ran.contains(&index));
    calls
        .iter()
        .enumerate()
        .filter(|&(index, call)| call.certain || !ran(index))
        .map(|(_, call)| call.unproven())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: u32, certain: bool) -> OpenCall {
        OpenCall {
            line,
            column: 4,
            end_line: line,
            end_column: 9,
            text: format!("f{line}(x)"),
            certain,
            what: Default::default(),
        }
    }

    fn trace(ran: &[usize]) -> Trace {
        Trace { plans: Vec::new(), missing: Vec::new(), extra: Vec::new(), ran: ran.to_vec() }
    }

    #[test]
    fn a_call_is_proven_by_any_case_unless_it_certainly_may_compute() {
        let calls = [call(1, false), call(2, false), call(3, false), call(4, true)];
        let lines = |traces: &[Trace]| -> Vec<u32> {
            unproven(&calls, traces).into_iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines(&[trace(&[0, 3]), trace(&[2])]), [2, 4]);
        assert_eq!(lines(&[trace(&[0, 1, 2, 3])]), [4]);
        assert_eq!(lines(&[]), [1, 2, 3, 4]);
        // What the trace process claims beyond the list counts for nothing.
        assert_eq!(lines(&[trace(&[99])]), [1, 2, 3, 4]);
    }
}
