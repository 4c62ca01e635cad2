//! CUPTI's activity API: records go into buffers that the client hands over.

use std::ffi::{CStr, c_char, c_void};
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::cupti::sys::{
    CUPTI_API_VERSION, CUpti_ActivityAPI, CUpti_ActivityContext3, CUpti_ActivityDevice5,
    CUpti_ActivityKernel10, CUpti_ActivityMarker2, CUpti_ActivityMemcpy6,
    CUpti_ActivityMemcpyPtoP4, CUpti_ActivityMemset4, CUpti_ActivityOverhead3,
    CUpti_ActivitySynchronization2, CUpti_BuffersCallbackCompleteFunc,
    CUpti_BuffersCallbackRequestFunc,
};

use crate::environment;

const SUCCESS: u32 = 0;
const NOT_SUPPORTED: u32 = 27;
const MAX_LIMIT_REACHED: u32 = 12;
const INVALID_KIND: u32 = 21;
const NOT_INITIALIZED: u32 = 15;
const MULTIPLE_SUBSCRIBERS: u32 = 39;

struct State {
    request: CUpti_BuffersCallbackRequestFunc,
    complete: CUpti_BuffersCallbackCompleteFunc,
    buffer: usize,
    capacity: usize,
    used: usize,
    kinds: [bool; 64],
    muted: Vec<(u32, u32)>,
    subscribed: bool,
    limit: Option<usize>,
    started: bool,
}

static STATE: Mutex<State> = Mutex::new(State {
    request: None,
    complete: None,
    buffer: 0,
    capacity: 0,
    used: 0,
    kinds: [false; 64],
    muted: Vec::new(),
    subscribed: false,
    limit: None,
    started: false,
});

/// Records that there was no buffer for, since someone asked.
static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// The driver is gone: flushing does nothing any more.
pub(crate) static TORN_DOWN: AtomicBool = AtomicBool::new(false);

fn state() -> MutexGuard<'static, State> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if !state.started {
        state.started = true;
        let limit = environment::number("FAKE_CUDA_BUFFER_LIMIT");
        state.limit = limit.and_then(|limit| usize::try_from(limit).ok());
    }
    state
}

fn record_size(kind: u32) -> usize {
    match kind {
        1 => size_of::<CUpti_ActivityMemcpy6>(),
        2 => size_of::<CUpti_ActivityMemset4>(),
        3 | 10 => size_of::<CUpti_ActivityKernel10>(),
        4 | 5 => size_of::<CUpti_ActivityAPI>(),
        8 => size_of::<CUpti_ActivityDevice5>(),
        9 => size_of::<CUpti_ActivityContext3>(),
        12 => size_of::<CUpti_ActivityMarker2>(),
        17 => size_of::<CUpti_ActivityOverhead3>(),
        22 => size_of::<CUpti_ActivityMemcpyPtoP4>(),
        38 => size_of::<CUpti_ActivitySynchronization2>(),
        _ => 0,
    }
}

/// True when a call of the API is not to be recorded.
pub(crate) fn is_muted(domain: u32, id: u32) -> bool {
    state().muted.contains(&(domain, id))
}

/// Adds a record to the buffer, or to the next one.
pub(crate) fn emit<T>(kind: u32, record: &T) {
    let size = size_of::<T>();
    assert_eq!(size, record_size(kind), "kind {kind}");
    loop {
        let mut state = state();
        if !state.kinds[kind as usize] {
            return;
        }
        let Some(request) = state.request else {
            return;
        };
        if state.buffer != 0 && state.used + size <= state.capacity {
            let place = state.buffer + state.used;
            unsafe {
                std::ptr::copy_nonoverlapping(
                    std::ptr::from_ref(record).cast::<u8>(),
                    place as *mut u8,
                    size,
                );
            }
            state.used += size;
            return;
        }
        let full = take(&mut state);
        // Callbacks run without the lock, as CUPTI's do.
        drop(state);
        give_back(full);
        let (mut buffer, mut capacity, mut most) = (null_mut(), 0, 0);
        unsafe { request(&raw mut buffer, &raw mut capacity, &raw mut most) };
        if buffer.is_null() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut state = self::state();
        if state.buffer != 0 {
            // Another thread was faster.
            let complete = state.complete;
            drop(state);
            give_back(Some((complete, buffer as usize, capacity, 0)));
            continue;
        }
        state.buffer = buffer as usize;
        state.capacity = state.limit.map_or(capacity, |limit| capacity.min(limit));
        state.used = 0;
    }
}

type Full = (CUpti_BuffersCallbackCompleteFunc, usize, usize, usize);

fn take(state: &mut State) -> Option<Full> {
    let full = (state.complete, state.buffer, state.capacity, state.used);
    (std::mem::take(&mut state.buffer) != 0).then_some(full)
}

