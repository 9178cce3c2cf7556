/* mpcore/gemm.h: matrix products (GEMM): single, batched, grouped and ragged. */
#ifndef MPCORE_GEMM_H
#define MPCORE_GEMM_H

#include "core.h"

MP_BEGIN_C

/** @defgroup gemm 5. GEMM
 *
 *  The kernel with the lowest predicted time is selected.  Predictions use built-in constants per
 *  device class.  The environment variable MP_GEMM_TUNING names a file that overrides them,
 *  from `make tune` (docs/log.md).  mp_tuning_measure measures the kernels instead.
 *
 *  @{ */

/** Form of an operand: as stored (N) or transposed (T). */
typedef enum mp_op { MP_OP_N = 1, MP_OP_T = 2 } mp_op_t;

/** Activation function, or its derivative, applied to each element of a result. */
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

/** Bits of mp_epilogue_t.flags. */
typedef enum mp_epilogue_flags {
  MP_EPILOGUE_FLAG_GATED = 1 << 0 /**< reserved for gated activations; not supported */
} mp_epilogue_flags_t;

/** Operations on the fp32 accumulators before they are rounded and stored, in this order:
 *
 *      z = alpha * *scale * acc + beta * C + bias[col]
 *      aux = z                     (if aux != NULL and the activation is not a D* kind)
 *      y = activation(z)           (or z * activation'(aux) for the D* kinds)
 *      D = round(y)
 *      dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)
 *
 *  If alpha * *scale is 0, the first term is 0 for any acc, as in BLAS.
 *
 *  Every activation propagates NaN.  Both forms of gelu and silu map -infinity to -0, their limit.
 *  The exact form of gelu has an error of at most 6 ulp, for negative results too, and is bitwise
 *  identical on all devices.
 *
 *  dbias, amax and found_inf use y *after* rounding to the type of D, because overflow happens in
 *  that rounding.  dbias also sums over batch items, in fp32 and in a fixed order.  It is computed
 *  by a second pass over D or, on Hopper with a workspace of an eighth of D's size, from partial
 *  sums of 16 rows that the kernel writes.  All pointers are device pointers and optional. */
typedef struct mp_epilogue {
  uint32_t struct_size;
  mp_activation_t activation;
  const float *scale; /**< 1 float; multiplies alpha, e.g. mp_scaler_get_inv_scale_address() */
  const void *bias;   /**< n elements */
  mp_dtype_t dtype_bias;
  uint32_t flags;        /**< bitwise or of mp_epilogue_flags_t */
  void *aux;             /**< m x n, type and batch layout of D; written, or read by MP_ACT_D* */
  int64_t ld_aux;        /**< 0 = ld_d */
  float *dbias;          /**< n floats, overwritten; zeros if m or batch_count is 0 */
  mp_grad_stats_t stats; /**< statistics of D */
} mp_epilogue_t;

/** Initializes an identity epilogue: no activation, bias or statistics. */
MP_API mp_status_t mp_epilogue_init(mp_epilogue_t *epilogue, size_t struct_size);
static inline mp_epilogue_t mp_epilogue_default(void) {
  mp_epilogue_t epilogue;
  mp_epilogue_init(&epilogue, sizeof epilogue);
  return epilogue;
}

/** Plan of a call: the kernel and everything else that determines the bits of the result.
 *
 *  mp_gemm_get_plan, mp_gemm_batched_get_plan, mp_conv2d_get_plan and mp_rnn_get_plan make plans;
 *  the field `plan` of a descriptor selects one, and NULL lets the library choose at each call.  A
 *  plan contains no pointers, so it can be stored in a file.
 *
 *  Guarantee: the same plan, descriptor and data with the same alignment give the same bits on all
 *  devices of one architecture, regardless of workspace size, tuning file and SM limit.  Exception:
 *  kernels "..._c2" use pairs of SMs, so with an SM limit of 1 the call returns
 *  MP_ERROR_UNSUPPORTED, as do kernels "conv_wgmma..._copied" with a driver that rejects tensor
 *  maps of overlapping pixels.
 *
 *  A plan for another descriptor runs if its kernel supports the shape.  It may then require
 *  another workspace, which the workspace query with that plan returns.
 *
 *  Errors of calls with a plan:
 *
 *      MP_ERROR_NOT_FOUND            unknown kernel, even if the problem is empty
 *      MP_ERROR_UNSUPPORTED          the kernel does not support this problem; the message has the
 *                                    reason
 *      MP_ERROR_INVALID_ARGUMENT     kernel is empty, split_k differs from that of the kernel, or
 *                                    a field is negative
 *      MP_ERROR_WORKSPACE_TOO_SMALL  fewer bytes than the workspace query returns
 *
 *  Calls with alpha == 0 or k == 0 use neither the plan nor its workspace: an unknown kernel is an
 *  error, an unsupported one is not.
 *
 *  A plan that only names a kernel, as from mp_plan_init, has split_k = 0.  It forces that kernel,
 *  without the guarantee: dbias and rnn products depend on the workspace and the device. */
