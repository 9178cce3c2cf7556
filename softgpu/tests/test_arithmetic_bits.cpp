// Bit instructions and multi-word sums, compared with loops over bits.
#include <algorithm>
#include <random>

#include "softgpu/tests/arithmetic_check.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

__extension__ using Uint128 = unsigned __int128;

template <class T>
constexpr int kBits = 8 * sizeof(T);
template <class T>
bool bit(T x, int i) {
  return (static_cast<uint64_t>(x) >> i & 1) != 0;
}

/// Returns the number whose bit i is f(i).
template <class T, class F>
T from_bits_of(F &&f) {
  uint64_t x = 0;
  for (int i = 0; i < kBits<T>; i++) x |= uint64_t{f(i)} << i;
  return static_cast<T>(x);
}

TEMPLATE_TEST_CASE("logic instructions match C++", "[arithmetic]", uint16_t, uint32_t, uint64_t) {
  using T = TestType;
  check<T, T, T>("and." + typeless<T>(), [](T a, T b) { return static_cast<T>(a & b); });
  check<T, T, T>("or." + typeless<T>(), [](T a, T b) { return static_cast<T>(a | b); });
  check<T, T, T>("xor." + typeless<T>(), [](T a, T b) { return static_cast<T>(a ^ b); });
  check<T, T>("not." + typeless<T>(), [](T a) { return static_cast<T>(~a); });
  check<T, T>("cnot." + typeless<T>(), [](T a) { return T{a == 0}; });
}

/// Returns bit i of a number that is extended by zeros below, and by zeros or its sign above.
template <class T>
bool bit_beyond(T x, int64_t i) {
  if (i < 0) return false;
  if (i < kBits<T>) return bit(x, static_cast<int>(i));
  return std::is_signed_v<T> && x < 0;
}
template <class T>
T shift_left(T a, uint32_t by) {
  return from_bits_of<T>([&](int i) { return bit_beyond(a, int64_t{i} - by); });
}
template <class T>
T shift_right(T a, uint32_t by) {
  return from_bits_of<T>([&](int i) { return bit_beyond(a, int64_t{i} + by); });
}
TEMPLATE_TEST_CASE("shifts match C++ for any count", "[arithmetic]", uint16_t, int16_t, uint32_t,
                   int32_t, uint64_t, int64_t) {
  using T = TestType;
  if (!std::is_signed_v<T>) {
    check<T, T, uint32_t>("shl." + typeless<T>(), shift_left<T>);
    check<T, T, uint32_t>("shr." + typeless<T>(), shift_right<T>);
  }
  check<T, T, uint32_t>("shr." + name<T>(), shift_right<T>);
}

TEST_CASE("shf matches a 64-bit shift", "[arithmetic]") {
  const auto funnel = [](bool left, bool wrap) {
    return [=](uint32_t a, uint32_t b, uint32_t c) {
      const uint32_t by = wrap ? c % 32 : std::min(c, 32u);
      const Uint128 both = Uint128{b} << 32 | a;
      return static_cast<uint32_t>(left ? both << by >> 32 : both >> by);
    };
  };
  using T = uint32_t;
  check<T, T, T, T>("shf.l.wrap.b32", funnel(true, true));
  check<T, T, T, T>("shf.l.clamp.b32", funnel(true, false));
  check<T, T, T, T>("shf.r.wrap.b32", funnel(false, true));
  check<T, T, T, T>("shf.r.clamp.b32", funnel(false, false));
}

TEST_CASE("lop3 selects bits by its table", "[arithmetic]") {
  using T = uint32_t;
  for (uint32_t table : {0u, 255u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 0xE8u, 0x96u, 0xCAu, 0x6Au})
    check<T, T, T, T>(
        "lop3.b32",
        [=](T a, T b, T c) {
          return from_bits_of<T>(
              [&](int i) { return bit(table, bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)); });
        },
        ", " + std::to_string(table));
}

template <class T>
T extract(T a, uint32_t b, uint32_t c) {
  const int64_t position = b % 256, length = c % 256;
  const bool sign =
      std::is_signed_v<T> && length > 0 &&
      bit(a, static_cast<int>(std::min<int64_t>(position + length - 1, kBits<T> - 1)));
  return from_bits_of<T>([&](int i) {
    return i < length && position + i < kBits<T> ? bit(a, static_cast<int>(position + i)) : sign;
  });
}
TEMPLATE_TEST_CASE("bfe extracts fields", "[arithmetic]", uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  check<T, T, uint32_t, uint32_t>("bfe." + name<T>(), extract<T>);
}
TEMPLATE_TEST_CASE("bfi inserts fields", "[arithmetic]", uint32_t, uint64_t) {
  using T = TestType;
  check<T, T, T, uint32_t, uint32_t>("bfi." + typeless<T>(), [](T a, T b, uint32_t c, uint32_t d) {
    const int64_t position = c % 256, length = d % 256;
    return from_bits_of<T>([&](int i) {
      return i >= position && i < position + length ? bit(a, static_cast<int>(i - position))
                                                    : bit(b, i);
    });
  });
}

