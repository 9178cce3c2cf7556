// D = epilogue(op(A) op(B)) for m or n of at most 16: bound by the bytes of the larger operand.
//
// The product is y[v][x] = sum over k of vectors[v][k] matrix[x][k].  Either operand can be the
// matrix, in both layouts.  A thread owns 8 consecutive x, all vectors of its group and every
// k_splits-th step of kK elements along k.  A step of the matrix is eight 16-byte loads, issued
// while the previous step is multiplied: 8 rows of kK elements if k is contiguous, kK rows of 8 x
// otherwise.  After a transpose in registers both cases are equal.  The vectors are staged in
// shared memory as fp32; the next stage is loaded while the current one is used.
//
// Finally the k_splits sums are added in shared memory, in a fixed order, and stored by
// EpilogueWriter.  More than 8 vectors are handled by two groups of threads that read the same
// elements of the matrix at the same time, so that the second group finds them in L1.
#include <bit>

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/simt/half.h"

namespace mp::MP_TARGET {

/// Threads of a block: vector_groups x x_threads x k_splits, all powers of two.
struct GemvSplit {
  static constexpr int kThreads = 256;

  int vector_groups;
  int k_splits;

  MP_HD int group_threads() const { return kThreads / vector_groups; }
  MP_HD int x_threads() const { return group_threads() / k_splits; }
  MP_HD int tile_x() const { return x_threads() * kVec; }
};

struct GemvArgs {
  GemmProblem problem;
  Operand matrix, vectors;
  int64_t extent;     ///< extent of x in the matrix
  int count;          ///< number of vectors
  bool vectors_by_k;  ///< k is the contiguous dimension of the vectors
  bool x_is_row;      ///< y[v][x] is D[x][v], else D[v][x]
  GemvSplit split;
  int log2_row;   ///< log2 of the elements of a row of D that a block stores in a phase
  int64_t tiles;  ///< tiles per batch item
};

/// Constants of a kernel instance.  kByK: k is the contiguous dimension of the matrix.
template <class T, bool kByK_, int kVectors_>
struct GemvTraits {
  static constexpr bool kByK = kByK_;
  static constexpr int kVectors = kVectors_;                ///< vectors per thread
  static constexpr int kK = 16 / sizeof(T);                 ///< elements of k per step
  static constexpr int kMinBlocks = kVectors == 1 ? 2 : 1;  ///< per SM; bounds the registers

  /// Elements of a vector that a thread loads for a stage, of kVectors x kPerVector in total.
  static constexpr int kPerVector = kVectors == 1 ? kK : kK / 2;
  static MP_HD int stage_k(const GemvSplit &split) { return kPerVector * split.group_threads(); }

  /// Pitch of a step in a stage, [group][step][k in step][vector].  The padding places the steps
  /// that neighboring lanes read in different banks.
  static constexpr int kStepPitch = kK * kVectors + 4;
  static constexpr int kStageElems = kPerVector * GemvSplit::kThreads / kK * kStepPitch;

  /// Vectors per group whose sums are added at a time, as [plane][way][x] in shared memory, padded
  /// likewise.  A way is one of the k_splits parts of k.
  static constexpr int kPhase = kVectors < 4 ? kVectors : 4;
  static constexpr int kMinXThreads = kByK ? (kVectors == 1 ? 1 : 2) : 4;
  static constexpr int kPad = 4;
  static constexpr int kSumElems =
      kPhase * GemvSplit::kThreads * (kMinXThreads * kVec + kPad) / kMinXThreads;

  static constexpr int kSmemQuads = max_of(kStageElems, kSumElems) / 4;
};

/// The eight loads of a step.
template <class T, bool kByK>
struct GemvStep {
  static constexpr int kK = 16 / sizeof(T);
  static constexpr int kRuns = kByK ? kVec : kK;
  static constexpr int kRunElems = kByK ? kK : kVec;
  static constexpr int kPacks = kRunElems / kK;

  // One-dimensional: g++ 13 falsely warns of writes beyond the first row of two dimensions.
  Packed<T> packs[kRuns * kPacks];
  MP_DEVICE static int at(int run, int i) { return run * kPacks + i; }

  /// Loads from 16-byte aligned addresses.  Rows beyond `last_run` repeat row `last_run`.
  MP_DEVICE void load(const T *first, int64_t ld, int last_run) {
    MP_UNROLL
    for (int run = 0; run < kRuns; run++) {
      const T *const p = first + min_of(run, last_run) * ld;
      unroll<kPacks>([&](int i) { packs[at(run, i)].load(p + i * kK); });
    }
  }

