// All that capi/ may call: plain structs, and per target a table of launch functions.
//
// A Target is one compiled copy of every kernel (kernels/backend.cu is compiled once by nvcc and
// once by the host compiler).  capi validates, chooses, fills one of the structs below and calls
// through the table; it never asks which target it has.
//
// Contract of every launch function: arguments are already valid; it enqueues on `stream` and
// returns; it neither allocates nor waits.  A failure throws mp::TargetError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/gemm/problem.h"
#include "mpcore.h"

namespace mp {

/// The environment failed (driver, memory) or, on the host machine, a kernel broke a rule of the
/// machine.  capi turns it into the status and the sentence.
struct TargetError : std::runtime_error {
  TargetError(mp_status_t status, const std::string &what)
      : std::runtime_error(what), status(status) {}
  mp_status_t status;
};

/// What selection and launch need to know of a device.  Pure data: selection can be tested for a
/// device that is not there.
struct Device {
  mp_target_t target;
  int32_t ordinal;         ///< CUDA ordinal; 0 on the host target
  int32_t arch;            ///< 75, 80, 90...; the host target reports the generation it models
  int32_t num_sms;         ///< after sm_limit; OS threads on the host target
  int64_t smem_per_block;  ///< bytes a kernel may opt in to
  int64_t l2_bytes;
  bool has_wgmma;  ///< the code that the device runs was compiled for sm_90a
  char name[64];
};

/// Memory of the host that kernels write to while the host reads, with the address of either side.
struct MappedMemory {
  void *host;
  void *device;
};

// ---------------------------------------------------------------------------- tensor lists

/// Elements that one block handles at a time.  Partial results are per chunk, so reductions do
/// not depend on the launch geometry or the device.
constexpr int64_t kChunkElems = 16384;

/// One chunk of a list: elements [index * kChunkElems, ...) of tensor `tensor`.
struct Chunk {
  uint32_t tensor;
  uint32_t index;
};

/// A tensor list on the device.  All pointers are device pointers, owned by capi's list object.
struct TensorList {
  uint32_t count;        ///< tensors
  int64_t num_chunks;    ///< over all tensors; empty tensors have none
  void **data;           ///< count
  int64_t *numel;        ///< count
  uint8_t *dtype;        ///< count, mp_dtype_t
  Chunk *chunks;         ///< num_chunks, in tensor order
  int64_t *first_chunk;  ///< count + 1: chunks of tensor t are [first_chunk[t], first_chunk[t + 1])
};

/// Scratch of one reduction over a list; sizes for `num_chunks` chunks.
struct ReduceScratch {
  double *sum_squares;      ///< num_chunks
  uint32_t *amax_bits;      ///< num_chunks; bits of |x|, on which NaN sorts above infinity
  uint32_t *ticket;         ///< 1, zero between launches: the last block to arrive finishes the job
  uint64_t *report_counts;  ///< num_chunks: four counts of 16 bits (kernels/tensors/report.h)
  uint32_t *first_bad;      ///< num_chunks: the first NaN or infinity; kChunkElems: none
};

/// grad_scale = inv_scale, times the clip factor of mp_clip_factor if max_norm > 0.
struct ClipArgs {
  const float *scaled_norm;
  const float *inv_scale;  ///< NULL = 1
  float max_norm;          ///< 0 = no clipping
  float *grad_scale;       ///< out: multiplied into every gradient
  float *grad_norm;        ///< out, optional: unscaled norm before clipping
  float *tensor_norms;     ///< out, optional, count: the same of each tensor
};

/// What one pass over a list is to compute; any output may be NULL.
struct StatisticsOutputs {
  float *found_inf;        ///< sticky: set to 1, never cleared
  float *amax;             ///< overwritten
  float *amax_per_tensor;  ///< count, overwritten
  float *norm;             ///< overwritten
  double *sum_squares;     ///< overwritten: the square of the norm
  float *norm_per_tensor;  ///< count, overwritten
  ClipArgs clip;           ///< done last if clip.grad_scale is set; clip.scaled_norm is `norm`
  mp_tensor_report_t *report, *tensor_reports;  ///< 1; count
};

// ---------------------------------------------------------------------------- scaler and step

/// One update as mp_scaler_get_history_sync tells it.
struct ScalerRecord {
  float scale;  ///< before the update
  int32_t skipped;
};

/// The policy's parameters and state; the rules are in kernels/step/loss_scale.h.
/// Steps that mp_step_query can look back.  Step n has slot n % kVerdicts of a ring in mapped memory,
/// one word: 2 n, plus 1 if the step was skipped.  0: none yet.
constexpr uint64_t kVerdicts = MP_STEP_QUERY_DEPTH;

/// Lives in device memory.
struct ScalerDevice {
  float scale;
  float inv_scale;
  float found_inf;
  float amax;  ///< of the steps since the last update
  mp_scaler_config_t config;
  mp_scaler_state_t state;
  ScalerRecord *history;  ///< ring of config.history; NULL where that is 0
  int64_t num_recorded;   ///< ever, so the next one goes to num_recorded % config.history
  uint64_t *verdicts;     ///< ring of kVerdicts, in mapped memory
};

/// out = [out +] weight * *inv_scale * in.
struct AccumulateArgs {
  TensorList in, out;
  const float *inv_scale;
  float weight;
  bool first;            ///< out is not read
  bool last;             ///< of a window: the sums are checked too, and the verdict is published
  float *found_inf;      ///< sticky: set to 1 where `in` is not finite
  ScalerDevice *scaler;  ///< optional, unless `last`: notes the amax of `in`
  uint32_t *ticket;      ///< 1, zero between launches; looked at where `last` is set
};

/// What a rank tells the others of its gradients, in device memory.  The first two are combined by
/// maximum, the last by sum.
struct RankMessage {
  float code;  ///< 0 = nothing found, 1 = found_inf, 2 = with a NaN
  float amax;  ///< the largest that is finite
  float sum_squares;
};

/// Before the ranks combine their messages, and after it (kernels/step/rank_reduction.cu).
struct AgreementArgs {
  RankMessage *message;
  float *found_inf;            ///< what this rank has found; out: raised if any rank has
  const float *measured_amax;  ///< optional; out: `amax`
  const ScalerDevice *scaler;  ///< optional: what it has noted counts too
  float *amax;                 ///< may be measured_amax
  const double *sum_squares;   ///< NULL: no norm to agree on; out: `norm`
  float *norm;
  ClipArgs clip;  ///< done last, with sum_squares and if clip.grad_scale is set
};

/// What the rules with norms of a tensor measure before they update; NULL for the others.
struct RatioScratch {
  float *w_squares;  ///< num_chunks: of the weights
  float *u_squares;  ///< num_chunks: of the gradient or of the direction
  float *ratio;      ///< count: what comes of them (update_rules.h)
};

/// How a master weight becomes its 16-bit copy (kernels/step/model_copy.h).
struct CopyPolicy {
  uint32_t flags;  ///< MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING; others are not looked at
  uint64_t rounding_seed;
};

struct ModelCopyArgs {
  TensorList master, model;  ///< model.data[t] may be NULL
  CopyPolicy policy;
  const float *found_inf;  ///< nothing is written when != 0; NULL = never
  const int64_t *t;        ///< device; for stochastic rounding, else NULL
  int64_t *overflows;      ///< optional, increased
};

/// An optimizer in device terms.
struct OptimizerArgs {
  mp_optimizer_kind_t kind;
  uint32_t flags;
  TensorList grads, master;
  TensorList model, m, v, extra;  ///< .data may be NULL
  CopyPolicy copy;                ///< of the weights into model
  const uint32_t *tensor_group;   ///< device, count
  uint32_t num_groups;
  const mp_hyper_t *groups;        ///< device
  const float *lr_multipliers;     ///< device, count; NULL = 1
  const float *decay_multipliers;  ///< device, count; NULL = 1
  RatioScratch ratios;             ///< device
  float *lr;                       ///< device, num_groups: out, of an applied step
  int64_t *t;                      ///< device, applied steps
  uint32_t *ticket;                ///< device, 1, zero between launches
};

/// mp_optimizer_step when only the first three are set; pass 2 of mp_scale_step with the rest, which
/// the last block to finish does once everything is updated.
struct UpdateArgs {
  const float *grad_scale;  ///< multiplied into every gradient; NULL = 1
  const float *found_inf;   ///< skip when != 0; NULL = never
  const float
      *tensor_norms;     ///< count: of the gradients before unscaling; NULL = do not clip by them
  float *skipped;        ///< out, optional: 1 if this step was skipped, else 0
  ScalerDevice *scaler;  ///< optional: its policy is applied, its flag cleared
  const float *scaler_amax;  ///< what mp_scaler_update gets as amax; skip when not finite
  bool keep_scaler;          ///< MP_STEP_KEEP_SCALER: only the amax is noted
  int64_t *model_overflows;  ///< optional, increased: copies that overflowed
  float *clear;              ///< optional: set to 0 at the end (the flag where there is no scaler)
};

// ---------------------------------------------------------------------------- train

struct XentArgs {
  mp_dtype_t dtype;
  int64_t rows, classes, ld_logits, ld_dlogits;
  float weight;
  const void *logits;
  const int32_t *labels;
  const float *loss_scale;  ///< NULL = 1
  float *row_loss;
  float *loss;       ///< optional
  int64_t *correct;  ///< optional
  void *dlogits;     ///< optional
};

// ---------------------------------------------------------------------------- layers

/// `count` matrices of rows x cols, one after the other, each of them transposed.
struct TransposeArgs {
  int64_t count, rows, cols;
  mp_dtype_t src_dtype, dst_dtype;
  const void *src;
  void *dst;
};

/// Both passes; each looks at what it needs.
struct PoolArgs {
  mp_pool2d_desc_t desc;
  int32_t p, q;  ///< 0: no outputs
  const void *x, *dy;
  void *y, *dx;
};

/// How batch normalisation cuts rows x channels into pieces, each of them summed by itself.  Of the
/// shape alone, so that no sum depends on the device.
struct BatchNormPieces {
  static constexpr int kThreads = 256;
  static constexpr int kRun = 8;  ///< channels per thread
  static constexpr int64_t kMaxChunks = 512;
  static constexpr int64_t kMinRowsPerThread = 16;

