// Convolution on Hopper's tensor cores: the kernel of wgmma_kernel.h with patches loaded by im2col
// TMA and the filter or gradient by tiled TMA.
//
//     pass    A                       B                       k
//     fprop   patches of x, k-major   filter, k-major         taps x C
//     dgrad   patches of dy, k-major  filter, n-major         taps x K (strided: see below)
//     wgrad   dy, m-major             patches of x, n-major   pixels of y
//
// The filter is a batch of matrices, one per tap: rows are output channels, columns input channels.
//
// Source: CUTLASS, sm90_implicit_gemm_gmma_ss_warpspecialized, for the loads of each operand.
#include "kernels/conv/conv_wgmma_args.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/wgmma_kernel.h"

namespace mp::MP_TARGET {

namespace {

MP_DEVICE Im2colCoord im2col_coord(const FilterOrigin &origin, const TapBlock &tap) {
  return {tap.channel, origin.w, origin.h, origin.n, tap.w_offset, tap.h_offset};
}

constexpr uint32_t kBothBlocks = 3;

/// Iterator over the channel blocks of all taps.
class TapIterator {
 public:
  MP_DEVICE TapIterator(const TapBlocks &taps, int32_t index)
      : taps_(taps),
        at_(taps.at(index)),
        tap_(taps.first + at_.row * taps.next_row + at_.column * taps.next) {}

  MP_DEVICE const TapBlock &at() const { return at_; }
  /// Returns the index of the tap in the filter.
  MP_DEVICE int32_t tap() const { return tap_; }

  /// Moves to the next block.  After the last one, at() is invalid and more calls are allowed.
  MP_DEVICE void advance() {
    at_.channel += kTapBlock;
    if (at_.channel < taps_.padded.divisor) return;
    at_.channel = 0;
    tap_ += taps_.next;
    at_.w_offset += taps_.step_w;
    if (++at_.column < taps_.across.divisor) return;
    tap_ += taps_.next_row - at_.column * taps_.next;
    at_.w_offset -= at_.column * taps_.step_w;
    at_.h_offset += taps_.step_h;
    at_.column = 0;
  }

 private:
  const TapBlocks taps_;
  TapBlock at_;
  int32_t tap_;
};

/// Iterator over filter origins with a fixed step.  Steps are additions: in the single thread of a
/// producer, a division takes as long as the products of a stage.
class OriginIterator {
 public:
  MP_DEVICE OriginIterator(const FilterOrigins &origins, int32_t number, int32_t step)
      : origins_(origins), at_(origins.at(number)) {
    const Quotient images = origins.of_image.divide(step);
    const Quotient rows = origins.of_row.divide(images.remainder);
    step_ = {rows.remainder * origins.stride_w, rows.quotient * origins.stride_h, images.quotient};
    row_w_ = origins.of_row.divisor * origins.stride_w;
    image_h_ = origins.of_image.divisor / origins.of_row.divisor * origins.stride_h;
  }

  MP_DEVICE const FilterOrigin &at() const { return at_; }

  MP_DEVICE void advance() {
    at_.w += step_.w;
    at_.h += step_.h;
    at_.n += step_.n;
    if (at_.w - origins_.first_w >= row_w_) at_.w -= row_w_, at_.h += origins_.stride_h;
    if (at_.h - origins_.first_h >= image_h_) at_.h -= image_h_, at_.n++;
  }

 private:
  const FilterOrigins &origins_;
  FilterOrigin at_, step_;
  int32_t row_w_, image_h_;  ///< extents of the grid of origins, in pixels of the image
};

/// Operands of fprop and dgrad, patches and filter: a stage holds 64 channels of one tap for kM
/// filter origins.
template <class Tile, class Args_ = ConvWgmmaArgs>
struct PatchFilterOperands {
  using Args = Args_;
  /// Two for small tiles, because one thread takes longer to issue the loads of a stage than the
  /// products of the stage take; see WgradOperands.
  static constexpr int kProducers = Tile::kM * Tile::kN > 64 * 128 ? 1 : 2;

  template <class F>
  static MP_DEVICE void with_layouts(const Args &args, const F &f) {
    constexpr bool kHasFprop = std::is_same_v<Args, ConvWgmmaArgs>;
    if (kHasFprop && args.problem.op_b == MP_OP_T)
      f(Layouts < kHasFprop ? Major::k : Major::mn > {});
    else
      f(Layouts<Major::mn>{});
  }

  template <class Layouts>
  class Source {
   public:
    MP_DEVICE Source(const Args &args, const WgmmaWorkTile &work)
        : args_(args),
          first_row_(shares_a<Tile>(args) ? cluster_rank() * Tile::kM / 2 : 0),
          origin_(args.origins.at(work.m0 + first_row_)),
          n0_(work.n0),
          taps_(args.taps_of(work.batch_item), work.k0) {}

