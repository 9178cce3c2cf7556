// cvt between all types, compared with C++ on special and random values.
#include <algorithm>
#include <limits>

#include "softgpu/tests/arithmetic_check.h"
#include "softgpu/tests/half_oracle.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

__extension__ using Int128 = __int128;
using H = uint16_t;

/// C++ type of the register for an integer: 8-bit integers use registers of 16 or 32 bits.
template <class T>
using Register = std::conditional_t<sizeof(T) == 1, uint32_t, T>;

/// Truncates a number to a type and extends it to the register.
template <class To>
Register<To> in_register(To x) {
  return static_cast<Register<To>>(x);
}

template <class To, class From>
void check_integers() {
  const std::string types = "." + name<To>() + "." + name<From>();
  check<Register<To>, Register<From>>("cvt" + types, [](Register<From> a) {
    return in_register(static_cast<To>(static_cast<From>(a)));
  });
  check<Register<To>, Register<From>>("cvt.sat" + types, [](Register<From> a) {
    using Limits = std::numeric_limits<To>;
    const Int128 exact = static_cast<From>(a);
    return in_register(static_cast<To>(std::clamp<Int128>(exact, Limits::min(), Limits::max())));
  });
}
TEMPLATE_TEST_CASE("cvt between integers matches C++", "[arithmetic]", uint8_t, int8_t, uint16_t,
                   int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  check_integers<TestType, uint8_t>();
  check_integers<TestType, int8_t>();
  check_integers<TestType, uint16_t>();
  check_integers<TestType, int16_t>();
  check_integers<TestType, uint32_t>();
  check_integers<TestType, int32_t>();
  check_integers<TestType, uint64_t>();
  check_integers<TestType, int64_t>();
}

TEST_CASE("cvt accepts registers wider than its types", "[arithmetic]") {
  using L = uint64_t;
  check<L, L>("cvt.s32.s8", [](L a) { return static_cast<L>(int64_t{static_cast<int8_t>(a)}); });
  check<L, L>("cvt.u16.u32", [](L a) { return a & 0xFFFF; });
  check<L, uint32_t>("cvt.s16.s32",
                     [](uint32_t a) { return static_cast<L>(int64_t{static_cast<int16_t>(a)}); });
  const auto extend = [](auto a) {
    return static_cast<uint32_t>(int32_t{static_cast<int16_t>(a)});
  };
  check<uint32_t, uint32_t>("cvt.s16.s32", extend);
  check<uint32_t, uint32_t>("cvt.u16.u32", [](uint32_t a) { return a & 0xFFFF; });
  check<uint32_t, float>("cvt.rzi.s16.f32", [&](float a) {
    return std::isnan(a) ? 0 : extend(std::clamp(a, -32768.0f, 32767.0f));
  });
  check<H, float>("cvt.rzi.s8.f32", [](float a) {
    return std::isnan(a) ? H{0}
                         : static_cast<H>(static_cast<int8_t>(std::clamp(a, -128.0f, 127.0f)));
  });
  check<uint32_t, L>("cvt.u32.u16", [](L a) { return static_cast<uint32_t>(a & 0xFFFF); });
  check<H, H>("cvt.u16.u8", [](H a) { return static_cast<H>(a & 0xFF); });
  check<H, H>("cvt.s16.s8", [](H a) { return static_cast<H>(static_cast<int8_t>(a)); });
}

template <class From>
void check_integer_to_float() {
  using R = Register<From>;
  for (const RoundingMode &m : kModes) {
    check<float, R>("cvt" + (m.name + (".f32." + name<From>())), [&](R a) {
      volatile From x = static_cast<From>(a);
      return rounded(m.mode, [&] { return static_cast<float>(x); });
    });
    check<double, R>("cvt" + (m.name + (".f64." + name<From>())), [&](R a) {
      volatile From x = static_cast<From>(a);
      return rounded(m.mode, [&] { return static_cast<double>(x); });
    });
  }
  check<H, R>("cvt.rn.f16." + name<From>(),
              [](R a) { return narrow(kFp16Format, static_cast<Float128>(static_cast<From>(a))); });
  check<H, R>("cvt.rn.bf16." + name<From>(),
              [](R a) { return narrow(kBf16Format, static_cast<Float128>(static_cast<From>(a))); });
}
TEST_CASE("cvt from integers to floating point rounds correctly", "[arithmetic]") {
  check_integer_to_float<uint8_t>();
  check_integer_to_float<int8_t>();
  check_integer_to_float<uint16_t>();
  check_integer_to_float<int16_t>();
  check_integer_to_float<uint32_t>();
  check_integer_to_float<int32_t>();
  check_integer_to_float<uint64_t>();
  check_integer_to_float<int64_t>();
}