  /// Loads from any address; elements beyond `runs` rows of `valid` elements are zero.  Each
  /// iteration loads two rows and moves the previous ones up: all loads at once would need too many
  /// registers.
  MP_DEVICE void load_elements(const T *first, int64_t ld, int runs, int valid) {
    MP_NO_UNROLL
    for (int run = 0; run < kRuns; run += 2) {
      MP_UNROLL
      for (int i = 0; i < kPacks; i++) {
        MP_UNROLL
        for (int r = 0; r + 2 < kRuns; r++) packs[at(r, i)] = packs[at(r + 2, i)];
        MP_UNROLL
        for (int r = 0; r < 2; r++) {
          const T *const p = first + (run + r) * ld + i * kK;
          packs[at(kRuns - 2 + r, i)].load_elements(p, run + r < runs ? valid - i * kK : 0);
        }
      }
    }
  }

  /// Converts the step to fp32: out[k][x].
  MP_DEVICE void widen_to(float (&out)[kK][kVec]) const {
    float runs[kRuns][kRunElems];
    unroll<kRuns, kPacks>([&](int run, int i) { widen(runs[run] + i * kK, packs[at(run, i)]); });
    if constexpr (kByK) {
      transpose(out, runs);
    } else {
      unroll<kK, kVec>([&](int k, int x) { out[k][x] = runs[k][x]; });
    }
  }
};

/// Loads stages of a group's vectors into registers and stores them in shared memory.
template <class T, class Traits>
class GemvVectors {
 public:
  MP_DEVICE GemvVectors(const GemvArgs &args, int64_t item, int group, int thread, float *smem)
      : args_(args), smem_(smem + group * Traits::kStageElems / args.split.vector_groups) {
    const T *const base =
        static_cast<const T *>(item_address(args.vectors, args.problem.dtype_ab, item));
    const int threads = args.split.group_threads();
    const int64_t ld = args.vectors.ld;
    // Neighboring lanes load neighboring elements of global memory.
    if (args.vectors_by_k) {
      first_ = {group * Traits::kVectors, thread};
      inner_ = {0, threads};
      outer_ = {1, 0};
      source_ = base + first_.vector * ld + first_.k;
      inner_source_ = threads;
      outer_source_ = ld;
    } else {
      const int rows = threads / Traits::kVectors;
      first_ = {group * Traits::kVectors + thread % Traits::kVectors, thread / Traits::kVectors};
      inner_ = {0, rows};
      outer_ = {0, rows * Traits::kPerVector};
      source_ = base + first_.k * ld + first_.vector;
      inner_source_ = inner_.k * ld;
      outer_source_ = outer_.k * ld;
    }
    k_source_ = args.vectors_by_k ? 1 : ld;
    smem_ += stage_index(first_.vector - group * Traits::kVectors, first_.k);
  }

  MP_DEVICE void fetch(int64_t k0) {
    if (k0 >= args_.problem.k) return;
    const T *const source = source_ + k0 * k_source_;
    const int left =
        static_cast<int>(min_of<int64_t>(args_.problem.k - k0, Traits::stage_k(args_.split)));
    unroll<Traits::kVectors, Traits::kPerVector>([&](int o, int i) {
      const bool inside = first_.vector + o * outer_.vector < args_.count &&
                          first_.k + o * outer_.k + i * inner_.k < left;
      values_[o][i] = inside ? source[o * outer_source_ + i * inner_source_] : T{};
    });
  }

  MP_DEVICE void put() const {
    unroll<Traits::kVectors, Traits::kPerVector>([&](int o, int i) {
      smem_[o * stage_index(outer_.vector, outer_.k) + i * stage_index(0, inner_.k)] =
          to_float(values_[o][i]);
    });
  }

 private:
  struct StageCoord {
    int vector, k;
  };
  static MP_DEVICE int stage_index(int vector, int k) {
    return k / Traits::kK * Traits::kStepPitch + k % Traits::kK * Traits::kVectors + vector;
  }

