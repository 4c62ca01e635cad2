//! What there is on this machine to collect with.

// Writing to a string cannot fail.
use std::fmt::Write as _;
use std::path::Path;

use super::{device, library, nvml};

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What: `library`, `driver`, `cupti`, `permission` or `nvml`.
    pub what: &'static str,
    /// True when it can be used.
    pub found: bool,
    /// What was found, or why nothing.
    pub text: String,
}

/// Where CUPTI may be.
const CUPTI: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];

/// Looks for everything that collecting needs.
pub fn check(asked: Option<&Path>) -> Vec<Finding> {
    let finding = |what, result: Result<String, String>| Finding {
        what,
        found: result.is_ok(),
        text: result.unwrap_or_else(|why| why),
    };
    vec![
        finding(
            "library",
            library::find(asked).map(|path| path.display().to_string()),
        ),
        finding("driver", driver()),
        finding("cupti", cupti()),
        finding("permission", Ok(permission())),
        finding("nvml", counters()),
    ]
}

fn driver() -> Result<String, String> {
    let (version, devices) = device::devices()?;
    let mut text = format!("CUDA {}.{}", version / 1_000, version % 1_000 / 10);
    for device in &devices {
        let _ = write!(
            text,
            "; {}, {} GB",
            device.name,
            device.memory / 1_000_000_000
        );
        if let Some(count) = device.multiprocessors {
            let _ = write!(text, ", {count} multiprocessors");
        }
        if let Some((major, minor)) = device.compute_capability {
            let _ = write!(text, ", compute capability {major}.{minor}");
        }
    }
    if devices.is_empty() {
        return Err(format!("{text}, but no device"));
    }
    Ok(text)
}

fn cupti() -> Result<String, String> {
    #![expect(
        unsafe_code,
        reason = "a library is opened and one function of it called"
    )]
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    let asked = std::env::var("TRACEKIT_CUPTI").ok();
    let names = match asked.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => vec![name],
        None => CUPTI.to_vec(),
    };
    let mut first = None;
    for name in names {
        // SAFETY: CUPTI's initialisers have no requirements on the process.
        let library = match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => library,
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                first.get_or_insert(source.unwrap_or_else(|| error.to_string()));
                continue;
            }
        };
        let mut version = 0_u32;
        // SAFETY: the signature is that of CUPTI's headers, with a number for its enum.
        unsafe {
            let get = library
                .get::<unsafe extern "C" fn(*mut u32) -> u32>(b"cuptiGetVersion\0")
                .map_err(|error| error.to_string())?;
            get(&raw mut version);
        }
        return Ok(format!("version {version}, {name}"));
    }
    let why = first.unwrap_or_default();
    Err(format!(
        "{why} (a program that brings its own, as PyTorch does, needs none here)"
    ))
}

/// Whether the driver lets everyone use its counters. Activity needs no permission on current drivers, so
/// this is never what is missing.
fn permission() -> String {
    let Ok(parameters) = std::fs::read_to_string("/proc/driver/nvidia/params") else {
        return "no restriction is known (there is no /proc/driver/nvidia/params)".to_owned();
    };
    let restricted = parameters.lines().any(|line| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        name.trim() == "RmProfilingAdminOnly" && value.trim() == "1"
    });
    if restricted {
        "profiling is for administrators (RmProfilingAdminOnly): old drivers refuse activity, too"
    } else {
        "profiling is for everyone"
    }
    .to_owned()
}

fn counters() -> Result<String, String> {
    let nvml = nvml::open()?;
    let devices = nvml::devices(&nvml)?;
    let driver = nvml.sys_driver_version().unwrap_or_default();
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    Ok(format!("driver {driver}; {}", names.join(", ")))
}
