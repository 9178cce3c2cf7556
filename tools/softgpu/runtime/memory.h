// Memory that programs allocate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/softgpu/runtime/api.h"

namespace softgpu::runtime {

/// Where memory lies, as copies tell it apart.
enum class Place { kPageable, kPinned, kDevice };

/// Of a range that a copy touches.  Fails where the range leaves its allocation or was freed, which
/// is reported.
Place place_of(const void *begin, size_t bytes, const char *what);
/// A copy runs later than it was asked for, in a graph again and again: throws a Fault if what was in an allocation then
/// is in none any more.
void check_is_there(Place then, const void *begin, size_t bytes, const char *what);

/// Whose memory it is and how it came to devices, which says what gives it back.
enum class Origin { kDevice, kPinned, kRegistered };

/// Memory on a device, poisoned, at a multiple of 256 and of nothing more.
void *allocate_on_device(int device, size_t bytes);
/// Memory of the host that devices reach.
void *allocate_pinned(size_t bytes);
/// What was allocated or registered so; false if nothing of that origin begins there.
bool release_memory(const void *begin, Origin);
/// All memory of a device.
void release_device_memory(int device);

}  // namespace softgpu::runtime
