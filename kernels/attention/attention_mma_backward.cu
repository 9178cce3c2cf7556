// Backward pass of attention on tensor cores, sm_75 and newer, without communication between
// blocks, as in the plain kernels:
//
//     attention_dq_mma   a block per tile of queries: D, then dq over ascending tiles of keys
//     attention_dkv_mma  a block per tile of keys: dk and dv over the query heads of its group,
//                        ascending, and over tiles of queries, descending
//
// Both visit tiles of columns in the same way.  The copies of the next tile overlap with the
// arithmetic of this one if shared memory has room for two:
//
//     scores      s and dp from rows and columns in shared memory
//     gradients   p and ds, in registers
//     sums        dq += ds k, or dv += p d_o and dk += ds q, with queries and keys exchanged
//
// Source: Dao, FlashAttention-2, 2023, section 3.1.2.
#include "kernels/attention/attention_mma.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kBackwardColumns = MmaInstance{64, false}.backward().columns;
constexpr int kBackwardColumnTiles = kBackwardColumns / mma::kColumns;

template <class T_, int kDim_, bool kIsSmall>
struct MmaBackwardShape {
  using T = T_;
  static constexpr int kDim = kDim_;
  static constexpr MmaInstance kInstance{kDim, kIsSmall};
  static constexpr int kRows = kInstance.backward().rows;
  static constexpr int kRowTiles = kRows / kMmaRows<1>;
  static constexpr int kStages = kInstance.backward_stages();

  using Tile = MmaTile<T, kDim>;
  using Scores = MmaSums<kRowTiles, kBackwardColumnTiles>;
  using Sums = MmaSums<kRowTiles, kDim / mma::kColumns>;

  /// The two tensors of the rows, and those of the columns.
  struct Smem {
    alignas(16) T rows[2][kRows * kDim];
    T columns[kStages][2][kBackwardColumns * kDim];
  };
};

/// Calls compute(stage) for each step, after its tile of columns has been copied.  steps >= 1.
/// @param start_copy  (stage); called for each step in order
template <int kStages, class StartCopy, class Compute>
MP_DEVICE void visit_columns(int64_t steps, const StartCopy &start_copy, const Compute &compute) {
  constexpr int kAhead = kStages - 1;  // copies in flight during a step
  start_copy(0);
  copy_async_commit();
  int stage = 0;
  MP_NO_UNROLL
  for (int64_t step = 0; step < steps; step++) {
    const int other = kStages == 1 ? 0 : 1 - stage;
    if (kAhead == 1) {
      if (step + 1 < steps) start_copy(other);
      copy_async_commit();
    }
    copy_async_wait<kAhead>();
    block_sync();  // the columns are visible to all threads
    compute(stage);
    block_sync();  // all threads have used the columns
    if (kAhead == 0) {
      if (step + 1 < steps) start_copy(other);
      copy_async_commit();
    }
    stage = other;
  }
}

// ---------------------------------------------------------------------------- dq

/// A tile of queries of one sequence and head.
template <class Shape>
class MmaQueryTile {
  using T = typename Shape::T;
  static constexpr int kRowTiles = Shape::kRowTiles, kLaneRows = 2 * kRowTiles;

 public:
  MP_DEVICE MmaQueryTile(const AttentionArgs &args, const AttentionUnit &unit,
                         typename Shape::Smem &smem)
      : args_(args), unit_(unit), smem_(smem) {
    const int64_t index = unit.sequence.lse_index(args.desc, unit.head);
    MP_UNROLL
    for (int r = 0; r < kLaneRows; r++) {
      const int x = unit.x0 + lane_row<kRowTiles>(r);
      row_dots_[r] = row_dot(x);
      lse_[r] = x < in_.q.rows ? args.lse[index + x] : 0.0f;
      if (mma::fragment_column() == 0 && x < in_.q.rows) args.row_dots[index + x] = row_dots_[r];
    }
    clear(sums_);
  }

