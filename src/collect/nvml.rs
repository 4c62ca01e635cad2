//! Counters of devices, sampled beside the program.

use std::ffi::OsStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;

use super::gpm::Gpm;
use super::name::now;
use crate::model::CounterKind;

/// Names the library to open, for systems where it is nowhere usual.
const VARIABLE: &str = "TRACEKIT_NVML";

/// What drivers install; the first is there without development files.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// A device that NVML knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NvmlDevice {
    pub(super) index: u32,
    pub(super) name: String,
    /// `GPU-…`, as NVML writes it.
    pub(super) uuid: String,
}

/// One value of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// Nanoseconds since 1970.
    pub(super) time: u64,
    /// Index of NVML.
    pub(super) device: u32,
    pub(super) kind: CounterKind,
    pub(super) value: u64,
}

/// What was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Samples {
    pub(super) devices: Vec<NvmlDevice>,
    /// In order of time.
    pub(super) values: Vec<Sample>,
    /// Lines for the user.
    pub(super) notes: Vec<String>,
}

/// Opens NVML.
///
/// # Errors
/// One line that says why it cannot be used.
pub(super) fn open() -> Result<Nvml, String> {
    let asked = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let names: Vec<&OsStr> = match &asked {
        Some(name) => vec![name],
        None => LIBRARIES.iter().map(OsStr::new).collect(),
    };
    let mut first = None;
    for name in names {
        match Nvml::builder().lib_path(name).init() {
            Ok(nvml) => return Ok(nvml),
            Err(error) => {
                first.get_or_insert(explain(&error));
            }
        }
    }
    Err(first.unwrap_or_default())
}

/// An error with what is behind it, in one line.
pub(super) fn explain(error: &NvmlError) -> String {
    if let NvmlError::LibloadingError(error) = error {
        let source = std::error::Error::source(error).map(ToString::to_string);
        return source.unwrap_or_else(|| error.to_string());
    }
    error.to_string()
}

/// The devices that `nvml` knows.
pub(super) fn devices(nvml: &Nvml) -> Result<Vec<NvmlDevice>, String> {
    let count = nvml.device_count().map_err(|error| explain(&error))?;
    let known = (0..count).filter_map(|index| {
        let device = nvml.device_by_index(index).ok()?;
        Some(NvmlDevice {
            index,
            name: device.name().unwrap_or_default(),
            uuid: device.uuid().unwrap_or_default(),
        })
    });
    Ok(known.collect())
}

/// Free and all memory, in bytes, of the first device that a program started here would see; `None` without
/// NVML or such a device.
pub fn free_memory() -> Option<(u64, u64)> {
    let nvml = open().ok()?;
    let device = match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(visible) => match visible.split(',').next().unwrap_or_default().trim() {
            uuid if uuid.starts_with("GPU-") => nvml.device_by_uuid(uuid),
            // What is no number hides every device.
            number => nvml.device_by_index(number.parse().ok()?),
        },
        Err(_) => nvml.device_by_index(0),
    };
    let memory = device.ok()?.memory_info().ok()?;
    Some((memory.free, memory.total))
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

/// A thread that samples until it is told to stop.
pub(super) struct Sampler {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Samples>>,
}

impl Sampler {
    /// Starts sampling every `interval`, from `from` to `until` (ns since 1970) where they are given.
    pub(super) fn start(interval: Duration, from: Option<u64>, until: Option<u64>) -> Self {
        let stop = Arc::new(Stop::default());
        let asked = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("nvml".to_owned())
            .spawn(move || sample(interval, from, until, &asked))
            .ok();
        Self { stop, thread }
    }

    /// Samples once more, and gives what there is.
    pub(super) fn finish(self) -> Samples {
        *self
            .stop
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
        let samples = self.thread.and_then(|thread| thread.join().ok());
        samples.unwrap_or_else(|| Samples {
            notes: vec!["no NVML counters: the sampler failed".to_owned()],
            ..Samples::default()
        })
    }
}

fn sample(interval: Duration, from: Option<u64>, until: Option<u64>, stop: &Stop) -> Samples {
    let mut samples = Samples::default();
    let opened = open().and_then(|nvml| Ok((devices(&nvml)?, nvml)));
    let (known, nvml) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            let line = format!("no NVML, so no power, energy, clocks or memory: {why}");
            samples.notes.push(line);
            return samples;
        }
    };
    samples.devices = known;
    // What a device does not have is asked once.
    let mut absent: Vec<(u32, CounterKind)> = Vec::new();
    let mut gpm = Gpm::default();
    let mut next = Instant::now();
    loop {
        let time = now();
        let last = *stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if from.is_none_or(|from| from <= time) && until.is_none_or(|until| time < until) {
            round(&nvml, &mut samples, &mut absent, &mut gpm);
        }
        if last {
            // Those of GPM are about the time before they were taken.
            samples.values.sort_by_key(|sample| sample.time);
            return samples;
        }
        // A round that took longer than the interval is not made up for.
        next = (next + interval).max(Instant::now());
        let asked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let left = next.saturating_duration_since(Instant::now());
        drop(
            stop.changed
                .wait_timeout_while(asked, left, |asked| !*asked),
        );
    }
}

/// Asks for every value of every device.
fn round<'a>(
    nvml: &'a Nvml,
    samples: &mut Samples,
    absent: &mut Vec<(u32, CounterKind)>,
    gpm: &mut Gpm<'a>,
) {
    let Samples {
        devices,
        values,
        notes,
    } = samples;
    for known in devices.iter() {
        let Ok(device) = nvml.device_by_index(known.index) else {
            continue;
        };
        let mut utilization = None;
        for kind in CounterKind::ALL {
            if absent.contains(&(known.index, kind)) {
                continue;
            }
            let before = now();
            let value = match kind {
                CounterKind::Power => device.power_usage().map(u64::from),
                CounterKind::Energy => device.total_energy_consumption(),
                CounterKind::Utilization => device.utilization_rates().map(|rates| {
                    utilization = Some(rates.memory);
                    rates.gpu.into()
                }),
                CounterKind::MemoryUtilization => match utilization {
                    Some(memory) => Ok(memory.into()),
                    None => continue,
                },
                CounterKind::MemoryUsed => device.memory_info().map(|memory| memory.used),
                CounterKind::Temperature => {
                    device.temperature(TemperatureSensor::Gpu).map(u64::from)
                }
                CounterKind::SmClock => device.clock_info(Clock::SM).map(u64::from),
                CounterKind::MemoryClock => device.clock_info(Clock::Memory).map(u64::from),
                CounterKind::ThrottleReasons => device
                    .current_throttle_reasons()
                    .map(|reasons| reasons.bits()),
                CounterKind::SmUtilization
                | CounterKind::TensorUtilization
                | CounterKind::MemoryBandwidth
                | CounterKind::PcieSent
                | CounterKind::PcieReceived => continue,
            };
            match value {
                Ok(value) => values.push(Sample {
                    // Halfway; the clock may be set at any time.
                    time: before + now().saturating_sub(before) / 2,
                    device: known.index,
                    kind,
                    value,
                }),
                Err(error) => {
                    absent.push((known.index, kind));
                    notes.push(format!(
                        "GPU {} has no {}: {}",
                        known.index,
                        kind.name().trim_start_matches("GPU "),
                        explain(&error)
                    ));
                }
            }
        }
        gpm.look(known.index, &device, values, notes);
    }
}
