//! Domains that the program has made. A handle is a number, so that no pointer of others is followed.

use std::ffi::c_void;
use std::sync::Mutex;

use crate::buffer::lock;

/// More domains than any program has; those beyond share the default one.
const MOST: usize = 1 << 12;

static DOMAINS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Makes a domain, or finds the one of that name.
pub(super) fn create(name: &[u8]) -> *mut c_void {
    let mut domains = lock(&DOMAINS);
    let found = domains.iter().position(|domain| domain == name);
    let place = found.unwrap_or_else(|| {
        if domains.len() < MOST {
            domains.push(name.to_vec());
        }
        domains.len() - 1
    });
    std::ptr::without_provenance_mut(place + 1)
}

/// The number of a domain: 0 for the default one.
#[inline]
pub(super) fn number(handle: *const c_void) -> u32 {
    let number = handle.addr();
    if number <= MOST {
        u32::try_from(number).unwrap_or(0)
    } else {
        0
    }
}

/// Numbers and names of the domains from the one with this place on.
pub(crate) fn domains(from: usize) -> Vec<(u32, Vec<u8>)> {
    let domains = lock(&DOMAINS);
    let new = domains.iter().enumerate().skip(from);
    new.map(|(place, name)| (u32::try_from(place + 1).unwrap_or(0), name.clone()))
        .collect()
}
