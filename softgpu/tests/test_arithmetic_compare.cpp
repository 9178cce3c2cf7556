// setp, set, selp and slct for all types, with boolean operators.
#include "softgpu/tests/arithmetic_check.h"
#include "softgpu/tests/half_oracle.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// Results of a comparison for less, equal, greater, and unordered operands.
struct Comparison {
  const char *name;
  bool less, equal, greater, unordered;
};
constexpr Comparison kComparisons[] = {
    {"eq", false, true, false, false}, {"ne", true, false, true, false},
    {"lt", true, false, false, false}, {"le", true, true, false, false},
    {"gt", false, false, true, false}, {"ge", false, true, true, false},
    {"equ", false, true, false, true}, {"neu", true, false, true, true},
    {"ltu", true, false, false, true}, {"leu", true, true, false, true},
    {"gtu", false, false, true, true}, {"geu", false, true, true, true},
    {"num", true, true, true, false},  {"nan", false, false, false, true}};
constexpr Comparison kUnsignedNames[] = {{"lo", true, false, false, false},
                                         {"ls", true, true, false, false},
                                         {"hi", false, false, true, false},
                                         {"hs", false, true, true, false}};

template <class T>
bool holds(const Comparison &c, T a, T b) {
  if (a != a || b != b) return c.unordered;
  return a < b ? c.less : b < a ? c.greater : c.equal;
}

TEMPLATE_TEST_CASE("setp compares all types", "[arithmetic]", uint16_t, int16_t, uint32_t, int32_t,
                   uint64_t, int64_t, float, double) {
  using T = TestType;
  for (const Comparison &c : kComparisons) {
    if (!std::is_floating_point_v<T> && std::string(c.name).size() == 3) continue;
    check<bool, T, T>("setp." + (c.name + ("." + name<T>())),
                      [&](T a, T b) { return holds(c, a, b); });
  }
}
TEMPLATE_TEST_CASE("setp accepts unsigned operators and untyped operands", "[arithmetic]", uint16_t,
                   uint32_t, uint64_t) {
  using T = TestType;
  for (const Comparison &c : kUnsignedNames)
    check<bool, T, T>("setp." + (c.name + ("." + name<T>())),
                      [&](T a, T b) { return holds(c, a, b); });
  const std::string type = "." + typeless<T>();
  check<bool, T, T>("setp.eq" + type, [](T a, T b) { return a == b; });
  check<bool, T, T>("setp.ne" + type, [](T a, T b) { return a != b; });
}
TEST_CASE("setp compares halves and flushed numbers", "[arithmetic]") {
  const auto flush16 = [](uint16_t h) {
    return static_cast<uint16_t>(h & 0x7C00 ? h : h & 0x8000);
  };
  using H = uint16_t;
  for (const Comparison &c : kComparisons) {
    const std::string opcode = std::string("setp.") + c.name;
    const auto compare = [&](const HalfFormat &f, H a, H b) {
      return holds(c, widen(f, a), widen(f, b));
    };
    check<bool, float, float>(opcode + ".ftz.f32",
                              [&](float a, float b) { return holds(c, flush(a), flush(b)); });
    check_of_halves<bool, H, H>(opcode + ".f16",
                                [&](H a, H b) { return compare(kFp16Format, a, b); });
    check_of_halves<bool, H, H>(opcode + ".ftz.f16", [&](H a, H b) {
      return compare(kFp16Format, flush16(a), flush16(b));
    });
    check_of_halves<bool, H, H>(opcode + ".bf16",
                                [&](H a, H b) { return compare(kBf16Format, a, b); });
  }
}