    MP_DEVICE void load_next(SmemAddress a, SmemAddress b, SmemAddress full) {
      const TapBlock &block = taps_.at();
      const SmemAddress rows = a + static_cast<SmemAddress>(first_row_) * 128;
      if (shares_a<Tile>(args_))
        tma_load_im2col_multicast(rows, args_.a, full, im2col_coord(origin_, block), kBothBlocks);
      else
        tma_load_im2col(rows, args_.a, full, im2col_coord(origin_, block));
      Layouts::B::load(b, args_.b, full, n0_, block.channel, taps_.tap(), shares_b<Tile>(args_));
      MP_UNROLL
      for (int stage = 0; stage < kProducers; stage++) taps_.advance();
    }

   private:
    const Args &args_;
    const int first_row_;  ///< first row of A that this thread block loads
    const FilterOrigin origin_;
    const int n0_;
    TapIterator taps_;
  };

 private:
  template <Major filter>
  using Layouts = WgmmaLayouts<StagedOperand<Major::k, Tile::kM>, StagedOperand<filter, Tile::kN>>;
};

/// Operands of wgrad: a stage holds 64 filter origins; each 64 columns are channels of one tap.
template <class Tile>
struct WgradOperands {
  static_assert(Tile::kN % (2 * kTapBlock) == 0, "two blocks load whole columns of taps");

  using Args = ConvWgmmaArgs;
  /// Two, because one thread takes longer to issue the loads of a stage than the products of the
  /// stage take (Nsight Compute, H200).
  static constexpr int kProducers = 2;

  template <class F>
  static MP_DEVICE void with_layouts(const ConvWgmmaArgs &, const F &f) {
    f(WgmmaLayouts<StagedOperand<Major::mn, Tile::kM>, StagedOperand<Major::mn, Tile::kN>>{});
  }

  template <class Layouts>
  class Source {
   public:
    MP_DEVICE Source(const ConvWgmmaArgs &args, const WgmmaWorkTile &work)
        : args_(args),
          shared_(shares_b<Tile>(args)),
          first_(shared_ ? cluster_rank() * kBlocks / 2 : 0),
          m0_(work.m0),
          k_(work.k0),
          origin_(args.origins, work.k0, kProducers * Tile::kK) {
      MP_UNROLL
      for (int i = 0; i < kBlocks; i++) {
        const TapBlock block = args.taps.at(work.n0 + (first_ + i) * kTapBlock);
        blocks_[i] = {block.channel, block.w_offset, block.h_offset};
      }
    }

    MP_DEVICE void load_next(SmemAddress a, SmemAddress b, SmemAddress full) {
      Layouts::A::load(a, args_.a, full, m0_, k_, 0, shares_a<Tile>(args_));
      MP_UNROLL
      for (int i = 0; i < kBlocks; i++) {
        if (shared_ && i >= kBlocks / 2) break;
        const SmemAddress block = b + static_cast<SmemAddress>(first_ + i) * kTapBlock * 128;
        const Im2colCoord at{blocks_[i].channel, origin_.at().w,      origin_.at().h,
                             origin_.at().n,     blocks_[i].w_offset, blocks_[i].h_offset};
        if (shared_)
          tma_load_im2col_multicast(block, args_.b, full, at, kBothBlocks);
        else
          tma_load_im2col(block, args_.b, full, at);
      }
      k_ += kProducers * Tile::kK;
      origin_.advance();
    }

   private:
    static constexpr int kBlocks = Tile::kN / kTapBlock;
    struct Block {
      int32_t channel, w_offset, h_offset;
    };

    const ConvWgmmaArgs &args_;
    const bool shared_;
    const int first_;  ///< first column block that this thread block loads
    const int m0_;
    int k_;
    OriginIterator origin_;
    Block blocks_[kBlocks];  ///< column blocks from first_ on
  };
};

/// Placement of wgrad: dfilter has the channels of each tap without padding, and the map of the
/// filter.
class TapColumns {
 public:
  static constexpr bool kHasPaddedColumns = true, kHasStridedRows = false;

  MP_DEVICE explicit TapColumns(const ConvWgmmaArgs &args) : taps_(args.taps) {}

  MP_DEVICE ColumnSegment segment(int64_t col, int64_t n) const {
    const Quotient at = taps_.padded.divide(static_cast<int32_t>(col));
    return {int64_t{at.quotient} * taps_.channels + at.remainder,
            col < n ? taps_.channels - at.remainder : 0};
  }
  MP_DEVICE TmaCoord buffer(int col, int) const {
    const Quotient at = taps_.padded.divide(col);
    return {at.remainder, at.quotient};
  }
  MP_DEVICE int64_t row(int, int64_t row) const { return row; }

