// GEMM problems and plans, and the functions that select a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/column_partition.h"
#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "mpcore/gemm.h"

namespace mp {

// ---------------------------------------------------------------------------- GEMM

/// Operand of a GEMM.  Batch items are at base + i * stride elements or, for mp_gemm_batched, in a
/// device array of pointers.  Exactly one of `base` and `items` is used.
struct Operand {
  const void *base;
  const void *const *items;
  int64_t ld;
  int64_t stride;  ///< elements; 0 = the same matrix for all items

  bool operator==(const Operand &) const = default;
};

struct Epilogue {
  mp_activation_t activation;
  const float *scale;
  const void *bias;
  mp_dtype_t bias_dtype;
  void *aux;
  int64_t ld_aux;
  int64_t stride_aux;
  float *dbias;
  float *amax;
  float *found_inf;

  bool operator==(const Epilogue &) const = default;
};

/// Returns whether aux is an input: the values before the activation of the forward pass.
MP_HD constexpr bool reads_aux(mp_activation_t activation) {
  switch (activation) {
    case MP_ACT_DRELU:
    case MP_ACT_DGELU:
    case MP_ACT_DSIGMOID:
    case MP_ACT_DTANH:
    case MP_ACT_DSILU:
    case MP_ACT_DGELU_ERF:
      return true;
    default:
      return false;
  }
}

/// Output of a GEMM or convolution: m x n matrices and their epilogue.  m, n, batch_count > 0.
struct Output {
  int64_t m, n;
  int64_t batch_count;
  mp_dtype_t dtype;  ///< type of C and D
  float alpha, beta;
  Operand c, d;  ///< d.base or d.items is written
  Epilogue epilogue;

  bool operator==(const Output &) const = default;
};

/// Validated mp_gemm call.  k >= 0.
struct GemmProblem {
  Output out;
  int64_t k;
  mp_op_t op_a, op_b;
  mp_dtype_t dtype_ab;
  Operand a, b;

  bool operator==(const GemmProblem &) const = default;
};

/// Returns the elements of k that are summed.  With alpha = 0, A and B are not read, like in BLAS.
inline int64_t summed_k(int64_t k, float alpha) {
  return alpha != 0.0f ? k : 0;
}

/// Returns the problem of a valid descriptor, without data and epilogue.
GemmProblem gemm_problem(const mp_gemm_desc_t &);

/// Row of the kernel table (kernels/gemm/select.h).
struct GemmKernel;

/// Kernel, cluster, split and workspace selected for a problem.
struct GemmPlan {
  const GemmKernel *kernel;
  int32_t split_k;         ///< 1 = no split
  int32_t cluster;         ///< blocks that share an operand by multicast; 1 = no cluster
  size_t workspace_bytes;  ///< required by this plan
  double predicted_us;
  const char *name;           ///< static storage, e.g. "wmma_128x128x32_s3_k8"
  bool reads_copies = false;  ///< reads aligned copies of A and B (aligned_copies.h)
  bool fuses_dbias = false;   ///< if D is stored by TMA, stores partial column sums (dbias.h)

  // Better plans that plan_gemm and best_conv could not use; 0 in other plans.
  size_t best_workspace_bytes = 0;  ///< workspace of the fastest plan
  double best_us = 0;               ///< time of the fastest plan
  double mapped_us = 0;             ///< staged store only: time if TMA could store D
  double aligned_us = 0;            ///< time without the property in slow_path_reason, if any
};

/// Returns the workspace with which dbias of a plan is fastest (kernels/gemm/dbias.h).
size_t dbias_workspace_bytes(const Output &, const GemmPlan &);

/// Returns the workspace of mp_column_sum over the columns of `x`.
size_t column_sum_bytes(const Output &x);

/// Constants of the predicted times (kernels/gemm/tuning.h).
struct GemmTuning;
const GemmTuning &builtin_gemm_tuning();

/// Returns whether the constants were never measured on the architecture of `device`.
bool is_estimated(const GemmTuning &tuning, const Device &device);

// Selection is pure.  `aligned`: the pointers of A and B are 16-byte aligned (ld and strides are
// checked here).  Every problem has a kernel for misaligned operands, but a slower one.

/// Maximum number of plans of a problem.
constexpr int kMaxGemmPlans = 256;

/// Ranks the plans that can run `problem` on `device`, fastest first; never empty.  Writes at most
/// `capacity` plans; returns how many exist.
int rank_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, GemmPlan *choices, int capacity);

/// Returns the first plan of a ranking that fits into the workspace; one fits into any size.
template <class Choice>
const Choice *first_that_fits(const Choice *ranked, size_t workspace_bytes) {
  while (ranked->workspace_bytes > workspace_bytes) ranked++;
  return ranked;
}

/// Returns the fastest plan that fits into the workspace.
GemmPlan plan_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                   bool aligned, size_t workspace_bytes);

/// Finds the plan with that name.  If it cannot run the problem, returns false and sets `why` to
/// one clause ("requires 16-byte aligned rows").  If the name is unknown, `why` is NULL.
bool find_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, GemmPlan *choice, const char **why);
std::span<const char *const> gemm_names();  ///< all names, in the order of the table

/// One GEMM of mp_gemm_grouped.  m, n > 0; k >= 0.
struct GemmGroupItem {
  int64_t m, n, k;
  int64_t lda, ldb, ldc, ldd;
  const void *a, *b, *c;
  void *d;
  int64_t index;  ///< index in the caller's array, for the log
};

/// Validated mp_gemm_grouped call, without empty GEMMs.
struct GemmGroup {
  GemmProblem common;          ///< operand order, types, alpha, beta, epilogue; no shape, no data
  const GemmGroupItem *items;  ///< host
  int64_t count;               ///< > 0
};

/// Returns a GEMM of a group as a problem of mp_gemm.
GemmProblem item_problem(const GemmGroup &, const GemmGroupItem &);

/// Selects the kernel that runs the group in one launch with at most `workspace_bytes`; returns
/// false if there is none.  Pure.  `kernel`: name of the kernel; NULL = the fastest.  Pointers are
/// only checked for alignment; NULL is aligned.
bool choose_gemm_grouped(const GemmGroup &group, const Device &device, const GemmTuning &tuning,
                         size_t workspace_bytes, const char *kernel, GemmPlan *choice);

/// Validated mp_gemm_ragged call: out.batch_count groups, which divide the m or k of `all` at ends
/// known only to the device.  Their parts of the operands are consecutive and have no stride.
struct RaggedProblem {
  GemmProblem all;
  mp_ragged_t dimension;
  const int32_t *ends;  ///< device

  bool operator==(const RaggedProblem &) const = default;
};

/// Selects a plan, like plan_gemm and find_gemm.  Predictions assume groups of equal size; the plan
/// runs groups of any size.
GemmPlan plan_gemm_ragged(const RaggedProblem &problem, const Device &device,
                          const GemmTuning &tuning, bool aligned, size_t workspace_bytes);
bool find_gemm_ragged(const RaggedProblem &problem, const Device &device, const GemmTuning &tuning,
                      bool aligned, const char *name, GemmPlan *choice, const char **why);

}  // namespace mp