fn give_back(full: Option<Full>) {
    if let Some((Some(complete), buffer, capacity, used)) = full {
        unsafe { complete(null_mut(), 0, buffer as *mut u8, capacity, used) };
    }
}

/// Another tool registers callbacks of its own without a word, as newer Kineto does.
#[unsafe(no_mangle)]
pub extern "C" fn fake_steal_callbacks() {
    unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
        unsafe {
            *buffer = libc::malloc(1 << 20).cast();
            *size = 1 << 20;
            *most = 0;
        }
    }
    unsafe extern "C" fn complete(
        _context: cudarc::driver::sys::CUcontext,
        _stream: u32,
        _buffer: *mut u8,
        _size: usize,
        _valid: usize,
    ) {
    }
    let mut state = state();
    state.request = Some(request);
    state.complete = Some(complete);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> u32 {
    unsafe { *version = CUPTI_API_VERSION };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(code: u32, text: *mut *const c_char) -> u32 {
    let name: &CStr = match code {
        SUCCESS => c"CUPTI_SUCCESS",
        MAX_LIMIT_REACHED => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
        NOT_INITIALIZED => c"CUPTI_ERROR_NOT_INITIALIZED",
        INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
        NOT_SUPPORTED => c"CUPTI_ERROR_NOT_SUPPORTED",
        MULTIPLE_SUBSCRIBERS => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        _ => c"CUPTI_ERROR_UNKNOWN",
    };
    unsafe { *text = name.as_ptr() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    handle: *mut *mut c_void,
    _callback: *const c_void,
    _user: *mut c_void,
) -> u32 {
    let mut state = state();
    if state.subscribed || environment::number("FAKE_CUDA_SUBSCRIBED").is_some() {
        return MULTIPLE_SUBSCRIBERS;
    }
    state.subscribed = true;
    unsafe { *handle = std::ptr::without_provenance_mut(1) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(_kind: u32) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(time: *mut u64) -> u32 {
    unsafe { *time = environment::device_time() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    request: CUpti_BuffersCallbackRequestFunc,
    complete: CUpti_BuffersCallbackCompleteFunc,
) -> u32 {
    let mut state = state();
    state.request = request;
    state.complete = complete;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> u32 {
    if environment::number("FAKE_CUDA_REFUSED_KIND") == Some(kind.into()) {
        return NOT_SUPPORTED;
    }
    let mut state = state();
    let Some(enabled) = state.kinds.get_mut(kind as usize) else {
        return INVALID_KIND;
    };
    *enabled = true;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> u32 {
    let mut state = state();
    let Some(enabled) = state.kinds.get_mut(kind as usize) else {
        return INVALID_KIND;
    };
    *enabled = false;
    SUCCESS
}

fn set_muted(domain: u32, id: u32, enable: u8) -> u32 {
    let mut state = state();
    state.muted.retain(|muted| *muted != (domain, id));
    if enable == 0 {
        state.muted.push((domain, id));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(id: u32, enable: u8) -> u32 {
    set_muted(2, id, enable)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(id: u32, enable: u8) -> u32 {
    set_muted(1, id, enable)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushPeriod(_milliseconds: u32) -> u32 {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(_flag: u32) -> u32 {
    if TORN_DOWN.load(Ordering::SeqCst) {
        return NOT_INITIALIZED;
    }
    let full = take(&mut state());
    give_back(full);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u8,
) -> u32 {
    unsafe {
        let next = if (*record).is_null() {
            buffer
        } else {
            (*record).add(record_size((*record).cast::<u32>().read_unaligned()))
        };
        let offset = next as usize - buffer as usize;
        if offset + 8 > valid {
            return MAX_LIMIT_REACHED;
        }
        let size = record_size(next.cast::<u32>().read_unaligned());
        if size == 0 || offset + size > valid {
            return INVALID_KIND;
        }
        *record = next;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> u32 {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let all =
        environment::number("FAKE_CUDA_DROPPED").filter(|_| !TOLD.swap(true, Ordering::Relaxed));
    let told = all.and_then(|all| usize::try_from(all).ok()).unwrap_or(0);
    unsafe { *dropped = told + DROPPED.swap(0, Ordering::Relaxed) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(
    domain: u32,
    id: u32,
    name: *mut *const c_char,
) -> u32 {
    let found: &CStr = match (domain, id) {
        (2, 211) => c"cudaLaunchKernel_v7000",
        (2, 41) => c"cudaMemcpyAsync_v3020",
        (2, 48) => c"cudaMemcpyPeerAsync_v4000",
        (2, 51) => c"cudaMemsetAsync_v3020",
        (2, 165) => c"cudaDeviceSynchronize_v3020",
        (2, 311) => c"cudaGraphLaunch_v10000",
        (2, 17) => c"cudaGetDevice_v3020",
        (1, 307) => c"cuLaunchKernel",
        _ => return INVALID_KIND,
    };
    unsafe { *name = found.as_ptr() };
    SUCCESS
}
