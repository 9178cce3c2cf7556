//! Devices and device memory.

use crate::enums::{Dtype, Target};
use crate::error::{check, Error, Result};
use crate::half::*;
use crate::owner::{Handle, Owner};
use crate::sys;
use std::any::{type_name, TypeId};
use std::cell::Cell;
use std::ffi::{c_void, CStr};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Device of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The current CUDA device, or the CPU if there is none.
    Auto,
    /// The CPU.
    Host,
    /// The current CUDA device of the calling thread.
    Current,
    /// A CUDA device by its ordinal.
    Cuda(u16),
}

/// Properties of a context's device.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// Target; None if it is unknown to this crate.
    pub target: Option<Target>,
    /// Architecture: 80, 90, ...
    pub arch: i32,
    /// Number of streaming multiprocessors, limited by `sm_limit`.
    pub num_sms: i32,
    /// Name of the device.
    pub name: String,
}

/// A device and limits on its use.  Threads can share it.  Clones refer to the same context, which
/// is freed with the last of its clones and of the objects created from it.
///
/// Calls that use device memory are serialized: threads that share a context enter the library one
/// at a time.  Threads that compute concurrently need separate contexts.
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    raw: sys::mp_context_t,
    turn: Mutex<()>,
}

// SAFETY: a context is immutable, and threads can use it concurrently.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Context {
    /// Creates a context that uses all multiprocessors of the device.
    pub fn new(device: Device) -> Result<Self> {
        Self::with_sm_limit(device, 0)
    }

    /// Creates a context that uses at most `sm_limit` multiprocessors; 0 = all.
    pub fn with_sm_limit(device: Device, sm_limit: i32) -> Result<Self> {
        let mut config = sys::mp_context_config_default();
        config.device = match device {
            Device::Auto => sys::MP_DEVICE_AUTO,
            Device::Host => sys::MP_DEVICE_HOST,
            Device::Current => sys::MP_DEVICE_CURRENT,
            Device::Cuda(ordinal) => i32::from(ordinal),
        };
        config.sm_limit = sm_limit;
        let mut raw = ptr::null_mut();
        // SAFETY: both pointers are valid during the call; the config has no allocator.
        check(unsafe { sys::mp_context_create(&mut raw, &config) })?;
        Ok(Context(Arc::new(Inner { raw, turn: Mutex::new(()) })))
    }

    /// Returns the raw handle or pointer, for functions of [`sys`].
    pub fn as_raw(&self) -> sys::mp_context_t {
        self.0.raw
    }

    /// Calls a function of the library that uses memory or objects of this context, one call at a
    /// time, because threads can own objects that share memory, such as a buffer and a list of it.
    pub(crate) fn call(
        &self, function: impl FnOnce(sys::mp_context_t) -> sys::mp_status_t,
    ) -> Result<()> {
        let _turn = self.turn();
        check(function(self.0.raw))
    }

    /// Waits for calls of other threads, and keeps them out until the guard is dropped.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the checks of the arguments of a call.
    pub(crate) fn checks<'c>(&'c self, call: &'c str) -> Checks<'c> {
        Checks { context: self, call }
    }

    /// Returns the properties of the device.
    pub fn info(&self) -> Result<DeviceInfo> {
        let mut info = sys::mp_device_info_t::zeroed();
        // SAFETY: the context lives, and `info` contains its size.
        check(unsafe { sys::mp_context_get_info(self.0.raw, &mut info) })?;
        Ok(DeviceInfo {
            target: Target::from_raw(info.target),
            arch: info.arch,
            num_sms: info.num_sms,
            // SAFETY: NUL-terminated inside the array.
            name: unsafe { CStr::from_ptr(info.name.as_ptr()) }.to_string_lossy().into_owned(),
        })
    }

    /// Measures up to `max_kernels` kernels for each new product or convolution and uses the
    /// fastest; 0 stops measuring.  See `mp_tuning_measure`.
    pub fn measure_kernels(&self, max_kernels: i32) -> Result<()> {
        // SAFETY: the context lives.
        check(unsafe { sys::mp_tuning_measure(self.0.raw, max_kernels) })
    }

    /// Allocates memory for `len` elements and fills it with zeros.
    pub fn alloc<T: Plain>(&self, len: usize) -> Result<DeviceBuffer<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
            Error::invalid(format!("alloc: len = {len} exceeds the address space"))
        })?;
        let mut pointer = ptr::null_mut();
        // SAFETY: the context lives and `pointer` is written.
        check(unsafe { sys::mp_malloc(self.0.raw, &mut pointer, bytes.max(1)) })?;
        // SAFETY: memory of this context; mp_free waits for work that uses it.
        let memory = unsafe {
            let free = |context: &Context, memory: *mut T| {
                sys::mp_free(context.as_raw(), memory.cast());
            };
            Handle::new(self, pointer.cast(), free, Vec::new())
        };
        let buffer = DeviceBuffer { memory, len };
        buffer.clear(Stream::DEFAULT)?;
        self.sync(Stream::DEFAULT)?; // another stream may use it next
        Ok(buffer)
    }

    /// Copies `data` to the device.
    pub fn upload<T: Plain>(&self, data: &[T]) -> Result<DeviceBuffer<T>> {
        let buffer = self.alloc(data.len())?;
        buffer.copy_from(data)?;
        Ok(buffer)
    }

    /// Waits for all work in the stream.
    pub fn sync(&self, stream: Stream) -> Result<()> {
        // SAFETY: the context lives, and so does the stream by the contract of `Stream::from_raw`.
        check(unsafe { sys::mp_stream_sync(self.0.raw, stream.0) })
    }

    /// Converts the elements of `src` to the type of `dst`.
    pub fn cast<S: Float, D: Float>(
        &self, src: &impl Data<Element = S>, dst: &impl Data<Element = D>, stream: Stream,
    ) -> Result<()> {
        let (checks, len) = (self.checks("cast"), src.view().len);
        let src = checks.data("src", src, 0)?.cast();
        let dst = checks.data("dst", dst, len as i128)?.cast();
        let (from, to) = (S::DTYPE as u32, D::DTYPE as u32);
        run!(self, mp_cast(src, from, dst, to, len as i64, stream.0))
    }
}

