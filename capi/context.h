// Context, and device memory of the objects that share it.
//
// Objects share ownership of their context: an object that outlives mp_context_destroy can still
// free its memory.  The arrays of an object are laid out on the host and uploaded as one block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/lifetime.h"
#include "base/workspace_layout.h"
#include "capi/check.h"
#include "kernels/backend.h"

namespace mp {

// ---------------------------------------------------------------------------- context

/// Messages that have been logged and are not repeated.
struct Logged {
  std::atomic_flag slow_path;
  std::atomic_flag autocast_gate;
  std::set<std::string_view> kernels;  ///< logged kernel names, in static storage
};

/// Reference to a backend.  The backend keeps threads and memory between launches, and frees them
/// with its last reference.
class BackendUse : NotCopied {
 public:
  explicit BackendUse(const Backend &backend);
  ~BackendUse();

 private:
  const Backend &backend_;
  LazyInit::User user_;
};

/// Device and its limits.  Immutable except for mutable members.
struct Context {
  const uint64_t id;  ///< unique within the process
  const Backend &backend;
  Device device;
  std::optional<mp_allocator_t> allocator;  ///< if absent, the backend allocates
  mutable Logged logged;
  BackendUse use;
  /// Kernel of mp_attention_set_kernel, in static storage; NULL: the best one.
  mutable std::atomic<const char *> attention_kernel = nullptr;
  /// Kernels that mp_gemm and mp_conv2d_* measure for each new shape; 0: they predict.
  mutable std::atomic<int32_t> measured_kernels = 0;
};

using ContextPtr = std::shared_ptr<const Context>;

/// Lets the calls of this thread measure kernels while the object exists, as mp_tuning_measure
/// does for all threads.  Defined in tuned_call.cpp.
class Measuring : NotCopied {
 public:
  /// @param max_kernels  0 = no effect
  explicit Measuring(int32_t max_kernels);
  ~Measuring();

 private:
  const int32_t before_;
};

/// Runs a callback of the user.  If it throws, the call fails and the message names the callback.
template <class Callback>
auto call_back(const char *name, mp_status_t status, const Callback &callback) {
  try {
    return callback();
  } catch (const std::exception &error) {
    fail(status, name, " threw an exception: ", error.what());
  } catch (...) {
    fail(status, name, " threw an exception");
  }
}

// ---------------------------------------------------------------------------- device memory

struct ReleaseMemory {
  ContextPtr context;
  size_t bytes;
  void operator()(std::byte *ptr) const noexcept;
};

/// Device memory from the context's allocator.
using DeviceBuffer = std::unique_ptr<std::byte, ReleaseMemory>;

DeviceBuffer allocate_device(const ContextPtr &context, size_t bytes);

/// Enqueues *counter += 1, in device memory.
void increment(const Context &context, uint64_t *counter, mp_stream_t stream);

/// Enqueues the sums over no rows: sets `count` floats to 0, unless `sums` is NULL.
void clear_sums(const Context &context, float *sums, int64_t count, mp_stream_t stream);

/// Enqueues the loss of no rows, unless `loss` is NULL: 0 for a sum or a quotient with a given
/// divisor, NaN for a mean.
void store_empty_loss(const Context &context, float *loss, bool is_mean, mp_stream_t stream);

/// Host image of the arrays of an object, uploaded as one block.
class DeviceImage {
 public:
  /// Appends `count` values.  upload() sets `array`, which must exist until then, to their address.
  template <class T>
  void add(T *&array, const std::remove_const_t<T> *values, size_t count) {
    const size_t offset = add_zeros(array, count);
    if (count > 0) std::memcpy(bytes_.data() + offset, values, count * sizeof(T));
  }

  /// Appends `count` zeros, like add(), and returns their byte offset.
  template <class T>
  size_t add_zeros(T *&array, size_t count = 1) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    const size_t offset = align_up(bytes_.size(), kAlignment);
    bytes_.resize(offset + count * sizeof(T));
    set_arrays_.push_back(
        [&array, offset](std::byte *memory) { array = reinterpret_cast<T *>(memory + offset); });
    return offset;
  }

  /// Allocates device memory, copies the image to it and waits.
  DeviceBuffer upload(const ContextPtr &context) const;

 private:
  static constexpr size_t kAlignment = 16;
  std::vector<std::byte> bytes_;
  std::vector<std::function<void(std::byte *)>> set_arrays_;  ///< one function per array
};

/// Mapped host memory that kernels write to.
class MappedBuffer : NotCopied {
 public:
  MappedBuffer(const ContextPtr &context, size_t bytes)
      : context_(context), memory_(context->backend.allocate_mapped(context->device, bytes)) {}
  ~MappedBuffer();

  template <class T>
  T *host() const {
    return static_cast<T *>(memory_.host);
  }
  template <class T>
  T *device() const {
    return static_cast<T *>(memory_.device);
  }

 private:
  ContextPtr context_;
  MappedMemory memory_;
};

}  // namespace mp

struct mp_context {
  mp::ContextPtr shared;
};

namespace mp {

inline const ContextPtr &require_context(mp_context_t context) {
  return require_pointer(context, "context").shared;
}

/// Runs the body of an API function that takes a context.
/// @param body  (const Context &)
template <class Problem, class Body>
mp_status_t call(const char *function, mp_context_t context, const Problem &problem,
                 const Body &body) {
  return call(function, problem, [&] { body(*require_context(context)); });
}
template <class Body>
mp_status_t call(const char *function, mp_context_t context, const Body &body) {
  return call(function, [&] { body(*require_context(context)); });
}

}  // namespace mp
