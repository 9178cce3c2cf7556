// Depthwise convolution: one filter per channel.  It is not a matrix product, so the CUDA cores
// compute it directly, at memory speed.
//
// A block computes 64 channels: 8 lanes with kVec channels each, times 32 slots with different
// pixels.  Adjacent outputs read mostly the same inputs: a thread keeps them in registers between
// its outputs, other threads hit L1.
#include "kernels/conv/conv_args.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/epilogue.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kLanesAcross = 8;
constexpr int kChannels = kLanesAcross * kVec;
constexpr int kSlots = kThreads / kLanesAcross;

/// Channels of this thread.
struct ChannelRun {
  int64_t first;
  int valid;

  MP_DEVICE ChannelRun(const ConvArgs &args, int64_t block)
      : first(block * kChannels + thread_index() % kLanesAcross * kVec),
        valid(static_cast<int>(min_of<int64_t>(max_of<int64_t>(args.groups - first, 0), kVec))) {}
};

/// Position of the channels at one tap of a patch, and their number: 0 for a tap outside the image.
struct PixelChannels {
  int64_t elem;
  int valid;

  MP_DEVICE PixelChannels(const PatchMap &patches, const PatchOrigin &origin, int32_t tap_h,
                          int32_t tap_w, const ChannelRun &channels) {
    const int32_t down = tap_h * patches.step_h, right = tap_w * patches.step_w;
    const int64_t pixels = int64_t{down} * patches.width + right;  // offset from the origin
    elem = origin.offset + pixels * patches.channels + channels.first;
    // Converted to unsigned, negative coordinates are too large.
    const bool inside =
        static_cast<uint32_t>(origin.h + down) < static_cast<uint32_t>(patches.height) &&
        static_cast<uint32_t>(origin.w + right) < static_cast<uint32_t>(patches.width);
    valid = inside ? channels.valid : 0;
  }
};

/// Loads the valid channels of a pixel, followed by zeros.
MP_DEVICE void load_pixel(float (&values)[kVec], const ConvArgs &args, const PixelChannels &pixel) {
  load_vector(values, args.dtype, in_gmem(args.image), pixel.valid > 0 ? pixel.elem : 0,
              pixel.valid);
}

// ---------------------------------------------------------------------------- fprop and dgrad

/// Outputs per thread, which share each weight that the thread reads.
constexpr int kPixelsPerThread = 4;
constexpr int kRowsPerBlock = kSlots * kPixelsPerThread;

using Weights = float[kMaxDepthwiseTaps][kChannels];

/// Fills weights[tap of the stride phase][channel of the block].
template <mp_conv_op_t op>
MP_DEVICE void stage_weights(const ConvArgs &args, const ConvProduct<op> &product,
                             int64_t first_channel, Weights &weights) {
  const TapSegments &segments = product.patches.segments;
  const int num_taps = segments.taps_h * segments.taps_w;
  for (int i = thread_index(); i < num_taps * kChannels; i += kThreads) {
    const int tap = i / kChannels, channel = i % kChannels;
    const int64_t at = (first_channel + channel) * args.filter_elems + product.filter.first +
                       tap / segments.taps_w * product.filter.step_h +
                       tap % segments.taps_w * product.filter.step_w;
    const bool inside = first_channel + channel < args.groups;
    float weight[1];
    load_vector(weight, args.dtype, in_gmem(args.other), inside ? at : 0, inside ? 1 : 0);
    weights[tap][channel] = weight[0];
  }
}

using Origins = PatchOrigin[kPixelsPerThread];

/// Accumulates all taps, for any type and alignment.
MP_DEVICE void convolve_runs(const ConvArgs &args, const PatchMap &patches, const Origins &origins,
                             const ChannelRun &channels, const Weights &weights,
                             float (&acc)[kPixelsPerThread][kVec]) {
  int tap = 0;
  for (int32_t tap_h = 0; tap_h < patches.segments.taps_h; tap_h++) {
    for (int32_t tap_w = 0; tap_w < patches.segments.taps_w; tap_w++, tap++) {
      const float *const weight = &weights[tap][thread_index() % kLanesAcross * kVec];
      MP_UNROLL
      for (int i = 0; i < kPixelsPerThread; i++) {
        float x[kVec];
        load_pixel(x, args, PixelChannels(patches, origins[i], tap_h, tap_w, channels));
        unroll<kVec>([&](int j) { acc[i][j] = fmaf(x[j], weight[j], acc[i][j]); });
      }
    }
  }
}

/// Reuse of pixels among the outputs of a thread: at each tap, output i reads the pixel that output
/// `from` read at the previous tap, if both are in one image row and one tap apart.  In dgrad taps
/// go backwards.
template <mp_conv_op_t op>
struct PixelNeighbor {
  int i, from;

