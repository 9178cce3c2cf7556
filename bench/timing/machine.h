// Device under test: an mpcore context and, for the cuda target, the runtime that times it.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bench/common.h"
#include "bench/peers/cuda_runtime.h"
#include "bench/peers/nvml.h"

namespace mpbench {

/// State of a GPU at one moment.  NaN = not reported by the driver.
struct GpuState {
  std::string during;  ///< activity of the GPU
  double sm_mhz, max_sm_mhz, memory_mhz, power_w, power_limit_w, temperature_c;
};

class Machine {
 public:
  /// @param device    an ordinal or one of MP_DEVICE_*.
  /// @param sm_limit  as in mp_context_config.
  explicit Machine(int32_t device, int32_t sm_limit = 0);

  mp_context_t context() const { return context_.get(); }
  const mp_device_info_t &info() const { return info_; }
  bool on_host() const { return info_.target == MP_TARGET_HOST; }
  /// True for the cuda target without a GPU (softgpu): calls are counted instead of timed.
  bool is_counted() const { return cuda_ && cuda_->is_software(); }
  /// NULL on the host target.
  const CudaRuntime *cuda() const { return cuda_ ? &*cuda_ : nullptr; }
  mp_stream_t stream() const { return cuda_ ? cuda_->stream() : nullptr; }
  void synchronize() const { check(mp_stream_sync(context(), stream())); }

  /// Calls a function of the library with `arguments` between the context and the stream; a Buffer
  /// stands for the address and the size of a workspace.
  template <typename Function, typename... Arguments>
  void call(Function *function, const Arguments &...arguments) const {
    std::apply([&](const auto &...all) { check(function(context(), all..., stream())); },
               std::tuple_cat(expanded(arguments)...));
  }

  /// True if the constants of kernel selection were not measured on this architecture (mptune).
  bool has_estimated_costs() const;

  /// Number of data sets of `bytes` that calls must cycle through so that none is in L2; 1 if calls
  /// are counted.
  int64_t sets_beyond_l2(int64_t bytes) const;

  /// NULL on the host target and if NVML is missing; nvml_gap() then returns the reason.
  const Nvml *nvml() const { return nvml_ ? &*nvml_ : nullptr; }
  const std::string &nvml_gap() const { return nvml_gap_; }
  /// Empty without NVML.
  std::optional<GpuState> gpu_state(std::string during) const;

  /// Copies an array to new memory.
  template <typename T>
  Buffer upload(const std::vector<T> &values) const {
    const size_t bytes = values.size() * sizeof(T);
    Buffer buffer(context(), static_cast<int64_t>(bytes));
    call(mp_memcpy, buffer.data(), values.data(), bytes);
    synchronize();  // `values` may be freed
    return buffer;
  }

 private:
  template <typename T>
  static std::tuple<T> expanded(const T &value) {
    return {value};
  }
  static std::tuple<void *, size_t> expanded(const Buffer &workspace) {
    return {workspace.data(), static_cast<size_t>(workspace.bytes())};
  }

  Context context_;
  mp_device_info_t info_;
  std::optional<CudaRuntime> cuda_;
  std::optional<Nvml> nvml_;
  std::string nvml_gap_;
};

/// Uniform values in [-1, 1], or of the given magnitude.  Zeros or constants would flatter a GPU,
/// whose clocks rise when few bits toggle.  Each fill continues after the previous one, so no two
/// matrices are equal.
class RandomPool {
 public:
  RandomPool(const Machine &machine, mp_dtype_t dtype, float most = 1);
  void fill(void *dst, int64_t count);

 private:
  const Machine &machine_;
  int64_t elem_bytes_;
  int64_t position_ = 0;
  Buffer values_;
};

}  // namespace mpbench
