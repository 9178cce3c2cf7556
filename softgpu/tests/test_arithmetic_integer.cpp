// Integer arithmetic, compared with C++ on special and random values.
#include <algorithm>

#include "softgpu/tests/arithmetic_check.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

__extension__ using Int128 = __int128;

/// Truncates an exact result to the type.
template <class T>
T wrap(Int128 exact) {
  return static_cast<T>(static_cast<uint64_t>(exact));
}
template <class T>
T saturated(Int128 exact) {
  using Limits = std::numeric_limits<T>;
  return static_cast<T>(std::clamp<Int128>(exact, Limits::min(), Limits::max()));
}
template <class T>
T high(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>((Int128{a} * b) >> (8 * sizeof(T)));
  else
    return static_cast<T>((static_cast<unsigned __int128>(a) * b) >> (8 * sizeof(T)));
}

template <class T>
T quotient(T a, T b) {
  return b == 0 ? static_cast<T>(-1) : wrap<T>(Int128{a} / b);
}
template <class T>
T remainder(T a, T b) {
  return b == 0 ? a : wrap<T>(Int128{a} % b);
}

TEMPLATE_TEST_CASE("integer sums and products wrap around", "[arithmetic]", uint16_t, int16_t,
                   uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  check<T, T, T>("add." + name<T>(), [](T a, T b) { return wrap<T>(Int128{a} + b); });
  check<T, T, T>("sub." + name<T>(), [](T a, T b) { return wrap<T>(Int128{a} - b); });
  check<T, T, T>("mul.lo." + name<T>(), [](T a, T b) {
    return wrap<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  });
  check<T, T, T>("mul.hi." + name<T>(), high<T>);
  check<T, T, T, T>("mad.lo." + name<T>(), [](T a, T b, T c) {
    return wrap<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c));
  });
  check<T, T, T, T>("mad.hi." + name<T>(),
                    [](T a, T b, T c) { return wrap<T>(Int128{high(a, b)} + c); });
  check<T, T, T, T>("sad." + name<T>(), [](T a, T b, T c) {
    const Int128 difference = Int128{a} - b;
    return wrap<T>(Int128{c} + (difference < 0 ? -difference : difference));
  });
}

TEMPLATE_TEST_CASE("integer division by zero returns all ones", "[arithmetic]", uint16_t, int16_t,
                   uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  check<T, T, T>("div." + name<T>(), quotient<T>);
  check<T, T, T>("rem." + name<T>(), remainder<T>);
}

TEMPLATE_TEST_CASE("integer min and max match C++", "[arithmetic]", uint16_t, int16_t, uint32_t,
                   int32_t, uint64_t, int64_t) {
  using T = TestType;
  check<T, T, T>("min." + name<T>(), [](T a, T b) { return std::min(a, b); });
  check<T, T, T>("max." + name<T>(), [](T a, T b) { return std::max(a, b); });
}

TEMPLATE_TEST_CASE("abs and neg of the smallest integer return it unchanged", "[arithmetic]",
                   int16_t, int32_t, int64_t) {
  using T = TestType;
  check<T, T>("abs." + name<T>(), [](T a) { return wrap<T>(a < 0 ? -Int128{a} : Int128{a}); });
  check<T, T>("neg." + name<T>(), [](T a) { return wrap<T>(-Int128{a}); });
}

template <class T, class Wide>
void check_wide() {
  check<Wide, T, T>("mul.wide." + name<T>(), [](T a, T b) { return wrap<Wide>(Int128{a} * b); });
  check<Wide, T, T, Wide>("mad.wide." + name<T>(),
                          [](T a, T b, Wide c) { return wrap<Wide>(Int128{a} * b + c); });
}
TEST_CASE("mul.wide and mul.hi return the full product", "[arithmetic]") {
  check_wide<uint16_t, uint32_t>();
  check_wide<int16_t, int32_t>();
  check_wide<uint32_t, uint64_t>();
  check_wide<int32_t, int64_t>();
}

TEST_CASE("integers support .sat and .relu", "[arithmetic]") {
  using T = int32_t;
  check<T, T, T>("add.sat.s32", [](T a, T b) { return saturated<T>(Int128{a} + b); });
  check<T, T, T>("sub.sat.s32", [](T a, T b) { return saturated<T>(Int128{a} - b); });
  check<T, T, T>("min.relu.s32", [](T a, T b) { return std::max(0, std::min(a, b)); });
  check<T, T, T>("max.relu.s32", [](T a, T b) { return std::max(0, std::max(a, b)); });
}

/// Applies a function to pairs of 16-bit numbers.
template <class T, class F>
void check_pairs(const std::string &opcode, F &&function) {
  check<uint32_t, uint32_t, uint32_t>(opcode, [&](uint32_t a, uint32_t b) {
    const auto low = static_cast<uint16_t>(function(static_cast<T>(a), static_cast<T>(b)));
    const auto high =
        static_cast<uint16_t>(function(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return uint32_t{low} | uint32_t{high} << 16;
  });
}
TEST_CASE("packed 16-bit integers match C++", "[arithmetic]") {
  const auto add = [](auto a, auto b) { return a + b; };
  const auto min = [](auto a, auto b) { return std::min(a, b); };
  const auto max = [](auto a, auto b) { return std::max(a, b); };
  check_pairs<uint16_t>("add.u16x2", add);
  check_pairs<int16_t>("add.s16x2", add);
  check_pairs<uint16_t>("min.u16x2", min);
  check_pairs<int16_t>("min.s16x2", min);
  check_pairs<uint16_t>("max.u16x2", max);
  check_pairs<int16_t>("max.s16x2", max);
  check_pairs<int16_t>("max.relu.s16x2",
                       [](int16_t a, int16_t b) { return std::max(0, std::max<int>(a, b)); });
}

}  // namespace
}  // namespace softgpu::test
