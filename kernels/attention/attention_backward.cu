// Backward pass of attention, plain kernels, without communication between blocks:
//
//     attention_dq_plain     a block per tile of queries: D, then dq over ascending tiles of keys
//     attention_dkv_plain    a block per tile of keys: for each panel of columns, dk and dv over
//                            the query heads of its group, ascending, and over tiles of queries,
//                            descending
//     attention_dsink_plain  a block per head
//
// Both passes over tiles recompute the scores, which takes seven products instead of five but needs
// no workspace except D and no order between blocks.
//
// Source: Dao, FlashAttention-2, 2023, section 3.1.2.
#include "kernels/attention/attention_plain.h"

namespace mp::MP_TARGET {

namespace {

// ---------------------------------------------------------------------------- dq

/// A tile of queries of one sequence and head.
template <int kPanels>
class QueryTile {
 public:
  MP_DEVICE QueryTile(const AttentionArgs &args, const AttentionUnit &unit, AttentionSmem &smem)
      : args_(args), unit_(unit), smem_(smem) {
    const int64_t index = unit.sequence.lse_index(args.desc, unit.head);
    clear(sums_);
    store_row_dots(args.row_dots + index);
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      const int64_t x = x0_ + thread_row() + r;
      lse_[r] = x < in_.q.rows ? args.lse[index + x] : 0.0f;
      row_dots_[r] = smem_.of_threads[thread_row() + r];
    }
  }

  MP_DEVICE void add_columns() {
    for (int tile = visible_.tiles.first; tile < visible_.tiles.end; tile++) {
      const int64_t y0 = int64_t{tile} * kTileColumns;
      ThreadTile scores, dp;
      dot_products(scores, in_.q, x0_, in_.k, y0, smem_);
      dot_products(dp, in_.d_o, x0_, in_.v, y0, smem_);
      differentiate(scores, dp, y0);
      store_weights(args_.desc.dtype, scores, smem_);
      add_weighted(sums_, in_.k, y0, smem_);
    }
  }

  MP_DEVICE void finish(AmaxTracker &tracker) {
    store_sums(dq_of<void>(args_, unit_), x0_, sums_, args_.desc.scale, visible_, tracker);
  }

 private:
  /// Computes D = sum of d_o o for each row: four threads per row, whose sums are added in order.
  /// The threads that read D of a row later are in the same warp.
  MP_DEVICE void store_row_dots(float *row_dots) {
    constexpr int kParts = kAttentionThreads / kTileRows;
    const int row = thread_index() / kParts, part = thread_index() % kParts;
    const int64_t x = x0_ + row;
    float sum = 0.0f;
    for (int c = part * kVec; c < in_.o.width && x < in_.o.rows; c += kParts * kVec) {
      float d_o[kVec], o[kVec];
      load_run(d_o, in_.d_o, x, c);
      load_run(o, in_.o, x, c);
      unroll<kVec>([&](int i) { sum = fmaf(d_o[i], o[i], sum); });
    }
    float *const parts = smem_.of_threads + kTileRows;
    parts[thread_index()] = sum;
    warp_sync();
    if (part == 0) {
      for (int i = 1; i < kParts; i++) sum += parts[row * kParts + i];
      smem_.of_threads[row] = sum;
      if (x < in_.o.rows) row_dots[x] = sum;
    }
    warp_sync();
  }

  /// Replaces scores by ds.
  MP_DEVICE void differentiate(ThreadTile &scores, ThreadTile &dp, int64_t y0) const {
    const float to_power = args_.desc.scale * kLog2E, keep = ScoreDropout::keep_factor(args_);
    const int y = static_cast<int>(y0) + thread_column();
    clear_dropped(dp, dropped_scores<false>(dropout_, x0_, y0));
    unroll<kThreadRows, kVec>([&](int r, int c) {
      const float p = probability(scores[r][c], to_power, lse_[r]);
      const float ds = p * (keep * dp[r][c] - row_dots_[r]);
      scores[r][c] = visible_.sees(r, y + c) ? ds : 0.0f;
    });
  }

  const AttentionArgs &args_;
  const AttentionUnit &unit_;
  AttentionSmem &smem_;
  const int64_t x0_ = unit_.x0;
  const HeadInputs<void> in_{args_, unit_.sequence, unit_.head};
  const ThreadBand visible_{Band::of_queries(args_.desc, unit_.sequence), x0_};
  const ScoreDropout dropout_{args_, unit_.sequence.number, unit_.head};
  ThreadTile sums_[kPanels];
  float lse_[kThreadRows], row_dots_[kThreadRows];
};

template <int kPanels>
MP_KERNEL(kAttentionThreads, 2)
attention_dq_plain(MP_PARAM(AttentionArgs) args) {
  MP_SHARED(AttentionSmem, smem, [1]);
  const auto compute = [&](const AttentionUnit &unit, AmaxTracker &tracker) {
    compute_tile<QueryTile<kPanels>>(args, unit, smem[0], tracker);
  };
  compute_gradients<void, true>(args, kTileRows, compute);
}

// ---------------------------------------------------------------------------- dk and dv

/// A panel of dk and dv for a tile of keys of one sequence and head of k and v.  The sums of a
/// panel, the scores and dp fill the registers of a thread, so each panel recomputes the scores.
class KeyTile {
 public:
  MP_DEVICE KeyTile(const AttentionArgs &args, const AttentionUnit &unit, int panel,
                    AttentionSmem &smem)
      : args_(args), unit_(unit), panel_(panel), smem_(smem) {
    clear(dk_);
    clear(dv_);
  }

