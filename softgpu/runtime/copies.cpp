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

/// 2D copy: rows of bytes with a pitch for each side.
struct Copy {
  std::byte *to;
  size_t to_pitch;
  const std::byte *from;
  size_t from_pitch;
  size_t width, height;
  Place to_place = Place::kPageable, from_place = Place::kPageable;

  bool is_empty() const { return width == 0 || height == 0; }
  size_t to_extent() const { return (height - 1) * to_pitch + width; }
  size_t from_extent() const { return (height - 1) * from_pitch + width; }
  void find_places() {
    to_place = place_of(to, to_extent(), kTo);
    from_place = place_of(from, from_extent(), kFrom);
  }
  void perform() const {
    check_is_there(to_place, to, to_extent(), kTo);
    check_is_there(from_place, from, from_extent(), kFrom);
    if (to_place != Place::kDevice) check_was_written();
    for (size_t row = 0; row < height; row++) {
      std::byte *const into = to + row * to_pitch;
      const std::byte *const out_of = from + row * from_pitch;
      std::memmove(into, out_of, width);
      note_copied(address_of(into), address_of(out_of), width);
    }
  }

 private:
  static constexpr char kTo[] = "a copy to", kFrom[] = "a copy from";

  static uint64_t address_of(const std::byte *p) { return reinterpret_cast<uint64_t>(p); }
  /// Reports uninitialized bytes, because the host will read them.
  void check_was_written() const {
    uint64_t count = 0;
    for (size_t row = 0; row < height; row++)
      count += find_unwritten(address_of(from + row * from_pitch), width).count;
    if (count != 0)
      violation(format("a copy from %p to the host reads %llu uninitialized bytes",
                       static_cast<const void *>(from), static_cast<unsigned long long>(count)));
  }
};

Copy plain_copy(void *to, const void *from, size_t bytes) {
  return {
      static_cast<std::byte *>(to), bytes, static_cast<const std::byte *>(from), bytes, bytes, 1};
}

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

/// Copies the source rows to a staging buffer now, and returns the copy from that buffer.
std::function<void()> staged(Copy copy) {
  auto stage = std::make_shared<std::vector<std::byte>>(copy.width * copy.height);
  Copy into = copy;
  into.to = stage->data();
  into.to_pitch = copy.width;
  into.to_place = Place::kPageable;
  into.perform();
  copy.from = stage->data();
  copy.from_pitch = copy.width;
  return [copy, stage] { copy.perform(); };
}

cudaError_t copy(Copy c, cudaMemcpyKind kind, cudaStream_t stream, Returns returns) {
  if (c.is_empty()) return cudaSuccess;
  require(c.to && c.from && c.width <= c.to_pitch && c.width <= c.from_pitch,
          cudaErrorInvalidValue);
  c.find_places();
  const Place to = c.to_place, from = c.from_place;
  check_kind(kind, to, from);
  const bool is_synchronous = returns == Returns::kWhenDone;
  if (is_synchronous) require_no_capture();

  Task task{.type = cudaGraphNodeTypeMemcpy, .run = [c] { c.perform(); }};
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

cudaError_t fill(void *to, size_t pitch, int byte, size_t width, size_t height, cudaStream_t stream,
                 Returns returns) {
  if (width == 0 || height == 0) return cudaSuccess;
  require(to && width <= pitch, cudaErrorInvalidValue);
  constexpr char kWhat[] = "a fill of";
  const size_t extent = (height - 1) * pitch + width;
  const Place place = place_of(to, extent, kWhat);
  require(place != Place::kPageable, cudaErrorInvalidValue);
  if (returns == Returns::kWhenDone) require_no_capture();
  const auto run = [=] {
    check_is_there(place, to, extent, kWhat);
    for (size_t row = 0; row < height; row++) {
      std::byte *const begin = static_cast<std::byte *>(to) + row * pitch;
      std::memset(begin, byte, width);
      note_written(reinterpret_cast<uint64_t>(begin), width);
    }
  };
  const WorkPtr work = enqueue(stream, {.type = cudaGraphNodeTypeMemset, .run = run});
  if (returns == Returns::kAtOnce || place == Place::kDevice) return cudaSuccess;
  scheduler().wait(work);
  return sticky_error(current_device());
}

/// Returns the address of a range within a device variable.
std::byte *in_symbol(const void *symbol, size_t bytes, size_t offset) {
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
  return call("cudaMemcpy", kNatural,
              [&] { return copy(plain_copy(to, from, bytes), kind, nullptr, Returns::kWhenDone); });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", kNatural,
              [&] { return copy(plain_copy(to, from, bytes), kind, stream, Returns::kAtOnce); });
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
  return call("cudaMemcpyPeer", kNatural, [&] {
    check_device(to_device);
    check_device(from_device);
    return copy(plain_copy(to, from, bytes), cudaMemcpyDefault, nullptr, Returns::kWhenDone);
  });
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", kNatural, [&] {
    check_device(to_device);
    check_device(from_device);
    return copy(plain_copy(to, from, bytes), cudaMemcpyDefault, stream, Returns::kAtOnce);
  });
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return call("cudaMemcpy2D", kNatural, [&] {
    return copy({static_cast<std::byte *>(to), to_pitch, static_cast<const std::byte *>(from),
                 from_pitch, width, height},
                kind, nullptr, Returns::kWhenDone);
  });
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", kNatural, [&] {
    return copy({static_cast<std::byte *>(to), to_pitch, static_cast<const std::byte *>(from),
                 from_pitch, width, height},
                kind, stream, Returns::kAtOnce);
  });
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
  return call("cudaMemset", kNatural,
              [&] { return fill(to, bytes, byte, bytes, 1, nullptr, Returns::kWhenDone); });
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", kNatural,
              [&] { return fill(to, bytes, byte, bytes, 1, stream, Returns::kAtOnce); });
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int byte, size_t width, size_t height) {
  return call("cudaMemset2D", kNatural,
              [&] { return fill(to, pitch, byte, width, height, nullptr, Returns::kWhenDone); });
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t height,
                              cudaStream_t stream) {
  return call("cudaMemset2DAsync", kNatural,
              [&] { return fill(to, pitch, byte, width, height, stream, Returns::kAtOnce); });
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return call("cudaMemcpyToSymbol", kNatural, [&] {
    return copy(plain_copy(in_symbol(symbol, bytes, offset), from, bytes), kind, nullptr,
                Returns::kWhenDone);
  });
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return call("cudaMemcpyFromSymbol", kNatural, [&] {
    return copy(plain_copy(to, in_symbol(symbol, bytes, offset), bytes), kind, nullptr,
                Returns::kWhenDone);
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyToSymbolAsync", kNatural, [&] {
    return copy(plain_copy(in_symbol(symbol, bytes, offset), from, bytes), kind, stream,
                Returns::kAtOnce);
  });
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyFromSymbolAsync", kNatural, [&] {
    return copy(plain_copy(to, in_symbol(symbol, bytes, offset), bytes), kind, stream,
                Returns::kAtOnce);
  });
}

}  // extern "C"
