// Names of the enumerators of mpcore.h, for messages.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "mpcore.h"

namespace mp {

/// Returns the integer value of an enumeration.  Copies bytes: a load of the enumeration type lets
/// the compiler assume a valid enumerator, but a C caller can store any integer.
template <class Enum>
int32_t enum_value(const Enum &field) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int32_t));
  int32_t value;
  std::memcpy(&value, &field, sizeof value);
  return value;
}

struct Enumerator {
  int32_t value;
  const char *name;
};

/// Enumerators in ascending order.
using Enumerators = std::span<const Enumerator>;

/// Returns all enumerators of `Enum`.
template <class Enum>
Enumerators enumerators_of();

/// Returns the name of an enumerator, or nullptr if `value` is not in `all`.
const char *name_of(Enumerators all, int32_t value);

}  // namespace mp