  int lanes;               ///< neighbouring threads that share a row: 1, 2, 4 or 8
  int64_t tiles;           ///< of lanes * kRun channels
  int64_t rows_per_chunk;  ///< rows of a piece
  int64_t chunks;

  BatchNormPieces(int64_t rows, int64_t channels) : lanes(1) {
    while (lanes < 8 && lanes * kRun < channels) lanes *= 2;
    tiles = (channels + lanes * kRun - 1) / (lanes * kRun);
    const int64_t least = kThreads / lanes * kMinRowsPerThread;
    const int64_t even = rows / kMaxChunks + (rows % kMaxChunks != 0);
    rows_per_chunk = even > least ? even : least;
    chunks = rows / rows_per_chunk + (rows % rows_per_chunk != 0);
  }

  /// Two numbers per chunk and channel.
  size_t workspace_bytes(int64_t channels) const {
    return static_cast<size_t>(2 * chunks * channels) * sizeof(float);
  }
};

struct BatchNormTrainingArgs {
  mp_batchnorm_desc_t desc;
  const void *x;
  const float *gamma, *beta;
  float *running_mean, *running_var;  ///< optional
  float *saved_mean, *saved_inv_std;
  void *y;
  float *workspace;
};

struct BatchNormInferenceArgs {
  mp_batchnorm_desc_t desc;
  const void *x;
  const float *gamma, *beta, *mean, *var;
  void *y;
};

struct BatchNormBackwardArgs {
  mp_batchnorm_desc_t desc;
  const void *x, *dy;
  const float *gamma, *beta, *saved_mean, *saved_inv_std;
  void *dx;
  float *dgamma, *dbeta;
  float *workspace;
};

// ---------------------------------------------------------------------------- the table

struct Target {
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

