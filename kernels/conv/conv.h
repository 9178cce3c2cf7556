// Arguments of the convolution kernels, and the matrix product of a group.
//
//     pass    m (rows)       n (columns)    k (sum)       A                     B
//     fprop   pixels of y    K              taps x C      patches of x          filter
//     dgrad   pixels of dx   C              taps x K      patches of dy         filter
//     wgrad   K              taps x C       pixels of y   dy, transposed        patches of x
//
// Each group is a separate GEMM.  With a stride, dgrad is one GEMM per stride phase, which consists
// of the pixels of dx with equal remainders modulo stride_h and stride_w (`classes` in the code).
// Tap r reaches pixel h if h + pad - r dilation is divisible by the stride, so a phase sums over
// these taps only and multiplies no zeros.
//
// Source: Chetlur et al., cuDNN, 2014, section 3; CUTLASS, implicit_gemm_convolution.md.
#pragma once

#include <type_traits>

#include "kernels/conv/implicit_gemm.h"
#include "kernels/conv/patches.h"
#include "kernels/conv/plan.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/tile_scheduler.h"

namespace mp::MP_TARGET {

/// Layout in dfilter of a segment of taps and channels (patches.h): consecutive pieces.  Usually
/// one piece per segment; with padded channels (padded_image.h) one piece per tap, without padding.
struct FilterRuns {
  FastDivisor padded;  ///< divisor: columns per piece, with padding
  int32_t pieces;      ///< per segment
  int32_t elems;       ///< per piece, without padding
};

struct ConvArgs {
  Output out;  ///< written tensor as one matrix
  mp_dtype_t dtype;
  const void *image;  ///< tensor of the patches: x; dgrad: dy
  const void *other;  ///< filter; wgrad: dy
  PatchMap patches;   ///< dgrad: ConvProduct completes it per stride phase
  FilterMap filter;
  int32_t groups;
  int32_t group_c, group_k;  ///< channels per group
  int64_t filter_elems;      ///< elements per output channel
  DgradAxis axis_h, axis_w;  ///< dgrad
  TileScheduler scheduler;   ///< batch item: group; dgrad: group and stride phase
  int64_t slice_k;           ///< k per slice; without split-k all of k
  float *partial_sums;       ///< [slice][out.m][out.n]; NULL without split-k
  bool image_is_aligned;     ///< every segment that is read begins 16-byte aligned
  bool other_is_aligned;     ///< same for the filter in fprop
  FilterRuns written;        ///< wgrad
};

/// Position in the output of adjacent columns of a product.
struct OutputCoord {
  int64_t row, col;  ///< in args.out
  int valid;         ///< columns to store; none if <= 0
};

/// Matrix product of one group (dgrad: of one group and stride phase): extents and positions.
template <mp_conv_op_t op>
class ConvProduct {
  static constexpr bool kIsDgrad = op == MP_CONV_DGRAD, kIsWgrad = op == MP_CONV_WGRAD;

 public:
  MP_DEVICE ConvProduct(const ConvArgs &args, int64_t item)
      : patches(args.patches),
        filter(args.filter),
        args_(args),
        group_(static_cast<int32_t>(item % args.groups)) {
    if constexpr (kIsDgrad) set_class(static_cast<int32_t>(item / args.groups));
  }

  MP_DEVICE int64_t m() const { return kIsWgrad ? args_.group_k : patches.num_rows; }
  MP_DEVICE int64_t n() const {
    return kIsWgrad ? patches.runs.extent() : kIsDgrad ? args_.group_c : args_.group_k;
  }
  MP_DEVICE int64_t k() const { return kIsWgrad ? patches.num_rows : patches.runs.extent(); }

  // First element of this group's channels in each tensor.
  MP_DEVICE int64_t image_elem() const {
    return int64_t{group_} * (kIsDgrad ? args_.group_k : args_.group_c);
  }
  MP_DEVICE int64_t filter_elem() const {
    return int64_t{group_} * args_.group_k * args_.filter_elems;
  }
  MP_DEVICE int64_t dy_elem() const { return int64_t{group_} * args_.group_k; }
  MP_DEVICE int64_t dy_ld() const { return int64_t{args_.groups} * args_.group_k; }

