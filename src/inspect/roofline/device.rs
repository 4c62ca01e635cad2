//! Peak rates of devices: a table that comes with the program, and the user's own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use super::precision::{Precision, Rates};
use crate::error::{Error, ErrorKind, Result};
use crate::model::Metadata;

/// Peak rates of devices by name, as in `src/inspect/devices.toml`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceTable {
    #[serde(default)]
    device: Vec<Device>,
}

/// The peak rates of one model of device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    /// Names in `deviceProperties`.
    names: Vec<String>,
    /// The document that the numbers are from.
    pub(super) source: String,
    /// Size of the memory in 10⁹ bytes.
    memory_gb: Option<f64>,
    /// Bandwidth of the memory in 10⁹ bytes a second.
    bandwidth_gbps: f64,
    /// Of matrix units, in 10¹² operations a second.
    #[serde(default)]
    matrix: Rates,
    /// Of everything else, likewise.
    #[serde(default)]
    vector: Rates,
    /// The rates follow from clocks and units; nobody measured them.
    #[serde(default = "yes")]
    pub(super) theoretical: bool,
}

fn yes() -> bool {
    true
}

/// Which units of a device do the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Engine {
    Matrix,
    Vector,
}

impl Device {
    /// Operations a second.
    pub(super) fn peak(&self, engine: Engine, precision: Precision) -> Option<f64> {
        let rate = match engine {
            Engine::Matrix => self
                .matrix
                .of(precision)
                .or_else(|| self.vector.of(precision)),
            Engine::Vector => self.vector.of(precision.of_elements()?),
        };
        rate.map(|rate| rate * 1e12)
    }

    /// Bytes of memory a second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.bandwidth_gbps * 1e9
    }
}

/// The table that comes with the program.
static KNOWN: LazyLock<DeviceTable> = LazyLock::new(|| {
    DeviceTable::from_toml(include_str!("../devices.toml")).expect("the tests read this table")
});

impl DeviceTable {
    /// Reads a table from TOML.
    ///
    /// # Errors
    /// When it is no such table, a rate is not above nought, or a name is there twice.
    pub fn from_toml(text: &str) -> Result<Self> {
        let wrong = |message: String| Error::new(ErrorKind::Usage, message);
        let table: Self = toml::from_str(text).map_err(|error| {
            let lines: Vec<&str> = error.message().lines().collect();
            wrong(format!("no table of devices: {}", lines.join(" ")))
        })?;
        let mut names = BTreeSet::new();
        for device in &table.device {
            let rates = device.matrix.all().chain(device.vector.all());
            let others = device.memory_gb.into_iter().chain([device.bandwidth_gbps]);
            if let Some(rate) = rates
                .chain(others)
                .find(|rate| !rate.is_finite() || *rate <= 0.0)
            {
                return Err(wrong(format!("{rate} is no rate ({:?})", device.names)));
            }
            for name in &device.names {
                if !names.insert(normal(name)) {
                    return Err(wrong(format!("the device '{name}' is there twice")));
                }
            }
        }
        Ok(table)
    }

    fn find(&self, name: &str) -> Option<&Device> {
        let name = normal(name);
        let is = |own: &String| !name.is_empty() && normal(own) == name;
        self.device
            .iter()
            .find(|device| device.names.iter().any(is))
    }
}

/// The device called `name`, from the user's table or else ours.
pub(super) fn device_called<'a>(name: &str, user: Option<&'a DeviceTable>) -> Option<&'a Device> {
    user.and_then(|table| table.find(name))
        .or_else(|| KNOWN.find(name))
}

/// The names of the devices of a trace.
pub(super) struct Names<'a> {
    /// By number, of the first entry with it.
    own: BTreeMap<i64, Option<&'a str>>,
    /// The one that all have.
    of_all: Option<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(metadata: &'a Metadata) -> Self {
        let mut own = BTreeMap::new();
        let mut names = metadata.devices.iter().map(|device| device.name.as_deref());
        let first = names.next().flatten();
        let same = names.all(|name| name == first);
        for device in &metadata.devices {
            if let Some(id) = device.id {
                own.entry(id).or_insert(device.name.as_deref());
            }
        }
        Self {
            own,
            of_all: first.filter(|_| same),
        }
    }

    /// The name of device number `index`: its own, or the one that all devices have.
    pub(super) fn of(&self, index: i64) -> Option<&'a str> {
        let name = self.own.get(&index).copied().unwrap_or(self.of_all);
        name.filter(|name| !name.trim().is_empty())
    }
}

