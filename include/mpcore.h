/* mpcore.h - mixed-precision training kernels behind a C ABI.
 *
 * The library does four things:
 *
 *   multiply    mp_gemm, mp_gemm_batched, mp_gemm_grouped          (section 4)
 *               mp_conv2d_fprop, _dgrad, _wgrad                    (section 5)
 *   measure     mp_check_nonfinite, mp_amax, mp_l2norm, mp_inspect (section 6)
 *   update      mp_scaler_*, mp_optimizer_*, mp_scale_step         (sections 7, 8, 10)
 *               mp_grad_all_reduce: between ranks                  (section 9)
 *   train       mp_softmax_xent: the loss and where backward starts (section 12)
 *               mp_pool2d_*, mp_batchnorm_*: around a convolution  (section 13)
 *
 * Section 11 (autocast) is not there yet; its number is kept for it.
 *
 * A training step, without error handling:
 *
 *     mp_gemm(...);                                           // forward, per layer
 *     mp_softmax_xent(ctx, &xent, logits, labels,             // loss; dlogits = S * gradient
 *                     mp_scaler_scale(scaler), row_loss, loss, correct, dlogits, stream);
 *     mp_gemm(...);                                           // backward: dgrad, wgrad
 *     mp_scale_step(optimizer, scaler, NULL, stream);         // all the rest
 *
 * RULES THAT HOLD FOR EVERY FUNCTION, so that they are not repeated below.
 *
 *   Argument order   object acted on, descriptor, inputs, outputs, workspace and
 *                    its size, stream.  In mp_*_create the new object comes first.
 *   Streams          A function with a `stream` argument enqueues work and returns.
 *                    It never allocates, never waits for the device, and may be
 *                    captured into a CUDA graph.  Only mp_*_create, mp_*_destroy,
 *                    mp_malloc, mp_free and functions ending in `_sync` may wait.
 *   Memory           "device" pointers are dereferenced by kernels only; "host"
 *                    pointers are read or written before the call returns.  The
 *                    library never frees memory it did not allocate.
 *   Matrices         Row-major.  `ld` is the distance, in elements, between the
 *                    starts of two consecutive rows.
 *   Rounding         fp32 -> fp16/bf16 rounds to nearest, ties to even, and lets
 *                    overflow become infinity: saturating would hide the overflow
 *                    from the loss scaler.  One exception: the 16-bit copy of the
 *                    weights, see MP_OPT_MODEL_OVERFLOW and
 *                    MP_OPT_STOCHASTIC_ROUNDING.
 *   Determinism      Equal inputs on the same device give bitwise equal outputs.
 *   Threads          A context may be used by several threads at once.  Any other
 *                    object belongs to one thread and one stream at a time, because
 *                    it owns its scratch memory.  mp_last_error is per thread.
 *   Errors           mp_status_t; MP_SUCCESS is 0.  Errors below 40 are detected
 *                    before anything is enqueued, and leave all outputs untouched.
 *                    Faults inside a running kernel surface at the next
 *                    synchronisation, as always in CUDA.  Functions that cannot fail
 *                    return their value directly.
 *   Null             mp_*_destroy(NULL) does nothing.  Any other NULL not described
 *                    as optional is MP_ERROR_INVALID_ARGUMENT.
 *
 * STABILITY.  Within one major version no function or enumerator is removed,
 * renumbered or changed in meaning, and structs only grow at the end (see
 * `struct_size` in section 1).  The part under MP_ENABLE_EXPERIMENTAL carries no
 * such promise.
 *
 * TARGETS.  Every kernel is compiled twice from one source: by nvcc for CUDA devices and
 * by the host compiler for the CPU.  A context picks one of the two when it is created
 * (mp_context_config.device).  The host target needs no GPU, no driver and no nvcc; it is
 * for development, CI and small jobs.  There, device pointers are ordinary pointers, the
 * stream argument is ignored, and a call has finished when it returns.
 */
#ifndef MPCORE_H
#define MPCORE_H

#include <stddef.h> /* size_t */
#include <stdint.h>
#include <string.h> /* memset, in MP_INIT_STRUCT */

