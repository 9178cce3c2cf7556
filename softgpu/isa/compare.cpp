// setp and set for all types: PTX ISA, Comparison and Selection Instructions.
#include <cstdint>
#include <tuple>
#include <utility>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/float_value.h"
#include "softgpu/isa/form.h"
#include "softgpu/machine/warp.h"

namespace softgpu {
namespace {

/// Sorted like float_comparer.  The comparisons from equ to geu are also true for a NaN.
constexpr std::tuple kComparisons = {
    [](auto a, auto b) { return a == b; },             // eq
    [](auto a, auto b) { return a < b || a > b; },     // ne
    [](auto a, auto b) { return a < b; },              // lt
    [](auto a, auto b) { return a <= b; },             // le
    [](auto a, auto b) { return a > b; },              // gt
    [](auto a, auto b) { return a >= b; },             // ge
    [](auto a, auto b) { return !(a < b || a > b); },  // equ
    [](auto a, auto b) { return a != b; },             // neu
    [](auto a, auto b) { return !(a >= b); },          // ltu
    [](auto a, auto b) { return !(a > b); },           // leu
    [](auto a, auto b) { return !(a <= b); },          // gtu
    [](auto a, auto b) { return !(a < b); },           // geu
    [](auto a, auto b) { return a == a && b == b; },   // num
    [](auto a, auto b) { return a != a || b != b; },   // nan
};

using CompareRows = Lanes (*)(Warp &, RegisterSlot, RegisterSlot);

template <class Value, int k>
Lanes compare_rows(Warp &warp, RegisterSlot a_row, RegisterSlot b_row) {
  using Held = typename Value::Held;
  const Held *a = warp.row<Held>(a_row), *b = warp.row<Held>(b_row);
  return lanes_where(
      [&](int lane) { return std::get<k>(kComparisons)(Value::of(a[lane]), Value::of(b[lane])); });
}

/// Boolean operator that combines the result with a predicate.
enum class Combination : uint8_t { kNone, kAnd, kOr, kXor };

/// Operands of setp and set.
struct CompareOperands {
  RegisterSlot to, a, b;
  union {
    RegisterSlot second;  ///< setp: q in p|q
    uint32_t value;       ///< set: value for true
  };
  RegisterSlot with;  ///< predicate of the combination
  Combination combination;
  bool with_is_negated;
  bool has_second;
  CompareRows lower, upper;  ///< upper: for pairs, otherwise null
};

Lanes combine(Warp &warp, const CompareOperands &o, Lanes lanes) {
  if (o.combination == Combination::kNone) return lanes;
  const Lanes with = warp.predicate(PredicateOperand{o.with, o.with_is_negated});
  switch (o.combination) {
    case Combination::kAnd:
      return lanes & with;
    case Combination::kOr:
      return lanes | with;
    default:
      return lanes ^ with;
  }
}

/// Computes both results before writing, because a destination may be the predicate of the
/// combination.
void set_predicates(Warp &warp, const CompareOperands &o, Lanes lanes, Lanes first, Lanes second) {
  first = combine(warp, o, first);
  second = combine(warp, o, second);
  warp.set_predicate(o.to, lanes, first);
  if (o.has_second) warp.set_predicate(o.second, lanes, second);
}

/// Sets p to the result of the comparison and q to its opposite.
template <class Value, int k>
[[gnu::flatten]] Step setp(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<CompareOperands>();
  const Lanes result = compare_rows<Value, k>(warp, o.a, o.b);
  set_predicates(warp, o, lanes, result, ~result);
  return Step::kNext;
}
/// Sets p to the result for the lower halves and q to that for the upper halves.
Step setp_of_pairs(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<CompareOperands>();
  set_predicates(warp, o, lanes, o.lower(warp, o.a, o.b), o.upper(warp, o.a, o.b));
  return Step::kNext;
}

Step set(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<CompareOperands>();
  const Lanes lower = combine(warp, o, o.lower(warp, o.a, o.b));
  const Lanes upper = o.upper == nullptr ? 0 : combine(warp, o, o.upper(warp, o.a, o.b));
  set_lanes(warp.row<uint32_t>(o.to), lanes, [&](int lane) {
    return (lower >> lane & 1 ? o.value : 0) | (upper >> lane & 1 ? o.value << 16 : 0);
  });
  return Step::kNext;
}

/// Comparison of two registers: setp handler, separate function, and function for the upper halves
/// of pairs.
struct Comparer {
  Handler setp;
  CompareRows rows, upper;
};

template <class Value, class Upper, int... k>
Comparer comparer_of(int comparison, std::integer_sequence<int, k...>) {
  static constexpr Comparer kAll[] = {
      {setp<Value, k>, compare_rows<Value, k>, compare_rows<Upper, k>}...};
  return kAll[comparison];
}
template <class Value, class Upper = Value>
Comparer float_comparer(OpcodeCursor &form) {
  const int comparison = form.need_any(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  return comparer_of<Value, Upper>(comparison, std::make_integer_sequence<int, 14>());
}
template <class Format>
Comparer half_comparer(OpcodeCursor &form) {
  return float_comparer<Half<Format>, Half<Format, true>>(form);
}
template <class T>
Comparer integer_comparer(OpcodeCursor &form) {
  int comparison = form.take_any({"eq", "ne", "lt", "le", "gt", "ge"});
  // lt, le, gt and ge have additional names for unsigned types.
  if (comparison < 0 && std::is_unsigned_v<T>)
    comparison = 2 + form.need_any({"lo", "ls", "hi", "hs"});
  const bool is_bits =
      form.type == Type::kB16 || form.type == Type::kB32 || form.type == Type::kB64;
  if (comparison < 0 || (is_bits && comparison > 1)) form.decoder.unknown("comparison");
  return comparer_of<Plain<T>, Plain<T>>(comparison, std::make_integer_sequence<int, 6>());
}

/// Selects the comparison for the type of the sources.
Comparer take_comparer(OpcodeCursor &form) {
  using enum Type;
  switch (form.type) {
    case kF64:
      return float_comparer<Plain<double>>(form);
    case kF32:
      return form.take("ftz") ? float_comparer<FlushedFloat>(form)
                              : float_comparer<Plain<float>>(form);
    case kF16:
    case kF16x2:
      return half_comparer<Fp16>(form);
    case kBf16:
    case kBf16x2:
      return half_comparer<Bf16>(form);
    default:
      break;
  }
  Comparer comparer{};
  form.with_type<kB16, kU16, kS16, kB32, kU32, kS32, kB64, kU64, kS64>(
      form.type, [&](auto type) { comparer = integer_comparer<Native<type>>(form); });
  return comparer;
}

/// Decodes the parts that setp and set share: the sources, and the boolean operator with its
/// predicate, the last operand.
CompareOperands decode_sources(OpcodeCursor &form, const Comparer &comparer) {
  const int width = register_width(form.type);
  CompareOperands o{};
  o.lower = comparer.rows;
  o.upper = is_pair(form.type) ? comparer.upper : nullptr;
  o.combination = static_cast<Combination>(1 + form.take_any({"and", "or", "xor"}));
  const bool combines = o.combination != Combination::kNone;
  form.need_operands(combines ? 4 : 3);
  if (combines) {
    const PredicateOperand with = form.decoder.read_predicate(form.decoder.operands()[3]);
    o.with = with.row;
    o.with_is_negated = with.is_negated;
  }
  o.a = form.read(1, width);
  o.b = form.read(2, width);
  return o;
}

/// Returns the value that set writes for true, in the lower half or both halves.
uint32_t value_of_true(OpcodeCursor &form, Type type) {
  switch (type) {
    case Type::kU32:
      return is_pair(form.type) ? 0xFFFF : 0xFFFFFFFF;
    case Type::kF32:
      return 0x3F800000;
    case Type::kF16:
    case Type::kF16x2:
      return Fp16::narrow(1);
    case Type::kBf16:
    case Type::kBf16x2:
      return Bf16::narrow(1);
    default:
      form.decoder.unknown("types");
  }
}

// ---- selp

struct SelpOperands {
  RegisterSlot to, a, b;
  PredicateOperand predicate;
};

template <class T>
Step selp(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<SelpOperands>();
  const T *a = warp.row<T>(o.a), *b = warp.row<T>(o.b);
  const Lanes p = warp.predicate(o.predicate);
  set_lanes(warp.row<T>(o.to), lanes, [&](int lane) { return p >> lane & 1 ? a[lane] : b[lane]; });
  return Step::kNext;
}

// ---- predicates, which are sets of lanes

struct PredicateOperands {
  RegisterSlot to;
  PredicateOperand a, b;
};

template <auto kOp>
Step combine(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<PredicateOperands>();
  warp.set_predicate(o.to, lanes, kOp(warp.predicate(o.a), warp.predicate(o.b)));
  return Step::kNext;
}

/// Decodes an operation with one or two operands.
template <auto kOp, size_t kNumOperands = 2>
void decode_op(OpcodeCursor &form) {
  form.need_operands(1 + kNumOperands);
  auto &o = form.instruction.make<PredicateOperands>();
  o.a = form.decoder.read_predicate(form.decoder.operands()[1]);
  o.b = form.decoder.read_predicate(form.decoder.operands()[kNumOperands]);
  o.to = form.write(0, 1);
  form.instruction.execute = combine<kOp>;
}

constexpr OpcodeEntry kPredicateOpcodes[] = {
    {"and", decode_op<[](Lanes a, Lanes b) { return a & b; }>},
    {"mov", decode_op<[](Lanes a, Lanes) { return a; }, 1>},
    {"not", decode_op<[](Lanes a, Lanes) { return ~a; }, 1>},
    {"or", decode_op<[](Lanes a, Lanes b) { return a | b; }>},
    {"xor", decode_op<[](Lanes a, Lanes b) { return a ^ b; }>},
};
static_assert(is_sorted(kPredicateOpcodes));
}  // namespace

void decode_setp(OpcodeCursor &form) {
  const Comparer comparer = take_comparer(form);
  CompareOperands o = decode_sources(form, comparer);
  o.to = form.decoder.write_pair(form.decoder.operands()[0], 1, &o.has_second, &o.second);
  form.instruction.make<CompareOperands>() = o;
  form.instruction.execute = is_pair(form.type) ? setp_of_pairs : comparer.setp;
}

void decode_set(OpcodeCursor &form) {
  const uint32_t value = value_of_true(form, form.take_other_type());
  CompareOperands o = decode_sources(form, take_comparer(form));
  o.value = value;
  o.to = form.write(0, 4);
  form.instruction.make<CompareOperands>() = o;
  form.instruction.execute = set;
}

void decode_selp(OpcodeCursor &form) {
  if (!is_scalar(form.type)) form.unknown_type();
  form.need_operands(4);
  const int width = register_width(form.type);
  auto &o = form.instruction.make<SelpOperands>();
  o.a = form.read(1, width);
  o.b = form.read(2, width);
  o.predicate = form.decoder.read_predicate(form.decoder.operands()[3]);
  o.to = form.write(0, width);
  form.instruction.execute = width == 8 ? selp<uint64_t> : selp<uint32_t>;
}

bool decode_predicate(OpcodeCursor &form) {
  return decode_by(kPredicateOpcodes, form);
}

}  // namespace softgpu
