// The plan of a convolution: that of a GEMM, and how the GEMM reads its operands.
//
// All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/conv/conv_problem.h"
#include "kernels/conv/padded_image.h"
#include "kernels/gemm/plan.h"

namespace mp {

enum class ConvFamily {
  gemm,      ///< 1 x 1 filters: a GEMM kernel as it is
  implicit,  ///< a main loop that reads patches
  im2col,    ///< Hopper: TMA reads patches
  depthwise  ///< channel by channel
};

struct ConvPlan {
  ConvFamily family;
  const char *name;  ///< static storage, e.g. "conv_wmma_128x128x32_s3_k4"
  GemmPlan gemm;     ///< workspace of the whole convolution; depthwise: no kernel
  PaddedImage copy;  ///< stored at offset 0 of the workspace
};

/// An entry of a ranking.
struct RankedConv {
  ConvFamily family;
  const GemmVariant *variant;  ///< NULL: depthwise
  int32_t split_k;
  bool reads_copies;
  double predicted_us;
  size_t workspace_bytes;
  const char *name;
};

/// Returns everything that can run the problem, fastest first, whatever workspace it needs; never
/// empty.
std::vector<RankedConv> rank_conv(const ConvProblem &, const PlanRequest &);
/// Returns the fastest plan within the workspace of the request.
ConvPlan plan_conv(const ConvProblem &, const PlanRequest &);
/// Makes the plan of a named kernel, as plan_named_gemm.
bool plan_named_conv(const ConvProblem &, const PlanRequest &, const char *name, ConvPlan *plan,
                     const char **why);
/// All kernel names of a pass.
std::span<const char *const> conv_names(mp_conv_op_t op);

}  // namespace mp
