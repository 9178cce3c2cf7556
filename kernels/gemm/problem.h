// GEMM calls: the problem, which has shape and data, and the shape alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/device_info.h"
#include "base/dtypes.h"
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
};

struct Epilogue {
  mp_activation_t activation;
  const float *scale;
  const void *bias;
  mp_dtype_t dtype_bias;
  void *aux;
  int64_t ld_aux;
  int64_t stride_aux;
  float *dbias;
  float *amax;
  float *found_inf;
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
};

/// Validated mp_gemm call.  k >= 0.
struct GemmProblem {
  Output out;
  int64_t k;
  mp_op_t op_a, op_b;
  mp_dtype_t dtype_ab;
  Operand a, b;
};

/// Returns the elements of k that are summed.  With alpha = 0, A and B are not read, like in BLAS.
inline int64_t summed_k(int64_t k, float alpha) {
  return alpha != 0.0f ? k : 0;
}

/// Returns the problem of a valid descriptor, without data and epilogue.
GemmProblem gemm_problem(const mp_gemm_desc_t &);

// ---------------------------------------------------------------------------- shape

/// Addressing of the items of a batch or group.
enum class ItemAccess {
  strided,   ///< base + i * stride
  pointers,  ///< device arrays of pointers: mp_gemm_batched
  groups     ///< products of different sizes in one launch: mp_gemm_grouped, mp_gemm_ragged
};

/// Memory layout of one matrix or batch of matrices.
struct MatrixLayout {
  int64_t ld = 0;
  int64_t stride = 0;      ///< elements; 0 = the same matrix for all items
  int32_t alignment = 16;  ///< alignment_of the first element; 16 if unknown

  bool operator==(const MatrixLayout &) const = default;
};

struct EpilogueShape {
  mp_activation_t activation;
  bool has_bias, has_aux, has_dbias, has_amax, has_found_inf;
  MatrixLayout aux;

  bool operator==(const EpilogueShape &) const = default;
};

/// Output without data: everything that kernel selection reads of it.
struct OutputShape {
  int64_t m, n;
  int64_t batch_count;
  mp_dtype_t dtype;
  ItemAccess items;  ///< addressing of A, B, C and D
  bool reads_c;      ///< beta != 0
  MatrixLayout c, d;
  EpilogueShape epilogue;

  bool operator==(const OutputShape &) const = default;
};

/// GemmProblem without data: the input of kernel selection, and the key of the plan cache.
struct GemmShape {
  OutputShape out;
  int64_t k;
  mp_op_t op_a, op_b;
  mp_dtype_t dtype_ab;
  MatrixLayout a, b;

  bool operator==(const GemmShape &) const = default;
  uint64_t hash() const;
};

struct Hash;
/// Mixes the fields that differ between calls of one program.
void mix(Hash &hash, const OutputShape &out);

/// Alignment of an address as selection distinguishes it: 16, 8 or 1 bytes.  NULL counts as
/// aligned.
int32_t alignment_of(const void *pointer);
OutputShape shape_of(const Output &);
GemmShape shape_of(const GemmProblem &);

// ---------------------------------------------------------------------------- groups

/// One GEMM of mp_gemm_grouped.  m, n > 0; k >= 0.
struct GemmGroupItem {
  int64_t m, n, k;
  int64_t ld_a, ld_b, ld_c, ld_d;
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

/// The problem that mp_gemm would get for one product of a group.
GemmProblem item_problem(const GemmGroup &, const GemmGroupItem &);

/// One mp_gemm_ragged call, after validation.  The out.batch_count groups share the m or the k of
/// `all` in parts that follow one another without a stride; the device reads where each ends.
struct RaggedProblem {
  GemmProblem all;
  mp_ragged_t dimension;
  const int32_t *ends;  ///< device
};

/// RaggedProblem without data.
struct RaggedShape {
  GemmShape all;  ///< all.out.items: ItemAccess::groups
  mp_ragged_t dimension;

  bool operator==(const RaggedShape &) const = default;
  uint64_t hash() const;
};
RaggedShape shape_of(const RaggedProblem &);

}  // namespace mp
