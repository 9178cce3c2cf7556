// Convolution on the CUDA cores: the loop of simt_loop.h over patches and filters, and the loops of
// tiles with few columns or few rows.
//
// For layers that stay in fp32; it supports all other convolutions too.
#include "kernels/conv/conv_args.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

namespace {

// ---------------------------------------------------------------------------- sources

/// Operand tensor whose type is known at run time.
struct Tensor {
  mp_dtype_t dtype;
  const void *base;

  MP_DEVICE Tensor(const void *tensor, mp_dtype_t type, int64_t first_elem)
      : dtype(type),
        base(static_cast<const char *>(in_gmem(tensor)) + first_elem * dtype_bytes(type)) {}

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const Span8 &span) const {
    const T *const elems = static_cast<const T *>(base);
    if (span.first <= 0) {
      const int valid = max_of(span.end, 0);
      return load_vector(values, elems + (valid > 0 ? span.offset : 0), valid);
    }
    // Row of taps that begins to the left of the image.
    MP_UNROLL
    for (int i = 0; i < kVec; i++)
      values[i] = span.first <= i && i < span.end ? to_float(elems[span.offset + i]) : 0.0f;
  }
};

/// Base of sources whose k is a tap and a channel.
struct AlongTaps {
  const Tensor tensor;
  const TapSegments &segments;

  MP_DEVICE mp_dtype_t dtype() const { return tensor.dtype; }

  using Cursor = TapPosition;
  MP_DEVICE Cursor cursor(int64_t k) const { return {segments, k}; }
  MP_DEVICE void advance(Cursor &at, int count) const { at.advance(segments, count); }
};

/// Base of sources whose k is a pixel.
struct AlongPixels {
  const Tensor tensor;

  MP_DEVICE mp_dtype_t dtype() const { return tensor.dtype; }

  using Cursor = NoCursor;
  MP_DEVICE Cursor cursor(int64_t) const { return {}; }
  MP_DEVICE void advance(Cursor &, int) const {}
};

/// Source of patches; x is a row of the im2col operand.
struct PatchRows : AlongTaps {
  static constexpr bool by_k = true;
  const PatchMap &patches;

  MP_DEVICE int64_t extent() const { return patches.num_rows; }

  using XCoord = PatchOrigin;
  MP_DEVICE XCoord x_coord(int64_t x) const { return patches.origin(x); }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &origin, const Cursor &at, int64_t,
                      int64_t) const {
    tensor.load<T>(values, patches.span(origin, at));
  }
};

/// Source of patches; x is a column of the im2col operand.
struct PatchColumns : AlongPixels {
  static constexpr bool by_k = false;
  const PatchMap &patches;

  MP_DEVICE int64_t extent() const { return patches.segments.extent(); }

  using XCoord = PatchTap;
  MP_DEVICE XCoord x_coord(int64_t x) const { return patches.tap({patches.segments, x}); }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &at, Cursor, int64_t k,
                      int64_t k_end) const {
    const bool inside = k < k_end && at.valid > 0;
    tensor.load<T>(values, inside ? patches.span(patches.origin(k), at) : Span8{0, 0, 0});
  }
};

/// Source of the filter; x is an output channel.
struct FilterRows : AlongTaps {
  static constexpr bool by_k = true;
  const ConvArgs &args;

  MP_DEVICE int64_t extent() const { return args.group_k; }

  using XCoord = int32_t;  ///< x; negative: out of bounds
  MP_DEVICE XCoord x_coord(int64_t x) const { return x < extent() ? static_cast<int32_t>(x) : -1; }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], XCoord row, const Cursor &at, int64_t, int64_t) const {
    const int64_t offset = row * args.filter_elems + args.filter.offset(at) + at.elem;
    tensor.load<T>(values, {offset, 0, row >= 0 ? at.valid(segments) : 0});
  }
};

/// Up to kVec adjacent channels from x on.
struct Channels {
  int64_t first;
  int valid;

