//! Whether a machine can measure: Python, packages, a GPU. Looks and never installs.

use std::process::Command;

use crate::gate::{Json, object, round};

/// What a measurement needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requirements {
    /// Packages that must be there.
    pub required_packages: Vec<String>,
    /// Packages that are good to have.
    pub optional_packages: Vec<String>,
    /// There must be a GPU.
    pub require_gpu: bool,
    /// Least memory of the GPU, GiB.
    pub min_gpu_memory_gb: Option<f64>,
    /// The GPU must compute in bfloat16.
    pub require_native_bf16: bool,
    /// Where the result would be written.
    pub output_path: Option<String>,
}

/// What a machine has; `None` where that is not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuntimeFacts {
    /// Version of Python; `None` without one.
    pub python: Option<String>,
    /// The system.
    pub platform: Option<String>,
    /// Version of PyTorch.
    pub torch: Option<String>,
    /// Version of CUDA that PyTorch was built for.
    pub torch_cuda: Option<String>,
    /// PyTorch can use a GPU.
    pub cuda_available: bool,
    /// Name of the GPU.
    pub device: Option<String>,
    /// Compute capability of the GPU, such as `12.0`.
    pub device_capability: Option<String>,
    /// Memory of the GPU, GiB.
    pub gpu_memory_gb: Option<f64>,
    /// The GPU computes in bfloat16.
    pub native_bf16: Option<bool>,
    /// Which packages are there.
    pub packages: Vec<String>,
}

/// Whether a machine with these facts fits: `ok`, `warning` or `blocked`, with reasons and what to do.
///
/// Any reason blocks when a GPU, bfloat16 or a package that is missing is required, and warns otherwise.
pub fn environment_preflight(facts: &RuntimeFacts, wanted: &Requirements) -> Json {
    let has = |package: &&String| facts.packages.contains(package);
    let missing: Vec<String> = wanted
        .required_packages
        .iter()
        .filter(|package| !has(package))
        .cloned()
        .collect();
    let no_memory = wanted
        .min_gpu_memory_gb
        .is_some_and(|least| facts.gpu_memory_gb.is_none_or(|memory| memory < least));
    let optional_missing = wanted
        .optional_packages
        .iter()
        .any(|package| !has(&package));
    let checks = [
        (
            !missing.is_empty(),
            "required_packages_missing",
            "install_required_packages",
        ),
        (
            wanted.require_gpu && !facts.cuda_available,
            "gpu_required_but_unavailable",
            "run_on_a_machine_with_a_gpu",
        ),
        (
            no_memory,
            "gpu_memory_below_minimum",
            "use_a_larger_gpu_or_a_smaller_workload",
        ),
        (
            wanted.require_native_bf16 && facts.native_bf16 != Some(true),
            "native_bf16_unsupported",
            "use_another_dtype_or_gpu",
        ),
        (
            optional_missing,
            "optional_packages_missing",
            "install_optional_packages_if_needed",
        ),
    ];
    let failed: Vec<&(bool, &str, &str)> = checks.iter().filter(|(fails, ..)| *fails).collect();
    let strict = wanted.require_gpu || !missing.is_empty() || wanted.require_native_bf16;
    let status = match (failed.is_empty(), strict) {
        (true, _) => "ok",
        (false, true) => "blocked",
        (false, false) => "warning",
    };
    let packages = |names: &[String]| {
        let mut found = Json::object();
        for name in names {
            found.set(name.as_str(), has(&name));
        }
        found
    };
    object! {
        "status" => status,
        "ready" => status != "blocked",
        "runtime" => object! {
            "python" => facts.python.clone(),
            "platform" => facts.platform.clone(),
            "torch" => facts.torch.clone(),
            "torch_cuda" => facts.torch_cuda.clone(),
            "cuda_available" => facts.cuda_available,
            "device" => facts.device.clone(),
            "device_capability" => facts.device_capability.clone(),
        },
        "gpu_memory_gb" => facts.gpu_memory_gb.map(|memory| round(memory, 2)),
        "native_bf16_supported" => facts.native_bf16,
        "packages" => object! {
            "required" => packages(&wanted.required_packages),
            "optional" => packages(&wanted.optional_packages),
        },
        "required_packages_missing" => missing,
        "reasons" => failed.iter().map(|(_, reason, _)| *reason).collect::<Vec<_>>(),
        "next_actions" => failed.iter().map(|(.., action)| *action).collect::<Vec<_>>(),
        "result_path" => wanted.output_path.clone(),
    }
}