template <class T>
int highest_bit(T a) {
  for (int i = kBits<T> - 1; i >= 0; i--)
    if (bit(a, i)) return i;
  return -1;
}
TEMPLATE_TEST_CASE("popc, clz and brev match C++", "[arithmetic]", uint32_t, uint64_t) {
  using T = TestType;
  check<uint32_t, T>("popc." + typeless<T>(), [](T a) {
    uint32_t n = 0;
    for (int i = 0; i < kBits<T>; i++) n += bit(a, i);
    return n;
  });
  check<uint32_t, T>("clz." + typeless<T>(),
                     [](T a) { return static_cast<uint32_t>(kBits<T> - 1 - highest_bit(a)); });
  check<T, T>("brev." + typeless<T>(),
              [](T a) { return from_bits_of<T>([&](int i) { return bit(a, kBits<T> - 1 - i); }); });
}
TEMPLATE_TEST_CASE("bfind returns the highest bit that differs from the sign", "[arithmetic]",
                   uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  const auto find = [](T a) { return highest_bit(a < 0 ? static_cast<T>(~a) : a); };
  check<uint32_t, T>("bfind." + name<T>(), [&](T a) { return static_cast<uint32_t>(find(a)); });
  check<uint32_t, T>("bfind.shiftamt." + name<T>(), [&](T a) {
    return find(a) < 0 ? ~0u : static_cast<uint32_t>(kBits<T> - 1 - find(a));
  });
}

TEST_CASE("prmt permutes bytes", "[arithmetic]") {
  check<uint32_t, uint32_t, uint32_t, uint32_t>(
      "prmt.b32", [](uint32_t a, uint32_t b, uint32_t selector) {
        uint8_t bytes[8];
        for (int i = 0; i < 4; i++) {
          bytes[i] = static_cast<uint8_t>(a >> 8 * i);
          bytes[4 + i] = static_cast<uint8_t>(b >> 8 * i);
        }
        uint32_t result = 0;
        for (int i = 0; i < 4; i++) {
          const uint32_t choice = selector >> 4 * i & 15;
          const uint8_t byte = bytes[choice & 7];
          const uint8_t sign = byte >= 128 ? 255 : 0;
          result |= uint32_t{choice >= 8 ? sign : byte} << 8 * i;
        }
        return result;
      });
}

TEST_CASE("bmsk creates bit masks", "[arithmetic]") {
  const auto mask = [](uint64_t position, uint64_t length) {
    return from_bits_of<uint32_t>(
        [&](uint64_t i) { return i >= position && i < position + length; });
  };
  check<uint32_t, uint32_t, uint32_t>("bmsk.clamp.b32", mask);
  check<uint32_t, uint32_t, uint32_t>("bmsk.wrap.b32",
                                      [&](uint32_t a, uint32_t b) { return mask(a % 32, b % 32); });
}

/// Runs a body that computes %r0, %r1, ... from words %a0, %a1, ..., %b0, ..., and compares the
/// result with a function of the multi-word numbers.
template <class T, class F>
void check_long(const std::string &body, F &&expected) {
  constexpr size_t kThreads = 256, kWords = 2;
  const std::string type = typeless<T>(), bytes = std::to_string(sizeof(T));
  std::string text = ".reg ." + type + " %a<2>, %b<2>, %r<3>;\n.reg .b64 %at, %offset;\n";
  text += "mul.wide.u32 %offset, %t, " + std::to_string(3 * sizeof(T)) + ";\n";
  for (int k = 0; k < 2; k++)
    for (const char *operand : {"a", "b"})
      text += "add.u64 %at, %p" + std::string(*operand == 'a' ? "1" : "2") +
              ", %offset;\nld.global." + type + " %" + operand + std::to_string(k) + ", [%at+" +
              std::to_string(k * static_cast<int>(sizeof(T))) + "];\n";
  text += body + "add.u64 %at, %p0, %offset;\n";
  for (int k = 0; k < 3; k++)
    text += "st.global." + type + " [%at+" + std::to_string(k * static_cast<int>(sizeof(T))) +
            "], %r" + std::to_string(k) + ";\n";
  Buffer<T> results(3 * kThreads), a(3 * kThreads), b(3 * kThreads);
  const auto words = values_of(kBits<T>, false, 1, 6 * kThreads);
  for (size_t i = 0; i < 3 * kThreads; i++) {
    a[i] = static_cast<T>(words[2 * i]);
    b[i] = static_cast<T>(words[2 * i + 1]);
  }
  const Outcome outcome = Kernel(body_text(3, text))({.threads = {kThreads, 1, 1}}, results, a, b);
  CAPTURE(outcome, body);
  REQUIRE(outcome.is_clean());
  for (size_t i = 0; i < kThreads; i++) {
    T words_of_result[3];
    expected(&a[3 * i], &b[3 * i], words_of_result);
    for (size_t k = 0; k <= kWords; k++) {
      CAPTURE(i, k, a[3 * i], a[3 * i + 1], b[3 * i], b[3 * i + 1]);
      REQUIRE(results[3 * i + k] == words_of_result[k]);
    }
  }
}

