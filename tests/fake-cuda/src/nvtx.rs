//! NVTX as a program that includes its headers has it: at the first call it looks for an injection,
//! which may replace its functions; without one they do nothing.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::size_of;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use crate::environment;

/// A slot for a function, and a pointer to it as the tables have it.
type Slot = *const c_void;

const SLOTS: usize = 16;

#[repr(C)]
struct Callbacks {
    size: usize,
    module_table: extern "C" fn(c_uint, *mut *mut *mut Slot, *mut c_uint) -> c_int,
}

struct Tables {
    slots: [[Slot; SLOTS]; 2],
    core: [*mut Slot; SLOTS],
    core2: [*mut Slot; SLOTS],
}

static mut TABLES: Tables = Tables {
    slots: [[null(); SLOTS]; 2],
    core: [null_mut(); SLOTS],
    core2: [null_mut(); SLOTS],
};

static CALLBACKS: Callbacks = Callbacks {
    size: size_of::<Callbacks>(),
    module_table,
};

extern "C" fn module_table(
    module: c_uint,
    table: *mut *mut *mut Slot,
    count: *mut c_uint,
) -> c_int {
    unsafe {
        *table = match module {
            1 => (&raw mut TABLES.core).cast(),
            5 => (&raw mut TABLES.core2).cast(),
            _ => return 0,
        };
        *count = 16;
    }
    1
}

unsafe extern "C" fn export_table(number: u32) -> *const c_void {
    if number == 1 {
        (&raw const CALLBACKS).cast()
    } else {
        null()
    }
}

/// The function in a slot, after the injection had its chance.
fn slot(module: usize, place: usize) -> Option<Slot> {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| unsafe {
        for place in 1..SLOTS {
            TABLES.core[place] = &raw mut TABLES.slots[0][place];
            TABLES.core2[place] = &raw mut TABLES.slots[1][place];
        }
        let found = environment::injected("NVTX_INJECTION64_PATH", "InitializeInjectionNvtx2");
        if let Some(found) = found {
            type Initialize = extern "C" fn(unsafe extern "C" fn(u32) -> *const c_void) -> c_int;
            let initialize: Initialize = std::mem::transmute(found);
            initialize(export_table);
        }
    });
    let function = unsafe { TABLES.slots[module][place] };
    (!function.is_null()).then_some(function)
}

macro_rules! exported {
    ($($name:ident = $module:literal, $place:literal: fn($($argument:ident: $type:ty),*) -> $result:ty, $absent:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $type),*) -> $result {
                match slot($module, $place) {
                    Some(function) => unsafe {
                        let call: extern "C" fn($($type),*) -> $result = std::mem::transmute(function);
                        call($($argument),*)
                    },
                    None => $absent,
                }
            }
        )*
    };
}

exported! {
    nvtxMarkA = 0, 2: fn(name: *const c_char) -> (), ();
    nvtxRangeStartA = 0, 5: fn(name: *const c_char) -> u64, 0;
    nvtxRangeEnd = 0, 7: fn(id: u64) -> (), ();
    nvtxRangePushEx = 0, 8: fn(event: *const c_void) -> c_int, -1;
    nvtxRangePushA = 0, 9: fn(name: *const c_char) -> c_int, -1;
    nvtxRangePushW = 0, 10: fn(name: *const u32) -> c_int, -1;
    nvtxRangePop = 0, 11: fn() -> c_int, -1;
    nvtxNameOsThreadA = 0, 14: fn(thread: u32, name: *const c_char) -> (), ();
    nvtxDomainRangePushEx = 1, 4: fn(domain: *const c_void, event: *const c_void) -> c_int, -1;
    nvtxDomainRangePop = 1, 5: fn(domain: *const c_void) -> c_int, -1;
    nvtxDomainRegisterStringA = 1, 10: fn(domain: *const c_void, name: *const c_char) -> *mut c_void, null_mut();
    nvtxDomainCreateA = 1, 12: fn(name: *const c_char) -> *mut c_void, null_mut();
}