#ifdef __cplusplus
extern "C" {
#endif

/* ======================================================================
 *  1. Version, visibility, struct versioning
 * ====================================================================== */

#define MP_VERSION_MAJOR 0
#define MP_VERSION_MINOR 1
#define MP_VERSION_PATCH 0
/** Comparable with <; 0.1.0 is 100, 1.2.3 is 10203. */
#define MP_VERSION (MP_VERSION_MAJOR * 10000 + MP_VERSION_MINOR * 100 + MP_VERSION_PATCH)

/** Symbols are hidden unless marked with MP_API; capi/exports.map repeats this. */
#if defined(__GNUC__)
#define MP_API __attribute__((visibility("default")))
#else
#define MP_API
#endif

/** MP_VERSION of the library that is loaded (not of this header). */
MP_API uint32_t mp_version(void);

/** One line: version, git hash, CUDA version, compiled targets and architectures.
 *  Static storage.  Meant for bug reports; do not parse it. */
MP_API const char *mp_build_info(void);

/* Every struct passed to the library starts with `struct_size`, which must be
 * sizeof that struct as the caller was compiled.  mp_*_init(&s, sizeof s, ...) fills a struct
 * with its defaults, and mp_*_default(...) is the same as a value.  MP_INIT_STRUCT is enough
 * where every default is 0.
 *
 * The defaults are the library's, for every language.  An mp_*_init function checks the size
 * alone; a field with a value out of its range is refused by the function that takes the struct.
 * Where it fails, all that it leaves is zeros, struct_size included, which every function refuses.
 *
 * A caller older than the library: fields beyond struct_size are taken as 0.
 * A caller newer than the library: unknown bytes must be 0, otherwise the call
 * fails with MP_ERROR_STRUCT_SIZE; a new feature is never silently ignored.
 * Hence every field added after 1.0 must mean "as before" when it is 0.
 * (Same protocol as copy_struct_from_user in Linux.)  Of a struct that the library
 * fills, at most struct_size bytes are written.
 *
 * Callers without a C compiler (ctypes, JNI) call mp_*_init with the size that they know. */

/** Zero *s and set s->struct_size. */
#define MP_INIT_STRUCT(s) \
  ((void)memset((s), 0, sizeof *(s)), (void)((s)->struct_size = (uint32_t)sizeof *(s)))

/* ======================================================================
 *  2. Status, error text, logging
 * ====================================================================== */

/** Values are part of the ABI.  The decades say whose fault it is. */
typedef enum mp_status {
  MP_SUCCESS = 0,

  /* 1-19: the call is wrong; repeating it cannot succeed. */
  MP_ERROR_INVALID_ARGUMENT = 1,    /**< a value outside its documented range */
  MP_ERROR_MISALIGNED = 2,          /**< a pointer or ld breaks a documented alignment */
  MP_ERROR_WORKSPACE_TOO_SMALL = 3, /**< ask mp_*_workspace_size */
  MP_ERROR_STRUCT_SIZE = 4,         /**< struct_size is 0, or asks for unknown features */

  /* 20-39: the call is right, this build or device cannot do it. */
  MP_ERROR_UNSUPPORTED = 20,   /**< no kernel for this combination; mp_last_error says which part */
  MP_ERROR_ARCH_MISMATCH = 21, /**< not compiled for this device */
  MP_ERROR_NOT_FOUND = 22,     /**< name unknown, enumeration exhausted, shared library missing */

  /* 40-59: the environment failed; repeating the call may succeed. */
  MP_ERROR_OUT_OF_MEMORY = 40,
  MP_ERROR_CUDA = 41, /**< mp_last_error has the CUDA error name */
  MP_ERROR_COMM = 42, /**< a callback of mp_comm_t failed; mp_last_error has its code */

  /* 60: a bug in mpcore; please report mp_last_error and mp_build_info. */
  MP_ERROR_INTERNAL = 60
} mp_status_t;

/** Name of the enumerator, e.g. "MP_ERROR_UNSUPPORTED".  Static storage; any int is accepted. */
MP_API const char *mp_status_string(mp_status_t status);

/** Why the last failing call on this thread failed, in one sentence naming the
 *  offending argument and its value: "mp_gemm: lda = 60 is smaller than k = 64".
 *  Meaningful right after a call that returned an error; valid until the next
 *  mpcore call on this thread.  Never NULL. */
MP_API const char *mp_last_error(void);

/** How much a message matters; a smaller number matters more. */
typedef enum mp_log_level {
  MP_LOG_ERROR = 1, /**< every returned error, once */
  MP_LOG_WARN = 2,  /**< slow paths taken for a reason the caller can change */
  MP_LOG_INFO = 3,  /**< kernel choices, the first time each is made */
  MP_LOG_DEBUG = 4  /**< every call */
} mp_log_level_t;

/** @param message  one line without newline; valid during the callback only.
 *  @param user     the pointer given to mp_set_log_callback. */
typedef void (*mp_log_callback_t)(mp_log_level_t level, const char *message, void *user);

/** Send messages of `level` or more important to `callback`, for the whole process.
 *  NULL restores the default: MP_LOG_WARN and above to stderr, changeable with the
 *  environment variable MP_LOG=error|warn|info|debug.  The callback may run on any
 *  thread, several at a time, and must not call mpcore. */
MP_API void mp_set_log_callback(mp_log_callback_t callback, void *user, mp_log_level_t level);

/* ======================================================================
 *  3. Types, context, device memory
 * ====================================================================== */

/** The same type as cudaStream_t, spelled out so that this header needs no CUDA
 *  headers.  NULL is the legacy default stream. */
typedef struct CUstream_st *mp_stream_t;

/** Element types.  0 is deliberately invalid: a forgotten field is an error. */
typedef enum mp_dtype {
  MP_DTYPE_NONE = 0,
  MP_FP16 = 1, /**< IEEE binary16: 5 exponent bits, 11 significant bits, max 65504 */
  MP_BF16 = 2, /**< bfloat16: 8 exponent bits, 8 significant bits */
  MP_FP32 = 3  /**< IEEE binary32 */
} mp_dtype_t;

/** Bytes per element; 0 for an invalid value. */
MP_API size_t mp_dtype_size(mp_dtype_t dtype);

typedef struct mp_context *mp_context_t;         /**< one device and its limits */
typedef struct mp_tensor_list *mp_tensor_list_t; /**< many tensors treated as one */
typedef struct mp_scaler *mp_scaler_t;           /**< a loss scale living on the device */
typedef struct mp_optimizer *mp_optimizer_t;     /**< update rule + the tensors it updates */

/** Where objects get device memory.  Called by mp_*_create and mp_*_destroy only. */
typedef struct mp_allocator {
  uint32_t struct_size;
  uint32_t reserved0; /**< must be 0 */
  /** 256-byte aligned, or NULL when out of memory. */
  void *(*alloc)(size_t bytes, void *user);
  /** Work that has been enqueued may still use ptr. */
  void (*free)(void *ptr, size_t bytes, void *user);
  void *user;
} mp_allocator_t;

/** Values of mp_context_config.device other than a CUDA ordinal. */
#define MP_DEVICE_CURRENT (-1) /**< the calling thread's current CUDA device, or an error */
#define MP_DEVICE_HOST (-2)    /**< the CPU */
#define MP_DEVICE_AUTO (-3)    /**< as CURRENT; HOST, with a warning, where there is none */

/** Which device a context is, and how it is used. */
typedef struct mp_context_config {
  uint32_t struct_size;
  int32_t device;   /**< CUDA ordinal, or one of MP_DEVICE_* */
  int32_t sm_limit; /**< use at most this many SMs; 0 = all.  Leaves room for NCCL. */
  uint32_t flags;   /**< must be 0 */
  /** Host, copied; NULL = cudaMalloc / cudaFree. */
  const mp_allocator_t *allocator;
} mp_context_config_t;

/** device = MP_DEVICE_AUTO, the whole of it, cudaMalloc. */
MP_API mp_status_t mp_context_config_init(mp_context_config_t *config, size_t struct_size);
static inline mp_context_config_t mp_context_config_default(void) {
  mp_context_config_t config;
  mp_context_config_init(&config, sizeof config);
  return config;
}

/** Create a context.  It becomes immutable here, which is why it can be shared.
 *  @param config  host, optional; NULL = defaults.
 *  @return MP_ERROR_ARCH_MISMATCH if this build holds no code for the device. */
MP_API mp_status_t mp_context_create(mp_context_t *context, const mp_context_config_t *config);

/** Objects created from `context` must have been destroyed before. */
MP_API void mp_context_destroy(mp_context_t context);

/** What the kernels of a context were compiled for. */
typedef enum mp_target { MP_TARGET_CUDA = 1, MP_TARGET_HOST = 2 } mp_target_t;

/** What a context says of its device. */
typedef struct mp_device_info {
  uint32_t struct_size;
  mp_target_t target;
  int32_t arch;           /**< 80, 90, ... */
  int32_t num_sms;        /**< after sm_limit */
  int64_t smem_per_block; /**< bytes a kernel may opt in to */
  int64_t l2_bytes;
  char name[64]; /**< NUL-terminated */
} mp_device_info_t;

/** @param info  host, out; MP_INIT_STRUCT it before the call. */
MP_API mp_status_t mp_context_get_info(mp_context_t context, mp_device_info_t *info);

/* Device memory.  For programs that should run on both backends (the tests and
 * examples of this library do) and for callers without the CUDA runtime at hand.
 * Nothing else in this header requires memory from here. */
/** *ptr = `bytes` of device memory, 256-byte aligned, with anything in it; NULL for 0 bytes. */
MP_API mp_status_t mp_malloc(mp_context_t context, void **ptr, size_t bytes);
/** Release what mp_malloc gave, when all that the device has been given to do is done: it waits.
 *  NULL does nothing. */
MP_API void mp_free(mp_context_t context, void *ptr);
/** Either side may be host or device memory.  Pageable host memory makes the copy
 *  synchronous, as in cudaMemcpyAsync. */
MP_API mp_status_t mp_memcpy(mp_context_t context, void *dst, const void *src, size_t bytes,
                             mp_stream_t stream);
/** Each of `bytes` bytes of dst, device memory, becomes `byte`. */
MP_API mp_status_t mp_memset(mp_context_t context, void *dst, int byte, size_t bytes,
                             mp_stream_t stream);
/** Wait until everything enqueued on `stream` has finished. */
MP_API mp_status_t mp_stream_sync(mp_context_t context, mp_stream_t stream);

/** dst[i] = (dst_dtype) src[i].  In-place is allowed only for equal sizes. */
MP_API mp_status_t mp_cast(mp_context_t context, const void *src, mp_dtype_t src_dtype, void *dst,
                           mp_dtype_t dst_dtype, int64_t count, mp_stream_t stream);

/* ======================================================================
 *  4. GEMM
 * ====================================================================== */

/** An operand as it is stored, or its transpose. */
typedef enum mp_op { MP_OP_N = 0, MP_OP_T = 1 } mp_op_t;

/** A function applied to each element of a result, or its derivative. */
typedef enum mp_activation {
  MP_ACT_NONE = 0,
  MP_ACT_RELU = 1,
  MP_ACT_GELU = 2,  /**< tanh form: 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3))) */
  MP_ACT_DRELU = 3, /**< backward: multiplies by relu'(aux) */
  MP_ACT_DGELU = 4  /**< backward: multiplies by gelu'(aux) */
} mp_activation_t;

/** Work done on the fp32 accumulators before they are rounded and stored.  In order:
 *
 *      z = alpha * *scale * acc + beta * C + bias[col]
 *      aux = z                     (if aux != NULL and the activation is not a D* kind)
 *      y = activation(z)           (or z * activation'(aux) for the D* kinds)
 *      D = round(y)
 *      dbias[col] = sum_rows D,  amax = max(amax, |D|),  found_inf |= !isfinite(D)
 *
 *  A NaN stays NaN through every activation; gelu of -infinity is -0, its limit.
 *
 *  dbias, amax and found_inf look at y *after* rounding to the type of D, because overflow
 *  happens in that rounding.  dbias sums over batch items too, in fp32 and a fixed order, in
 *  a second pass over D.  All pointers are device and optional. */
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
  int32_t batch_count; /**< >= 0 */
  int64_t m, n, k;     /**< op(A) is m x k, op(B) is k x n, C and D are m x n */
  int64_t lda, ldb, ldc, ldd;
  /** Elements between batch items; 0 in a or b = the same matrix for all items. */
  int64_t stride_a, stride_b, stride_c, stride_d;
  /** Host; NULL = the library's choice.  For tests, see mp_gemm_kernel_name. */
  const char *kernel;
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

/* Which kernel runs a problem follows from predicted times, and these from constants of the kind
 * of device.  The environment variable MP_GEMM_TUNING names a file with others, such as
 * bench/tune writes after measuring a device (its form: kernels/gemm/tuning.h).  It is read once
 * per process, when the first kernel is chosen; a file that is no table is reported at MP_LOG_WARN
 * and changes nothing. */

/** Bytes of workspace with which mp_gemm (or mp_gemm_batched) runs its fastest kernel for
 *  `desc`; often 0.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_gemm_workspace_size(mp_context_t context, const mp_gemm_desc_t *desc,
                                          size_t *bytes);

/** Matrix product with fp32 accumulation:  D = epilogue(alpha op(A) op(B) + beta C).
 *
 *  @param A  device; m x k with row stride lda (MP_OP_N), or k x m (MP_OP_T).
 *  @param B  device; k x n with row stride ldb (MP_OP_N), or n x k (MP_OP_T).
 *  @param C  device; m x n.  Not read when beta == 0 (may be NULL, may hold NaN).
 *  @param D  device; m x n.  May be the same matrix as C (equal ld and stride);
 *            any other overlap is undefined.
 *  @param epilogue   host, optional.
 *  @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
 *                    mp_gemm_workspace_size the fastest kernel that needs no more is chosen:
 *                    never an error, perhaps slower.
 *
 *  Edge cases follow BLAS: m, n or batch_count == 0 does nothing; k == 0 computes
 *  epilogue(beta C).  There is no minimum alignment: 16-byte aligned pointers and
 *  ld % 8 == 0 take the tensor-core path with asynchronous copies, anything else a
 *  slower one (logged once at MP_LOG_WARN).
 *
 *  Accuracy: products of fp16/bf16 are exact in fp32; they are summed in fp32 the way
 *  the tensor core does it, in an order fixed by (desc, alignment, workspace_bytes, device,
 *  MP_GEMM_TUNING), and rounded once.
 *  Source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.3.
 *
 *  @return MP_ERROR_INVALID_ARGUMENT     a dimension < 0, an ld below the row length
 *          MP_ERROR_NOT_FOUND            no kernel is called desc->kernel
 *          MP_ERROR_UNSUPPORTED          that kernel cannot run this problem
 *          MP_ERROR_WORKSPACE_TOO_SMALL  desc->kernel forces a kernel that needs more */
MP_API mp_status_t mp_gemm(mp_context_t context, const mp_gemm_desc_t *desc, const void *A,
                           const void *B, const void *C, void *D, const mp_epilogue_t *epilogue,
                           void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** As mp_gemm, with one pointer per batch item instead of a stride.
 *  @param A,B,C,D  device arrays of desc->batch_count device pointers; C is optional
 *                  when beta == 0.  desc->stride_* must be 0.  The arrays are read when
 *                  the kernel runs: keep them alive until then.  As in mp_gemm a matrix
 *                  needs no alignment but its element's; that one item lacks 16 bytes is
 *                  found out on the device, costs time and is not logged.
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
 *      D = epilogue(alpha op(A) op(B) + beta C)
 *
 *  The products may run at the same time, in one launch where a kernel for that exists and in one
 *  launch per product elsewhere (logged once at MP_LOG_WARN where the caller can change that):
 *  never an error, perhaps slower.  So no D may overlap any matrix of another product; A, B and C
 *  may be shared.
 *
 *  @param desc   op, dtype, alpha and beta of all products.  m, n, k, ld* and stride_* must be 0
 *                and batch_count 1: mp_gemm_desc_default(0, 0, 0, ab, cd).  desc->kernel
 *                names a kernel that runs every product.
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

/* ======================================================================
 *  5. Convolution (2-D, NHWC)
 * ====================================================================== */

/** Shape, types and layout of a convolution.  Names as in the CUTLASS documentation:
 *
 *      x, dx    activations  N H W C            dense, C contiguous
 *      y, dy    outputs      N P Q K
 *      filter   weights      K R S (C/groups)
 *
 *      P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
 *      y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
 *          x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]
 *
 *  Q likewise; x is 0 outside the image.  This is cross-correlation, which deep learning calls
 *  convolution.  Output channel k belongs to group k / (K/groups) and reads the input channels of
 *  that group.  A 1-D convolution has h = r = 1.  Where the filter is larger than the padded image,
 *  P or Q is 0: there are no outputs, and no gradient comes from them. */
typedef struct mp_conv2d_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< of the two inputs; MP_FP16, MP_BF16: tensor cores; MP_FP32: CUDA cores */
  mp_dtype_t dtype_out; /**< of the tensor that is written: any, whatever dtype is */
  int32_t n;            /**< >= 0 */
  int32_t h, w, c;      /**< >= 1 */
  int32_t k, r, s;      /**< >= 1 */
  int32_t pad_top, pad_bottom, pad_left, pad_right; /**< rows and columns of zeros, >= 0 */
  int32_t stride_h, stride_w;                       /**< >= 1 */
  int32_t dilation_h, dilation_w;                   /**< >= 1 */
  int32_t groups;                                   /**< divides c and k; c = depthwise */
  float alpha, beta;                                /**< out = alpha * conv + beta * out */
  uint32_t reserved0;                               /**< must be 0 */
  /** Host; NULL = the library's choice.  For tests, see mp_conv2d_kernel_name. */
  const char *kernel;
} mp_conv2d_desc_t;

/** Unit stride and dilation, no padding, one group, alpha = 1, beta = 0, dtype_out = dtype. */
MP_API mp_status_t mp_conv2d_desc_init(mp_conv2d_desc_t *desc, size_t struct_size, int32_t n,
                                       int32_t h, int32_t w, int32_t c, int32_t k, int32_t r,
                                       int32_t s, mp_dtype_t dtype);
static inline mp_conv2d_desc_t mp_conv2d_desc_default(int32_t n, int32_t h, int32_t w, int32_t c,
                                                      int32_t k, int32_t r, int32_t s,
                                                      mp_dtype_t dtype) {
  mp_conv2d_desc_t desc;
  mp_conv2d_desc_init(&desc, sizeof desc, n, h, w, c, k, r, s, dtype);
  return desc;
}

/** The three products of a convolutional layer. */
typedef enum mp_conv_op { MP_CONV_FPROP = 0, MP_CONV_DGRAD = 1, MP_CONV_WGRAD = 2 } mp_conv_op_t;

/** P and Q of `desc`; 0 where the filter is larger than the padded image.
 *  @param p,q  host, out. */
MP_API mp_status_t mp_conv2d_output_size(const mp_conv2d_desc_t *desc, int32_t *p, int32_t *q);

/** Bytes of workspace with which that product runs its fastest kernel; often 0.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_conv2d_workspace_size(mp_context_t context, const mp_conv2d_desc_t *desc,
                                            mp_conv_op_t op, size_t *bytes);

/** Forward:  y = epilogue(alpha conv(x, filter) + beta y).
 *
 *  @param x, filter  device.
 *  @param y          device; read only when beta != 0.
 *  @param epilogue   host, optional; sees y as a matrix of N P Q rows and K columns, so bias has K
 *                    elements; ld_aux 0 = K.
 *  @param workspace  device, 256-byte aligned, optional; less than mp_conv2d_workspace_size is
 *                    never an error, perhaps slower.
 *
 *  An implicit GEMM: the matrix of patches (im2col) is never stored.  Accuracy as in mp_gemm.
 *  16-byte aligned tensors with C/groups and K/groups multiples of 8 are fastest; images of few
 *  channels (RGB) have kernels of their own.  A 1 x 1 filter with stride 1 and no padding is
 *  multiplied by the kernels of mp_gemm.
 *  Zeros that stand for nothing, outside the image or between the strides of dgrad, may or may not
 *  be multiplied.  It shows only beside a non-finite weight (in wgrad: dy), as a NaN.
 *  Limits, beyond which MP_ERROR_UNSUPPORTED: one padded image, one image of y, the filter and the
 *  numbers of pixels N H W and N P Q stay below 2^30 elements; the tensors may be larger.
 *
 *  Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.
 *
 *  @return MP_ERROR_INVALID_ARGUMENT     a number outside its range, groups that do not divide c, k
 *          MP_ERROR_NOT_FOUND            no kernel is called desc->kernel
 *          MP_ERROR_UNSUPPORTED          that kernel cannot run this problem; a limit above
 *          MP_ERROR_WORKSPACE_TOO_SMALL  desc->kernel forces a kernel that needs more */
MP_API mp_status_t mp_conv2d_fprop(mp_context_t context, const mp_conv2d_desc_t *desc,
                                   const void *x, const void *filter, void *y,
                                   const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** Gradient of the input:  dx = epilogue(alpha conv_transpose(dy, filter) + beta dx).
 *  The epilogue sees dx as a matrix of N H W rows and C columns: MP_ACT_DRELU with the aux of the
 *  layer below gives that layer's dy, dbias its bias gradient.  Otherwise as mp_conv2d_fprop. */
MP_API mp_status_t mp_conv2d_dgrad(mp_context_t context, const mp_conv2d_desc_t *desc,
                                   const void *dy, const void *filter, void *dx,
                                   const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** Gradient of the weights:  dfilter = alpha conv(x, dy) + beta dfilter, the sum over n, p, q.
 *  beta = 1 accumulates over micro-batches; use dtype_out = MP_FP32 then, or small terms are lost
 *  to rounding.
 *  @param epilogue  host, optional: scale, amax and found_inf.  Everything else is unsupported here
 *                   and must be 0.
 *  Otherwise as mp_conv2d_fprop; the sum is split over blocks in a fixed order, never atomically. */
MP_API mp_status_t mp_conv2d_wgrad(mp_context_t context, const mp_conv2d_desc_t *desc,
                                   const void *x, const void *dy, void *dfilter,
                                   const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/* ======================================================================
 *  6. Tensor lists and their reductions
 * ====================================================================== */

/** Describes `count` dense tensors.  Host arrays, copied by create. */
typedef struct mp_tensor_list_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< of all tensors, where `dtypes` is NULL */
  uint32_t count;
  uint32_t reserved0; /**< must be 0 */
  /** count device pointers, aligned to the element size; NULL where numel is 0, and in the model
   *  list of section 8. */
  void *const *data;
  const int64_t *numel; /**< count element counts, >= 0; empty tensors are allowed anywhere */
  /** One type per tensor, optional: layers kept in fp32 beside fp16 ones. */
  const mp_dtype_t *dtypes;
} mp_tensor_list_desc_t;

/** Upload the pointer table once, so that each later call is one kernel launch however
 *  many tensors there are (the idea of apex multi_tensor_apply, without its per-call
 *  packing of metadata into kernel arguments). */
MP_API mp_status_t mp_tensor_list_create(mp_tensor_list_t *list, mp_context_t context,
                                         const mp_tensor_list_desc_t *desc);
MP_API void mp_tensor_list_destroy(mp_tensor_list_t list);

/** Point the list at other buffers of the same sizes, in stream order: for frameworks
 *  that allocate new gradients each step.  Do not capture into a graph.
 *  @param data  host, count device pointers. */
MP_API mp_status_t mp_tensor_list_set_data(mp_tensor_list_t list, void *const *data,
                                           mp_stream_t stream);

/** Set *found_inf to 1 if any element is NaN or infinite.  Never clears it, so several
 *  lists can share one flag.  A float rather than an int so that it can be all-reduced
 *  with the gradients.
 *  @param found_inf  device, 1 float. */
MP_API mp_status_t mp_check_nonfinite(mp_tensor_list_t list, float *found_inf, mp_stream_t stream);

/** Largest absolute value; NaN if any element is NaN (fmaxf would lose it).
 *  @param amax        device, 1 float, optional; 0 for an empty list.
 *  @param per_tensor  device, count floats, optional. */
MP_API mp_status_t mp_amax(mp_tensor_list_t list, float *amax, float *per_tensor,
                           mp_stream_t stream);

/** sqrt(sum x^2), over the list and per tensor.  Squares are summed in fp32 inside a chunk of
 *  16384 elements (so |x| > 1.8e19 gives infinity) and in fp64 across chunks, in a fixed order,
 *  without atomics: bitwise reproducible.
 *  @param norm        device, 1 float, optional.
 *  @param per_tensor  device, count floats, optional. */
MP_API mp_status_t mp_l2norm(mp_tensor_list_t list, float *norm, float *per_tensor,
                             mp_stream_t stream);

/** What is in one tensor, or in all of a list.  Written by kernels into device memory, so it has no
 *  struct_size: 64 bytes in every version. */
typedef struct mp_tensor_report {
  int64_t numel;
  int64_t num_nan;
  int64_t num_inf;
  int64_t num_zero;      /**< of either sign */
  int64_t num_subnormal; /**< 0 < |x| < 2^-14, whatever the type: fp16 holds such numbers with fewer
                              digits, or as 0 */
  /** The first NaN or infinity: in the lowest tensor that has one, its lowest element.  -1: none */
  int64_t bad_tensor, bad_element;
  float bad_value; /**< that element; 0: none */
  float amax;      /**< as of mp_amax */
} mp_tensor_report_t;

/** Look at every element once, and report: what overflowed, and what is about to underflow.
 *  mp_scale_step reports on its gradients without a pass more (mp_step_options_t).
 *  @param report          device, 1 report, optional: of the list.
 *  @param tensor_reports  device, count reports, optional: of each tensor. */
MP_API mp_status_t mp_inspect(mp_tensor_list_t list, mp_tensor_report_t *report,
                              mp_tensor_report_t *tensor_reports, mp_stream_t stream);

/** out = in * *inv_scale, setting *found_inf as mp_check_nonfinite does on `in`.
 *  @param in, out    lists of equal shapes; types may differ (fp16 grads -> fp32 grads);
 *                    out == in is allowed.
 *  @param inv_scale  device, 1 float. */
MP_API mp_status_t mp_unscale(mp_tensor_list_t in, mp_tensor_list_t out, const float *inv_scale,
                              float *found_inf, mp_stream_t stream);

/** The factor that unscales and clips at once:
 *      *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
 *  Source: Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
 *  the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
 *  @param scaled_norm  device, 1 float: norm of the gradients before unscaling. */
MP_API mp_status_t mp_clip_factor(mp_context_t context, const float *scaled_norm,
                                  const float *inv_scale, float max_norm, float *grad_scale,
                                  mp_stream_t stream);

/* ======================================================================
 *  7. Loss scaler
 * ====================================================================== */

/** How the loss scale S follows the gradients. */
typedef enum mp_scaler_policy {
  /** S never changes.  bf16 training uses this with S = 1. */
  MP_SCALER_STATIC = 0,

  /** Overflow: S *= backoff_factor.  growth_interval clean steps in a row:
   *  S *= growth_factor, unless that is not a finite number.  Source: torch.amp.GradScaler.
   *  hysteresis h > 1 forgives h - 1 overflows; further ones back off, until the budget is
   *  refilled: when S grows (Megatron-LM) or, with MP_SCALER_REFILL_EACH_STEP, by every
   *  clean step (apex update_scale_hysteresis). */
  MP_SCALER_BACKOFF = 1,

  /** Models log2 of the largest unscaled gradient as normal, with running mean mu (decay
   *  beta1) and deviation sigma (decay beta2, at least sigma_floor), and sets
   *      S = 2^floor(log2_max - mu - overflow_std_dev * sigma)
   *  so that overflow has a fixed small probability.  An overflowing step leaves mu and
   *  sigma alone, backs off once, and raises a head-room h (bits) subtracted in the exponent
   *  above; every growth_interval clean steps h shrinks by one bit.  Without h the policy
   *  livelocks when an activation gradient, which no statistic sees, overflows first.  After
   *  overflows before the first statistics, these begin with an h that leaves S as it is.
   *  A step whose gradients are all zero changes nothing.
   *  Source: OpenSeq2Seq LogMaxScaler, with its defects repaired (there an overflow feeds
   *  2^log_max into a mean of log2 values and pins S at its minimum for ~12,000 steps). */
  MP_SCALER_LOGNORMAL = 2,

  /** That LogMaxScaler as it was shipped, defects included.  For comparison; train with
   *  MP_SCALER_LOGNORMAL.  mu, sigma and S as above, but in fp32, without floor of sigma, head-room
   *  or rounding to a power of two:  S = 2^(16 - mu - overflow_std_dev * sigma).  An
   *  overflow is a sample of 2^log2_max, gradients that are all zero one of -infinity, after
   *  which mu and S are NaN for good and every step is skipped.  (Upstream measures the
   *  gradients after clipping, this library before.) */
  MP_SCALER_LOGMAX = 3
} mp_scaler_policy_t;

/** Bits of mp_scaler_config.flags. */
typedef enum mp_scaler_flags {
  MP_SCALER_REFILL_EACH_STEP = 1 << 0, /**< backoff; see there */
  /** Backoff: the first clean step, and the first after each overflow, does not count towards
   *  growth_interval.  Source: DeepSpeed FP16_Optimizer. */
  MP_SCALER_FIRST_STEP_UNCOUNTED = 1 << 1
} mp_scaler_flags_t;

/** Decimal fractions are double, so that 0.99 is the 0.99 of Python. */
typedef struct mp_scaler_config {
  uint32_t struct_size;
  mp_scaler_policy_t policy;
  uint32_t flags; /**< mp_scaler_flags_t, or-ed */
  float init_scale;
  /** S is clamped to these; both > 0, and may be below 1.  Backoff also takes 0 = no such limit.
   *  Without min_scale S may sink to 0; where 1/S is infinite, mp_scale_step updates nothing. */
  float min_scale, max_scale;
  double growth_factor;    /**< backoff; > 1 */
  double backoff_factor;   /**< backoff, lognormal; in (0, 1) */
  double beta1, beta2;     /**< lognormal, logmax; in [0, 1) */
  float log2_max;          /**< lognormal: log2 of the largest finite gradient; logmax: see there */
  float overflow_std_dev;  /**< lognormal, logmax; 3.09 = normal quantile of 0.999 */
  float sigma_floor;       /**< lognormal; bits */
  int32_t growth_interval; /**< >= 1; clean steps per growth, or per bit of h given back */
  int32_t hysteresis;      /**< backoff; overflows per backoff, >= 1 */
  /** After so many skipped steps in a row the state says MP_SCALER_DIVERGED and S stays, until a
   *  step is clean.  No S helps against a NaN of the forward pass, and a scaler that goes on
   *  lowering S ends at its minimum, or at 0.  0 = never. */
  int32_t diverged_after;
  int32_t history;    /**< updates that mp_scaler_get_history_sync can look back; at most 2^24 */
  uint32_t reserved0; /**< must be 0 */
} mp_scaler_config_t;

/** In fp16, 2^16 is where torch.amp.GradScaler begins, and from 2^24 down to 1 it is 24 steps.
 *
 *      init_scale 65536 (static: 1), in [1, 2^24]    growth_interval 2000    hysteresis 1
 *      growth_factor 2, backoff_factor 0.5           diverged_after 100      history 0
 *      beta1 0.99, beta2 0.999      log2_max 15.9993 = log2(65504)
 *      overflow_std_dev 3.0902      sigma_floor 0.5 */
MP_API mp_status_t mp_scaler_config_init(mp_scaler_config_t *config, size_t struct_size,
                                         mp_scaler_policy_t policy);
static inline mp_scaler_config_t mp_scaler_config_default(mp_scaler_policy_t policy) {
  mp_scaler_config_t config;
  mp_scaler_config_init(&config, sizeof config, policy);
  return config;
}

/** Policies of other systems: S after every step is theirs, exactly, with their defaults, while S
 *  is a finite fp32 number.  (Megatron, DeepSpeed and Keras 3 let S grow past that, and every
 *  later step is lost; here S stops.  apex amp raises at S = 0, DeepSpeed's DynamicLossScaler at
 *  an overflow with S = 1; here S stays there.)  All are MP_SCALER_BACKOFF but for the first and
 *  the last; change what you like in the config returned. */
typedef enum mp_scaler_preset {
  /** mp_scaler_config_default(MP_SCALER_LOGNORMAL) */
  MP_SCALER_PRESET_LOGNORMAL = 0,
  /** torch.amp.GradScaler.  2^16, interval 2000, no limits. */
  MP_SCALER_PRESET_TORCH = 1,
  /** apex.amp LossScaler, apex/amp/scaler.py (removed from apex in 2025).  2^16, interval 2000, no
   *  minimum, maximum 2^24. */
  MP_SCALER_PRESET_APEX_AMP = 2,
  /** apex csrc/update_scale_hysteresis.cu: torch's rule, but it takes 2 overflows without a clean
   *  step between them to back off.  The kernel has no defaults: torch's, and Megatron's
   *  hysteresis of 2. */
  MP_SCALER_PRESET_APEX_HYSTERESIS = 3,
  /** Megatron-LM DynamicGradScaler, core/optimizer/grad_scaler.py.  2^32, interval 1000, minimum
   *  1, hysteresis 2, refilled when S grows. */
  MP_SCALER_PRESET_MEGATRON = 4,
  /** DeepSpeed DynamicLossScaler, runtime/fp16/loss_scaler.py (ZeRO), with the defaults of the
   *  "fp16" section of its configuration: 2^16, interval 1000, minimum 1, hysteresis 2.  For
   *  consecutive_hysteresis set MP_SCALER_REFILL_EACH_STEP. */
  MP_SCALER_PRESET_DEEPSPEED = 5,
  /** DeepSpeed FP16_Optimizer, runtime/fp16/fused_optimizer.py (without ZeRO), which has a rule of
   *  its own: no hysteresis, and the first growth takes 1001 clean steps. */
  MP_SCALER_PRESET_DEEPSPEED_FUSED = 6,
  /** tf.keras LossScaleOptimizer of TF 2, and TF 1's DynamicLossScale.  2^15, interval 2000,
   *  minimum 1. */
  MP_SCALER_PRESET_KERAS = 7,
  /** keras.optimizers.LossScaleOptimizer of Keras 3: the same without minimum. */
  MP_SCALER_PRESET_KERAS_3 = 8,
  /** OpenSeq2Seq BackoffScaler, optimizers/automatic_loss_scaler.py.  2^14, which is also the
   *  maximum, interval 2000, minimum 1. */
  MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF = 9,
  /** OpenSeq2Seq LogMaxScaler as shipped: MP_SCALER_LOGMAX.  1, in [1, 2^14]. */
  MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX = 10
} mp_scaler_preset_t;

/** mp_scaler_config_init(MP_SCALER_BACKOFF), with max_scale and diverged_after 0 and what `preset`
 *  says.
 *  @return MP_ERROR_INVALID_ARGUMENT if there is no such preset */
MP_API mp_status_t mp_scaler_config_init_preset(mp_scaler_config_t *config, size_t struct_size,
                                                mp_scaler_preset_t preset);
static inline mp_scaler_config_t mp_scaler_config_preset(mp_scaler_preset_t preset) {
  mp_scaler_config_t config;
  mp_scaler_config_init_preset(&config, sizeof config, preset);
  return config;
}

/** Whether a scaler still gets anywhere. */
typedef enum mp_scaler_status {
  MP_SCALER_OK = 0,
  MP_SCALER_DIVERGED = 1 /**< see mp_scaler_config.diverged_after */
} mp_scaler_status_t;

/** Everything a checkpoint needs; plain data, can be written to disk as it is (same byte
 *  order assumed). */
typedef struct mp_scaler_state {
  uint32_t struct_size;
  mp_scaler_policy_t policy;
  float scale;
  int32_t growth_tracker;  /**< clean steps that count towards growth_interval; -1: the next one
                                does not (MP_SCALER_FIRST_STEP_UNCOUNTED) */
  int32_t hysteresis_left; /**< overflows still forgiven */
  float log2_mean;         /**< lognormal, logmax: decay beta1, not bias-corrected */
  float log2_mean_slow;    /**< lognormal, logmax: decay beta2 */
  float log2_square_slow;  /**< lognormal, logmax: decay beta2 */
  float headroom;          /**< lognormal: h, bits */
  mp_scaler_status_t status;
  double beta1_power; /**< lognormal, logmax: beta1^steps, for bias correction */
  double beta2_power;
  int64_t steps;          /**< updates seen */
  int64_t skipped;        /**< of which overflowed */
  int64_t skipped_nan;    /**< of which with a NaN among the gradients: amax was NaN */
  int64_t skipped_in_row; /**< since the last clean step */
} mp_scaler_state_t;

/** The state of a new scaler. */
MP_API mp_status_t mp_scaler_state_init(mp_scaler_state_t *state, size_t struct_size,
                                        const mp_scaler_config_t *config);
static inline mp_scaler_state_t mp_scaler_state_default(const mp_scaler_config_t *config) {
  mp_scaler_state_t state;
  mp_scaler_state_init(&state, sizeof state, config);
  return state;
}

/** The scaler allocates nothing after this.  A program may have several, one per loss; several
 *  optimizers may share one, see MP_STEP_KEEP_SCALER. */
MP_API mp_status_t mp_scaler_create(mp_scaler_t *scaler, mp_context_t context,
                                    const mp_scaler_config_t *config);
MP_API void mp_scaler_destroy(mp_scaler_t scaler);

/** Device addresses, constant for the life of the scaler: S, 1/S, and the scaler's own
 *  sticky overflow flag, which mp_scaler_update clears. */
MP_API const float *mp_scaler_scale(mp_scaler_t scaler);
MP_API const float *mp_scaler_inv_scale(mp_scaler_t scaler);
MP_API float *mp_scaler_found_inf(mp_scaler_t scaler);

/** out[i] = loss[i] * S, before the backward pass.  out == loss is allowed. */
MP_API mp_status_t mp_scale_loss(mp_scaler_t scaler, const void *loss, void *out, mp_dtype_t dtype,
                                 int64_t count, mp_stream_t stream);

/** Apply the policy once, from mp_scaler_found_inf and *amax; then clear the flag.
 *  mp_scale_step does this itself.
 *  @param amax  device, 1 float: largest gradient as measured, still multiplied by S and
 *               before any clipping; infinity or NaN counts as an overflow even where the
 *               flag is 0.  Taken together with what steps with MP_STEP_KEEP_SCALER and
 *               mp_grads_accumulate have measured.  Lognormal and logmax learn from it, and need it
 *               unless there were such calls.  Else optional: it tells NaN from infinity. */
MP_API mp_status_t mp_scaler_update(mp_scaler_t scaler, const float *amax, mp_stream_t stream);

/** Copy the state to / from the host; waits for `stream`.  Restoring a saved state and
 *  repeating the steps gives bitwise the same scales.  A state whose scale or statistics are NaN
 *  (logmax) is refused.  Restoring empties the history. */
MP_API mp_status_t mp_scaler_get_state_sync(mp_scaler_t scaler, mp_scaler_state_t *state,
                                            mp_stream_t stream);
MP_API mp_status_t mp_scaler_set_state_sync(mp_scaler_t scaler, const mp_scaler_state_t *state,
                                            mp_stream_t stream);

/** The last updates, oldest first, for a plot; waits for `stream`.
 *  @param capacity  elements of the arrays; where fewer than there are, the newest are given
 *  @param scales    host, optional: S with which the step was taken
 *  @param skipped   host, optional: 0 = clean, 1 = overflowed, 2 = overflowed with amax = NaN
 *  @param count     host: elements written, at most config.history */
MP_API mp_status_t mp_scaler_get_history_sync(mp_scaler_t scaler, int64_t capacity, float *scales,
                                              int32_t *skipped, int64_t *count, mp_stream_t stream);

/** torch.amp.GradScaler.state_dict(); the keys are the names here, but for "_growth_tracker". */
typedef struct mp_torch_scaler {
  double scale;
  double growth_factor;
  double backoff_factor;
  int32_t growth_interval;
  int32_t growth_tracker;
} mp_torch_scaler_t;

/** What makes a scaler that goes on where torch's stopped.
 *  @param saved   host.
 *  @param config  host, out: for mp_scaler_create; MP_INIT_STRUCT it before the call.
 *  @param state   host, out: for mp_scaler_set_state_sync; MP_INIT_STRUCT it before the call. */
MP_API mp_status_t mp_scaler_from_torch(const mp_torch_scaler_t *saved, mp_scaler_config_t *config,
                                        mp_scaler_state_t *state);

/** For GradScaler.load_state_dict.  Hysteresis, limits and the counts of skips are not torch's.
 *  @param saved  host, out. */
MP_API mp_status_t mp_scaler_to_torch(const mp_scaler_config_t *config,
                                      const mp_scaler_state_t *state, mp_torch_scaler_t *saved);

/** DynamicGradScaler.state_dict() of Megatron-LM; the keys are the names here. */
typedef struct mp_megatron_scaler {
  float scale;
  int32_t growth_tracker;
  int32_t hysteresis_tracker; /**< below 0 after more overflows than hysteresis */
} mp_megatron_scaler_t;

/** The state, for a scaler made from MP_SCALER_PRESET_MEGATRON.
 *  @param saved  host.
 *  @param state  host, out; MP_INIT_STRUCT it before the call. */
MP_API mp_status_t mp_scaler_from_megatron(const mp_megatron_scaler_t *saved,
                                           mp_scaler_state_t *state);

/** For DynamicGradScaler.load_state_dict.
 *  @param saved  host, out. */
MP_API mp_status_t mp_scaler_to_megatron(const mp_scaler_state_t *state,
                                         mp_megatron_scaler_t *saved);

/* ======================================================================
 *  8. Optimizers
 * ====================================================================== */

/** In all formulas g is the unscaled, clipped gradient, w the fp32 master weight, t the
 *  number of applied (not skipped) steps including this one.  Norms |x| are taken over one tensor,
 *  computed as in mp_l2norm. */
typedef enum mp_optimizer_kind {
  /** m = momentum m + (1 - dampening) g  (m = g at t = 1);  w -= lr m
   *  MP_OPT_NESTEROV: w -= lr (g + momentum m).  Weight decay: g += wd w, or with
   *  MP_OPT_DECAY_AFTER_MOMENTUM w -= lr wd w, which momentum does not see.
   *  MP_OPT_LARS, MP_OPT_LARC: g = a (g + wd w) instead, with one a per tensor:
   *      LARS: a = trust |w| / (|g| + wd |w| + eps);   LARC: min(1, that / lr)
   *  a = 1 where |w| or |g| is 0.  (NVIDIA Apex drops the decay there; OpenSeq2Seq has a = 1e-7,
   *  and tensors that begin as 0 stay near it.)
   *  Source: You, Gitman & Ginsburg, Large Batch Training of Convolutional Networks, 2017,
   *  algorithm 1; LARC: Apex, apex/parallel/LARC.py. */
  MP_OPT_SGD = 1,

  /** m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr mhat / (sqrt(vhat) + eps)
   *  Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w (AdamW).
   *  Source: Kingma & Ba 2015, algorithm 1; Loshchilov & Hutter 2019, algorithm 2. */
  MP_OPT_ADAM = 2,

  /** w -= lr r u, where w -= lr u is the step of MP_OPT_ADAM with the same flags, its decay
   *  included, and r = |w| / |u|.  r = 1 where |w| or |u| is 0, and, unless MP_OPT_NVLAMB, for
   *  tensors with wd = 0 (biases, normalisation), as in Apex's FusedLAMB.
   *  The paper's form has MP_OPT_DECOUPLED_DECAY, which mp_optimizer_desc_default sets.  The global
   *  clipping that Apex has inside is max_grad_norm of section 10.
   *  Source: You et al., Large Batch Optimization for Deep Learning, 2020, algorithm 2. */
  MP_OPT_LAMB = 3,

  /** v = b2 v + (1-b2) |g|^2  (v = |g|^2 at t = 1), one number per tensor;
   *  m = b1 m + (1 - dampening) (g / (sqrt(v) + eps) + wd w);  w -= lr m
   *  dampening = b1 averages the gradients, as upstream's grad_averaging does.
   *  (OpenSeq2Seq never stores v, so b2 has no effect there, and has eps inside the root; Apex
   *  corrects the bias of a v that begins without one.  This is the paper's form.)
   *  Source: Ginsburg et al., Stochastic Gradient Methods with Layer-wise Adaptive Moments, 2019,
   *  algorithm 1. */
  MP_OPT_NOVOGRAD = 4,

  /** v += g^2;  w -= lr g / (sqrt(v) + eps).  v may begin above 0 (TensorFlow: 0.1).
   *  Decay: g += wd w, or with MP_OPT_DECOUPLED_DECAY w -= lr wd w.
   *  Source: Duchi, Hazan & Singer 2011, section 1.1, diagonal form; eps as in torch. */
  MP_OPT_ADAGRAD = 5,

  /** v = b2 v + (1-b2) g^2;  w -= lr g / (sqrt(v) + eps)
   *  With momentum: m = momentum m + g / (sqrt(v) + eps);  w -= lr m.  Decay: g += wd w.
   *  Source: Tieleman & Hinton, COURSERA: Neural Networks for Machine Learning, 2012, lecture 6.5;
   *  eps and momentum as in torch. */
  MP_OPT_RMSPROP = 6
} mp_optimizer_kind_t;

/** Bits of mp_optimizer_desc.flags. */
typedef enum mp_optimizer_flags {
  MP_OPT_NESTEROV = 1 << 0,           /**< SGD */
  MP_OPT_DECOUPLED_DECAY = 1 << 1,    /**< Adam: makes it AdamW; LAMB; Adagrad */
  MP_OPT_NO_BIAS_CORRECTION = 1 << 2, /**< Adam, LAMB: mhat = m, vhat = v */
  /** Let the 16-bit copy of a weight that overflows become infinite.  Without this flag it is clamped to the
   *  largest finite value: an infinite weight makes every later gradient non-finite, so every
   *  later step is skipped and training never recovers. */
  MP_OPT_MODEL_OVERFLOW = 1 << 4,
  MP_OPT_DECAY_AFTER_MOMENTUM = 1 << 5, /**< SGD, not with MP_OPT_LARC or MP_OPT_LARS */
  MP_OPT_LARC = 1 << 6,                 /**< SGD */
  MP_OPT_LARS = 1 << 7,                 /**< SGD, not with MP_OPT_LARC */
  MP_OPT_NVLAMB = 1 << 8,               /**< LAMB: adapts the tensors without decay too */
  /** Round the 16-bit copy of a weight up or down at random, so that on average it is the weight: a
   *  change below half a unit of the copy is not lost in every step.  What the type can hold stays
   *  as it is.  The random numbers follow from rounding_seed, t, the tensor's index and the
   *  element's, and from nothing else: not from the device, not from being interrupted and resumed.
   *  Probabilities are exact (fp16 subnormals: to within 2^-32).
   *  Source: Gupta et al., Deep Learning with Limited Numerical Precision, 2015, section 3.1; Philox
   *  4x32-10 of Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011. */
  MP_OPT_STOCHASTIC_ROUNDING = 1 << 9
} mp_optimizer_flags_t;

/** How the learning rate follows t, on the device: a skipped step does not advance it, and a
 *  captured graph needs no host.  Every schedule begins with a linear warm-up,
 *      lr(t) = lr t / warmup_steps   for t <= warmup_steps,
 *  and s = t - 1 - warmup_steps counts the steps after it: the first of them has lr itself.
 *  p = min(s / decay_steps, 1).  Computed in fp64, rounded once. */
typedef enum mp_lr_schedule {
  /** lr */
  MP_LR_CONSTANT = 0,
  /** lr_end + (lr - lr_end) (1 - p)^decay_power; linear with 1 */
  MP_LR_POLYNOMIAL = 1,
  /** lr_end + (lr - lr_end) (1 + cos(pi p)) / 2
   *  Source: Loshchilov & Hutter, SGDR, 2017, equation 5, without restarts. */
  MP_LR_COSINE = 2,
  /** max(lr_end, lr decay_rate^(s / decay_steps)) */
  MP_LR_EXPONENTIAL = 3,
  /** lr sqrt(max(warmup_steps, 1) / t)
   *  Source: Vaswani et al., Attention Is All You Need, 2017, equation 3, with lr as its peak. */
  MP_LR_INVERSE_SQRT = 4
} mp_lr_schedule_t;

/** Hyperparameters of one parameter group.  A limit or a regularizer of 0 is none. */
typedef struct mp_hyper {
  uint32_t struct_size; /**< in an array, also the distance between elements */
  float lr;
  float beta1; /**< SGD, RMSProp: momentum; Adam, LAMB, NovoGrad */
  float beta2; /**< Adam, LAMB, NovoGrad, RMSProp */
  float eps;   /**< all; SGD: with MP_OPT_LARC or MP_OPT_LARS */
  float weight_decay;
  float dampening; /**< SGD, NovoGrad */
  float trust;     /**< SGD with MP_OPT_LARC or MP_OPT_LARS: > 0 */

  /* From gradient to g:  unscale and clip globally (grad_scale), clip by the norm of the tensor,
   * clip by value, add the regularizers' gradients, add extra_grads. */
  float max_tensor_norm; /**< g *= min(1, max_tensor_norm / (|g| + 1e-6)) */
  float max_value;       /**< g into [-max_value, max_value] */
  float l1;              /**< g += l1 sign(w), sign(0) = 0: the gradient of l1 sum |w| */
  float l2;              /**< g += 2 l2 w: the gradient of l2 sum w^2 */

  mp_lr_schedule_t lr_schedule;
  int32_t warmup_steps; /**< >= 0; 0 = none */
  int32_t decay_steps;  /**< polynomial, cosine, exponential: >= 1 */
  float decay_power;    /**< polynomial: > 0 */
  float decay_rate;     /**< exponential: > 0 */
  float lr_end;         /**< in the unit of lr */
} mp_hyper_t;

/** The defaults of the cited papers; weight decay where the method is about it.  lr has no sensible
 *  default.  trust is that of LARS; Apex's LARC has 0.02.
 *
 *                beta1   beta2   eps     others
 *      SGD       0.9     0       0       trust 0.001
 *      Adam      0.9     0.999   1e-8
 *      LAMB      0.9     0.999   1e-6    weight_decay 0.01
 *      NovoGrad  0.95    0.98    1e-8
 *      Adagrad   0       0       1e-10
 *      RMSProp   0       0.9     1e-8
 *
 *  decay_power is 1; everything else is 0. */
MP_API mp_status_t mp_hyper_init(mp_hyper_t *hyper, size_t struct_size, mp_optimizer_kind_t kind,
                                 float lr);
static inline mp_hyper_t mp_hyper_default(mp_optimizer_kind_t kind, float lr) {
  mp_hyper_t hyper;
  mp_hyper_init(&hyper, sizeof hyper, kind, lr);
  return hyper;
}

/** The lists below are parallel: same count and sizes.  They must outlive the optimizer,
 *  as must the tensors; the caller owns, initialises (with 0) and checkpoints m and v. */
typedef struct mp_optimizer_desc {
  uint32_t struct_size;
  mp_optimizer_kind_t kind;
  uint32_t flags; /**< mp_optimizer_flags_t, or-ed */
  uint32_t num_groups;
  const mp_hyper_t *groups;     /**< host, num_groups, copied */
  const uint32_t *tensor_group; /**< host, one index per tensor; NULL = all in group 0 */
  mp_tensor_list_t grads;       /**< any type; read, never written */
  mp_tensor_list_t master;      /**< MP_FP32; updated */
  mp_tensor_list_t model;       /**< MP_FP16/MP_BF16 copy of master, written; optional.  A NULL
                                     data pointer: that parameter has no 16-bit copy */
  mp_tensor_list_t m; /**< MP_FP32: momentum, or first moment.  SGD, RMSProp: optional where
                                     every group has beta1 = 0.  Adagrad: NULL */
  mp_tensor_list_t v; /**< MP_FP32: second moment; SGD: NULL.  NovoGrad: as many tensors as
                                     the others, of one element each */
  /** Device, one float per tensor, optional; NULL = all 1.  Each step reads them, so they may be
   *  rewritten in stream order, and must outlive the optimizer.  The first multiplies lr (0 freezes
   *  a tensor; its m and v go on), the second weight_decay, l1 and l2. */
  const float *lr_multipliers, *decay_multipliers;
  /** MP_FP32, parallel to the others, optional: added to g after unscaling and clipping, as the
   *  gradient of a penalty that has its own code.  Read by each step and not inspected: an
   *  infinity here reaches the weights unless found_inf says so (mp_check_nonfinite). */
  mp_tensor_list_t extra_grads;
  uint64_t rounding_seed; /**< MP_OPT_STOCHASTIC_ROUNDING; any value */
} mp_optimizer_desc_t;

/** One group, no tensors yet; flags 0, or MP_OPT_DECOUPLED_DECAY for MP_OPT_LAMB. */
MP_API mp_status_t mp_optimizer_desc_init(mp_optimizer_desc_t *desc, size_t struct_size,
                                          mp_optimizer_kind_t kind);
static inline mp_optimizer_desc_t mp_optimizer_desc_default(mp_optimizer_kind_t kind) {
  mp_optimizer_desc_t desc;
  mp_optimizer_desc_init(&desc, sizeof desc, kind);
  return desc;
}

/** Uploads the hyperparameters and allocates the scratch memory of all later steps. */
MP_API mp_status_t mp_optimizer_create(mp_optimizer_t *optimizer, mp_context_t context,
                                       const mp_optimizer_desc_t *desc);
MP_API void mp_optimizer_destroy(mp_optimizer_t optimizer);

/** Replace the hyperparameters of one group, in stream order.
 *  They live on the device: a captured graph picks up the new values when replayed.
 *  @return MP_ERROR_INVALID_ARGUMENT also for a max_tensor_norm where no group had one when the
 *          optimizer was created: a step would need another launch */
MP_API mp_status_t mp_optimizer_set_hyper(mp_optimizer_t optimizer, uint32_t group,
                                          const mp_hyper_t *hyper, mp_stream_t stream);

/** One update of master, m, v and model, in one kernel, however many tensors there are.  LAMB,
 *  NovoGrad, LARC and LARS measure the tensors in another one before it, max_tensor_norm the
 *  gradients in one more (not in mp_scale_step, which measures them anyway).
 *  @param grad_scale  device, 1 float multiplied into every gradient, e.g. 1/S; NULL = 1.
 *                     Infinity or NaN skips the update as found_inf does.
 *  @param found_inf   device, 1 float; if nonzero when the kernel runs, nothing at all
 *                     is written and t does not advance.  NULL = always update.
 *
 *  The decision is taken on the device; the host does not learn of it (and must not ask,
 *  or the GPU idles once per step).
 *  Source of master weights: Micikevicius et al. 2018, section 3.1. */
MP_API mp_status_t mp_optimizer_step(mp_optimizer_t optimizer, const float *grad_scale,
                                     const float *found_inf, mp_stream_t stream);

/** How fp32 master weights become their 16-bit copy. */
typedef struct mp_model_options {
  uint32_t struct_size;
  uint32_t flags; /**< of mp_optimizer_flags_t: MP_OPT_MODEL_OVERFLOW, MP_OPT_STOCHASTIC_ROUNDING */
  uint64_t rounding_seed; /**< MP_OPT_STOCHASTIC_ROUNDING, as in mp_optimizer_desc_t */
  /** MP_OPT_STOCHASTIC_ROUNDING: device, 1 integer: the number of updates that the weights have seen;
   *  of an optimizer of this library, mp_optimizer_step_counter after its step. */
  const int64_t *t;
  int64_t *overflows; /**< as model_overflows of section 10 */
} mp_model_options_t;

/** To nearest, overflow clamped. */
MP_API mp_status_t mp_model_options_init(mp_model_options_t *options, size_t struct_size);
static inline mp_model_options_t mp_model_options_default(void) {
  mp_model_options_t options;
  mp_model_options_init(&options, sizeof options);
  return options;
}

/** model = round(master): the copy that an optimizer step writes, for a program that updates its
 *  fp32 weights itself.  Bit for bit the same copy.
 *  @param master     MP_FP32; read.
 *  @param model      MP_FP16/MP_BF16, parallel to master; written.  A NULL data pointer: that
 *                    parameter has no 16-bit copy.
 *  @param found_inf  device, 1 float, optional; if nonzero when the kernel runs, nothing is written:
 *                    a skipped step leaves the copy as it leaves the weights.
 *  @param options    host, optional; NULL = the defaults. */
MP_API mp_status_t mp_masters_to_model(mp_tensor_list_t master, mp_tensor_list_t model,
                                       const float *found_inf, const mp_model_options_t *options,
                                       mp_stream_t stream);

/** The learning rates that the latest applied step used, before lr_multipliers.
 *  @return device, num_groups floats, 0 before the first step; they live as long as the optimizer.
 *          NULL if optimizer is NULL */
MP_API const float *mp_optimizer_lr(mp_optimizer_t optimizer);

/** What l1 and l2 add to the loss, of the master weights as they are now:
 *      sum over tensors of (their decay multiplier) (l1 sum |w| + l2 sum w^2)
 *  in fp32 within a chunk and fp64 across, in a fixed order, as mp_l2norm.  In one kernel.
 *  @param loss  device, 1 float. */
MP_API mp_status_t mp_optimizer_regularization(mp_optimizer_t optimizer, float *loss,
                                               mp_stream_t stream);

/** Device address of the step counter t, which each applied step increases by 1; constant for the
 *  life of the optimizer.  NULL if optimizer is NULL. */
MP_API const int64_t *mp_optimizer_step_counter(mp_optimizer_t optimizer);

/** The step counter t, for checkpoints; waits for `stream`. */
MP_API mp_status_t mp_optimizer_get_step_sync(mp_optimizer_t optimizer, int64_t *t,
                                              mp_stream_t stream);
MP_API mp_status_t mp_optimizer_set_step_sync(mp_optimizer_t optimizer, int64_t t,
                                              mp_stream_t stream);

/* ======================================================================
 *  9. Several ranks
 * ====================================================================== */

typedef enum mp_reduce_op {
  MP_REDUCE_SUM = 0,
  MP_REDUCE_MAX =
      1 /**< of finite numbers >= 0 only: what NaN does to a maximum is everybody's own */
} mp_reduce_op_t;

/** How to reach the other ranks: a table of callbacks, so that this library links no other.
 *  mp_comm_init_nccl fills it for NCCL, bindings/mpi/mpcore_mpi.h for MPI on the host target.
 *
 *  Callbacks run on the calling thread, within the call that got the table.  They enqueue on
 *  `stream` (on the host target: they return when the result is there), get `user` last, may call
 *  mpcore, and return 0.  Any other code ends the call with MP_ERROR_COMM.
 *
 *  A call that gets a table is collective: every rank makes it, in the same order, with equal
 *  numbers of elements and equal types.  As with every collective, a rank that is refused or fails
 *  leaves the others waiting. */
typedef struct mp_comm {
  uint32_t struct_size;
  int32_t rank;       /**< 0 to world_size - 1 */
  int32_t world_size; /**< >= 1; with 1 no callback is called, and all may be NULL */
  uint32_t reserved0; /**< must be 0 */
  /** recv = send of all ranks combined, the same bits on every rank.  Device pointers; recv may be
   *  send. */
  int (*all_reduce)(const void *send, void *recv, size_t count, mp_dtype_t dtype, mp_reduce_op_t op,
                    mp_stream_t stream, void *user);
  int (*group_begin)(
      void *user);              /**< optional, with group_end: around a batch of all_reduce calls */
  int (*group_end)(void *user); /**< follows also where one of the batch failed */
  void *user;                   /**< e.g. the ncclComm_t */
} mp_comm_t;

/** One rank, for a program that may have several: nothing is communicated. */
MP_API mp_status_t mp_comm_init(mp_comm_t *comm, size_t struct_size);
static inline mp_comm_t mp_comm_default(void) {
  mp_comm_t comm;
  mp_comm_init(&comm, sizeof comm);
  return comm;
}

/** Fill `comm` from a communicator.  libnccl.so.2 is looked up with dlopen in this call; without it
 *  there is no dependency on NCCL.  The codes of its callbacks are those of ncclResult_t.
 *  @param comm       host, out; MP_INIT_STRUCT it before the call.
 *  @param nccl_comm  an ncclComm_t, blocking (with a nonblocking one the code of "in progress" is
 *                    taken for a failure); must outlive the calls that get *comm.
 *  @return MP_ERROR_NOT_FOUND if NCCL cannot be loaded
 *          MP_ERROR_COMM      if it does not tell rank or size of nccl_comm */
MP_API mp_status_t mp_comm_init_nccl(mp_comm_t *comm, void *nccl_comm);

/** grads = post * sum over ranks (pre * grads), in place and in the gradients' own types, every
 *  product rounded.  pre = 1 / world_size, post = 1 averages without overflow, but what is small may
 *  underflow; pre = 1, post = 1 / world_size the reverse; both 1 / sqrt(world_size) is in between.
 *  A factor of 1 costs nothing, any other one pass over the gradients.  With a power of two, ranks with
 *  equal gradients get these back, bit for bit, unless they under- or overflow on the way.
 *
 *  One all_reduce per tensor that is not empty, in the order of the list, in one batch: NCCL makes
 *  one launch of it.  Neighbours in memory are not joined, for the ranks' addresses may differ;
 *  a list of one tensor over all of them (one buffer for all gradients) does that.
 *
 *  The gradients may still be multiplied by S.  Infinity and NaN survive the sum, and then every
 *  rank sees them; see mp_step_options.comm for what else must agree.
 *  @param pre, post  > 0, finite.
 *  @return MP_ERROR_COMM  a callback failed: some gradients may have been summed and others not */
MP_API mp_status_t mp_grad_all_reduce(mp_tensor_list_t grads, const mp_comm_t *comm, float pre,
                                      float post, mp_stream_t stream);

/* ======================================================================
 * 10. The fused step
 * ====================================================================== */

/** Bits of mp_step_options.flags. */
typedef enum mp_step_flags {
  /** Leave the scaler and its flag to a later step, for optimizers that share a scaler: all but
   *  the last have this flag (or all, and mp_scaler_update(scaler, NULL, stream) follows).
   *  An optimizer skips for its own gradients and those before it.  For all to skip together
   *  the lists of the later ones are checked first:
   *
   *      mp_check_nonfinite(grads_of_b, mp_scaler_found_inf(scaler), stream);
   *      options.flags = MP_STEP_KEEP_SCALER;
   *      mp_scale_step(a, scaler, &options, stream);
   *      mp_scale_step(b, scaler, NULL, stream);     // S follows its policy */
  MP_STEP_KEEP_SCALER = 1 << 0,
  /** The gradients are those of mp_grads_accumulate or mp_grads_to_fp32: 1/S is in them already,
   *  and the scaler learns from the amax that was noted there.  Lognormal and logmax need one.
   *  Not without a scaler, where nothing is unscaled anyway.  With MP_STEP_CHECKED too where the last
   *  call had MP_ACCUMULATE_LAST. */
  MP_STEP_UNSCALED = 1 << 1,
  /** Whoever produced the gradients has inspected them: the epilogues of GEMMs and convolutions raise
   *  mp_scaler_found_inf and measure amax.  Pass 1 falls away, which saves a launch and one of the two
   *  readings of every gradient; what nobody has noticed reaches the weights.  Needs a scaler.
   *  Not with what only pass 1 can tell: max_grad_norm, grad_norm, tensor_norms, reports, and the
   *  max_tensor_norm of a group. */
  MP_STEP_CHECKED = 1 << 2,
  /** With comm: every rank has tensors of its own, each of them whole (a sharded optimizer, perhaps
   *  without tensors), and the norm is that of all of them.  Without this flag all ranks have the
   *  same gradients. */
  MP_STEP_SHARDED = 1 << 3
} mp_step_flags_t;

/** What else a step does and reports. */
typedef struct mp_step_options {
  uint32_t struct_size;
  uint32_t flags;      /**< mp_step_flags_t, or-ed */
  float max_grad_norm; /**< clip the unscaled global norm to this; 0 = no clipping */
  uint32_t reserved0;  /**< must be 0 */
  float *grad_norm;    /**< device, 1 float, optional: unscaled norm before clipping */
  float *found_inf;    /**< device, 1 float, optional: 1 if this step was skipped, else 0 */
  float *tensor_norms; /**< device, 1 float per tensor, optional: as grad_norm, of each */
  /** MP_STEP_CHECKED: device, 1 float: the largest gradient as it was measured, with the meaning of
   *  `amax` in mp_scaler_update, and needed by the same policies.  Infinity or NaN skips the step.
   *  Read, not cleared: what the epilogues fill is for the caller to clear before the next one. */
  const float *amax;
  /** Device, 1 report and 1 per tensor, optional: of the gradients as they are, multiplied by S
   *  (mp_inspect).  Also of a step that is skipped; of several ranks, each reports on its own. */
  mp_tensor_report_t *report, *tensor_reports;
  /** Device, 1 integer, optional: increased by the number of weights whose 16-bit copy was beyond the
   *  largest finite number after rounding, whether it was clamped or became infinite; clear it
   *  first.  NaN is none of them. */
  int64_t *model_overflows;
  /** Host, optional: the step is one of several ranks that take the same decision and, if their
   *  scalers began alike, have the same S ever after.  A collective call, section 9, with the same
   *  flags on every rank. */
  const mp_comm_t *comm;
} mp_step_options_t;

/** No clipping, no reports, one rank. */
MP_API mp_status_t mp_step_options_init(mp_step_options_t *options, size_t struct_size);
static inline mp_step_options_t mp_step_options_default(void) {
  mp_step_options_t options;
  mp_step_options_init(&options, sizeof options);
  return options;
}

/** Everything between backward and the next forward:
 *
 *      1. found_inf |= any non-finite gradient;  norm, amax  one pass over the gradients
 *      2. found_inf, NaN and amax become those of all ranks, with MP_STEP_SHARDED also the
 *         norm                                                       only with comm
 *      3. if !found_inf:  g = gradient / S, clipped;  optimizer update of master;
 *                         model = round(master);  t += 1             second pass
 *      4. S follows its policy;  found_inf is cleared;  not with MP_STEP_KEEP_SCALER
 *
 *  found_inf is the scaler's own flag (mp_scaler_found_inf): a GEMM epilogue that saw an
 *  overflowing activation gradient may have set it before.
 *
 *  All on the device, with no host synchronisation.  Bitwise equal to calling
 *  mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step,
 *  mp_scaler_update in that order; it only saves launches and memory traffic.  Two passes
 *  are the minimum: no weight may change before the last gradient has been inspected
 *  (MP_STEP_CHECKED: it has been).
 *
 *  With MP_SCALER_STATIC an overflowing step is skipped too.
 *
 *  Ranks: gradients that went through mp_grad_all_reduce are the same everywhere, but a flag
 *  raised by an epilogue is not, nor is the amax of a sharded optimizer.  2 is one all_reduce of 2
 *  floats (max) and, with MP_STEP_SHARDED, one of 1 float (sum), in one batch, between two small
 *  kernels.  What is not finite travels as a code, so that no maximum meets a NaN.  The sum is
 *  that of the squares in fp32, so a sharded norm beyond 1.8e19, as measured, is infinite.
 *
 *  @param scaler   optional; NULL = S is 1 (bf16), non-finite gradients still skip.
 *  @param options  host, optional; NULL = no clipping, one rank.
 *  @return MP_ERROR_INVALID_ARGUMENT if optimizer and scaler belong to different contexts
 *          MP_ERROR_COMM             a callback of options->comm failed: nothing has been updated, S
 *                                    included, but the scaler's flag is up if a gradient is not
 *                                    finite */
MP_API mp_status_t mp_scale_step(mp_optimizer_t optimizer, mp_scaler_t scaler,
                                 const mp_step_options_t *options, mp_stream_t stream);

typedef enum mp_accumulate_flags {
  /** The first gradients of a window: sums are overwritten, and not read. */
  MP_ACCUMULATE_FIRST = 1 << 0,
  /** The last ones before the update, by an optimizer of the host program: the sums are looked at
   *  as well, and mp_step_query learns the verdict here already.  Of several lists only the last one
   *  has this flag; nothing may raise the scaler's flag between here and mp_scaler_update.  The
   *  verdict is of this rank's gradients: with several ranks mp_grad_all_reduce comes before. */
  MP_ACCUMULATE_LAST = 1 << 1
} mp_accumulate_flags_t;

/** sums += weight / S * grads, or with MP_ACCUMULATE_FIRST  sums = weight / S * grads; in fp32, with
 *  the S of the moment, one rounding of weight / S and one of each sum.  In one pass.
 *
 *  Raises the scaler's flag for a gradient that is not finite, and keeps the largest |gradient|,
 *  still multiplied by S and without the weight, for the scaler's next update.  The overflow
 *  stays in the sums too, as infinity or NaN, until the next MP_ACCUMULATE_FIRST: one bad
 *  micro-batch discards its window whatever becomes of the flag.
 *
 *  Accumulation over k micro-batches; `sums` are the optimizer's grads:
 *
 *      for (int i = 0; i < k; i++) {
 *        const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
 *        forward_and_backward(i);
 *        mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
 *      }
 *      options.flags = MP_STEP_UNSCALED;
 *      mp_scale_step(optimizer, scaler, &options, stream);
 *
 *  (With several ranks, mp_grad_all_reduce of the sums comes before the step, which has options.comm.)
 *  S stays as it is within such a window.  It may also follow its policy after each micro-batch, so
 *  that the rest of a discarded window has a smaller S already.  mp_scaler_state and mp_step_query
 *  count micro-batches then; that the window was discarded, options.found_inf says in both forms:
 *
 *      for (int i = 0; i < k; i++) {
 *        const uint32_t flags = i == 0 ? MP_ACCUMULATE_FIRST : 0;
 *        forward_and_backward(i);
 *        mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
 *        mp_scaler_update(scaler, NULL, stream);
 *      }
 *      mp_scale_step(optimizer, NULL, &options, stream);
 *
 *  @param grads   any types; sums == grads is allowed for MP_FP32 gradients.
 *  @param sums    MP_FP32, parallel to grads.
 *  @param weight  finite; 1, 1/k, a task weight.  0 adds nothing, but an overflow is still noticed.
 *  @param flags   mp_accumulate_flags_t, or-ed. */
MP_API mp_status_t mp_grads_accumulate(mp_scaler_t scaler, mp_tensor_list_t grads,
                                       mp_tensor_list_t sums, float weight, uint32_t flags,
                                       mp_stream_t stream);

/** out = grads / S in fp32, checked for overflow, in one pass: mp_grads_accumulate of weight 1 with
 *  both flags.  The first half of a step with an optimizer of the host program, which updates
 *  fp32 master weights however it likes:
 *
 *      const float *found_inf = mp_scaler_found_inf(scaler);
 *      mp_grads_to_fp32(scaler, grads, grads32, stream);
 *      my_optimizer(found_inf); // masters and grads32; does nothing where *found_inf is not 0
 *      mp_masters_to_model(masters, models, found_inf, NULL, stream);
 *      mp_scaler_update(scaler, NULL, stream);
 *
 *  That one runs on the device and reads the flag there.  One that cannot, because it runs on the host
 *  or knows of no flag, is started by the host, which asks until it is told; whatever else has
 *  been enqueued goes on meanwhile.  n is mp_scaler_state.steps + 1:
 *
 *      mp_step_verdict_t verdict = MP_STEP_PENDING;
 *      mp_grads_to_fp32(scaler, grads, grads32, stream);
 *      while (verdict == MP_STEP_PENDING) mp_step_query(scaler, n, &verdict);
 *      if (verdict == MP_STEP_TAKEN) {
 *        my_host_optimizer();
 *        mp_masters_to_model(masters, models, NULL, NULL, stream);
 *      }
 *      mp_scaler_update(scaler, NULL, stream);
 *
 *  @param grads  any types; out == grads is allowed for MP_FP32 gradients.
 *  @param out    MP_FP32, parallel to grads. */
MP_API mp_status_t mp_grads_to_fp32(mp_scaler_t scaler, mp_tensor_list_t grads,
                                    mp_tensor_list_t out, mp_stream_t stream);

typedef enum mp_step_verdict {
  MP_STEP_PENDING = 0, /**< the device has not come to it yet */
  MP_STEP_TAKEN = 1,
  MP_STEP_SKIPPED = 2 /**< there was an overflow */
} mp_step_verdict_t;

/** Steps that mp_step_query remembers. */
#define MP_STEP_QUERY_DEPTH 1024

/** What became of a step, from what the device has written into memory of the host.  Neither waits
 *  nor enqueues; any thread may ask at any time, also while another one works with the scaler.
 *
 *  The queue does not run dry if a step is asked for while it still holds work of the next one:
 *
 *      for (int64_t n = 1; n <= steps; n++) {
 *        mp_step_verdict_t verdict = n > 1 ? MP_STEP_PENDING : MP_STEP_SKIPPED;
 *        forward_and_backward(n); // enqueued; step n - 1 is done long before this is
 *        while (verdict == MP_STEP_PENDING) mp_step_query(scaler, n - 1, &verdict);
 *        if (verdict == MP_STEP_TAKEN) my_learning_rate_advances();
 *        mp_scale_step(optimizer, scaler, NULL, stream);
 *      }
 *
 *  @param step     >= 1, counted as in mp_scaler_state.steps: the update that makes steps n is step
 *                  n, also after restoring a state and in a replayed graph.  Its verdict is known
 *                  at the end of the mp_scale_step or mp_scaler_update that counts it (those with
 *                  MP_STEP_KEEP_SCALER do not), or after MP_ACCUMULATE_LAST.
 *  @param verdict  host, out.
 *  @return MP_ERROR_NOT_FOUND  the step lies MP_STEP_QUERY_DEPTH or more back, or before the state
 *                              that was restored */
MP_API mp_status_t mp_step_query(mp_scaler_t scaler, int64_t step, mp_step_verdict_t *verdict);

/* ======================================================================
 * 12. What a training loop needs around them
 * ====================================================================== */

/** Shape and types of a classification loss. */
typedef struct mp_xent_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;   /**< of logits and dlogits */
  int64_t rows;       /**< samples, >= 0 */
  int64_t classes;    /**< >= 1 */
  int64_t ld_logits;  /**< >= classes */
  int64_t ld_dlogits; /**< >= classes */
  float weight;       /**< multiplies loss and gradient: a task weight, or 1/accumulation steps */
  uint32_t reserved0; /**< must be 0 */
} mp_xent_desc_t;

/** Dense rows, weight = 1. */
MP_API mp_status_t mp_xent_desc_init(mp_xent_desc_t *desc, size_t struct_size, int64_t rows,
                                     int64_t classes, mp_dtype_t dtype);
static inline mp_xent_desc_t mp_xent_desc_default(int64_t rows, int64_t classes, mp_dtype_t dtype) {
  mp_xent_desc_t desc;
  mp_xent_desc_init(&desc, sizeof desc, rows, classes, dtype);
  return desc;
}

/** Softmax cross-entropy and its gradient, in fp32 whatever the type of the logits:
 *
 *      p = softmax(logits[i]);  row_loss[i] = -weight log p[labels[i]]
 *      loss = mean_i row_loss[i]
 *      dlogits[i][j] = S weight / rows (p[j] - (j == labels[i]))
 *
 *  A label outside [0, classes) makes the loss and the gradient of its row NaN, so that the
 *  step is skipped and the mistake shows; the host cannot check labels without waiting.
 *
 *  @param logits      device, rows x classes.
 *  @param labels      device, rows integers.
 *  @param loss_scale  device, 1 float S, e.g. mp_scaler_scale(); NULL = 1.
 *  @param row_loss    device, rows floats, written; not multiplied by S.
 *  @param loss        device, 1 float, optional, written; NaN when rows is 0.
 *  @param correct     device, 1 integer, optional: increased by the number of rows whose
 *                     largest logit (the first, among equals) is the label's.  Clear it first.
 *  @param dlogits     device, rows x classes, optional; may be the same matrix as logits
 *                     (equal ld).  NULL = forward only.
 *  Source: Micikevicius et al. 2018, section 3.3 (softmax and loss in fp32), 3.2 (loss scale). */
MP_API mp_status_t mp_softmax_xent(mp_context_t context, const mp_xent_desc_t *desc,
                                   const void *logits, const int32_t *labels,
                                   const float *loss_scale, float *row_loss, float *loss,
                                   int64_t *correct, void *dlogits, mp_stream_t stream);

/* ======================================================================
 * 13. Layers around a convolution (NHWC)
 * ====================================================================== */

/** Images from N C H W to N H W C, the layout of everything in sections 5 and 13, and back.
 *  Converts the type on the way, as mp_cast does.
 *
 *  @param n, c, h, w  >= 0, in this order for both; where one is 0 there is nothing to do.
 *  @param src         device, dense, n c h w elements.
 *  @param dst         device, dense, as many; must not overlap src. */
MP_API mp_status_t mp_nchw_to_nhwc(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                                   const void *src, mp_dtype_t src_dtype, void *dst,
                                   mp_dtype_t dst_dtype, mp_stream_t stream);
MP_API mp_status_t mp_nhwc_to_nchw(mp_context_t context, int64_t n, int64_t c, int64_t h, int64_t w,
                                   const void *src, mp_dtype_t src_dtype, void *dst,
                                   mp_dtype_t dst_dtype, mp_stream_t stream);

/** What becomes of the pixels of a window.  Padding is never the largest; it counts as zeros in
 *  one of the two means, and not at all in the other. */
typedef enum mp_pool_mode {
  MP_POOL_MAX = 1,
  MP_POOL_AVG_INCLUDE_PAD = 2, /**< sum / (window_h window_w) */
  MP_POOL_AVG_EXCLUDE_PAD = 3  /**< sum / number of pixels inside the image */
} mp_pool_mode_t;

/** Shape and type of a pooling layer:
 *
 *      x, dx    N H W C     dense, C contiguous
 *      y, dy    N P Q C     P = (pad_top + H + pad_bottom - window_h) / stride_h + 1 (rounded down)
 *
 *  Q likewise.  Padding is smaller than the window, so that every window has a pixel.  Where the
 *  window is larger than the padded image, P or Q is 0: there are no outputs, and dx is 0. */
typedef struct mp_pool2d_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< of x, y, dy and dx; sums are fp32 */
  mp_pool_mode_t mode;
  int32_t n;                                        /**< >= 0 */
  int32_t h, w, c;                                  /**< >= 1 */
  int32_t window_h, window_w;                       /**< >= 1 */
  int32_t pad_top, pad_bottom, pad_left, pad_right; /**< >= 0 and smaller than the window */
  int32_t stride_h, stride_w;                       /**< >= 1 */
  uint32_t reserved0;                               /**< must be 0 */
} mp_pool2d_desc_t;

/** Windows side by side, without padding. */
MP_API mp_status_t mp_pool2d_desc_init(mp_pool2d_desc_t *desc, size_t struct_size,
                                       mp_pool_mode_t mode, int32_t n, int32_t h, int32_t w,
                                       int32_t c, int32_t window_h, int32_t window_w,
                                       mp_dtype_t dtype);
static inline mp_pool2d_desc_t mp_pool2d_desc_default(mp_pool_mode_t mode, int32_t n, int32_t h,
                                                      int32_t w, int32_t c, int32_t window_h,
                                                      int32_t window_w, mp_dtype_t dtype) {
  mp_pool2d_desc_t desc;
  mp_pool2d_desc_init(&desc, sizeof desc, mode, n, h, w, c, window_h, window_w, dtype);
  return desc;
}

/** P and Q of `desc`.
 *  @param p,q  host, out. */
MP_API mp_status_t mp_pool2d_output_size(const mp_pool2d_desc_t *desc, int32_t *p, int32_t *q);

/** y = the largest element, or the mean, of each window and channel.  NaN is larger than
 *  everything and makes every mean NaN.
 *  @param x  device.
 *  @param y  device, written. */
MP_API mp_status_t mp_pool2d_forward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                     const void *x, void *y, mp_stream_t stream);

