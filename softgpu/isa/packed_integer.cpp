// add, min and max of pairs of 16-bit integers: PTX ISA, Integer Arithmetic Instructions.
#include <algorithm>
#include <cstdint>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/elementwise.h"

namespace softgpu {
namespace {

constexpr auto add = [](int a, int b) { return a + b; };
constexpr auto minimum = [](int a, int b) { return std::min(a, b); };
constexpr auto maximum = [](int a, int b) { return std::max(a, b); };
template <auto kOp>
constexpr auto relu = [](int a, int b) { return std::max(0, kOp(a, b)); };

template <class T, auto kOp>
uint32_t both(uint32_t a, uint32_t b) {
  const int low = kOp(static_cast<T>(a), static_cast<T>(b));
  const int high = kOp(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
  return (static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16;
}

template <auto kOp>
void decode_pair(OpcodeCursor &form) {
  if (form.type == Type::kU16x2)
    decode_elementwise<both<uint16_t, kOp>>(form);
  else
    decode_elementwise<both<int16_t, kOp>>(form);
}
template <auto kOp>
void decode_extremum(OpcodeCursor &form) {
  if (!form.take("relu")) return decode_pair<kOp>(form);
  if (form.type != Type::kS16x2) form.unknown_type();
  decode_elementwise<both<int16_t, relu<kOp>>>(form);
}

constexpr OpcodeEntry kOpcodes[] = {
    {"add", decode_pair<add>},
    {"max", decode_extremum<maximum>},
    {"min", decode_extremum<minimum>},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_packed_integer(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