typedef struct mp_plan {
  uint32_t struct_size;
  int32_t split_k;        /**< number of slices of k; 1 = no split; 0 = not set: the plan only
                               names a kernel, and calls ignore the other fields */
  char kernel[64];        /**< NUL-terminated, e.g. "wmma_128x128x32_s3_k8" */
  size_t workspace_bytes; /**< workspace that a call with this plan and the descriptor of the
                               plan requires */
  double predicted_us;    /**< 0 for recurrent layers; not read by calls */
  int32_t num_sms;    /**< number of SMs by which some kernels divide a sum, also on devices with
                               another number; 0 = that of the device */
  uint32_t reserved0; /**< must be 0 */
  /** Recurrent layers: one code of a kernel name per product: [0, 9) for the first layer, [9, 18)
   *  for all others, 0 for a product that the layer lacks.  The order of the products and the codes
   *  belong to the library.  Otherwise 0. */
  uint32_t products[18];
} mp_plan_t;

/** Initializes a plan that only names a kernel.
 *  @param kernel  host, NUL-terminated; see mp_gemm_kernel_info.  Calls reject a plan made with
 *                 NULL or with a name of 64 or more characters, which no kernel has. */
MP_API mp_status_t mp_plan_init(mp_plan_t *plan, size_t struct_size, const char *kernel);
static inline mp_plan_t mp_plan_default(const char *kernel) {
  mp_plan_t plan;
  mp_plan_init(&plan, sizeof plan, kernel);
  return plan;
}

/** Shape, types and layout of a GEMM.  A descriptor contains no data pointers, so it can be reused
 *  and serves as the key for workspace queries and kernel selection. */
typedef struct mp_gemm_desc {
  uint32_t struct_size;
  mp_op_t op_a, op_b;
  mp_dtype_t dtype_ab; /**< MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores */
  mp_dtype_t dtype_cd; /**< any type, independent of dtype_ab */
  float alpha, beta;
  int32_t batch_count; /**< number of products, >= 0 */
  int64_t m, n, k;     /**< op(A) is m x k, op(B) is k x n, C and D are m x n */
  int64_t ld_a, ld_b, ld_c, ld_d;
  /** Elements between batch items.  0 for a or b: all items share one matrix. */
  int64_t stride_a, stride_b, stride_c, stride_d;
  const mp_plan_t *plan; /**< host; NULL = the library chooses at each call */
} mp_gemm_desc_t;

/** Initializes a dense, untransposed, unbatched product: alpha = 1, beta = 0, ld_a = k,
 *  ld_b = ld_c = ld_d = n. */
MP_API mp_status_t mp_gemm_desc_init(mp_gemm_desc_t *desc, size_t struct_size, int64_t m, int64_t n,
                                     int64_t k, mp_dtype_t dtype_ab, mp_dtype_t dtype_cd);
static inline mp_gemm_desc_t mp_gemm_desc_default(int64_t m, int64_t n, int64_t k,
                                                  mp_dtype_t dtype_ab, mp_dtype_t dtype_cd) {
  mp_gemm_desc_t desc;
  mp_gemm_desc_init(&desc, sizeof desc, m, n, k, dtype_ab, dtype_cd);
  return desc;
}