TEST_CASE("set returns a number", "[arithmetic]") {
  using T = int32_t;
  check<uint32_t, T, T>("set.lt.u32.s32", [](T a, T b) { return a < b ? ~0u : 0; });
  check<uint32_t, T, T, bool>("set.lt.and.s32.s32",
                              [](T a, T b, bool c) { return a < b && c ? ~0u : 0; });
  check<float, float, float>("set.gt.f32.f32", [](float a, float b) { return a > b ? 1.0f : 0; });
  check<uint32_t, double, double>("set.leu.u32.f64",
                                  [](double a, double b) { return a > b ? 0 : ~0u; });
  const auto less = [](const HalfFormat &f, uint32_t a, uint32_t b) {
    return widen(f, static_cast<uint16_t>(a)) < widen(f, static_cast<uint16_t>(b));
  };
  const auto both = [&](const HalfFormat &f, uint32_t value) {
    return [&f, value, less](uint32_t a, uint32_t b) {
      return (less(f, a, b) ? value : 0) | (less(f, a >> 16, b >> 16) ? value << 16 : 0);
    };
  };
  using P = uint32_t;
  check_of_halves<P, P, P>("set.lt.f16x2.f16x2", both(kFp16Format, 0x3C00));
  check_of_halves<P, P, P>("set.lt.bf16x2.bf16x2", both(kBf16Format, 0x3F80));
  check_of_halves<P, P, P>("set.lt.u32.f16x2", both(kFp16Format, 0xFFFF));
  using H = uint16_t;
  check_of_halves<H, H, H>("set.lt.u16.f16",
                           [&](H a, H b) -> H { return less(kFp16Format, a, b) ? 0xFFFF : 0; });
}

