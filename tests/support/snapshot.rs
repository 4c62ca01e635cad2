//! Texts that are kept in files and compared whole.

use std::path::Path;

/// Compares `got` with the file at `path`, or writes it there when `TRACEKIT_BLESS=1` is set.
pub(crate) fn bless_or_compare(path: &Path, got: &str) {
    if std::env::var_os("TRACEKIT_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, got).unwrap();
        return;
    }
    let want = std::fs::read_to_string(path).unwrap_or_default();
    if want == got {
        return;
    }
    let changed = want
        .lines()
        .zip(got.lines())
        .position(|(want, got)| want != got);
    let line = changed.unwrap_or_else(|| want.lines().count().min(got.lines().count()));
    panic!(
        "{} differs from line {} on:\n  want: {}\n  got:  {}\nif the new text is right, run the test with \
         TRACEKIT_BLESS=1 to write it there; all of it:\n{got}",
        path.display(),
        line + 1,
        want.lines().nth(line).unwrap_or("(nothing)"),
        got.lines().nth(line).unwrap_or("(nothing)"),
    );
}