/** Returns the workspace size with which mp_gemm is fastest, for 16-byte aligned operands; often 0.
 *  If desc->plan is set, returns that of the plan.
 *  @param epilogue  host, optional: that of the call.  Its pointers are not read; any multiple of
 *                   16 can stand for memory that is not allocated yet.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                          const mp_epilogue_t *epilogue, size_t *bytes);

/** Returns the fastest plan of mp_gemm for 16-byte aligned operands.  If desc->plan is set, returns
 *  the complete plan of its kernel.
 *  @param epilogue             host, optional; as in mp_gemm_workspace_size.
 *  @param max_workspace_bytes  limit; SIZE_MAX = none.
 *  @param plan                 host, out; initialize it with MP_INIT_STRUCT.
 *  @retval MP_ERROR_NOT_FOUND the problem is empty */
MP_API mp_status_t mp_gemm_get_plan(mp_context_t context, const mp_gemm_desc_t *desc,
                                    const mp_epilogue_t *epilogue, size_t max_workspace_bytes,
                                    mp_plan_t *plan);

/** Computes a matrix product with fp32 accumulation: D = epilogue(alpha op(A) op(B) + beta C).
 *
 *  @param A  device; m x k with row stride ld_a (MP_OP_N), or k x m (MP_OP_T).  A and B are not
 *            read if alpha == 0 (may be NULL, may hold NaN).
 *  @param B  device; k x n with row stride ld_b (MP_OP_N), or n x k (MP_OP_T).
 *  @param C  device; m x n.  Not read if beta == 0 (may be NULL, may hold NaN).
 *  @param D  device; m x n.  May be the same matrix as C (equal ld and stride).  Any other overlap
 *            with an argument is an error.  If both row strides are equal in bytes, elements are
 *            compared, so D may use the columns between A's rows; otherwise address ranges are
 *            compared.
 *  @param epilogue   host, optional.
 *  @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
 *                    mp_gemm_workspace_size the fastest kernel that fits is used: possibly
 *                    slower, never an error.
 *
 *  Edge cases follow BLAS: m, n or batch_count == 0 writes nothing except dbias; k == 0 or
 *  alpha == 0 computes epilogue(beta C), without workspace.
 *
 *  Alignment: only that of the elements is required.  16-byte aligned pointers and ld % 8 == 0 take
 *  the tensor-core path with asynchronous copies; anything else is slower.  An A or B with any
 *  other ld or stride is first copied into workspace with aligned rows if that is predicted to be
 *  faster.  If the predicted time is at least 20% longer than with aligned operands, both times are
 *  logged once at MP_LOG_WARN.
 *
 *  Accuracy: products of fp16/bf16 are exact in fp32.  They are summed in fp32, with the
 *  rounding of tensor cores, in an order that depends only on (desc, epilogue, alignment,
 *  workspace_bytes, device, MP_GEMM_TUNING), or with desc->plan as mp_plan_t guarantees.  D is
 *  rounded once.
 *  @source Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a dimension < 0, an ld smaller than the row length, or an
 *          output that overlaps another argument
 *  @retval MP_ERROR_UNSUPPORTED D has 2^31 or more tiles of 16 x 16 over all batch items */
MP_API mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A,
                           const void *B, const void *C, void *D, const mp_epilogue_t *epilogue,
                           void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** Selects kernels by measured times: for each new call of mp_gemm and mp_conv2d_* with this
 *  context, the library runs the kernels that are predicted to be the fastest, several times each,
 *  and remembers the fastest for the process.  Calls are equal if descriptor, epilogue (which
 *  pointers are set), alignment, workspace_bytes and device are.  The kernel that is predicted to
 *  be the fastest is kept unless another one is at least 2% faster.
 *
 *  To measure the calls of a program, run one step of it: results are those of an ordinary call.
 *  A measuring call allocates device memory as large as its outputs and waits for the device.  No
 *  thread may capture a CUDA graph at that time, other threads should be idle, and ranks must
 *  measure at the same point of a step.  Between the runs, operands stay in caches.
 *
 *  Not measured: calls with desc->plan, mp_gemm_batched, mp_gemm_grouped (which may use kernels
 *  that were measured for equal calls of mp_gemm), mp_gemm_ragged, and recurrent layers.
 *
 *  Other kernels add in another order, so results differ in the last bits from those without
 *  measurements and, because times vary, between processes.  For equal bits, measure once and set
 *  MP_GEMM_TUNING to a file with mp_tuning_get_text, or use plans.
 *
 *  @param max_kernels  number of kernels to measure for a call; 0 = stop measuring, but use earlier
 *                      measurements */
MP_API mp_status_t mp_tuning_measure(mp_context_t context, int32_t max_kernels);

