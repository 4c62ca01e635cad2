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

/// The redacted form of `text`, known to be JSON that changes no more.
fn clean(text: &str) -> String {
    let (_, out) = redacted(text.as_bytes()).expect(text);
    assert_json(&out);
    let (_, twice) = redacted(&out).expect(text);
    let out = String::from_utf8(out).unwrap();
    assert_eq!(String::from_utf8(twice).unwrap(), out, "changes again");
    out
}

/// A trace with such top-level members and such arguments of an event.
fn trace(members: &str, args: &str) -> String {
    let comma = if members.is_empty() { "" } else { ", " };
    format!(
        r#"{{{members}{comma}"traceEvents": [
        {{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":1,"dur":5}},
        {{"ph":"X","cat":"user_annotation","name":"x","pid":1,"tid":1,"ts":2,"dur":1,"args":{{{args}}}}}]}}"#
    )
}

fn assert_none_left(out: &str, secrets: &[&str]) {
    for secret in secrets {
        let is_left = out.to_lowercase().contains(&secret.to_lowercase());
        assert!(!is_left, "{secret} is left in {out}");
    }
}

fn assert_kept(out: &str, kept: &[&str]) {
    for text in kept {
        assert!(out.contains(text), "{text} is gone from {out}");
    }
}

#[test]
fn top_level_keys_are_redacted_as_others_are() {
    let members = r#""hf_abcdefghijklmnopqrstuvwxyzABCDEF12":1,"/home/alicesmith/cfg.yaml":{},
        "username":"alicesmith","alicesmith":{},"\u0061licesmith":{},"AliceSmith":2,"plain":3,
        "[user-1]_2":4"#;
    let out = clean(&trace(
        members,
        r#""alicesmith":3,"/home/alicesmith/cfg.yaml":1"#,
    ));
    assert_none_left(&out, &["hf_abc", "alicesmith"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    // Keys that become alike are told apart: none hides another.
    let mut want = [
        "[token-1]",
        "[path-1].yaml",
        "username",
        "[user-1]",
        "[user-1]_2",
        "[user-1]_2_2",
        "plain",
        "traceEvents",
        "tracekit_repair",
    ];
    want.sort_unstable();
    let mut keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, want);
    let args = &document["traceEvents"][1]["args"];
    assert_eq!(
        *args,
        serde_json::json!({"[user-1]": 3, "[path-1].yaml": 1})
    );
    // Whatever stands in front of the event array stays in front of it.
    assert_eq!(
        numbers(trace(members, "").as_bytes())["totals"],
        numbers(out.as_bytes())["totals"]
    );
}

#[test]
fn arguments_of_events_lose_environments_users_and_hosts() {
    let args = r#""env":{"PATH":"/usr/bin","HOME":"/home/alicesmith","MYVAR":"s3cr3tvalue","HOSTNAME":"zeus-box-17","NCCL_DEBUG":"INFO"},
        "hostname":"hera-box-18.corp.example","user":"bobjones","stream":7,"device":0,
        "info":{"SHELL":"/bin/zsh9","LANG":"xx_YY","TERM":"qterm","OTHER":"0ther","N":5},
        "user_data":{"login":"CORP\\carlxyz"}"#;
    let event = r#"{"ph":"X","cat":"python_function","name":"Bobjones on zeus-box-17, hera-box-18 for carlxyz","pid":1,"tid":1,"ts":3,"dur":1}"#;
    let text = trace(r#""BobJones": "x""#, args).replace("]}", &format!(",{event}]}}"));
    let out = clean(&text);
    assert_none_left(
        &out,
        &[
            "s3cr3t",
            "alicesmith",
            "zeus",
            "hera",
            "bobjones",
            "zsh9",
            "xx_YY",
            "qterm",
            "0ther",
            "carlxyz",
            "corp.example",
        ],
    );
    assert_kept(
        &out,
        &[r#""stream":7"#, r#""device":0"#, r#""NCCL_DEBUG":"INFO""#],
    );
    same(
        "events",
        &numbers(text.as_bytes()),
        &numbers(out.as_bytes()),
    );
}

#[test]
fn arguments_that_are_variables_keep_what_analysis_needs() {
    let kernel = r#"{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":1,"args":{"correlation":5}},
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":9,"dur":2,"args":{"PATH":"/usr/x","HOME":"/home/y","USER":"alicesmith","MYVAR":"s3cret","stream":7,"device":0,"correlation":5}},
        {"ph":"X","cat":"kernel","name":"k2","pid":0,"tid":7,"ts":12,"dur":2,"args":{"\u0050ATH":"/usr/x","\u0048OME":"/home/y","\u0055SER":"alicesmith","MYVAR":"s3cret","stream":7,"device":0,"correlation":5}}"#;
    for text in [
        format!("[{kernel}]"),
        format!("{{\"traceEvents\":[{kernel}]}}"),
    ] {
        let out = clean(&text);
        assert_none_left(&out, &["s3cret", "alicesmith"]);
        same("mixed", &numbers(text.as_bytes()), &numbers(out.as_bytes()));
    }
    // Also as members of the document.
    let text = trace(
        r#""PATH":"/usr/x","HOME":"/x","SHELL":"zsh9","MYVAR":"s3cret","INFO":["kept"],"lr":"0.1""#,
        "",
    );
    let out = clean(&text);
    assert_none_left(&out, &["s3cret", "zsh9"]);
    assert_kept(&out, &[r#""INFO":["kept"]"#, r#""lr":"0.1""#]);
}

#[test]
fn users_called_like_what_traces_need_change_no_number() {
    let words = [
        "stream",
        "External id",
        "correlation",
        "traceEvents",
        "Process Group Name",
        "forward",
        "ProfilerStep",
        "checkpoint",
        "nccl",
        "Sequence",
        "kernel",
        "distributedInfo",
        "token",
        "path",
        "user",
        "phase",
        "cudaLaunchKernel",
        "aten",
        "NcclAllReduce",
        "default_pg",
    ];
    for case in ["checkpoint-stack", "two-steps", "checkpoint-non-reentrant"] {
        let golden = String::from_utf8(golden(case)).unwrap();
        for word in words {
            let text = golden.replacen(
                '{',
                &format!("{{\"username\":\"{word}\",\"hostname\":\"{word}\","),
                1,
            );
            let out = clean(&text);
            same(word, &numbers(text.as_bytes()), &numbers(out.as_bytes()));
        }
    }
}

#[test]
fn secrets_are_found_by_the_shape_of_key_or_value() {
    let members = r#""config":{"PGPASSWORD":"x1secret","MYSQL_PWD":"x2secret","dbpassword":"x3secret",
        "accesstoken":"x4secret","secretkey":"x5secret","passwords":["x6secret"],"tokens":["x7secret"],
        "wandb_key":"x8secret","secrets":{"db":"x9secret","n":{"a":["xasecret"]}},
        "credentials":{"value":"xbsecret"},"api_key":"abc$123!xyz","cookie":"sid=ab12; x=1",
        "token":123456789012,"password":"[x]hunter2","pin":{"password":4711},
        "num_tokens":123456789012,"tokens_per_second":123.5,"max_tokens":4096,"total_tokens":15000000000,
        "token_ids":[1,2],"tokenizer":"gpt2-medium-words","eos_token":"</s>","pad_token":"<pad>",
        "cache_key":"0123456789abcdef","usage":{"tokens":123456789012,"prompt_tokens":7}},
        "command":"train password = 'correct horse battery staple' --user-name x"#;
    let members = format!("{members}\"");
    let args = r#""note":"postgres://dbuser1:pw12345@db.corp.example/x and root1:pw67890@zeusdb9 alicesmith@zeus-box-17",
        "load":"load C:\\Users\\Alice Smith\\secretproj\\x.py now","password":"x0secret"#;
    let out = clean(&trace(&members, &format!("{args}\"")));
    assert_none_left(
        &out,
        &[
            "secret\"",
            "abc$123",
            "sid=ab12",
            "\"token\":123456789012",
            "hunter2",
            "4711",
            "correct",
            "battery",
            "staple",
            "pw12345",
            "pw67890",
            "dbuser1",
            "zeus",
            "alice",
            "Smith",
            "secretproj",
            "corp.example",
        ],
    );
    assert_kept(
        &out,
        &[
            r#""num_tokens":123456789012"#,
            r#""tokens_per_second":123.5"#,
            r#""max_tokens":4096"#,
            r#""total_tokens":15000000000"#,
            r#""token_ids":[1,2]"#,
            r#""tokenizer":"gpt2-medium-words""#,
            r#""eos_token":"</s>""#,
            r#""pad_token":"<pad>""#,
            r#""cache_key":"0123456789abcdef""#,
            r#""tokens":123456789012"#,
            r#""prompt_tokens":7"#,
            ".py now",
        ],
    );
}

#[test]
fn environments_are_found_in_every_form() {
    let base64 = "UEFUSD0vdXNyL2JpbgpIT01FPS9ob21lL2FsaWNlc21pdGgKVVNFUj1hbGljZXNtaXRoCk1ZVkFSPXMzY3IzdHZhbHVlCg==";
    for dump in [
        r#""{\"PATH\": \"/usr/bin\", \"HOME\": \"/x\", \"SHELL\": \"zsh\", \"MYVAR\": \"s3cr3tvalue\"}""#,
        r#""environ({'PATH': '/usr/bin', 'HOME': '/x', 'SHELL': 'zsh', 'MYVAR': 's3cr3tvalue'})""#,
        r#""PATH=/usr/bin; HOME=/x; SHELL=zsh; MYVAR=s3cr3tvalue""#,
        r#""PATH=/usr/bin\u0000HOME=/x\u0000SHELL=zsh\u0000MYVAR=s3cr3tvalue\u0000""#,
        r#"[{"name":"PATH","value":"/usr/bin"},{"name":"HOME","value":"/x"},{"name":"SHELL","value":"zsh"},{"name":"MYVAR","value":"s3cr3tvalue"},{"name":"NCCL_DEBUG","value":"INFO"}]"#,
        r#"[["PATH","/usr/bin"],["HOME","/x"],["SHELL","zsh"],["MYVAR","s3cr3tvalue"]]"#,
        r#"["PATH=/usr/bin","HOME=/x","SHELL=zsh","MYVAR=s3cr3tvalue"]"#,
        &format!("\"{base64}\""),
    ] {
        for text in [
            trace(&format!("\"x\":{dump}"), ""),
            trace("", &format!("\"x\":{dump}")),
        ] {
            let out = clean(&text);
            assert_none_left(&out, &["s3cr3t", "zsh", &base64[60..80]]);
            assert_eq!(dump.contains("NCCL"), out.contains("INFO"), "{out}");
        }
    }
}

#[test]
fn there_may_be_any_number_of_users() {
    let users: Vec<String> = (0..3000).map(|number| format!("person{number}x")).collect();
    let members: Vec<String> = users
        .iter()
        .map(|user| format!("{{\"username\":\"{user}\"}}"))
        .collect();
    let events: Vec<String> = users
        .iter()
        .map(|user| {
            format!(r#"{{"ph":"X","cat":"user_annotation","name":"of {user}","ts":1,"dur":1}}"#)
        })
        .collect();
    let text = format!(
        "{{\"x\":[{}],\"traceEvents\":[{}]}}",
        members.join(","),
        events.join(",")
    );
    assert_none_left(&clean(&text), &["person"]);
}
