// Fundamental types of PTX instructions.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

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
  switch (type) {
    case Type::kPred:
      return 1;
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 8;
    default:
      return 4;
  }
}

}  // namespace softgpu
