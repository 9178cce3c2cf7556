// Embedding lookup.  embedding_backward.cu computes the gradient of the table.
#include <limits>

#include "kernels/layers/layer_args.h"
#include "kernels/tensors/row_vectors.h"

namespace mp::MP_TARGET {

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

MP_KERNEL(kRowRunThreads, 8)
embedding_gather(MP_PARAM(EmbeddingArgs) args) {
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.desc;
  for_each_row_run(desc.rows, desc.width, [&](int64_t row, int64_t column, int valid) {
    const int64_t index = args.indices[row];
    float x[kVec];
    if (index >= 0 && index < desc.vocabulary) {
      load_vector(x, desc.dtype, args.table, index * desc.ld_table + column, valid);
    } else {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) x[i] = kNaN;
    }
    store_vector(desc.dtype, args.out, row * desc.ld_out + column, x, valid);
  });
}

}  // namespace

void embedding_forward(const Device &device, const EmbeddingArgs &args, mp_stream_t stream) {
  launch_row_runs("embedding_gather", embedding_gather, device, args.desc.rows, args.desc.width,
                  kBlocksOfAllRows, args, stream);
}

}  // namespace mp::MP_TARGET
