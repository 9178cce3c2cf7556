// What the convolution kernels are launched with, and what one block of them multiplies.
//
//     pass    m (rows)       n (columns)    k (sum)       A                     B
//     fprop   pixels of y    K              taps x C      patches of x          filter
//     dgrad   pixels of dx   C              taps x K      patches of dy         filter
//     wgrad   K              taps x C       pixels of y   dy, transposed        patches of x
//
// Groups are GEMMs of their own, side by side.  With a stride, dgrad falls apart into
// stride_h x stride_w classes of pixels: the taps that reach pixel h are those with
// (h + pad - r dilation) divisible by the stride, so a class is a product over these taps alone, and
// no zeros are multiplied.
//
// Source: Chetlur et al., cuDNN, 2014, section 3; CUTLASS, implicit_gemm_convolution.md.
#pragma once

#include <type_traits>

#include "kernels/conv/implicit_gemm.h"
#include "kernels/conv/patches.h"
#include "kernels/conv/problem.h"
#include "kernels/gemm/dbias.h"
#include "kernels/gemm/operand.h"
#include "kernels/gemm/tile_scheduler.h"

namespace mp {
struct PaddedImage;
}

namespace mp::MP_TARGET {

/// A run of taps and channels, as the written filter has it: in pieces that lie one behind the other.  Usually the run is
/// one piece; where channels are padded (padded_image.h) each tap is one, without the padding.
struct FilterRuns {
  FastDivisor padded;  ///< by the columns from piece to piece
  int32_t pieces;      ///< in a run
  int32_t elems;       ///< of a piece
};

struct ConvArgs {
  Output out;  ///< the written tensor as one matrix
  mp_dtype_t dtype;
  const void *image;  ///< x; dgrad: dy
  const void *other;  ///< filter; wgrad: dy
  PatchMap patches;   ///< dgrad: but for what a class says
  FilterMap filter;
  int32_t groups;
  int32_t group_c, group_k;  ///< channels of a group
  int64_t filter_elems;      ///< of one output channel
  DgradAxis axis_h, axis_w;  ///< dgrad
  TileScheduler scheduler;   ///< a batch item is a group, or a group and a class
  int64_t slice_k;           ///< of k per slice, whole k-tiles; all of it without a split
  float *partial_sums;       ///< NULL without a split; else [slice][out.m][out.n]
  bool image_is_aligned;     ///< every run that is read of it, to 16 bytes
  bool other_is_aligned;     ///< likewise, where it is the filter of fprop
  FilterRuns written;        ///< wgrad
};

/// Where a run of columns of a product goes.
struct OutputCoord {
  int64_t row, col;  ///< in args.out
  int valid;         ///< columns; <= 0: nowhere
};

/// The product of one group (and class): its extents, and where everything is.
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

  // The first element of this group's channels in each tensor.
  MP_DEVICE int64_t image_elem() const {
    return int64_t{group_} * (kIsDgrad ? args_.group_k : args_.group_c);
  }
  MP_DEVICE int64_t filter_elem() const {
    return int64_t{group_} * args_.group_k * args_.filter_elems;
  }
  MP_DEVICE int64_t dy_elem() const { return int64_t{group_} * args_.group_k; }
  MP_DEVICE int64_t dy_ld() const { return int64_t{args_.groups} * args_.group_k; }

  /// Of kRun columns that begin at a multiple of it.
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

  // A class of dgrad has maps of its own; else those of all are read where they are.
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

/// `args`: but for the schedule and slice_k.
void launch_conv_depthwise(const ConvPlan &, const ConvProblem &, const Device &, ConvArgs,
                           mp_stream_t);
/// Makes the copies, at the head of the workspace; returns the problem that reads them.
ConvProblem launch_padded_image(const Device &, const ConvProblem &, const PaddedImage &,
                                void *workspace, mp_stream_t);
void launch_conv_wmma(const ConvPlan &, mp_conv_op_t, const Device &, const ConvArgs &,
                      mp_stream_t);
/// partial_sums: as in ConvArgs.
void launch_conv_wgmma(const ConvPlan &, const ConvProblem &, const Device &,
                       const ColumnPartials &, float *partial_sums, mp_stream_t);
void launch_conv_simt(const ConvPlan &, mp_conv_op_t, const Device &, const ConvArgs &,
                      mp_stream_t);

}  // namespace mp::MP_TARGET
