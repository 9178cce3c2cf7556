// out[i] = round(in[i] * factor): mp_cast, mp_scale_loss on arrays, the factors of
// mp_grad_all_reduce on lists.
#include "kernels/tensors/chunks.h"
#include "kernels/tensors/elementwise.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

struct ArrayArgs {
  const void *in;
  void *out;
  mp_dtype_t in_dtype, out_dtype;
  int64_t count;
  const float *factor;  ///< NULL = 1
};

MP_DEVICE void multiply_run(float (&x)[kVec], float factor) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) x[i] *= factor;
}

MP_KERNEL(kThreads, 1)
scale_array(MP_PARAM(ArrayArgs) args) {
  const int64_t step = grid_size() * kThreads * kVec;
  for (int64_t i = (block_index() * kThreads + thread_index()) * kVec; i < args.count; i += step) {
    const int valid = static_cast<int>(min_of<int64_t>(args.count - i, kVec));
    float x[kVec];
    load_run(x, args.in_dtype, args.in, i, valid);
    if (args.factor != nullptr) multiply_run(x, *args.factor);
    store_run(args.out_dtype, args.out, i, x, valid);
  }
}

struct MultiplyArgs {
  TensorList list;
  float factor;
};

MP_KERNEL(kThreads, 1)
multiply_list(MP_PARAM(MultiplyArgs) args) {
  for (int64_t c = block_index(); c < args.list.num_chunks; c += grid_size()) {
    const ChunkRange range = chunk_range(args.list, c);
    const mp_dtype_t dtype = dtype_of(args.list, range.tensor);
    void *const data = args.list.data[range.tensor];
    for_each_run<kThreads>(range, [&](int64_t offset, int valid) {
      float x[kVec];
      load_run(x, dtype, data, offset, valid);
      multiply_run(x, args.factor);
      store_run(dtype, data, offset, x, valid);
    });
  }
}

void launch_scale_array(const char *name, const Device &device, const ArrayArgs &args,
                        mp_stream_t stream) {
  const int64_t pieces = ceil_div<int64_t>(args.count, kThreads * kVec);
  launch(name, scale_array, device, {blocks_for(device, pieces), kThreads}, stream, args);
}

}  // namespace

void cast(const Device &device, const void *src, mp_dtype_t src_dtype, void *dst,
          mp_dtype_t dst_dtype, int64_t count, mp_stream_t stream) {
  launch_scale_array("cast", device, {src, dst, src_dtype, dst_dtype, count, nullptr}, stream);
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
