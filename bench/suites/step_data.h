// Data of the operations of mpbench step.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/timing/machine.h"
#include "layouts.h"

namespace mpbench {

/// Bytes per element.
constexpr int64_t kHalf = 2;
constexpr int64_t kFloat = 4;
constexpr int64_t kUpdated = kFloat + kFloat;  ///< fp32, read and written

/// Tensors of a layout in one allocation, aligned like separate allocations.
class Tensors {
 public:
  Tensors(const Machine &machine, const Layout &layout, mp_dtype_t dtype) {
    int64_t bytes = 0;
    std::vector<int64_t> offsets;
    for (const int64_t numel : layout.numel) {
      offsets.push_back(bytes);
      bytes += aligned_bytes(numel * dtype_bytes(dtype));
    }
    elems_ = bytes / dtype_bytes(dtype);
    memory_ = Buffer(machine.context(), bytes);
    std::vector<void *> data;
    for (const int64_t offset : offsets) data.push_back(memory_.as<char>() + offset);
    list_ = make_list(machine.context(), dtype, data, layout.numel);
  }

  void fill(RandomPool &pool) { pool.fill(memory_.data(), elems_); }
  mp_tensor_list_t list() const { return list_.get(); }

 private:
  int64_t elems_;  ///< including gaps
  Buffer memory_;
  TensorList list_;
};

/// Dynamic loss scaling with the defaults of the header.
inline Scaler make_scaler(const Machine &machine) {
  return mptools::make_scaler(machine.context(),
                              mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
}

}  // namespace mpbench