  // Kernels.
  void (*gemm)(const Device &, const GemmProblem &, const GemmChoice &, void *workspace,
               mp_stream_t);
  void (*gemm_grouped)(const Device &, const GemmGroup &, const GemmChoice &, void *workspace,
                       mp_stream_t);
  void (*conv)(const Device &, const ConvProblem &, const ConvChoice &, void *workspace,
               mp_stream_t);
  void (*cast)(const Device &, const void *src, mp_dtype_t, void *dst, mp_dtype_t, int64_t count,
               mp_stream_t);
  void (*statistics)(const Device &, const TensorList &, const ReduceScratch &,
                     const StatisticsOutputs &, mp_stream_t);
  void (*accumulate)(const Device &, const AccumulateArgs &, mp_stream_t);
  void (*multiply)(const Device &, const TensorList &, float factor, mp_stream_t);  ///< in place
  void (*clip_factor)(const Device &, const ClipArgs &, mp_stream_t);
  void (*scale_loss)(const Device &, const void *loss, void *out, mp_dtype_t, int64_t count,
                     const float *scale, mp_stream_t);
  void (*scaler_update)(const Device &, ScalerDevice *, const float *amax, mp_stream_t);
  void (*agreement_before)(const Device &, const AgreementArgs &, mp_stream_t);
  void (*agreement_after)(const Device &, const AgreementArgs &, mp_stream_t);
  void (*optimizer_step)(const Device &, const OptimizerArgs &, const UpdateArgs &, mp_stream_t);
  void (*model_copy)(const Device &, const ModelCopyArgs &, mp_stream_t);
  void (*regularization)(const Device &, const OptimizerArgs &, const ReduceScratch &, float *loss,
                         mp_stream_t);
  void (*softmax_xent)(const Device &, const XentArgs &, mp_stream_t);
  void (*transpose)(const Device &, const TransposeArgs &, mp_stream_t);
  void (*pool_forward)(const Device &, const PoolArgs &, mp_stream_t);
  void (*pool_backward)(const Device &, const PoolArgs &, mp_stream_t);
  void (*batch_norm_training)(const Device &, const BatchNormTrainingArgs &, mp_stream_t);
  void (*batch_norm_inference)(const Device &, const BatchNormInferenceArgs &, mp_stream_t);
  void (*batch_norm_backward)(const Device &, const BatchNormBackwardArgs &, mp_stream_t);
};

/// NULL when the library was built without that target.
const Target *host_target();
const Target *cuda_target();

}  // namespace mp
