// Row of logits that the threads of a block share and read once.  Each thread updates the largest
// logit and the sum of exponentials without the label's (online softmax), and copies its logits to
// shared memory for the gradient.  Logits that do not fit are read again, probably from L2.  The
// number that fits depends on the device, the order of the sums does not.  No thread reads the
// copies of another thread.
#pragma once

#include "kernels/layers/softmax_xent.h"

namespace mp::MP_TARGET {

constexpr int kSmallBlock = 128, kLargeBlock = 512;  // threads
constexpr int64_t kSmallBlockClasses = 8192;         // longer rows are processed by large blocks
constexpr int64_t kVectorBytes = 16;

/// Returns the bytes of a row's copy in shared memory, which leave room for block_reduce.
template <class T>
constexpr int64_t xent_copy_bytes(int64_t classes, int64_t smem_per_block) {
  constexpr int64_t kReductionBytes = 1024;
  const int64_t whole = classes * static_cast<int64_t>(sizeof(T)) / kVectorBytes;
  return min_of(whole, (smem_per_block - kReductionBytes) / kVectorBytes) * kVectorBytes;
}

/// Returns the maximum of xent_copy_bytes for kThreads; rows of large blocks may exceed the room.
/// tools/gpu/codegen/dynamic_smem.py evaluates it.
template <class T, int kThreads>
constexpr int64_t xent_most_copy_bytes(int64_t smem_per_block) {
  return xent_copy_bytes<T>(kThreads == kSmallBlock ? kSmallBlockClasses : smem_per_block,
                            smem_per_block);
}

/// Largest logit so far, and the sum of exp(logit - largest) without the label: Milakov &
/// Gimelshein, Online normalizer calculation for softmax, 2018, algorithm 3, over batches of
/// logits.
template <class T>
struct OnlineSums {
  float largest = kXentMasked, others = 0.0f, differences = 0.0f;

  /// Returns the value to subtract from logits.  If all logits so far are masked, exp gives 0, not
  /// NaN.
  static MP_DEVICE float shift(float largest) { return largest == kXentMasked ? 0.0f : largest; }
  MP_DEVICE void raise_to(float found) {
    others *= power<T>(largest - shift(found));
    largest = found;
  }
};

struct XentBlockArgs : XentArgs {
  int64_t kept_vectors;  ///< vectors of a row in the copy; 0 without a gradient
};

/// Row of a block: aligned 16-byte vectors, distributed over the threads in turn, and at most one
/// single element per thread before or after the vectors.
template <class T, int kThreads>
class BlockRow {
  static constexpr int kElems = Packed<T>::kElems;
  static constexpr int kBatch = 4;  // vectors in flight per thread
  static_assert(kElems < kWarpSize && kThreads > kWarpSize);

 public:
  MP_DEVICE BlockRow(const XentBlockArgs &args, const XentRow<T> &row, T *copy)
      : args_(args), row_(row), copy_(copy) {
    const int past = static_cast<int>(reinterpret_cast<uintptr_t>(row.logits) / sizeof(T) % kElems);
    head_ = (kElems - past) % kElems;
    vectors_ = (row.classes - head_) / kElems;
    const int64_t tail = head_ + vectors_ * kElems;
    const int t = thread_index();
    edge_ = t < head_ ? t : tail + (t - kWarpSize);
    has_edge_ = t < head_ || (t >= kWarpSize && edge_ < row.classes);
  }

  /// Reads the row, copies the vectors that fit, and returns the sums.
  MP_DEVICE XentSums measure() {
    OnlineSums<T> own;
    if (has_edge_) {
      edge_logit_ = to_float(row_.logits[edge_]);
      own.raise_to(max_number(own.largest, edge_logit_));
      if (edge_ != row_.label)
        own.others = power<T>(edge_logit_ - OnlineSums<T>::shift(own.largest));
      own.differences = edge_logit_ - row_.label_logit;
    }
    for (int64_t first = thread_index(); first < vectors_; first += kTurn) {
      Packed<T> batch[kBatch] = {};
      const int here = turn(vectors_ - first), in_copy = turn(args_.kept_vectors - first);
      visit(here, batch, [&](Packed<T> &v, int i) { v.load(gmem(first + i)); });
      visit(in_copy, batch, [&](Packed<T> &v, int i) { v.store(copy_ + (first + i) * kElems); });
      add(own, batch, first, here);
    }
    return combine(own);
  }

  /// Returns whether no class before the label has the same logit.
  MP_DEVICE bool label_is_first() {
    int earlier = has_edge_ && edge_ < row_.label && edge_logit_ == row_.label_logit;
    for_each_vector([&](const Packed<T> &v, int64_t first) {
      const int before = clamp_to_int(row_.label - first, kElems);
      float x[kElems];
      widen(x, v);
      unroll<kElems>([&](int e) { earlier |= e < before && x[e] == row_.label_logit; });
    });
    return block_reduce<kThreads, Max>(earlier) == 0;
  }

