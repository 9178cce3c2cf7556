// Softmax and log-softmax of rows with masks, and their gradients, in fp32.
//
// A warp processes a row of up to kWarpColumns columns, a block a longer one.  Rows of up to
// kBlockColumns columns are read once and kept in registers; longer ones are read again in each of
// three passes (two in the backward pass), probably from L2.  Vectors begin at multiples of kVec
// columns, and the number of columns alone selects the kernel: the order of the sums depends on
// nothing else.  A thread reads and writes the same elements, so the output may be an input.
#include "kernels/layers/norm_vector.h"
#include "kernels/layers/softmax_xent.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr float kExcluded = kXentMasked;

constexpr int kVectors = 4;  // per thread, of a row in registers
constexpr int kSmallBlock = 256, kLargeBlock = 512;
constexpr int64_t kWarpColumns = kWarpSize * kVectors * kVec;
constexpr int64_t kBlockColumns = kSmallBlock * kVectors * kVec;

/// False if every pass loads the row.
template <class Row>
constexpr bool kIsHeld = Row::kRuns > 1;

/// Calls visit(v, column) for each vector v of this thread.  Row is a warp or a block.
template <class Row, class Visit>
MP_DEVICE void for_each_vector(int64_t columns, Visit visit) {
  const int t = Row::kTeams > 1 ? lane_index() : thread_index();
  if constexpr (kIsHeld<Row>) {
    unroll<Row::kRuns>([&](int v) {
      if (v * Row::kStep < columns) visit(v, int64_t{v * Row::kSize + t} * kVec);
    });
  } else {
    for (int64_t column = t * kVec; column < columns; column += Row::kStep) visit(0, column);
  }
}

template <class Row, class Visit>
MP_DEVICE void for_each_row(int64_t rows, Visit visit) {
  const int64_t first = block_index() * Row::kTeams + (Row::kTeams > 1 ? warp_index() : 0);
  for (int64_t row = first; row < rows; row += grid_size() * Row::kTeams) visit(row);
}

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

template <class T, class Row>
MP_DEVICE void do_row(const SoftmaxArgs &args, int64_t row) {
  const mp_softmax_desc_t &desc = args.desc;
  const Included included(args, row);
  const bool is_log = (desc.flags & MP_SOFTMAX_FLAG_LOG) != 0;
  TileElements<Row> s;
  float largest = kExcluded;
  for_each_vector<Row>(desc.columns, [&](int v, int64_t column) {
    load_scores<T>(s[v], args, row, column, included.end);
    unroll<kVec>([&](int i) { largest = max_number(largest, s[v][i]); });
  });
  largest = Row::template reduce<Max>(largest);
  if (largest == kExcluded) largest = 0.0f;  // exp gives 0, not NaN

  float sum = 0.0f;
  for_each_vector<Row>(desc.columns, [&](int v, int64_t column) {
    if constexpr (!kIsHeld<Row>) load_scores<T>(s[v], args, row, column, included.end);
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

  for_each_vector<Row>(desc.columns, [&](int v, int64_t column) {
    if constexpr (!kIsHeld<Row>) {
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
MP_KERNEL((Team<kThreads, kHeld>::kThreads), 2)
softmax_rows(MP_PARAM(SoftmaxArgs) args) {
  wait_for_previous_kernel();
  using Row = Team<kThreads, kHeld>;
  for_each_row<Row>(args.desc.rows, [&](int64_t row) { do_row<T, Row>(args, row); });
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

template <class T, class Row>
MP_DEVICE void do_gradient_row(const SoftmaxArgs &args, int64_t row, AmaxTracker &tracker) {
  const mp_softmax_desc_t &desc = args.desc;
  const Included included(args, row);
  const bool is_log = (desc.flags & MP_SOFTMAX_FLAG_LOG) != 0;
  TileElements<Row> y, dy;
  float sum = 0.0f;
  for_each_vector<Row>(desc.columns, [&](int v, int64_t column) {
    load_gradient<T>(y[v], dy[v], args, row, column, included.end);
    float of_vector = 0.0f;
    unroll<kVec>([&](int i) {
      of_vector = is_log ? of_vector + dy[v][i] : fmaf(dy[v][i], y[v][i], of_vector);
    });
    sum += of_vector;
  });
  sum = Row::template reduce<Sum>(sum);

  for_each_vector<Row>(desc.columns, [&](int v, int64_t column) {
    if constexpr (!kIsHeld<Row>) load_gradient<T>(y[v], dy[v], args, row, column, included.end);
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
MP_KERNEL((Team<kThreads, kHeld>::kThreads), 2)
softmax_gradient_rows(MP_PARAM(SoftmaxArgs) args) {
  wait_for_previous_kernel();
  using Row = Team<kThreads, kHeld>;
  AmaxTracker tracker(args.stats);
  for_each_row<Row>(args.desc.rows,
                    [&](int64_t row) { do_gradient_row<T, Row>(args, row, tracker); });
  tracker.finish();
}

// ---------------------------------------------------------------------------- launch

template <bool kIsForward>
void launch_rows(const Device &device, const SoftmaxArgs &args, mp_stream_t stream) {
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    const auto launch_teams = [&]<int kThreads, int kHeld>() {
      using Row = Team<kThreads, kHeld>;
      const int64_t blocks = ceil_div<int64_t>(args.desc.rows, Row::kTeams);
      launch(
          kIsForward ? "softmax_forward" : "softmax_backward",
          kIsForward ? softmax_rows<T, kThreads, kHeld> : softmax_gradient_rows<T, kThreads, kHeld>,
          device, resident_blocks(device, blocks, Row::kThreads), stream, args);
    };
    if (args.desc.columns <= kWarpColumns)
      launch_teams.template operator()<kWarpSize, kVectors>();
    else if (args.desc.columns <= kBlockColumns)
      launch_teams.template operator()<kSmallBlock, kVectors>();
    else
      launch_teams.template operator()<kLargeBlock, 1>();
  });
}

}  // namespace

void softmax_forward(const Device &device, const SoftmaxArgs &args, mp_stream_t stream) {
  launch_rows<true>(device, args, stream);
}

void softmax_backward(const Device &device, const SoftmaxArgs &args, mp_stream_t stream) {
  launch_rows<false>(device, args, stream);
}

}  // namespace mp::MP_TARGET
