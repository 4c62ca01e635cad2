//! What becomes of strings, by example.

use super::*;

fn rules() -> Rules {
    let mut names = Names::default();
    names.add(Subject::User, "alice");
    names.add(Subject::Host, "gpu-box-7");
    Rules::new(names, Pseudonyms::default())
}

fn redacted(text: &str, context: Context) -> String {
    let (replaced, ..) = rules().apply(text, context);
    replaced.unwrap_or_else(|| text.to_owned())
}

#[test]
fn secrets_go_wherever_they_stand() {
    let github = format!("ghp_{}", "a1".repeat(18));
    let jwt = format!(
        "eyJ{}.{}.{}",
        "a".repeat(20),
        "b".repeat(20),
        "c".repeat(20)
    );
    for (text, expected) in [
        (format!("x {github} y"), "x [token-1] y"),
        (format!("key=AKIA{}", "A1".repeat(8)), "key=[token-1]"),
        (format!("hf_{}", "Ab".repeat(17)), "[token-1]"),
        (format!("sk-proj-{}", "Ab1_".repeat(8)), "[token-1]"),
        (jwt, "[token-1]"),
        (
            "Authorization: Bearer abcdef123456".to_owned(),
            "Authorization: Bearer [token-1]",
        ),
        (
            "--password hunter2 --lr 0.1".to_owned(),
            "--password [token-1] --lr 0.1",
        ),
        (
            "DB_PASSWORD='hunter2'".to_owned(),
            "DB_PASSWORD='[token-1]'",
        ),
        (
            "{\"WANDB_API_KEY\": \"0123456789abcdef\"}".to_owned(),
            "{\"WANDB_API_KEY\": \"[token-1]\"}",
        ),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nxyz\n-----END RSA PRIVATE KEY----- b".to_owned(),
            "a [token-1] b",
        ),
    ] {
        assert_eq!(redacted(&text, Context::Text), expected, "{text}");
    }
    for text in [
        "max_tokens=4096",
        "token::type",
        "eos_token: </s>",
        "password=None",
        "tokens per second",
        "the secret life of models",
        "risk-adjusted-returns-of-2024-models",
    ] {
        assert_eq!(redacted(text, Context::Text), text);
    }
}

#[test]
fn paths_go_and_what_every_machine_has_stays() {
    for (text, expected) in [
        (
            "/home/alice/proj/train.py(12): main",
            "[path-1].py(12): main",
        ),
        (
            "/home/alice/my proj/train.py(12): main",
            "[path-1].py(12): main",
        ),
        (
            "/home/alice/.venv/lib/python3.11/site-packages/torch/utils/checkpoint.py(1116): recompute_fn",
            "torch/utils/checkpoint.py(1116): recompute_fn",
        ),
        (
            "torch/utils/checkpoint.py(1116): recompute_fn",
            "torch/utils/checkpoint.py(1116): recompute_fn",
        ),
        (
            "/a/b.py(1): f;/a/c.py(2): g;/a/b.py(3): h",
            "[path-1].py(1): f;[path-2].py(2): g;[path-1].py(3): h",
        ),
        (r"C:\Users\alice\My Proj\x.py(3): f", "[path-1].py(3): f"),
        ("/home/alice/My Project/run 1", "[path-1]"),
        (
            "python /data/x/train.py --out=/data/y/",
            "python [path-1].py --out=[path-2]",
        ),
        ("PATHS=/usr/bin:/opt/a/bin", "PATHS=[path-1]:[path-2]"),
        ("-I/home/alice/include", "-I[path-1]"),
        (
            "/usr/bin/python /srv/a/x.py --lr 1",
            "[path-1] [path-2].py --lr 1",
        ),
        ("../../home/alice/x.py(3): f", "[path-1].py(3): f"),
        (
            "see \"/mnt/a b/c\" and '~/x y'",
            "see \"[path-1]\" and '[path-2]'",
        ),
        (r"\\server\share\x y", "[path-1]"),
        (
            r"load C:\Users\Al Smith\p q\x.py now",
            "load [path-1].py now",
        ),
        ("ls /home/al smith/x and /srv/y", "ls [path-1] and [path-2]"),
        ("https://x.org/?access_token=abc&x=1 y", "https://[url-1] y"),
        (
            "s3://bucket/a b https://u:p@host/x?y=1",
            "s3://[url-1] b https://[url-2]",
        ),
        (
            "(lambda at /src/acme/x.cu:12:3)",
            "(lambda at [path-1].cu:12:3)",
        ),
    ] {
        assert_eq!(redacted(text, Context::Text), expected, "{text}");
    }
    for text in [
        "aten::add",
        "int8/fp16/bf16",
        "N/A",
        "tokens/s",
        "a / b / c",
        "./traces/rank0.json",
        "1/2",
        "<built-in method add>",
        "nn.Module: Linear_0",
        "## forward ##",
        "Memcpy HtoD (Pageable -> Device)",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "ProfilerStep#3",
    ] {
        assert_eq!(redacted(text, Context::Text), text);
    }
}