/** dx = the gradient of x, overwritten.  MP_POOL_MAX: the pixel that was the largest of its window,
 *  the first one by rows among equals, gets dy; it is found again from x, so y is not needed.
 *  Every pixel sums over the windows that hold it, in fp32 and a fixed order; for MP_POOL_MAX it
 *  reads each of them.
 *  @param x   device; read for MP_POOL_MAX alone, optional otherwise.
 *  @param dy  device.
 *  @param dx  device, written. */
MP_API mp_status_t mp_pool2d_backward(mp_context_t context, const mp_pool2d_desc_t *desc,
                                      const void *x, const void *dy, void *dx, mp_stream_t stream);

/** Batch normalisation of `rows` samples (N H W pixels of images) of `channels` values each. */
typedef struct mp_batchnorm_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;           /**< of x, y, dy and dx; everything else is fp32 */
  int64_t rows;               /**< >= 0 */
  int32_t channels;           /**< >= 0 */
  mp_activation_t activation; /**< MP_ACT_NONE or MP_ACT_RELU */
  float epsilon;              /**< >= 0; with 0, a constant channel becomes NaN */
  float momentum;             /**< of the running statistics, in [0, 1] */
} mp_batchnorm_desc_t;

/** epsilon = 1e-5, momentum = 0.1, no activation. */
MP_API mp_status_t mp_batchnorm_desc_init(mp_batchnorm_desc_t *desc, size_t struct_size,
                                          int64_t rows, int32_t channels, mp_dtype_t dtype);
