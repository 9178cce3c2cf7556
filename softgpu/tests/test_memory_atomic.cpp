// atom and red, compared with plain loops, in global and shared memory, and from several host
// threads at once.
#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "softgpu/isa/half.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr size_t kLanes = 32;

template <class T>
T bits_as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

/// Reference: contents of memory after an operation, by name and type.
template <class T>
uint64_t integer(const std::string &op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  const U x = static_cast<U>(old), y = static_cast<U>(b);
  U result = x;
  if (op == "add") result = static_cast<U>(x + y);
  if (op == "inc") result = x >= y ? U{0} : static_cast<U>(x + 1);
  if (op == "dec") result = (x == 0 || x > y) ? y : static_cast<U>(x - 1);
  if (op == "min") result = static_cast<U>(std::min(old, b));
  if (op == "max") result = static_cast<U>(std::max(old, b));
  if (op == "and") result = x & y;
  if (op == "or") result = x | y;
  if (op == "xor") result = x ^ y;
  if (op == "exch") result = y;
  if (op == "cas") result = x == y ? static_cast<U>(c) : x;
  return result;
}

template <class Format>
uint64_t half_sum(uint64_t x, uint64_t y) {
  return Format::narrow(
      static_cast<float>(double{Format::widen(x & 0xFFFF)} + double{Format::widen(y & 0xFFFF)}));
}

uint64_t expected(const std::string &op, const std::string &type, uint64_t old, uint64_t b,
                  uint64_t c) {
  if (type == "f32") return bits_of(bits_as<float>(old) + bits_as<float>(b));
  if (type == "f64") return bits_of(bits_as<double>(old) + bits_as<double>(b));
  if (type == "f16") return half_sum<Fp16>(old, b);
  if (type == "bf16") return half_sum<Bf16>(old, b);
  if (type == "f16x2") return half_sum<Fp16>(old, b) | half_sum<Fp16>(old >> 16, b >> 16) << 16;
  if (type == "bf16x2") return half_sum<Bf16>(old, b) | half_sum<Bf16>(old >> 16, b >> 16) << 16;
  if (type == "s32")
    return integer(op, bits_as<int32_t>(old), bits_as<int32_t>(b), bits_as<int32_t>(c)) &
           0xFFFFFFFF;
  if (type == "s64")
    return integer(op, bits_as<int64_t>(old), bits_as<int64_t>(b), bits_as<int64_t>(c));
  if (type == "b16")
    return integer(op, bits_as<uint16_t>(old), bits_as<uint16_t>(b), bits_as<uint16_t>(c));
  if (type == "u32" || type == "b32")
    return integer(op, bits_as<uint32_t>(old), bits_as<uint32_t>(b), bits_as<uint32_t>(c));
  return integer(op, old, b, c);
}

struct AtomicCase {
  const char *op, *type;
  int bytes;
};
constexpr AtomicCase kCases[] = {
    {"add", "u32", 4},    {"add", "s32", 4},  {"add", "u64", 8},  {"add", "f32", 4},
    {"add", "f64", 8},    {"add", "f16", 2},  {"add", "bf16", 2}, {"add", "f16x2", 4},
    {"add", "bf16x2", 4}, {"inc", "u32", 4},  {"dec", "u32", 4},  {"min", "u32", 4},
    {"min", "s32", 4},    {"min", "u64", 8},  {"min", "s64", 8},  {"max", "u32", 4},
    {"max", "s32", 4},    {"max", "u64", 8},  {"max", "s64", 8},  {"and", "b32", 4},
    {"and", "b64", 8},    {"or", "b32", 4},   {"or", "b64", 8},   {"xor", "b32", 4},
    {"xor", "b64", 8},    {"exch", "b32", 4}, {"exch", "b64", 8}, {"cas", "b32", 4},
    {"cas", "b64", 8},    {"cas", "b16", 2},
};