  /// Selects the n-th output, in an order that reuses each pixel before it is overwritten.
  MP_DEVICE explicit PixelNeighbor(int n)
      : i(op == MP_CONV_DGRAD ? kPixelsPerThread - 1 - n : n),
        from(op == MP_CONV_DGRAD ? i - 1 : i + 1) {}

  MP_DEVICE bool has_read(const Origins &origins, int32_t step_w) const {
    return from >= 0 && from < kPixelsPerThread && origins[from].h == origins[i].h &&
           origins[from].w - origins[i].w == step_w;
  }
};

/// Accumulates all taps, for 16-bit types in full, aligned vectors.  Vectors are converted to fp32
/// when the loads of all outputs are in flight; converting each one at once would delay the next
/// load.
template <mp_conv_op_t op, class T>
MP_DEVICE void convolve_packed(const ConvArgs &args, const PatchMap &patches,
                               const Origins &origins, const ChannelRun &channels,
                               const Weights &weights, float (&acc)[kPixelsPerThread][kVec]) {
  const T *const image = static_cast<const T *>(in_gmem(args.image));
  Packed<T> x[kPixelsPerThread] = {};
  bool has_read[kPixelsPerThread];
  unroll<kPixelsPerThread>(
      [&](int n) { has_read[n] = PixelNeighbor<op>(n).has_read(origins, patches.step_w); });
  int tap = 0;
  for (int32_t tap_h = 0; tap_h < patches.segments.taps_h; tap_h++) {
    for (int32_t tap_w = 0; tap_w < patches.segments.taps_w; tap_w++, tap++) {
      MP_UNROLL
      for (int n = 0; n < kPixelsPerThread; n++) {
        const PixelNeighbor<op> at(n);
        const bool is_read = tap_w > 0 && has_read[n];
        x[at.i] = is_read ? x[at.from] : Packed<T>{};
        const PixelChannels pixel(patches, origins[at.i], tap_h, tap_w, channels);
        if (!is_read && pixel.valid > 0) x[at.i].load(image + pixel.elem);
      }
      const float *const weight = &weights[tap][thread_index() % kLanesAcross * kVec];
      MP_UNROLL
      for (int i = 0; i < kPixelsPerThread; i++) {
        float values[kVec];
        widen(values, x[i]);
        unroll<kVec>([&](int j) { acc[i][j] = fmaf(values[j], weight[j], acc[i][j]); });
      }
    }
  }
}

template <mp_conv_op_t op>
MP_DEVICE void convolve_pixels(const ConvArgs &args, const ConvProduct<op> &product, int64_t row0,
                               const ChannelRun &channels, const Weights &weights,
                               float (&acc)[kPixelsPerThread][kVec]) {
  const PatchMap &patches = product.patches;
  Origins origins;
  unroll<kPixelsPerThread>([&](int i) { origins[i] = patches.origin(row0 + i); });
  if (args.dtype == MP_FP32 || args.groups % kVec != 0 || !is_aligned_16(args.image))
    return convolve_runs(args, patches, origins, channels, weights, acc);
  with_half_type(args.dtype, [&]<class T>(std::type_identity<T>) {
    convolve_packed<op, T>(args, patches, origins, channels, weights, acc);
  });
}

/// A work item is a block of rows (tile_m), a block of channels (tile_n) and a stride phase
/// (batch_item).
template <mp_conv_op_t op>
MP_KERNEL(kThreads, 2)
conv_depthwise(MP_PARAM(ConvArgs) args) {
  MP_SHARED(float, weights, [kMaxDepthwiseTaps][kChannels]);
  const int64_t num_work_tiles = args.scheduler.num_work_tiles();
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
    const WorkTile work = args.scheduler(number);
    const ConvProduct<op> product(args, work.batch_item * args.groups);
    const ChannelRun channels(args, work.tile_n);
    const int64_t row0 =
        work.tile_m * kRowsPerBlock + thread_index() / kLanesAcross * kPixelsPerThread;
    if (number != block_index()) block_sync();  // the previous item's weights have been read
    stage_weights(args, product, work.tile_n * kChannels, weights);
    block_sync();
    float acc[kPixelsPerThread][kVec] = {};
    convolve_pixels(args, product, row0, channels, weights, acc);
    EpilogueWriter writer(args.out, 0);
    MP_UNROLL
    for (int i = 0; i < kPixelsPerThread; i++) {
      const OutputCoord to = product.template output_coord<kVec>(row0 + i, 0);
      if (to.valid > 0 && channels.valid > 0)
        writer.write(to.row, channels.first, acc[i], channels.valid);
    }
    writer.finish();
  }
}

// ---------------------------------------------------------------------------- wgrad

/// Number of taps whose sums a thread keeps in registers.
constexpr int kTapsAtOnce = 9;

