//! What the driver says of a GPU's clocks and temperature.

use std::sync::LazyLock;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use tilewright_contract::DeviceState;

static NVML: LazyLock<Option<Nvml>> = LazyLock::new(|| Nvml::init().ok());

/// The state of the GPU whose address on the bus this is, such as `0000:3b:00.0`; none where the driver does not tell.
///
/// By address, because the library counts GPUs in another order than CUDA, and does not know which ones are visible.
pub(super) fn device_state(bus: &str) -> Option<DeviceState> {
    NVML.as_ref().and_then(|nvml| ask(nvml, bus).ok())
}

/// What names the GPU at an address whatever machine it is in, and its driver.
pub(super) fn device_identity(bus: &str) -> Option<(String, String)> {
    let nvml = NVML.as_ref()?;
    let device = nvml.device_by_pci_bus_id(bus).ok()?;
    Some((device.uuid().ok()?, nvml.sys_driver_version().ok()?))
}

fn ask(nvml: &Nvml, bus: &str) -> Result<DeviceState, NvmlError> {
    let device = nvml.device_by_pci_bus_id(bus)?;
    let throttled = device.current_throttle_reasons().map(|reasons| {
        reasons.iter_names().map(|(name, _)| name.to_owned()).filter(|name| name != "GPU_IDLE").collect()
    });
    Ok(DeviceState {
        name: device.name()?,
        driver: nvml.sys_driver_version()?,
        clock_mhz: device.clock_info(Clock::SM)?,
        memory_clock_mhz: device.clock_info(Clock::Memory)?,
        temperature: device.temperature(TemperatureSensor::Gpu)?,
        power_watts: f64::from(device.power_usage()?) / 1e3,
        throttled: throttled.unwrap_or_default(),
    })
}
