// fp16 and bf16 arithmetic, compared with results that are rounded once.
#include <algorithm>

#include "softgpu/isa/half.h"
#include "softgpu/tests/arithmetic_check.h"
#include "softgpu/tests/half_oracle.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

uint16_t flush(const HalfFormat &f, uint16_t half) {
  return half & f.infinity() ? half : half & 0x8000;
}

/// Applies a function to each half of a pair.
template <class F, class... A>
uint32_t for_both(F &&function, A... pairs) {
  const uint16_t low = function(static_cast<uint16_t>(pairs)...);
  const uint16_t high = function(static_cast<uint16_t>(pairs >> 16)...);
  return low | uint32_t{high} << 16;
}
template <class>
using Half16 = uint16_t;
template <class>
using Pair = uint32_t;

/// Checks "OPCODE.f16" and "OPCODE.f16x2" against a function of halves; A... has one type per
/// operand.
template <class... A, class F>
void check_halves(const std::string &opcode, const std::string &type, F &&function) {
  check_of_halves<uint16_t, Half16<A>...>(opcode + type, function);
  check_of_halves<uint32_t, Pair<A>...>(
      opcode + type + "x2", [&](Pair<A>... pairs) { return for_both(function, pairs...); });
}

struct Format {
  std::string type;
  HalfFormat layout;
};
const Format kFormats[] = {{".f16", kFp16Format}, {".bf16", kBf16Format}};

/// Converts a function of numbers to a function of halves.
template <class F>
auto on_halves(const HalfFormat &f, F &&function) {
  return [f, function](auto... halves) { return narrow(f, function(widen(f, halves)...)); };
}

const auto kAdd = [](double a, double b) { return static_cast<Float128>(a + b); };
const auto kSub = [](double a, double b) { return static_cast<Float128>(a - b); };
const auto kMul = [](double a, double b) { return static_cast<Float128>(a * b); };

TEST_CASE("all halves convert exactly", "[arithmetic]") {
  for (uint32_t half = 0; half < 65536; half++) {
    const auto h = static_cast<uint16_t>(half);
    const double fp16 = widen(kFp16Format, h), bf16 = widen(kBf16Format, h);
    CAPTURE(half);
    if (std::isnan(fp16)) {
      REQUIRE(std::isnan(Fp16::widen(half)));
    } else {
      REQUIRE(Fp16::widen(half) == fp16);
      REQUIRE(std::signbit(Fp16::widen(half)) == std::signbit(fp16));
    }
    if (std::isnan(bf16)) {
      REQUIRE(std::isnan(Bf16::widen(half)));
    } else {
      REQUIRE(Bf16::widen(half) == static_cast<float>(bf16));
    }
  }
}

TEST_CASE("halves round correctly at every boundary", "[arithmetic]") {
  // Every half, the midpoint to the next half, and their neighbors in fp32.
  for (uint32_t half = 0; half < 0x7F80; half++) {
    for (const bool is_fp16 : {true, false}) {
      const HalfFormat &f = is_fp16 ? kFp16Format : kBf16Format;
      if (half + 1 > f.infinity()) continue;
      const double here = widen(f, static_cast<uint16_t>(half));
      const double step = half + 1 < f.infinity()
                              ? widen(f, static_cast<uint16_t>(half + 1)) - here
                              : here - widen(f, static_cast<uint16_t>(half - 1));
      for (const double x : {here, here + step / 2}) {
        const auto near = static_cast<float>(x);
        for (const float y :
             {near, std::nextafter(near, 0.0f), std::nextafter(near, INFINITY), -near}) {
          CAPTURE(half, is_fp16, y);
          REQUIRE((is_fp16 ? Fp16::narrow(y) : Bf16::narrow(y)) == narrow(f, y));
        }
      }
    }
  }
}

TEST_CASE("half arithmetic rounds once", "[arithmetic]") {
  for (const Format &format : kFormats) {
    const HalfFormat &f = format.layout;
    check_halves<int, int>("add", format.type, on_halves(f, kAdd));
    check_halves<int, int>("sub.rn", format.type, on_halves(f, kSub));
    check_halves<int, int>("mul", format.type, on_halves(f, kMul));
    check_halves<int, int, int>("fma.rn", format.type, on_halves(f, exact_fma));
    check_halves<int, int, int>("fma.rn.relu", format.type,
                                on_halves(f, [](double a, double b, double c) {
                                  const Float128 x = exact_fma(a, b, c);
                                  return x < 0 ? Float128{0} : x;
                                }));
  }
}