/// Lane l of a kernel with 20 threads performs the operation on number l % `cells` of p0, with
/// operands from p1 and p2, and stores the result to p3.
std::string kernel_of(const AtomicCase &c, const std::string &space, bool is_red) {
  const std::string bits = std::to_string(8 * c.bytes), type = std::string(".b") + bits;
  std::string name = is_red ? "red" : "atom";
  if (space != "generic") name += "." + space;
  name += std::string(".") + c.op;
  const std::string t = c.type;
  if (t.find("f16") != std::string::npos) name += ".noftz";
  name += "." + t;
  const std::string third = std::string(c.op) == "cas" ? ", %c" : "";
  const std::string size = std::to_string(c.bytes);
  const std::string at = space == "shared" ? "%s" : "%cell";
  return body_text(
      5,
      R"(
    .reg .b64 %cell, %o, %q; .reg .b32 %s, %n; .reg )" +
          type + R"( %b, %c, %r;
    .shared .align 8 .b8 smem[256];
    ld.global.u32 %n, [%p4]; rem.u32 %n, %t, %n; mul.lo.u32 %n, %n, )" +
          size + R"(;
    cvt.u64.u32 %cell, %n; add.s64 %cell, %p0, %cell; mov.u32 %s, smem; add.u32 %s, %s, %n;
    mul.lo.u64 %o, %T, )" +
          size + R"(;
    add.s64 %q, %p1, %o; ld.global)" +
          type + R"( %b, [%q];
    add.s64 %q, %p2, %o; ld.global)" +
          type + R"( %c, [%q];
    )" +
          (space == "shared" ? "ld.global" + type + " %r, [%cell]; st.shared" + type + " [%s], %r;"
                             : "") +
          R"(
    )" + name +
          (is_red ? " " : " %r, ") + "[" + at + "], %b" + third + R"(;
    add.s64 %q, %p3, %o;
    )" + (is_red ? "" : "st.global" + type + " [%q], %r;") +
          R"(
    )" +
          (space == "shared" ? "ld.shared" + type + " %r, [%s]; st.global" + type + " [%cell], %r;"
                             : "") +
          R"(
    ret;)");
}

std::vector<std::byte> pack(const std::vector<uint64_t> &values, size_t bytes) {
  std::vector<std::byte> packed(values.size() * bytes);
  for (size_t i = 0; i < values.size(); i++) std::memcpy(&packed[i * bytes], &values[i], bytes);
  return packed;
}
uint64_t unpack(const Buffer<std::byte> &packed, size_t i, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, &packed[i * bytes], bytes);
  return value;
}

/// Returns operands with finite sums, occasional equality, and results that depend on the order.
uint64_t operand(std::mt19937_64 &random, const std::string &type) {
  const float small = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 8;
  if (type == "f32") return bits_of(small);
  if (type == "f64") return bits_of(double{small} / 3);
  if (type == "f16") return Fp16::narrow(small);
  if (type == "bf16") return Bf16::narrow(small);
  if (type == "f16x2") return narrow_pair<Fp16>(small, -small / 3);
  if (type == "bf16x2") return narrow_pair<Bf16>(small, -small / 3);
  return random() % 4 == 0 ? random() : random() % 5;
}

}  // namespace

TEST_CASE("atom and red match plain loops") {
  const AtomicCase c = GENERATE(from_range(std::begin(kCases), std::end(kCases)));
  const std::string space = GENERATE("global", "shared", "generic");
  const bool is_red = GENERATE(false, true);
  const std::string op = c.op;
  if (is_red && (op == "exch" || op == "cas")) return;
  INFO((is_red ? "red." : "atom.") << space << "." << op << "." << c.type);
  const Kernel kernel(kernel_of(c, space, is_red));
  const auto bytes = static_cast<size_t>(c.bytes);

  for (const size_t cells : {size_t{20}, size_t{3}, size_t{1}}) {
    std::mt19937_64 random(cells);
    std::vector<uint64_t> memory(cells), b(kLanes), second(kLanes), got(kLanes);
    for (auto *list : {&memory, &b, &second})
      for (uint64_t &v : *list) v = operand(random, c.type);
    Buffer<std::byte> p0(pack(memory, bytes)), p1(pack(b, bytes)), p2(pack(second, bytes)),
        p3(kLanes * bytes);
    Buffer<uint32_t> n(std::vector{static_cast<uint32_t>(cells)});
    REQUIRE(kernel({.threads = {20, 1, 1}}, p0, p1, p2, p3, n).is_clean());
    for (size_t l = 0; l < 20; l++) {
      uint64_t &cell = memory[l % cells];
      cell = unpack(Buffer<std::byte>(pack({cell}, bytes)), 0, bytes);
      got[l] = cell;
      cell = expected(op, c.type, cell, b[l], second[l]);
    }
    for (size_t i = 0; i < cells; i++) {
      INFO("cell " << i << " of " << cells);
      REQUIRE(unpack(p0, i, bytes) ==
              unpack(Buffer<std::byte>(pack({memory[i]}, bytes)), 0, bytes));
    }
    for (size_t l = 0; l < 20 && !is_red; l++) REQUIRE(unpack(p3, l, bytes) == got[l]);
  }
}

