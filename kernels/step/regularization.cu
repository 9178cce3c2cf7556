// Loss of the regularizers.  The sums of |w| and w^2 of a chunk are computed in fp32 and multiplied
// by the tensor's coefficients in fp64.  The last block adds the chunks in fp64, in a fixed order.
#include "kernels/simt/reduce.h"
#include "kernels/step/step_args.h"
#include "kernels/step/step_tensors.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

struct RegularizationArgs {
  OptimizerArgs optimizer;
  ReduceScratch scratch;
  float *loss;
};

MP_DEVICE void measure_chunk(const RegularizationArgs &args, int64_t number) {
  const OptimizerArgs &o = args.optimizer;
  const ChunkRange range = chunk_range(o.master, number);
  const float *const master = data_of<const float>(o.master, range.tensor);
  float sum = 0.0f, squares = 0.0f;
  constexpr int kRuns = kVectorsInFlight<float>;
  for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned_16(master), [&](auto runs) {
    float w[runs.kRuns][kVec];
    runs.load(w, master);
    MP_UNROLL
    for (int run = 0; run < runs.kRuns; run++) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) {
        sum += fabsf(w[run][i]);
        squares = fmaf(w[run][i], w[run][i], squares);
      }
    }
  });
  sum = block_reduce<kThreads, Sum>(sum);
  squares = block_reduce<kThreads, Sum>(squares);
  if (thread_index() != 0) return;
  const mp_param_group_t hyper = tensor_hyper(o, range.tensor);
  // A coefficient of 0 excludes a tensor, whatever its weights.
  double loss = 0.0;
  if (hyper.l1 != 0.0f) loss += static_cast<double>(hyper.l1) * static_cast<double>(sum);
  if (hyper.l2 != 0.0f) loss += static_cast<double>(hyper.l2) * static_cast<double>(squares);
  args.scratch.sum_squares[number] = loss;
}

MP_KERNEL(kThreads, 4)
measure_master(MP_PARAM(RegularizationArgs) args) {
  const int64_t num_chunks = args.optimizer.master.num_chunks;
  for (int64_t c = block_index(); c < num_chunks; c += grid_size()) measure_chunk(args, c);
  if (!arrive_last(args.scratch.blocks_done)) return;
  double loss = 0.0;
  for (int64_t c = thread_index(); c < num_chunks; c += kThreads)
    loss += args.scratch.sum_squares[c];
  loss = block_reduce<kThreads, Sum>(loss);
  if (thread_index() == 0) *args.loss = static_cast<float>(loss);
}

}  // namespace

void regularization(const Device &device, const OptimizerArgs &optimizer,
                    const ReduceScratch &scratch, float *loss, mp_stream_t stream) {
  const RegularizationArgs args{optimizer, scratch, loss};
  launch("regularization", measure_master, device,
         {blocks_for(device, optimizer.master.num_chunks), kThreads}, stream, args);
}

}  // namespace mp::MP_TARGET
