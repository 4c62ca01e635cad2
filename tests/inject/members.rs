//! The libraries that the tests need: members of the workspace that nothing links.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// Where the libraries are.
pub(crate) struct Members {
    pub(crate) inject: PathBuf,
    pub(crate) fake_cuda: PathBuf,
    pub(crate) fake_nvml: PathBuf,
}

/// Builds the libraries, once, with the profile of this test.
pub(crate) fn members() -> &'static Members {
    static BUILT: OnceLock<Members> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> Members {
    // target/PROFILE/deps/inject-HASH
    let program = std::env::current_exe().unwrap();
    let profile = program.ancestors().nth(2).unwrap();
    let name = profile.file_name().unwrap().to_str().unwrap();
    let name = if name == "debug" { "dev" } else { name };
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--message-format=json", "--profile", name])
        .args([
            "-p",
            "tracekit-inject",
            "-p",
            "fake-cuda",
            "-p",
            "fake-nvml",
        ])
        .arg("--target-dir")
        .arg(profile.parent().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let find = |library: &str| {
        let found = text.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let files = message.get("filenames")?.as_array()?;
            let paths = files.iter().filter_map(serde_json::Value::as_str);
            paths
                .map(PathBuf::from)
                .find(|path| path.ends_with(library))
        });
        found.unwrap_or_else(|| panic!("cargo built no {library}"))
    };
    Members {
        inject: find("libtracekit_inject.so"),
        fake_cuda: find("libfake_cuda.so"),
        fake_nvml: find("libfake_nvml.so"),
    }
}