  MP_DEVICE void add_columns() {
    const TileRange tiles = band_.tiles(unit_.x0, Shape::kRows, kBackwardColumns);
    if (tiles.is_empty()) return;
    q_.template copy_rows<Shape::kRows>(in_.q, unit_.x0);
    d_o_.template copy_rows<Shape::kRows>(in_.d_o, unit_.x0);
    int y_copied = tiles.first * kBackwardColumns, y0 = y_copied;
    visit_columns<Shape::kStages>(
        tiles.end - tiles.first,
        [&](int stage) {
          k(stage).template copy_rows<kBackwardColumns>(in_.k, y_copied);
          v(stage).template copy_rows<kBackwardColumns>(in_.v, y_copied);
          y_copied += kBackwardColumns;
        },
        [&](int stage) {
          visit_tile(k(stage), v(stage), y0);
          y0 += kBackwardColumns;
        });
  }

  MP_DEVICE void finish(AmaxTracker &tracker) {
    store_sums<kRowTiles>(dq_of<T>(args_, unit_), unit_.x0, sums_, args_.desc.scale, band_, tracker,
                          q_);
  }

 private:
  MP_DEVICE typename Shape::Tile k(int stage) const { return {smem_.columns[stage][0]}; }
  MP_DEVICE typename Shape::Tile v(int stage) const { return {smem_.columns[stage][1]}; }

  /// Returns D = sum of d_o o of a row: the four lanes of the row have every fourth unit.
  MP_DEVICE float row_dot(int x) const {
    float sum = 0.0f;
    if (x < in_.o.rows) {
      for (int c = lane_index() % 4 * kVec; c < in_.o.width; c += 4 * kVec) {
        Packed<T> d_o, o;
        d_o.load(in_.d_o.row(x) + c);
        o.load(in_.o.row(x) + c);
        unroll<kVec>([&](int i) { sum = fmaf(d_o[i], o[i], sum); });
      }
    }
    return reduce_row(sum, Sum{});
  }

  MP_DEVICE void visit_tile(const typename Shape::Tile &k, const typename Shape::Tile &v, int y0) {
    typename Shape::Scores scores, dp;
    dot_products(scores, q_, k, args_.desc.head_dim);
    dot_products(dp, d_o_, v, args_.desc.head_dim_v);
    const float to_power = args_.desc.scale * kLog2E, keep = ScoreDropout::keep_factor(args_);
    for_each_score<kRowTiles, kBackwardColumnTiles, false>(
        dropout_, unit_.x0, y0, [&](int i, int j, int e, bool is_dropped) {
          const int r = 2 * i + e / 2;
          const float p = probability(scores[i][j][e], to_power, lse_[r]);
          const float of_v = is_dropped ? 0.0f : keep * dp[i][j][e];
          scores[i][j][e] = p * (of_v - row_dots_[r]);  // ds
        });
    if (!band_.is_full(unit_.x0, Shape::kRows, y0, kBackwardColumns))
      hide(scores, band_, unit_.x0, y0, 0.0f);
    add_weighted(sums_, scores, k, args_.desc.head_dim);
  }

  const AttentionArgs &args_;
  const AttentionUnit &unit_;
  typename Shape::Smem &smem_;
  const typename Shape::Tile q_{smem_.rows[0]}, d_o_{smem_.rows[1]};
  const HeadInputs<T> in_{args_, unit_.sequence, unit_.head};
  const Band band_ = Band::of_queries(args_.desc, unit_.sequence);
  const ScoreDropout dropout_{args_, unit_.sequence.number, unit_.head};
  typename Shape::Sums sums_;
  float lse_[kLaneRows], row_dots_[kLaneRows];
};

template <class T, int kDim, bool kIsSmall>
MP_KERNEL(kAttentionThreads, 2)
attention_dq_mma(MP_PARAM(AttentionArgs) args) {
  using Shape = MmaBackwardShape<T, kDim, kIsSmall>;
  using Smem = typename Shape::Smem;
  if constexpr (is_mma_supported<T, Smem>()) {
    MP_DYN_SHARED(Smem, smem);
    const auto compute = [&](const AttentionUnit &unit, AmaxTracker &tracker) {
      compute_tile<MmaQueryTile<Shape>>(args, unit, *smem, tracker);
    };
    compute_gradients<T, true>(args, Shape::kRows, compute);
  }
}