  Channels() = default;
  MP_DEVICE Channels(int64_t x, int64_t extent)
      : first(x), valid(static_cast<int>(min_of<int64_t>(extent - x, kVec))) {}
};

/// Source of the filter; x is an input channel.
struct FilterTaps : AlongTaps {
  static constexpr bool by_k = false;
  const ConvProduct<MP_CONV_DGRAD> &product;
  const int64_t filter_elems;

  MP_DEVICE int64_t extent() const { return product.n(); }

  using XCoord = Channels;
  MP_DEVICE XCoord x_coord(int64_t x) const { return {x, extent()}; }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &channels, const Cursor &at, int64_t,
                      int64_t) const {
    const int64_t offset = at.elem * filter_elems + product.filter.offset(at) + channels.first;
    tensor.load<T>(values, {offset, 0, at.valid(segments) > 0 ? channels.valid : 0});
  }
};

/// Source of dy; x is an output channel.
struct OutputGradient : AlongPixels {
  static constexpr bool by_k = false;
  const int64_t ld, channels;

  MP_DEVICE int64_t extent() const { return channels; }

  using XCoord = Channels;
  MP_DEVICE XCoord x_coord(int64_t x) const { return {x, extent()}; }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &at, Cursor, int64_t k,
                      int64_t k_end) const {
    tensor.load<T>(values, {k * ld + at.first, 0, k < k_end ? at.valid : 0});
  }
};

/// Sources of A and B.
template <class A_, class B_>
struct Sources {
  using A = A_;
  using B = B_;
  A a;
  B b;
};

template <mp_conv_op_t op>
using SourcesOf =
    std::conditional_t<op == MP_CONV_FPROP, Sources<PatchRows, FilterRows>,
                       std::conditional_t<op == MP_CONV_DGRAD, Sources<PatchRows, FilterTaps>,
                                          Sources<OutputGradient, PatchColumns>>>;

/// Returns the sources of A and B of a pass.
template <mp_conv_op_t op>
MP_DEVICE SourcesOf<op> sources_of(const ConvArgs &args, const ConvProduct<op> &x) {
  if constexpr (op == MP_CONV_WGRAD) {
    const int64_t ld = x.dy_ld(), channels = x.m();
    return {{{{args.other, args.dtype, x.dy_elem()}}, ld, channels},
            {{{args.image, args.dtype, x.image_elem()}}, x.patches}};
  } else {
    const PatchRows a{{{args.image, args.dtype, x.image_elem()}, x.patches.segments}, x.patches};
    const int64_t elems = args.filter_elems;
    const Tensor filter(args.other, args.dtype, x.filter_elem());
    if constexpr (op == MP_CONV_FPROP)
      return {a, {{filter, args.patches.segments}, args}};
    else
      return {a, {{filter, x.patches.segments}, x, elems}};
  }
}

// ---------------------------------------------------------------------------- skinny tiles

/// Main loop on the CUDA cores for skinny N: each thread computes complete rows of the tile.
///
/// A is not shared between threads, so it bypasses shared memory.  Each vector of A takes part in
/// enough products for the other warps of the SM to hide its latency.  B is small: a stage spans
/// several vectors of A, and all lanes read the same element of it.  The source of A is contiguous
/// along k.
template <class Tile, class SourceA, class SourceB>
class SkinnyNLoop {
  static constexpr int kRows = 4;         ///< rows per thread
  static constexpr int kStageElems = 64;  ///< k per stage
  static constexpr int kVectorsPerRow = Tile::kN / kVec;
  static_assert(SourceA::by_k);

 public:
  static constexpr int kThreads = Tile::kM / kRows;

 private:
  using TileB = OperandTile<SourceB, Tile::kN, kStageElems, kThreads>;

 public:
  static constexpr int kSmemFloats = TileB::kElems;

