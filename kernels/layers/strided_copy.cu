// Copies of views: y = alpha x + beta y.
//
// A vector is up to kVec consecutive elements of the last dimension.  The other dimensions are
// computed from its row number, once per vector.
#include "kernels/layers/layer_args.h"
#include "kernels/tensors/runs.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

template <class T>
MP_DEVICE void load_strided(float (&x)[kVec], const T *first, int64_t stride, int valid) {
  if (stride == 1) return load_vector(x, first, valid);
  unroll<kVec>([&](int i) { x[i] = i < valid ? to_float(first[i * stride]) : 0.0f; });
}

template <class T>
MP_DEVICE void store_strided(T *first, int64_t stride, const float (&x)[kVec], int valid) {
  if (stride == 1) return store_vector(first, x, valid);
  unroll<kVec>([&](int i) {
    if (i < valid) first[i * stride] = round_to<T>(x[i]);
  });
}

MP_HD int64_t num_rows(const mp_strided_copy_desc_t &desc) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < desc.rank; d++) rows *= desc.extent[d];
  return rows;
}

template <class T>
MP_KERNEL(kRowRunThreads, 8)
copy_strided(MP_PARAM(StridedCopyArgs) args) {
  wait_for_previous_kernel();
  const mp_strided_copy_desc_t &desc = args.desc;
  const int last = desc.rank - 1;
  AmaxTracker tracker(args.stats);
  for_each_row_run(num_rows(desc), desc.extent[last], [&](int64_t row, int64_t column, int valid) {
    int64_t x_at = column * desc.x_stride[last], y_at = column * desc.y_stride[last];
    for (int d = last - 1; d >= 0; d--) {
      const int64_t outer = row / desc.extent[d], index = row - outer * desc.extent[d];
      x_at += index * desc.x_stride[d];
      y_at += index * desc.y_stride[d];
      row = outer;
    }
    float x[kVec];
    load_strided(x, static_cast<const T *>(args.x) + x_at, desc.x_stride[last], valid);
    unroll<kVec>([&](int i) { x[i] *= desc.alpha; });
    T *const y = static_cast<T *>(args.y) + y_at;
    if (desc.beta != 0.0f) {
      float old[kVec];
      load_strided(old, static_cast<const T *>(y), desc.y_stride[last], valid);
      unroll<kVec>([&](int i) { x[i] = fmaf(desc.beta, old[i], x[i]); });
    }
    store_strided(y, desc.y_stride[last], x, valid);
    tracker.see<T>(x, valid);
  });
  tracker.finish();
}

}  // namespace

void strided_copy(const Device &device, const StridedCopyArgs &args, mp_stream_t stream) {
  const mp_strided_copy_desc_t &desc = args.desc;
  with_type(desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_row_runs("strided_copy", copy_strided<T>, device, num_rows(desc),
                    desc.extent[desc.rank - 1], kBlocksOfFullSm, args, stream);
  });
}

}  // namespace mp::MP_TARGET
