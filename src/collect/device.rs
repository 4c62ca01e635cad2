//! What the CUDA driver says about devices.

#![expect(
    unsafe_code,
    reason = "two functions of the driver are marked unsafe in its bindings"
)]

use cudarc::driver::{result, sys};

/// A device as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DriverDevice {
    pub(super) name: String,
    pub(super) memory: u64,
    pub(super) multiprocessors: Option<i32>,
    pub(super) compute_capability: Option<(i32, i32)>,
}

/// The version of CUDA that the driver is for, such as 13000, and its devices.
///
/// # Errors
/// One line that says why there is no driver to ask.
pub(super) fn devices() -> Result<(i32, Vec<DriverDevice>), String> {
    // A symbol that an old driver lacks is a panic in the bindings.
    std::panic::catch_unwind(read).unwrap_or_else(|_| Err("the driver is too old".to_owned()))
}

fn read() -> Result<(i32, Vec<DriverDevice>), String> {
    // SAFETY: opens the driver if there is one; it has no requirements on the process.
    if !unsafe { sys::is_culib_present() } {
        return Err("no libcuda.so on this system".to_owned());
    }
    let explain = |error: result::DriverError| format!("{error}");
    result::init().map_err(explain)?;
    let mut version = 0;
    // SAFETY: a place for the result.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .map_err(explain)?;
    let count = result::device::get_count().map_err(explain)?;
    let mut devices = Vec::new();
    for ordinal in 0..count {
        let device = result::device::get(ordinal).map_err(explain)?;
        // SAFETY: the device is one that the driver has just given.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) }.ok();
        let major = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let minor = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        let multiprocessors = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        devices.push(DriverDevice {
            name: result::device::get_name(device).map_err(explain)?,
            // SAFETY: as above.
            memory: unsafe { result::device::total_mem(device) }.map_err(explain)? as u64,
            multiprocessors: attribute(multiprocessors),
            compute_capability: attribute(major).zip(attribute(minor)),
        });
    }
    Ok((version, devices))
}
