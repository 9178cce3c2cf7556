// Opcode cursor: the type of a statement, and the opcode modifiers consumed so far.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "softgpu/program/decoder.h"

namespace softgpu {

enum class Type : uint8_t {
  kNone,  ///< no type, or one that no supported instruction uses
  kPred,
  kB16,
  kU16,
  kS16,
  kB32,
  kU32,
  kS32,
  kB64,
  kU64,
  kS64,
  kU8,
  kS8,
  kF16,
  kBf16,
  kF16x2,
  kBf16x2,
  kU16x2,
  kS16x2,
  kF32,
  kF64,
  kTf32,
};

inline Type type_of(std::string_view name) {
  constexpr std::array<std::string_view, 22> kNames = {
      "",   "pred", "b16", "u16",  "s16",   "b32",    "u32",   "s32",   "b64", "u64", "s64",
      "u8", "s8",   "f16", "bf16", "f16x2", "bf16x2", "u16x2", "s16x2", "f32", "f64", "tf32"};
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? Type::kNone : static_cast<Type>(found - kNames.begin());
}

/// Returns whether the type is an integer or untyped bits of 16, 32 or 64 bits.
constexpr bool is_integer(Type type) {
  return type >= Type::kB16 && type <= Type::kS64;
}
/// Returns whether the type has 16, 32 or 64 bits and fills a register.
constexpr bool is_scalar(Type type) {
  return is_integer(type) || type == Type::kF32 || type == Type::kF64;
}

constexpr bool is_pair(Type type) {
  return type == Type::kF16x2 || type == Type::kBf16x2;
}

/// C++ type of a value; void for types with separate templates.
template <Type type>
using Native =
    std::tuple_element_t<static_cast<size_t>(type),
                         std::tuple<void, void, uint16_t, uint16_t, int16_t, uint32_t, uint32_t,
                                    int32_t, uint64_t, uint64_t, int64_t, uint8_t, int8_t, void,
                                    void, void, void, void, void, float, double, void>>;

/// C++ type of a register slot's elements: 16-bit registers use 32-bit words with an upper half of
/// 0.
template <class T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// Integer of the same signedness that holds a product of two T.
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 8,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

/// Returns the bytes of a register for a value of the type, as in ptx::Register::width.
constexpr int register_width(Type type) {
  const bool is_wide =
      type == Type::kB64 || type == Type::kU64 || type == Type::kS64 || type == Type::kF64;
  return type == Type::kPred ? 1 : is_wide ? 8 : 4;
}

class OpcodeCursor {
 public:
  OpcodeCursor(Decoder &d, Instruction &i)
      : decoder(d),
        instruction(i),
        type(type_of(d.type())),
        last_(d.statement().opcode.size() - 1) {
    taken_ = 1 | 1u << last_;
  }

  Decoder &decoder;
  Instruction &instruction;
  const Type type;  ///< last part of the opcode

  /// Returns whether the opcode has this modifier, and consumes it.
  bool take(std::string_view modifier) {
    for (size_t i = 1; i < last_; i++)
      if ((taken_ >> i & 1) == 0 && decoder.part(i) == modifier) {
        taken_ |= 1u << i;
        return true;
      }
    return false;
  }
  /// Returns the index of the modifier in the list that the opcode has, or -1, and consumes it.
  int take_any(std::initializer_list<std::string_view> modifiers) {
    for (auto m = modifiers.begin(); m != modifiers.end(); m++)
      if (take(*m)) return static_cast<int>(m - modifiers.begin());
    return -1;
  }
  /// Returns the index of the required modifier in the list, and consumes it.
  int need_any(std::initializer_list<std::string_view> modifiers) {
    const int found = take_any(modifiers);
    if (found < 0) decoder.unknown("modifier");
    return found;
  }
  /// Returns the second type of set and cvt, the last part but one.
  Type take_other_type() {
    if (last_ < 2) decoder.unknown("types");
    taken_ |= 1u << (last_ - 1);
    return type_of(decoder.part(last_ - 1));
  }
  /// Throws if a modifier was not consumed.
  void finish() const {
    for (size_t i = 1; i < last_; i++)
      if ((taken_ >> i & 1) == 0) decoder.unknown("modifier ." + std::string(decoder.part(i)));
  }
  void need_operands(size_t count) const {
    if (decoder.operands().size() != count) decoder.unknown("number of operands");
  }
  [[noreturn]] void unknown_type() const {
    decoder.unknown("type ." + std::string(decoder.type()));
  }

  /// Calls f with a constant for the matching type of the list.
  template <Type... types, class F>
  void with_type(Type type, F &&f) const {
    if (!((type == types && (f(std::integral_constant<Type, types>()), true)) || ...))
      unknown_type();
  }

  RegisterSlot read(size_t operand, int width) {
    return decoder.read(decoder.operands()[operand], width);
  }
  RegisterSlot write(size_t operand, int width) {
    return decoder.write(decoder.operands()[operand], width);
  }

 private:
  size_t last_;
  uint32_t taken_ = 0;  ///< bit i: part i of the opcode is consumed
};

/// Calls f with a std::bool_constant for each flag, to turn properties of a statement into template
/// arguments.
template <class F>
auto with_flags(F &&f) {
  return f();
}
template <class F, class... Rest>
auto with_flags(F &&f, bool first, Rest... rest) {
  return first ? with_flags([&](auto... r) { return f(std::true_type(), r...); }, rest...)
               : with_flags([&](auto... r) { return f(std::false_type(), r...); }, rest...);
}

/// Calls f with a std::integral_constant for a number below n.
template <int n, class F>
void with_number(int number, F &&f) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    ((number == i ? f(std::integral_constant<int, i>()) : void()), ...);
  }
  (std::make_integer_sequence<int, n>());
}

/// Decoder of an opcode, in tables sorted by name.
struct OpcodeEntry {
  std::string_view opcode;
  void (*decode)(OpcodeCursor &);
};

template <size_t n>
constexpr bool is_sorted(const OpcodeEntry (&table)[n]) {
  return std::is_sorted(table, table + n, [](auto &x, auto &y) { return x.opcode < y.opcode; });
}

/// Decodes a statement by its table entry.  Returns false if there is none.
template <size_t n>
bool decode_by(const OpcodeEntry (&table)[n], OpcodeCursor &form) {
  const std::string_view opcode = form.decoder.opcode();
  const auto *entry =
      std::lower_bound(table, table + n, opcode,
                       [](const OpcodeEntry &e, std::string_view o) { return e.opcode < o; });
  if (entry == table + n || entry->opcode != opcode) return false;
  entry->decode(form);
  form.finish();
  return true;
}

}  // namespace softgpu
