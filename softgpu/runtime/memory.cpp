#include "softgpu/runtime/device.h"

#include <sys/mman.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/machine/shared_memory.h"
#include "softgpu/options.h"
#include "softgpu/runtime/streams.h"

namespace softgpu::runtime {

namespace {

constexpr uint64_t kAlignment = 256;
/// Larger allocations are not poisoned, because this would commit all their pages.
constexpr uint64_t kMaxPoisoned = uint64_t{256} << 20;
/// Freed memory is reused only after this many more bytes have been freed.
constexpr uint64_t kQuarantineBytes = uint64_t{64} << 20;
/// Larger freed blocks keep only their addresses, without pages, until this many more bytes have
/// been freed.
constexpr uint64_t kQuarantineAddresses = uint64_t{64} << 30;
constexpr uint64_t kPage = 4096;

/// Allocation of the runtime, or memory of the user (cudaHostRegister): `raw` is then null.
struct OwnedMemory {
  std::unique_ptr<std::byte, FreeMemory> raw;
  uint64_t begin, bytes;
  MemoryKind kind;
  int device;
  bool is_leaving = false;  ///< cudaFreeAsync was called

  bool holds(uint64_t address) const { return address - begin < std::max<uint64_t>(bytes, 1); }
  Origin origin() const {
    if (kind == MemoryKind::kDevice) return Origin::kDevice;
    return raw ? Origin::kPinned : Origin::kRegistered;
  }
};

/// Recently freed memory.  The host allocator cannot reuse it, so later accesses are detected.
class Quarantine {
 public:
  explicit Quarantine(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  void add(OwnedMemory memory) {
    num_bytes_ += size_of(memory);
    oldest_first_.push_back(memory.begin);
    freed_.emplace(memory.begin, std::move(memory));
    while (num_bytes_ > most_bytes_) {
      const auto oldest = freed_.find(oldest_first_.front());
      num_bytes_ -= size_of(oldest->second);
      freed_.erase(oldest);
      oldest_first_.pop_front();
    }
  }
  bool holds(uint64_t address) const {
    const auto next = freed_.upper_bound(address);
    return next != freed_.begin() && std::prev(next)->second.holds(address);
  }

 private:
  /// Size including the maximum overhead of make_memory, which exceeds the size of many
  /// allocations.
  static uint64_t size_of(const OwnedMemory &memory) { return memory.bytes + 2 * kAlignment; }

  const uint64_t most_bytes_;
  /// Sorted by start address, because every copy of host memory looks up its range.
  std::map<uint64_t, OwnedMemory> freed_;
  std::deque<uint64_t> oldest_first_;
  uint64_t num_bytes_ = 0;
};

struct Heap {
  std::mutex mutex;
  std::map<uint64_t, OwnedMemory> live;  ///< key: start address
  Quarantine freed{kQuarantineBytes}, freed_addresses{kQuarantineAddresses};
  std::array<uint64_t, kMaxDevices> used{};
};
Heap &heap() {
  static Heap *const the_heap = new Heap;
  return *the_heap;
}

uint64_t address_of(const void *p) {
  return reinterpret_cast<uint64_t>(p);
}

/// Aligns to kAlignment but never to twice as much, so that kernels cannot rely on more than the
/// documented alignment.
OwnedMemory make_memory(size_t bytes, MemoryKind kind, int device) {
  const size_t padded = (bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  OwnedMemory memory{nullptr, 0, bytes, kind, device};
  memory.raw.reset(static_cast<std::byte *>(
      std::aligned_alloc(2 * kAlignment, padded + padded % (2 * kAlignment))));
  require(memory.raw != nullptr, cudaErrorMemoryAllocation);
  memory.begin = address_of(memory.raw.get()) + kAlignment;
  if (bytes <= kMaxPoisoned)
    std::fill_n(reinterpret_cast<uint32_t *>(memory.begin), bytes / sizeof kPoison, kPoison);
  return memory;
}

void *add(OwnedMemory memory, const char *name) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  if (memory.kind == MemoryKind::kDevice) {
    uint64_t &used = h.used[static_cast<size_t>(memory.device)];
    require(memory.bytes <= settings().memory_bytes - used, cudaErrorMemoryAllocation);
    used += memory.bytes;
  }
  const uint64_t begin = memory.begin;
  add_allocation({begin, memory.bytes, memory.kind, memory.device, name});
  h.live.emplace(begin, std::move(memory));
  return reinterpret_cast<void *>(begin);
}

/// Unmaps the pages that are entirely within the block, and keeps the addresses without reserving
/// memory: a process that reserves more memory than the machine has cannot fork.  malloc uses a
/// separate mapping for a block of this size (mallopt(3), M_MMAP_THRESHOLD); free unmaps it
/// completely.
void drop_pages(const OwnedMemory &memory) {
  const uint64_t begin = (memory.begin + kPage - 1) / kPage * kPage;
  const uint64_t end = (memory.begin + memory.bytes) / kPage * kPage;
  mmap(reinterpret_cast<void *>(begin), end - begin, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/// Requires that the mutex is held.
void release(Heap &h, std::map<uint64_t, OwnedMemory>::iterator position) {
  OwnedMemory memory = std::move(position->second);
  h.live.erase(position);
  remove_allocation(memory.begin);
  if (memory.kind == MemoryKind::kDevice)
    h.used[static_cast<size_t>(memory.device)] -= memory.bytes;
  if (!memory.raw) return;
  if (memory.bytes <= kQuarantineBytes) return h.freed.add(std::move(memory));
  drop_pages(memory);
  h.freed_addresses.add(std::move(memory));
}

bool was_freed(uint64_t address) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  return h.freed.holds(address) || h.freed_addresses.holds(address);
}

/// Returns the block of this origin that begins at the address, or the end.  Requires that the
/// mutex is held.
std::map<uint64_t, OwnedMemory>::iterator find(Heap &h, const void *begin, Origin origin) {
  const auto found = h.live.find(address_of(begin));
  return found != h.live.end() && found->second.origin() == origin ? found : h.live.end();
}

/// Returns the device of memory from cudaMalloc; fails for any other address.
int device_of_memory(const void *begin) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = find(h, begin, Origin::kDevice);
  require(found != h.live.end(), cudaErrorInvalidValue);
  return found->second.device;
}

/// Returns whether a block that the runtime allocated begins at the address.
bool is_allocation(const void *begin) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = h.live.find(address_of(begin));
  return found != h.live.end() && found->second.origin() != Origin::kRegistered;
}

/// Fails if a cudaFreeAsync of this memory is pending in any stream.
void check_stays(const void *begin) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = find(h, begin, Origin::kDevice);
  require(found != h.live.end(), cudaErrorInvalidValue);
  if (!found->second.is_leaving) return;
  violation(format("cudaFreeAsync of %p, for the second time", begin));
  throw ApiError{cudaErrorInvalidValue};
}

void note_leaving(const void *begin) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = find(h, begin, Origin::kDevice);
  if (found != h.live.end()) found->second.is_leaving = true;
}

