//! The fields that every record tells an experiment and its metrics by.

use super::json::{Json, object};

/// The configuration of an experiment under its standard names; what is not there is `null`.
pub fn standard_experiment_config(config: &Json) -> Json {
    let backend = config.get("backend").cloned();
    object! {
        "model" => config.first(&["model", "model_id"]),
        "backend" => backend.unwrap_or_else(|| "torch".into()),
        "dtype" => config.first(&["dtype", "amp_dtype"]),
        "optimizer" => config.at(&["optimizer"]),
        "batch_size" => config.at(&["batch_size"]),
        "seq_len" => config.at(&["seq_len"]),
        "warmup" => config.at(&["warmup"]),
        "iters" => config.at(&["iters"]),
        "seed" => config.at(&["seed"]),
        "device" => config.at(&["device"]),
        "torch" => config.at(&["torch"]),
        "cuda" => config.first(&["cuda", "torch_cuda"]),
        "workload" => config.at(&["workload"]),
    }
}

/// The metrics of a candidate under their standard names; what is not there is `null`.
pub fn standard_training_metrics(candidate: &Json) -> Json {
    let status = candidate.get("status").cloned();
    object! {
        "step_time_ms" => candidate.at(&["step_time_ms"]),
        "throughput_samples_per_s" => candidate.first(&["throughput_samples_per_s", "samples_per_s"]),
        "peak_memory_mb" => candidate.first(&["peak_memory_mb", "peak_mem_mb"]),
        "peak_reserved_mb" => candidate.at(&["peak_reserved_mb"]),
        "loss" => candidate.at(&["loss"]),
        "eval_loss" => candidate.first(&["eval_loss", "val_loss"]),
        "status" => status.unwrap_or_else(|| "ok".into()),
    }
}
