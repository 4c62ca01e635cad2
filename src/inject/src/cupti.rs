//! The functions of CUPTI that are used, as raw as they are.
//!
//! Results, kinds and flags are plain numbers: cudarc has enums for them, and a number that a newer
//! CUPTI returns and an enum lacks would be undefined behaviour.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use cudarc::cupti::sys::{
    CUpti_BuffersCallbackCompleteFunc, CUpti_BuffersCallbackRequestFunc, CUpti_CallbackDomain,
    CUpti_CallbackFunc, CUpti_SubscriberHandle,
};
use cudarc::driver::sys::CUcontext;
use libloading::os::unix::Library;
use tracekit_spool::{RecordSizes, kind};

use crate::library;

/// `CUptiResult` as a number.
pub(crate) type Code = u32;

/// Stands for a function that this CUPTI does not have.
const NO_FUNCTION: Code = u32::MAX;

/// Domains of API calls.
pub(crate) const DRIVER_DOMAIN: u32 = 1;
pub(crate) const RUNTIME_DOMAIN: u32 = 2;

/// Calls that are many and say nothing: domain and id.
const NOISE: [(u32, u32); 4] = [
    (RUNTIME_DOMAIN, 17), // cudaGetDevice
    (DRIVER_DOMAIN, 304), // cuCtxGetCurrent
    (DRIVER_DOMAIN, 686), // cuKernelGetAttribute
    (DRIVER_DOMAIN, 392), // cuDevicePrimaryCtxGetState
];

macro_rules! functions {
    ($($name:ident = $symbol:literal : fn($($argument:ty),*);)*) => {
        /// An opened CUPTI.
        pub(crate) struct Cupti {
            /// Where it was found.
            pub(crate) path: String,
            $($name: Option<unsafe extern "C" fn($($argument),*) -> Code>,)*
            /// Keeps the functions where they are.
            _library: Library,
        }

        impl Cupti {
            fn new(library: Library, path: String) -> Self {
                Self {
                    path,
                    $($name: {
                        // SAFETY: the signature is that of CUPTI's headers, with numbers for enums.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> Code>($symbol)
                        };
                        symbol.ok().map(|symbol| *symbol)
                    },)*
                    _library: library,
                }
            }

            /// The first function that nothing works without and that is missing.
            fn missing(&self) -> Option<&'static str> {
                let found = [$((self.$name.is_some(), &$symbol[..]),)*];
                found
                    .into_iter()
                    .find(|(found, symbol)| !found && NEEDED.contains(symbol))
                    .and_then(|(_, symbol)| std::str::from_utf8(symbol).ok())
                    .map(|symbol| symbol.trim_end_matches('\0'))
            }
        }
    };
}

const NEEDED: [&[u8]; 5] = [
    b"cuptiSubscribe\0",
    b"cuptiActivityRegisterCallbacks\0",
    b"cuptiActivityEnable\0",
    b"cuptiActivityFlushAll\0",
    b"cuptiActivityGetNextRecord\0",
];