static inline mp_batchnorm_desc_t mp_batchnorm_desc_default(int64_t rows, int32_t channels,
                                                            mp_dtype_t dtype) {
  mp_batchnorm_desc_t desc;
  mp_batchnorm_desc_init(&desc, sizeof desc, rows, channels, dtype);
  return desc;
}

/** Bytes of workspace that training and backward need: at most 4 KiB per channel.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_batchnorm_workspace_size(mp_context_t context,
                                               const mp_batchnorm_desc_t *desc, size_t *bytes);

/** Normalises each channel with the statistics of these rows:
 *
 *      mean = sum_i x[i] / rows,  var = sum_i (x[i] - mean)^2 / rows
 *      inv_std = 1 / sqrt(var + epsilon)
 *      y[i] = activation((x[i] - mean) gamma inv_std + beta)
 *      running_mean = (1 - momentum) running_mean + momentum mean
 *      running_var  = (1 - momentum) running_var + momentum var rows / (rows - 1)
 *
 *  @param x                          device, rows x channels, dense.
 *  @param gamma, beta                device, channels floats.
 *  @param running_mean, running_var  device, channels floats, optional, updated.
 *  @param saved_mean, saved_inv_std  device, channels floats, written; for the backward pass.
 *  @param y                          device, rows x channels, written.
 *  @param workspace                  device, 256-byte aligned; mp_batchnorm_workspace_size bytes.
 *
 *  A channel with an infinity or a NaN in x becomes NaN, and so does one whose variance is beyond
 *  the range of fp32; the running statistics take in what was measured.  rows = 1 leaves running_var
 *  as it is, for one sample has no unbiased variance; rows = 0 or channels = 0 writes nothing.
 *
 *  Means and squared deviations of blocks of rows are combined pairwise, never sums of squares:
 *  accurate also where the mean is large beside the deviation.  The order depends on the shape
 *  alone, not on the device.
 *  Source: Ioffe & Szegedy, Batch Normalization, 2015, algorithm 1; Chan, Golub & LeVeque,
 *  Algorithms for Computing the Sample Variance, 1983; Micikevicius et al. 2018, section 3.3
 *  (statistics in fp32).
 *  @return MP_ERROR_WORKSPACE_TOO_SMALL  workspace_bytes is less than is needed */