  /// Computes the sums of the tile at (m0, n0) over [k0, k_end).
  MP_DEVICE void multiply(float *smem, const SourceA &source_a, const SourceB &source_b, int64_t m0,
                          int64_t n0, int64_t k0, int64_t k_end) {
    TileB b(source_b, n0, k0);
    Rows a(source_a, m0, k0);
    const int64_t columns = source_b.extent() - n0;
    for (int64_t k = k0; k < k_end; k += kStageElems) {
      b.fetch(k_end);
      block_sync();  // the previous stage may still be read
      b.put(smem);
      block_sync();
      multiply_stage(a, smem, columns, k, k_end);
    }
  }

  /// See SimtLoop::store_tile.
  template <class Store>
  MP_DEVICE void store_tile(const Store &store) {
    store_rows<kVectors>(acc_, [&](int i, float(&sums)[kVec]) {
      store(row(i / kVectorsPerRow), i % kVectorsPerRow * kVec, sums);
    });
  }

 private:
  static constexpr int kVectors = kRows * kVectorsPerRow;

  /// Returns row i of this thread; adjacent lanes have adjacent rows.
  static MP_DEVICE int row(int i) { return i * kThreads + thread_index(); }

  /// Rows of A of this thread, loaded one vector of k at a time.
  class Rows {
   public:
    MP_DEVICE Rows(const SourceA &source, int64_t m0, int64_t k0)
        : source_(source), cursor_(source.cursor(k0)) {
      MP_UNROLL
      for (int i = 0; i < kRows; i++) x_coords_[i] = source.x_coord(m0 + row(i));
    }

    MP_DEVICE void fetch(float (&values)[kRows][kVec], int64_t k, int64_t k_end) {
      with_type(source_.dtype(), [&]<class T>(std::type_identity<T>) {
        MP_UNROLL
        for (int i = 0; i < kRows; i++)
          source_.template load<T>(values[i], x_coords_[i], cursor_, k, k_end);
      });
      source_.advance(cursor_, kVec);
    }

   private:
    const SourceA &source_;
    typename SourceA::XCoord x_coords_[kRows];
    typename SourceA::Cursor cursor_;
  };

  MP_DEVICE void multiply_stage(Rows &a, const float *b, int64_t columns, int64_t k,
                                int64_t k_end) {
    const int64_t stage_end = min_of(k + kStageElems, k_end);
    MP_NO_UNROLL
    for (; k < stage_end; k += kVec, b += kVec * Tile::kN) {
      float rows[kRows][kVec];
      a.fetch(rows, k, k_end);
      MP_UNROLL
      for (int vector = 0; vector < kVectorsPerRow; vector++)
        if (vector * kVec < columns) multiply_vector(rows, b + vector * kVec, vector);
    }
  }

  /// Multiplies kVec columns from vector * kVec on, of all rows; `b` points to their elements.
  MP_DEVICE void multiply_vector(const float (&rows)[kRows][kVec], const float *b, int vector) {
    MP_UNROLL
    for (int k = 0; k < kVec; k++) {
      float across[kVec];
      MP_UNROLL
      for (int j = 0; j < kVec; j++) across[j] = b[k * Tile::kN + j];
      MP_UNROLL
      for (int i = 0; i < kRows; i++)
        multiply_add8(acc_[i * kVectorsPerRow + vector], rows[i][k], across);
    }
  }

  float acc_[kVectors][kVec] = {};
};

/// Main loop on the CUDA cores for skinny M, few rows and many columns: each thread computes all
/// rows of eight columns.
///
/// B is not shared between threads, so it bypasses shared memory.  The halves of a warp sum over
/// different k of the same columns, because there may be few columns too, and add their sums at the
/// end.  The source of B is not contiguous along k and has no cursor.
template <class Tile, class SourceA, class SourceB>
class SkinnyMLoop {
  static constexpr int kStageElems = 128;  ///< k per stage
  static constexpr int kBatch = 4;         ///< k per batch: vectors of B in flight
  static constexpr int kHalf = 16;         ///< lanes of half a warp
  static constexpr int kStoredRows = Tile::kM / 2;
  static_assert(!SourceB::by_k && Tile::kN == kHalf * kVec && Tile::kM % (2 * kVec) == 0);