  const GemvArgs &args_;
  float *smem_;
  const T *source_;
  int64_t k_source_, inner_source_, outer_source_;
  StageCoord first_, inner_, outer_;
  T values_[Traits::kVectors][Traits::kPerVector];
};

template <class T, class Traits>
class Gemv {
 public:
  MP_DEVICE Gemv(const GemvArgs &args, int64_t number, float *smem)
      : args_(args),
        split_(args.split),
        item_(number / args.tiles),
        tile_x0_(number % args.tiles * split_.tile_x()),
        group_(thread_index() / split_.group_threads()),
        smem_(smem),
        vectors_(args, item_, group_, thread_index() % split_.group_threads(), smem) {
    // Lanes follow the contiguous dimension of the matrix.
    const int thread = thread_index() % split_.group_threads();
    way_ = Traits::kByK ? thread % split_.k_splits : thread / split_.x_threads();
    x_ = kVec * (Traits::kByK ? thread / split_.k_splits : thread % split_.x_threads());
    const int64_t first_x = tile_x0_ + x_;
    const int64_t ld = args.matrix.ld;
    const T *const base =
        static_cast<const T *>(item_address(args.matrix, args.problem.dtype_ab, item_));
    vectorized_ = is_aligned_16(base) && ld % Traits::kK == 0;
    valid_x_ =
        static_cast<int>(min_of<int64_t>(max_of<int64_t>(args.extent - first_x, 0), int64_t{kVec}));
    source_ = valid_x_ == 0 ? base : base + (Traits::kByK ? first_x * ld : first_x);
  }

  MP_DEVICE void run() {
    clear_sums();
    prefetch_c();
    const int stage_k = Traits::stage_k(split_);
    fetch_step(way_ * Traits::kK);
    vectors_.fetch(0);
    for (int64_t k0 = 0; k0 < args_.problem.k; k0 += stage_k) {
      vectors_.put();
      block_sync();
      vectors_.fetch(k0 + stage_k);
      multiply_stage(k0, min_of<int64_t>(stage_k, args_.problem.k - k0));
      block_sync();
    }
    store_tile();
  }

 private:
  using Step = GemvStep<T, Traits::kByK>;

  MP_DEVICE void clear_sums() {
    unroll<Traits::kVectors, kVec>([&](int v, int i) { sum_[v][i] = 0.0f; });
  }

  /// Issues the loads of elements [k, k + kK) of the matrix; elements outside are zero.
  MP_DEVICE void fetch_step(int64_t k) {
    const int left = static_cast<int>(min_of<int64_t>(args_.problem.k - k, Traits::kK));
    if (left <= 0 || valid_x_ == 0) return;
    const int64_t ld = args_.matrix.ld;
    const T *const first = source_ + (Traits::kByK ? k : k * ld);
    const bool whole = left == Traits::kK && (Traits::kByK || valid_x_ == kVec);
    // An x beyond the matrix repeats the last row: its sums are not stored.
    if (vectorized_ && whole)
      next_.load(first, ld, Traits::kByK ? valid_x_ - 1 : Traits::kK - 1);
    else if (Traits::kByK)
      next_.load_elements(first, ld, valid_x_, left);
    else
      next_.load_elements(first, ld, left, valid_x_);
  }

  MP_DEVICE void multiply_stage(int64_t k0, int64_t stage_k) {
    const int step_k = split_.k_splits * Traits::kK;
    const float *vectors =
        smem_ + group_ * Traits::kStageElems / split_.vector_groups + way_ * Traits::kStepPitch;
    MP_NO_UNROLL
    for (int k = way_ * Traits::kK; k < stage_k; k += step_k) {
      const Step step = next_;
      fetch_step(k0 + k + step_k);
      multiply_step(step, vectors);
      vectors += split_.k_splits * Traits::kStepPitch;
    }
  }

  MP_DEVICE void multiply_step(const Step &step, const float *vectors) {
    if (valid_x_ == 0) return;
    float matrix[Traits::kK][kVec];
    step.widen_to(matrix);
    MP_UNROLL
    for (int i = 0; i < Traits::kK * Traits::kVectors; i += 4) {
      const Quad four = *reinterpret_cast<const Quad *>(vectors + i);
      MP_UNROLL
      for (int j = 0; j < 4; j++)
        multiply_add8(sum_[(i + j) % Traits::kVectors], four.x[j],
                      matrix[(i + j) / Traits::kVectors]);
    }
  }

  /// Stores kPhase vectors of each group at a time.  Not unrolled; the sums move up (wmma_loop.h).
  MP_DEVICE void store_tile() {
    EpilogueWriter writer(args_.problem.out, item_);
    MP_NO_UNROLL
    for (int phase = 0; phase < Traits::kVectors; phase += Traits::kPhase) {
      if (phase > 0) block_sync();
      put_sums();
      block_sync();
      add_ways();
      block_sync();
      store_phase(phase, writer);
      MP_UNROLL
      for (int v = 0; v + Traits::kPhase < Traits::kVectors; v++) {
        unroll<kVec>([&](int i) { sum_[v][i] = sum_[v + Traits::kPhase][i]; });
      }
    }
    writer.finish();
  }

