// Softmax and log-softmax of rows with masks, and their gradients, in fp32.
//
// A warp processes a row of up to kWarpColumns columns, a block a longer one.  Rows of up to
// kBlockColumns columns are read once and kept in registers; longer ones are read again in each of
// three passes (two in the backward pass), probably from L2.  Vectors begin at multiples of kVec
// columns, and the number of columns alone selects the kernel: the order of the sums depends on
// nothing else.  A thread reads and writes the same elements, so the output may be an input.
#include "kernels/layers/softmax_xent.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr float kExcluded = kXentMasked;

constexpr int kVectors = 4;  // per thread, of a row in registers
constexpr int kWarpBlock = 128, kSmallBlock = 256, kLargeBlock = 512;
constexpr int64_t kWarpColumns = kWarpSize * kVectors * kVec;
constexpr int64_t kBlockColumns = kSmallBlock * kVectors * kVec;

/// Threads that share a row, and the vectors of each.
/// @tparam kThreads  kWarpSize for a warp, else a block
/// @tparam kHeld     vectors in registers; 1: every pass loads the row
template <int kThreads, int kHeld>
struct RowOfThreads {
  static constexpr bool kIsHeld = kHeld > 1;
  static constexpr bool kIsWarp = kThreads == kWarpSize;
  static constexpr int kBlock = kIsWarp ? kWarpBlock : kThreads;
  static constexpr int kRowsPerBlock = kBlock / kThreads;

  /// Calls visit(v, column) for each vector v of this thread.
  template <class Visit>
  static MP_DEVICE void for_each_vector(int64_t columns, Visit visit) {
    const int t = kIsWarp ? lane_index() : thread_index();
    if constexpr (kIsHeld) {
      unroll<kHeld>([&](int v) {
        if (v * kThreads * kVec < columns) visit(v, int64_t{v * kThreads + t} * kVec);
      });
    } else {
      for (int64_t column = t * kVec; column < columns; column += kThreads * kVec) visit(0, column);
    }
  }

  template <class Op>
  static MP_DEVICE float reduce(float value) {
    if constexpr (kIsWarp)
      return warp_reduce<Op>(value);
    else
      return block_reduce<kThreads, Op>(value);
  }

  template <class Visit>
  static MP_DEVICE void for_each_row(int64_t rows, Visit visit) {
    const int64_t first = block_index() * kRowsPerBlock + (kIsWarp ? warp_index() : 0);
    for (int64_t row = first; row < rows; row += grid_size() * kRowsPerBlock) visit(row);
  }
};

/// Columns [0, end) of a row that the mask includes.
struct Included {
  int64_t end;
  bool is_valid;  ///< false: the length is out of range

  MP_DEVICE Included(const SoftmaxArgs &args, int64_t row)
      : end(args.desc.columns), is_valid(true) {
    const mp_softmax_desc_t &desc = args.desc;
    if (desc.mask == MP_SOFTMAX_MASK_CAUSAL) {
      const int64_t last = row % desc.mask_rows + desc.columns - desc.mask_rows;
      end = min_of(max_of<int64_t>(last + 1, 0), desc.columns);
    } else if (desc.mask == MP_SOFTMAX_MASK_LENGTHS) {
      end = static_cast<const int32_t *>(args.mask)[row / desc.mask_rows];
      is_valid = end >= 0 && end <= desc.columns;
      if (!is_valid) end = 0;
    }
  }
};

// ---------------------------------------------------------------------------- forward

