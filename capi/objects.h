// What the opaque handles are, and how they own device memory.
//
// Objects share their context, so that one that outlives mp_context_destroy can still free its
// memory.  The arrays of an object are laid out on the host and uploaded as one block.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "capi/check.h"
#include "kernels/backend.h"
#include "mpcore.h"

namespace mp {

// ---------------------------------------------------------------------------- context

/// What has been logged and is not to be logged again.
struct Logged {
  std::atomic_flag slow_path;
  std::mutex mutex;
  std::set<std::string_view> kernels;  ///< under mutex; names are in static storage
};

/// One device and its limits.  Immutable apart from what it remembers of the log.
struct Context {
  const Target &target;
  Device device;
  std::optional<mp_allocator_t> allocator;  ///< none: the target's own
  mutable Logged logged;
};

using ContextPtr = std::shared_ptr<const Context>;

// ---------------------------------------------------------------------------- device memory

struct ReleaseMemory {
  ContextPtr context;
  size_t bytes;
  void operator()(std::byte *ptr) const noexcept;
};

/// Device memory from the context's allocator.
using DeviceBuffer = std::unique_ptr<std::byte, ReleaseMemory>;

/// The arrays of one object, as they will lie in its device memory.
class DeviceImage {
 public:
  /// Appends `count` values; returns their offset.
  template <class T>
  size_t add(const T *values, size_t count) {
    const size_t offset = add_zeros<T>(count);
    if (count > 0) std::memcpy(bytes_.data() + offset, values, count * sizeof(T));
    return offset;
  }

  template <class T>
  size_t add_zeros(size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    const size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(offset + count * sizeof(T));
    return offset;
  }

  /// Allocates, copies and waits.
  DeviceBuffer upload(const ContextPtr &context) const;

 private:
  static constexpr size_t kAlignment = 16;
  std::vector<std::byte> bytes_;
};

/// The array at `offset` of an uploaded image.
template <class T>
T *array_at(const DeviceBuffer &memory, size_t offset) {
  return reinterpret_cast<T *>(memory.get() + offset);
}

/// Memory of the host that kernels write to.
class MappedBuffer {
 public:
  MappedBuffer(const ContextPtr &context, size_t bytes)
      : context_(context), memory_(context->target.allocate_mapped(context->device, bytes)) {}
  MappedBuffer(const MappedBuffer &) = delete;
  MappedBuffer &operator=(const MappedBuffer &) = delete;
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

/// What the device tells of the latest steps, for mp_step_query; any thread may ask at any time.
class VerdictRing {
 public:
  explicit VerdictRing(const ContextPtr &context)
      : memory_(context, kVerdicts * sizeof(uint64_t)) {}

  uint64_t *device() const { return memory_.device<uint64_t>(); }
  /// False where `step` is not remembered.
  bool find(int64_t step, mp_step_verdict_t &verdict) const;
  /// Forgets everything; the next step is `steps` + 1.  Only while no kernel can be writing.
  void restart(int64_t steps);

 private:
  std::atomic_ref<uint64_t> slot(uint64_t step) const {
    return std::atomic_ref(memory_.host<uint64_t>()[step % kVerdicts]);
  }

  MappedBuffer memory_;
  std::atomic<int64_t> forgotten_ = 0;  ///< the last step of which nothing is known
};

}  // namespace mp

// ---------------------------------------------------------------------------- the handles

struct mp_context {
  mp::ContextPtr shared;
};

struct mp_tensor_list {
  mp::ContextPtr context;
  std::vector<void *> data;  ///< host copies of what `device` points to, to check calls against
  std::vector<int64_t> numel;
  std::vector<mp_dtype_t> dtype;
  mp::DeviceBuffer memory;
  mp::TensorList device;
  mp::ReduceScratch scratch;
};

struct mp_scaler {
  mp::ContextPtr context;
  mp_scaler_config_t config;
  mp::DeviceBuffer memory;
  mp::ScalerDevice *device;
  const mp::ScalerRecord *device_history;   ///< config.history of them
  std::vector<mp::ScalerRecord> history;    ///< their copy, for mp_scaler_get_history_sync
  std::optional<mp::VerdictRing> verdicts;  ///< always there once the scaler has been created
  /// A step with MP_STEP_KEEP_SCALER, or an accumulation, has come since the last update.
  bool has_kept_amax;
};

struct mp_optimizer {
  mp::ContextPtr context;
  mp_optimizer_desc_t desc;        ///< its host arrays are gone, its lists live longer than this
  std::vector<mp_hyper_t> groups;  ///< host copy; what mp_optimizer_set_hyper uploads
  mp::DeviceBuffer memory;
  mp::OptimizerArgs args;
  mp_hyper_t *device_groups;
  // Device scratch of mp_scale_step, 1 float each.
  float *amax;
  float *norm;
  float *grad_scale;
  float *found_inf;
  // Of a step with several ranks.
  mp::RankMessage *message;
  double *sum_squares;
  float
      *tensor_norms;  ///< 1 per tensor: of the gradients as they are; NULL: no group clips by them
};

namespace mp {

inline const ContextPtr &require_context(mp_context_t context) {
  return require_pointer(context, "context").shared;
}

/// Whether the policy learns from the largest gradient of every step.
inline bool has_statistics(mp_scaler_policy_t policy) {
  return policy == MP_SCALER_LOGNORMAL || policy == MP_SCALER_LOGMAX;
}

/// Whether its next update has nothing to learn from yet.
inline bool needs_amax(const mp_scaler &scaler) {
  return has_statistics(scaler.config.policy) && !scaler.has_kept_amax;
}

/// Fails where a kernel would read through NULL.
void require_data(const mp_tensor_list &list, const char *name);

/// Fails unless both lists have the same context and sizes.
void require_parallel(const mp_tensor_list &list, const char *name, const mp_tensor_list &other,
                      const char *other_name);

/// Fails where the update could not read or write its tensors; they may have moved since
/// mp_optimizer_create.
void require_data(const mp_optimizer &optimizer);

}  // namespace mp