/// Returns the error of a range that a copy or fill accesses, or "".
/// @param found  allocation that contains the start of the range
std::string trouble_with(const void *begin, size_t bytes, const char *what,
                         const std::optional<Allocation> &found) {
  const uint64_t address = address_of(begin);
  if (!found) return was_freed(address) ? format("%s %p, which was freed", what, begin) : "";
  if (found->holds(address, bytes)) return "";
  return format("%s %p: %zu bytes exceed %s of %llu bytes, at offset %llu", what, begin, bytes,
                found->name.c_str(), static_cast<unsigned long long>(found->size),
                static_cast<unsigned long long>(address - found->begin));
}

cudaError_t allocate_host(void **memory, size_t bytes, unsigned flags,
                          const char *name = __builtin_FUNCTION()) {
  const auto body = [&] {
    constexpr unsigned kKnown =
        cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    require(memory && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    *memory = nullptr;
    require_no_capture();
    if (bytes != 0) *memory = allocate_pinned(bytes);
  };
  return call(cudaErrorMemoryAllocation, body, Needs::kDevice, name);
}

void wait_for_all_devices() {
  for (int device = 0; device < options().num_devices; device++)
    scheduler().wait_for_device(device);
}

}  // namespace

Place place_of(const void *begin, size_t bytes, const char *what) {
  const std::optional<Allocation> found = find_allocation(address_of(begin));
  const std::string trouble = trouble_with(begin, bytes, what, found);
  if (!trouble.empty()) {
    violation(trouble);
    throw ApiError{cudaErrorInvalidValue};
  }
  if (!found) return Place::kPageable;
  return found->kind == MemoryKind::kMappedHost ? Place::kPinned : Place::kDevice;
}

void check_is_there(Place then, const void *begin, size_t bytes, const char *what) {
  if (then == Place::kPageable) return;
  const std::optional<Allocation> found = find_allocation(address_of(begin));
  const std::string trouble = trouble_with(begin, bytes, what, found);
  if (!trouble.empty()) fault(trouble);
  if (!found) fault(format("%s %p, which was freed", what, begin));
}

void *allocate_on_device(int device, size_t bytes) {
  require(bytes <= settings().memory_bytes, cudaErrorMemoryAllocation);
  return add(make_memory(bytes, MemoryKind::kDevice, device), "a cudaMalloc");
}