 public:
  static constexpr int kThreads = 2 * kHalf;

 private:
  using TileA = OperandTile<SourceA, Tile::kM, kStageElems, kThreads>;

 public:
  static constexpr int kSmemFloats = TileA::kElems;

  /// Computes the sums of the tile at (m0, n0) over [k0, k_end).
  MP_DEVICE void multiply(float *smem, const SourceA &source_a, const SourceB &source_b, int64_t m0,
                          int64_t n0, int64_t k0, int64_t k_end) {
    TileA a(source_a, m0, k0);
    const Columns b{source_b, source_b.x_coord(n0 + col())};
    const int64_t rows = n0 + col() < source_b.extent() ? source_a.extent() - m0 : 0;
    for (int64_t k = k0; k < k_end; k += kStageElems) {
      a.fetch(k_end);
      block_sync();  // the previous stage may still be read
      a.put(smem);
      block_sync();
      if (rows > 0) multiply_stage(smem, b, rows, k, k_end);
    }
    add_halves();
  }

  /// See SimtLoop::store_tile.
  template <class Store>
  MP_DEVICE void store_tile(const Store &store) {
    store_rows<kStoredRows>(
        acc_, [&](int i, float(&sums)[kVec]) { store(half() * kStoredRows + i, col(), sums); });
  }

 private:
  static MP_DEVICE int half() { return thread_index() / kHalf; }
  static MP_DEVICE int col() { return thread_index() % kHalf * kVec; }

  /// Columns of B of this thread.
  struct Columns {
    const SourceB &source;
    const typename SourceB::XCoord x_coord;

    MP_DEVICE void load(float (&vectors)[kBatch][kVec], int64_t k, int64_t k_end) const {
      with_type(source.dtype(), [&]<class T>(std::type_identity<T>) {
        MP_UNROLL
        for (int i = 0; i < kBatch; i++)
          source.template load<T>(vectors[i], x_coord, NoCursor{}, k + i, k_end);
      });
    }
  };

  MP_DEVICE void multiply_stage(const float *a, const Columns &b, int64_t rows, int64_t k,
                                int64_t k_end) {
    constexpr int kElems = kStageElems / 2;
    k += half() * kElems;
    a += half() * kElems * Tile::kM;
    MP_NO_UNROLL
    for (int i = 0; i < kElems && k + i < k_end; i += kBatch, a += kBatch * Tile::kM) {
      float vectors[kBatch][kVec];
      b.load(vectors, k + i, k_end);
      MP_UNROLL
      for (int row = 0; row < Tile::kM; row += kVec)
        if (row < rows) multiply_rows(a + row, vectors, row);
    }
  }

  /// Multiplies kVec rows from `row` on; `a` points to their elements.
  MP_DEVICE void multiply_rows(const float *a, const float (&vectors)[kBatch][kVec], int row) {
    MP_UNROLL
    for (int k = 0; k < kBatch; k++) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) multiply_add8(acc_[row + i], a[k * Tile::kM + i], vectors[k]);
    }
  }

  /// Adds the sums of the two halves of the warp; each half keeps half of the rows.
  MP_DEVICE void add_halves() {
    MP_UNROLL
    for (int i = 0; i < kStoredRows; i++) {
      MP_UNROLL
      for (int j = 0; j < kVec; j++) {
        const float low = acc_[i][j], high = acc_[kStoredRows + i][j];
        const float kept = half() == 0 ? low : high, given = half() == 0 ? high : low;
        acc_[i][j] = kept + shuffle_xor(given, kHalf);
      }
    }
  }

  float acc_[Tile::kM][kVec] = {};
};

