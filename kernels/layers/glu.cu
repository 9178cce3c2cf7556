// Gated linear units, and sums of rows that are a period apart.
//
// A thread processes the gate and the up half of the same elements, so dx may be x.  All loads of
// both halves are issued before the first result is used.
#include "kernels/layers/layer_args.h"
#include "kernels/simt/activation.h"
#include "kernels/tensors/runs.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

struct GradientArgs : GluArgs {
  mp_activation_t derivative;  ///< kind of multiply_by_derivative
};

/// Activations and their derivatives.
constexpr mp_activation_t kDerivatives[][2] = {
    {MP_ACT_RELU, MP_ACT_DRELU}, {MP_ACT_GELU, MP_ACT_DGELU}, {MP_ACT_SIGMOID, MP_ACT_DSIGMOID},
    {MP_ACT_TANH, MP_ACT_DTANH}, {MP_ACT_SILU, MP_ACT_DSILU}, {MP_ACT_GELU_ERF, MP_ACT_DGELU_ERF}};

/// halves[0] and [1] = gate and up of `valid` elements of row `row`.
template <class T>
MP_DEVICE void load_halves(float (&halves)[2][kVec], const GluArgs &args, int64_t row,
                           int64_t column, int valid) {
  const T *const gate = static_cast<const T *>(args.x) + row * args.desc.ld_x + column;
  load_rows(halves, gate, args.desc.columns, 1, 2, valid);
}

template <class T>
MP_KERNEL(kRowRunThreads, 8)
glu_rows(MP_PARAM(GluArgs) args) {
  wait_for_previous_kernel();
  const mp_glu_desc_t &desc = args.desc;
  for_each_row_run(desc.rows, desc.columns, [&](int64_t row, int64_t column, int valid) {
    float x[2][kVec];
    load_halves<T>(x, args, row, column, valid);
    activate(desc.activation, x[0]);
    unroll<kVec>([&](int i) { x[0][i] *= x[1][i]; });
    store_vector(static_cast<T *>(args.y) + row * desc.ld_y + column, x[0], valid);
  });
}

template <class T>
MP_KERNEL(kRowRunThreads, 8)
glu_gradient_rows(MP_PARAM(GradientArgs) args) {
  wait_for_previous_kernel();
  const mp_glu_desc_t &desc = args.desc;
  AmaxTracker tracker(args.stats);
  for_each_row_run(desc.rows, desc.columns, [&](int64_t row, int64_t column, int valid) {
    float x[2][kVec], dgate[kVec], dup[kVec];
    load_vector(dup, static_cast<const T *>(args.dy) + row * desc.ld_y + column, valid);
    load_halves<T>(x, args, row, column, valid);
    unroll<kVec>([&](int i) { dgate[i] = dup[i] * x[1][i]; });
    multiply_by_derivative(args.derivative, x[0], dgate);
    activate(desc.activation, x[0]);
    unroll<kVec>([&](int i) { dup[i] *= x[0][i]; });
    T *const out = static_cast<T *>(args.dx) + row * desc.ld_x + column;
    store_vector(out, dgate, valid);
    store_vector(out + desc.columns, dup, valid);
    tracker.see<T>(dgate, valid);
    tracker.see<T>(dup, valid);
  });
  tracker.finish();
}

}  // namespace

void glu_forward(const Device &device, const GluArgs &args, mp_stream_t stream) {
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_row_runs("glu_forward", glu_rows<T>, device, args.desc.rows, args.desc.columns,
                    kBlocksOfFullSm, args, stream);
  });
}

void glu_backward(const Device &device, const GluArgs &call, mp_stream_t stream) {
  GradientArgs args{call, MP_ACT_NONE};
  for (const auto &[activation, derivative] : kDerivatives)
    if (activation == call.desc.activation) args.derivative = derivative;
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_row_runs("glu_backward", glu_gradient_rows<T>, device, args.desc.rows, args.desc.columns,
                    kBlocksOfFullSm, args, stream);
  });
}

// ---------------------------------------------------------------------------- sums of rows

namespace {

constexpr int kRowsAtOnce = 4;

/// Sums the rows row, row + period, ... in ascending order.
template <class T>
MP_KERNEL(kRowRunThreads, 4)
sum_repetitions(MP_PARAM(SumRowsArgs) args) {
  wait_for_previous_kernel();
  const mp_sum_rows_desc_t &desc = args.desc;
  AmaxTracker tracker(args.stats);
  for_each_row_run(desc.period, desc.columns, [&](int64_t row, int64_t column, int valid) {
    float sum[kVec] = {};
    const int64_t count = row < desc.rows ? (desc.rows - row - 1) / desc.period + 1 : 0;
    // The step is used only if there is a second row, so that its product does not overflow.
    const int64_t step = count > 1 ? desc.period * desc.ld_x : 0;
    const T *const first =
        static_cast<const T *>(args.x) + (count > 0 ? row * desc.ld_x : 0) + column;
    for (int64_t done = 0; done < count; done += kRowsAtOnce) {
      float x[kRowsAtOnce][kVec];
      load_rows(x, first + done * step, step, 1, count - done, valid);
      add_rows(sum, x);
    }
    const int64_t at = row * desc.ld_sum + column;
    if (desc.beta != 0.0f) {
      float old[kVec];
      load_vector(old, desc.dtype_sum, args.sum, at, valid);
      unroll<kVec>([&](int i) { sum[i] = fmaf(desc.beta, old[i], sum[i]); });
    }
    store_vector(desc.dtype_sum, args.sum, at, sum, valid);
    tracker.see(desc.dtype_sum, sum, valid);
  });
  tracker.finish();
}

}  // namespace

void sum_rows(const Device &device, const SumRowsArgs &args, mp_stream_t stream) {
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_row_runs("sum_rows", sum_repetitions<T>, device, args.desc.period, args.desc.columns,
                    kBlocksOfFullSm, args, stream);
  });
}

}  // namespace mp::MP_TARGET
