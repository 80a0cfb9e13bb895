//! Work that is recorded once and launched as a whole, and the events that time it.

use cudarc::driver::sys;

use super::{Context, Result, check};

/// A point in the order of a stream, with the device's time at it.
pub(in crate::cuda) struct Event(sys::CUevent);

impl Event {
    pub(in crate::cuda) fn new() -> Result<Self> {
        let mut event = std::ptr::null_mut();
        // SAFETY: writes one handle.
        check(unsafe { sys::cuEventCreate(&mut event, 0) }, "cuEventCreate")?;
        Ok(Self(event))
    }

    pub(in crate::cuda) fn record(&self, context: &Context) -> Result<()> {
        // SAFETY: the handle lives as long as self.
        check(unsafe { sys::cuEventRecord(self.0, context.stream) }, "cuEventRecord")
    }

    /// While a graph is recorded: has the graph record this event whenever it runs.
    pub(in crate::cuda) fn record_inside(&self, context: &Context) -> Result<()> {
        let external = sys::CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: the handle lives as long as self.
        check(unsafe { sys::cuEventRecordWithFlags(self.0, context.stream, external) }, "cuEventRecordWithFlags")
    }

    /// Microseconds from `start` to this event, once both have happened.
    pub(in crate::cuda) fn since(&self, start: &Event) -> Result<f64> {
        let mut ms = 0f32;
        // SAFETY: both handles are alive.
        unsafe {
            check(sys::cuEventSynchronize(self.0), "cuEventSynchronize")?;
            check(sys::cuEventElapsedTime_v2(&mut ms, start.0, self.0), "cuEventElapsedTime")?;
        }
        Ok(f64::from(ms) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by cuEventCreate and destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// Recorded work, ready to be launched. Addresses and parameters are part of it.
pub(in crate::cuda) struct Graph(sys::CUgraphExec);

impl Graph {
    /// Records what `work` puts into the context's stream, without running it.
    pub(in crate::cuda) fn record(context: &Context, work: impl FnOnce() -> Result<()>) -> Result<Self> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream lives as long as the context.
        check(unsafe { sys::cuStreamBeginCapture_v2(context.stream, mode) }, "cuStreamBeginCapture")?;
        let done = work();
        let (mut graph, mut exec) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a capture is under way; it must be ended even when the work failed.
        let ended = check(unsafe { sys::cuStreamEndCapture(context.stream, &mut graph) }, "cuStreamEndCapture");
        done?;
        ended?;
        // SAFETY: the graph was made above; the executable copies what it needs of it.
        let made = unsafe {
            let made = sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0);
            let _ = sys::cuGraphDestroy(graph);
            made
        };
        check(made, "cuGraphInstantiate")?;
        Ok(Self(exec))
    }

    /// Brings it to the device, so that the first launch has no more to do than the others.
    pub(in crate::cuda) fn upload(&self, context: &Context) -> Result<()> {
        // SAFETY: the handle lives as long as self.
        check(unsafe { sys::cuGraphUpload(self.0, context.stream) }, "cuGraphUpload")
    }

    pub(in crate::cuda) fn launch(&self, context: &Context) -> Result<()> {
        // SAFETY: the handle lives as long as self.
        check(unsafe { sys::cuGraphLaunch(self.0, context.stream) }, "cuGraphLaunch")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: instantiated once and destroyed once.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}
