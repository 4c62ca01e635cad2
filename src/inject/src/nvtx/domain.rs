//! Domains that the program has made. A handle is a number, so that no pointer of others is followed.
//!
//! There is no lock: a process may fork at any moment, and its child uses the handles that it has.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// More domains than any program has; those beyond share the last one.
const MOST: usize = 1 << 12;

/// Names in order of making; each stays for good.
static DOMAINS: [AtomicPtr<Vec<u8>>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// The name in a place; `None` where there is none yet.
fn name(place: usize) -> Option<&'static [u8]> {
    let name = DOMAINS.get(place)?.load(Ordering::Acquire);
    // SAFETY: null or a name that was leaked.
    unsafe { name.as_ref() }.map(Vec::as_slice)
}

/// Makes a domain, or finds the one of that name.
pub(super) fn create(wanted: &[u8]) -> *mut c_void {
    let mut place = 0;
    while place < MOST {
        let Some(found) = name(place) else {
            let new = Box::into_raw(Box::new(wanted.to_vec()));
            let slot = &DOMAINS[place];
            if slot
                .compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                break;
            }
            // SAFETY: ours, and nobody has seen it. Another thread was faster: look again.
            drop(unsafe { Box::from_raw(new) });
            continue;
        };
        if found == wanted {
            break;
        }
        place += 1;
    }
    std::ptr::without_provenance_mut(place.min(MOST - 1) + 1)
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
pub(crate) fn domains(from: usize) -> impl Iterator<Item = (u32, &'static [u8])> {
    (from..).map_while(|place| Some((u32::try_from(place + 1).ok()?, name(place)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_made_once_by_any_number_of_threads() {
        let make = || {
            let handles = (0..100).map(|number| create(format!("domain {number}").as_bytes()));
            handles.map(|handle| number(handle)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(make)).collect();
        let first = make();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
        let known: Vec<_> = domains(0).collect();
        assert_eq!(known.len(), 100);
        for (number, name) in known {
            let place = first.iter().position(|of| *of == number).unwrap();
            assert_eq!(name, format!("domain {place}").as_bytes());
        }
        assert_eq!(domains(99).count(), 1);
        assert_eq!(number(std::ptr::without_provenance(1 << 40)), 0);
    }
}
