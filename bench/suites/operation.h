// Description of a GEMM or a convolution for timing, so that both share one implementation.
#pragma once

#include <functional>
#include <vector>

#include "bench/peers/peer.h"
#include "bench/shapes/batched_shapes.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/epilogue_shapes.h"
#include "bench/shapes/shapes.h"
#include "bench/timing/agreement.h"
#include "bench/timing/machine.h"

namespace mpbench {

struct Operation {
  int64_t first_elems, second_elems, out_elems;
  mp_dtype_t dtype, out_dtype;
  float beta;
  /// Number of consecutive calls, with separate first and out and a shared second.
  int64_t calls;
  double flop, min_bytes;                  ///< for all calls; each operand is counted once
  std::vector<const char *> kernels = {};  ///< all that can run it, the predicted fastest first
  double predicted_us = 0;                 ///< for all calls, by the cost model of kernel selection
  Tolerance tolerance;                     ///< for an output element, between mpcore and a peer
  Epilogue epilogue = Epilogue::kNone;
  int64_t row_elems = 0;                ///< row length of the output, if there is an epilogue
  std::vector<ItemOffsets> items = {};  ///< entries of a batch with pointers in Operands::items

  /// @param kernel  NULL: the library's choice
  std::function<int64_t(const char *kernel)> workspace_bytes = {};
  std::function<void(const char *kernel, const Operands &, const Buffer &workspace)> enqueue = {};
  /// Returns the library's choice, measured or predicted; absent: kernels.front().
  std::function<std::string(const Buffer &workspace)> selected_kernel = {};
};

/// Kernel name of calls for which the library has no kernel query: pointer arrays, groups,
/// epilogues.
inline constexpr const char *kNotNamed = "not named";

/// Fills in the kernels that can run it, the predicted time, the selected kernel and the workspace.
void add_gemm_kernels(Operation &operation, const Machine &machine, const mp_gemm_desc_t &desc);

Operation gemm_operation(const Machine &machine, const Shape &shape, const mp_gemm_desc_t &desc,
                         Epilogue epilogue = Epilogue::kNone);

Operation epilogue_operation(const Machine &machine, const EpilogueShape &shape,
                             const mp_gemm_desc_t &desc);

Operation conv_operation(const Machine &machine, const ConvShape &shape,
                         const mp_conv2d_desc_t &desc);

}  // namespace mpbench
