// Launch of the gemv kernels: which operand is the matrix, and how a block shares its tile.
#include "kernels/gemm/gemv.h"

#include "kernels/simt/half.h"

namespace mp::MP_TARGET {

namespace {

/// Splits k just enough to fill the device: a wider tile reads the vectors less often and has fewer
/// sums to add.
template <class Traits>
GemvSplit split_of(const GemvArgs &args, const Device &device) {
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
  while (can_double() && blocks() < kFull * device.num_sms * Traits::kMinBlocks)
    split.k_splits *= 2;
  return split;
}

template <class T, bool kByK, int kVectors>
void launch_instance(const char *name, const Device &device, GemvArgs &args, mp_stream_t stream) {
  using Traits = GemvTraits<T, kByK, kVectors>;
  args.split = split_of<Traits>(args, device);
  args.tiles = ceil_div<int64_t>(args.extent, args.split.tile_x());
  const int64_t blocks = min_of(args.tiles * args.problem.out.batch_count, kMaxBlocks);
  launch(name, gemv<T, Traits>, device, {blocks, GemvSplit::kThreads}, stream, args);
}

template <class T, bool kByK>
void launch_vectors(const char *name, const Device &device, GemvArgs &args, mp_stream_t stream) {
  if (args.count == 1) return launch_instance<T, kByK, 1>(name, device, args, stream);
  if (args.count <= 4) return launch_instance<T, kByK, 4>(name, device, args, stream);
  return launch_instance<T, kByK, 8>(name, device, args, stream);
}

template <class T>
void launch_type(const char *name, const Device &device, GemvArgs &args, bool matrix_by_k,
                 mp_stream_t stream) {
  if (matrix_by_k) return launch_vectors<T, true>(name, device, args, stream);
  return launch_vectors<T, false>(name, device, args, stream);
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
  const int64_t count = a_is_matrix ? p.out.n : p.out.m;
  args.count = static_cast<int>(count);
  args.vectors_by_k = a_is_matrix ? b_by_k : a_by_k;
  args.x_is_row = a_is_matrix;
  const bool matrix_by_k = a_is_matrix ? a_by_k : b_by_k;
  with_type(p.dtype_ab, [&](auto type) {
    launch_type<typename decltype(type)::type>(plan.name, device, args, matrix_by_k, stream);
  });
}

}  // namespace mp::MP_TARGET
