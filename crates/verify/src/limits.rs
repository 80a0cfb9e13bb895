//! What a device and its host can do at best: measured once, kept on disk, and held against candidates' times.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

use tilewright_contract::{
    BufferSource, DeviceLimits, Dtype, HostTime, LeastWork, Limit, Plan, Step, VerdictKind, Work,
};
use tilewright_replay::cuda::CudaDevice;
use tilewright_stage::Resident;

use crate::comparison::Trouble;
use crate::draft::Stop;
use crate::lane::Lane;
use crate::pipeline::Verifier;

/// Share of the least time that a candidate may not stay below. Reading alone is up to a tenth faster than a copy, which
/// the rate is measured by, and not all of the cache may be cold.
const MARGIN: f64 = 0.8;
/// No unit of a device multiplies faster than this many times half precision: 8-bit formats do twice as much.
const FASTEST: f64 = 2.0;

impl Verifier {
    /// The limits of a lane's device: known already, found on disk, or measured now.
    pub(crate) fn limits(
        &self,
        lane: &Lane,
        device: &mut CudaDevice,
        reference: &Resident,
    ) -> Result<DeviceLimits, Trouble> {
        let mut known = lane.limits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limits) = known.as_ref() {
            return Ok(limits.clone());
        }
        let software = self.stage.software();
        let identity = device.identity();
        let path = identity.as_ref().map(|(uuid, _)| self.limits_path(uuid));
        let fits = |limits: &DeviceLimits| {
            limits.software == software
                && identity.as_ref().is_some_and(|(uuid, driver)| limits.device == *uuid && limits.driver == *driver)
        };
        let limits = match path.as_ref().and_then(read).filter(fits) {
            Some(limits) => limits,
            None => {
                let (copy, cache_bytes) = device.copy_rate().map_err(Stop::from)?;
                let nothing_us = device.nothing().map_err(Stop::from)?;
                let rates = reference.rates()?;
                let (device, driver) = identity.unwrap_or_default();
                let measured_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
                let (matmul, host) = (rates.matmul, rates.host);
                let limits =
                    DeviceLimits { device, driver, software, measured_at, copy, cache_bytes, nothing_us, matmul, host };
                // Without the file they are measured again next time.
                let _ = path.map(|path| write(&path, &limits));
                limits
            }
        };
        Ok(known.insert(limits).clone())
    }

    fn limits_path(&self, uuid: &str) -> PathBuf {
        let name: String = uuid.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        self.stage.cache().root().join("devices").join(format!("{name}.json"))
    }
}

fn read(path: &PathBuf) -> Option<DeviceLimits> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write(path: &PathBuf, limits: &DeviceLimits) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    // Whoever reads meanwhile finds the old file or the new one.
    let file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer_pretty(&file, limits)?;
    file.persist(path)?;
    Ok(())
}

/// How near a candidate comes to what the device can do, `dtype` being what it computes in.
pub(crate) fn limit(limits: &DeviceLimits, work: Work, dtype: Dtype, device_us: f64) -> Option<Limit> {
    let rate = |dtype: Dtype| limits.matmul.get(dtype.name());
    let flops_per_second = *rate(dtype).or_else(|| rate(Dtype::F32))?;
    let floor_us = (work.bytes as f64 / limits.copy).max(work.flops as f64 / flops_per_second) * 1e6;
    let least_us = least_us(limits, work.least);
    Some(Limit { bytes_per_second: limits.copy, flops_per_second, floor_us, fraction: floor_us / device_us, least_us })
}

/// A time with a cold cache that no program with this work stays below. Results may still lie in the cache when a call is
/// over, so that what fits there is not counted; nor is any memory traffic where all of it fits.
fn least_us(limits: &DeviceLimits, least: LeastWork) -> f64 {
    let bytes = if least.read.saturating_add(least.written) > limits.cache_bytes {
        least.read + least.written.saturating_sub(limits.cache_bytes)
    } else {
        0
    };
    let fastest = FASTEST * limits.matmul.values().copied().fold(0.0, f64::max);
    let products = if fastest > 0.0 { least.flops as f64 / fastest } else { 0.0 };
    MARGIN * (bytes as f64 / limits.copy).max(products) * 1e6
}

