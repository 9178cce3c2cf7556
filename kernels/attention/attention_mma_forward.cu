// Forward pass of attention on tensor cores, sm_75 and newer: a block per tile of queries, with an
// online softmax as in the plain kernel.
//
// A block visits the tiles of keys from the last to the first.  The copies of the next k and of v
// overlap with the arithmetic, with one buffer for each:
//
//     scores      s = q k^T                               v is copied
//     softmax     new maximum, exponentials, row sums     the next k is copied
//     sums        o = o exp(old - new maximum) + p v
//
// Source: Dao, FlashAttention-2, 2023, section 3.1.1 and 3.3 (partition among warps).
#include "kernels/attention/attention_mma.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kKeys = MmaInstance{64, false}.forward().columns;

template <class T, int kDim, int kRowTiles>
struct MmaForwardSmem {
  alignas(16) T q[kMmaRows<kRowTiles> * kDim];
  T k[kKeys * kDim], v[kKeys * kDim];
};

template <class T, int kDim, int kRowTiles>
class MmaForwardTile {
  using Smem = MmaForwardSmem<T, kDim, kRowTiles>;
  static constexpr int kColumnTiles = kKeys / mma::kColumns, kLaneRows = 2 * kRowTiles;
  using Scores = MmaSums<kRowTiles, kColumnTiles>;

 public:
  MP_DEVICE MmaForwardTile(const AttentionArgs &args, const AttentionUnit &unit, Smem &smem)
      : args_(args), unit_(unit), q_{smem.q}, k_{smem.k}, v_{smem.v} {
    clear(sums_);
    unroll<kLaneRows>([&](int r) { largest_[r] = kHidden; });
  }

  MP_DEVICE void add_columns() {
    const TileRange tiles = band_.tiles(unit_.x0, kMmaRows<kRowTiles>, kKeys);
    if (tiles.is_empty()) return;
    q_.template copy_rows<kMmaRows<kRowTiles>>(in_.q, unit_.x0);
    start_copy(k_, in_.k, tiles.end - 1);
    MP_NO_UNROLL
    for (int tile = tiles.end - 1; tile >= tiles.first; tile--) {
      const int y0 = tile * kKeys;
      copy_async_wait<0>();
      block_sync();  // k is visible to all threads, and all have used the previous v
      start_copy(v_, in_.v, tile);
      Scores scores;
      dot_products(scores, q_, k_, args_.desc.head_dim);
      copy_async_wait<0>();
      block_sync();  // v is visible to all threads, and all have used k
      if (tile > tiles.first) start_copy(k_, in_.k, tile - 1);
      if (!band_.is_full(unit_.x0, kMmaRows<kRowTiles>, y0, kKeys))
        hide(scores, band_, unit_.x0, y0, kHidden);
      exponentiate(scores);
      drop(scores, y0);
      add_weighted(sums_, scores, v_, args_.desc.head_dim_v);
    }
  }

  MP_DEVICE void finish(AmaxTracker &untracked) {
    const HeadRows<T> out = o_of<T>(args_, unit_);
    float *const lse = lse_of(args_, unit_);
    const float sink = sink_of(args_, unit_);
    MP_UNROLL
    for (int r = 0; r < kLaneRows; r++) {
      const SoftmaxRow row(largest_[r] * args_.desc.scale, reduce_row(total_[r], Sum{}), sink,
                           ScoreDropout::keep_factor(args_));
      multiply_sums(r, row.factor);
      const int x = unit_.x0 + lane_row<kRowTiles>(r);
      if (lse != nullptr && mma::fragment_column() == 0 && x < out.rows)
        lse[x] = band_.is_empty(x) ? kHidden : row.lse;
    }
    store_sums<kRowTiles>(out, unit_.x0, sums_, 1.0f, band_, untracked, q_);
  }

 private:
  static MP_DEVICE void start_copy(const MmaTile<T, kDim> &to, const HeadRows<const T> &from,
                                   int tile) {
    to.template copy_rows<kKeys>(from, tile * kKeys);
    copy_async_commit();
  }

