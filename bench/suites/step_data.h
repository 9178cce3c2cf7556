// Data of the operations of mpbench step.
#pragma once

#include <cstdint>

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
  Tensors(const Machine &machine, const Layout &layout, mp_dtype_t dtype);

  void fill(RandomPool &pool) { pool.fill(memory_.data(), elems_); }
  mp_tensor_list_t list() const { return list_.get(); }

 private:
  int64_t elems_;  ///< including gaps
  Buffer memory_;
  TensorList list_;
};

/// Dynamic loss scaling with the defaults of the header.
Scaler make_scaler(const Machine &machine);

}  // namespace mpbench
