// Copies of an image and its filter with padded pixels and rows (conv_plan.h).
#include "kernels/conv/conv_args.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;

/// Arguments of pad_channels.  FP16 and BF16 are both copied as half.
struct PadChannelsArgs {
  const half *from;
  half *to;
  int64_t lines;
  int32_t pixels, channels;  ///< per source row; per source pixel
  int32_t before;            ///< pixels of zeros at the start of a row
  FastDivisor to_channels;
  int32_t vectors;  ///< vectors of kVec elements per destination row
};

/// Returns vector `vector` of the copy of the source row `line`.
MP_DEVICE Pack<half, kVec> padded_vector(const PadChannelsArgs &args, const half *line,
                                         int32_t vector) {
  const Quotient at = args.to_channels.divide(vector * kVec);
  int32_t pixel = at.quotient - args.before, channel = at.remainder;
  Pack<half, kVec> elems;
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    const bool inside = pixel >= 0 && pixel < args.pixels && channel < args.channels;
    elems.x[i] = inside ? line[pixel * args.channels + channel] : half{0};
    const bool is_last = ++channel == args.to_channels.divisor;
    channel = is_last ? 0 : channel;
    pixel += is_last;
  }
  return elems;
}

/// Copies rows, one per warp at a time: adjacent lanes write adjacent vectors.
MP_KERNEL(kThreads, 1)
pad_channels(MP_PARAM(PadChannelsArgs) args) {
  wait_for_previous_kernel();
  for (int64_t line = block_index() * kWarps + warp_index(); line < args.lines;
       line += grid_size() * kWarps) {
    const half *const from = args.from + line * args.pixels * args.channels;
    half *const to = args.to + line * args.vectors * kVec;
    for (int32_t vector = lane_index(); vector < args.vectors; vector += kWarpSize)
      store_pack(to + vector * kVec, padded_vector(args, from, vector));
  }
}

void launch_pad(const Device &device, const PadChannelsArgs &args, mp_stream_t stream) {
  const int64_t blocks = min_of(ceil_div<int64_t>(args.lines, kWarps), kMaxBlocks);
  launch("pad_channels", pad_channels, device,
         {.num_blocks = blocks, .num_threads = kThreads, .uses_pdl = true}, stream, args);
}

}  // namespace

ConvProblem launch_padded_image(const Device &device, const ConvProblem &p, const PaddedImage &copy,
                                void *workspace, mp_stream_t stream) {
  if (copy.bytes() == 0) return p;
  std::byte *const copies = static_cast<std::byte *>(workspace);
  ConvProblem padded = with_padded_image(p, copy);
  padded.image = copies;
  if (p.op == MP_CONV_FPROP)
    padded.other = copies + copy.image_bytes;
  else if (copy.has_windows())
    padded.out.c.base = padded.out.d.base = copies + copy.image_bytes;
  if (copy.has_windows()) {
    launch_copy_windows(device, p, copy, padded, stream);
    return padded;
  }
  const ConvShape &s = p.shape;
  PadChannelsArgs args{};
  args.channels = s.c;
  args.to_channels = fast_divisor(copy.channels);
  args.from = static_cast<const half *>(p.image);
  args.to = static_cast<half *>(const_cast<void *>(padded.image));
  args.lines = int64_t{s.n} * s.h;
  args.pixels = s.w;
  args.before = s.pad_left;
  args.vectors = copy.width * copy.channels / kVec;
  launch_pad(device, args, stream);
  if (copy.filter_bytes == 0) return padded;
  args.from = static_cast<const half *>(p.other);
  args.to = static_cast<half *>(const_cast<void *>(padded.other));
  args.lines = int64_t{s.k} * s.r;
  args.pixels = s.s;
  args.before = 0;
  args.vectors = filter_row(padded) / kVec;
  launch_pad(device, args, stream);
  return padded;
}

}  // namespace mp::MP_TARGET