  /// Pitch of the sums, [plane][way][x]; a plane is a vector of a group.
  MP_DEVICE int row_pitch() const { return split_.tile_x() + Traits::kPad; }
  MP_DEVICE float *sums(int plane, int way) const {
    return smem_ + (plane * split_.k_splits + way) * row_pitch();
  }
  MP_DEVICE int num_planes() const { return split_.vector_groups * Traits::kPhase; }

  /// Stores the sums to shared memory.  Eight lanes have vectors of several ways, which the padding
  /// places in different banks.  The order of store_smem_run, for lanes with neighboring vectors,
  /// would undo this.
  MP_DEVICE void put_sums() const {
    MP_UNROLL
    for (int v = 0; v < Traits::kPhase; v++) {
      auto *const quads = reinterpret_cast<Quad *>(sums(group_ * Traits::kPhase + v, way_) + x_);
      MP_UNROLL
      for (int q = 0; q < kVec; q += kQuad)
        quads[q / kQuad] = {sum_[v][q], sum_[v][q + 1], sum_[v][q + 2], sum_[v][q + 3]};
    }
  }

  /// Returns the number of threads per element.  If there are fewer elements than threads, several
  /// threads add a part of the ways each.
  MP_DEVICE int parts() const {
    return min_of(split_.k_splits, max_of(GemvSplit::kThreads / num_elements(), 1));
  }

  /// Adds the ways of each part; the sum replaces its first way.
  MP_DEVICE void add_ways() const {
    const int tile_x = split_.tile_x(), pitch = row_pitch();
    const int elems = num_planes() * tile_x, part_ways = split_.k_splits / parts();
    for (int i = thread_index(); i < elems * parts(); i += GemvSplit::kThreads) {
      const int elem = i % elems, part = i / elems;
      float *const first = sums(elem / tile_x, part * part_ways) + elem % tile_x;
      float sum = first[0];
      for (int way = 1; way < part_ways; way++) sum += first[way * pitch];
      first[0] = sum;
    }
  }

  /// Element of D.
  struct Element {
    int plane, x;
    int64_t row, col;
    bool exists;
  };
  /// Returns element `i` of num_elements() in a phase.  Adjacent ones are adjacent in a row of D.
  MP_DEVICE Element element(int phase, int i) const {
    const int row = i >> args_.log2_row, column = i & ((1 << args_.log2_row) - 1);
    const int x = args_.x_is_row ? row : column, plane = args_.x_is_row ? column : row;
    const int vector = plane / Traits::kPhase * Traits::kVectors + phase + plane % Traits::kPhase;
    const int64_t x_of_d = tile_x0_ + x;
    return {plane, x, args_.x_is_row ? x_of_d : vector, args_.x_is_row ? vector : x_of_d,
            x_of_d < args_.extent && vector < args_.count};
  }
  MP_DEVICE int num_elements() const { return num_planes() * split_.tile_x(); }

  /// Prefetches C into L2 before the main loop: store_phase has few loads in flight.
  MP_DEVICE void prefetch_c() const {
    const Output &out = args_.problem.out;
    if (out.beta == 0.0f) return;
    const auto *const c = static_cast<const char *>(item_address(out.c, out.dtype, item_));
    MP_NO_UNROLL
    for (int phase = 0; phase < Traits::kVectors; phase += Traits::kPhase) {
      MP_NO_UNROLL
      for (int i = thread_index(); i < num_elements(); i += GemvSplit::kThreads) {
        const Element e = element(phase, i);
        if (e.exists) prefetch_l2(c + (e.row * out.c.ld + e.col) * dtype_bytes(out.dtype));
      }
    }
  }

  /// Stores D.  Vectors would take more code and save little, because a block stores few elements.
  MP_DEVICE void store_phase(int phase, EpilogueWriter &writer) const {
    const int part_ways = split_.k_splits / parts();
    MP_NO_UNROLL
    for (int i = thread_index(); i < num_elements(); i += GemvSplit::kThreads) {
      const Element e = element(phase, i);
      if (!e.exists) continue;
      float z[1] = {};
      MP_NO_UNROLL
      for (int way = 0; way < split_.k_splits; way += part_ways) z[0] += sums(e.plane, way)[e.x];
      writer.write(e.row, e.col, z, 1);
    }
  }

