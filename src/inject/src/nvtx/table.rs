//! Putting our functions into the tables of a module that uses NVTX.

use std::ffi::{c_int, c_uint, c_void};

use super::calls;

/// What NVTX passes: gives one of its tables.
pub(crate) type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// Any function.
type Function = *const c_void;

/// Number of the table below.
const CALLBACKS: u32 = 1;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    module_table:
        Option<unsafe extern "C" fn(c_uint, *mut *mut *mut Function, *mut c_uint) -> c_int>,
}

/// `NVTX_CB_MODULE_CORE` and `NVTX_CB_MODULE_CORE2`.
const CORE: c_uint = 1;
const CORE2: c_uint = 5;

/// Replaces the functions of one module: those not replaced stay NVTX's own, which do nothing.
///
/// # Safety
/// `table` must be the function that NVTX 3 passes to its injection.
pub(crate) unsafe fn attach(table: GetExportTable) -> Option<()> {
    // SAFETY: as the caller promises.
    let callbacks = unsafe { table(CALLBACKS).cast::<Callbacks>().as_ref() }?;
    if callbacks.size < size_of::<Callbacks>() {
        return None;
    }
    let get = callbacks.module_table?;
    let core: [(usize, Function); 13] = [
        (1, calls::mark_ex as Function),
        (2, calls::mark_a as Function),
        (3, calls::mark_w as Function),
        (4, calls::start_ex as Function),
        (5, calls::start_a as Function),
        (6, calls::start_w as Function),
        (7, calls::end as Function),
        (8, calls::push_ex as Function),
        (9, calls::push_a as Function),
        (10, calls::push_w as Function),
        (11, calls::pop as Function),
        (14, calls::name_thread_a as Function),
        (15, calls::name_thread_w as Function),
    ];
    let core2: [(usize, Function); 9] = [
        (1, calls::domain_mark as Function),
        (2, calls::domain_start as Function),
        (3, calls::domain_end as Function),
        (4, calls::domain_push as Function),
        (5, calls::domain_pop as Function),
        (10, calls::register_a as Function),
        (11, calls::register_w as Function),
        (12, calls::create_a as Function),
        (13, calls::create_w as Function),
    ];
    for (module, functions) in [(CORE, &core[..]), (CORE2, &core2)] {
        let mut slots: *mut *mut Function = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: NVTX fills both places or says that it does not have the module.
        let found = unsafe { get(module, &raw mut slots, &raw mut count) };
        if found == 0 || slots.is_null() {
            continue;
        }
        for (place, function) in functions {
            if *place < count as usize {
                // SAFETY: the table has `count` entries; each is null or where a pointer stands.
                unsafe {
                    let slot = *slots.add(*place);
                    if !slot.is_null() {
                        *slot = *function;
                    }
                }
            }
        }
    }
    Some(())
}