/// Checks of the arguments of a call.
#[derive(Clone, Copy)]
pub(crate) struct Checks<'c> {
    pub(crate) context: &'c Context,
    pub(crate) call: &'c str,
}

impl Checks<'_> {
    /// Checks the context of an argument: addresses are not valid on other devices.
    pub(crate) fn belongs(self, name: &str, to: &Context) -> Result<()> {
        if Arc::ptr_eq(&self.context.0, &to.0) {
            return Ok(());
        }
        Err(Error::invalid(format!("{}: {name} belongs to another context", self.call)))
    }

    /// Checks that an argument has at least `needed` elements.
    pub(crate) fn at_least(self, name: &str, len: usize, needed: i128) -> Result<()> {
        if len as i128 >= needed {
            return Ok(());
        }
        let call = self.call;
        let sentence =
            format!("{call}: {name} has {len} elements, but must have at least {needed}");
        Err(Error::invalid(sentence))
    }

    /// Returns the address of an argument in this context with at least `needed` elements.
    pub(crate) fn data<D: Data>(
        self, name: &str, data: &D, needed: i128,
    ) -> Result<*mut D::Element> {
        let view = data.view();
        self.belongs(name, view.owner.context())?;
        self.at_least(name, view.len, needed)?;
        Ok(view.pointer)
    }

    /// Returns the address of an optional argument, or NULL.
    pub(crate) fn optional<T: Plain>(
        self, name: &str, view: Option<View<'_, T>>, needed: i128,
    ) -> Result<*mut T> {
        view.map_or(Ok(ptr::null_mut()), |view| self.data(name, &view, needed))
    }

    /// Returns address and size in bytes of a workspace, whose size the library checks.
    pub(crate) fn workspace(self, view: Option<View<'_, u8>>) -> Result<(*mut c_void, usize)> {
        Ok((self.optional("workspace", view, 0)?.cast(), view.map_or(0, |view| view.len)))
    }
}

