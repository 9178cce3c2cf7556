// fp32 and fp64 arithmetic, compared with the processor on special and random values.
#include <limits>

#include "softgpu/tests/arithmetic_check.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// Checks an fp32 function with all modifiers.
template <class... A, class F>
void check_flushed(const std::string &opcode, F &&function) {
  check<float, A...>(opcode + ".f32", function);
  check<float, A...>(opcode + ".ftz.f32", [&](A... a) { return flush(function(flush(a)...)); });
}
template <class... A, class F>
void check_saturated(const std::string &opcode, F &&function) {
  check_flushed<A...>(opcode, function);
  check<float, A...>(opcode + ".sat.f32", [&](A... a) { return saturate(function(a...)); });
  check<float, A...>(opcode + ".ftz.sat.f32",
                     [&](A... a) { return saturate(flush(function(flush(a)...))); });
}

TEST_CASE("fp32 products and sums are not contracted", "[arithmetic]") {
  using T = float;
  check_saturated<T, T>("add", [](T a, T b) { return a + b; });
  check_saturated<T, T>("sub", [](T a, T b) { return a - b; });
  check_saturated<T, T>("mul", [](T a, T b) { return a * b; });
  check_saturated<T, T, T>("fma.rn", [](T a, T b, T c) { return std::fma(a, b, c); });
  check<T, T, T, T>("mad.rn.f32", [](T a, T b, T c) { return std::fma(a, b, c); });
}

TEMPLATE_TEST_CASE("fp32 and fp64 arithmetic follows the rounding mode", "[arithmetic]", float,
                   double) {
  using T = TestType;
  const std::string type = sizeof(T) == 4 ? ".f32" : ".f64";
  for (const RoundingMode &m : kModes) {
    const auto in_mode = [&](auto &&function) {
      return [&m, function](auto... operands) {
        // volatile prevents evaluation before the mode is set.
        return std::apply(
            [&](volatile auto... x) { return rounded(m.mode, [&] { return function(T{x}...); }); },
            std::make_tuple(operands...));
      };
    };
    check<T, T, T>("add" + (m.name + type), in_mode([](T a, T b) { return a + b; }));
    check<T, T, T>("sub" + (m.name + type), in_mode([](T a, T b) { return a - b; }));
    check<T, T, T>("mul" + (m.name + type), in_mode([](T a, T b) { return a * b; }));
    check<T, T, T>("div" + (m.name + type), in_mode([](T a, T b) { return a / b; }));
    check<T, T, T, T>("fma" + (m.name + type),
                      in_mode([](T a, T b, T c) { return std::fma(a, b, c); }));
    check<T, T>("rcp" + (m.name + type), in_mode([](T a) { return 1 / a; }));
    check<T, T>("sqrt" + (m.name + type), in_mode([](T a) { return std::sqrt(a); }));
  }
}

TEST_CASE("fp64 arithmetic matches C++", "[arithmetic]") {
  using T = double;
  check<T, T, T>("add.f64", [](T a, T b) { return a + b; });
  check<T, T, T>("sub.f64", [](T a, T b) { return a - b; });
  check<T, T, T>("mul.f64", [](T a, T b) { return a * b; });
}

/// Reference functions: IEEE 754-2019 minimumNumber and maximumNumber.
template <class T>
T least(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T greatest(T a, T b) {
  return std::isnan(a) || std::isnan(b) ? least(a, b) : -least(-a, -b);
}
TEST_CASE("min and max order -0 and NaN", "[arithmetic]") {
  check_flushed<float, float>("min", least<float>);
  check_flushed<float, float>("max", greatest<float>);
  const auto or_nan = [](auto &&function) {
    return [function](float a, float b) {
      return std::isnan(a) || std::isnan(b) ? NAN : function(a, b);
    };
  };
  check<float, float, float>("min.NaN.f32", or_nan(least<float>));
  check<float, float, float>("max.NaN.f32", or_nan(greatest<float>));
  check<double, double, double>("min.f64", least<double>);
  check<double, double, double>("max.f64", greatest<double>);
}

TEST_CASE("abs, neg and copysign change only the sign bit", "[arithmetic]") {
  constexpr uint32_t kSign = 1u << 31;
  constexpr uint64_t kLongSign = uint64_t{1} << 63;
  const auto flushed = [](uint32_t a) { return to_bits(flush(from_bits<float>(a))); };
  using T = uint32_t;
  using L = uint64_t;
  check_of_halves<T, T>("abs.f32", [](T a) { return a & ~kSign; });
  check_of_halves<T, T>("neg.f32", [](T a) { return a ^ kSign; });
  check_of_halves<T, T>("abs.ftz.f32", [&](T a) { return static_cast<T>(flushed(a)) & ~kSign; });
  check_of_halves<T, T>("neg.ftz.f32", [&](T a) { return static_cast<T>(flushed(a)) ^ kSign; });
  check_of_halves<T, T, T>("copysign.f32", [](T a, T b) { return (a & kSign) | (b & ~kSign); });
  check_of_halves<L, L>("abs.f64", [](L a) { return a & ~kLongSign; });
  check_of_halves<L, L>("neg.f64", [](L a) { return a ^ kLongSign; });
  check_of_halves<L, L, L>("copysign.f64",
                           [](L a, L b) { return (a & kLongSign) | (b & ~kLongSign); });
}

TEST_CASE("fp32 functions are rounded from fp64", "[arithmetic]") {
  using T = float;
  const auto from_double = [](auto &&function) {
    return [function](T a) { return static_cast<T>(function(static_cast<double>(a))); };
  };
  check_flushed<T>("rsqrt.approx", from_double([](double a) { return 1 / std::sqrt(a); }));
  check_flushed<T>("ex2.approx", from_double([](double a) { return std::exp2(a); }));
  check_flushed<T>("rcp.approx", [](T a) { return 1 / a; });
  check_flushed<T>("sqrt.approx", [](T a) { return std::sqrt(a); });
  // div.approx is a * (1 / b); the reciprocal of a number above 2^126 is zero.
  check_flushed<T, T>("div.approx", [](T a, T b) {
    return std::fabs(b) > 0x1p126f ? a * std::copysign(0.0f, b) : a / b;
  });
  check_flushed<T, T>("div.full", [](T a, T b) { return a / b; });
  check_flushed<T>("lg2.approx", [](T a) { return std::log2(a); });
  check_flushed<T>("sin.approx", [](T a) { return std::sin(a); });
  check_flushed<T>("cos.approx", [](T a) { return std::cos(a); });
  check<T, T>("tanh.approx.f32", [](T a) { return std::tanh(a); });
}

TEST_CASE("fp64 approximations keep the upper 32 bits", "[arithmetic]") {
  using T = double;
  const auto upper = [](T x) { return from_bits<T>(to_bits(x) & ~uint64_t{0xFFFFFFFF}); };
  const auto flush64 = [](T x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0, x) : x;
  };
  check<T, T>("rcp.approx.ftz.f64", [&](T a) { return upper(1 / flush64(a)); });
  check<T, T>("rsqrt.approx.f64", [](T a) { return 1 / std::sqrt(a); });
  check<T, T>("rsqrt.approx.ftz.f64", [&](T a) { return upper(1 / std::sqrt(flush64(a))); });
}

}  // namespace
}  // namespace softgpu::test