  /// Adds the gradients of a query head.
  MP_DEVICE void visit_queries(int head) {
    const Sequence &sequence = unit_.sequence;
    const HeadInputs<void> in(args_, sequence, head);
    const ScoreDropout dropout(args_, sequence.number, head);
    const int64_t index = sequence.lse_index(args_.desc, head);
    for (int tile = visible_.tiles.end - 1; tile >= visible_.tiles.first; tile--) {
      const int64_t y0 = int64_t{tile} * kTileColumns;
      ThreadTile p, dp;
      dot_products(p, in.k, x0_, in.q, y0, smem_);
      dot_products(dp, in.v, x0_, in.d_o, y0, smem_);
      const uint32_t dropped = dropped_scores<true>(dropout, x0_, y0);
      clear_dropped(dp, dropped);
      differentiate(p, dp, y0, in.q.rows, index);
      clear_dropped(p, dropped);
      // The products with d_o and q follow each other, because their weights share a buffer.
      store_weights(args_.desc.dtype, p, smem_);
      add_weighted(dv_, in.d_o, y0, smem_, panel_);
      warp_sync();  // the weights have been read
      store_weights(args_.desc.dtype, dp, smem_);
      add_weighted(dk_, in.q, y0, smem_, panel_);
    }
  }

  MP_DEVICE void finish(AmaxTracker &tracker) {
    const float scale = args_.desc.scale, keep = ScoreDropout::keep_factor(args_);
    store_sums(dk_of<void>(args_, unit_), x0_, dk_, scale, visible_, tracker, panel_);
    store_sums(dv_of<void>(args_, unit_), x0_, dv_, keep, visible_, tracker, panel_);
  }

 private:
  /// Replaces scores by p, and dp by ds.
  MP_DEVICE void differentiate(ThreadTile &scores, ThreadTile &dp, int64_t y0, int64_t queries,
                               int64_t index) const {
    const float to_power = args_.desc.scale * kLog2E, keep = ScoreDropout::keep_factor(args_);
    const int y = static_cast<int>(y0) + thread_column();
    const int valid = clamp_to_int(queries - y, kVec);
    float lse[kVec], row_dots[kVec];
    load_vector(lse, args_.lse + index + y, valid);
    load_vector(row_dots, args_.row_dots + index + y, valid);
    unroll<kThreadRows, kVec>([&](int r, int c) {
      const bool is_visible = visible_.sees(r, y + c);
      const float p = probability(scores[r][c], to_power, lse[c]);
      scores[r][c] = is_visible ? p : 0.0f;
      dp[r][c] = is_visible ? p * (keep * dp[r][c] - row_dots[c]) : 0.0f;
    });
  }

  const AttentionArgs &args_;
  const AttentionUnit &unit_;
  const int panel_;
  AttentionSmem &smem_;
  const int64_t x0_ = unit_.x0;
  const ThreadBand visible_{Band::of_keys(args_.desc, unit_.sequence), x0_};
  ThreadTile dk_[1], dv_[1];
};

MP_KERNEL(kAttentionThreads, 2)
attention_dkv_plain(MP_PARAM(AttentionArgs) args) {
  MP_SHARED(AttentionSmem, smem, [1]);
  const mp_attention_desc_t &d = args.desc;
  const int group = d.heads / d.kv_heads;
  const int panels = ceil_div(max_of(d.head_dim, d.head_dim_v), kTileColumns);
  const auto compute = [&](const AttentionUnit &unit, AmaxTracker &tracker) {
    for (int panel = 0; panel < panels; panel++) {
      KeyTile tile(args, unit, panel, smem[0]);
      for (int h = 0; h < group; h++) tile.visit_queries(unit.head * group + h);
      tile.finish(tracker);
    }
  };
  compute_gradients<void, false>(args, kTileRows, compute);
}

// ---------------------------------------------------------------------------- dsinks

constexpr int kSinkThreads = 256;

/// Sums over the rows of lse and D of a head.  Rows outside of sequences have lse = -infinity.
MP_KERNEL(kSinkThreads, 4)
attention_dsink_plain(MP_PARAM(AttentionArgs) args) {
  const mp_attention_desc_t &d = args.desc;
  const int64_t rows = is_packed(d) ? d.q_rows : d.batch * d.q_len;
  for (int64_t head = block_index(); head < d.heads; head += grid_size()) {
    const float sink = args.sinks[head];
    float sum = 0.0f;
    for (int64_t x = thread_index(); x < rows; x += kSinkThreads) {
      const int64_t index =
          is_packed(d) ? head * rows + x : (x / d.q_len * d.heads + head) * d.q_len + x % d.q_len;
      const float lse = args.lse[index];
      // A sequence with an invalid length has no D; its lse is NaN.
      if (lse != kHidden) sum -= lse != lse ? lse : expf(sink - lse) * args.row_dots[index];
    }
    sum = block_reduce<kSinkThreads, Sum>(sum);
    if (thread_index() == 0) args.dsinks[head] = sum;
  }
}

}  // namespace

void attention_backward(const Device &device, const AttentionArgs &args, mp_stream_t stream) {
  const mp_attention_desc_t &d = args.desc;
  if (args.kernel == AttentionKernel::mma) {
    attention_backward_mma(device, args, stream);
  } else {
    const auto dq = d.head_dim <= kTileColumns ? attention_dq_plain<1> : attention_dq_plain<2>;
    launch_units("attention_dq_plain", dq, device, AttentionUnits::of_queries(d, kTileRows), args,
                 stream);
    launch_units("attention_dkv_plain", attention_dkv_plain, device,
                 AttentionUnits::of_keys(d, kTileRows), args, stream);
  }
  if (args.dsinks != nullptr)
    launch("attention_dsink_plain", attention_dsink_plain, device, {int64_t{d.heads}, kSinkThreads},
           stream, args);
}

}  // namespace mp::MP_TARGET
