// Data of a GEMM or convolution call.
#pragma once

#include "bench/timing/machine.h"

namespace mpbench {

struct Matrices {
  Buffer a, b, d, workspace;
};

inline Buffer matrix(const Machine &machine, int64_t rows, int64_t cols) {
  return make_buffer(machine.context(), rows * cols, MP_FP16);
}

}  // namespace mpbench
