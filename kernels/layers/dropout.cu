// Dropout, forward and backward: y = x mask / (1 - p).  Both passes generate the mask on the fly.
#include "kernels/layers/layer_args.h"
#include "kernels/simt/dropout.h"
#include "kernels/tensors/chunks.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kRuns = 2;
constexpr int kPiece = kThreads * kRuns * kVec;  // elements per block and step

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
  MP_UNROLL
  for (int run = 0; run < Runs::kRuns; run++) {
    MP_UNROLL
    for (int i = 0; i < kVec; i += kQuad) {
      const uint64_t quad = static_cast<uint64_t>(runs.at(run, i)) / kQuad;
      drop_quad(x[run] + i, draw_quad(args.call.desc.seed, offset, 0, quad), args.threshold,
                args.keep_factor);
    }
  }
}

MP_KERNEL(kThreads, 4)
dropout_elements(MP_PARAM(MaskArgs) args) {
  wait_for_previous_kernel();
  const mp_dropout_desc_t &desc = args.call.desc;
  const bool is_aligned = is_aligned_16(args.call.x) && is_aligned_16(args.call.y);
  const uint64_t offset = args.call.offset != nullptr ? *args.call.offset : 0;
  for (int64_t begin = block_index() * kPiece; begin < desc.count; begin += grid_size() * kPiece) {
    const int count = static_cast<int>(min_of<int64_t>(desc.count - begin, kPiece));
    for_each_vector<kThreads, kRuns>(begin, count, is_aligned, [&](auto runs) {
      float x[runs.kRuns][kVec];
      load_vectors(x, runs, desc.dtype, args.call.x);
      if (args.keep_factor != 0.0f) drop(args, offset, runs, x);
      store_vectors(runs, desc.dtype, args.call.y, x);
    });
  }
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
  const int64_t pieces = ceil_div<int64_t>(args.desc.count, kPiece);
  launch("dropout", dropout_elements, device,
         {.num_blocks = blocks_for(device, pieces), .num_threads = kThreads, .uses_pdl = true},
         stream, MaskArgs{args, keep_factor_of(args.desc.p), drop_threshold(args.desc.p)});
}

}  // namespace mp::MP_TARGET
