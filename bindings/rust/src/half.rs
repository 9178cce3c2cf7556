//! The 16-bit floating-point types.

macro_rules! bits {
    ($name:ident) => {
        impl $name {
            /// Creates a number from its bits.
            pub const fn from_bits(bits: u16) -> Self {
                Self(bits)
            }

            /// Returns the bits.
            pub const fn to_bits(self) -> u16 {
                self.0
            }

            /// Reinterprets a slice of bits.
            pub fn slice_from_bits(bits: &[u16]) -> &[Self] {
                // SAFETY: `repr(transparent)`, so elements and slices have one layout.
                unsafe { std::slice::from_raw_parts(bits.as_ptr().cast(), bits.len()) }
            }

            /// Reinterprets a mutable slice of bits.
            pub fn slice_from_bits_mut(bits: &mut [u16]) -> &mut [Self] {
                // SAFETY: as above; `bits` is borrowed as long as the result.
                unsafe { std::slice::from_raw_parts_mut(bits.as_mut_ptr().cast(), bits.len()) }
            }
        }

        impl From<$name> for f32 {
            fn from(x: $name) -> f32 {
                x.to_f32()
            }
        }
    };
}

/// IEEE binary16.
///
/// `f16` of the crate `half` has the same layout.  Its `reinterpret_cast` returns slices of bits,
/// so arrays are copied without a conversion.  The same holds for [`Bf16`] and `half::bf16`.
/// ```
/// use mpcore::{Context, Device, F16};
/// # fn main() -> mpcore::Result<()> {
/// let context = Context::new(Device::Host)?;
/// # let mut bits = [0x3c00, 0xc000u16];
/// // use half::slice::HalfFloatSliceExt;
/// // let mut values = [half::f16::from_f32(1.0), half::f16::from_f32(-2.0)];
/// // let bits: &mut [u16] = values.reinterpret_cast_mut();
/// let buffer = context.upload(F16::slice_from_bits(&bits))?;
/// buffer.copy_to(F16::slice_from_bits_mut(&mut bits))?;
/// assert_eq!(f32::from(F16::from_bits(bits[1])), -2.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);
bits!(F16);

impl F16 {
    /// Rounds to nearest, ties to even; overflows become infinite.
    pub fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return F16(sign | 0x7e00); // NaN
        }
        if magnitude >= 0x4780_0000 {
            return F16(sign | 0x7c00); // 65536 and more
        }
        if magnitude < 0x3880_0000 {
            // Below 2^-14 the step is 2^-24: adding 0.5 (whose own step that is) rounds to it.
            let rounded = (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits();
            return F16(sign | rounded as u16);
        }
        let odd = magnitude >> 13 & 1;
        // A carry out of the mantissa goes into the exponent, where it belongs, 65520 to infinity.
        F16(sign | ((magnitude - 0x3800_0000 + 0xfff + odd) >> 13) as u16)
    }

    /// Converts exactly.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let magnitude = u32::from(self.0 & 0x7fff);
        let bits = match magnitude {
            0x7c00..=0x7fff => 0x7f80_0000 | (magnitude & 0x3ff) << 13,
            0x0400..=0x7bff => (magnitude << 13) + 0x3800_0000,
            _ => (magnitude as f32 / 16_777_216.0).to_bits(), // multiples of 2^-24
        };
        f32::from_bits(sign | bits)
    }
}

/// bfloat16: the upper half of an `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);
bits!(Bf16);

impl Bf16 {
    /// Rounds to nearest, ties to even; overflows become infinite.
    pub fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        if x.is_nan() {
            return Bf16((bits >> 16) as u16 | 0x40);
        }
        Bf16(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }

    /// Converts exactly.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_comes_back() {
        for bits in 0..=u16::MAX {
            let x = F16(bits).to_f32();
            let back = F16::from_f32(x);
            assert!(back.0 == bits || x.is_nan() && back.to_f32().is_nan(), "{bits:#06x}");
        }
    }

    #[test]
    fn f16_rounds_to_even_at_every_midpoint() {
        for bits in 0..0x7bffu16 {
            let (low, high) = (F16(bits).to_f32(), F16(bits + 1).to_f32());
            let middle = (low + high) / 2.0; // exact in f32
            assert_eq!(F16::from_f32(middle).0, bits + (bits & 1), "{bits:#06x}");
            assert_eq!(F16::from_f32(f32::from_bits(middle.to_bits() + 1)).0, bits + 1);
            assert_eq!(F16::from_f32(f32::from_bits(middle.to_bits() - 1)).0, bits);
        }
        assert_eq!(F16::from_f32(65519.996), F16(0x7bff));
        assert_eq!(F16::from_f32(65520.0), F16(0x7c00));
        assert_eq!(F16::from_f32(-1e30), F16(0xfc00));
    }

    #[test]
    fn bf16_rounds_to_even() {
        for bits in (0..0x7f7fu16).chain(0x8000..0xff7f) {
            assert_eq!(Bf16::from_f32(Bf16(bits).to_f32()).0, bits);
            let middle = f32::from_bits(u32::from(bits) << 16 | 0x8000);
            assert_eq!(Bf16::from_f32(middle).0, bits + (bits & 1));
        }
        assert_eq!(Bf16::from_f32(f32::MAX).0, 0x7f80);
        assert!(Bf16::from_f32(f32::NAN).to_f32().is_nan());
    }
}
