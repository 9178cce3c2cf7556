// What a GEMM is asked, and the choice of its kernel.
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

/// Where the batch items of one operand are: base + i * stride elements, or, for mp_gemm_batched,
/// a device array of pointers.  Exactly one of `base` and `items` is used.
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

/// aux is an input, that of the activation in the forward pass.
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

/// What is written, by GEMM and by convolution alike: m x n matrices, and how they come from the
/// products.  m, n, batch_count > 0.
struct Output {
  int64_t m, n;
  int64_t batch_count;
  mp_dtype_t dtype;  ///< of C and D
  float alpha, beta;
  Operand c, d;  ///< d.base / d.items are written
  Epilogue epilogue;

  bool operator==(const Output &) const = default;
};

/// One mp_gemm call, after validation.  k >= 0.
struct GemmProblem {
  Output out;
  int64_t k;
  mp_op_t op_a, op_b;
  mp_dtype_t dtype_ab;
  Operand a, b;

  bool operator==(const GemmProblem &) const = default;
};

/// Elements of k that are summed.  With alpha = 0 A and B are not read, as in BLAS.
inline int64_t summed_k(int64_t k, float alpha) {
  return alpha != 0.0f ? k : 0;
}

/// The problem of a descriptor whose fields are valid; neither data nor epilogue.
GemmProblem gemm_problem(const mp_gemm_desc_t &);

/// One row of the kernel table (kernels/gemm/select.h).
struct GemmKernel;

/// A kernel together with the number of slices of k it sums separately.
struct GemmPlan {
  const GemmKernel *kernel;
  int32_t split_k;         ///< 1 = no split
  int32_t cluster;         ///< blocks that share an operand by multicast; 1 = none do
  size_t workspace_bytes;  ///< needed by this choice for this problem
  double predicted_us;
  const char *name;           ///< static storage, e.g. "wmma_128x128x32_s3_k8"
  bool reads_copies = false;  ///< of A and B, made first (aligned_copies.h)
  bool fuses_dbias = false;   ///< for dbias, where it stores subtiles (dbias.h)

  // What plan_gemm and best_conv could not have; 0 of other choices.
  size_t best_workspace_bytes = 0;  ///< workspace of the first of the ranking
  double best_us = 0;               ///< its time
  double mapped_us = 0;             ///< where D leaves by patches: if TMA could store it
  double aligned_us = 0;            ///< without what slow_path_reason names, if anything
};

/// Workspace with which dbias of that choice is summed fastest (kernels/gemm/dbias.h).
size_t dbias_workspace_bytes(const Output &, const GemmPlan &);

/// Workspace of mp_column_sum over the columns of `x`.
size_t column_sum_bytes(const Output &x);

/// The constants of the predicted times (kernels/gemm/tuning.h).
struct GemmTuning;
const GemmTuning &builtin_gemm_tuning();

/// Returns whether the constants were never measured on the architecture of `device`.
bool is_estimated(const GemmTuning &tuning, const Device &device);

// Choosing is pure.  `aligned`: the pointers of A and B are 16-byte aligned (ld and strides are
// looked at here); every problem has a kernel for misaligned operands, but a slower one.

/// No problem has more choices than this.
constexpr int kMaxGemmPlans = 256;

/// Ranks what can run `problem` on `device`, fastest first; never empty.
/// At most `capacity` choices are written; returns how many exist.
int rank_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, GemmPlan *choices, int capacity);

/// The first of a ranking that needs no more workspace than this; there is one for any amount.
template <class Choice>
const Choice *first_that_fits(const Choice *ranked, size_t workspace_bytes) {
  while (ranked->workspace_bytes > workspace_bytes) ranked++;
  return ranked;
}

/// first_that_fits of the ranking.
GemmPlan plan_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                   bool aligned, size_t workspace_bytes);

/// The choice of that name, or why it cannot run this problem: returns false and sets `why`
/// (one clause, "needs 16-byte aligned rows").  An unknown name sets `why` to NULL.
bool find_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, GemmPlan *choice, const char **why);
std::span<const char *const> gemm_names();  ///< all that it knows, in the order of the table

/// One product of mp_gemm_grouped.  m, n > 0; k >= 0.
struct GemmGroupItem {
  int64_t m, n, k;
  int64_t lda, ldb, ldc, ldd;
  const void *a, *b, *c;
  void *d;
  int64_t index;  ///< in the caller's array, for the log
};

/// One mp_gemm_grouped call, after validation; empty products have been left out.
struct GemmGroup {
  GemmProblem common;          ///< operand order, types, alpha, beta, epilogue; no shape, no data
  const GemmGroupItem *items;  ///< host
  int64_t count;               ///< > 0
};

/// One product of a group as mp_gemm would have it.
GemmProblem item_problem(const GemmGroup &, const GemmGroupItem &);

/// The kernel that runs the whole group in one launch with at most `workspace_bytes`, or false
/// where there is none.  Pure.  `kernel` = NULL leaves the choice to this function.  Pointers are
/// looked at for their alignment alone; NULL is aligned.
bool choose_gemm_grouped(const GemmGroup &group, const Device &device, const GemmTuning &tuning,
                         size_t workspace_bytes, const char *kernel, GemmPlan *choice);

/// One mp_gemm_ragged call, after validation: out.batch_count groups, which share the m or the k of `all` as
/// the device alone knows.  Their parts of it follow one another and have no stride.
struct RaggedProblem {
  GemmProblem all;
  mp_ragged_t dimension;
  const int32_t *ends;  ///< device

  bool operator==(const RaggedProblem &) const = default;
};

/// As plan_gemm and find_gemm.  Equal shares are assumed; what is chosen runs any.
GemmPlan plan_gemm_ragged(const RaggedProblem &problem, const Device &device,
                          const GemmTuning &tuning, bool aligned, size_t workspace_bytes);
bool find_gemm_ragged(const RaggedProblem &problem, const Device &device, const GemmTuning &tuning,
                      bool aligned, const char *name, GemmPlan *choice, const char **why);

}  // namespace mp