void *allocate_pinned(size_t bytes) {
  require(bytes <= settings().memory_bytes, cudaErrorMemoryAllocation);
  return add(make_memory(bytes, MemoryKind::kMappedHost, current_device()), "pinned memory");
}

bool release_memory(const void *begin, Origin origin) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  const auto found = find(h, begin, origin);
  if (found == h.live.end()) return false;
  release(h, found);
  return true;
}

void release_device_memory(int device) {
  Heap &h = heap();
  const std::lock_guard lock(h.mutex);
  for (auto i = h.live.begin(); i != h.live.end();) {
    const auto position = i++;
    if (position->second.kind == MemoryKind::kDevice && position->second.device == device)
      release(h, position);
  }
}

}  // namespace softgpu::runtime

using namespace softgpu;
using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  return call(cudaErrorMemoryAllocation, [&] {
    require(memory, cudaErrorInvalidValue);
    *memory = nullptr;
    require_no_capture();
    if (bytes != 0) *memory = allocate_on_device(current_device(), bytes);
  });
}

cudaError_t cudaFree(void *memory) {
  return call(cudaErrorInvalidValue, [&] {
    require_no_capture();
    if (!memory) return cudaSuccess;
    const int device = device_of_memory(memory);
    scheduler().wait_for_device(device);
    require(release_memory(memory, Origin::kDevice), cudaErrorInvalidValue);
    return sticky_error(device);
  });
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream) {
  return call(cudaErrorMemoryAllocation, [&] {
    require(memory, cudaErrorInvalidValue);
    *memory = nullptr;
    require(!is_captured(stream), cudaErrorStreamCaptureUnsupported);
    if (bytes != 0) *memory = allocate_on_device(current_device(), bytes);
  });
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  return call(cudaErrorInvalidValue, [&] {
    if (!memory) return;
    check_stays(memory);
    require(!is_captured(stream), cudaErrorStreamCaptureUnsupported);
    enqueue(stream, {.run = [memory] { release_memory(memory, Origin::kDevice); },
                     .runs_after_fault = true});
    note_leaving(memory);
  });
}

cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return allocate_host(memory, bytes, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
  return allocate_host(memory, bytes, flags);
}

cudaError_t cudaFreeHost(void *memory) {
  return call(cudaErrorInvalidValue, [&] {
    require_no_capture();
    if (!memory) return cudaSuccess;
    wait_for_all_devices();
    require(release_memory(memory, Origin::kPinned), cudaErrorInvalidValue);
    return sticky_error(current_device());
  });
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags) {
  return call(cudaErrorInvalidValue, [&] {
    constexpr unsigned kKnown =
        cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    require(memory && bytes != 0 && (flags & ~kKnown) == 0, cudaErrorInvalidValue);
    require_no_capture();
    const uint64_t begin = address_of(memory);
    require(!find_allocation(begin) && !find_allocation(begin + bytes - 1),
            cudaErrorHostMemoryAlreadyRegistered);
    add({nullptr, begin, bytes, MemoryKind::kMappedHost, current_device()}, "registered memory");
  });
}

cudaError_t cudaHostUnregister(void *memory) {
  return call(cudaErrorInvalidValue, [&] {
    require_no_capture();
    require(!is_allocation(memory), cudaErrorInvalidValue);
    wait_for_all_devices();
    require(release_memory(memory, Origin::kRegistered), cudaErrorHostMemoryNotRegistered);
  });
}

cudaError_t cudaHostGetDevicePointer(void **on_device, void *memory, unsigned flags) {
  return call(cudaErrorInvalidValue, [&] {
    require(on_device && flags == 0, cudaErrorInvalidValue);
    const std::optional<Allocation> found = find_allocation(address_of(memory));
    require(found && found->kind == MemoryKind::kMappedHost, cudaErrorInvalidValue);
    *on_device = memory;
  });
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  return call(cudaErrorInvalidValue, [&] {
    require(free && total, cudaErrorInvalidValue);
    const std::lock_guard lock(heap().mutex);
    *total = settings().memory_bytes;
    *free = *total - heap().used[static_cast<size_t>(current_device())];
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  return call(cudaErrorInvalidValue, [&] {
    require(attributes, cudaErrorInvalidValue);
    const std::optional<Allocation> found = find_allocation(address_of(pointer));
    void *const address = const_cast<void *>(pointer);
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = address;
    if (!found) return;
    const bool is_host = found->kind == MemoryKind::kMappedHost;
    attributes->type = is_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attributes->device = found->device;
    attributes->devicePointer = address;
    attributes->hostPointer = is_host ? address : nullptr;
  });
}

}  // extern "C"
