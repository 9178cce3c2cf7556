// Element-wise functions: y = activation(f(a)), activation(f(a, b)) or a activation'(b); dropout.
//
// a and y are dense, so each block processes consecutive elements regardless of rows.  b is either
// dense too, or each of its quads (4 elements) is addressed by row and column: b is then a bias or
// a table, whose elements are in the caches, or a matrix with a row stride.
#include "kernels/layers/layer_args.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/random.h"
#include "kernels/tensors/runs.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Vectors per thread and step: 64 bytes of 16-bit elements in flight, from one tensor or two.
template <bool kReadsB>
constexpr int kRuns = kReadsB ? 2 : 4;
/// Elements per block and step.
template <bool kReadsB>
constexpr int kPiece = (kThreads * kVec) * kRuns<kReadsB>;

struct ElementsArgs {
  PointwiseArgs call;
  int64_t count;    ///< elements of a and of y
  bool b_is_dense;  ///< b has the layout of y, without repetition

  /// Returns whether all dense operands are 16-byte aligned.
  MP_DEVICE bool is_aligned() const {
    return is_aligned_16(call.a) && is_aligned_16(call.y) && (!b_is_dense || is_aligned_16(call.b));
  }
};

// ---------------------------------------------------------------------------- loading

/// Row and index of an element of b, and the number of elements from there to the end of its row.
struct IndexInB {
  int64_t row, index, left;

  /// Finds the element of b that belongs to element `i` of y.
  MP_DEVICE IndexInB(const mp_pointwise_desc_t &desc, int64_t i) {
    row = i / desc.columns;
    const int64_t column = i - row * desc.columns;
    if (desc.rows_b != 0) row %= desc.rows_b;
    index = row * desc.ld_b + column;
    left = desc.columns - column;
  }

  MP_DEVICE void advance(const mp_pointwise_desc_t &desc) {
    index++;
    if (--left > 0) return;
    index += desc.ld_b - desc.columns;
    left = desc.columns;
    if (++row == desc.rows_b) row = index = 0;
  }
};

/// Loads x, the quad of b that begins at element `i` of vector `run`.
template <class Runs, class T>
MP_DEVICE void load_quad_of_b(float (&x)[kQuad], const Runs &runs, int run, int i,
                              const mp_pointwise_desc_t &desc, const T *b) {
  IndexInB place(desc, runs.at(run, i));
  if (desc.columns % kQuad == 0) {  // each quad is within one row
    load_vector(x, b + place.index, runs.has(run, i) ? kQuad : 0);
    return;
  }
  MP_UNROLL
  for (int j = 0; j < kQuad; j++, place.advance(desc))
    x[j] = runs.has(run, i + j) ? to_float(b[place.index]) : 0.0f;
}

template <class Runs>
MP_DEVICE void load_rows_of_b(float (&x)[Runs::kRuns][kVec], const Runs &runs,
                              const PointwiseArgs &call) {
  with_type(call.desc.dtype_b, [&]<class T>(std::type_identity<T>) {
    const auto *const b = static_cast<const T *>(call.b);
    MP_UNROLL
    for (int run = 0; run < Runs::kRuns; run++) {
      MP_UNROLL
      for (int i = 0; i < kVec; i += kQuad)
        load_quad_of_b(reinterpret_cast<float(&)[kQuad]>(x[run][i]), runs, run, i, call.desc, b);
    }
  });
}

/// Loads a and b after the dispatch of both types, so that loads of b do not wait for those of a.
template <class Runs>
MP_DEVICE void load_dense(float (&a)[Runs::kRuns][kVec], float (&b)[Runs::kRuns][kVec],
                          const Runs &runs, const PointwiseArgs &call) {
  with_type(call.desc.dtype, [&]<class T>(std::type_identity<T>) {
    with_type(call.desc.dtype_b, [&]<class B>(std::type_identity<B>) {
      runs.load(a, static_cast<const T *>(call.a));
      runs.load(b, static_cast<const B *>(call.b));
    });
  });
}