/// Asks Python what is there, in one line of JSON. Finding a package does not import it, but for PyTorch.
const PROBE: &str = "
import importlib.util, json, platform, sys
facts = {'python': platform.python_version(), 'platform': platform.platform(), 'packages': []}
for name in sys.argv[1:]:
    try:
        if importlib.util.find_spec(name) is not None:
            facts['packages'].append(name)
    except (ImportError, ValueError):
        pass
try:
    import torch
    facts['torch'] = str(torch.__version__)
    facts['torch_cuda'] = torch.version.cuda
    facts['cuda_available'] = bool(torch.cuda.is_available())
    if facts['cuda_available']:
        properties = torch.cuda.get_device_properties(0)
        facts['device'] = properties.name
        facts['device_capability'] = '%d.%d' % (properties.major, properties.minor)
        facts['gpu_memory_gb'] = properties.total_memory / 1024 ** 3
        facts['native_bf16'] = properties.major >= 8
except Exception:
    pass
print(json.dumps(facts))
";

/// What the machine has by the Python at `python`; nothing when that cannot be run.
pub fn probe_runtime(python: &str, packages: &[String]) -> RuntimeFacts {
    let output = Command::new(python)
        .args(["-c", PROBE])
        .args(packages)
        .output();
    let text = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let facts = text.and_then(|text| Json::parse(text.lines().last()?).ok());
    let facts = facts.unwrap_or_else(Json::object);
    let text = |key: &str| facts.at(&[key]).as_str().map(str::to_owned);
    let native_bf16 = match facts.at(&["native_bf16"]) {
        Json::Bool(native) => Some(*native),
        _ => None,
    };
    RuntimeFacts {
        python: text("python"),
        platform: text("platform"),
        torch: text("torch"),
        torch_cuda: text("torch_cuda"),
        cuda_available: facts.at(&["cuda_available"]).is_true(),
        device: text("device"),
        device_capability: text("device_capability"),
        gpu_memory_gb: facts.at(&["gpu_memory_gb"]).as_f64(),
        native_bf16,
        packages: facts
            .at(&["packages"])
            .items()
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(facts: &RuntimeFacts, wanted: &Requirements) -> (String, Vec<String>) {
        let report = environment_preflight(facts, wanted);
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        let reasons = report.at(&["reasons"]).items().iter().map(text).collect();
        assert_eq!(
            report.at(&["reasons"]).items().len(),
            report.at(&["next_actions"]).items().len()
        );
        (text(report.at(&["status"])), reasons)
    }

    #[test]
    fn a_machine_without_a_gpu() {
        let facts = RuntimeFacts::default();
        let plain = Requirements::default();
        assert_eq!(status(&facts, &plain).0, "ok");
        let gpu = Requirements {
            require_gpu: true,
            ..plain.clone()
        };
        let (found, reasons) = status(&facts, &gpu);
        assert_eq!(
            (found.as_str(), reasons),
            ("blocked", vec!["gpu_required_but_unavailable".to_owned()])
        );
        let large = Requirements {
            min_gpu_memory_gb: Some(8.0),
            ..plain.clone()
        };
        assert_eq!(status(&facts, &large).0, "warning");
        let packages = Requirements {
            required_packages: vec!["torch".to_owned()],
            ..plain
        };
        assert_eq!(status(&facts, &packages).0, "blocked");
    }

    #[test]
    fn a_machine_with_everything() {
        let facts = RuntimeFacts {
            cuda_available: true,
            gpu_memory_gb: Some(11.94),
            native_bf16: Some(true),
            packages: vec!["torch".to_owned()],
            ..RuntimeFacts::default()
        };
        let mut wanted = Requirements {
            required_packages: vec!["torch".to_owned()],
            optional_packages: vec!["transformers".to_owned()],
            require_gpu: false,
            min_gpu_memory_gb: Some(8.0),
            require_native_bf16: false,
            output_path: None,
        };
        assert_eq!(status(&facts, &wanted).0, "warning");
        wanted.optional_packages.clear();
        wanted.require_gpu = true;
        wanted.require_native_bf16 = true;
        assert_eq!(status(&facts, &wanted).0, "ok");
    }
}
