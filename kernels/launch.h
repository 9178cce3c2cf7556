// The launch functions of one target, one declaration per entry of mp::Target (kernels.h says
// what they do); target.cu puts them into the table.
#pragma once

#include "kernels/backend.h"
#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET {

void gemm(const Device &, const GemmProblem &, const GemmChoice &, void *workspace, mp_stream_t);
void gemm_grouped(const Device &, const GemmGroup &, const GemmChoice &, void *workspace,
                  mp_stream_t);
void conv(const Device &, const ConvProblem &, const ConvChoice &, void *workspace, mp_stream_t);
void cast(const Device &, const void *src, mp_dtype_t, void *dst, mp_dtype_t, int64_t count,
          mp_stream_t);
void statistics(const Device &, const TensorList &, const ReduceScratch &,
                const StatisticsOutputs &, mp_stream_t);
void accumulate(const Device &, const AccumulateArgs &, mp_stream_t);
void multiply(const Device &, const TensorList &, float factor, mp_stream_t);
void clip_factor(const Device &, const ClipArgs &, mp_stream_t);
void scale_loss(const Device &, const void *loss, void *out, mp_dtype_t, int64_t count,
                const float *scale, mp_stream_t);
void scaler_update(const Device &, ScalerDevice *, const float *amax, mp_stream_t);
void agreement_before(const Device &, const AgreementArgs &, mp_stream_t);
void agreement_after(const Device &, const AgreementArgs &, mp_stream_t);
void optimizer_step(const Device &, const OptimizerArgs &, const UpdateArgs &, mp_stream_t);
void model_copy(const Device &, const ModelCopyArgs &, mp_stream_t);
void regularization(const Device &, const OptimizerArgs &, const ReduceScratch &, float *loss,
                    mp_stream_t);
void softmax_xent(const Device &, const XentArgs &, mp_stream_t);
void transpose(const Device &, const TransposeArgs &, mp_stream_t);
void pool_forward(const Device &, const PoolArgs &, mp_stream_t);
void pool_backward(const Device &, const PoolArgs &, mp_stream_t);
void batch_norm_training(const Device &, const BatchNormTrainingArgs &, mp_stream_t);
void batch_norm_inference(const Device &, const BatchNormInferenceArgs &, mp_stream_t);
void batch_norm_backward(const Device &, const BatchNormBackwardArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
