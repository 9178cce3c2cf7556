//! Macros for the entries of sys.rs, which bindings/generate/generate writes.

macro_rules! constants {
    ($($kind:ident { $($name:ident = $value:literal $($text:literal)*),* })*) => { $(
        pub type $kind = u32;
        $($(#[doc = $text])* pub const $name: $kind = $value;)*
    )* };
}

macro_rules! handles {
    ($($name:ident = $object:ident),*) => { $(
        #[doc = concat!("Opaque object of [`", stringify!($name), "`].")]
        #[repr(C)]
        pub struct $object {
            _opaque: [u8; 0],
        }
        pub type $name = *mut $object;
    )* };
}

macro_rules! structs {
    ($about:literal, $finish:expr; $($name:ident { $($field:ident: $kind:ty),* })*) => { $(
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct $name {
            $(pub $field: $kind),*
        }

        impl $name {
            #[doc = $about]
            pub fn zeroed() -> Self {
                // SAFETY: fields are integers, floats and nullable pointers, for which 0 is valid.
                $finish(unsafe { core::mem::zeroed::<Self>() })
            }
        }
    )* };
}

/// Returns the last of one or two types.
macro_rules! raw_type {
    ($kind:ty) => {
        $kind
    };
    ($kind:ty, $raw:ty) => {
        $raw
    };
}

/// Defines functions that return a struct with its defaults, and declares those that write it.
/// A string has two types, that of Rust and that of C: `kernel: &CStr = *const c_char`.
macro_rules! defaults {
    ($($name:ident($($argument:ident: $kind:ty $(= $raw:ty)?),*) -> $result:ident = $init:ident;)*) => { $(
        extern "C" {
            #[must_use]
            pub fn $init(
                value: *mut $result, struct_size: usize $(, $argument: raw_type!($kind $(, $raw)?))*
            ) -> mp_status_t;
        }

        pub fn $name($($argument: $kind),*) -> $result {
            let mut value = $result::zeroed();
            let size = core::mem::size_of::<$result>();
            // SAFETY: writes that many bytes.  On failure struct_size is 0, which calls reject.
            let _ = unsafe { $init(&mut value, size $(, $argument $(.as_ptr() as $raw)?)*) };
            value
        }
    )* };
}

/// Defines the constants of enums of C, and the same enums in Rust, in module `numbers`.
macro_rules! numbered {
    ($($(#[$about:meta])* $name:ident $kind:ident {
        $($variant:ident $raw:ident = $value:literal $($text:literal)*),* $(,)?
    })*) => {
        constants! { $($kind { $($raw = $value $($text)*),* })* }

        pub(crate) mod numbers {
            #[allow(unused_imports)] // for links
            use super::*;
            $(
                $(#[$about])*
                #[non_exhaustive]
                #[repr(u32)]
                #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
                pub enum $name {
                    $(
                        $(#[doc = $text])*
                        #[doc = concat!("\n[`", stringify!($raw), "`]")]
                        $variant = $value,
                    )*
                }

                impl $name {
                    /// Returns the variant with this value, or None if it is newer than this crate.
                    pub fn from_raw(raw: u32) -> Option<Self> {
                        match raw {
                            $($value => Some(Self::$variant),)*
                            _ => None,
                        }
                    }
                }
            )*
        }
    };
}

/// Defines the constants of flags of C, and types of flags, in module `bits`.
macro_rules! flags {
    ($($(#[$about:meta])* $name:ident $kind:ident {
        $($flag:ident $raw:ident = $value:literal $($text:literal)*),* $(,)?
    })*) => {
        constants! { $($kind { $($raw = $value $($text)*),* })* }

        pub(crate) mod bits {
            use super::*;
            $(
                $(#[$about])*
                #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
                pub struct $name(u32);

                impl $name {
                    $(
                        $(#[doc = $text])*
                        #[doc = concat!("\n[`", stringify!($raw), "`]")]
                        pub const $flag: Self = Self($raw);
                    )*
                }

                flag_operations! { $name }
            )*
        }
    };
}

macro_rules! flag_operations {
    ($name:ident) => {
        impl $name {
            /// Returns the flags with these bits, as in [`sys`](crate::sys); unknown bits are kept.
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits)
            }

            /// Returns the bits, as in [`sys`](crate::sys).
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// Returns whether all of `flags` are set.
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, flags: Self) -> Self {
                Self(self.0 | flags.0)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, flags: Self) {
                self.0 |= flags.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            /// Returns `self` without `flags`.
            fn sub(self, flags: Self) -> Self {
                Self(self.0 & !flags.0)
            }
        }
    };
}