/// Source: PTX ISA, cvt, Integer Notes.
template <class To>
Register<To> to_integer(double x, int mode, bool is_from_double = false) {
  const uint64_t highest = uint64_t{1} << (8 * sizeof(To) - 1);
  if (std::isnan(x))
    return in_register(static_cast<To>(is_from_double || sizeof(To) == 8 ? highest : 0));
  const double integral = rounded(mode, [&] { return std::nearbyint(x); });
  using Limits = std::numeric_limits<To>;
  if (integral >= std::ldexp(1.0, Limits::digits)) return in_register(Limits::max());
  if (integral < static_cast<double>(Limits::min())) return in_register(Limits::min());
  return in_register(static_cast<To>(integral));
}
TEMPLATE_TEST_CASE("cvt from floating point to integers rounds and clamps", "[arithmetic]", uint8_t,
                   int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  using To = TestType;
  using R = Register<To>;
  for (const RoundingMode &m : kModes) {
    const std::string opcode = "cvt" + (m.name + ("i." + name<To>()));
    check<R, float>(opcode + ".f32", [&](float a) { return to_integer<To>(a, m.mode); });
    check<R, double>(opcode + ".f64", [&](double a) { return to_integer<To>(a, m.mode, true); });
    check_of_halves<R, H>(opcode + ".f16",
                          [&](H a) { return to_integer<To>(widen(kFp16Format, a), m.mode); });
    check_of_halves<R, H>(opcode + ".bf16",
                          [&](H a) { return to_integer<To>(widen(kBf16Format, a), m.mode); });
  }
  check<R, float>("cvt.rpi.ftz." + name<To>() + ".f32",
                  [](float a) { return to_integer<To>(flush(a), FE_UPWARD); });
}

TEST_CASE("cvt from halves to floating point is exact", "[arithmetic]") {
  check_of_halves<float, H>("cvt.f32.f16",
                            [](H a) { return static_cast<float>(widen(kFp16Format, a)); });
  check_of_halves<float, H>("cvt.f32.bf16",
                            [](H a) { return static_cast<float>(widen(kBf16Format, a)); });
  check_of_halves<double, H>("cvt.f64.f16", [](H a) { return widen(kFp16Format, a); });
  check_of_halves<double, H>("cvt.f64.bf16", [](H a) { return widen(kBf16Format, a); });
  check_of_halves<float, H>("cvt.sat.f32.f16", [](H a) {
    const double x = widen(kFp16Format, a);
    return x > 0 ? static_cast<float>(std::min(x, 1.0)) : 0.0f;
  });
}

TEST_CASE("cvt between fp32 and fp64 rounds correctly", "[arithmetic]") {
  check<double, float>("cvt.f64.f32", [](float a) { return static_cast<double>(a); });
  check<double, float>("cvt.ftz.f64.f32", [](float a) { return static_cast<double>(flush(a)); });
  check<float, float>("cvt.sat.f32.f32", [](float a) { return a > 0 ? std::min(a, 1.0f) : 0.0f; });
  check<float, float>("cvt.ftz.f32.f32", flush);
  for (const RoundingMode &m : kModes) {
    check<float, double>("cvt" + (m.name + std::string(".f32.f64")), [&](double a) {
      volatile double x = a;
      return rounded(m.mode, [&] { return static_cast<float>(x); });
    });
    check<float, float>("cvt" + (m.name + std::string("i.f32.f32")), [&](float a) {
      return rounded(m.mode, [&] { return std::nearbyint(a); });
    });
    check<double, double>("cvt" + (m.name + std::string("i.f64.f64")), [&](double a) {
      return rounded(m.mode, [&] { return std::nearbyint(a); });
    });
    check_of_halves<H, H>("cvt" + (m.name + std::string("i.f16.f16")), [&](H a) {
      const double x = widen(kFp16Format, a);
      return narrow(kFp16Format,
                    static_cast<Float128>(rounded(m.mode, [&] { return std::nearbyint(x); })));
    });
  }
}

