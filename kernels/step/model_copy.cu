// mp_masters_to_model: the 16-bit copy of an optimizer step as a separate call.
#include "kernels/step/model_copy.h"

#include "kernels/step/step_args.h"
#include "kernels/tensors/chunks.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Returns the number of this thread's copies that overflowed.
template <bool kPlain>
MP_DEVICE int copy_chunk(const ModelCopyArgs &args, int64_t number, int64_t t) {
  const ChunkRange range = chunk_range(args.master, number);
  const CopyPlace place{data_of(args.model, range.tensor), dtype_of(args.model, range.tensor),
                        range.tensor, t};
  if (place.model == nullptr) return 0;
  const float *const master = data_of<const float>(args.master, range.tensor);
  const bool is_aligned = is_aligned_16(master) && is_aligned_16(place.model);
  int overflows = 0;
  constexpr int kRuns = kVectorsInFlight<float>;
  for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned, [&](auto runs) {
    float w[runs.kRuns][kVec];
    runs.load(w, master);
    overflows += store_copy<kPlain>(args.policy, place, runs, w);
  });
  return overflows;
}

template <bool kPlain>
MP_KERNEL(kThreads, 4)
copy_list(MP_PARAM(ModelCopyArgs) args) {
  if (args.found_inf != nullptr && *args.found_inf != 0.0f) return;
  const int64_t t = args.t != nullptr ? *args.t : 0;
  int64_t overflows = 0;
  for (int64_t c = block_index(); c < args.master.num_chunks; c += grid_size())
    overflows += copy_chunk<kPlain>(args, c, t);
  if constexpr (!kPlain) add_overflows(args.overflows, overflows);
}

}  // namespace

void model_copy(const Device &device, const ModelCopyArgs &args, mp_stream_t stream) {
  const auto kernel = is_plain(args.policy, args.overflows) ? copy_list<true> : copy_list<false>;
  launch("model_copy", kernel, device, {blocks_for(device, args.master.num_chunks), kThreads},
         stream, args);
}

}  // namespace mp::MP_TARGET