/** Returns the measurements of this process, as lines for the file that MP_GEMM_TUNING names.  They
 *  may follow a table of constants.  They apply to devices with the same architecture and number of
 *  SMs, and to this version of the library; other devices and versions ignore them.
 *  @param text   host, optional, out: NUL-terminated; NULL only returns the size.
 *  @param bytes  host.  In: size of text.  Out: required size, including the NUL.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL *bytes is smaller than the required size */
MP_API mp_status_t mp_tuning_get_text(char *text, size_t *bytes);

/** Returns the workspace size of mp_gemm_batched, like mp_gemm_workspace_size.  On Hopper,
 *  mp_gemm_batched may need workspace where mp_gemm needs none.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_batched_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                                  const mp_epilogue_t *epilogue, size_t *bytes);

/** Returns the fastest plan of mp_gemm_batched, like mp_gemm_get_plan. */
MP_API mp_status_t mp_gemm_batched_get_plan(mp_context_t context, const mp_gemm_desc_t *desc,
                                            const mp_epilogue_t *epilogue,
                                            size_t max_workspace_bytes, mp_plan_t *plan);

/** Computes a batched product like mp_gemm, with one pointer per batch item instead of a stride.
 *
 *  @param desc     desc->stride_* must be 0.
 *  @param A,B,C,D  device arrays of desc->batch_count device pointers, read when the kernel runs:
 *                  keep them alive until then.  C is optional if beta == 0.  As in mp_gemm,
 *                  matrices need only the alignment of their elements; an item that is not
 *                  16-byte aligned is detected on the device, costs time and is not logged.
 *  @param epilogue  host, optional; aux, dbias and amax are not supported.
 *
 *  The host does not read the pointers, so overlaps are not detected: an item of D that overlaps
 *  any matrix except its own item of C gives wrong results. */