  /// Replaces scores by exp(scale (score - largest)), and rescales the sums if `largest` grows.
  MP_DEVICE void exponentiate(Scores &scores) {
    const float to_power = args_.desc.scale * kLog2E;
    MP_UNROLL
    for (int r = 0; r < kLaneRows; r++) {
      const int i = r / 2, e = r % 2 * 2;
      float largest = largest_[r];
      MP_UNROLL
      for (int j = 0; j < kColumnTiles; j++)
        largest = max_number(max_number(largest, scores[i][j][e]), scores[i][j][e + 1]);
      largest = reduce_row(largest, [](float a, float b) { return max_number(a, b); });
      const bool grows = largest_[r] != largest;
      const float factor = grows ? fast_exp2((largest_[r] - largest) * to_power) : 1.0f;
      largest_[r] = largest;
      // Makes the exponentials 0, not NaN, while all scores are hidden.
      const float shift = largest == kHidden ? 0.0f : largest * to_power;
      total_[r] *= factor;
      unroll<kColumnTiles, 2>([&](int j, int c) {
        scores[i][j][e + c] = fast_exp2(fmaf(scores[i][j][e + c], to_power, -shift));
        total_[r] += scores[i][j][e + c];
      });
      multiply_sums(r, factor);
    }
  }

  MP_DEVICE void multiply_sums(int r, float factor) {
    unroll<kDim / mma::kColumns, 2>(
        [&](int u, int c) { sums_[r / 2][u][r % 2 * 2 + c] *= factor; });
  }

  MP_DEVICE void drop(Scores &scores, int y0) const {
    if (!dropout_.is_enabled()) return;
    for_each_score<kRowTiles, kColumnTiles, false>(dropout_, unit_.x0, y0,
                                                   [&](int i, int j, int e, bool is_dropped) {
                                                     if (is_dropped) scores[i][j][e] = 0.0f;
                                                   });
  }

  const AttentionArgs &args_;
  const AttentionUnit &unit_;
  const MmaTile<T, kDim> q_, k_, v_;
  const HeadInputs<T> in_{args_, unit_.sequence, unit_.head};
  const Band band_ = Band::of_queries(args_.desc, unit_.sequence);
  const ScoreDropout dropout_{args_, unit_.sequence.number, unit_.head};
  MmaSums<kRowTiles, kDim / mma::kColumns> sums_;
  float largest_[kLaneRows];     ///< visible score so far, not scaled
  float total_[kLaneRows] = {};  ///< exponentials of the columns of this lane
};

template <int kDim, bool kIsSmall>
constexpr int kForwardRowTiles = MmaInstance{kDim, kIsSmall}.forward().rows / kMmaRows<1>;

template <class T, int kDim, bool kIsSmall>
MP_KERNEL(kAttentionThreads, 2)
attention_forward_mma(MP_PARAM(AttentionArgs) args) {
  constexpr int kRowTiles = kForwardRowTiles<kDim, kIsSmall>;
  using Smem = MmaForwardSmem<T, kDim, kRowTiles>;
  if constexpr (is_mma_supported<T, Smem>()) {
    MP_DYN_SHARED(Smem, smem);
    compute_outputs<T, MmaForwardTile<T, kDim, kRowTiles>>(args, kMmaRows<kRowTiles>, *smem);
  }
}

}  // namespace

void attention_forward_mma(const Device &device, const AttentionArgs &args, mp_stream_t stream) {
  with_mma_instance(args.desc, device, [&]<class T, int kDim, bool kIsSmall>() {
    constexpr int kRowTiles = kForwardRowTiles<kDim, kIsSmall>;
    using Smem = MmaForwardSmem<T, kDim, kRowTiles>;
    static_assert(sizeof(Smem) == MmaInstance{kDim, kIsSmall}.forward().smem_bytes);
    launch_units("attention_forward_mma", attention_forward_mma<T, kDim, kIsSmall>, device,
                 AttentionUnits::of_queries(args.desc, kMmaRows<kRowTiles>), args, stream,
                 sizeof(Smem));
  });
}

}  // namespace mp::MP_TARGET
