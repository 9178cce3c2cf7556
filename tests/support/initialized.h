// Structs of the library that have no default function.
#pragma once

#include "mpcore.h"

namespace mptest {

/// Returns a struct of zeros with its size.
template <class T>
T initialized() {
  T value;
  MP_INIT_STRUCT(&value);
  return value;
}

}  // namespace mptest
