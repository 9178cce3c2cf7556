// What the calls of mpcore/gemm.h share: from a descriptor to a checked problem, a kernel and its log.
//
// Every field of a descriptor is checked, also where the call does not look at it (ldc with
// beta = 0), so that a descriptor is good or bad by itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "capi/check.h"
#include "capi/context.h"
#include "capi/gemm_tuning.h"
#include "capi/overlap.h"
#include "kernels/backend.h"
#include "kernels/gemm/select_reasons.h"
#include "mpcore.h"

namespace mp {

// ---------------------------------------------------------------------------- shapes

/// One operand as it is stored, with the names of its arguments.
struct Matrix {
  int64_t rows, cols, ld, stride;
  mp_dtype_t dtype;
  const char *ld_name, *stride_name, *cols_name;
  const char *note;  ///< what made `cols` the row length
};

Matrix matrix_a(const mp_gemm_desc_t &);
Matrix matrix_b(const mp_gemm_desc_t &);
Matrix matrix_c(const mp_gemm_desc_t &);
Matrix matrix_d(const mp_gemm_desc_t &);
/// Laid out as D, but for the distance of its rows.
Matrix matrix_aux(const Output &, int64_t ld_aux);

/// The fields that say what is done: operand order and types.
void check_operation(const mp_gemm_desc_t &);
/// The fields that say how large and where: dimensions, ld, batch.
void check_shape(const mp_gemm_desc_t &);

/// Kernels number the tiles of a call in 31 bits, as CUDA does its blocks.
constexpr int64_t kMaxTiles = INT32_MAX;
/// The tiles of 16 x 16 in `batch_count` products that have rows for tiles_m of them; those of no kernel are smaller in
/// any direction.  Ends the call where they are more than can be numbered.
int64_t count_tiles(const mp_gemm_desc_t &, int64_t tiles_m, int64_t batch_count);
inline int64_t tiles_along(int64_t dimension) {
  return dimension / 16 + (dimension % 16 != 0);
}

/// Items may follow each other or be interleaved (heads beside each other in a row), but two
/// items written by different blocks must not share an element.
void require_separate_items(const Matrix &, int32_t batch_count);

inline bool is_empty(const mp_gemm_desc_t &d) {
  return d.m == 0 || d.n == 0 || d.batch_count == 0;
}

// ---------------------------------------------------------------------------- data

Epilogue read_epilogue(const mp_epilogue_t *user, const Output &);
/// For functions that take scale, amax and found_inf alone.
Epilogue read_scaling_epilogue(const mp_epilogue_t *user, const char *function);

/// A, B, C, D as they were passed: matrices, or arrays of pointers to matrices.
struct Operands {
  const void *a, *b, *c, *d;
};

void check_operands(const Operands &, const mp_gemm_desc_t &, size_t ab_alignment,
                    size_t cd_alignment);

/// Refuses a D, or anything else that the epilogue of `out` writes, that shares memory with another
/// argument.  `inputs`: what the product reads; D may be C.
void check_overlap(const Output &out, const Region &d, std::initializer_list<Region> inputs);
/// The same for matrices, not arrays of pointers, and one more input.
void check_overlap(const Operands &, const mp_gemm_desc_t &, const Output &,
                   const Region &input = {});
/// `data`: all items of the batch.
Region region_of(const Matrix &, const void *data, const char *name, int64_t batch_count);

/// True if A and B are read.
inline bool has_product(const mp_gemm_desc_t &d) {
  return summed_k(d.k, d.alpha) > 0;
}

void set_data(GemmProblem &, const Operands &);

void check_workspace(const Workspace &);

// ---------------------------------------------------------------------------- choice

constexpr bool kAssumedAligned = true;  // where the pointers are not known on the host

/// As the kernels with 16-byte copies want them.
inline bool has_fast_alignment(const void *a, const void *b) {
  constexpr size_t kFastAlignment = 16;
  return is_aligned(a, kFastAlignment) && is_aligned(b, kFastAlignment);
}

/// What mp_gemm launches; `kernel`: desc->kernel.  SIZE_MAX bytes: where workspace is no matter.
GemmPlan choose(const GemmProblem &, const Context &, bool aligned, const char *kernel,
                size_t workspace_bytes);

// ---------------------------------------------------------------------------- log

/// Says once per context why a call takes longer than it could; reason() is empty where it does
/// not.
template <class Reason>
void log_slow_path(const Context &context, const char *function, const Reason &reason) {
  std::atomic_flag &logged = context.logged.slow_path;
  if (!log_enabled(MP_LOG_WARN) || logged.test()) return;
  const std::string why = reason();
  if (why.empty() || logged.test_and_set()) return;
  log(MP_LOG_WARN, function, ": using a slower path: ", why.c_str(),
      "; further occurrences are not logged");
}

/// The same after a choice: the reason is one of the problem, or else time that the choice loses.
template <class Reason>
void log_slow_choice(const Context &context, const char *function, const Output &out,
                     const GemmPlan &choice, size_t workspace_bytes, const Reason &of_problem) {
  log_slow_path(context, function, [&] {
    if (choice.aligned_us > 0) {
      const std::string why = if_slower(of_problem(), choice.predicted_us, choice.aligned_us);
      if (!why.empty()) return why;
    }
    return lost_time_reason(out, choice, context.device, gemm_tuning(), workspace_bytes);
  });
}

/// True the first time a kernel of that name is chosen while somebody listens.
bool is_first_occurrence(const Context &, const char *kernel);

void log_choice(const Context &, const char *function, const GemmProblem &, const GemmPlan &);

}  // namespace mp
