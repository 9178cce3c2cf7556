// Behind a split main loop: add the slices in order and apply the epilogue.
//
// Every element of D is summed by one thread over slices 0, 1, 2..., whatever order they were
// computed in: bitwise reproducible.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

struct SplitKArgs {
  GemmArgs gemm;
  int64_t blocks_per_item;
};

MP_DEVICE void sum_slices(const GemmArgs &args, int64_t item, int64_t row, int64_t col, int valid,
                          float (&sum)[kVec]) {
  const GemmProblem &p = args.problem;
  MP_UNROLL
  for (int i = 0; i < kVec; i++) sum[i] = 0.0f;
  for (int slice = 0; slice < static_cast<int>(args.scheduler.split_k); slice++) {
    const int64_t matrix = slice * p.batch_count + item;
    float part[kVec];
    load_run(part, args.partial_sums + (matrix * p.m + row) * p.n + col, valid);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) sum[i] += part[i];
  }
}

MP_KERNEL(kThreads, 1)
split_k_sum(MP_PARAM(SplitKArgs) args) {
  const GemmProblem &p = args.gemm.problem;
  const int64_t item = block_index() / args.blocks_per_item;
  const int64_t runs_per_row = ceil_div<int64_t>(p.n, kVec);
  const int64_t step = args.blocks_per_item * kThreads;
  EpilogueWriter writer(p, item);
  for (int64_t run = block_index() % args.blocks_per_item * kThreads + thread_index();
       run < p.m * runs_per_row; run += step) {
    const int64_t row = run / runs_per_row, col = run % runs_per_row * kVec;
    const int valid = static_cast<int>(min_of<int64_t>(p.n - col, kVec));
    float sum[kVec];
    sum_slices(args.gemm, item, row, col, valid, sum);
    writer.write(row, col, sum, valid);
  }
  writer.finish();
}

}  // namespace

void launch_split_k_sum(const Device &device, const GemmArgs &gemm, mp_stream_t stream) {
  const GemmProblem &p = gemm.problem;
  const int64_t runs = p.m * ceil_div<int64_t>(p.n, kVec);
  const int64_t most = max_of<int64_t>(kMaxBlocks / p.batch_count, 1);
  const SplitKArgs args{gemm, min_of(ceil_div<int64_t>(runs, kThreads), most)};
  launch("split_k_sum", split_k_sum, device, {args.blocks_per_item * p.batch_count, kThreads},
         stream, args);
}

}  // namespace mp::MP_TARGET