MP_API mp_status_t mp_batchnorm_forward_training(
    mp_context_t context, const mp_batchnorm_desc_t *desc, const void *x, const float *gamma,
    const float *beta, float *running_mean, float *running_var, float *saved_mean,
    float *saved_inv_std, void *y, void *workspace, size_t workspace_bytes, mp_stream_t stream);

/** The same with given statistics, usually the running ones; momentum is not looked at.
 *  @param mean, var  device, channels floats.
 *  @param y          device, written; may be x. */
MP_API mp_status_t mp_batchnorm_forward_inference(mp_context_t context,
                                                  const mp_batchnorm_desc_t *desc, const void *x,
                                                  const float *gamma, const float *beta,
                                                  const float *mean, const float *var, void *y,
                                                  mp_stream_t stream);

/** Gradients of mp_batchnorm_forward_training, with g = dy, or with MP_ACT_RELU 0 where the
 *  activation was not positive, which is computed again from x; so y need not be kept:
 *
 *      xhat[i] = (x[i] - mean) inv_std
 *      dbeta = sum_i g[i],  dgamma = sum_i g[i] xhat[i]
 *      dx[i] = gamma inv_std (g[i] - dbeta / rows - xhat[i] dgamma / rows)
 *
 *  @param x, dy          device, rows x channels, dense.
 *  @param gamma, beta    device, as in the forward pass.
 *  @param saved_mean, saved_inv_std  device, from the forward pass.
 *  @param dx             device, rows x channels, written; may be dy.
 *  @param dgamma, dbeta  device, channels floats, overwritten; zeros when rows is 0.
 *  An infinity or a NaN in x or g makes dgamma and dx of its channel infinite or NaN.  Workspace
 *  and order of sums as in the forward pass. */
