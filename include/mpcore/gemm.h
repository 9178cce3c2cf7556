/* mpcore/gemm.h: matrix products. */
#ifndef MPCORE_GEMM_H
#define MPCORE_GEMM_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup gemm 4. GEMM
 *
 *  Which kernel runs a problem follows from predicted times, and these from constants of the kind
 *  of device.  The environment variable MP_GEMM_TUNING names a file with others, such as `make
 *  tune` writes after measuring a device (its form: kernels/gemm/tuning.h).  It is read once per
 *  process, when the first kernel is chosen; a file that is no table is reported at MP_LOG_WARN and
 *  changes nothing.
 *
 *  @{ */

/** An operand as it is stored, or its transpose. */
typedef enum mp_op { MP_OP_N = 0, MP_OP_T = 1 } mp_op_t;

/** A function applied to each element of a result, or its derivative. */
typedef enum mp_activation {
  MP_ACT_NONE = 0,
  MP_ACT_RELU = 1,
  MP_ACT_GELU = 2,    /**< tanh form: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3))) */
  MP_ACT_DRELU = 3,   /**< backward: multiplies by relu'(aux) */
  MP_ACT_DGELU = 4,   /**< backward: multiplies by gelu'(aux) */
  MP_ACT_SIGMOID = 5, /**< 1 / (1 + exp(-z)) */
  MP_ACT_TANH = 6,
  MP_ACT_DSIGMOID = 7,  /**< backward: multiplies by sigmoid'(aux) */
  MP_ACT_DTANH = 8,     /**< backward: multiplies by tanh'(aux) */
  MP_ACT_SILU = 9,      /**< z / (1 + exp(-z)), also called swish */
  MP_ACT_DSILU = 10,    /**< backward: multiplies by silu'(aux) */
  MP_ACT_GELU_ERF = 11, /**< exact form: 0.5 z (1 + erf(z / sqrt(2))) */
  MP_ACT_DGELU_ERF = 12 /**< backward: multiplies by gelu'(aux) of the exact form */
} mp_activation_t;

/** Work done on the fp32 accumulators before they are rounded and stored.  In order:
 *
 *      z = alpha * *scale * acc + beta * C + bias[col]
 *      aux = z                     (if aux != NULL and the activation is not a D* kind)
 *      y = activation(z)           (or z * activation'(aux) for the D* kinds)
 *      D = round(y)
 *      dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)
 *
 *  If alpha * *scale is 0, the first term is 0 too, whatever acc is, as in BLAS.
 *  A NaN stays NaN through every activation; both forms of gelu, and silu, of -infinity are -0,
 *  their limit.  The exact form of gelu is within 6 ulp of its value, negative results too, and has
 *  the same bits on every device.
 *
 *  dbias, amax and found_inf look at y *after* rounding to the type of D, because overflow
 *  happens in that rounding.  dbias sums over batch items too, in fp32 and a fixed order: in a
 *  pass over D, or with workspace for an eighth of D's bytes over sums of 16 rows that kernels
 *  for Hopper leave behind.  All pointers are device and optional. */
typedef struct mp_epilogue {
  uint32_t struct_size;
  mp_activation_t activation;
  const float *scale; /**< 1 float multiplied into alpha, e.g. mp_scaler_inv_scale() */
  const void *bias;   /**< n elements */
  mp_dtype_t bias_dtype;
  uint32_t reserved0; /**< must be 0 */
  void *aux;          /**< m x n, type and batch layout of D; written forward, read by MP_ACT_D* */
  int64_t ld_aux;     /**< 0 = ldd */
  float *dbias;       /**< n floats, overwritten; zeros when m or batch_count is 0 */
  float *amax;        /**< 1 float, updated; clear it first */
  float *found_inf;   /**< 1 float, set to 1 and never cleared (sticky) */
} mp_epilogue_t;

/** No function, nothing added, nothing measured. */
MP_API mp_status_t mp_epilogue_init(mp_epilogue_t *epilogue, size_t struct_size);
static inline mp_epilogue_t mp_epilogue_default(void) {
  mp_epilogue_t epilogue;
  mp_epilogue_init(&epilogue, sizeof epilogue);
  return epilogue;
}

/** Shape, types and layout of a GEMM; no data pointers, so that one descriptor
 *  serves as a key for workspace queries and kernel choice and can be reused. */
typedef struct mp_gemm_desc {
  uint32_t struct_size;
  mp_op_t op_a, op_b;
  mp_dtype_t dtype_ab; /**< MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores */
  mp_dtype_t dtype_cd; /**< any, whatever dtype_ab is */
  float alpha, beta;
  /** >= 0.  0 together with alpha = 0 is refused: a descriptor without mp_gemm_desc_init. */
  int32_t batch_count;
  int64_t m, n, k; /**< op(A) is m x k, op(B) is k x n, C and D are m x n */
  int64_t lda, ldb, ldc, ldd;
  /** Elements between batch items; 0 in a or b = the same matrix for all items. */
  int64_t stride_a, stride_b, stride_c, stride_d;
  const char *kernel; /**< host; NULL = the library's choice; see mpcore/experimental.h */
} mp_gemm_desc_t;

/** Dense, untransposed, unbatched, alpha = 1, beta = 0; lda = k, ldb = ldc = ldd = n. */
MP_API mp_status_t mp_gemm_desc_init(mp_gemm_desc_t *desc, size_t struct_size, int64_t m, int64_t n,
                                     int64_t k, mp_dtype_t dtype_ab, mp_dtype_t dtype_cd);
static inline mp_gemm_desc_t mp_gemm_desc_default(int64_t m, int64_t n, int64_t k,
                                                  mp_dtype_t dtype_ab, mp_dtype_t dtype_cd) {
  mp_gemm_desc_t desc;
  mp_gemm_desc_init(&desc, sizeof desc, m, n, k, dtype_ab, dtype_cd);
  return desc;
}

/** Bytes of workspace with which mp_gemm (or mp_gemm_batched) runs its fastest kernel for
 *  `desc` and sums dbias fastest; often 0.  dbias, of which a descriptor says nothing, has at most
 *  32 MiB of it: on Hopper a 16-bit D of more than 256 MiB gains by an eighth of its own bytes,
 *  given in addition.  Of a kernel that desc names: what that cannot do without.
 *
 *  desc->stride_* say which function is meant: with a stride that is not 0 it is mp_gemm, without
 *  any and with batch_count > 1 mp_gemm_batched.  A batch of one without strides may be either, and
 *  the bytes are enough for both; on Hopper mp_gemm_batched wants some where mp_gemm wants none.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                          size_t *bytes);

/** Matrix product with fp32 accumulation:  D = epilogue(alpha op(A) op(B) + beta C).
 *
 *  @param A  device; m x k with row stride lda (MP_OP_N), or k x m (MP_OP_T).  A and B are not read
 *            when alpha == 0 (may be NULL, may hold NaN); desc->kernel plays no part then.
 *  @param B  device; k x n with row stride ldb (MP_OP_N), or n x k (MP_OP_T).
 *  @param C  device; m x n.  Not read when beta == 0 (may be NULL, may hold NaN).
 *  @param D  device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
 *            with an argument is refused.  If both row strides are equal in bytes, elements are
 *            compared, so D may use columns between A's rows; otherwise address ranges.
 *  @param epilogue   host, optional.
 *  @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
 *                    mp_gemm_workspace_size the fastest kernel that needs no more is chosen:
 *                    never an error, perhaps slower.
 *
 *  Edge cases follow BLAS: m, n or batch_count == 0 does nothing; k == 0 and alpha == 0 compute
 *  epilogue(beta C), without workspace.  There is no minimum alignment: 16-byte aligned pointers
 *  and ld % 8 == 0 take the tensor-core path with asynchronous copies, anything else a slower one.
 *  For another ld or stride of A or B that is the fast one behind a copy in workspace, where this
 *  is predicted to pay.  If aligned operands are predicted to be a fifth faster, the two times are
 *  logged, once, at MP_LOG_WARN.
 *
 *  Accuracy: products of fp16/bf16 are exact in fp32; they are summed in fp32 the way
 *  the tensor core does it, in an order fixed by (desc, alignment, workspace_bytes, device,
 *  MP_GEMM_TUNING), and rounded once.
 *  @source Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a dimension < 0, an ld below the row length, an output that
 *          overlaps another argument
 *  @retval MP_ERROR_UNSUPPORTED D has 2^31 or more tiles of 16 x 16, those of all items together */
MP_API mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A,
                           const void *B, const void *C, void *D, const mp_epilogue_t *epilogue,
                           void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** As mp_gemm, with one pointer per batch item instead of a stride.
 *  @param A,B,C,D  device arrays of desc->batch_count device pointers; C is optional
 *                  when beta == 0.  desc->stride_* must be 0.  The arrays are read when
 *                  the kernel runs: keep them alive until then.  As in mp_gemm a matrix
 *                  needs no alignment but its element's; that one item lacks 16 bytes is
 *                  found out on the device, costs time and is not logged.
 *  The host does not see the matrices: an item of D that overlaps another matrix, except its own
 *  item of C, is not refused and gives wrong results.
 *  epilogue->aux, dbias, amax are unsupported here. */
MP_API mp_status_t mp_gemm_batched(mp_context_t context, const mp_gemm_desc_t *desc,
                                   const void *const *A, const void *const *B, const void *const *C,
                                   void *const *D, const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** One product of mp_gemm_grouped: its shape and its matrices, as in mp_gemm. */
typedef struct mp_gemm_group_item {
  uint32_t struct_size; /**< in an array, also the distance between elements */
  uint32_t reserved0;   /**< must be 0 */
  int64_t m, n, k;
  int64_t lda, ldb, ldc, ldd;
  const void *A, *B, *C; /**< device */
  void *D;               /**< device */
} mp_gemm_group_item_t;

/** Dense, untransposed, no data yet; lda = k, ldb = ldc = ldd = n. */
MP_API mp_status_t mp_gemm_group_item_init(mp_gemm_group_item_t *item, size_t struct_size,
                                           int64_t m, int64_t n, int64_t k);
static inline mp_gemm_group_item_t mp_gemm_group_item_default(int64_t m, int64_t n, int64_t k) {
  mp_gemm_group_item_t item;
  mp_gemm_group_item_init(&item, sizeof item, m, n, k);
  return item;
}

/** Bytes of workspace with which mp_gemm_grouped is fastest.  Shapes and ld of the items count,
 *  their pointers are not looked at.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_grouped_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                                  int32_t count, const mp_gemm_group_item_t *items,
                                                  size_t *bytes);

/** `count` products of different shapes in one call: the experts of a layer, the weight
 *  gradients of a network.  Each is what mp_gemm computes:
 *
 *      D = epilogue(alpha op(A) op(B) + beta C)
 *
 *  The products may run at the same time, in one launch where a kernel for that exists and in one
 *  launch per product elsewhere (logged once at MP_LOG_WARN where the caller can change that):
 *  never an error, perhaps slower.  So no D may overlap any matrix of another product; A, B and C
 *  may be shared.  Overlaps of a D with the matrices of its own product and with the D before it in
 *  memory are refused; others are not looked for.
 *
 *  @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
 *                and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).
 *  @param items  host, count elements, copied: the call can be captured into a CUDA graph, which
 *                then keeps these shapes and pointers.  May be NULL when count is 0.
 *                Edge cases as in mp_gemm: m or n == 0 does nothing, k == 0 computes
 *                epilogue(beta C).
 *  @param epilogue   host, optional: scale and found_inf, shared by all products.  Everything
 *                    else is unsupported here and must be 0.
 *  @param workspace  device, 256-byte aligned, optional; see mp_gemm_grouped_workspace_size.
 *
 *  An error names the product, "mp_gemm_grouped: items[3].lda = 60 is smaller than k = 64", and
 *  then none of them has been enqueued. */
MP_API mp_status_t mp_gemm_grouped(mp_context_t context, const mp_gemm_desc_t *desc, int32_t count,
                                   const mp_gemm_group_item_t *items, const mp_epilogue_t *epilogue,
                                   void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** The dimension that the groups of mp_gemm_ragged share. */
typedef enum mp_ragged {
  MP_RAGGED_M = 0, /**< rows: forward pass and input gradients of the experts of a layer */
  MP_RAGGED_K = 1  /**< k: their weight gradients */
} mp_ragged_t;

/** Bytes of workspace with which mp_gemm_ragged is fastest, whatever the ends are.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_ragged_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                                 mp_ragged_t ragged, size_t *bytes);

/** Products of groups whose sizes only the device knows, such as the tokens that each expert of a
 *  layer got.  desc->batch_count groups share the dimension `ragged`; group i has its elements from
 *  ends[i - 1] on (from 0 on, the first) up to and without ends[i]:
 *
 *      MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
 *      MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)
 *
 *  The host never reads the ends nor waits for them: the call can be captured into a CUDA graph,
 *  and a replay finds the ends that are there then.  What is launched does not depend on them.
 *
 *  @param desc  of all groups together: in the dimension that they share, m or k is the most that
 *               the ends may come to.  MP_RAGGED_M: op(A) is m x k, C and D are m x n; B_i = B + i
 *               stride_b, stride_b = 0 is one B for all, and the other strides must be 0.
 *               MP_RAGGED_K: op(A) is m x k, op(B) k x n; C_i = C + i stride_c, D_i = D + i
 *               stride_d, and stride_a and stride_b must be 0.
 *  @param ends  device, desc->batch_count elements that rise (equal ones: an empty group), read
 *               when the kernels run.  An end that lies before its predecessor counts as equal to
 *               it, one past m or k as m or k: bad ends never read or write beyond the matrices.
 *  @param A,B,C,D  as in mp_gemm.  MP_RAGGED_M: rows at and past the last end are not read, and
 *               those of D not written.  MP_RAGGED_K: elements of k past the last end are not read;
 *               an empty group computes epilogue(beta C_i), zeros with beta = 0.
 *  @param epilogue   host, optional: scale, amax and found_inf, shared by all groups.  Everything
 *                    else is unsupported here and must be 0.
 *  @param workspace  device, 256-byte aligned, optional; see mp_gemm_ragged_workspace_size.
 *
 *  Edge cases, alignment and accuracy as in mp_gemm; the order of a sum also depends on where in k
 *  its group begins.  Hopper's kernels need groups that lie one below the other in memory: op_a =
 *  MP_OP_N with MP_RAGGED_M, op_a = MP_OP_T and op_b = MP_OP_N with MP_RAGGED_K.  Other orders take
 *  WMMA's.
 *  @source jax.lax.ragged_dot; torch._grouped_mm, whose offs are the ends.
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a stride that must be 0 is not; D_i that overlap */
MP_API mp_status_t mp_gemm_ragged(mp_context_t context, const mp_gemm_desc_t *desc,
                                  mp_ragged_t ragged, const int32_t *ends, const void *A,
                                  const void *B, const void *C, void *D,
                                  const mp_epilogue_t *epilogue, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_GEMM_H */
