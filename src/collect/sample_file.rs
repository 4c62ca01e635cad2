//! NVML samples beside spools that are kept, for when traces are made of those later.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::nvml::{NvmlDevice, Sample, Samples};
use crate::error::{Error, ErrorKind, Result};
use crate::model::CounterKind;

/// The file in the folder of spools.
pub(super) const NAME: &str = "counters.json";

#[derive(Serialize, Deserialize)]
struct Saved {
    /// Index, name and UUID.
    devices: Vec<(u32, String, String)>,
    /// Time, device, kind and value.
    values: Vec<(u64, u32, String, u64)>,
}

/// Writes `samples` into `folder`.
pub(super) fn save(folder: &Path, samples: &Samples) -> Result<()> {
    let path = folder.join(NAME);
    let devices = samples.devices.iter();
    let values = samples.values.iter();
    let saved = Saved {
        devices: devices
            .map(|it| (it.index, it.name.clone(), it.uuid.clone()))
            .collect(),
        values: values
            .map(|it| (it.time, it.device, it.kind.name().to_owned(), it.value))
            .collect(),
    };
    let failed = |error| Error::io(&path, error);
    let text = serde_json::to_vec(&saved).map_err(|error| failed(error.into()))?;
    let temporary = folder.join(format!(".{NAME}.tmp"));
    let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &path));
    written.map_err(|error| {
        // The failure to tell is the first one.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

/// Reads what is in `folder`; none where there is no such file.
pub(super) fn load(folder: &Path) -> Result<Samples> {
    let path = folder.join(NAME);
    if !path.exists() {
        return Ok(Samples::default());
    }
    let text = fs::read(&path).map_err(|error| Error::io(&path, error))?;
    let saved: Saved = serde_json::from_slice(&text)
        .map_err(|error| Error::new(ErrorKind::Json, error.to_string()).in_file(&path))?;
    let devices = saved.devices.into_iter();
    let values = saved.values.into_iter();
    Ok(Samples {
        devices: devices
            .map(|(index, name, uuid)| NvmlDevice { index, name, uuid })
            .collect(),
        values: values
            .filter_map(|(time, device, kind, value)| {
                let kind = CounterKind::from_name(&kind)?;
                Some(Sample {
                    time,
                    device,
                    kind,
                    value,
                })
            })
            .collect(),
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()).unwrap(), Samples::default());
        let sample = |kind, value| Sample {
            time: u64::MAX,
            device: 3,
            kind,
            value,
        };
        let samples = Samples {
            devices: vec![NvmlDevice {
                index: 3,
                name: "a \"GPU\"".to_owned(),
                uuid: "GPU-0".to_owned(),
            }],
            values: CounterKind::ALL
                .into_iter()
                .map(|kind| sample(kind, 7))
                .collect(),
            notes: Vec::new(),
        };
        save(folder.path(), &samples).unwrap();
        assert_eq!(load(folder.path()).unwrap(), samples);
        fs::write(folder.path().join(NAME), "{").unwrap();
        let error = load(folder.path()).unwrap_err().to_string();
        assert!(error.contains(NAME), "{error}");
    }
}
