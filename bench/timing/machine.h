// The device under test: an mpcore context and, on the cuda target, the runtime that times it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/common.h"
#include "bench/peers/cuda_runtime.h"
#include "bench/peers/nvml.h"

namespace mpbench {

/// A moment of a GPU.  NaN = the driver does not say.
struct GpuState {
  std::string during;  ///< what the GPU was doing
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
  /// The cuda target without a GPU (tools/softgpu): calls are counted, and nothing is timed.
  bool is_counted() const { return cuda_ && cuda_->is_software(); }
  /// NULL on the host target.
  const CudaRuntime *cuda() const { return cuda_ ? &*cuda_ : nullptr; }
  mp_stream_t stream() const { return cuda_ ? cuda_->stream() : nullptr; }
  void synchronize() const { check(mp_stream_sync(context(), stream())); }

  /// Whether the constants by which the library chooses kernels here were never measured (mptune).
  bool has_estimated_costs() const;

  /// Data sets of `bytes` that calls must take in turn so that none finds its data in L2; one where calls are counted.
  int64_t sets_beyond_l2(int64_t bytes) const;

  /// NULL on the host target and where it is missing; then nvml_gap() says why.
  const Nvml *nvml() const { return nvml_ ? &*nvml_ : nullptr; }
  const std::string &nvml_gap() const { return nvml_gap_; }
  /// Empty where there is no NVML to ask.
  std::optional<GpuState> gpu_state(std::string during) const;

 private:
  Context context_;
  mp_device_info_t info_;
  std::optional<CudaRuntime> cuda_;
  std::optional<Nvml> nvml_;
  std::string nvml_gap_;
};

/// Uniform values in [-1, 1], or as large as is asked for; figures for zeros or constants would flatter a GPU, which clocks
/// higher when few bits toggle.  Fills continue where the last one stopped, so that no two
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