/// Returns the number of elements that rows of `innermost` elements span; `levels` are their counts
/// and strides.
pub(crate) fn span(levels: &[(i64, i64)], innermost: i64) -> i128 {
    if innermost == 0 || levels.iter().any(|&(count, _)| count == 0) {
        return 0;
    }
    let steps = levels.iter().map(|&(count, by)| (i128::from(count) - 1) * i128::from(by));
    steps.fold(i128::from(innermost), i128::saturating_add)
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: created by mp_context_create; objects created from it hold a clone, so none is
        // left.
        unsafe { sys::mp_context_destroy(self.raw) }
    }
}

/// A CUDA stream.  On the host target calls are synchronous and ignore it.
#[derive(Clone, Copy, Debug)]
pub struct Stream(pub(crate) sys::mp_stream_t);

impl Stream {
    /// The default stream.
    pub const DEFAULT: Stream = Stream(ptr::null_mut());

    /// Wraps a `cudaStream_t`.
    ///
    /// # Safety
    /// The stream belongs to the device with which it is used, and lives until its work has
    /// finished.
    pub unsafe fn from_raw(stream: *mut c_void) -> Stream {
        Stream(stream.cast())
    }
}

/// Types that can be stored in device memory.
///
/// # Safety
/// All bit patterns are valid, and there is no padding.
pub unsafe trait Plain: Copy + Default + 'static {}

/// Numbers that kernels compute with: `f32` and 16-bit types, such as [`F16`].
///
/// The trait is sealed because calls read and write elements of the size of `DTYPE`:
/// ```compile_fail,E0277
/// use mpcore::{Dtype, Float, Plain};
/// #[derive(Clone, Copy, Default)]
/// struct Tiny(u8);
/// // SAFETY: a byte.
/// unsafe impl Plain for Tiny {}
/// impl Float for Tiny {
///     const DTYPE: Dtype = Dtype::Fp32;
/// }
/// ```
pub trait Float: Plain + sealed::Float {
    /// Type of the library.
    const DTYPE: Dtype;
}

// SAFETY: all bit patterns are valid.
unsafe impl Plain for u8 {}
// SAFETY: numbers without padding: the header is compiled with -Wpadded.
unsafe impl Plain for TensorReport {}

/// Statistics of one tensor or of a list.
pub type TensorReport = sys::mp_tensor_report_t;

impl Default for TensorReport {
    fn default() -> Self {
        Self::zeroed()
    }
}

mod sealed {
    pub trait Float {}
    pub trait Integer {}
}

/// Type of labels and indices.
pub trait Integer: Plain + sealed::Integer {
    /// Type of the library.
    const DTYPE: Dtype;
}

macro_rules! numbers {
    ($($kind:ident $number:ty = $dtype:ident),*) => {
        $(
            // SAFETY: all bit patterns are valid.
            unsafe impl Plain for $number {}
            impl sealed::$kind for $number {}
            impl $kind for $number {
                const DTYPE: Dtype = Dtype::$dtype;
            }
        )*
        /// Returns the Rust type of a number with its name.
        pub(crate) fn number_of(dtype: Dtype) -> Option<(TypeId, &'static str)> {
            match dtype {
                $(Dtype::$dtype => Some((TypeId::of::<$number>(), type_name::<$number>())),)*
                _ => None,
            }
        }
    };
}
numbers!(Float f32 = Fp32, Float F16 = Fp16, Float Bf16 = Bf16, Integer i32 = Int32, Integer i64 = Int64);

/// Device memory.  It is freed with the buffer and the last list or network that uses it.  Like a
/// `Cell`, it is written through `&`, so threads cannot share it:
/// ```compile_fail,E0277
/// let context = mpcore::Context::new(mpcore::Device::Host).unwrap();
/// let buffer = context.alloc::<f32>(1).unwrap();
/// std::thread::scope(|s| {
///     s.spawn(|| buffer.to_vec());
/// });
/// ```
#[derive(Debug)]
pub struct DeviceBuffer<T: Plain> {
    memory: Handle<T>,
    len: usize,
}

