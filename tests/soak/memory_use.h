// What the process holds.
#pragma once

#include <cstdint>

#include "mpcore.h"

namespace mptest {

struct MemoryUse {
  int64_t blocks;        ///< of operator new, in this program and in the library: exact
  int64_t device_bytes;  ///< of counting_allocator: exact
  int64_t
      allocated_bytes;     ///< by malloc; a few hundred more or less by where a chunk has come from
  int64_t resident_bytes;  ///< of which the C library keeps some for later
};

MemoryUse memory_use();

/// For contexts: counts what objects hold of device memory.
const mp_allocator_t &counting_allocator();

}  // namespace mptest