MP_API mp_status_t mp_batchnorm_backward(mp_context_t context, const mp_batchnorm_desc_t *desc,
                                         const void *x, const void *dy, const float *gamma,
                                         const float *beta, const float *saved_mean,
                                         const float *saved_inv_std, void *dx, float *dgamma,
                                         float *dbeta, void *workspace, size_t workspace_bytes,
                                         mp_stream_t stream);

/* ======================================================================
 *  Experimental: may change in any release.  For tests, benchmarks, tuning.
 * ====================================================================== */
#ifdef MP_ENABLE_EXPERIMENTAL

/** Name of the index-th best kernel for `desc`: index 0 is what mp_gemm would launch,
 *  then by predicted time.  Put the name into desc->kernel to force it.  This is how the
 *  tests reach every kernel and the benchmarks check the prediction.
 *  @param name  host, out; static storage, e.g. "wmma_128x128x32_s3".
 *  @return MP_ERROR_NOT_FOUND when index is past the last applicable kernel. */
MP_API mp_status_t mp_gemm_kernel_name(mp_context_t context, const mp_gemm_desc_t *desc,
                                       int32_t index, const char **name);

/** The same for one product of a convolution. */
MP_API mp_status_t mp_conv2d_kernel_name(mp_context_t context, const mp_conv2d_desc_t *desc,
                                         mp_conv_op_t op, int32_t index, const char **name);

/** One kernel and what it makes of a problem. */
typedef struct mp_kernel_info {
  uint32_t struct_size;
  uint32_t reserved0;
  const char *name; /**< static storage */
  const char
      *why_not; /**< why it cannot run the problem, one clause, static storage; NULL = it can */
  double predicted_us;    /**< 0 where it cannot */
  size_t workspace_bytes; /**< that it needs; 0 where it cannot */
} mp_kernel_info_t;

/** The kernels in the order of mp_gemm_kernel_name, and behind them those that cannot run `desc`.
 *  @param info  host, out; MP_INIT_STRUCT it before the call.
 *  @return MP_ERROR_NOT_FOUND when index is past the last kernel. */
MP_API mp_status_t mp_gemm_kernel_info(mp_context_t context, const mp_gemm_desc_t *desc,
                                       int32_t index, mp_kernel_info_t *info);

/** The same for one product of a convolution. */
MP_API mp_status_t mp_conv2d_kernel_info(mp_context_t context, const mp_conv2d_desc_t *desc,
                                         mp_conv_op_t op, int32_t index, mp_kernel_info_t *info);

#endif /* MP_ENABLE_EXPERIMENTAL */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_H */