// ---------------------------------------------------------------------------- kernel

template <class Tile, class A, class B>
struct LoopOf : std::type_identity<SimtLoop<Tile, A, B>> {};
using ColumnTile = TileShape<GemmTile::simt_128x16x16>;
template <class A, class B>
struct LoopOf<ColumnTile, A, B> : std::type_identity<SkinnyNLoop<ColumnTile, A, B>> {};
using RowTile = TileShape<GemmTile::simt_16x128x16>;
template <class A, class B>
struct LoopOf<RowTile, A, B> : std::type_identity<SkinnyMLoop<RowTile, A, B>> {};

template <mp_conv_op_t op, class Tile>
using Loop = typename LoopOf<Tile, typename SourcesOf<op>::A, typename SourcesOf<op>::B>::type;

template <mp_conv_op_t op, class Tile>
MP_DEVICE void convolve_tile(const ConvArgs &args, const WorkTile &work, float *smem) {
  const ConvProduct<op> product(args, work.batch_item);
  const SourcesOf<op> sources = sources_of(args, product);
  const int64_t m0 = work.tile_m * Tile::kM, n0 = work.tile_n * Tile::kN;
  const int64_t k0 = min_of(work.slice * args.slice_k, product.k());
  const int64_t k_end = min_of(k0 + args.slice_k, product.k());
  Loop<op, Tile> loop;
  loop.multiply(smem, sources.a, sources.b, m0, n0, k0, k_end);
  EpilogueWriter writer(args.out, 0);
  loop.store_tile([&]<int kRun>(int row, int col, float(&x)[kRun]) {
    const OutputCoord to = product.template output_coord<kRun>(m0 + row, n0 + col);
    if (to.valid <= 0) return;
    if (args.partial_sums != nullptr)
      store_vector(partial_sum(args.partial_sums, args.out, work.slice, 0, to.row, to.col), x,
                   to.valid);
    else
      writer.write(to.row, to.col, x, to.valid);
  });
  writer.finish();
}

/// Minimum number of blocks per SM.  fprop has cursors along the taps for both operands, for which
/// two blocks of 128 x 128 leave too few registers.  Six blocks of 64 x 64 have enough.
template <mp_conv_op_t op, class Tile>
[[maybe_unused]] constexpr int kMinBlocks =
    op == MP_CONV_FPROP                                        ? 1
    : std::is_same_v<Tile, TileShape<GemmTile::simt_64x64x16>> ? 6
                                                               : Tile::kMinBlocks;

template <mp_conv_op_t op, class Tile>
MP_KERNEL((Loop<op, Tile>::kThreads), (kMinBlocks<op, Tile>))
conv_simt(MP_PARAM(ConvArgs) args) {
  constexpr int kSmemQuads = Loop<op, Tile>::kSmemFloats / kQuad;
  MP_SHARED(Quad, smem, [kSmemQuads]);
  const int64_t num_work_tiles = args.scheduler.num_work_tiles();
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size())
    convolve_tile<op, Tile>(args, args.scheduler(number), smem[0].x);
}

template <mp_conv_op_t op>
using SimtTilesOf = std::conditional_t<op == MP_CONV_WGRAD, WgradSimtTiles, FpropDgradSimtTiles>;

}  // namespace

void launch_conv_simt(const ConvPlan &plan, mp_conv_op_t op, const Device &device,
                      const ConvArgs &args, mp_stream_t stream) {
  with_conv_op(op, [&]<mp_conv_op_t kOp>(Value<kOp>) {
    with_tile(SimtTilesOf<kOp>{}, *plan.gemm.kernel, [&]<class Tile>(std::type_identity<Tile>) {
      launch(plan.name, conv_simt<kOp, Tile>, device,
             {min_of(args.scheduler.num_work_tiles(), kMaxBlocks), Loop<kOp, Tile>::kThreads},
             stream, args);
    });
  });
}

}  // namespace mp::MP_TARGET
