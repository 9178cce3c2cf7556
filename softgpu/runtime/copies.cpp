// Copies and fills.  Their synchronization follows "API synchronization behavior" of the CUDA
// Runtime API.
#include <cstring>
#include <memory>
#include <vector>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/runtime/device.h"
#include "softgpu/runtime/modules.h"
#include "softgpu/runtime/streams.h"

namespace softgpu::runtime {

namespace {

struct Copy {
  void *to;
  const void *from;
  size_t bytes;
  Place to_place = Place::kPageable, from_place = Place::kPageable;

  void find_places() {
    to_place = place_of(to, bytes, kTo);
    from_place = place_of(from, bytes, kFrom);
  }
  void perform() const {
    check_is_there(to_place, to, bytes, kTo);
    check_is_there(from_place, from, bytes, kFrom);
    if (to_place != Place::kDevice) check_was_written();
    std::memmove(to, from, bytes);
    note_copied(address_of(to), address_of(from), bytes);
  }

 private:
  static constexpr char kTo[] = "a copy to", kFrom[] = "a copy from";

  static uint64_t address_of(const void *p) { return reinterpret_cast<uint64_t>(p); }
  /// Reports uninitialized bytes, because the host will read them.
  void check_was_written() const {
    const uint64_t count = find_unwritten(address_of(from), bytes).count;
    if (count != 0)
      violation(format("a copy from %p to the host reads %llu uninitialized bytes", from,
                       static_cast<unsigned long long>(count)));
  }
};

enum class Returns { kAtOnce, kWhenDone };  // cudaMemcpyAsync, cudaMemcpy

void check_kind(cudaMemcpyKind kind, Place to, Place from) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault,
          cudaErrorInvalidMemcpyDirection);
  if (kind == cudaMemcpyDefault) return;
  // Pinned memory is also addressable from the device.
  require(to_device ? to != Place::kPageable : to != Place::kDevice, cudaErrorInvalidValue);
  require(from_device ? from != Place::kPageable : from != Place::kDevice, cudaErrorInvalidValue);
}

/// Copies the source to a staging buffer now, and returns the copy from that buffer.
std::function<void()> staged(Copy copy) {
  auto stage = std::make_shared<std::vector<std::byte>>(copy.bytes);
  Copy into = copy;
  into.to = stage->data();
  into.to_place = Place::kPageable;
  into.perform();
  copy.from = stage->data();
  return [copy, stage] { copy.perform(); };
}

cudaError_t copy(Copy c, cudaMemcpyKind kind, cudaStream_t stream, Returns returns) {
  if (c.bytes == 0) return cudaSuccess;
  require(c.to && c.from, cudaErrorInvalidValue);
  c.find_places();
  const Place to = c.to_place, from = c.from_place;
  check_kind(kind, to, from);
  const bool is_synchronous = returns == Returns::kWhenDone;
  if (is_synchronous) require_no_capture();

  Task task{.run = [c] { c.perform(); }};
  if (is_captured(stream)) {
    enqueue(stream, std::move(task));
    return cudaSuccess;
  }
  if (from == Place::kPageable && to == Place::kDevice) {
    if (is_synchronous) scheduler().wait(enqueue(stream, {}));
    task.run = staged(c);
    enqueue(stream, std::move(task));
    return sticky_error(current_device());
  }
  const WorkPtr work = enqueue(stream, std::move(task));
  const bool is_on_device = to == Place::kDevice && from == Place::kDevice;
  const bool is_on_host = to != Place::kDevice && from != Place::kDevice;
  const bool waits = is_on_host || to == Place::kPageable || (is_synchronous && !is_on_device);
  if (!waits) return cudaSuccess;
  scheduler().wait(work);
  return sticky_error(current_device());
}

cudaError_t fill(void *to, int byte, size_t bytes, cudaStream_t stream, Returns returns) {
  if (bytes == 0) return cudaSuccess;
  require(to, cudaErrorInvalidValue);
  constexpr char kWhat[] = "a fill of";
  const Place place = place_of(to, bytes, kWhat);
  require(place != Place::kPageable, cudaErrorInvalidValue);
  if (returns == Returns::kWhenDone) require_no_capture();
  const auto run = [=] {
    check_is_there(place, to, bytes, kWhat);
    std::memset(to, byte, bytes);
    note_written(reinterpret_cast<uint64_t>(to), bytes);
  };
  const WorkPtr work = enqueue(stream, {.run = run});
  if (returns == Returns::kAtOnce || place == Place::kDevice) return cudaSuccess;
  scheduler().wait(work);
  return sticky_error(current_device());
}

/// Returns the address of a range within a device variable.
void *in_symbol(const void *symbol, size_t bytes, size_t offset) {
  const GlobalVariable variable = variable_of(symbol);
  require(offset <= variable.bytes && bytes <= variable.bytes - offset, cudaErrorInvalidValue);
  return reinterpret_cast<std::byte *>(variable.address) + offset;
}

constexpr cudaError_t kNatural = cudaErrorLaunchFailure;

}  // namespace

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return call(kNatural, [&] { return copy({to, from, bytes}, kind, nullptr, Returns::kWhenDone); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call(kNatural, [&] { return copy({to, from, bytes}, kind, stream, Returns::kAtOnce); });
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
  return call(kNatural, [&] { return fill(to, byte, bytes, nullptr, Returns::kWhenDone); });
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
  return call(kNatural, [&] { return fill(to, byte, bytes, stream, Returns::kAtOnce); });
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return call(kNatural, [&] {
    return copy({in_symbol(symbol, bytes, offset), from, bytes}, kind, nullptr, Returns::kWhenDone);
  });
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return call(kNatural, [&] {
    return copy({to, in_symbol(symbol, bytes, offset), bytes}, kind, nullptr, Returns::kWhenDone);
  });
}

}  // extern "C"
