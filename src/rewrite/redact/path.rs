//! Paths of files: which end of one may stay.

/// Folders of PyTorch's own modules, for source trees outside of `site-packages`.
const TORCH: &[&str] = &[
    "_C",
    "_dispatch",
    "_dynamo",
    "_export",
    "_functorch",
    "_guards",
    "_higher_order_ops",
    "_inductor",
    "_jit_internal",
    "_library",
    "_logging",
    "_meta_registrations",
    "_ops",
    "_prims",
    "_refs",
    "_subclasses",
    "_tensor",
    "_utils",
    "amp",
    "ao",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "mps",
    "multiprocessing",
    "nested",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "package",
    "profiler",
    "quantization",
    "random",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "utils",
    "xpu",
];

/// Endings of names that tell what a file is and nothing else.
const KINDS: &[&str] = &[
    "py",
    "pyc",
    "so",
    "c",
    "cc",
    "cpp",
    "cu",
    "cuh",
    "h",
    "hip",
    "hpp",
    "json",
    "gz",
    "pt",
    "pth",
    "yaml",
    "yml",
    "toml",
    "txt",
    "log",
    "sh",
    "bin",
    "safetensors",
    "ckpt",
    "ipynb",
    "pyx",
    "dll",
    "exe",
];

/// The end of `path` that every machine has: behind `site-packages`, behind Python's own library,
/// and PyTorch's modules.
pub(super) fn public_end(path: &str) -> Option<&str> {
    let flat = path.replace('\\', "/");
    let behind = |marker: &str| flat.rfind(marker).map(|at| at + marker.len());
    let at = behind("/site-packages/")
        .or_else(|| behind("/dist-packages/"))
        .or_else(|| behind_python(&flat))
        .or_else(|| torch(&flat))?;
    path.get(at..).filter(|end| !end.is_empty())
}

/// Behind `/lib/python3.11/`.
fn behind_python(path: &str) -> Option<usize> {
    const MARKER: &str = "/lib/python";
    let at = path.rfind(MARKER)? + MARKER.len();
    let version = path[at..].find('/')?;
    let digits = path[at..at + version]
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.then_some(at + version + 1)
}

/// At the `torch` of `/torch/utils/…`.
fn torch(path: &str) -> Option<usize> {
    const MARKER: &str = "/torch/";
    let at = path.rfind(MARKER)?;
    let next = &path[at + MARKER.len()..];
    let name = next.split(['/', '.']).next()?;
    TORCH.contains(&name).then_some(at + 1)
}

/// The ending of a file's name with its dot, when it tells only what kind of file it is.
pub(super) fn kind(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rfind('.')
        .filter(|dot| *dot > 0 && KINDS.contains(&&name[dot + 1..]))
        .map_or("", |dot| &name[dot..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_machine_has_stays() {
        for (path, end) in [
            (
                "/home/alice/.venv/lib/python3.11/site-packages/torch/utils/checkpoint.py",
                Some("torch/utils/checkpoint.py"),
            ),
            (
                "/usr/lib/python3/dist-packages/numpy/core.py",
                Some("numpy/core.py"),
            ),
            ("/usr/lib/python3.10/threading.py", Some("threading.py")),
            (
                "/opt/pytorch/torch/nn/modules/module.py",
                Some("torch/nn/modules/module.py"),
            ),
            ("/opt/pytorch/torch/_tensor.py", Some("torch/_tensor.py")),
            (
                r"C:\Users\a\Lib\site-packages\torch\utils\checkpoint.py",
                Some(r"torch\utils\checkpoint.py"),
            ),
            ("/home/alice/torch/secret/model.py", None),
            ("/home/alice/lib/pythonic/x.py", None),
            ("/x/site-packages/", None),
            ("/home/alice/train.py", None),
        ] {
            assert_eq!(public_end(path), end, "{path}");
        }
    }

    #[test]
    fn endings_tell_the_kind_of_file_only() {
        for (path, ending) in [
            ("/a/b.py", ".py"),
            ("/a/b.tar.gz", ".gz"),
            ("/a/b.acme", ""),
            ("/a.py/b", ""),
            ("/a/.py", ""),
            (r"C:\a\b.json", ".json"),
        ] {
            assert_eq!(kind(path), ending, "{path}");
        }
    }
}