/// s = scaled and masked elements of a vector; excluded ones are -infinity.
template <class T>
MP_DEVICE void load_scores(float (&s)[kVec], const SoftmaxArgs &args, int64_t row, int64_t column,
                           int64_t end) {
  const mp_softmax_desc_t &desc = args.desc;
  const int valid = clamp_to_int(end - column, kVec);
  load_vector(s, static_cast<const T *>(args.x) + row * desc.ld_x + column, valid);
  float added[kVec] = {};
  if (desc.mask == MP_SOFTMAX_MASK_ADDITIVE)
    load_vector(added, desc.dtype_mask, args.mask, row % desc.mask_rows * desc.ld_mask + column,
                valid);
  unroll<kVec>([&](int i) { s[i] = i < valid ? fmaf(s[i], desc.scale, added[i]) : kExcluded; });
}

template <class T, class Row, int kHeld>
MP_DEVICE void do_row(const SoftmaxArgs &args, int64_t row) {
  const mp_softmax_desc_t &desc = args.desc;
  const Included included(args, row);
  const bool is_log = (desc.flags & MP_SOFTMAX_FLAG_LOG) != 0;
  float s[kHeld][kVec], largest = kExcluded;
  Row::for_each_vector(desc.columns, [&](int v, int64_t column) {
    load_scores<T>(s[v], args, row, column, included.end);
    unroll<kVec>([&](int i) { largest = max_number(largest, s[v][i]); });
  });
  largest = Row::template reduce<Max>(largest);
  if (largest == kExcluded) largest = 0.0f;  // exp gives 0, not NaN

  float sum = 0.0f;
  Row::for_each_vector(desc.columns, [&](int v, int64_t column) {
    if constexpr (!Row::kIsHeld) load_scores<T>(s[v], args, row, column, included.end);
    float of_vector = 0.0f;
    unroll<kVec>([&](int i) {
      s[v][i] -= largest;
      const float e = power<T>(s[v][i]);
      of_vector += e;
      if (!is_log) s[v][i] = e;
    });
    sum += of_vector;
  });
  sum = Row::template reduce<Sum>(sum);
  const float factor = !included.is_valid ? kNaN : sum == 0.0f ? 0.0f : 1.0f / sum;
  const float log_sum = !included.is_valid ? kNaN : sum == 0.0f ? 0.0f : logf(sum);

  Row::for_each_vector(desc.columns, [&](int v, int64_t column) {
    if constexpr (!Row::kIsHeld) {
      load_scores<T>(s[v], args, row, column, included.end);
      unroll<kVec>(
          [&](int i) { s[v][i] = is_log ? s[v][i] - largest : power<T>(s[v][i] - largest); });
    }
    const int valid = included.is_valid ? clamp_to_int(included.end - column, kVec) : kVec;
    unroll<kVec>([&](int i) {
      const float y = is_log ? s[v][i] - log_sum : s[v][i] * factor;
      s[v][i] = i < valid ? y : is_log ? kExcluded : 0.0f;
    });
    store_vector(static_cast<T *>(args.out) + row * desc.ld_y + column, s[v],
                 clamp_to_int(desc.columns - column, kVec));
  });
}

template <class T, int kThreads, int kHeld>
MP_KERNEL((RowOfThreads<kThreads, kHeld>::kBlock), 2)
softmax_rows(MP_PARAM(SoftmaxArgs) args) {
  wait_for_previous_kernel();
  using Row = RowOfThreads<kThreads, kHeld>;
  Row::for_each_row(args.desc.rows, [&](int64_t row) { do_row<T, Row, kHeld>(args, row); });
}

// ---------------------------------------------------------------------------- backward

/// Loads included elements of y and dy; excluded ones are 0.
template <class T>
MP_DEVICE void load_gradient(float (&y)[kVec], float (&dy)[kVec], const SoftmaxArgs &args,
                             int64_t row, int64_t column, int64_t end) {
  const int valid = clamp_to_int(end - column, kVec);
  const int64_t at = row * args.desc.ld_y + column;
  load_vector(y, static_cast<const T *>(args.y) + at, valid);
  load_vector(dy, static_cast<const T *>(args.dy) + at, valid);
}