  MP_DEVICE void write_gradient(const XentGradient &gradient, float largest, AmaxTracker &tracker) {
    if (has_edge_) {
      const float at_edge[] = {gradient(power<T>(edge_logit_ - largest), edge_ == row_.label)};
      row_.dlogits[edge_] = round_to<T>(at_edge[0]);
      tracker.see<T>(at_edge, 1);
    }
    for_each_vector([&](const Packed<T> &v, int64_t first) {
      float x[kElems];
      widen(x, v);
      unroll<kElems>([&](int e) { x[e] = power<T>(x[e] - largest); });
      gradient.apply(x, row_.label - first);
      store_vector(row_.dlogits + first, x, kElems);
      tracker.see<T>(x, kElems);
    });
  }

  MP_DEVICE void write_zeros() {
    if (has_edge_) row_.dlogits[edge_] = round_to<T>(0.0f);
    const float zeros[kElems] = {};
    for (int64_t i = thread_index(); i < vectors_; i += kThreads)
      store_vector(row_.dlogits + head_ + i * kElems, zeros, kElems);
  }

 private:
  static constexpr int kTurn = kBatch * kThreads;  // vectors of the block per step

  MP_DEVICE const T *gmem(int64_t vector) const { return row_.logits + head_ + vector * kElems; }

  /// Calls visit(batch[b], i) for the vectors of this thread among the next `count`, from its
  /// first.
  template <class Batch, class Visit>
  static MP_DEVICE void visit(int count, Batch &batch, Visit visit) {
    unroll<kBatch>([&](int b) {
      if (b * kThreads < count) visit(batch[b], b * kThreads);
    });
  }
  /// Returns how many of the `left` vectors belong to the current step.
  static MP_DEVICE int turn(int64_t left) { return clamp_to_int(left, kTurn); }

  /// Calls use(vector, its first class) for all vectors of this thread, from the copy if present.
  template <class Use>
  MP_DEVICE void for_each_vector(Use use) const {
    for (int64_t first = thread_index(); first < vectors_; first += kTurn) {
      Packed<T> batch[kBatch] = {};
      const int here = turn(vectors_ - first), in_copy = turn(args_.kept_vectors - first);
      visit(here, batch, [&](Packed<T> &v, int i) {
        if (i < in_copy)
          v.load(copy_ + (first + i) * kElems);
        else
          v.load(gmem(first + i));
      });
      visit(here, batch, [&](const Packed<T> &v, int i) { use(v, head_ + (first + i) * kElems); });
    }
  }

  /// Adds a batch that begins with vector `first`; `count`: see visit().
  MP_DEVICE void add(OnlineSums<T> &own, const Packed<T> (&batch)[kBatch], int64_t first,
                     int count) const {
    float found = own.largest;
    visit(count, batch, [&](const Packed<T> &v, int) {
      float x[kElems];
      widen(x, v);
      unroll<kElems>([&](int e) { found = max_number(found, x[e]); });
    });
    own.raise_to(found);
    const float shift = OnlineSums<T>::shift(found);
    const int64_t label = row_.label - (head_ + first * kElems);
    visit(count, batch, [&](const Packed<T> &v, int i) {
      float x[kElems];
      widen(x, v);
      unroll<kElems>([&](int e) { x[e] = power<T>(x[e] - shift); });
      own.others += sum_of_others(x, label - i * kElems);
    });
    if (args_.desc.label_smoothing == 0.0f) return;
    visit(count, batch, [&](const Packed<T> &v, int) {
      float x[kElems], sum = 0.0f;
      widen(x, v);
      unroll<kElems>([&](int e) { sum += x[e] - row_.label_logit; });
      own.differences += sum;
    });
  }

  MP_DEVICE XentSums combine(OnlineSums<T> own) const {
    own.raise_to(block_reduce<kThreads, Max>(own.largest));
    const float others = block_reduce<kThreads, Sum>(own.others);
    const float differences =
        args_.desc.label_smoothing > 0.0f ? block_reduce<kThreads, Sum>(own.differences) : 0.0f;
    return {own.largest, others, others + power<T>(row_.label_logit - own.largest), differences};
  }

  const XentBlockArgs &args_;
  const XentRow<T> &row_;
  T *copy_;
  int head_;
  int64_t vectors_;
  int64_t edge_;  ///< class of this thread's single element
  bool has_edge_;
  float edge_logit_ = 0.0f;
};

}  // namespace mp::MP_TARGET
