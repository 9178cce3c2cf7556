// What the passes of batch normalisation share: who works on which rows and channels, how partial
// results of a block are combined, and the formula itself.
#pragma once

#include "kernels/layers/args.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// The partition of a pass in which nothing is summed: small parts.
inline BatchNormPartition elementwise_partition(const mp_batchnorm_desc_t &desc) {
  constexpr int64_t kRowsPerThread = 8;
  BatchNormPartition partition(desc.rows, desc.channels);
  partition.rows_per_chunk = BatchNormPartition::kThreads / partition.lanes * kRowsPerThread;
  partition.chunks = ceil_div(desc.rows, partition.rows_per_chunk);
  return partition;
}

/// One part: tile `tile` of the rows [begin, end).
struct Part {
  int64_t tile, chunk, begin, end;
};

/// Calls visit(part) for the parts of this block.
template <class Visit>
MP_DEVICE void for_each_part(const BatchNormPartition &partition, const mp_batchnorm_desc_t &desc,
                             Visit visit) {
  for (int64_t i = block_index(); i < partition.tiles * partition.chunks; i += grid_size()) {
    const int64_t chunk = i / partition.tiles, begin = chunk * partition.rows_per_chunk;
    visit(Part{i - chunk * partition.tiles, chunk, begin,
               min_of(begin + partition.rows_per_chunk, desc.rows)});
  }
}

template <class Args>
void launch_parts(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                  const Args &args, mp_stream_t stream) {
  const int64_t blocks = min_of(args.partition.tiles * args.partition.chunks, kMaxBlocks);
  launch(name, kernel, device, {blocks, BatchNormPartition::kThreads}, stream, args);
}

/// The part of a thread: `valid` <= kVec channels of the rows first, first + stride, ...
struct RowsOfThread {
  int64_t channel;
  int valid;
  int64_t first, stride;
};

/// Threads that share a row are neighbours.  Lanes that stick out of the last tile have no channels.
MP_DEVICE RowsOfThread rows_of_thread(const BatchNormPartition &partition, int64_t channels,
                                      const Part &part) {
  const int lane = thread_index() % partition.lanes;
  const int64_t channel = (part.tile * partition.lanes + lane) * kVec;
  const int64_t valid = max_of<int64_t>(min_of<int64_t>(channels - channel, kVec), 0);
  return {channel, static_cast<int>(valid), part.begin + thread_index() / partition.lanes,
          BatchNormPartition::kThreads / partition.lanes};
}

/// x[r] = the channels of row rows.first + r * rows.stride, where that is below `end`.
template <int kRows>
MP_DEVICE void load_rows(float (&x)[kRows][kVec], const mp_batchnorm_desc_t &desc, const void *base,
                         const RowsOfThread &rows, int64_t row, int64_t end) {
  MP_UNROLL
  for (int r = 0; r < kRows; r++) {
    const int64_t at = row + r * rows.stride;
    load_run(x[r], desc.dtype, base, at * desc.channels + rows.channel, at < end ? rows.valid : 0);
  }
}
template <int kRows>
MP_DEVICE void store_rows(const float (&x)[kRows][kVec], const mp_batchnorm_desc_t &desc,
                          void *base, const RowsOfThread &rows, int64_t row, int64_t end) {
  MP_UNROLL
  for (int r = 0; r < kRows; r++) {
    const int64_t at = row + r * rows.stride;
    if (at < end) store_run(desc.dtype, base, at * desc.channels + rows.channel, x[r], rows.valid);
  }
}

/// One float per channel of the thread.
MP_DEVICE void load_channels(float (&x)[kVec], const float *base, const RowsOfThread &rows) {
  load_run(x, base + rows.channel, rows.valid);
}

/// Combines what the threads of the block found in their rows, in a fixed order; calls
/// store(channel, value) for each channel of the tile, in some thread.  Combining is operator+.
template <class Value, class Store>
MP_DEVICE void combine_rows(const Value (&own)[kVec], const BatchNormPartition &partition,
                            int64_t channels, int64_t tile, Store store) {
  constexpr int kThreads = BatchNormPartition::kThreads;
  MP_SHARED(Value, by_thread, [kVec][kThreads + 1]);  // the next channel starts in another bank
  MP_SHARED(Value, by_group, [kThreads]);
  const int width = partition.lanes * kVec;  // channels of the tile
  const int t = thread_index();
  MP_UNROLL
  for (int i = 0; i < kVec; i++) by_thread[i][t] = own[i];
  block_sync();

  // A thread per channel and group of kVec rows; then one per channel.
  const int lane = t % width / kVec;
  const auto &partials = by_thread[t % kVec];
  Value value = partials[t / width * kVec * partition.lanes + lane];
  for (int r = 1; r < kVec; r++)
    value = value + partials[(t / width * kVec + r) * partition.lanes + lane];
  by_group[t] = value;
  block_sync();
  if (t >= width || tile * width + t >= channels) return;
  for (int group = t + width; group < kThreads; group += width) value = value + by_group[group];
  store(tile * width + t, value);
}

/// Combines the chunks of kVec channels, those of this block, in a fixed order: load(chunk, channel)
/// of all chunks, then store(channel, value) in some thread.
template <class Value, class Load, class Store>
MP_DEVICE void combine_chunks(int64_t chunks, int64_t channels, Load load, Store store) {
  constexpr int kThreads = BatchNormPartition::kThreads;
  MP_SHARED(Value, by_thread, [kThreads]);
  const int t = thread_index();
  const int64_t channel = block_index() * kVec + t % kVec;
  Value value{};
  if (channel < channels)
    for (int64_t c = t / kVec; c < chunks; c += kThreads / kVec) value = value + load(c, channel);
  by_thread[t] = value;
  block_sync();
  if (t >= kVec || channel >= channels) return;
  for (int other = t + kVec; other < kThreads; other += kVec) value = value + by_thread[other];
  store(channel, value);
}

template <class Args>
void launch_combine(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                    const Args &args, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(args.call.desc.channels, kVec);
  launch(name, kernel, device, {blocks, BatchNormPartition::kThreads}, stream, args);
}

/// 1 / sqrt(var + epsilon).  An infinite variance gives NaN: 0 would hide it.
MP_DEVICE float inverse_std(float var, float epsilon) {
  return is_nonfinite(var) ? float_from_bits(0x7fffffffu) : 1.0f / sqrtf(var + epsilon);
}

/// What y is before the activation.  Forward and backward come to the same bits: the gradient of
/// ReLU asks for the sign.
struct Normalisation {
  float mean[kVec], factor[kVec], shift[kVec];

  MP_DEVICE Normalisation(const float (&mean_)[kVec], const float (&inv_std)[kVec],
                          const float *gamma, const float *beta, const RowsOfThread &rows) {
    load_channels(factor, gamma, rows);
    load_channels(shift, beta, rows);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      mean[i] = mean_[i];
      factor[i] *= inv_std[i];
    }
  }
  MP_DEVICE float centred(float x, int i) const { return x - mean[i]; }
  MP_DEVICE float z(float x, int i) const { return fmaf(centred(x, i), factor[i], shift[i]); }
};

}  // namespace mp::MP_TARGET
