// One compiled copy of every kernel behind one table of functions.
//
// The kernels are compiled once by nvcc and once by the host compiler (kernels/backend.cu gathers
// each copy).  capi validates, chooses, fills a struct and calls through the table; it never asks
// which backend it has.
//
// Contract of every launch: its arguments are valid; it enqueues on `stream` and returns; it neither
// allocates nor waits.  A failure throws mp::TargetError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/device_info.h"
#include "mpcore/core.h"

namespace mp {

// Only their addresses pass through the table, so that it is independent of every family's fields.
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
struct LossArgs;
struct TransposeArgs;
struct PoolArgs;
struct BatchNormArgs;
struct PointwiseArgs;
struct EmbeddingArgs;
struct EmbeddingBackwardArgs;
struct DropoutArgs;
struct RnnProblem;

// clang-format off
/// Every launch, listed here alone: LAUNCH(name, parameters between the device and the stream).
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
  LAUNCH(element_loss, const LossArgs &)                                                           \
  LAUNCH(transpose, const TransposeArgs &)                                                         \
  LAUNCH(pool_forward, const PoolArgs &)                                                           \
  LAUNCH(pool_backward, const PoolArgs &)                                                          \
  LAUNCH(batch_norm_training, const BatchNormArgs &)                                               \
  LAUNCH(batch_norm_inference, const BatchNormArgs &)                                              \
  LAUNCH(batch_norm_backward, const BatchNormArgs &)                                               \
  LAUNCH(pointwise, const PointwiseArgs &)                                                         \
  LAUNCH(rnn_forward, const RnnProblem &)                                                          \
  LAUNCH(rnn_backward_data, const RnnProblem &)                                                    \
  LAUNCH(rnn_backward_weights, const RnnProblem &)                                                 \
  LAUNCH(embedding_forward, const EmbeddingArgs &)                                                 \
  LAUNCH(embedding_backward, const EmbeddingBackwardArgs &)                                        \
  LAUNCH(dropout, const DropoutArgs &)                                                             \
  LAUNCH(sum_columns, const Output &x, const Output &sums, void *workspace)                        \
  LAUNCH(count_step, uint64_t *steps)
// clang-format on

struct Backend {
  mp_target_t kind;

  // Device and memory.
  int (*device_count)();                            ///< usable devices; 0 without a driver
  std::string (*why_no_device)();                   ///< one clause, e.g. the CUDA error name
  int (*current_device)();                          ///< of the calling thread
  bool (*has_code_for)(int ordinal);                ///< this build holds code it can run
  Device (*describe)(int ordinal);                  ///< before sm_limit
  void *(*allocate)(const Device &, size_t bytes);  ///< 256-byte aligned; throws when out of memory
  void (*release)(const Device &, void *ptr);
  MappedMemory (*allocate_mapped)(const Device &, size_t bytes);  ///< zeros; 8-byte aligned
  void (*release_mapped)(const Device &, const MappedMemory &);
  void (*copy)(const Device &, void *dst, const void *src, size_t bytes, mp_stream_t);
  void (*fill)(const Device &, void *dst, int byte, size_t bytes, mp_stream_t);
  void (*synchronize)(const Device &, mp_stream_t);
  /// Frees threads and memory that are kept from launch to launch; the next launch gets others.
  void (*release_idle)();

#define MP_LAUNCH_MEMBER(name, ...) void (*name)(const Device &, __VA_ARGS__, mp_stream_t);
  MP_LAUNCHES(MP_LAUNCH_MEMBER)
#undef MP_LAUNCH_MEMBER
};

/// NULL when the library was built without it.
const Backend *host_backend();
const Backend *cuda_backend();

}  // namespace mp