impl<T: Plain> DeviceBuffer<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the raw handle or pointer, for functions of [`sys`].
    pub fn as_ptr(&self) -> *mut T {
        self.memory.as_raw()
    }

    /// Returns address and size in bytes of a workspace.
    pub(crate) fn as_workspace(&self) -> (*mut c_void, usize) {
        (self.as_ptr().cast(), self.len * size_of::<T>())
    }

    /// Returns a view of `len` elements from `start` on.
    ///
    /// # Panics
    /// If the elements are not all in the buffer.
    pub fn slice(&self, start: usize, len: usize) -> View<'_, T> {
        assert!(
            start <= self.len && len <= self.len - start,
            "slice: start = {start} and len = {len} exceed the buffer's {} elements",
            self.len
        );
        View { pointer: self.as_ptr().wrapping_add(start), len, ..self.view() }
    }

    /// Copies all elements from `data`, which must have the same length.  Waits for the default
    /// stream.
    pub fn copy_from(&self, data: &[T]) -> Result<()> {
        self.same_len("copy_from", data.len())?;
        // SAFETY: both have the same number of bytes, and `data` is not used after the sync.
        unsafe { self.copy(self.as_ptr().cast(), data.as_ptr().cast()) }
    }

    /// Copies all elements to `data`, which must have the same length.  Waits for the default
    /// stream.
    pub fn copy_to(&self, data: &mut [T]) -> Result<()> {
        self.same_len("copy_to", data.len())?;
        // SAFETY: both have that many bytes, all bit patterns are a T, and `data` is borrowed until
        // the sync.
        unsafe { self.copy(data.as_mut_ptr().cast(), self.as_ptr().cast()) }
    }

    unsafe fn copy(&self, to: *mut c_void, from: *const c_void) -> Result<()> {
        copy(self.memory.context(), to, from, self.len * size_of::<T>())
    }

    /// Returns all elements.  Waits for the default stream.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// Fills the buffer with zeros, in stream order.
    pub fn clear(&self, stream: Stream) -> Result<()> {
        let (context, bytes) = (self.memory.context().as_raw(), self.len * size_of::<T>());
        // SAFETY: the memory has that many bytes.
        self.memory
            .call(|memory| unsafe { sys::mp_memset(context, memory.cast(), 0, bytes, stream.0) })
    }

    fn same_len(&self, call: &str, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{call}: data has {len} elements, but the buffer has {}",
            self.len
        )))
    }
}

/// # Safety
/// `to` and `from` have `bytes` bytes, of the host or of the context.
unsafe fn copy(
    context: &Context, to: *mut c_void, from: *const c_void, bytes: usize,
) -> Result<()> {
    let stream = Stream::DEFAULT;
    context.call(|c| sys::mp_memcpy(c, to, from, bytes, stream.0))?;
    context.sync(stream)
}

/// A view of elements of a buffer, or of a number inside a scaler.
#[derive(Debug)]
pub struct View<'a, T> {
    pub(crate) owner: &'a Owner,
    pub(crate) pointer: *mut T,
    pub(crate) len: usize,
    pub(crate) borrowed: PhantomData<&'a Cell<T>>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for View<'_, T> {}

impl<T: Plain> View<'_, T> {
    /// Returns all elements.  Waits for the default stream.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut data = vec![T::default(); self.len];
        let (to, bytes) = (data.as_mut_ptr().cast(), self.len * size_of::<T>());
        // SAFETY: the view borrows its owner; both have that many bytes, and all bit patterns are a
        // T.
        unsafe { copy(self.owner.context(), to, self.pointer.cast(), bytes) }?;
        Ok(data)
    }
}

impl<'a, T: Plain> From<&'a DeviceBuffer<T>> for View<'a, T> {
    fn from(buffer: &'a DeviceBuffer<T>) -> Self {
        buffer.view()
    }
}

/// A source of device elements: a buffer or a view.
pub trait Data {
    /// Type of the elements.
    type Element: Plain;
    /// Returns a view of all elements.
    fn view(&self) -> View<'_, Self::Element>;
}

impl<T: Plain> Data for DeviceBuffer<T> {
    type Element = T;
    fn view(&self) -> View<'_, T> {
        View {
            owner: self.memory.owner(),
            pointer: self.as_ptr(),
            len: self.len,
            borrowed: PhantomData,
        }
    }
}

impl<T: Plain> Data for View<'_, T> {
    type Element = T;
    fn view(&self) -> View<'_, T> {
        *self
    }
}
