//! Ownership of the library's objects: when they are freed, and which thread may use them.

use crate::context::Context;
use crate::error::Result;
use crate::sys;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps memory or an object of the library, and everything that it uses, from being freed.
pub(crate) type Owner = Arc<dyn Keep>;

pub(crate) trait Keep: Send + Sync {
    /// The context in which it was made.
    fn context(&self) -> &Context;
    /// Replaces the owners that it keeps, and returns the old ones.
    fn keep(&self, used: Vec<Owner>) -> Vec<Owner>;
}

impl fmt::Debug for dyn Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owner").field("context", self.context()).finish_non_exhaustive()
    }
}

struct Object<T> {
    raw: *mut T,
    destroy: unsafe fn(&Context, *mut T),
    used: Mutex<Vec<Owner>>, // dropped after `raw`, and before the context
    context: Context,
}

// SAFETY: `raw` is used by `drop` alone, which has the last reference, and the library destroys
// objects in any thread.
unsafe impl<T> Send for Object<T> {}
// SAFETY: as above; the other members are Sync.
unsafe impl<T> Sync for Object<T> {}

impl<T> Keep for Object<T> {
    fn context(&self) -> &Context {
        &self.context
    }

    fn keep(&self, used: Vec<Owner>) -> Vec<Owner> {
        std::mem::replace(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner), used)
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: `destroy` frees it, by the contract of `Handle::new`; objects that use it keep an
        // owner, so there are none.
        unsafe { (self.destroy)(&self.context, self.raw) }
    }
}

/// Memory or an object of the library, with a share in its ownership.
///
/// Not Sync: as with a `Cell`, calls write through `&`.
pub(crate) struct Handle<T> {
    owner: Owner,
    raw: *mut T,
}

// SAFETY: the library binds no object to a thread.  Handles of one object, or of objects that share
// memory, may be in different threads.  Every call that reads or writes objects or memory is
// therefore made by `Handle::call` or `Context::call`, under the lock of the context.
unsafe impl<T> Send for Handle<T> {}

impl<T: 'static> Handle<T> {
    /// # Safety
    /// `raw` belongs to `context`, has no other owner, uses only `used`, and `destroy` frees it.
    pub(crate) unsafe fn new(
        context: &Context, raw: *mut T, destroy: unsafe fn(&Context, *mut T), used: Vec<Owner>,
    ) -> Self {
        let (used, context) = (Mutex::new(used), context.clone());
        Handle { owner: Arc::new(Object { raw, destroy, used, context }), raw }
    }

    /// # Safety
    /// `raw` lives as long as what `owner` keeps.
    pub(crate) unsafe fn lent(owner: &Owner, raw: *mut T) -> Self {
        Handle { owner: owner.clone(), raw }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.raw).finish()
    }
}

impl<T> Handle<T> {
    pub(crate) fn as_raw(&self) -> *mut T {
        self.raw
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(crate) fn context(&self) -> &Context {
        self.owner.context()
    }

    /// Calls a function of the library with the object, see [`Context::call`].
    pub(crate) fn call(&self, function: impl FnOnce(*mut T) -> sys::mp_status_t) -> Result<()> {
        self.context().call(|_| function(self.raw))
    }
}