// ---------------------------------------------------------------------------- dk and dv

/// Gradients that a walk over the queries computes.
enum class KeyGradients { both, dk, dv };

/// A tile of keys of one sequence and head of k and v.
template <class Shape, KeyGradients kWhich>
class MmaKeyTile {
  using T = typename Shape::T;
  using Scores = typename Shape::Scores;
  static constexpr int kRowTiles = Shape::kRowTiles;
  static constexpr bool kHasDk = kWhich != KeyGradients::dv, kHasDv = kWhich != KeyGradients::dk;

 public:
  MP_DEVICE MmaKeyTile(const AttentionArgs &args, const AttentionUnit &unit,
                       typename Shape::Smem &smem)
      : args_(args), unit_(unit), smem_(smem) {
    if constexpr (kHasDk) clear(dk_);
    if constexpr (kHasDv) clear(dv_);
  }

  /// Adds the gradients of all query heads of the group.
  MP_DEVICE void add_columns() {
    const TileRange tiles = band_.tiles(unit_.x0, Shape::kRows, kBackwardColumns);
    if (tiles.is_empty()) return;
    const int heads = args_.desc.heads / args_.desc.kv_heads, first_head = unit_.head * heads;
    const HeadInputs<T> of_keys(args_, unit_.sequence, first_head);
    k_.template copy_rows<Shape::kRows>(of_keys.k, unit_.x0);
    if constexpr (kHasDk) v_.template copy_rows<Shape::kRows>(of_keys.v, unit_.x0);
    Place copied{first_head, tiles.end - 1}, place = copied;
    visit_columns<Shape::kStages>(
        int64_t{heads} * (tiles.end - tiles.first),
        [&](int stage) {
          const HeadInputs<T> in(args_, unit_.sequence, copied.head);
          const int y0 = copied.tile * kBackwardColumns;
          q(stage).template copy_rows<kBackwardColumns>(in.q, y0);
          d_o(stage).template copy_rows<kBackwardColumns>(in.d_o, y0);
          copied.advance(tiles);
        },
        [&](int stage) {
          visit_tile(q(stage), d_o(stage), place);
          place.advance(tiles);
        });
  }

  MP_DEVICE void finish(AmaxTracker &tracker) {
    const float scale = args_.desc.scale, keep = ScoreDropout::keep_factor(args_);
    if constexpr (kHasDk)
      store_sums<kRowTiles>(dk_of<T>(args_, unit_), unit_.x0, dk_, scale, band_, tracker, k_);
    if constexpr (kHasDv)
      store_sums<kRowTiles>(dv_of<T>(args_, unit_), unit_.x0, dv_, keep, band_, tracker, v_);
  }

 private:
  /// Query head and tile of queries of a step.
  struct Place {
    int head, tile;

    MP_DEVICE void advance(const TileRange &tiles) {
      if (--tile >= tiles.first) return;
      tile = tiles.end - 1;
      head++;
    }
  };

  MP_DEVICE typename Shape::Tile q(int stage) const { return {smem_.columns[stage][0]}; }
  MP_DEVICE typename Shape::Tile d_o(int stage) const { return {smem_.columns[stage][1]}; }