functions! {
    version = b"cuptiGetVersion\0": fn(*mut u32);
    result_string = b"cuptiGetResultString\0": fn(Code, *mut *const c_char);
    subscribe = b"cuptiSubscribe\0": fn(*mut CUpti_SubscriberHandle, CUpti_CallbackFunc, *mut c_void);
    register = b"cuptiActivityRegisterCallbacks\0": fn(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    enable = b"cuptiActivityEnable\0": fn(u32);
    disable = b"cuptiActivityDisable\0": fn(u32);
    enable_runtime = b"cuptiActivityEnableRuntimeApi\0": fn(u32, u8);
    enable_driver = b"cuptiActivityEnableDriverApi\0": fn(u32, u8);
    flush_all = b"cuptiActivityFlushAll\0": fn(u32);
    flush_period = b"cuptiActivityFlushPeriod\0": fn(u32);
    next_record = b"cuptiActivityGetNextRecord\0": fn(*mut u8, usize, *mut *mut u8);
    dropped_records = b"cuptiActivityGetNumDroppedRecords\0": fn(CUcontext, u32, *mut usize);
    timestamp = b"cuptiGetTimestamp\0": fn(*mut u64);
    thread_id_type = b"cuptiSetThreadIdType\0": fn(u32);
    callback_name = b"cuptiGetCallbackName\0": fn(u32, u32, *mut *const c_char);
}

// SAFETY of the calls below: the functions are CUPTI's, with arguments as its headers ask for, and
// places for results that live through the call.
impl Cupti {
    /// Finds and opens CUPTI.
    ///
    /// # Errors
    /// One line that says why there is none to use.
    pub(crate) fn open() -> Result<Self, String> {
        let (library, path) = library::open()?;
        let cupti = Self::new(library, path);
        match cupti.missing() {
            Some(symbol) => Err(format!("{} has no {symbol}", cupti.path)),
            None => Ok(cupti),
        }
    }

    pub(crate) fn version(&self) -> u32 {
        let mut version = 0;
        if let Some(get) = self.version {
            // SAFETY: see above.
            unsafe { get(&raw mut version) };
        }
        version
    }

    /// The name of a result.
    pub(crate) fn explain(&self, code: Code) -> String {
        if code == NO_FUNCTION {
            return "not in this CUPTI".to_owned();
        }
        let mut text = null();
        if let Some(get) = self.result_string {
            // SAFETY: see above.
            unsafe { get(code, &raw mut text) };
        }
        if text.is_null() {
            return format!("CUPTI error {code}");
        }
        // SAFETY: CUPTI's own constant string.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }

    /// Becomes the one subscriber that CUPTI allows. No callback is ever enabled.
    pub(crate) fn subscribe(&self) -> Code {
        unsafe extern "C" fn nothing(
            _user: *mut c_void,
            _domain: CUpti_CallbackDomain,
            _id: u32,
            _data: *const c_void,
        ) {
        }
        let mut handle: CUpti_SubscriberHandle = null_mut();
        // SAFETY: see above.
        self.subscribe.map_or(NO_FUNCTION, |subscribe| unsafe {
            subscribe(&raw mut handle, Some(nothing), null_mut())
        })
    }

    pub(crate) fn register(
        &self,
        request: CUpti_BuffersCallbackRequestFunc,
        complete: CUpti_BuffersCallbackCompleteFunc,
    ) -> Code {
        // SAFETY: see above.
        self.register
            .map_or(NO_FUNCTION, |call| unsafe { call(request, complete) })
    }

    /// Has threads numbered as the system numbers them.
    pub(crate) fn use_system_thread_ids(&self) -> Code {
        // SAFETY: see above.
        self.thread_id_type
            .map_or(NO_FUNCTION, |call| unsafe { call(1) })
    }

    /// Enables a kind, without the calls that are only noise.
    pub(crate) fn enable(&self, kind: u32) -> Code {
        // SAFETY: see above.
        let code = self
            .enable
            .map_or(NO_FUNCTION, |call| unsafe { call(kind) });
        let (domain, mute) = match kind {
            kind::RUNTIME => (RUNTIME_DOMAIN, self.enable_runtime),
            kind::DRIVER => (DRIVER_DOMAIN, self.enable_driver),
            _ => return code,
        };
        if let Some(mute) = mute.filter(|_| code == 0) {
            for (_, id) in NOISE.iter().filter(|(of, _)| *of == domain) {
                // A call that cannot be muted is recorded, and that is all.
                // SAFETY: see above.
                unsafe { mute(*id, 0) };
            }
        }
        code
    }

    pub(crate) fn disable(&self, kind: u32) {
        if let Some(disable) = self.disable {
            // SAFETY: see above.
            unsafe { disable(kind) };
        }
    }

    /// Has buffers completed: those whose records are all complete, or every one.
    pub(crate) fn flush(&self, forced: bool) {
        if let Some(flush) = self.flush_all {
            // SAFETY: see above.
            unsafe { flush(u32::from(forced)) };
        }
    }

    pub(crate) fn flush_period(&self, milliseconds: u32) {
        if let Some(set) = self.flush_period {
            // SAFETY: see above.
            unsafe { set(milliseconds) };
        }
    }

    /// Records of a stream that CUPTI had no buffer for since the last time; those of no context where it
    /// is null.
    pub(crate) fn dropped(&self, context: CUcontext, stream: u32) -> u64 {
        let mut dropped = 0;
        if let Some(get) = self.dropped_records {
            // SAFETY: see above; the context is the one of the buffer that CUPTI completes.
            unsafe { get(context, stream, &raw mut dropped) };
        }
        dropped as u64
    }

    /// CUPTI's clock in nanoseconds.
    pub(crate) fn timestamp(&self) -> Option<u64> {
        let mut time = 0;
        // SAFETY: see above.
        let code = unsafe { (self.timestamp?)(&raw mut time) };
        (code == 0).then_some(time)
    }

    /// The name of an API call.
    pub(crate) fn callback_name(&self, domain: u32, id: u32) -> Option<Vec<u8>> {
        let mut name = null();
        // SAFETY: see above.
        let code = unsafe { (self.callback_name?)(domain, id, &raw mut name) };
        if code != 0 || name.is_null() {
            return None;
        }
        // SAFETY: CUPTI's own constant string.
        Some(unsafe { CStr::from_ptr(name) }.to_bytes().to_vec())
    }

    /// Asks CUPTI how long its records are: in a buffer that has one kind in every eight bytes, the
    /// second record begins where the first ends. This needs no driver.
    pub(crate) fn record_sizes(&self, kinds: &[u32]) -> RecordSizes {
        const WORDS: usize = 1 << 10;
        let mut sizes = RecordSizes::default();
        let Some(next) = self.next_record else {
            return sizes;
        };
        let mut scratch = vec![0_u64; WORDS];
        for &kind in kinds {
            scratch.fill(kind.into());
            let buffer = scratch.as_mut_ptr().cast::<u8>();
            let mut record = null_mut();
            // SAFETY: the buffer is as long as said, and `record` null or what CUPTI gave.
            let first = unsafe { next(buffer, WORDS * 8, &raw mut record) };
            let begin = record.addr();
            // SAFETY: as above.
            if first != 0 || unsafe { next(buffer, WORDS * 8, &raw mut record) } != 0 {
                continue;
            }
            let size = record.addr().wrapping_sub(begin);
            sizes.set(kind, u32::try_from(size).unwrap_or(0));
        }
        sizes
    }
}
