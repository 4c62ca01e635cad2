//! Finding the library that goes into the program.

use std::path::{Path, PathBuf};

const NAME: &str = "libtracekit_inject.so";

/// Names the library, in the environment.
const VARIABLE: &str = "TRACEKIT_INJECT";

/// The library: the one `asked` for, else the one that `$TRACEKIT_INJECT` names, else one beside this
/// program, in `../lib` or in `deps`.
///
/// # Errors
/// One line that says where there is none.
pub(super) fn find(asked: Option<&Path>) -> Result<PathBuf, String> {
    let named = asked
        .map(Path::to_owned)
        .or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    if let Some(path) = named {
        // The program may have another folder than we have.
        return std::fs::canonicalize(&path)
            .map_err(|error| format!("{}: {}", path.display(), error.to_string().to_lowercase()));
    }
    let program = std::env::current_exe().unwrap_or_default();
    let program = std::fs::canonicalize(&program).unwrap_or(program);
    let folder = program.parent().unwrap_or(Path::new("/"));
    ["", "../lib", "deps"]
        .into_iter()
        .map(|place| folder.join(place).join(NAME))
        .find_map(|path| std::fs::canonicalize(path).ok())
        .ok_or_else(|| {
            format!(
                "{NAME} is not in {}, ../lib or deps; cargo build builds it, and {VARIABLE} can name it",
                folder.display()
            )
        })
}