  MP_DEVICE void visit_tile(const typename Shape::Tile &q, const typename Shape::Tile &d_o,
                            const Place &place) {
    const int y0 = place.tile * kBackwardColumns;
    const int64_t index = unit_.sequence.lse_index(args_.desc, place.head);
    float lse[2 * kBackwardColumnTiles], row_dots[2 * kBackwardColumnTiles];
    load_columns(lse, args_.lse + index, y0);
    Scores p, dp;
    dot_products(p, k_, q, args_.desc.head_dim);
    if constexpr (kHasDk) {
      load_columns(row_dots, args_.row_dots + index, y0);
      dot_products(dp, v_, d_o, args_.desc.head_dim_v);
    }
    const ScoreDropout dropout(args_, unit_.sequence.number, place.head);
    const float to_power = args_.desc.scale * kLog2E, keep = ScoreDropout::keep_factor(args_);
    for_each_score<kRowTiles, kBackwardColumnTiles, true>(
        dropout, unit_.x0, y0, [&](int i, int j, int e, bool is_dropped) {
          const int c = 2 * j + e % 2;
          const float weight = probability(p[i][j][e], to_power, lse[c]);
          if constexpr (kHasDk) {
            const float of_v = is_dropped ? 0.0f : keep * dp[i][j][e];
            dp[i][j][e] = weight * (of_v - row_dots[c]);  // ds
          }
          p[i][j][e] = is_dropped ? 0.0f : weight;
        });
    if (!band_.is_full(unit_.x0, Shape::kRows, y0, kBackwardColumns)) {
      if constexpr (kHasDk) hide(dp, band_, unit_.x0, y0, 0.0f);
      if constexpr (kHasDv) hide(p, band_, unit_.x0, y0, 0.0f);
    }
    if constexpr (kHasDv) add_weighted(dv_, p, d_o, args_.desc.head_dim_v);
    if constexpr (kHasDk) add_weighted(dk_, dp, q, args_.desc.head_dim);
  }

  /// Loads values of the queries whose scores this lane has.
  MP_DEVICE void load_columns(float (&values)[2 * kBackwardColumnTiles], const float *from,
                              int y0) const {
    MP_UNROLL
    for (int c = 0; c < 2 * kBackwardColumnTiles; c++) {
      const int y = y0 + c / 2 * mma::kColumns + mma::fragment_column() + c % 2;
      values[c] = y < band_.columns ? from[y] : 0.0f;
    }
  }

  const AttentionArgs &args_;
  const AttentionUnit &unit_;
  typename Shape::Smem &smem_;
  const typename Shape::Tile k_{smem_.rows[0]}, v_{smem_.rows[1]};
  const Band band_ = Band::of_keys(args_.desc, unit_.sequence);
  typename Shape::Sums dk_, dv_;
};

template <class T, int kDim, bool kIsSmall>
MP_KERNEL(kAttentionThreads, 2)
attention_dkv_mma(MP_PARAM(AttentionArgs) args) {
  using Shape = MmaBackwardShape<T, kDim, kIsSmall>;
  using Smem = typename Shape::Smem;
  if constexpr (is_mma_supported<T, Smem>()) {
    MP_DYN_SHARED(Smem, smem);
    const auto compute = [&](const AttentionUnit &unit, AmaxTracker &tracker) {
      const auto walk = [&]<KeyGradients kWhich>() {
        compute_tile<MmaKeyTile<Shape, kWhich>>(args, unit, *smem, tracker);
      };
      if constexpr (kDim == 256) {  // the sums of one gradient fill the registers
        walk.template operator()<KeyGradients::dv>();
        block_sync();  // all threads have stored dv
        walk.template operator()<KeyGradients::dk>();
      } else {
        walk.template operator()<KeyGradients::both>();
      }
    };
    compute_gradients<T, false>(args, Shape::kRows, compute);
  }
}

}  // namespace

void attention_backward_mma(const Device &device, const AttentionArgs &args, mp_stream_t stream) {
  const mp_attention_desc_t &d = args.desc;
  with_mma_instance(d, device, [&]<class T, int kDim, bool kIsSmall>() {
    using Shape = MmaBackwardShape<T, kDim, kIsSmall>;
    constexpr size_t kSmemBytes = sizeof(typename Shape::Smem);
    static_assert(kSmemBytes == Shape::kInstance.backward().smem_bytes);
    launch_units("attention_dq_mma", attention_dq_mma<T, kDim, kIsSmall>, device,
                 AttentionUnits::of_queries(d, Shape::kRows), args, stream, kSmemBytes);
    launch_units("attention_dkv_mma", attention_dkv_mma<T, kDim, kIsSmall>, device,
                 AttentionUnits::of_keys(d, Shape::kRows), args, stream, kSmemBytes);
  });
}

}  // namespace mp::MP_TARGET