#[test]
fn people_and_machines_go() {
    for (text, expected) in [
        ("alice", "[user-1]"),
        ("run_alice_2", "run_[user-1]_2"),
        ("malice and alicea", "malice and alicea"),
        ("gpu-box-7_123.pt", "[host-1]_123.pt"),
        ("mail a.b@example.org now", "mail [email-1] now"),
        ("tcp 10.1.2.3:29500", "tcp [ip-1]:29500"),
        ("127.0.0.1 and 1.2.3.400", "127.0.0.1 and 1.2.3.400"),
        ("a==9.1.0.70 b 12.8.4.1-1", "a==9.1.0.70 b 12.8.4.1-1"),
        ("fe80::1ff:fe23:4567:890a", "[ip-1]"),
        ("aa:bb:cc:dd:ee:ff", "[mac-1]"),
        ("FSDP::all_gather", "FSDP::all_gather"),
        ("Alice on GPU-BOX-7", "[user-1] on [host-1]"),
        ("alice@gpu-box-7", "[user-1]@[host-1]"),
        (
            "bobx@zeus-box root@zeus-box",
            "[user-1]@[host-1] root@[host-1]",
        ),
        ("ssh -p 22 bobx@zeus", "ssh -p 22 [user-1]@[host-1]"),
        ("bobx:pw12@zeus9 x", "[user-1]:[token-1]@[host-1] x"),
        ("bobx:pw12@10.1.2.3", "[user-1]:[token-1]@[ip-1]"),
        (
            "mailto:a@b.org bobx:pw@db.corp.org",
            "mailto:[email-1] bobx:[email-2]",
        ),
        (
            "matmul@cuda:0 layer:12@gpu memcpy@plt fwd:conv@block",
            "matmul@cuda:0 layer:12@gpu memcpy@plt fwd:conv@block",
        ),
    ] {
        assert_eq!(redacted(text, Context::Text), expected, "{text}");
    }
}

#[test]
fn names_of_kernels_and_operators_stay() {
    for text in [
        "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "Cijk_Alik_Bljk_HHS_BH_MT64x64x32_MI32x32x8x1_SN_1LDSB0_alice",
        "triton_poi_fused_add_0d1d2d3d4de_1.2.3.4",
        "aten::add; token = abcdefghijklmnop",
    ] {
        assert_eq!(redacted(text, Context::Operator), text);
    }
    assert_eq!(
        redacted("/home/alice/x.py(1): f", Context::KeptName),
        "/home/alice/x.py(1): f"
    );
}

#[test]
fn environments_lose_their_values() {
    let dump = "PATH=/usr/bin\nHOME=/home/alice\nNCCL_DEBUG=INFO\nSHELL=bash\nX=1\n";
    let expected =
        "PATH=[removed]\nHOME=[removed]\nNCCL_DEBUG=INFO\nSHELL=[removed]\nX=[removed]\n";
    assert_eq!(redacted(dump, Context::Text), expected);
    assert_eq!(redacted(expected, Context::Text), expected);
    let (text, removed) = rules().environment("SECRET=x").expect("a variable");
    assert_eq!((text.as_str(), removed), ("SECRET=[removed]", 1));
}

#[test]
fn what_was_replaced_is_not_replaced_again() {
    for text in [
        "token=abcdefghijklmnop at /home/alice/x.py by alice on gpu-box-7 (10.1.2.3)",
        "https://user:pw@example.org/x mail a@b.org",
        "--password hunter2 C:\\Users\\alice\\x 'a' \"/a/b c\"",
    ] {
        let once = redacted(text, Context::Text);
        assert_ne!(once, text);
        assert_eq!(redacted(&once, Context::Text), once);
    }
}
