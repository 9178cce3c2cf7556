// PTX ISA, Floating-Point Instructions, of fp32 and fp64.
//
// The approximations are as good as the exact forms here; hardware's differ in the last places.
#include <cmath>

#include "tools/softgpu/isa/arithmetic.h"
#include "tools/softgpu/isa/float_value.h"
#include "tools/softgpu/isa/rounding.h"

namespace softgpu {
namespace {

constexpr auto divide = []<class T>(T a, T b) { return a / b; };
constexpr auto multiply_add = []<class T>(T a, T b, T c) { return std::fma(a, b, c); };
constexpr auto reciprocal = []<class T>(T a) { return 1 / a; };
constexpr auto square_root = []<class T>(T a) { return std::sqrt(a); };

/// Computed as a * (1 / b), where the reciprocal of what is greater than 2^126 is zero.
constexpr auto divide_fast = []<class T>(T a, T b) {
  return std::fabs(b) > 0x1p126f ? a * std::copysign(T{0}, b) : a / b;
};
constexpr auto reciprocal_root = []<class T>(T a) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(a)));
};
constexpr auto logarithm = []<class T>(T a) { return std::log2(a); };
constexpr auto sine = []<class T>(T a) { return std::sin(a); };
constexpr auto cosine = []<class T>(T a) { return std::cos(a); };

/// The fp64 approximations flush subnormal operands, and have the upper 32 bits of the result.
template <auto kOp>
double approximate_double(double x) {
  if (std::fabs(x) < 0x1p-1022) x = std::copysign(0.0, x);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(kOp(x)) & 0xFFFFFFFF00000000);
}

/// add, sub, mul: to the nearest if they do not say how.  fma and mad must say.
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

/// In fp64 there is an approximation of some.
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
/// Without .ftz, that of fp64 is a slow one with all digits.
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

// abs, neg and copysign work on bits, those of a NaN too.

template <class W>
constexpr W kSign = W{1} << (8 * sizeof(W) - 1);

constexpr auto clear_sign = []<class W>(W a) { return a & ~kSign<W>; };
constexpr auto flip_sign = []<class W>(W a) { return a ^ kSign<W>; };
/// The size of b with the sign of a.
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
