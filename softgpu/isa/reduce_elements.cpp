#include "softgpu/isa/reduce_elements.h"

#include <cstring>

#include "softgpu/isa/half.h"

namespace softgpu {
namespace {

template <class T, class Add>
void add_each(std::byte *to, const std::byte *from, uint32_t bytes, Add &&add) {
  for (uint32_t i = 0; i < bytes; i += sizeof(T)) {
    T x, y;
    std::memcpy(&x, to + i, sizeof x);
    std::memcpy(&y, from + i, sizeof y);
    x = add(x, y);
    std::memcpy(to + i, &x, sizeof x);
  }
}

template <class T>
void add_numbers(std::byte *to, const std::byte *from, uint32_t bytes) {
  add_each<T>(to, from, bytes, [](T x, T y) { return x + y; });
}

template <class Format>
void add_halves(std::byte *to, const std::byte *from, uint32_t bytes) {
  add_each<uint16_t>(to, from, bytes, [](uint16_t x, uint16_t y) {
    return static_cast<uint16_t>(Format::narrow(Format::widen(x) + Format::widen(y)));
  });
}

using AddElements = void (*)(std::byte *, const std::byte *, uint32_t);

AddElements function_of(ElementType type) {
  switch (type) {
    case ElementType::kU32:
    case ElementType::kS32:
      return add_numbers<uint32_t>;
    case ElementType::kU64:
    case ElementType::kS64:
      return add_numbers<uint64_t>;
    case ElementType::kF16:
      return add_halves<Fp16>;
    case ElementType::kBf16:
      return add_halves<Bf16>;
    case ElementType::kF32:
      return add_numbers<float>;
    case ElementType::kF64:
      return add_numbers<double>;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_add(ElementType type) {
  return function_of(type) != nullptr;
}

void add_elements(ElementType type, std::byte *to, const std::byte *from, uint32_t bytes) {
  function_of(type)(to, from, bytes);
}

}  // namespace softgpu