TEST_CASE("fma rounds correctly next to the midpoint of two halves", "[arithmetic]") {
  // (1 + 2^-k) (1 + 2^-l) has its last bit half a unit below that of a half; the addend is far
  // below the last bit of an fp32.
  struct Case {
    std::string opcode;
    HalfFormat layout;
    int k, l;
  };
  for (const Case &c :
       {Case{"fma.rn.f16", kFp16Format, 5, 6}, Case{"fma.rn.bf16", kBf16Format, 3, 5}}) {
    const auto half = [&](double x) { return uint64_t{narrow(c.layout, x)}; };
    const uint64_t a = half(1 + std::ldexp(1, -c.k)), b = half(1 + std::ldexp(1, -c.l));
    for (const uint64_t least : {uint64_t{1}, half(std::ldexp(1, -24))}) {
      const std::vector<std::vector<uint64_t>> operands = {
          {a, a, a, a ^ 0x8000, a ^ 0x8000},
          {b, b, b, b, b},
          {0, least, least ^ 0x8000, least, least ^ 0x8000}};
      check_on<uint16_t, uint16_t, uint16_t, uint16_t>(c.opcode, "", on_halves(c.layout, exact_fma),
                                                       operands, std::make_index_sequence<3>());
    }
  }
}

TEST_CASE("fp16 arithmetic supports .ftz and .sat", "[arithmetic]") {
  const HalfFormat &f = kFp16Format;
  const auto flushed = [&](auto function) {
    return [&f, function](auto... halves) {
      return flush(f, narrow(f, function(widen(f, flush(f, halves))...)));
    };
  };
  const auto saturated = [&](auto function) {
    return on_halves(f, [function](auto... x) { return saturate(function(x...)); });
  };
  check_halves<int, int>("add.ftz", ".f16", flushed(kAdd));
  check_halves<int, int>("sub.ftz", ".f16", flushed(kSub));
  check_halves<int, int>("mul.ftz", ".f16", flushed(kMul));
  check_halves<int, int, int>("fma.rn.ftz", ".f16", flushed(exact_fma));
  check_halves<int, int>("add.sat", ".f16", saturated(kAdd));
  check_halves<int, int, int>("fma.rn.sat", ".f16", saturated(exact_fma));
}

/// Returns IEEE 754-2019 minimumNumber; compares bits, so that -0 is below 0.
uint16_t least(const HalfFormat &f, uint16_t a, uint16_t b, bool nan_wins) {
  const auto is_nan = [&](uint16_t x) { return (x & 0x7FFF) > f.infinity(); };
  if (is_nan(a) || is_nan(b)) {
    if (nan_wins || (is_nan(a) && is_nan(b))) return 0x7FFF;
    return is_nan(a) ? b : a;
  }
  const auto order = [](uint16_t x) { return x & 0x8000 ? -(x & 0x7FFF) - 1 : x; };
  return order(a) < order(b) ? a : b;
}
uint16_t greatest(const HalfFormat &f, uint16_t a, uint16_t b, bool nan_wins) {
  const uint16_t x = least(f, a ^ 0x8000, b ^ 0x8000, nan_wins);
  return x == 0x7FFF ? x : x ^ 0x8000;
}
TEST_CASE("min and max of halves order -0 and NaN", "[arithmetic]") {
  for (const Format &format : kFormats)
    for (const bool nan_wins : {false, true}) {
      const std::string modifier = nan_wins ? ".NaN" : "";
      check_halves<int, int>("min" + modifier, format.type, [&](uint16_t a, uint16_t b) {
        return least(format.layout, a, b, nan_wins);
      });
      check_halves<int, int>("max" + modifier, format.type, [&](uint16_t a, uint16_t b) {
        return greatest(format.layout, a, b, nan_wins);
      });
    }
}

TEST_CASE("abs and neg of halves change only the sign bit", "[arithmetic]") {
  const auto abs = [](uint16_t a) { return static_cast<uint16_t>(a & 0x7FFF); };
  const auto neg = [](uint16_t a) { return static_cast<uint16_t>(a ^ 0x8000); };
  for (const Format &format : kFormats) {
    check_halves<int>("abs", format.type, abs);
    check_halves<int>("neg", format.type, neg);
  }
  check_halves<int>("abs.ftz", ".f16", [&](uint16_t a) { return abs(flush(kFp16Format, a)); });
  check_halves<int>("neg.ftz", ".f16", [&](uint16_t a) { return neg(flush(kFp16Format, a)); });
}

TEST_CASE("half functions are rounded correctly", "[arithmetic]") {
  const auto by_float = [](const HalfFormat &f, auto function) {
    return
        [&f, function](uint16_t a) { return narrow(f, function(static_cast<float>(widen(f, a)))); };
  };
  const auto exp2 = [](float x) { return std::exp2(x); };
  const auto tanh = [](float x) { return std::tanh(x); };
  check_halves<int>("ex2.approx", ".f16", by_float(kFp16Format, exp2));
  check_halves<int>("tanh.approx", ".f16", by_float(kFp16Format, tanh));
  check_halves<int>("tanh.approx", ".bf16", by_float(kBf16Format, tanh));
  check_halves<int>("ex2.approx.ftz", ".bf16", [&](uint16_t a) {
    return flush(kBf16Format, by_float(kBf16Format, exp2)(flush(kBf16Format, a)));
  });
}

}  // namespace
}  // namespace softgpu::test