/// Runs `body`, which sets %p and %q from the words %x and %y and the predicate %c (third word not
/// 0).  Returns p + 2 q.
template <class F>
void check_predicates(const std::string &body, F &&expected) {
  constexpr size_t kThreads = 1024;
  Buffer<uint32_t> results(kThreads), x(kThreads), y(kThreads), c(kThreads);
  const auto xs = values_of(32, true, 1, kThreads), ys = values_of(32, true, 2, kThreads);
  for (uint32_t i = 0; i < kThreads; i++) {
    x[i] = static_cast<uint32_t>(xs[i]);
    y[i] = static_cast<uint32_t>(i % 3 ? ys[i] : xs[i]);
    c[i] = i * 0x9E3779B9 >> 31;
  }
  const Kernel kernel(body_text(4, R"(
    .reg .pred %p, %q, %c;
    .reg .b32 %x, %y, %r;
    .reg .b64 %at, %offset;
    mul.wide.u32 %offset, %t, 4;
    add.u64 %at, %p1, %offset;
    ld.global.u32 %x, [%at];
    add.u64 %at, %p2, %offset;
    ld.global.u32 %y, [%at];
    add.u64 %at, %p3, %offset;
    ld.global.u32 %r, [%at];
    setp.ne.u32 %c, %r, 0;
    setp.ne.u32 %p, 0, 0;
    setp.ne.u32 %q, 0, 0;
    )" + body + R"(
    selp.u32 %r, 1, 0, %p;
    selp.u32 %x, 2, 0, %q;
    or.b32 %r, %r, %x;
    add.u64 %at, %p0, %offset;
    st.global.u32 [%at], %r;
  )"));
  const Outcome outcome = kernel({.threads = {kThreads, 1, 1}}, results, x, y, c);
  CAPTURE(outcome, body);
  REQUIRE(outcome.is_clean());
  for (size_t i = 0; i < kThreads; i++) {
    CAPTURE(i, x[i], y[i], c[i]);
    REQUIRE(results[i] == expected(x[i], y[i], c[i] != 0));
  }
}
uint32_t pair(bool p, bool q) {
  return p + 2u * q;
}

TEST_CASE("setp writes a second predicate and applies boolean operators", "[arithmetic]") {
  const auto less = [](uint32_t x, uint32_t y) {
    return static_cast<int32_t>(x) < static_cast<int32_t>(y);
  };
  check_predicates("setp.lt.s32 %p|%q, %x, %y;",
                   [&](auto x, auto y, bool) { return pair(less(x, y), !less(x, y)); });
  check_predicates("setp.lt.and.s32 %p|%q, %x, %y, %c;",
                   [&](auto x, auto y, bool c) { return pair(less(x, y) && c, !less(x, y) && c); });
  check_predicates("setp.lt.or.s32 %p|%q, %x, %y, !%c;", [&](auto x, auto y, bool c) {
    return pair(less(x, y) || !c, !less(x, y) || !c);
  });
  check_predicates("setp.lt.xor.s32 %p|%q, %x, %y, %c;",
                   [&](auto x, auto y, bool c) { return pair(less(x, y) != c, !less(x, y) != c); });
  check_predicates("setp.lt.s32 _|%q, %x, %y;",
                   [&](auto x, auto y, bool) { return pair(false, !less(x, y)); });
  // A destination may be the predicate of the combination.
  check_predicates("mov.pred %p, %c; setp.lt.and.s32 %p|%q, %x, %y, %p;",
                   [&](auto x, auto y, bool c) { return pair(less(x, y) && c, !less(x, y) && c); });
  check_predicates("@%c setp.lt.s32 %p|%q, %x, %y;",
                   [&](auto x, auto y, bool c) { return pair(c && less(x, y), c && !less(x, y)); });
}
TEST_CASE("setp of a pair writes one predicate per half", "[arithmetic]") {
  const auto holds_of = [](const HalfFormat &f, uint32_t x, uint32_t y, int half) {
    const double a = widen(f, static_cast<uint16_t>(x >> 16 * half));
    const double b = widen(f, static_cast<uint16_t>(y >> 16 * half));
    return !(a >= b);
  };
  check_predicates("setp.ltu.f16x2 %p|%q, %x, %y;", [&](auto x, auto y, bool) {
    return pair(holds_of(kFp16Format, x, y, 0), holds_of(kFp16Format, x, y, 1));
  });
  check_predicates("setp.ltu.bf16x2 %p|%q, %x, %y;", [&](auto x, auto y, bool) {
    return pair(holds_of(kBf16Format, x, y, 0), holds_of(kBf16Format, x, y, 1));
  });
}

TEST_CASE("logic instructions work on predicates", "[arithmetic]") {
  const std::string set = "setp.lt.u32 %q, %x, %y;";
  check_predicates(set + "and.pred %p, %q, %c;",
                   [](auto x, auto y, bool c) { return pair(x < y && c, x < y); });
  check_predicates(set + "or.pred %p, %q, %c;",
                   [](auto x, auto y, bool c) { return pair(x < y || c, x < y); });
  check_predicates(set + "xor.pred %p, %q, %c;",
                   [](auto x, auto y, bool c) { return pair((x < y) != c, x < y); });
  check_predicates(set + "not.pred %p, %q;",
                   [](auto x, auto y, bool) { return pair(x >= y, x < y); });
  check_predicates(set + "mov.pred %p, 1; mov.pred %q, 0;",
                   [](auto, auto, bool) { return pair(true, false); });
  check_predicates(set + "mov.pred %p, !%c;",
                   [](auto x, auto y, bool c) { return pair(!c, x < y); });
  check_predicates(set + "and.pred %p, !%q, !%c;",
                   [](auto x, auto y, bool c) { return pair(x >= y && !c, x < y); });
  check_predicates(set + "selp.b32 %r, 1, 0, !%c; setp.eq.u32 %p, %r, 1;",
                   [](auto x, auto y, bool c) { return pair(!c, x < y); });
  check_predicates(set + "@%c not.pred %q, %q;",
                   [](auto x, auto y, bool c) { return pair(false, (x < y) != c); });
}

TEMPLATE_TEST_CASE("selp selects by a predicate", "[arithmetic]", uint16_t, uint32_t, uint64_t) {
  using T = TestType;
  const auto select = [](T a, T b, bool p) { return p ? a : b; };
  for (const char *letter : {".b", ".u", ".s"})
    check<T, T, T, bool>("selp" + (letter + std::to_string(8 * sizeof(T))), select);
  if (sizeof(T) > 2)
    check_of_halves<T, T, T, bool>("selp.f" + std::to_string(8 * sizeof(T)), select);
}
TEST_CASE("slct selects by the sign", "[arithmetic]") {
  using T = uint32_t;
  using L = uint64_t;
  check<T, T, T, int32_t>("slct.b32.s32", [](T a, T b, int32_t c) { return c >= 0 ? a : b; });
  check<L, L, L, int32_t>("slct.u64.s32", [](L a, L b, int32_t c) { return c >= 0 ? a : b; });
  check_of_halves<T, T, T, float>("slct.f32.f32", [](T a, T b, float c) { return c >= 0 ? a : b; });
  check_of_halves<L, L, L, float>("slct.ftz.f64.f32", [](L a, L b, float c) {
    return c >= 0 || std::fpclassify(c) == FP_SUBNORMAL ? a : b;
  });
}

}  // namespace
}  // namespace softgpu::test
