// Memory that programs allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/runtime/api.h"

namespace softgpu::runtime {

/// Kinds of memory that copies distinguish.
enum class Place { kPageable, kPinned, kDevice };

/// Returns the kind of memory that a copy accesses.  Reports and fails if the range exceeds its
/// allocation or was freed.
Place place_of(const void *begin, size_t bytes, const char *what);
/// Checks a range again when the copy runs, which may be later than its call and repeated in a
/// graph: throws a Fault if memory that belonged to an allocation was freed meanwhile.
void check_is_there(Place then, const void *begin, size_t bytes, const char *what);

/// Function that allocated or registered the memory; determines which function releases it.
enum class Origin { kDevice, kPinned, kRegistered };

/// Allocates poisoned device memory, aligned to exactly 256 bytes.
void *allocate_on_device(int device, size_t bytes);
/// Allocates host memory that devices can access.
void *allocate_pinned(size_t bytes);
/// Releases a block; returns false if no block of this origin begins at the address.
bool release_memory(const void *begin, Origin);
/// Releases all memory of a device.
void release_device_memory(int device);

}  // namespace softgpu::runtime
