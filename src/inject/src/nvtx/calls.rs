//! The functions that take the places of NVTX's own.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use tracekit_spool::NvtxOp;

use super::{domain, thread};

/// The start of `nvtxEventAttributes_t` in all versions of NVTX 3.
#[repr(C)]
pub(super) struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// Types of messages.
const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;

/// A name longer than this is cut; NVTX sets no limit.
const LONGEST: usize = 4_096;

/// Does `work` with the bytes of a C string.
///
/// # Safety
/// `text` must be null or a C string.
#[inline]
unsafe fn with_text<R>(text: *const c_char, work: impl FnOnce(&[u8]) -> R) -> R {
    if text.is_null() {
        return work(b"");
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    work(&bytes[..bytes.len().min(LONGEST)])
}

/// Does `work` with a string of wide characters, as UTF-8.
///
/// # Safety
/// `text` must be null or wide characters up to a zero.
unsafe fn with_wide<R>(text: *const u32, work: impl FnOnce(&[u8]) -> R) -> R {
    let mut name = String::new();
    let mut next = text;
    // SAFETY: as the caller promises; nothing behind the zero is read.
    while !next.is_null() && unsafe { *next } != 0 && name.len() < LONGEST {
        // SAFETY: as above.
        let character = char::from_u32(unsafe { *next });
        name.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        // SAFETY: `next` is not at the zero yet.
        next = unsafe { next.add(1) };
    }
    work(name.as_bytes())
}

/// Does `work` with the message of an event.
///
/// # Safety
/// `attributes` must be null or NVTX's.
#[inline]
unsafe fn with_message<R>(attributes: *const Attributes, work: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: as the caller promises.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else {
        return work(b"");
    };
    match attributes.message_type {
        // SAFETY: the type says what the message is; a registered string is one that was made here.
        ASCII | REGISTERED => unsafe { with_text(attributes.message.cast(), work) },
        // SAFETY: as above.
        UNICODE => unsafe { with_wide(attributes.message.cast(), work) },
        _ => work(b""),
    }
}

fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn start(domain: *const c_void, name: &[u8]) -> u64 {
    let id = new_id();
    thread::record(NvtxOp::Start, domain::number(domain), id, name);
    id
}

fn push(domain: *const c_void, name: &[u8]) -> c_int {
    thread::record(NvtxOp::Push, domain::number(domain), 0, name)
}

fn mark(domain: *const c_void, name: &[u8]) {
    thread::record(NvtxOp::Mark, domain::number(domain), 0, name);
}

/// A string that lives as long as the process.
fn keep(name: &[u8]) -> *mut c_void {
    let name = CString::new(name).unwrap_or_default();
    name.into_raw().cast()
}

/// Functions that NVTX calls: no panic leaves them.
macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty { $body:expr } else $failed:expr;)*) => {
        $(
            /// # Safety
            /// Only NVTX may call this, with arguments as its headers ask for.
            pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the arguments are NVTX's.
                catch_unwind(|| unsafe { $body }).unwrap_or($failed)
            }
        )*
    };
}

calls! {
    fn mark_ex(event: *const Attributes) -> () {
        with_message(event, |name| mark(null(), name))
    } else ();
    fn mark_a(name: *const c_char) -> () { with_text(name, |name| mark(null(), name)) } else ();
    fn mark_w(name: *const u32) -> () { with_wide(name, |name| mark(null(), name)) } else ();
    fn start_ex(event: *const Attributes) -> u64 {
        with_message(event, |name| start(null(), name))
    } else 0;
    fn start_a(name: *const c_char) -> u64 { with_text(name, |name| start(null(), name)) } else 0;
    fn start_w(name: *const u32) -> u64 { with_wide(name, |name| start(null(), name)) } else 0;
    fn push_ex(event: *const Attributes) -> c_int {
        with_message(event, |name| push(null(), name))
    } else -1;
    fn push_a(name: *const c_char) -> c_int { with_text(name, |name| push(null(), name)) } else -1;
    fn push_w(name: *const u32) -> c_int { with_wide(name, |name| push(null(), name)) } else -1;
    fn name_thread_a(thread: u32, name: *const c_char) -> () {
        with_text(name, |name| { thread::record(NvtxOp::NameThread, 0, thread.into(), name); })
    } else ();
    fn name_thread_w(thread: u32, name: *const u32) -> () {
        with_wide(name, |name| { thread::record(NvtxOp::NameThread, 0, thread.into(), name); })
    } else ();
    fn domain_mark(domain: *const c_void, event: *const Attributes) -> () {
        with_message(event, |name| mark(domain, name))
    } else ();
    fn domain_start(domain: *const c_void, event: *const Attributes) -> u64 {
        with_message(event, |name| start(domain, name))
    } else 0;
    fn domain_push(domain: *const c_void, event: *const Attributes) -> c_int {
        with_message(event, |name| push(domain, name))
    } else -1;
    fn create_a(name: *const c_char) -> *mut c_void { with_text(name, domain::create) } else null_mut();
    fn create_w(name: *const u32) -> *mut c_void { with_wide(name, domain::create) } else null_mut();
    fn register_a(_domain: *const c_void, name: *const c_char) -> *mut c_void {
        with_text(name, keep)
    } else null_mut();
    fn register_w(_domain: *const c_void, name: *const u32) -> *mut c_void {
        with_wide(name, keep)
    } else null_mut();
}

/// Ends a range by its id.
pub(super) extern "C" fn end(id: u64) {
    domain_end(null(), id);
}

/// Ends a range of a domain by its id.
pub(super) extern "C" fn domain_end(domain: *const c_void, id: u64) {
    let _ = catch_unwind(|| thread::record(NvtxOp::End, domain::number(domain), id, b""));
}

/// Ends the last range that was pushed.
pub(super) extern "C" fn pop() -> c_int {
    domain_pop(null())
}

/// Ends the last range that was pushed in a domain.
pub(super) extern "C" fn domain_pop(domain: *const c_void) -> c_int {
    let popped = catch_unwind(|| thread::record(NvtxOp::Pop, domain::number(domain), 0, b""));
    popped.unwrap_or(-1)
}
