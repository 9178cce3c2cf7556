// Memory use of the process.
#pragma once

#include <cstdint>

#include "mpcore.h"

namespace mptest {

struct MemoryUse {
  int64_t blocks;           ///< operator new, in program and library: exact
  int64_t device_bytes;     ///< counting_allocator: exact
  int64_t allocated_bytes;  ///< malloc; varies by some hundred bytes with the position of chunks
  int64_t resident_bytes;   ///< includes pages that the C library keeps
};

MemoryUse memory_use();

/// Allocator for contexts that counts the device memory of objects.
const mp_allocator_t &counting_allocator();

}  // namespace mptest