 private:
  const TapBlocks &taps_;
};

// ---------------------------------------------------------------------------- strided dgrad

// Each stride phase is a dgrad with stride 1 and some of the taps.  All phases read dy through one
// map, at different offsets, and store pixels of dx that are not adjacent.  A phase without taps
// has no k-tiles: its tiles store the epilogue of zeros.

/// Placement of a stride phase, whose rows are pixels of dx.  All phases have the grid of the
/// largest, so some rows of the others are not pixels.
///
/// im2col TMA loads the subtiles of the epilogue source and stores those of dx, whose pixels are a
/// stride apart.
class StridePhasePlacement : public DensePlacement {
 public:
  static constexpr bool kHasStridedRows = true;

  MP_DEVICE explicit StridePhasePlacement(const DgradWgmmaArgs &args)
      : DensePlacement(args), args_(args) {}

  MP_DEVICE int64_t row(int item, int64_t row) const {
    const Pixel at = pixel(row);
    const int32_t h = at.row * args_.h.stride + args_.phase_h(item).residue;
    const int32_t w = at.column * args_.w.stride + args_.phase_w(item).residue;
    if (h >= args_.h.extent || w >= args_.w.extent) return -1;
    return (int64_t{at.image} * args_.h.extent + h) * args_.w.extent + w;
  }

  /// Returns the position of 16 pixels from `row` on in the map of the epilogue source.
  MP_DEVICE Im2colCoord subtile(int item, int64_t row, int channel) const {
    const Pixel at = pixel(row);
    return {channel,  at.column * args_.w.stride,  at.row * args_.h.stride,
            at.image, args_.phase_w(item).residue, args_.phase_h(item).residue};
  }

  /// Returns the map of the item's pixels of dx.
  MP_DEVICE const TensorMap &map_d(int item) const { return args_.d_phases[item]; }

  struct Pixel {
    int32_t image, row, column;  ///< row and column: in the stride phase
  };
  /// Returns the position of `row` in map_d.
  MP_DEVICE Pixel pixel(int64_t row) const {
    const Quotient image = args_.origins.of_image.divide(static_cast<int32_t>(row));
    const Quotient line = args_.origins.of_row.divide(image.remainder);
    return {image.quotient, line.quotient, line.remainder};
  }

 private:
  const DgradWgmmaArgs &args_;
};

// ---------------------------------------------------------------------------- kernels

/// Kernel of fprop and of dgrad without a stride.
template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
conv_wgmma(MP_PARAM(ConvWgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<PatchFilterOperands<Tile>, DensePlacement, Tile>(args);
}

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
dgrad_wgmma(MP_PARAM(DgradWgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<PatchFilterOperands<Tile, DgradWgmmaArgs>, StridePhasePlacement, Tile>(args);
}

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
wgrad_wgmma(MP_PARAM(ConvWgmmaArgs) args) {
  if constexpr (wgmma_supported<Tile::kSmemBytes>())
    wgmma_block<WgradOperands<Tile>, TapColumns, Tile>(args);
}

template <class Tile, class Args>
void launch_tile(void (*kernel)(MP_PARAM(Args)), const ConvPlan &plan, const Device &device,
                 const Args &args, mp_stream_t stream) {
  launch(plan.name, kernel, device,
         wgmma_launch_shape<Tile>(device, args.num_work_tiles, plan.gemm), stream, args);
}

}  // namespace

void launch_conv_wgmma_kernel(const ConvPlan &plan, mp_conv_op_t op, const Device &device,
                              const ConvWgmmaArgs &args, mp_stream_t stream) {
  if (op == MP_CONV_WGRAD)  // low tiles: its rows are the K channels
    with_tile(WgradWgmmaTiles{}, *plan.gemm.kernel, [&]<class Tile>(std::type_identity<Tile>) {
      launch_tile<Tile>(wgrad_wgmma<Tile>, plan, device, args, stream);
    });
  else
    with_tile(FpropDgradWgmmaTiles{}, *plan.gemm.kernel, [&]<class Tile>(std::type_identity<Tile>) {
      launch_tile<Tile>(conv_wgmma<Tile>, plan, device, args, stream);
    });
}

void launch_dgrad_wgmma_kernel(const ConvPlan &plan, const Device &device,
                               const DgradWgmmaArgs &args, mp_stream_t stream) {
  with_tile(StridedDgradWgmmaTiles{}, *plan.gemm.kernel, [&]<class Tile>(std::type_identity<Tile>) {
    launch_tile<Tile>(dgrad_wgmma<Tile>, plan, device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
