//! Traces without secrets: nothing of them is left, and the numbers stay.

use serde_json::Value;
use tracekit::rewrite::{RedactOptions, redact};

use crate::rewrite::{assert_json, golden, numbers, readable, redacted, same};

#[test]
fn a_redacted_trace_says_the_same() {
    for (path, bytes) in readable() {
        let name = path.display().to_string();
        let (_, out) = redacted(&bytes).expect(&name);
        assert_json(&out);
        same(&name, &numbers(&bytes), &numbers(&out));
        let (_, twice) = redacted(&out).expect(&name);
        assert_eq!(
            String::from_utf8_lossy(&twice),
            String::from_utf8_lossy(&out),
            "{name} changes again"
        );
    }
}

#[test]
fn evidence_by_stack_survives_redaction() {
    for case in ["checkpoint-stack", "checkpoint-stack-nested"] {
        let text = String::from_utf8(golden(case)).unwrap();
        let installed = "/home/alice/.venv/lib/python3.11/site-packages/torch/utils/checkpoint.py";
        let text = text.replace("torch/utils/checkpoint.py", installed);
        let (_, out) = redacted(text.as_bytes()).unwrap();
        same(case, &numbers(text.as_bytes()), &numbers(&out));
        assert_ne!(
            numbers(&out)["recompute"]["by_evidence"]["stack"],
            Value::Null,
            "{case}"
        );
        assert!(!String::from_utf8(out).unwrap().contains("alice"), "{case}");
    }
}

#[test]
fn nothing_secret_is_left() {
    let secrets = [
        "alice",
        "gpu-box-7",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEF12",
        "hunter2",
        "wd-0123456789abcdef",
        "10.1.2.3",
        "a.b@example.org",
        "acme",
        "S3cret",
        "corp.example",
    ];
    let text = r#"{
        "schemaVersion": 1,
        "username": "alice",
        "host_name": "gpu-box-7.corp.example",
        "job": {"env": {"HOME": "/home/alice", "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyzABCDEF12", "X": 1,
                        "NCCL_DEBUG": "INFO", "CUDA_HOME": "/opt/acme/cuda", "LIST": ["acme=1"]}},
        "variables": ["PATH=/opt/acme/bin", "HOME=/home/alice", "USER=alice", "OTHER=S3cret"],
        "argv": ["train.py", "--api-key", "wd-0123456789abcdef", "--lr", "0.1"],
        "owner": {"name": "S3cret", "id": 7},
        "dump": "PATH=/opt/acme/bin\nHOME=/home/alice\nSHELL=S3cret",
        "config": {"db": {"password": "hunter2"}, "wandb_api_key": "wd-0123456789abcdef", "lr": 0.1},
        "command": "python /srv/acme/train.py --token=wd-0123456789abcdef --mail a.b@example.org",
        "master": "tcp://10.1.2.3:29500 and 10.1.2.3",
        "traceEvents": [
            {"ph":"M","name":"process_name","pid":1,"args":{"name":"python alice@gpu-box-7"}},
            {"ph":"X","cat":"python_function","name":"/home/alice/acme model/train.py(12): main","pid":1,"tid":1,"ts":1,"dur":9},
            {"ph":"X","cat":"python_function","name":"\/home\/alice\/x.py(1): f","pid":1,"tid":1,"ts":1,"dur":9},
            {"ph":"X","cat":"user_annotation","name":"run of alice on \u0067pu-box-7","pid":1,"tid":1,"ts":1,"dur":9},
            {"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":2,"dur":1,
             "args":{"Call stack":"/srv/acme/a.py(1): f;/home/alice/b.py(2): g","password":"hunter2","Input Dims":[[1]]}},
            {"ph":"X","cat":"kernel","name":"void add<float, 4>(float*)","pid":0,"tid":7,"ts":3,"dur":1}
        ],
        "traceName": "./log/gpu-box-7_4711.1700000000.pt.trace.json"
    }"#;
    let (done, out) = redacted(text.as_bytes()).unwrap();
    assert_json(&out);
    let out = String::from_utf8(out).unwrap();
    for secret in secrets {
        assert!(!out.contains(secret), "{secret} is left in {out}");
    }
    for kept in [
        "\"NCCL_DEBUG\": \"INFO\"",
        "aten::add",
        "void add<float, 4>(float*)",
        "\"lr\": 0.1",
        "[[1]]",
        ".py(12): main",
        "\"LIST\": [\"[removed]\"]",
        "\"OTHER=[removed]\"",
    ] {
        assert!(out.contains(kept), "{kept} is gone from {out}");
    }
    assert!(done.removed >= 7, "{}", done.removed);
    let map = done.pseudonyms.to_json();
    assert!(
        map.contains("alice") && !map.contains("hunter2") && !map.contains("hf_abc"),
        "{map}"
    );

    let mut options = RedactOptions::default();
    options.keep_names = true;
    let mut kept = Vec::new();
    redact(text.as_bytes(), &mut kept, &options, &|_, _| {}).unwrap();
    let kept = String::from_utf8(kept).unwrap();
    assert!(
        kept.contains("/home/alice/acme model/train.py(12): main"),
        "{kept}"
    );
    assert!(
        !kept.contains("hunter2") && !kept.contains("/srv/acme"),
        "{kept}"
    );
}

#[test]
fn one_map_gives_one_replacement_across_files() {
    let file = |name: &str| {
        format!(r#"[{{"ph":"X","name":"{name}","ts":1,"dur":1,"cat":"user_annotation"}}]"#)
    };
    let mut options = RedactOptions::default();
    let mut write = |text: String| {
        let mut out = Vec::new();
        let done = redact(text.as_bytes(), &mut out, &options, &|_, _| {}).unwrap();
        options.pseudonyms = done.pseudonyms;
        String::from_utf8(out).unwrap()
    };
    assert_eq!(write(file("/a/b and /c/d")), file("[path-1] and [path-2]"));
    assert_eq!(
        write(file("/c/d or /home/bob/e")),
        file("[path-2] or [path-3]")
    );
    // Who is known from one file is found in others.
    assert_eq!(write(file("x /a/b")), file("x [path-1]"));
}
