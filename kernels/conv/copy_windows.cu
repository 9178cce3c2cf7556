// Copies of an image and its filter for overlapping windows (conv_plan.h), and the filter
// gradient from sums of windows.
#include "kernels/conv/conv_args.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;
/// Pixels that each lane of a warp copies in turn.
constexpr int kSteps = 8;

/// Arguments of copy_windows.  FP16 and BF16 are both copied as half.
struct CopyWindowsArgs {
  const half *from;
  half *to;
  int64_t units;                 ///< parts of all lines, one per warp at a time
  FastDivisor of_line;           ///< divisor: units per line of the copy
  FastDivisor of_image;          ///< divisor: lines per image
  int32_t height, width;         ///< rows and columns of a source image
  FastDivisor of_row;            ///< divisor: channels per source pixel
  int32_t first_row, line_step;  ///< source row of the first line; rows from line to line
  int32_t rows, row_step;        ///< source rows in a pixel, and their distance
  int32_t before;                ///< pixels of zeros at the start of a line
  int32_t pixels, vectors;       ///< pixels per line of the copy; vectors of kVec per pixel
};

/// Returns whether 0 <= x < end, by one comparison.
MP_DEVICE bool is_in(int32_t x, int32_t end) {
  return static_cast<uint32_t>(x) < static_cast<uint32_t>(end);
}

/// Source of one vector of a pixel, which moves along a line.  Elements of rows outside the image,
/// and past the last row, are zeros: loads of another element of the column that are masked.
class VectorSource {
 public:
  using Words = Pack<uint32_t, kVec / 2>;

  /// @param pixel  first pixel, in the first row of the source image
  /// @param row  source row of the line's first row, which may be outside the image
  MP_DEVICE VectorSource(const CopyWindowsArgs &args, const half *pixel, int32_t row, int vector) {
    const int32_t row_elems = args.width * args.of_row.divisor;
    int32_t elem = 0;
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      const Quotient at = args.of_row.divide(vector * kVec + i);
      const bool is_row = at.quotient < args.rows;
      const int32_t h = row + (is_row ? at.quotient : 0) * args.row_step;
      const bool is_inside = is_row && is_in(h, args.height);
      elem = is_inside ? h * row_elems + at.remainder : elem;
      from_[i] = pixel + elem;
      mask_.x[i / 2] |= is_inside ? 0xffffu << (16 * (i % 2)) : 0;
    }
  }

  /// Returns the vector of the current pixel, whose column must be inside the image.
  MP_DEVICE Words load() const {
    Pack<half, kVec> elems;
    unroll<kVec>([&](int i) { elems.x[i] = *from_[i]; });
    Words words = __builtin_bit_cast(Words, elems);
    unroll<kVec / 2>([&](int i) { words.x[i] &= mask_.x[i]; });
    return words;
  }

  /// Moves to the pixel at a distance of `elems`.  Pointers are incremented, because ptxas would
  /// compute the sum of a pixel and an element anew for every element.
  MP_DEVICE void advance(int32_t elems) {
    MP_UNROLL
    for (const half *&from : from_) from += elems;
  }

 private:
  const half *from_[kVec];  ///< for a zero: that of the previous element, or the pixel
  Words mask_{};
};

/// Adjacent lanes write adjacent vectors.  A lane has the same vector of each of its pixels.
MP_KERNEL(kThreads, 1)
copy_windows(MP_PARAM(CopyWindowsArgs) args) {
  wait_for_previous_kernel();
  const int pixels_at_once = kWarpSize / args.vectors;
  const int pixel = lane_index() / args.vectors, vector = lane_index() % args.vectors;
  const int64_t image_elems = int64_t{args.height} * args.width * args.of_row.divisor;
  const int32_t from_step = pixels_at_once * args.of_row.divisor;
  const int32_t to_step = pixels_at_once * args.vectors * kVec;
  for (int64_t unit = block_index() * kWarps + warp_index(); unit < args.units;
       unit += grid_size() * kWarps) {
    const Quotient part = args.of_line.divide(static_cast<int32_t>(unit));
    const Quotient line = args.of_image.divide(part.quotient);
    const int32_t begin = part.remainder * kSteps * pixels_at_once;
    const int32_t end = min_of(begin + kSteps * pixels_at_once, args.pixels) - args.before;
    // Column of the source image; no pixel for the last lanes.
    int32_t x = pixel < pixels_at_once ? begin + pixel - args.before : end;
    const half *const first =
        args.from + line.quotient * image_elems + int64_t{x} * args.of_row.divisor;
    VectorSource source(args, first, args.first_row + line.remainder * args.line_step, vector);
    const int64_t to_pixel = int64_t{part.quotient} * args.pixels + args.before + x;
    half *to = args.to + (to_pixel * args.vectors + vector) * kVec;
    const auto store_and_advance = [&](const VectorSource::Words &words) {
      store_pack(reinterpret_cast<uint32_t *>(to), words);
      source.advance(from_step);
      to += to_step;
      x += pixels_at_once;
    };
    // Pixels left of the image, in it, and right of it.  In a branch of one loop, the compiler
    // would compute addresses and masks anew.
    while (x < min_of(end, 0)) store_and_advance({});
    while (x < min_of(end, args.width)) store_and_advance(source.load());
    while (x < end) store_and_advance({});
  }
}

