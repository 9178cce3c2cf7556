// Elementwise scaling, out[i] = round(in[i] * factor): mp_cast and mp_scale_loss on arrays, the
// factors of mp_grads_all_reduce on lists.
#include "kernels/tensors/lists.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kRuns = 4;
constexpr int kPiece = kThreads * kRuns * kVec;  // elements per block and iteration

struct ArrayArgs {
  const void *in;
  void *out;
  mp_dtype_t in_dtype, out_dtype;
  int64_t count;
  const float *factor;  ///< NULL = 1
};

template <int kRuns>
MP_DEVICE void multiply_runs(float (&x)[kRuns][kVec], float factor) {
  unroll<kRuns, kVec>([&](int run, int i) { x[run][i] *= factor; });
}

MP_KERNEL(kThreads, 4)
scale_array(MP_PARAM(ArrayArgs) args) {
  const bool is_aligned = is_aligned_16(args.in) && is_aligned_16(args.out);
  for (int64_t begin = block_index() * kPiece; begin < args.count; begin += grid_size() * kPiece) {
    const int count = static_cast<int>(min_of<int64_t>(args.count - begin, kPiece));
    for_each_vector<kThreads, kRuns>(begin, count, is_aligned, [&](auto runs) {
      float x[runs.kRuns][kVec];
      load_vectors(x, runs, args.in_dtype, args.in);
      if (args.factor != nullptr) multiply_runs(x, *args.factor);
      store_vectors(runs, args.out_dtype, args.out, x);
    });
  }
}

struct MultiplyArgs {
  TensorList list;
  float factor;
};

MP_KERNEL(kThreads, 4)
multiply_list(MP_PARAM(MultiplyArgs) args) {
  for (int64_t c = block_index(); c < args.list.num_chunks; c += grid_size()) {
    const ChunkRange range = chunk_range(args.list, c);
    const mp_dtype_t dtype = dtype_of(args.list, range.tensor);
    void *const data = data_of(args.list, range.tensor);
    for_each_vector<kThreads, kRuns>(range.begin, range.count, is_aligned_16(data), [&](auto runs) {
      float x[runs.kRuns][kVec];
      load_vectors(x, runs, dtype, data);
      multiply_runs(x, args.factor);
      store_vectors(runs, dtype, data, x);
    });
  }
}

void launch_scale_array(const char *name, const Device &device, const ArrayArgs &args,
                        mp_stream_t stream) {
  const int64_t pieces = ceil_div<int64_t>(args.count, kPiece);
  launch(name, scale_array, device, {blocks_for(device, pieces), kThreads}, stream, args);
}

}  // namespace

void cast(const Device &device, const void *src, mp_dtype_t dtype_src, void *dst,
          mp_dtype_t dtype_dst, int64_t count, mp_stream_t stream) {
  launch_scale_array("cast", device, {src, dst, dtype_src, dtype_dst, count, nullptr}, stream);
}

void scale_loss(const Device &device, const void *loss, void *out, mp_dtype_t dtype, int64_t count,
                const float *scale, mp_stream_t stream) {
  launch_scale_array("scale_loss", device, {loss, out, dtype, dtype, count, scale}, stream);
}

void multiply(const Device &device, const TensorList &list, float factor, mp_stream_t stream) {
  launch("multiply", multiply_list, device, {blocks_for(device, list.num_chunks), kThreads}, stream,
         MultiplyArgs{list, factor});
}

}  // namespace mp::MP_TARGET