/// A name without vendor words, case and punctuation.
fn normal(name: &str) -> String {
    const VENDORS: [&str; 5] = ["nvidia", "amd", "tesla", "geforce", "instinct"];
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter(|word| !VENDORS.contains(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DeviceProperties;

    fn peak(name: &str, engine: Engine, precision: Precision) -> Option<f64> {
        device_called(name, None)?.peak(engine, precision)
    }

    #[test]
    fn every_device_has_a_source_and_its_own_names() {
        assert!(KNOWN.device.len() >= 15);
        for device in &KNOWN.device {
            assert!(!device.source.is_empty() && !device.names.is_empty());
            assert!(device.theoretical && device.memory_gb.is_some());
            assert!(
                device.peak(Engine::Vector, Precision::Fp32).is_some(),
                "{:?}",
                device.names
            );
            // The ridge of half precision lies between 50 and 400 operations a byte on all of them.
            let half = device.peak(Engine::Matrix, Precision::Fp16).unwrap();
            let ridge = half / device.bandwidth();
            assert!(
                (50.0..450.0).contains(&ridge),
                "{:?}: {ridge}",
                device.names
            );
        }
    }

    #[test]
    fn names_are_matched_without_vendor_words_but_whole() {
        let bf16 = |name| peak(name, Engine::Matrix, Precision::Bf16);
        assert_eq!(bf16("NVIDIA A100-SXM4-80GB"), Some(312e12));
        assert_eq!(bf16("A100-SXM4-80GB"), Some(312e12));
        assert_eq!(bf16("NVIDIA H100 80GB HBM3"), Some(989.4e12));
        assert_eq!(bf16("AMD Instinct MI300X VF"), Some(1307.4e12));
        for unknown in [
            "",
            "NVIDIA",
            "NVIDIA H100",
            "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
            "AMD Radeon Graphics",
        ] {
            assert_eq!(bf16(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn rates_depend_on_units_and_types() {
        let a100 = |engine, precision| peak("NVIDIA A100-SXM4-40GB", engine, precision);
        // Without TF32, products of floats run outside the matrix units.
        assert_eq!(a100(Engine::Matrix, Precision::Fp32), Some(19.5e12));
        assert_eq!(a100(Engine::Matrix, Precision::Tf32), Some(156e12));
        assert_eq!(a100(Engine::Vector, Precision::Bf16), Some(19.5e12));
        assert_eq!(a100(Engine::Vector, Precision::Int8), None);
        assert_eq!(a100(Engine::Matrix, Precision::Fp8), None);
        let mi300x = peak("AMD Instinct MI300X", Engine::Matrix, Precision::Fp32);
        assert_eq!(mi300x, Some(163.4e12));
    }

    #[test]
    fn the_users_table_comes_first() {
        let text = "[[device]]\nnames = ['NVIDIA H100', 'A100-SXM4-40GB']\nsource = 'measured here'\n\
            bandwidth_gbps = 1400\nmatrix = { bf16 = 250 }\ntheoretical = false\n";
        let own = DeviceTable::from_toml(text).unwrap();
        let found = device_called("NVIDIA A100-SXM4-40GB", Some(&own)).unwrap();
        assert!(!found.theoretical);
        assert_eq!(found.peak(Engine::Matrix, Precision::Bf16), Some(250e12));
        assert!(device_called("NVIDIA H100", Some(&own)).is_some());
        assert!(device_called("NVIDIA H200", Some(&own)).is_some());
        for bad in [
            "x",
            "[[device]]\nnames = ['a']\nsource = ''\n",
            "[[device]]\nnames = ['a']\nsource = ''\nbandwidth_gbps = 0\n",
            "[[device]]\nnames = ['a', 'A']\nsource = ''\nbandwidth_gbps = 1\n",
            "[[device]]\nnames = ['a']\nsource = ''\nbandwidth_gbps = 1\nmatrix = { fp9 = 1 }\n",
        ] {
            let error = DeviceTable::from_toml(bad).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_device_without_an_own_entry_has_the_name_of_all() {
        let of = |id, name: &str| DeviceProperties {
            id: Some(id),
            name: Some(name.to_owned()),
        };
        let mut metadata = Metadata {
            devices: vec![of(0, "a"), of(1, "a")],
            ..Metadata::default()
        };
        assert_eq!(Names::new(&metadata).of(7), Some("a"));
        metadata.devices.push(of(2, "b"));
        let names = Names::new(&metadata);
        assert_eq!((names.of(7), names.of(2)), (None, Some("b")));
    }
}
