// Forward pass of attention, plain kernel: a block per tile of queries, with an online softmax.
//
// A block visits the tiles of keys from the last to the first.  A new maximum rescales the sums of
// the earlier tiles, so scores are never stored.  Each thread sums the exponentials of its own
// columns; the sums of the threads of a row are added at the end, in a fixed order.
//
// Source: Dao, FlashAttention-2, 2023, section 3.1.1; Milakov & Gimelshein, Online normalizer
// calculation for softmax, 2018.
#include "kernels/attention/attention_plain.h"

namespace mp::MP_TARGET {

namespace {

/// A tile of queries of one sequence and head.
template <int kPanels>
class ForwardTile {
 public:
  MP_DEVICE ForwardTile(const AttentionArgs &args, const AttentionUnit &unit, AttentionSmem &smem)
      : args_(args), unit_(unit), smem_(smem) {
    clear(sums_);
    unroll<kThreadRows>([&](int r) { largest_[r] = kHidden; });
  }

  MP_DEVICE void add_columns() {
    for (int tile = visible_.tiles.end - 1; tile >= visible_.tiles.first; tile--) {
      const int64_t y0 = int64_t{tile} * kTileColumns;
      ThreadTile scores;
      dot_products(scores, in_.q, x0_, in_.k, y0, smem_);
      hide(scores, y0);
      exponentiate(scores);
      clear_dropped(scores, dropped_scores<false>(dropout_, x0_, y0));
      store_weights(args_.desc.dtype, scores, smem_);
      add_weighted(sums_, in_.v, y0, smem_);
    }
  }

  MP_DEVICE void finish(AmaxTracker &untracked) {
    const HeadRows<void> out = o_of<void>(args_, unit_);
    float *const lse = lse_of(args_, unit_);
    const float sink = sink_of(args_, unit_);
    reduce_rows(total_, Sum{});
    const float keep = ScoreDropout::keep_factor(args_);
    float factors[kThreadRows];
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      const SoftmaxRow row(largest_[r] * args_.desc.scale, total_[r], sink, keep);
      factors[r] = row.factor;
      const int64_t x = x0_ + thread_row() + r;
      if (lse == nullptr || thread_column() != 0 || x >= out.rows) continue;
      lse[x] = visible_.is_empty(r) ? kHidden : row.lse;
    }
    multiply_sums(factors);
    store_sums(out, x0_, sums_, 1.0f, visible_, untracked);
  }

 private:
  MP_DEVICE void hide(ThreadTile &scores, int64_t y0) const {
    const int y = static_cast<int>(y0) + thread_column();
    unroll<kThreadRows, kVec>(
        [&](int r, int c) { scores[r][c] = visible_.sees(r, y + c) ? scores[r][c] : kHidden; });
  }

  /// Replaces the value of each thread by the reduction over its row, in a fixed order.  Between
  /// two calls, the block passes a barrier of a product or of AttentionUnits::visit.
  template <class Reduce>
  MP_DEVICE void reduce_rows(float (&values)[kThreadRows], Reduce reduce) {
    const int part = thread_index() % kThreadsPerRow;
    unroll<kThreadRows>(
        [&](int r) { smem_.of_threads[(thread_row() + r) * kPartPitch + part] = values[r]; });
    warp_sync();
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      const float *const parts = smem_.of_threads + (thread_row() + r) * kPartPitch;
      values[r] = parts[0];
      for (int i = 1; i < kThreadsPerRow; i++) values[r] = reduce(values[r], parts[i]);
    }
  }

  /// Replaces scores by exp(scale (score - largest)), and rescales the sums if `largest` grows.
  MP_DEVICE void exponentiate(ThreadTile &scores) {
    const float to_power = args_.desc.scale * kLog2E;
    float largest[kThreadRows];
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      largest[r] = largest_[r];
      unroll<kVec>([&](int c) { largest[r] = max_number(largest[r], scores[r][c]); });
    }
    reduce_rows(largest, [](float a, float b) { return max_number(a, b); });
    float factors[kThreadRows];
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      const bool grows = largest_[r] != largest[r];
      factors[r] = grows ? fast_exp2((largest_[r] - largest[r]) * to_power) : 1.0f;
      largest_[r] = largest[r];
      // Makes the exponentials 0, not NaN, while all scores are hidden.
      const float shift = largest[r] == kHidden ? 0.0f : largest[r] * to_power;
      total_[r] *= factors[r];
      unroll<kVec>([&](int c) {
        scores[r][c] = fast_exp2(fmaf(scores[r][c], to_power, -shift));
        total_[r] += scores[r][c];
      });
    }
    multiply_sums(factors);
  }

  MP_DEVICE void multiply_sums(const float (&factors)[kThreadRows]) {
    unroll<kPanels, kThreadRows, kVec>(
        [&](int panel, int r, int c) { sums_[panel][r][c] *= factors[r]; });
  }

  const AttentionArgs &args_;
  const AttentionUnit &unit_;
  AttentionSmem &smem_;
  const int64_t x0_ = unit_.x0;
  const HeadInputs<void> in_{args_, unit_.sequence, unit_.head};
  const ThreadBand visible_{Band::of_queries(args_.desc, unit_.sequence), x0_};
  const ScoreDropout dropout_{args_, unit_.sequence.number, unit_.head};
  ThreadTile sums_[kPanels];
  float largest_[kThreadRows];     ///< visible score so far, not scaled
  float total_[kThreadRows] = {};  ///< exponentials of the columns of this thread
};

template <int kPanels>
MP_KERNEL(kAttentionThreads, 2)
attention_forward_plain(MP_PARAM(AttentionArgs) args) {
  MP_SHARED(AttentionSmem, smem, [1]);
  compute_outputs<void, ForwardTile<kPanels>>(args, kTileRows, smem[0]);
}

}  // namespace

void attention_forward(const Device &device, const AttentionArgs &args, mp_stream_t stream) {
  if (args.kernel == AttentionKernel::mma) {
    attention_forward_mma(device, args, stream);
    return;
  }
  const auto kernel = args.desc.head_dim_v <= kTileColumns ? attention_forward_plain<1>
                                                           : attention_forward_plain<2>;
  launch_units("attention_forward_plain", kernel, device,
               AttentionUnits::of_queries(args.desc, kTileRows), args, stream);
}

}  // namespace mp::MP_TARGET