// ---------------------------------------------------------------------------- function

/// Replaces a by f(a, b).
template <int kRuns, class F>
MP_DEVICE void replace(float (&a)[kRuns][kVec], const float (&b)[kRuns][kVec], F f) {
  unroll<kRuns, kVec>([&](int run, int i) { a[run][i] = f(a[run][i], b[run][i]); });
}

/// Computes z of an operation that reads b, or a activation'(b) for MP_ACT_D*; z holds a on entry.
template <int kRuns>
MP_DEVICE void combine(const mp_pointwise_desc_t &desc, float (&z)[kRuns][kVec],
                       const float (&b)[kRuns][kVec]) {
  if (desc.op == MP_POINTWISE_COPY) {
    unroll<kRuns>([&](int run) { multiply_by_derivative(desc.activation, b[run], z[run]); });
  } else if (desc.op == MP_POINTWISE_ADD) {
    replace(z, b, [](float x, float y) { return x + y; });
  } else if (desc.op == MP_POINTWISE_MUL) {
    replace(z, b, [](float x, float y) { return x * y; });
  } else if (desc.op == MP_POINTWISE_SUB) {
    replace(z, b, [](float x, float y) { return x - y; });
  } else if (desc.op == MP_POINTWISE_DIV) {
    replace(z, b, [](float x, float y) { return x / y; });
  } else if (desc.op == MP_POINTWISE_DLEAKY_RELU) {
    replace(z, b, [&](float x, float y) { return y > 0.0f ? x : desc.slope * x; });
  } else {
    replace(z, b, [&](float x, float y) { return y >= desc.low && y <= desc.high ? x : 0.0f; });
  }
}

/// Computes z of an operation that does not read b; z holds a on entry.
template <int kRuns>
MP_DEVICE void transform(const mp_pointwise_desc_t &desc, float (&z)[kRuns][kVec]) {
  if (desc.op == MP_POINTWISE_LEAKY_RELU)
    replace(z, z, [&](float x, float) { return x > 0.0f ? x : desc.slope * x; });
  else if (desc.op == MP_POINTWISE_CLIP)
    replace(z, z, [&](float x, float) {
      return x < desc.low ? desc.low : x > desc.high ? desc.high : x;
    });
}

/// Processes the vectors of a thread: loads, combines, activates and stores them.
template <bool kReadsB, class Runs>
MP_DEVICE void compute(const ElementsArgs &args, const Runs &runs, AmaxTracker &tracker) {
  const PointwiseArgs &call = args.call;
  float z[Runs::kRuns][kVec];
  if constexpr (kReadsB) {
    float b[Runs::kRuns][kVec];
    if (args.b_is_dense) {
      load_dense(z, b, runs, call);
    } else {
      load_vectors(z, runs, call.desc.dtype, call.a);
      load_rows_of_b(b, runs, call);
    }
    combine(call.desc, z, b);
  } else {
    load_vectors(z, runs, call.desc.dtype, call.a);
    transform(call.desc, z);
  }
  unroll<Runs::kRuns>([&](int run) { activate(call.desc.activation, z[run]); });
  store_vectors(runs, call.desc.dtype, call.y, z);
  tracker.see(runs, call.desc.dtype, z);
}

template <bool kReadsB>
MP_KERNEL(kThreads, 4)
pointwise_elements(MP_PARAM(ElementsArgs) args) {
  wait_for_previous_kernel();
  constexpr int64_t piece = kPiece<kReadsB>;
  const bool is_aligned = args.is_aligned();
  AmaxTracker tracker(args.call.stats);
  for (int64_t begin = block_index() * piece; begin < args.count; begin += grid_size() * piece) {
    const int count = static_cast<int>(min_of(args.count - begin, piece));
    for_each_vector<kThreads, kRuns<kReadsB>>(
        begin, count, is_aligned, [&](auto runs) { compute<kReadsB>(args, runs, tracker); });
  }
  tracker.finish();
}

