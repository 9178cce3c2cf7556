// fp32 and fp64 instructions: PTX ISA, Floating-Point Instructions.
//
// Approximate instructions are computed exactly; hardware results differ in the last bits.
#include <cmath>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/float_value.h"
#include "softgpu/isa/rounding.h"

namespace softgpu {
namespace {

constexpr auto divide = []<class T>(T a, T b) { return a / b; };
constexpr auto multiply_add = []<class T>(T a, T b, T c) { return std::fma(a, b, c); };
constexpr auto reciprocal = []<class T>(T a) { return 1 / a; };
constexpr auto square_root = []<class T>(T a) { return std::sqrt(a); };

/// Computes a * (1 / b); the reciprocal of a number above 2^126 is zero.
constexpr auto divide_fast = []<class T>(T a, T b) {
  return std::fabs(b) > 0x1p126f ? a * std::copysign(T{0}, b) : a / b;
};
constexpr auto reciprocal_root = []<class T>(T a) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(a)));
};
constexpr auto logarithm = []<class T>(T a) { return std::log2(a); };
constexpr auto sine = []<class T>(T a) { return std::sin(a); };
constexpr auto cosine = []<class T>(T a) { return std::cos(a); };

/// fp64 approximations flush subnormal operands and keep only the upper 32 bits of the result.
template <auto kOp>
double approximate_double(double x) {
  if (std::fabs(x) < 0x1p-1022) x = std::copysign(0.0, x);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(kOp(x)) & 0xFFFFFFFF00000000);
}

/// Decodes add, sub and mul, which round to nearest by default, or fma and mad, which require a
/// rounding mode.
template <auto kOp, bool kMustSay = false>
void decode_rounded(OpcodeCursor &form) {
  const int rounding = kMustSay ? need_rounding(form) : take_rounding(form, FE_TONEAREST);
  decode_float_op<kOp, true>(form);
  set_rounding(form, rounding);
}

void decode_div(OpcodeCursor &form) {
  const bool is_double = form.type == Type::kF64;
  if (!is_double && form.take("approx")) return decode_single<divide_fast>(form);
  if (!is_double && form.take("full")) return decode_single<divide>(form);
  const int rounding = is_double ? take_rounding(form, FE_TONEAREST) : need_rounding(form);
  decode_float_op<divide>(form);
  set_rounding(form, rounding);
}

/// Decodes an approximation; some also exist in fp64.
template <auto kOp, bool kHasDouble>
void decode_approximation(OpcodeCursor &form) {
  form.need_any({"approx"});
  if (form.type == Type::kF32) return decode_single<kOp>(form);
  if constexpr (kHasDouble) {
    form.need_any({"ftz"});
    decode_elementwise<approximate_double<kOp>>(form);
  } else {
    form.unknown_type();
  }
}
/// Decodes rsqrt.  Without .ftz, the fp64 instruction is exact.
void decode_rsqrt(OpcodeCursor &form) {
  if (form.type == Type::kF32 || form.decoder.has("ftz"))
    return decode_approximation<reciprocal_root, true>(form);
  form.need_any({"approx"});
  decode_float_op<reciprocal_root>(form);
}
/// rcp and sqrt: approximate or rounded.
template <auto kOp, bool kHasDouble>
void decode_root(OpcodeCursor &form) {
  const int rounding = take_rounding(form, -1);
  if (rounding < 0) return decode_approximation<kOp, kHasDouble>(form);
  decode_float_op<kOp>(form);
  set_rounding(form, rounding);
}

template <auto kOp>
void decode_extremum(OpcodeCursor &form) {
  if (form.type == Type::kF32 && form.take("NaN")) return decode_single<or_nan<kOp>>(form);
  decode_float_op<kOp>(form);
}

// abs, neg and copysign operate on bits, also for a NaN.

template <class W>
constexpr W kSign = W{1} << (8 * sizeof(W) - 1);

constexpr auto clear_sign = []<class W>(W a) { return a & ~kSign<W>; };
constexpr auto flip_sign = []<class W>(W a) { return a ^ kSign<W>; };
/// Returns the magnitude of b with the sign of a.
constexpr auto copy_sign = []<class W>(W a, W b) { return (a & kSign<W>) | (b & ~kSign<W>); };
template <auto kOp>
uint32_t flushed(uint32_t a) {
  return kOp(std::bit_cast<uint32_t>(flush(std::bit_cast<float>(a))));
}

template <auto kOp>
void decode_sign(OpcodeCursor &form) {
  if (form.type == Type::kF64) return decode_elementwise<kOp, uint64_t>(form);
  if constexpr (std::is_invocable_v<decltype(kOp), uint32_t>)
    if (form.take("ftz")) return decode_elementwise<flushed<kOp>>(form);
  decode_elementwise<kOp, uint32_t>(form);
}

constexpr OpcodeEntry kOpcodes[] = {
    {"abs", decode_sign<clear_sign>},
    {"add", decode_rounded<add>},
    {"copysign", decode_sign<copy_sign>},
    {"cos", decode_approximation<cosine, false>},
    {"div", decode_div},
    {"ex2", decode_approximation<power_of_two, false>},
    {"fma", decode_rounded<multiply_add, true>},
    {"lg2", decode_approximation<logarithm, false>},
    {"mad", decode_rounded<multiply_add, true>},
    {"max", decode_extremum<maximum>},
    {"min", decode_extremum<minimum>},
    {"mul", decode_rounded<multiply>},
    {"neg", decode_sign<flip_sign>},
    {"rcp", decode_root<reciprocal, true>},
    {"rsqrt", decode_rsqrt},
    {"sin", decode_approximation<sine, false>},
    {"sqrt", decode_root<square_root, false>},
    {"sub", decode_rounded<subtract>},
    {"tanh", decode_approximation<hyperbolic_tangent, false>},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_float(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