  /// Returns the position of kRun columns from `col`, a multiple of kRun.
  template <int kRun>
  MP_DEVICE OutputCoord place(int64_t row, int64_t col) const {
    static_assert(kVec % kRun == 0, "or it would go beyond a tap's padded channels");
    if (row >= m()) return {0, 0, 0};
    if constexpr (kIsWgrad) {
      const FilterRuns &written = args_.written;
      const Quotient run = patches.runs.padded.divide(static_cast<int32_t>(col));
      const Quotient piece = written.padded.divide(run.remainder);
      const bool inside = col < n() && piece.quotient < written.pieces;
      return {group_ * int64_t{args_.group_k} + row,
              (int64_t{run.quotient} * written.pieces + piece.quotient) * written.elems +
                  piece.remainder,
              inside ? min_of(written.elems - piece.remainder, kRun) : 0};
    } else {
      const int64_t first_col = group_ * n();
      const int valid = static_cast<int>(min_of<int64_t>(n() - col, kRun));
      if constexpr (!kIsDgrad) return {row, first_col + col, valid};
      const Quotient image = patches.grid_pixels.divide(static_cast<int32_t>(row));
      const Quotient line = patches.grid_w.divide(image.remainder);
      const int32_t h = line.quotient * args_.axis_h.stride + residue_h_;
      const int32_t w = line.remainder * args_.axis_w.stride + residue_w_;
      const bool inside = h < args_.axis_h.extent && w < args_.axis_w.extent;
      return {(int64_t{image.quotient} * args_.axis_h.extent + h) * args_.axis_w.extent + w,
              first_col + col, inside ? valid : 0};
    }
  }

  // Copies in dgrad, where each stride phase changes them; otherwise references to the arguments.
  std::conditional_t<kIsDgrad, PatchMap, const PatchMap &> patches;
  std::conditional_t<kIsDgrad, FilterMap, const FilterMap &> filter;

 private:
  MP_DEVICE void set_class(int32_t number) {
    residue_h_ = number / args_.axis_w.classes;
    residue_w_ = number % args_.axis_w.classes;
    const DgradPhase h(args_.axis_h, residue_h_), w(args_.axis_w, residue_w_);
    patches.offset_h = h.offset;
    patches.offset_w = w.offset;
    patches.runs.taps_h = h.taps;
    patches.runs.taps_w = w.taps;
    filter.first = h.first_tap * filter.step_h + w.first_tap * filter.step_w;
    filter.step_h *= args_.axis_h.tap_step;
    filter.step_w *= args_.axis_w.tap_step;
  }

  const ConvArgs &args_;
  const int32_t group_;
  int32_t residue_h_ = 0, residue_w_ = 0;
};

/// Launches the depthwise kernel; `args` needs neither scheduler nor slice_k.
void launch_conv_depthwise(const ConvPlan &, const ConvProblem &, const Device &, ConvArgs,
                           mp_stream_t);
/// Copies the image, and in fprop the filter, to the start of the workspace.  Returns the problem
/// that reads the copies.
ConvProblem launch_padded_image(const Device &, const ConvProblem &, const PaddedImage &,
                                void *workspace, mp_stream_t);
void launch_conv_wmma(const ConvPlan &, mp_conv_op_t, const Device &, const ConvArgs &,
                      mp_stream_t);
/// `partial_sums`: see ConvArgs.
void launch_conv_wgmma(const ConvPlan &, const ConvProblem &, const Device &,
                       const ColumnPartials &, float *partial_sums, mp_stream_t);
void launch_conv_simt(const ConvPlan &, mp_conv_op_t, const Device &, const ConvArgs &,
                      mp_stream_t);

}  // namespace mp::MP_TARGET