TEMPLATE_TEST_CASE("add.cc and sub.cc propagate the carry", "[arithmetic]", uint32_t, uint64_t) {
  using T = TestType;
  const std::string type = name<T>();
  check_long<T>("add.cc." + type + " %r0, %a0, %b0;\naddc.cc." + type + " %r1, %a1, %b1;\naddc." +
                    type + " %r2, 0, 0;\n",
                [](const T *a, const T *b, T *r) {
                  Uint128 sum = 0;
                  for (int k = 0; k < 2; k++) {
                    sum += Uint128{a[k]} + b[k];
                    r[k] = static_cast<T>(sum);
                    sum >>= kBits<T>;
                  }
                  r[2] = static_cast<T>(sum);
                });
  check_long<T>("sub.cc." + type + " %r0, %a0, %b0;\nsubc.cc." + type + " %r1, %a1, %b1;\nsubc." +
                    type + " %r2, 0, 0;\n",
                [](const T *a, const T *b, T *r) {
                  bool borrow = false;
                  for (int k = 0; k < 2; k++) {
                    r[k] = a[k] - b[k] - borrow;
                    borrow = Uint128{a[k]} < Uint128{b[k]} + borrow;
                  }
                  r[2] = T{0} - borrow;
                });
}

TEMPLATE_TEST_CASE("mad.cc propagates the carry", "[arithmetic]", uint32_t, uint64_t) {
  using T = TestType;
  const std::string type = name<T>();
  // (a1:a0 + b0 * b1); the product has two words.
  check_long<T>("mad.lo.cc." + type + " %r0, %b0, %b1, %a0;\nmadc.hi.cc." + type +
                    " %r1, %b0, %b1, %a1;\naddc." + type + " %r2, 0, 0;\n",
                [](const T *a, const T *b, T *r) {
                  const Uint128 product = Uint128{b[0]} * b[1];
                  Uint128 sum = Uint128{a[0]} + static_cast<T>(product);
                  r[0] = static_cast<T>(sum);
                  sum = (sum >> kBits<T>)+a[1] + static_cast<T>(product >> kBits<T>);
                  r[1] = static_cast<T>(sum);
                  r[2] = static_cast<T>(sum >> kBits<T>);
                });
  check_long<T>("mad.hi.cc." + type + " %r0, %a0, %b0, %a1;\nmadc.lo." + type +
                    " %r1, %a0, %b0, %b1;\nmov." + typeless<T>() + " %r2, 0;\n",
                [](const T *a, const T *b, T *r) {
                  const Uint128 product = Uint128{a[0]} * b[0];
                  const Uint128 sum = (product >> kBits<T>)+a[1];
                  r[0] = static_cast<T>(sum);
                  r[1] = static_cast<T>(product) + b[1] + static_cast<T>(sum >> kBits<T>);
                  r[2] = 0;
                });
}

TEST_CASE("inactive lanes keep their carry", "[arithmetic]") {
  Buffer<uint32_t> results(32);
  const Kernel kernel(body_text(1, R"(
    .reg .pred %odd;
    .reg .b32 %x, %r;
    .reg .b64 %at;
    and.b32 %x, %t, 1;
    setp.eq.u32 %odd, %x, 1;
    add.cc.u32 %x, -1, 1;
    @%odd add.cc.u32 %x, 0, 0;
    addc.u32 %r, 0, 0;
    mad.wide.u32 %at, %t, 4, %p0;
    st.global.u32 [%at], %r;
  )"));
  REQUIRE(kernel({}, results).is_clean());
  for (uint32_t lane = 0; lane < 32; lane++) CHECK(results[lane] == (lane % 2 ? 0 : 1));
}

}  // namespace
}  // namespace softgpu::test