TEST_CASE("fp32 atomics flush subnormals in global but not in shared memory") {
  const Kernel kernel(body_text(1, R"(
    .reg .f32 %x; .reg .b32 %s; .shared .align 4 .f32 sum;
    atom.global.add.f32 %x, [%p0], 0f80000001;
    mov.u32 %s, sum; mov.f32 %x, 0f00000001; st.shared.f32 [%s], %x;
    red.shared.add.f32 [%s], 0f00000001; ld.shared.f32 %x, [%s]; st.global.f32 [%p0+4], %x;
    atom.global.add.f32 %x, [%p0+8], 0f80800000; ret;)"));
  Buffer<uint32_t> memory(std::vector<uint32_t>{0x80000001, 0, 0x00800001});
  REQUIRE(kernel({.threads = {1, 1, 1}}, memory).is_clean());
  REQUIRE(memory[0] == 0x80000000);
  REQUIRE(memory[1] == 2);
  REQUIRE(memory[2] == 0);
}

TEST_CASE("a seed randomizes the order of lanes in an atomic") {
  const Kernel kernel(body_text(2, R"(
    .reg .b64 %o; .reg .b32 %x;
    atom.global.add.u32 %x, [%p0], 1; shl.b64 %o, %T, 2; add.s64 %o, %p1, %o;
    st.global.u32 [%o], %x; ret;)"));
  const auto order = [&](uint64_t seed) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    Buffer<uint32_t> counter(1), out(kLanes);
    REQUIRE(kernel({}, counter, out).is_clean());
    REQUIRE(counter[0] == kLanes);
    return out.values();
  };
  const std::vector<uint32_t> plain = order(0);
  REQUIRE(std::is_sorted(plain.begin(), plain.end()));
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    std::vector<uint32_t> numbers = order(seed);
    orders.insert(numbers);
    std::sort(numbers.begin(), numbers.end());
    REQUIRE(numbers == plain);
  }
  REQUIRE(orders.size() > 1);
}

TEST_CASE("atomics are not lost between host threads") {
  const WithOptions with([](Options &o) { o.num_threads = 4; });
  const Kernel kernel(body_text(1, R"(
    .reg .b32 %i, %x; .reg .pred %g; .reg .f32 %f;
    mov.u32 %i, 0;
  LOOP:
    red.global.add.u32 [%p0], 1; atom.global.add.f32 %f, [%p0+4], 0f3F800000;
    red.global.add.noftz.f16x2 [%p0+8], 0x3C000000; atom.global.inc.u32 %x, [%p0+12], 0xFFFFFFFF;
    add.u32 %i, %i, 1; setp.lt.u32 %g, %i, 100; @%g bra LOOP; ret;)"));
  Buffer<uint32_t> memory(4);
  REQUIRE(kernel({.blocks = {64, 1, 1}}, memory).is_clean());
  constexpr uint32_t kTimes = 64 * 32 * 100;
  REQUIRE(memory[0] == kTimes);
  REQUIRE(std::bit_cast<float>(memory[1]) == kTimes);
  REQUIRE(memory[2] == 0x68000000);  // 2048, at which adding 1 to an fp16 has no effect
  REQUIRE(memory[3] == kTimes);
}

}  // namespace softgpu::test
