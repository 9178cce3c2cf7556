// Shared code of the functions of mpcore/gemm.h: checks of the descriptor and operands, kernel
// selection and logging.
//
// Every field of a descriptor is checked, even if the call does not use it (ld_c with beta = 0), so
// that validity depends only on the descriptor.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "capi/overlap.h"
#include "capi/plan_cache.h"
#include "kernels/gemm/plan_text.h"

namespace mp {

// ---------------------------------------------------------------------------- shapes

/// Operand as stored, with the names of its arguments.
struct Matrix {
  int64_t rows, cols, ld, stride;
  mp_dtype_t dtype;
  const char *ld_name, *stride_name, *cols_name;
  const char *note;  ///< op that determines which dimension `cols` is
};

Matrix matrix_a(const mp_gemm_desc_t &);
Matrix matrix_b(const mp_gemm_desc_t &);
Matrix matrix_c(const mp_gemm_desc_t &);
Matrix matrix_d(const mp_gemm_desc_t &);
/// Returns aux: the layout of D, with a separate leading dimension.
Matrix matrix_aux(const Output &, int64_t ld_aux);

/// Checks operand order and types.
void check_operation(const mp_gemm_desc_t &);
/// Checks dimensions, leading dimensions, strides and batch count.
void check_shape(const mp_gemm_desc_t &);

/// Limit of tiles per call: kernels use 31-bit tile indices, like CUDA's block indices.
constexpr int64_t kMaxTiles = INT32_MAX;
/// Returns the number of 16 x 16 tiles of `batch_count` products with `tiles_m` tiles along m, and
/// fails if it exceeds kMaxTiles.  No kernel has smaller tiles.
int64_t count_tiles(const mp_gemm_desc_t &, int64_t tiles_m, int64_t batch_count);
inline int64_t tiles_along(int64_t dimension) {
  return dimension / 16 + (dimension % 16 != 0);
}

/// Fails if batch items overlap: different blocks write them.  Items may be consecutive, or
/// interleaved (attention heads adjacent in a row).
void require_separate_items(const Matrix &, int32_t batch_count);

inline bool is_empty(const mp_gemm_desc_t &d) {
  return d.m == 0 || d.n == 0 || d.batch_count == 0;
}

// ---------------------------------------------------------------------------- data

Epilogue read_epilogue(const mp_epilogue_t *user, const Output &);
/// Returns the epilogue of a function that supports only scale, amax and found_inf.
Epilogue read_scaling_epilogue(const mp_epilogue_t *user, const char *function);

/// Arguments A, B, C, D: matrices, or arrays of pointers to matrices.
struct Operands {
  const void *a, *b, *c, *d;
};

void check_operands(const Operands &, const mp_gemm_desc_t &, size_t ab_alignment,
                    size_t cd_alignment);

/// Fails if D, another output of the epilogue or the workspace overlaps another argument.
/// @param inputs  operands that the product reads; C is absent if it equals D
void check_overlap(const Output &out, const Region &d, const std::array<Region, 4> &inputs,
                   const Workspace &);
/// Makes the same check for matrices (not arrays of pointers), with one more input.
void check_overlap(const Operands &, const mp_gemm_desc_t &, const Output &, const Workspace &,
                   const Region &input = {});
/// Returns the memory of all items of a batch.
Region region_of(const Matrix &, const void *data, const char *name, int64_t batch_count);

/// Returns an output with one batch item, alpha = 1 and beta = 0; its data may also be an input.
Output output_matrix(const void *data, int64_t rows, int64_t columns, int64_t ld, mp_dtype_t dtype);

/// Returns whether A and B are read.
inline bool has_product(const mp_gemm_desc_t &d) {
  return summed_k(d.k, d.alpha) > 0;
}

void set_data(GemmProblem &, const Operands &);

void check_workspace(const Workspace &);

// ---------------------------------------------------------------------------- log

/// Logs, once per context, why a call is slower than necessary; an empty reason() is not logged.
template <class Reason>
void log_slow_path(const Context &context, const char *function, const Reason &reason) {
  std::atomic_flag &logged = context.logged.slow_path;
  if (!log_enabled(MP_LOG_WARN) || logged.test()) return;
  const std::string why = reason();
  if (why.empty() || logged.test_and_set()) return;
  log(MP_LOG_WARN, function, ": using a slower path: ", why.c_str(),
      "; further occurrences are not logged");
}

/// Logs why a plan is slow: a property of the problem, or else of the plan.
template <class Reason>
void log_slow_plan(const Context &context, const char *function, const Output &out,
                   const GemmPlan &plan, size_t workspace_bytes, const Reason &of_problem) {
  const bool may_be_slow =
      plan.aligned_us > 0 || plan.mapped_us > 0 || workspace_bytes < plan.best_workspace_bytes;
  if (!may_be_slow) return;
  log_slow_path(context, function, [&] {
    if (plan.aligned_us > 0) {
      const std::string why = if_slower(of_problem(), plan.predicted_us, plan.aligned_us);
      if (!why.empty()) return why;
    }
    return lost_time_reason(shape_of(out), plan, plan_request(context, workspace_bytes));
  });
}

/// True for the first use of a kernel while logging at this level is enabled.
bool is_first_occurrence(const Context &, const char *kernel);

/// Logs the first use of a kernel.
template <class Shape>
void log_plan(const Context &context, const char *function, const Shape &shape, const char *kernel,
              size_t workspace_bytes) {
  if (is_first_occurrence(context, kernel))
    log(MP_LOG_INFO, function, ": ", kernel, " for ", text_of(shape),
        ", workspace_bytes = ", workspace_bytes);
}

}  // namespace mp
