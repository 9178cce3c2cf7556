// atom and red: PTX ISA, Parallel Synchronization and Communication Instructions.
//
// Host threads run clusters concurrently, so atomics on global memory are host atomics, implemented
// as compare-exchange loops.  Shared memory is accessed by one host thread only.
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string_view>
#include <utility>

#include "softgpu/isa/float_value.h"
#include "softgpu/isa/lane_data.h"
#include "softgpu/isa/load_store.h"
#include "softgpu/machine/worker.h"

namespace softgpu {
namespace {

/// Lanes of the set in order of execution, which hardware does not specify: random with a seed.
struct LaneOrder {
  std::array<uint8_t, kWarpSize> lanes;
  int size = 0;
};
LaneOrder order_of(Warp &warp, Lanes lanes) {
  LaneOrder order;
  for_each_lane(lanes, [&](int l) { order.lanes[order.size++] = static_cast<uint8_t>(l); });
  if (!options().is_random()) return order;
  for (int n = order.size; n > 1; n--)
    std::swap(order.lanes[n - 1], order.lanes[random_below(warp, static_cast<uint64_t>(n))]);
  return order;
}

// Operations: the new value in memory, from the old value and one or two operands.  Values are
// bits.

constexpr auto add_integer = [](auto old, auto b, auto, bool) { return old + b; };
constexpr auto increment = [](auto old, auto b, auto, bool) { return old >= b ? 0 : old + 1; };
constexpr auto decrement = [](auto old, auto b, auto, bool) {
  return old == 0 || old > b ? b : old - 1;
};
constexpr auto minimum_integer = [](auto old, auto b, auto, bool) { return std::min(old, b); };
constexpr auto maximum_integer = [](auto old, auto b, auto, bool) { return std::max(old, b); };
constexpr auto bit_and = [](auto old, auto b, auto, bool) { return old & b; };
constexpr auto bit_or = [](auto old, auto b, auto, bool) { return old | b; };
constexpr auto bit_xor = [](auto old, auto b, auto, bool) { return old ^ b; };
constexpr auto exchange = [](auto, auto b, auto, bool) { return b; };
constexpr auto compare_and_swap = [](auto old, auto b, auto c, bool) { return old == b ? c : old; };

/// PTX ISA: "atom.add.f32 on global memory flushes subnormal inputs and results to sign-preserving
/// zero; whereas atom.add.f32 on shared memory supports subnormal inputs and results".
constexpr auto add_float = [](uint32_t old, uint32_t b, uint32_t, bool is_global) {
  const float x = std::bit_cast<float>(old), y = std::bit_cast<float>(b);
  return std::bit_cast<uint32_t>(canonical(is_global ? flush(flush(x) + flush(y)) : x + y));
};
constexpr auto add_double = [](uint64_t old, uint64_t b, uint64_t, bool) {
  return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
};
/// Adds in fp32.  fp32 has more than twice the significant bits of either format, so the double
/// rounding is correct.
template <class Format>
constexpr auto add_half = [](uint32_t old, uint32_t b, uint32_t, bool) {
  return Format::narrow(Format::widen(old & 0xFFFF) + Format::widen(b & 0xFFFF));
};
/// Updates both halves at once; PTX guarantees atomicity per half only.
template <class Format>
constexpr auto add_halves = [](uint32_t old, uint32_t b, uint32_t c, bool is_global) {
  return add_half<Format>(old, b, c, is_global) | add_half<Format>(old >> 16, b >> 16, c, is_global)
                                                      << 16;
};

/// Executes an operation and returns the old value.
template <class T, auto kOperation>
T update(uint64_t place, bool is_global, T b, T c) {
  T *const memory = reinterpret_cast<T *>(place);
  T old = __atomic_load_n(memory, __ATOMIC_RELAXED);
  const auto updated = [&] { return static_cast<T>(kOperation(old, b, c, is_global)); };
  if (!is_global) {
    *memory = updated();
    return old;
  }
  while (!__atomic_compare_exchange_n(memory, &old, updated(), true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

/// Elements of AccessOperands::data: old value (atom), operand, second operand of cas.
enum AtomicRow { kResult, kFirst, kSecond };

template <class T, auto kOperation, bool has_result>
Step execute(Warp &warp, const Instruction &i, Lanes lanes) {
  using W = Word<T>;
  const AccessOperands &o = i.as<AccessOperands>();
  LaneAddresses places;
  read_addresses(warp, lanes, o.address, &places);
  check_alignment(warp, i, lanes, places, sizeof(T));
  const Lanes shared = lanes_in_shared(o.space, places);
  locate(warp, i, lanes, o.space, &places, sizeof(T), Access::kUpdate);
  count_bytes(warp, i, static_cast<uint64_t>(num_lanes(lanes)) * sizeof(T));

  W results[kWarpSize];
  const W *const b = warp.row<W>(o.data[kFirst]), *const c = warp.row<W>(o.data[kSecond]);
  const LaneOrder order = order_of(warp, lanes);
  for (int n = 0; n < order.size; n++) {
    const int l = order.lanes[n];
    results[l] = update<T, kOperation>(places.of[l], (shared >> l & 1) == 0, static_cast<T>(b[l]),
                                       static_cast<T>(c[l]));
  }
  if constexpr (has_result) {
    W *const to = warp.row<W>(o.data[kResult]);
    for_each_lane(lanes, [&](int l) { to[l] = results[l]; });
  }
  return Step::kNext;
}

struct AtomicType {
  std::string_view operation, type;
  int bytes;
  Handler atom, red;
};
template <class T, auto kOperation>
constexpr AtomicType row(std::string_view operation, std::string_view type) {
  return {operation, type, sizeof(T), execute<T, kOperation, true>, execute<T, kOperation, false>};
}

using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;
constexpr AtomicType kTypes[] = {
    row<U32, add_integer>("add", "u32"),
    row<U32, add_integer>("add", "s32"),
    row<U64, add_integer>("add", "u64"),
    row<U64, add_integer>("add", "s64"),
    row<U32, add_float>("add", "f32"),
    row<U64, add_double>("add", "f64"),
    row<U16, add_half<Fp16>>("add", "f16"),
    row<U16, add_half<Bf16>>("add", "bf16"),
    row<U32, add_halves<Fp16>>("add", "f16x2"),
    row<U32, add_halves<Bf16>>("add", "bf16x2"),
    row<U32, increment>("inc", "u32"),
    row<U32, decrement>("dec", "u32"),
    row<U32, minimum_integer>("min", "u32"),
    row<int32_t, minimum_integer>("min", "s32"),
    row<U64, minimum_integer>("min", "u64"),
    row<int64_t, minimum_integer>("min", "s64"),
    row<U32, maximum_integer>("max", "u32"),
    row<int32_t, maximum_integer>("max", "s32"),
    row<U64, maximum_integer>("max", "u64"),
    row<int64_t, maximum_integer>("max", "s64"),
    row<U32, bit_and>("and", "b32"),
    row<U64, bit_and>("and", "b64"),
    row<U32, bit_or>("or", "b32"),
    row<U64, bit_or>("or", "b64"),
    row<U32, bit_xor>("xor", "b32"),
    row<U64, bit_xor>("xor", "b64"),
    row<U32, exchange>("exch", "b32"),
    row<U64, exchange>("exch", "b64"),
    row<U16, compare_and_swap>("cas", "b16"),
    row<U32, compare_and_swap>("cas", "b32"),
    row<U64, compare_and_swap>("cas", "b64"),
};

/// Returns the type that an operation uses: operations on bits accept any type of the size.
std::string_view type_of_bits(std::string_view operation, std::string_view type) {
  static constexpr std::string_view kOfBits[] = {"and", "or", "xor", "exch", "cas"};
  if (std::find(std::begin(kOfBits), std::end(kOfBits), operation) == std::end(kOfBits))
    return type;
  return type == "u32" || type == "s32" || type == "f32"   ? "b32"
         : type == "u64" || type == "s64" || type == "f64" ? "b64"
                                                           : type;
}

const AtomicType &decode_type(OpcodeCursor &form) {
  const std::initializer_list<std::string_view> operations = {"add", "inc", "dec", "min",  "max",
                                                              "and", "or",  "xor", "exch", "cas"};
  const std::string_view operation = operations.begin()[form.need_any(operations)];
  const std::string_view type = type_of_bits(operation, form.decoder.type());
  for (const AtomicType &row : kTypes)
    if (row.operation == operation && row.type == type) return row;
  form.unknown_type();
}

}  // namespace

void decode_atomic(OpcodeCursor &form) {
  const bool has_result = form.decoder.opcode() == "atom";
  const MemoryOrder order = take_memory_order(form, true);
  form.take_any({"global", "shared", "shared::cta", "shared::cluster"});
  form.take("noftz");
  const bool has_policy = form.take("L2::cache_hint");
  const AtomicType &row = decode_type(form);
  if (!has_result && (row.operation == "exch" || row.operation == "cas"))
    form.decoder.unknown("operation of red");

  const size_t first = has_result ? 1 : 0;  // operand with the address
  const bool has_second = row.operation == "cas";
  form.need_operands(first + 2 + has_second + has_policy);
  AccessOperands &o = form.instruction.make<AccessOperands>();
  o.space = space_of(form.decoder);
  o.access = Access::kUpdate;
  o.order = order;
  o.bytes = static_cast<uint8_t>(row.bytes);
  o.address = decode_address(form.decoder, form.decoder.operands()[first]);
  const int width = row.bytes == 8 ? 8 : 4;
  o.data[kFirst] = form.read(first + 1, width);
  o.data[kSecond] = has_second ? form.read(first + 2, width) : o.data[kFirst];
  if (has_result) o.data[kResult] = form.write(0, width);
  form.instruction.execute = has_result ? row.atom : row.red;
  watch(form.instruction, o);
}

}  // namespace softgpu
