// The plan of a convolution: that of a GEMM, and how the GEMM reads its operands.
//
// All functions are pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/plan.h"

namespace mp {

// ---------------------------------------------------------------------------- copies of an image

// Copies of an image of few channels and of its filter, which kernels read in units of 16 bytes.
//
// WMMA kernels read rows of taps (padded_image).  Zeros follow the channels of each pixel and pad
// each row of the image on both sides.  With an even stride four channels are enough: rows of taps
// then begin at every eighth element.
//
// Hopper kernels read windows by im2col TMA (window_image).  A pixel of this copy holds the
// channels of all image rows under a group of filter rows, so that the elements of the image under
// the group are contiguous: the window of a pixel of y.  For TMA a window is one pixel, and its
// elements are the channels.  Windows are a stride apart, so they overlap:
//
//     copy[n][line][w]    x[n][h][w], x[n][h + dilation][w], ...; then zeros
//     window [n][line][q] copy[n][line][q stride] to copy[n][line][q stride + s - 1]
//
// TMA loads zeros for the channels past the end of a window.  Zeros of the filter are therefore
// multiplied by zeros alone, and every infinity or NaN reaches exactly the outputs that read it.

struct PaddedImage {
  int32_t channels;     ///< elements per pixel
  int32_t width;        ///< pixels per line, first to last tap of the patches
  size_t image_bytes;   ///< a multiple of 256; 0 = no copy
  size_t filter_bytes;  ///< filter with the same pixels: copy in fprop, FP32 sums of windows in
                        ///< wgrad; else 0

  // Windows.
  int32_t rows;       ///< image rows in a pixel, dilation_h apart; 0 = rows of taps
  int32_t lines;      ///< per image
  int32_t line_step;  ///< image rows from one line to the next; the first begins at -pad_top

  bool has_windows() const { return rows > 0; }
  size_t bytes() const { return image_bytes + filter_bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (image_bytes != 0) + (filter_bytes != 0); }
};

/// Copy for WMMA kernels: fprop and wgrad, 16-bit, in one group; none if patches are read by 16
/// bytes in place.
PaddedImage padded_image(const ConvProblem &);

/// Maximum number of channels of an image with windows.
constexpr int32_t kMaxWindowChannels = 8;

/// Copy for Hopper kernels: fprop and wgrad, 16-bit, in one group, at most kMaxWindowChannels, if
/// im2col TMA can read the windows; else none.
PaddedImage window_image(const ConvProblem &);

/// The problem that reads the copies, which are at the beginning of the workspace: the image's,
/// then the filter's.  They have no addresses yet.  Windows are the pixels of its image.  In wgrad
/// of windows it writes FP32 sums in place of dfilter.
ConvProblem with_padded_image(const ConvProblem &, const PaddedImage &);

// ---------------------------------------------------------------------------- plans

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
/// Returns the plans of the first entries of rank_conv within the workspace of the request.
std::vector<ConvPlan> fastest_conv_plans(const ConvProblem &, const PlanRequest &,
                                         int32_t max_count);
/// Returns the fastest plan within the workspace of the request.
/// @param measured  as in plan_gemm
ConvPlan plan_conv(const ConvProblem &, const PlanRequest &, const char *measured = nullptr);
/// Makes the plan of a named kernel, as plan_named_gemm.
bool plan_named_conv(const ConvProblem &, const PlanRequest &, const char *name, ConvPlan *plan,
                     const char **why);
/// All kernel names of a pass.
std::span<const char *const> conv_names(mp_conv_op_t op);
/// Empty, or a property of the tensors, which the caller can change, that may slow `problem` down.
std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device);

}  // namespace mp