template <bool kReadsB>
void launch_elements(const Device &device, const ElementsArgs &args, mp_stream_t stream) {
  const int64_t pieces = ceil_div<int64_t>(args.count, kPiece<kReadsB>);
  launch("pointwise", pointwise_elements<kReadsB>, device,
         {.num_blocks = blocks_for(device, pieces), .num_threads = kThreads, .uses_pdl = true},
         stream, args);
}

}  // namespace

void pointwise(const Device &device, const PointwiseArgs &call, mp_stream_t stream) {
  const mp_pointwise_desc_t &desc = call.desc;
  ElementsArgs args{};
  args.call = call;
  args.count = desc.rows * desc.columns;
  const bool repeats = desc.rows_b != 0 && desc.rows_b < desc.rows;
  args.b_is_dense = desc.rows == 1 || (desc.ld_b == desc.columns && !repeats);
  (call.b != nullptr ? launch_elements<true> : launch_elements<false>)(device, args, stream);
}

// ---------------------------------------------------------------------------- dropout

// y = x mask / (1 - p).  Both passes generate the mask on the fly.

namespace {

constexpr int kMaskRuns = 2;
constexpr int kMaskPiece = kThreads * kMaskRuns * kVec;  // elements per block and step

struct MaskArgs {
  DropoutArgs call;
  float keep_factor;
  uint32_t threshold;
};

/// Applies the mask.  Vectors begin at multiples of 4 elements, so each of their quads is a quad of
/// the tensor.
template <class Runs>
MP_DEVICE void drop(const MaskArgs &args, uint64_t offset, const Runs &runs,
                    float (&x)[Runs::kRuns][kVec]) {
  unroll<Runs::kRuns, kVec / kQuad>([&](int run, int q) {
    const uint64_t quad = static_cast<uint64_t>(runs.at(run, q * kQuad)) / kQuad;
    drop_quad(x[run] + q * kQuad, draw_quad(args.call.desc.seed, offset, 0, quad), args.threshold,
              args.keep_factor);
  });
}

MP_KERNEL(kThreads, 4)
dropout_elements(MP_PARAM(MaskArgs) args) {
  wait_for_previous_kernel();
  const mp_dropout_desc_t &desc = args.call.desc;
  const bool is_aligned = is_aligned_16(args.call.x) && is_aligned_16(args.call.y);
  AmaxTracker tracker(args.call.stats);
  const uint64_t offset = args.call.offset != nullptr ? *args.call.offset : 0;
  for (int64_t begin = block_index() * kMaskPiece; begin < desc.count;
       begin += grid_size() * kMaskPiece) {
    const int count = static_cast<int>(min_of<int64_t>(desc.count - begin, kMaskPiece));
    for_each_vector<kThreads, kMaskRuns>(begin, count, is_aligned, [&](auto runs) {
      float x[runs.kRuns][kVec];
      load_vectors(x, runs, desc.dtype, args.call.x);
      if (args.keep_factor != 0.0f) drop(args, offset, runs, x);
      store_vectors(runs, desc.dtype, args.call.y, x);
      tracker.see(runs, desc.dtype, x);
    });
  }
  tracker.finish();
}

struct CountArgs {
  uint64_t *steps;
};
MP_KERNEL(kWarpSize, 1)
count_one(MP_PARAM(CountArgs) args) {
  if (thread_index() == 0) args.steps[1] = args.steps[0]++;
}

}  // namespace

void count_step(const Device &device, uint64_t *steps, mp_stream_t stream) {
  launch("count_step", count_one, device, {1, kWarpSize}, stream, CountArgs{steps});
}

void dropout(const Device &device, const DropoutArgs &args, mp_stream_t stream) {
  const int64_t pieces = ceil_div<int64_t>(args.desc.count, kMaskPiece);
  launch("dropout", dropout_elements, device,
         {.num_blocks = blocks_for(device, pieces), .num_threads = kThreads, .uses_pdl = true},
         stream, MaskArgs{args, keep_factor_of(args.desc.p), drop_threshold(args.desc.p)});
}

}  // namespace mp::MP_TARGET