MP_API mp_status_t mp_gemm_batched(mp_context_t context, const mp_gemm_desc_t *desc,
                                   const void *const *A, const void *const *B, const void *const *C,
                                   void *const *D, const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** One product of mp_gemm_grouped: shape and matrices, as in mp_gemm. */
typedef struct mp_gemm_group_item {
  uint32_t struct_size; /**< in an array, also the distance between elements, in bytes */
  uint32_t reserved0;   /**< must be 0 */
  int64_t m, n, k;
  int64_t ld_a, ld_b, ld_c, ld_d;
  const void *A, *B, *C; /**< device */
  void *D;               /**< device */
} mp_gemm_group_item_t;

/** Initializes a dense, untransposed item without data: ld_a = k, ld_b = ld_c = ld_d = n. */
MP_API mp_status_t mp_gemm_group_item_init(mp_gemm_group_item_t *item, size_t struct_size,
                                           int64_t m, int64_t n, int64_t k);
static inline mp_gemm_group_item_t mp_gemm_group_item_default(int64_t m, int64_t n, int64_t k) {
  mp_gemm_group_item_t item;
  mp_gemm_group_item_init(&item, sizeof item, m, n, k);
  return item;
}

/** Returns the workspace size for the fastest mp_gemm_grouped.  It depends on the shapes and
 *  leading dimensions of the items, not on their pointers.
 *  @param epilogue  host, optional; as in mp_gemm_workspace_size.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_grouped_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                                  int32_t count, const mp_gemm_group_item_t *items,
                                                  const mp_epilogue_t *epilogue, size_t *bytes);

/** Computes `count` products of different shapes, such as the experts of a layer or the weight
 *  gradients of a network.  Each is a product as in mp_gemm:
 *
 *      D = epilogue(alpha op(A) op(B) + beta C)
 *
 *  The products share one launch if a kernel supports the whole group.  Otherwise each takes a
 *  launch: possibly slower, never an error, and logged once at MP_LOG_WARN if the caller can change
 *  the cause.
 *
 *  The products may run concurrently, so no D may overlap any matrix of another product; A, B and C
 *  may be shared.  A D that overlaps a matrix of its own product, or the previous D in memory, is
 *  an error; other overlaps are not detected.
 *
 *  @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
 *                and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).  desc->plan: its
 *                kernel runs every product; the other fields are ignored.
 *  @param items  host, count elements, copied; may be NULL if count is 0.  The call can be captured
 *                into a CUDA graph, which then keeps these shapes and pointers.
 *                Edge cases as in mp_gemm: m or n == 0 does nothing, k == 0 computes
 *                epilogue(beta C).
 *  @param epilogue   host, optional: scale and found_inf, shared by all products.  All other fields
 *                    must be 0.
 *  @param workspace  device, 256-byte aligned, optional; see mp_gemm_grouped_workspace_size.
 *
 *  If an item is invalid, nothing is enqueued, and the message names the item:
 *  "mp_gemm_grouped: items[3].ld_a = 60 is smaller than k = 64". */
MP_API mp_status_t mp_gemm_grouped(mp_context_t context, const mp_gemm_desc_t *desc, int32_t count,
                                   const mp_gemm_group_item_t *items, const mp_epilogue_t *epilogue,
                                   void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** Dimension that is divided among the groups of mp_gemm_ragged. */
typedef enum mp_ragged {
  MP_RAGGED_M = 1, /**< rows: forward pass and input gradients of experts */
  MP_RAGGED_K = 2  /**< k: weight gradients of experts */
} mp_ragged_t;

/** Returns the workspace size for the fastest mp_gemm_ragged, for any ends.
 *  @param epilogue  host, optional; as in mp_gemm_workspace_size.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_ragged_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                                 mp_ragged_t ragged, const mp_epilogue_t *epilogue,
                                                 size_t *bytes);

/** Computes products of groups whose sizes are known only on the device, such as the tokens routed
 *  to each expert of a layer.  The dimension `ragged` is divided among desc->batch_count groups:
 *  group i has the elements [ends[i - 1], ends[i]), and the first group begins at 0:
 *
 *      MP_RAGGED_M:  D[rows of i] = epilogue(alpha op(A)[rows of i] op(B_i) + beta C[rows of i])
 *      MP_RAGGED_K:  D_i = epilogue(alpha op(A)[:, k of i] op(B)[k of i, :] + beta C_i)
 *
 *  The host neither reads `ends` nor waits for them, and the launches do not depend on them.  The
 *  call can be captured into a CUDA graph; each replay reads the current ends.
 *
 *  @param desc  all groups together: m (MP_RAGGED_M) or k (MP_RAGGED_K) is the upper bound of
 *               `ends`.  MP_RAGGED_M: op(A) is m x k, C and D are m x n, and B_i = B + i stride_b;
 *               stride_b = 0 is one B for all groups, the other strides must be 0.  MP_RAGGED_K:
 *               op(A) is m x k, op(B) is k x n, C_i = C + i stride_c and D_i = D + i stride_d;
 *               stride_a and stride_b must be 0.  desc->plan: only its kernel is used.
 *  @param ends  device, desc->batch_count values in ascending order, read when the kernels run.
 *               Two equal values make an empty group.  Invalid values are clamped to the previous
 *               end and to m or k, so they never cause accesses outside the matrices.
 *  @param A,B,C,D  as in mp_gemm.  MP_RAGGED_M: rows after the last group are neither read nor
 *               written.  MP_RAGGED_K: elements of k after the last group are not read; an empty
 *               group computes epilogue(beta C_i), which is zero if beta = 0.
 *  @param epilogue   host, optional: scale, amax and found_inf, shared by all groups.  All other
 *                    fields must be 0.
 *  @param workspace  device, 256-byte aligned, optional; see mp_gemm_ragged_workspace_size.
 *
 *  Edge cases, alignment and accuracy as in mp_gemm; the order of a sum also depends on the start
 *  of its group in k.  Hopper's wgmma kernels require groups that are consecutive rows in memory:
 *  op_a = MP_OP_N with MP_RAGGED_M; op_a = MP_OP_T and op_b = MP_OP_N with MP_RAGGED_K.  Other
 *  layouts run on WMMA kernels.
 *  @source jax.lax.ragged_dot; torch._grouped_mm, whose offs are the ends.
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a stride that must be 0 is not, or the D_i overlap */
MP_API mp_status_t mp_gemm_ragged(mp_context_t context, const mp_gemm_desc_t *desc,
                                  mp_ragged_t ragged, const int32_t *ends, const void *A,
                                  const void *B, const void *C, void *D,
                                  const mp_epilogue_t *epilogue, void *workspace,
                                  size_t workspace_bytes, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_GEMM_H */