template <class T, class Row, int kHeld>
MP_DEVICE void do_gradient_row(const SoftmaxArgs &args, int64_t row, AmaxTracker &tracker) {
  const mp_softmax_desc_t &desc = args.desc;
  const Included included(args, row);
  const bool is_log = (desc.flags & MP_SOFTMAX_FLAG_LOG) != 0;
  float y[kHeld][kVec], dy[kHeld][kVec], sum = 0.0f;
  Row::for_each_vector(desc.columns, [&](int v, int64_t column) {
    load_gradient<T>(y[v], dy[v], args, row, column, included.end);
    float of_vector = 0.0f;
    unroll<kVec>([&](int i) {
      of_vector = is_log ? of_vector + dy[v][i] : fmaf(dy[v][i], y[v][i], of_vector);
    });
    sum += of_vector;
  });
  sum = Row::template reduce<Sum>(sum);

  Row::for_each_vector(desc.columns, [&](int v, int64_t column) {
    if constexpr (!Row::kIsHeld) load_gradient<T>(y[v], dy[v], args, row, column, included.end);
    const int valid = clamp_to_int(included.end - column, kVec);
    unroll<kVec>([&](int i) {
      float dx;
      if (is_log)
        dx = y[v][i] == kExcluded ? 0.0f : fmaf(-power<T>(y[v][i]), sum, dy[v][i]);
      else
        dx = y[v][i] * (dy[v][i] - sum);
      dx = i < valid ? desc.scale * dx : 0.0f;
      dy[v][i] = included.is_valid ? dx : kNaN;
    });
    const int stored = clamp_to_int(desc.columns - column, kVec);
    store_vector(static_cast<T *>(args.out) + row * desc.ld_x + column, dy[v], stored);
    tracker.see<T>(dy[v], stored);
  });
}

template <class T, int kThreads, int kHeld>
MP_KERNEL((RowOfThreads<kThreads, kHeld>::kBlock), 2)
softmax_gradient_rows(MP_PARAM(SoftmaxArgs) args) {
  wait_for_previous_kernel();
  using Row = RowOfThreads<kThreads, kHeld>;
  AmaxTracker tracker(args.stats);
  Row::for_each_row(args.desc.rows,
                    [&](int64_t row) { do_gradient_row<T, Row, kHeld>(args, row, tracker); });
  tracker.finish();
}

// ---------------------------------------------------------------------------- launch

struct Pass {
  const char *name;
  bool is_forward;
};

template <class T, int kThreads, int kHeld>
void launch_rows(const Pass &pass, const Device &device, const SoftmaxArgs &args,
                 mp_stream_t stream) {
  using Row = RowOfThreads<kThreads, kHeld>;
  const int64_t blocks = ceil_div<int64_t>(args.desc.rows, Row::kRowsPerBlock);
  const auto kernel = pass.is_forward ? softmax_rows<T, kThreads, kHeld>
                                      : softmax_gradient_rows<T, kThreads, kHeld>;
  launch(pass.name, kernel, device, resident_blocks(device, blocks, Row::kBlock), stream, args);
}

void launch_pass(const Pass &pass, const Device &device, const SoftmaxArgs &args,
                 mp_stream_t stream) {
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    if (args.desc.columns <= kWarpColumns)
      launch_rows<T, kWarpSize, kVectors>(pass, device, args, stream);
    else if (args.desc.columns <= kBlockColumns)
      launch_rows<T, kSmallBlock, kVectors>(pass, device, args, stream);
    else
      launch_rows<T, kLargeBlock, 1>(pass, device, args, stream);
  });
}

}  // namespace

void softmax_forward(const Device &device, const SoftmaxArgs &args, mp_stream_t stream) {
  launch_pass({"softmax_forward", true}, device, args, stream);
}

void softmax_backward(const Device &device, const SoftmaxArgs &args, mp_stream_t stream) {
  launch_pass({"softmax_backward", false}, device, args, stream);
}

}  // namespace mp::MP_TARGET