TEST_CASE("cvt from floating point to halves rounds correctly", "[arithmetic]") {
  struct Format {
    std::string name;
    HalfFormat layout;
  };
  for (const Format &format : {Format{".f16", kFp16Format}, Format{".bf16", kBf16Format}}) {
    const HalfFormat &f = format.layout;
    for (const RoundingMode &m : kModes) {
      const std::string opcode = "cvt" + (m.name + format.name);
      check<H, float>(opcode + ".f32", [&](float a) { return narrow(f, a, m.mode); });
      check<H, double>(opcode + ".f64", [&](double a) { return narrow(f, a, m.mode); });
    }
    check<H, float>("cvt.rn.relu" + format.name + ".f32",
                    [&](float a) { return narrow(f, a < 0 ? 0 : a); });
    check<H, float>("cvt.rn.ftz" + format.name + ".f32",
                    [&](float a) { return narrow(f, flush(a)); });
    check<H, float>("cvt.rn.sat" + format.name + ".f32",
                    [&](float a) { return narrow(f, a > 0 ? std::min(a, 1.0f) : 0.0f); });
  }
}

TEST_CASE("cvt packs two numbers into a pair", "[arithmetic]") {
  struct Format {
    std::string name;
    HalfFormat layout;
  };
  using P = uint32_t;
  for (const Format &format : {Format{".f16x2", kFp16Format}, Format{".bf16x2", kBf16Format}}) {
    const auto pair = [&](auto &&of_one) {
      return [&, of_one](float a, float b) { return P{of_one(a)} << 16 | of_one(b); };
    };
    const HalfFormat &f = format.layout;
    const auto finite = [&](float a) -> H {
      const H half = narrow(f, a);
      return (half & 0x7FFF) == f.infinity() ? half - 1 : half;
    };
    check<P, float, float>("cvt.rn" + format.name + ".f32",
                           pair([&](float a) { return narrow(f, a); }));
    check<P, float, float>("cvt.rz" + format.name + ".f32",
                           pair([&](float a) { return narrow(f, a, FE_TOWARDZERO); }));
    check<P, float, float>("cvt.rn.relu" + format.name + ".f32",
                           pair([&](float a) { return narrow(f, a < 0 ? 0 : a); }));
    check<P, float, float>("cvt.rn.satfinite" + format.name + ".f32", pair(finite));
    check<P, float, float>("cvt.rn.satfinite.relu" + format.name + ".f32",
                           pair([&](float a) { return finite(a < 0 ? 0 : a); }));
  }
}

TEST_CASE("cvt to tf32 keeps ten fraction bits", "[arithmetic]") {
  const auto to_tf32 = [](float a, auto &&round) -> uint32_t {
    if (std::isnan(a)) return 0x7FFFFFFF;
    if (std::isinf(a)) return static_cast<uint32_t>(to_bits(a));
    // The last place follows the power of two down to subnormal numbers; a double represents it
    // exactly.
    const int exponent = std::max(a == 0 ? -126 : std::ilogb(a), -126);
    const double units = round(std::ldexp(static_cast<double>(a), 10 - exponent));
    return static_cast<uint32_t>(to_bits(static_cast<float>(std::ldexp(units, exponent - 10))));
  };
  using P = uint32_t;
  check<P, float>("cvt.rna.tf32.f32",
                  [&](float a) { return to_tf32(a, [](double x) { return std::round(x); }); });
  check<P, float>("cvt.rn.tf32.f32",
                  [&](float a) { return to_tf32(a, [](double x) { return std::nearbyint(x); }); });
  check<P, float>("cvt.rz.tf32.f32",
                  [&](float a) { return to_tf32(a, [](double x) { return std::trunc(x); }); });
}

}  // namespace
}  // namespace softgpu::test