/// Adds this thread's rows of [row0, row_end) to the sums of taps [tap0, tap0 + kTapsAtOnce).
MP_DEVICE void sum_rows(const ConvArgs &args, int tap0, int64_t row0, int64_t row_end,
                        const ChannelRun &channels, float (&acc)[kTapsAtOnce][kVec]) {
  const PatchMap &patches = args.patches;
  const int num_taps = patches.segments.taps_h * patches.segments.taps_w;
  for (int64_t row = row0 + thread_index() / kLanesAcross; row < row_end; row += kSlots) {
    const PatchOrigin origin = patches.origin(row);
    float dy[kVec];
    load_vector(dy, args.dtype, in_gmem(args.other), row * args.groups + channels.first,
                channels.valid);
    int32_t tap_h = tap0 / patches.segments.taps_w, tap_w = tap0 % patches.segments.taps_w;
    MP_UNROLL
    for (int t = 0; t < kTapsAtOnce; t++) {
      if (tap0 + t >= num_taps) break;
      float x[kVec];
      load_pixel(x, args, PixelChannels(patches, origin, tap_h, tap_w, channels));
      unroll<kVec>([&](int j) { acc[t][j] = fmaf(x[j], dy[j], acc[t][j]); });
      if (++tap_w == patches.segments.taps_w) tap_w = 0, tap_h++;
    }
  }
}

/// A work item is a block of channels (tile_m), a group of taps (tile_n) and a slice of the rows.
MP_KERNEL(kThreads, 2)
conv_depthwise_wgrad(MP_PARAM(ConvArgs) args) {
  MP_SHARED(float, sums, [kSlots][kChannels]);
  const int num_taps = args.patches.segments.taps_h * args.patches.segments.taps_w;
  const int64_t num_work_tiles = args.scheduler.num_work_tiles();
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
    const WorkTile work = args.scheduler(number);
    const ChannelRun channels(args, work.tile_m);
    const int tap0 = static_cast<int>(work.tile_n) * kTapsAtOnce;
    const int64_t row0 = work.slice * args.slice_k;
    float acc[kTapsAtOnce][kVec] = {};
    sum_rows(args, tap0, row0, min_of<int64_t>(row0 + args.slice_k, args.patches.num_rows),
             channels, acc);

    EpilogueWriter writer(args.out, 0);
    const int64_t channel = work.tile_m * kChannels + thread_index();
    MP_UNROLL
    for (int t = 0; t < kTapsAtOnce; t++) {
      if (tap0 + t >= num_taps) break;
      MP_UNROLL
      for (int j = 0; j < kVec; j++)
        sums[thread_index() / kLanesAcross][thread_index() % kLanesAcross * kVec + j] = acc[t][j];
      block_sync();
      if (thread_index() < kChannels && channel < args.groups) {
        float total[1] = {0.0f};
        for (int slot = 0; slot < kSlots; slot++) total[0] += sums[slot][thread_index()];
        if (args.partial_sums != nullptr)
          args.partial_sums[(work.slice * args.out.m + channel) * args.out.n + tap0 + t] = total[0];
        else
          writer.write(channel, tap0 + t, total, 1);
      }
      block_sync();
    }
    writer.finish();
  }
}

void launch_items(const char *name, void (*kernel)(MP_PARAM(ConvArgs)), const Device &device,
                  const ConvArgs &args, mp_stream_t stream) {
  const int64_t blocks = min_of(args.scheduler.num_work_tiles(), kMaxBlocks);
  launch(name, kernel, device, {blocks, kThreads}, stream, args);
}

}  // namespace

void launch_conv_depthwise(const ConvPlan &plan, const ConvProblem &problem, const Device &device,
                           ConvArgs args, mp_stream_t stream) {
  const ProductShape product = product_shape(problem);
  const auto blocks = [](int64_t elems, int each) {
    return static_cast<uint32_t>(ceil_div<int64_t>(elems, each));
  };
  const uint32_t channel_blocks = blocks(args.groups, kChannels);
  const uint32_t phases = static_cast<uint32_t>(product.count / args.groups);
  if (problem.op == MP_CONV_WGRAD) {
    const int64_t rows = args.patches.num_rows;
    args.slice_k = ceil_div<int64_t>(rows, plan.gemm.split_k);
    args.scheduler = {channel_blocks, blocks(args.filter_elems, kTapsAtOnce), 1,
                      static_cast<uint32_t>(plan.gemm.split_k), 1};
    return launch_items(plan.name, conv_depthwise_wgrad, device, args, stream);
  }
  args.scheduler = {blocks(product.m, kRowsPerBlock), channel_blocks, phases, 1, 1};
  if (problem.op == MP_CONV_FPROP)
    launch_items(plan.name, conv_depthwise<MP_CONV_FPROP>, device, args, stream);
  else
    launch_items(plan.name, conv_depthwise<MP_CONV_DGRAD>, device, args, stream);
}

}  // namespace mp::MP_TARGET