/// Refuses what is faster than the device: it does not do the work, however its results come about.
pub(crate) fn check(limit: &Limit, device_us: f64) -> Result<(), Stop> {
    if device_us >= limit.least_us {
        return Ok(());
    }
    let message = format!(
        "{device_us:.2} us is less than the {:.2} us in which this device could read and write what matters at best",
        limit.least_us
    );
    Err(Stop::new(VerdictKind::Rejected, "faster-than-possible", message)
        .help("compute every output from its inputs in every call"))
}

/// What Python's part of a call takes, by the steps that the plan has.
pub(crate) fn host_time(limits: &DeviceLimits, plan: &Plan, device_us: f64) -> HostTime {
    let launches = plan.launches().count();
    let made = plan.buffers.iter().filter(|buffer| matches!(buffer.source, BufferSource::Scratch)).count();
    let steps = plan.steps.iter().filter(|step| !matches!(step, Step::Launch { .. })).count() + made;
    let costs = limits.host;
    let us = costs.module + launches as f64 * costs.launch + steps as f64 * costs.step;
    HostTime { us, end_to_end_us: us.max(device_us), launch_bound: us > device_us }
}

#[cfg(test)]
mod tests {
    use tilewright_contract::HostCosts;

    use super::*;

    fn limits() -> DeviceLimits {
        DeviceLimits {
            device: "GPU-1".into(),
            driver: "1".into(),
            software: "torch 1, triton 1".into(),
            measured_at: 0,
            copy: 4e12,
            cache_bytes: 60 << 20,
            nothing_us: 4.0,
            matmul: [("float16".to_owned(), 7e14), ("float32".to_owned(), 5e13)].into(),
            host: HostCosts { module: 1.0, launch: 10.0, step: 2.0 },
        }
    }

    #[test]
    fn small_work_is_never_too_fast() {
        let least = LeastWork { read: 30 << 20, written: 30 << 20, flops: 0 };
        assert_eq!(least_us(&limits(), least), 0.0);
        assert!(
            check(&limit(&limits(), Work { flops: 0, bytes: 60 << 20, least }, Dtype::F32, 0.1).unwrap(), 0.1).is_ok()
        );
    }

    #[test]
    fn what_reads_at_the_speed_of_the_memory_is_not_refused_and_what_skips_half_is() {
        let least = LeastWork { read: 1 << 30, written: 1 << 30, flops: 0 };
        let work = Work { flops: 0, bytes: 2 << 30, least };
        let at_the_limit = 2.0 * f64::from(1 << 30) / 4e12 * 1e6;
        let of = |us: f64| limit(&limits(), work, Dtype::F32, us).unwrap();
        assert!((of(at_the_limit).fraction - 1.0).abs() < 1e-9);
        assert!(check(&of(at_the_limit), at_the_limit).is_ok());
        // Results that stay in the cache, and reads that are faster than a copy.
        assert!(check(&of(at_the_limit), 0.85 * at_the_limit).is_ok());
        let stop = check(&of(at_the_limit), 0.5 * at_the_limit).unwrap_err();
        assert_eq!((stop.kind, stop.reasons[0].code.as_str()), (VerdictKind::Rejected, "faster-than-possible"));
    }

    #[test]
    fn products_count_at_the_rate_of_the_fastest_unit() {
        let least = LeastWork { read: 0, written: 0, flops: 14e14 as u64 };
        assert!((least_us(&limits(), least) - MARGIN * 1e6).abs() < 1.0);
    }

    /// What Python needs for the steps of a plan is longer than a short kernel takes, and shorter than a long one.
    #[test]
    fn short_kernels_are_bound_by_their_launches() {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "schema": Plan::SCHEMA, "kernels": [], "output": {"kind": "none"},
            "buffers": [{"nbytes": 4, "source": {"kind": "scratch"}}],
            "steps": [{"op": "launch", "kernel": 0, "grid": [1, 1, 1], "args": [], "line": 1},
                {"op": "launch", "kernel": 0, "grid": [1, 1, 1], "args": [], "line": 2}],
        }))
        .unwrap();
        // The module, two launches and an allocation.
        let us = 1.0 + 2.0 * 10.0 + 2.0;
        let host = |device_us| host_time(&limits(), &plan, device_us);
        assert_eq!(host(5.0), HostTime { us, end_to_end_us: us, launch_bound: true });
        assert_eq!(host(50.0), HostTime { us, end_to_end_us: 50.0, launch_bound: false });
    }

    #[test]
    fn limits_on_disk_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("devices").join("GPU-1.json");
        assert_eq!(read(&path), None);
        write(&path, &limits()).unwrap();
        assert_eq!(read(&path), Some(limits()));
    }
}
