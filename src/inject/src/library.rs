//! Finding the CUPTI to use.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The versions whose records are known, newest first; cudarc's names lack some of them.
const VERSIONED: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so.11.7",
];

/// The CUPTI that the process has loaded already, such as the one in PyTorch's wheel. A second copy
/// would know nothing of what the first does.
fn mapped() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        let (_, name) = path.rsplit_once('/')?;
        name.starts_with("libcupti.so").then(|| path.to_owned())
    })
}

/// Opens CUPTI: `$TRACEKIT_CUPTI`, else the one that is loaded, else any that the linker finds.
///
/// # Errors
/// One line with what was tried first and why it could not be opened.
pub(crate) fn open() -> Result<(Library, String), String> {
    let asked = std::env::var("TRACEKIT_CUPTI").ok();
    let names: Vec<String> = match asked.filter(|name| !name.is_empty()) {
        // Who names one wants no other.
        Some(name) => vec![name],
        None => mapped()
            .into_iter()
            .chain(VERSIONED.map(str::to_owned))
            .chain(cudarc::get_lib_name_candidates("cupti"))
            .collect(),
    };
    let mut first = None;
    for name in names {
        // SAFETY: CUPTI's initialisers have no requirements on the process.
        match unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_LOCAL) } {
            Ok(library) => return Ok((library, name)),
            Err(error) => {
                let why = || source(&error);
                first.get_or_insert_with(why);
            }
        }
    }
    Err(first.unwrap_or_else(|| "no name to look for".to_owned()))
}

/// What the linker says, which the error itself does not.
fn source(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}
