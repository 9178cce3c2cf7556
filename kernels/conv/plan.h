// The plan of a convolution: that of a GEMM, and how the GEMM reads its operands.
//
// All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/conv/problem.h"
#include "kernels/gemm/plan.h"

namespace mp {

enum class ConvFamily {
  gemm,      ///< 1 x 1 filters: a GEMM kernel as it is
  implicit,  ///< a main loop that reads patches
  im2col,    ///< Hopper: TMA reads patches
  depthwise  ///< channel by channel
};

/// A copy of an image whose channels are not a multiple of 8 (padded_image.h).
struct PaddedImage {
  int32_t channels;     ///< per pixel
  int32_t width;        ///< pixels per line, first to last tap of the patches
  size_t image_bytes;   ///< a multiple of 256; 0 = no copy
  size_t filter_bytes;  ///< fprop: copy of the filter with the same channels; else 0

  size_t bytes() const { return image_bytes + filter_bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (image_bytes != 0) + (filter_bytes != 0); }
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