void launch_copy(const Device &device, CopyWindowsArgs args, int64_t lines, mp_stream_t stream) {
  const int32_t per_unit = kSteps * (kWarpSize / args.vectors);
  args.of_line = fast_divisor(ceil_div(args.pixels, per_unit));
  args.units = lines * args.of_line.divisor;
  const int64_t blocks = min_of(ceil_div<int64_t>(args.units, kWarps), kMaxBlocks);
  launch("copy_windows", copy_windows, device,
         {.num_blocks = blocks, .num_threads = kThreads, .uses_pdl = true}, stream, args);
}

// ---------------------------------------------------------------------------- wgrad

struct StoreWindowsArgs {
  Output out;  ///< dfilter
  const float *sums;
  int64_t row_sums;           ///< per output channel
  FastDivisor quads_per_row;  ///< divisor: quads of an output channel
  int32_t quads;
  FastDivisor of_row, of_tap;  ///< divisors: elements per filter row, channels per tap
  FastDivisor of_group;        ///< divisor: filter rows per group
  int32_t group, pixel;        ///< sums per group of filter rows, and per tap of it
};

/// Returns the index of an element of dfilter in the sums of its output channel.
MP_DEVICE int32_t index_in_sums(const StoreWindowsArgs &args, int32_t elem) {
  const Quotient row = args.of_row.divide(elem), tap = args.of_tap.divide(row.remainder);
  const Quotient group = args.of_group.divide(row.quotient);
  return group.quotient * args.group + tap.quotient * args.pixel +
         group.remainder * args.of_tap.divisor + tap.remainder;
}

/// Applies the epilogue to the sums, a quad of dfilter per thread at a time.
MP_KERNEL(kThreads, 1)
store_windows(MP_PARAM(StoreWindowsArgs) args) {
  wait_for_previous_kernel();
  EpilogueWriter writer(args.out, 0);
  for (int64_t quad = block_index() * kThreads + thread_index(); quad < args.quads;
       quad += grid_size() * kThreads) {
    const Quotient at = args.quads_per_row.divide(static_cast<int32_t>(quad));
    const int32_t col = at.remainder * kQuad;
    const int valid = static_cast<int>(min_of<int64_t>(args.out.n - col, kQuad));
    const float *const sums = args.sums + at.quotient * args.row_sums;
    float sum[kQuad] = {};
    MP_UNROLL
    for (int i = 0; i < kQuad; i++)
      if (i < valid) sum[i] = sums[index_in_sums(args, col + i)];
    writer.write(at.quotient, col, sum, valid);
  }
  writer.finish();
}

}  // namespace

void launch_store_windows(const Device &device, const ConvProblem &p, const PaddedImage &copy,
                          const ConvProblem &padded, mp_stream_t stream) {
  const ConvShape &s = p.shape;
  const int64_t quads_per_row = ceil_div<int64_t>(p.out.n, kQuad), quads = p.out.m * quads_per_row;
  const StoreWindowsArgs args{p.out,
                              static_cast<const float *>(padded.out.d.base),
                              padded.out.n,
                              fast_divisor(quads_per_row),
                              static_cast<int32_t>(quads),
                              fast_divisor(int64_t{s.s} * s.c),
                              fast_divisor(s.c),
                              fast_divisor(copy.rows),
                              padded.shape.c,
                              copy.channels};
  const int64_t blocks = min_of(ceil_div<int64_t>(quads, kThreads), kMaxBlocks);
  launch("store_windows", store_windows, device,
         {.num_blocks = blocks, .num_threads = kThreads, .uses_pdl = true}, stream, args);
}

void launch_copy_windows(const Device &device, const ConvProblem &p, const PaddedImage &copy,
                         const ConvProblem &padded, mp_stream_t stream) {
  const ConvShape &s = p.shape;
  CopyWindowsArgs args{};
  args.of_row = fast_divisor(s.c);
  args.rows = copy.rows;
  args.vectors = copy.channels / kVec;
  args.from = static_cast<const half *>(p.image);
  args.to = static_cast<half *>(const_cast<void *>(padded.image));
  args.of_image = fast_divisor(copy.lines);
  args.height = s.h;
  args.width = s.w;
  args.first_row = -s.pad_top;
  args.line_step = copy.line_step;
  args.row_step = s.dilation_h;
  args.before = s.pad_left;
  args.pixels = copy.width;
  launch_copy(device, args, int64_t{s.n} * copy.lines, stream);
  if (p.op == MP_CONV_WGRAD) return;
  // A line of the filter's copy has the rows of one group.
  args.from = static_cast<const half *>(p.other);
  args.to = static_cast<half *>(const_cast<void *>(padded.other));
  args.of_image = fast_divisor(padded.shape.r);
  args.height = s.r;
  args.width = s.s;
  args.first_row = 0;
  args.line_step = copy.rows;
  args.row_step = 1;
  args.before = 0;
  args.pixels = s.s;
  launch_copy(device, args, int64_t{s.k} * padded.shape.r, stream);
}

}  // namespace mp::MP_TARGET
