//! Paths of files: which end of one may stay, and where one ends.

use std::ops::Range;

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

/// Where the path in `text` ends that was found up to its first space: folders of Windows may have
/// spaces in them, as may home folders. So it goes on with up to three words that end in another folder.
///
/// ```text
/// load C:\Users\Alice Smith\x.py now        ls /home/alice smith/x and /srv/y
///      ^^^^^^^^^^^^^^^^^^^^^^^^^^                ^^^^^^^^^^^^^^^^^^^
/// ```
pub(super) fn end(text: &str, path: Range<usize>) -> usize {
    const WORDS: usize = 3;
    let mut end = path.end;
    loop {
        let found = &text[path.start..end];
        let is_windows = found.contains('\\');
        let folders: Vec<&str> = found.split(['/', '\\']).collect();
        let is_home = matches!(folders[..], [.., "home" | "Users", name] if !name.is_empty());
        if !(is_windows || is_home) || !text[end..].starts_with(' ') {
            return end;
        }
        let rest = &text[end + 1..];
        let separators: &[char] = if is_windows { &['\\'] } else { &['/', '\\'] };
        let Some(len) = rest.find(separators) else {
            return end;
        };
        let words = &rest[..len];
        let is_name = |word: &str| {
            let mut letters = word.chars();
            letters
                .next()
                .is_some_and(|first| first.is_alphanumeric() || "(&_".contains(first))
                && letters.all(|letter| letter.is_alphanumeric() || "._-()&'+".contains(letter))
        };
        // A file's name ends the path before.
        let is_file = folders.last().is_some_and(|name| !kind(name).is_empty());
        if is_file || words.split(' ').count() > WORDS || !words.split(' ').all(is_name) {
            return end;
        }
        let behind = &rest[len..];
        let stops = |letter: char| letter.is_whitespace() || "\"'`,;:()<>[]{}|*?".contains(letter);
        let more = behind.find(stops).unwrap_or(behind.len());
        end += 1 + len + more;
    }
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
    fn folders_with_spaces_belong_to_a_path() {
        for (text, whole) in [
            (
                r"C:\Users\Alice Smith\secretproj\x.py",
                r"C:\Users\Alice Smith\secretproj\x.py",
            ),
            (r"C:\My Own Docs\A B\x y", r"C:\My Own Docs\A B\x"),
            (r"C:\a\x.py and \\server\y", r"C:\a\x.py"),
            (r"C:\a\x.py D:\b\y.py", r"C:\a\x.py"),
            (r"C:\a\x.py sub\y.py", r"C:\a\x.py"),
            (r"C:\a --out b\c", r"C:\a"),
            ("/home/alice smith/x and /srv/y", "/home/alice smith/x"),
            ("/home/alice and /srv/y", "/home/alice"),
            ("/home/alice/x or/y", "/home/alice/x"),
            ("/srv/a b/c", "/srv/a"),
        ] {
            let first = text.find(' ').unwrap_or(text.len());
            assert_eq!(&text[..end(text, 0..first)], whole, "{text}");
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
