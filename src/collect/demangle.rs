//! Names of kernels as people write them.

#![expect(
    unsafe_code,
    reason = "the demangler is a C function of a library opened at run time"
)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null_mut;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// The demangler of libstdc++, which Kineto and all other tools use: names are equal to theirs. Others
/// spell most templates in another way.
fn libstdcxx() -> Option<Demangle> {
    static FOUND: OnceLock<Option<Demangle>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: its initialisers have no requirements; the signature is that of the C++ ABI.
        unsafe {
            let library = Library::open(Some("libstdc++.so.6"), RTLD_NOW | RTLD_LOCAL).ok()?;
            let function = *library.get::<Demangle>(b"__cxa_demangle\0").ok()?;
            // It stays open: the function is used until the end.
            std::mem::forget(library);
            Some(function)
        }
    })
}

/// Longer names are left as they are: demangling can take time that grows with the square.
const LONGEST: usize = 16 << 10;

/// `name` as people write it, when it is mangled.
pub(super) fn demangle(name: &[u8]) -> String {
    let as_it_is = || String::from_utf8_lossy(name).into_owned();
    if !name.starts_with(b"_Z") || name.len() > LONGEST {
        return as_it_is();
    }
    let Some(function) = libstdcxx() else {
        let symbol = cpp_demangle::Symbol::new(name).ok();
        let demangled = symbol.and_then(|symbol| symbol.demangle().ok());
        return demangled.unwrap_or_else(as_it_is);
    };
    let Ok(mangled) = CString::new(name) else {
        return as_it_is();
    };
    let mut status = 0;
    // SAFETY: a C string, and no buffer, so that the function makes one, which is freed below.
    unsafe {
        let text = function(mangled.as_ptr(), null_mut(), null_mut(), &raw mut status);
        if text.is_null() {
            return as_it_is();
        }
        let name = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_demangled_and_others_left() {
        assert_eq!(demangle(b"_Z3fooi"), "foo(int)");
        assert_eq!(demangle(b"_Z"), "_Z");
        assert_eq!(
            demangle(b"ampere_sgemm_128x64_tn"),
            "ampere_sgemm_128x64_tn"
        );
        assert_eq!(demangle(b"\xff"), "\u{fffd}");
        let long = [b"_Z", &vec![b'x'; LONGEST][..]].concat();
        assert_eq!(demangle(&long).len(), long.len());
    }
}
