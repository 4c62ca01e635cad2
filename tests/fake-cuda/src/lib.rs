//! One library that plays `libcuda`, `libcupti` and a program's copy of NVTX, for tests.
//!
//! There is no device: a launch says how long its kernel takes, and the records say that it took
//! exactly as long, one piece of work behind the other. The records have the layouts of CUDA 13.0.
//! Variables of the environment make it behave as badly as real systems do:
//!
//! | variable | effect |
//! |---|---|
//! | `FAKE_CUDA_BUFFER_LIMIT` | buffers count as full after so many bytes |
//! | `FAKE_CUDA_SUBSCRIBED` | another tool has subscribed to CUPTI |
//! | `FAKE_CUDA_REFUSED_KIND` | this kind cannot be enabled |
//! | `FAKE_CUDA_LATE_TEARDOWN` | the driver registers its teardown at the first launch |
//! | `FAKE_CUDA_CLOCK_OFFSET` | CUPTI's clock is so many nanoseconds behind the system's |
//! | `FAKE_CUDA_DROPPED` | CUPTI says that it dropped so many records |
//! | `FAKE_CUDA_UUID` | last byte of the device's UUID |

mod cupti;
mod driver;
mod environment;
mod measure;
mod nvtx;
mod work;
