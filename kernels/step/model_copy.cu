// mp_masters_to_model: what an optimizer step does to the 16-bit copy, by itself.
#include "kernels/step/model_copy.h"

#include "kernels/target.h"
#include "kernels/tensors/chunks.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

MP_DEVICE void copy_chunk(const ModelCopyArgs &args, int64_t number) {
  const ChunkRange range = chunk_range(args.master, number);
  void *const model = args.model.data[range.tensor];
  if (model == nullptr) return;
  const float *const master = static_cast<const float *>(args.master.data[range.tensor]);
  const mp_dtype_t dtype = dtype_of(args.model, range.tensor);
  for_each_run<kThreads>(range, [&](int64_t at, int valid) {
    float w[kVec];
    load_run(w, master + at, valid);
    store_copy(args.policy, dtype, model, at, w, valid);
  });
}

MP_KERNEL(kThreads, 1)
copy_list(MP_PARAM(ModelCopyArgs) args) {
  if (args.found_inf != nullptr && *args.found_inf != 0.0f) return;
  for (int64_t c = block_index(); c < args.master.num_chunks; c += grid_size()) copy_chunk(args, c);
}

}  // namespace

void model_copy(const Device &device, const ModelCopyArgs &args, mp_stream_t stream) {
  launch("model_copy", copy_list, device, {blocks_for(device, args.master.num_chunks), kThreads},
         stream, args);
}

}  // namespace mp::MP_TARGET
