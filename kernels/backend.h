// Backend: function table of one compiled copy of all kernels.
//
// nvcc and the host compiler each compile the kernels once; kernels/backend.cu collects each copy.
// capi validates, selects a kernel, fills a struct and calls through the table; its code does not
// depend on the backend.
//
// Contract of every launch: its arguments are valid; it enqueues on `stream` and returns without
// allocating or waiting.  A failure throws mp::TargetError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/device_info.h"
#include "mpcore/core.h"

namespace mp {

// Declared only: the table takes references, so it does not depend on the fields.
struct GemmProblem;
struct Output;
struct GemmGroup;
struct RaggedProblem;
struct GemmPlan;
struct ConvProblem;
struct ConvPlan;
struct TensorList;
struct ReduceScratch;
struct StatisticsOutputs;
struct ClipArgs;
struct AccumulateArgs;
struct ScalerDevice;
struct RankReductionArgs;
struct OptimizerArgs;
struct UpdateArgs;
struct ModelCopyArgs;
struct XentArgs;
struct XentCountArgs;
struct LossArgs;
struct TransposeArgs;
struct PoolArgs;
struct BatchNormArgs;
struct NormArgs;
struct PointwiseArgs;
struct SumRowsArgs;
struct GluArgs;
struct StridedCopyArgs;
struct EmbeddingArgs;
struct EmbeddingBackwardArgs;
struct DropoutArgs;
struct RopeArgs;
struct SoftmaxArgs;
struct AttentionArgs;
struct RnnProblem;

// clang-format off
/// All launches: LAUNCH(name, parameters between device and stream).
#define MP_LAUNCHES(LAUNCH)                                                                        \
  LAUNCH(gemm, const GemmProblem &, const GemmPlan &, const Workspace &)                         \
  LAUNCH(gemm_grouped, const GemmGroup &, const GemmPlan &, void *workspace)                     \
  LAUNCH(gemm_ragged, const RaggedProblem &, const GemmPlan &, void *workspace)                  \
  LAUNCH(conv, const ConvProblem &, const ConvPlan &, const Workspace &)                         \
  LAUNCH(cast, const void *src, mp_dtype_t, void *dst, mp_dtype_t, int64_t count)                  \
  LAUNCH(statistics, const TensorList &, const ReduceScratch &, const StatisticsOutputs &)         \
  LAUNCH(multiply, const TensorList &, float factor)                                               \
  LAUNCH(clip_factor, const ClipArgs &)                                                            \
  LAUNCH(accumulate, const AccumulateArgs &)                                                       \
  LAUNCH(scale_loss, const void *loss, void *out, mp_dtype_t, int64_t count, const float *scale)   \
  LAUNCH(scaler_update, ScalerDevice *, const float *amax)                                         \
  LAUNCH(pack_rank_message, const RankReductionArgs &)                                             \
  LAUNCH(unpack_rank_message, const RankReductionArgs &)                                           \
  LAUNCH(optimizer_step, const OptimizerArgs &, const UpdateArgs &)                                \
  LAUNCH(model_copy, const ModelCopyArgs &)                                                        \
  LAUNCH(regularization, const OptimizerArgs &, const ReduceScratch &, float *loss)                \
  LAUNCH(softmax_xent, const XentArgs &)                                                           \
  LAUNCH(xent_mean, const XentArgs &)                                                              \
  LAUNCH(xent_count, const XentCountArgs &)                                                        \
  LAUNCH(element_loss, const LossArgs &)                                                           \
  LAUNCH(transpose, const TransposeArgs &)                                                         \
  LAUNCH(pool_forward, const PoolArgs &)                                                           \
  LAUNCH(pool_backward, const PoolArgs &)                                                          \
  LAUNCH(batch_norm_training, const BatchNormArgs &)                                               \
  LAUNCH(batch_norm_inference, const BatchNormArgs &)                                              \
  LAUNCH(batch_norm_backward, const BatchNormArgs &)                                               \
  LAUNCH(norm_forward, const NormArgs &)                                                           \
  LAUNCH(norm_backward, const NormArgs &)                                                          \
  LAUNCH(pointwise, const PointwiseArgs &)                                                         \
  LAUNCH(sum_rows, const SumRowsArgs &)                                                            \
  LAUNCH(glu_forward, const GluArgs &)                                                             \
  LAUNCH(glu_backward, const GluArgs &)                                                            \
  LAUNCH(strided_copy, const StridedCopyArgs &)                                                    \
  LAUNCH(rnn_forward, const RnnProblem &)                                                          \
  LAUNCH(rnn_backward_data, const RnnProblem &)                                                    \
  LAUNCH(rnn_backward_weights, const RnnProblem &)                                                 \
  LAUNCH(embedding_forward, const EmbeddingArgs &)                                                 \
  LAUNCH(embedding_backward, const EmbeddingBackwardArgs &)                                        \
  LAUNCH(dropout, const DropoutArgs &)                                                             \
  LAUNCH(rope, const RopeArgs &)                                                                   \
  LAUNCH(softmax_forward, const SoftmaxArgs &)                                                     \
  LAUNCH(softmax_backward, const SoftmaxArgs &)                                                    \
  LAUNCH(attention_forward, const AttentionArgs &)                                                 \
  LAUNCH(attention_backward, const AttentionArgs &)                                                \
  LAUNCH(sum_columns, const Output &x, const Output &sums, void *workspace)                        \
  LAUNCH(count_step, uint64_t *steps)
// clang-format on

struct Backend {
  mp_target_t kind;

  // Device and memory.
  int (*device_count)();                            ///< usable devices; 0 without a driver
  std::string (*why_no_device)();                   ///< reason, e.g. the CUDA error name
  int (*current_device)();                          ///< current device of the calling thread
  bool (*has_code_for)(int ordinal);                ///< true if this build has code for the device
  Device (*describe)(int ordinal);                  ///< properties before sm_limit is applied
  void *(*allocate)(const Device &, size_t bytes);  ///< 256-byte aligned; throws if out of memory
  void (*release)(const Device &, void *ptr);
  MappedMemory (*allocate_mapped)(const Device &, size_t bytes);  ///< zero-filled; 8-byte aligned
  void (*release_mapped)(const Device &, const MappedMemory &);
  void (*copy)(const Device &, void *dst, const void *src, size_t bytes, mp_stream_t);
  void (*fill)(const Device &, void *dst, int byte, size_t bytes, mp_stream_t);
  void (*synchronize)(const Device &, mp_stream_t);
  /// Frees threads and memory cached between launches; the next launch allocates them again.
  void (*release_idle)();

#define MP_LAUNCH_MEMBER(name, ...) void (*name)(const Device &, __VA_ARGS__, mp_stream_t);
  MP_LAUNCHES(MP_LAUNCH_MEMBER)
#undef MP_LAUNCH_MEMBER
};

/// NULL if the library was built without that backend.
const Backend *host_backend();
const Backend *cuda_backend();

}  // namespace mp
