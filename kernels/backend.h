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

// clang-format off
/// All launches: LAUNCH(name, parameters between device and stream).  The structs are only
/// declared: the table takes references and pointers, so it does not depend on the fields.
#define MP_LAUNCHES(LAUNCH)                                                                       \
  LAUNCH(gemm, const struct GemmProblem &, const struct GemmPlan &, const Workspace &)            \
  LAUNCH(gemm_grouped, const struct GemmGroup &, const struct GemmPlan &, void *workspace)        \
  LAUNCH(gemm_ragged, const struct RaggedProblem &, const struct GemmPlan &, void *workspace)     \
  LAUNCH(conv, const struct ConvProblem &, const struct ConvPlan &, const Workspace &)            \
  LAUNCH(cast, const void *src, mp_dtype_t, void *dst, mp_dtype_t, int64_t count)                 \
  LAUNCH(statistics, const struct TensorList &, const struct ReduceScratch &,                     \
         const struct StatisticsOutputs &)                                                        \
  LAUNCH(multiply, const struct TensorList &, float factor)                                       \
  LAUNCH(clip_factor, const struct ClipArgs &)                                                    \
  LAUNCH(accumulate, const struct AccumulateArgs &)                                               \
  LAUNCH(scale_loss, const void *loss, void *out, mp_dtype_t, int64_t count, const float *scale)  \
  LAUNCH(scaler_update, struct ScalerDevice *, const float *amax)                                 \
  LAUNCH(pack_rank_message, const struct RankReductionArgs &)                                     \
  LAUNCH(unpack_rank_message, const struct RankReductionArgs &)                                   \
  LAUNCH(optimizer_step, const struct OptimizerArgs &, const struct UpdateArgs &)                 \
  LAUNCH(model_copy, const struct ModelCopyArgs &)                                                \
  LAUNCH(regularization, const struct OptimizerArgs &, const struct ReduceScratch &, float *loss) \
  LAUNCH(softmax_xent, const struct XentArgs &)                                                   \
  LAUNCH(xent_mean, const struct XentArgs &)                                                      \
  LAUNCH(xent_count, const struct XentArgs &)                                                     \
  LAUNCH(element_loss, const struct LossArgs &)                                                   \
  LAUNCH(transpose, const struct TransposeArgs &)                                                 \
  LAUNCH(pool_forward, const struct PoolArgs &)                                                   \
  LAUNCH(pool_backward, const struct PoolArgs &)                                                  \
  LAUNCH(batch_norm_training, const struct BatchNormArgs &)                                       \
  LAUNCH(batch_norm_inference, const struct BatchNormArgs &)                                      \
  LAUNCH(batch_norm_backward, const struct BatchNormArgs &)                                       \
  LAUNCH(norm_forward, const struct NormArgs &)                                                   \
  LAUNCH(norm_backward, const struct NormArgs &)                                                  \
  LAUNCH(pointwise, const struct PointwiseArgs &)                                                 \
  LAUNCH(sum_rows, const struct SumRowsArgs &)                                                    \
  LAUNCH(glu_forward, const struct GluArgs &)                                                     \
  LAUNCH(glu_backward, const struct GluArgs &)                                                    \
  LAUNCH(strided_copy, const struct StridedCopyArgs &)                                            \
  LAUNCH(rnn_forward, const struct RnnProblem &)                                                  \
  LAUNCH(rnn_backward_data, const struct RnnProblem &)                                            \
  LAUNCH(rnn_backward_weights, const struct RnnProblem &)                                         \
  LAUNCH(embedding_forward, const struct EmbeddingArgs &)                                         \
  LAUNCH(embedding_backward, const struct EmbeddingBackwardArgs &)                                \
  LAUNCH(dropout, const struct DropoutArgs &)                                                     \
  LAUNCH(rope, const struct RopeArgs &)                                                           \
  LAUNCH(softmax_forward, const struct SoftmaxArgs &)                                             \
  LAUNCH(softmax_backward, const struct SoftmaxArgs &)                                            \
  LAUNCH(attention_forward, const struct AttentionArgs &)                                         \
  LAUNCH(attention_backward, const struct AttentionArgs &)                                        \
  LAUNCH(sum_columns, const struct Output &x, const struct Output &sums, void *workspace)         \
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
