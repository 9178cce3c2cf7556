// Softmax cross-entropy, forward and backward, in fp32; the gradient carries the loss scale.
//
// A warp per row: the largest logit, the sum of exponentials, then loss and gradient.  Every lane
// reads and writes the same columns, so dlogits may be logits.
#include "kernels/layers/args.h"
#include "kernels/simt/block_reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 128;
constexpr int kRowsPerBlock = kThreads / kWarpSize;
constexpr int kMeanThreads = 256;

MP_DEVICE float load1(mp_dtype_t dtype, const void *base, int64_t index) {
  return with_type(dtype, [&](auto type) {
    return to_float(static_cast<const typename decltype(type)::type *>(base)[index]);
  });
}
MP_DEVICE void store1(mp_dtype_t dtype, void *base, int64_t index, float x) {
  with_type(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    static_cast<T *>(base)[index] = round_to<T>(x);
  });
}

/// Sorts like (logit, -column): the largest is the first of the largest logits.  Adding 0 makes -0
/// the 0 that it equals.
MP_DEVICE uint64_t argmax_key(float logit, int64_t column) {
  const uint32_t bits = bits_of(logit + 0.0f);
  const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<uint64_t>(ordered) << 32 | (0xffffffffu - static_cast<uint32_t>(column));
}
MP_DEVICE int64_t argmax_column(uint64_t key) {
  return 0xffffffffu - static_cast<uint32_t>(key);
}

struct Row {
  int64_t number;
  int64_t label;
  float largest;      ///< logit
  int64_t predicted;  ///< its column
  float sum;          ///< of exp(logit - largest)
};

MP_DEVICE Row measure_row(const XentArgs &args, int64_t number) {
  const int64_t base = number * args.ld_logits;
  uint64_t key = 0;
  for (int64_t j = lane_index(); j < args.classes; j += kWarpSize)
    key = max_of(key, argmax_key(load1(args.dtype, args.logits, base + j), j));
  const int64_t predicted = argmax_column(warp_reduce<Max>(key));
  const float largest = load1(args.dtype, args.logits, base + predicted);
  float sum = 0.0f;
  for (int64_t j = lane_index(); j < args.classes; j += kWarpSize)
    sum += expf(load1(args.dtype, args.logits, base + j) - largest);
  return {number, args.labels[number], largest, predicted, warp_reduce<Sum>(sum)};
}

MP_DEVICE float row_loss(const XentArgs &args, const Row &row) {
  if (row.label < 0 || row.label >= args.classes) return float_from_bits(0x7fffffffu);  // NaN
  const float logit = load1(args.dtype, args.logits, row.number * args.ld_logits + row.label);
  return args.weight * (logf(row.sum) - (logit - row.largest));
}

MP_DEVICE void write_gradient(const XentArgs &args, const Row &row, float factor) {
  for (int64_t j = lane_index(); j < args.classes; j += kWarpSize) {
    const float logit = load1(args.dtype, args.logits, row.number * args.ld_logits + j);
    const float p = expf(logit - row.largest) / row.sum;
    const float target = j == row.label ? 1.0f : 0.0f;
    store1(args.dtype, args.dlogits, row.number * args.ld_dlogits + j, factor * (p - target));
  }
}

MP_KERNEL(kThreads, 4)
softmax_xent_rows(MP_PARAM(XentArgs) args) {
  const float scale = args.loss_scale != nullptr ? *args.loss_scale : 1.0f;
  const int64_t step = grid_size() * kRowsPerBlock;
  for (int64_t i = block_index() * kRowsPerBlock + warp_index(); i < args.rows; i += step) {
    const Row row = measure_row(args, i);
    const float loss = row_loss(args, row);
    const bool is_number = loss == loss;
    warp_sync();  // every lane has read the label's logit before it may be overwritten
    if (lane_index() == 0) {
      args.row_loss[i] = loss;
      if (args.correct != nullptr && is_number && row.predicted == row.label)
        atomic_add(args.correct, 1);
    }
    // A NaN loss marks the whole row: the step is to be skipped, not to continue on the rest.
    const float factor = scale * args.weight / static_cast<float>(args.rows);
    if (args.dlogits != nullptr) write_gradient(args, row, is_number ? factor : loss);
  }
}

MP_KERNEL(kMeanThreads, 1)
mean_loss(MP_PARAM(XentArgs) args) {
  double sum = 0.0;
  for (int64_t i = thread_index(); i < args.rows; i += kMeanThreads) sum += args.row_loss[i];
  sum = block_reduce<kMeanThreads, Sum>(sum);
  if (thread_index() == 0) *args.loss = static_cast<float>(sum / static_cast<double>(args.rows));
}

}  // namespace

void softmax_xent(const Device &device, const XentArgs &args, mp_stream_t stream) {
  const int64_t blocks = min_of(ceil_div<int64_t>(args.rows, kRowsPerBlock), kMaxBlocks);
  launch("softmax_xent", softmax_xent_rows, device, {blocks, kThreads}, stream, args);
  if (args.loss != nullptr) launch("mean_loss", mean_loss, device, {1, kMeanThreads}, stream, args);
}

}  // namespace mp::MP_TARGET