  const GemvArgs &args_;
  const GemvSplit split_;
  const int64_t item_, tile_x0_;
  const int group_;
  float *const smem_;
  GemvVectors<T, Traits> vectors_;
  int way_, x_, valid_x_;
  bool vectorized_;
  const T *source_;
  Step next_{};
  float sum_[Traits::kVectors][kVec];
};

template <class T, class Traits>
MP_KERNEL(GemvSplit::kThreads, Traits::kMinBlocks)
gemv(MP_PARAM(GemvArgs) args) {
  MP_SHARED(Quad, smem, [Traits::kSmemQuads]);
  const int64_t num_work_tiles = args.tiles * args.problem.out.batch_count;
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
    if (number != block_index()) block_sync();  // the previous epilogue still uses smem
    Gemv<T, Traits>(args, number, smem[0].x).run();
  }
}

// ---------------------------------------------------------------------------- launch

namespace {

/// Splits k just enough to fill the device: a wider tile reads the vectors less often and has fewer
/// sums to add.
template <class Traits>
GemvSplit split_of(const GemvArgs &args, int32_t num_sms) {
  constexpr int kFullLine = 8;   // lanes x 16 bytes: 128 bytes along k
  constexpr double kFull = 0.9;  // fraction of the SMs
  GemvSplit split{args.count > Traits::kVectors ? 2 : 1, 1};
  const int64_t steps = ceil_div<int64_t>(args.problem.k, Traits::kK);
  const int most = split.group_threads() / Traits::kMinXThreads;
  const auto blocks = [&] {
    return static_cast<double>(ceil_div<int64_t>(args.extent, split.tile_x()) *
                               args.problem.out.batch_count);
  };
  const auto can_double = [&] { return split.k_splits < most && split.k_splits < steps; };
  if constexpr (Traits::kByK)
    while (can_double() && split.k_splits < kFullLine) split.k_splits *= 2;
  while (can_double() && blocks() < kFull * num_sms * Traits::kMinBlocks) split.k_splits *= 2;
  return split;
}

template <class T, bool kByK, int kVectors>
void launch_instance(const GemmPlan &plan, const Device &device, GemvArgs &args,
                     mp_stream_t stream) {
  using Traits = GemvTraits<T, kByK, kVectors>;
  args.split = split_of<Traits>(args, plan.num_sms);
  const int row = args.x_is_row ? args.split.vector_groups * Traits::kPhase : args.split.tile_x();
  args.log2_row = std::countr_zero(static_cast<unsigned>(row));
  args.tiles = ceil_div<int64_t>(args.extent, args.split.tile_x());
  const int64_t blocks = min_of(args.tiles * args.problem.out.batch_count, kMaxBlocks);
  launch(plan.name, gemv<T, Traits>, device, {blocks, GemvSplit::kThreads}, stream, args);
}

template <class T, bool kByK>
void launch_vectors(const GemmPlan &plan, const Device &device, GemvArgs &args,
                    mp_stream_t stream) {
  if (args.count == 1) return launch_instance<T, kByK, 1>(plan, device, args, stream);
  if (args.count <= 4) return launch_instance<T, kByK, 4>(plan, device, args, stream);
  return launch_instance<T, kByK, 8>(plan, device, args, stream);
}

}  // namespace

void launch_gemv(const GemmPlan &plan, const Device &device, const GemmArgs &gemm,
                 mp_stream_t stream) {
  const GemmProblem &p = gemm.problem;
  const bool a_by_k = p.op_a == MP_OP_N, b_by_k = p.op_b == MP_OP_T;
  const bool a_is_matrix = p.out.m > p.out.n;
  GemvArgs args{};
  args.problem = p;
  args.matrix = a_is_matrix ? p.a : p.b;
  args.vectors = a_is_matrix ? p.b : p.a;
  args.extent = a_is_matrix ? p.out.m : p.out.n;
  args.count = static_cast<int>(a_is_matrix ? p.out.n : p.out.m);
  args.vectors_by_k = a_is_matrix ? b_by_k : a_by_k;
  args.x_is_row = a_is_matrix;
  const bool matrix_by_k = a_is_matrix ? a_by_k : b_by_k;
  with_type(p.dtype_ab, [&]<class T>(std::type_identity<T>) {
    const auto launch_layout = matrix_by_k ? launch_vectors<T, true> : launch_vectors<T, false>;
    launch_layout(plan, device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
