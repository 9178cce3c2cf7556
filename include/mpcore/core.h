/* mpcore/core.h: version, status codes, types, contexts and device memory. */
#ifndef MPCORE_CORE_H
#define MPCORE_CORE_H

#include <stddef.h> /* size_t */
#include <stdint.h>
#include <string.h> /* memset, in MP_INIT_STRUCT */

/* Begin and end of the declarations of a header, which have C linkage in C++. */
#ifdef __cplusplus
#define MP_BEGIN_C extern "C" {
#define MP_END_C }
#else
#define MP_BEGIN_C
#define MP_END_C
#endif

MP_BEGIN_C

/** @defgroup version 1. Version, names and structs
 *
 *  Names:
 *
 *  - Each enumeration has its own prefix: MP_LR_ for mp_lr_schedule_t, MP_STEP_FLAG_ for
 *    mp_step_flags_t.  Exceptions are mp_dtype_t (MP_FP16) and mp_status_t (MP_ERROR_CUDA).
 *  - dtype_x is the type of x, ld_x the leading dimension of matrix x, num_x a count.
 *  - mp_object_get_x returns x to the host; mp_object_get_x_address returns its device address,
 *    which is constant for the life of the object.  mp_x_workspace_size returns the workspace size
 *    of mp_x, or of every function whose name begins with mp_x and that takes a workspace.
 *
 *  Value 0 of an enumeration means "not set": functions that read such a field reject it.  0 is a
 *  value only where it names the absence of something: MP_SUCCESS, MP_DTYPE_NONE, MP_ACT_NONE,
 *  MP_SOFTMAX_MASK_NONE, MP_OP_CLASS_UNLISTED, MP_STEP_OUTCOME_PENDING, MP_SCALER_STATUS_OK and
 *  MP_TENSOR_ROLE_ACTIVATION.
 *
 *  More than six pointers to tensors are passed as a struct, mp_*_tensors_t.
 *
 *  Fields for capabilities of later versions are documented as "not supported by this version".  If
 *  they are not 0, the call fails with MP_ERROR_UNSUPPORTED.
 *
 *  Structs that may grow begin with `struct_size`: the size of the struct in the header that the
 *  caller was compiled with.  Structs without it are frozen: no version changes their layout.
 *
 *  The function mp_*_init(&s, sizeof s, ...) fills a struct with its defaults, and
 *  mp_*_default(...) returns one by value.  If every default is 0, MP_INIT_STRUCT is enough.
 *
 *  The defaults are part of the library and equal in all languages.  mp_*_init checks only the
 *  size; the function that takes the struct rejects fields that are out of range.  If mp_*_init
 *  fails, it leaves the struct zeroed, struct_size included, and every function rejects it.  If the
 *  size is larger than any version of the struct, nothing is written.
 *
 *  Compatibility follows copy_struct_from_user of the Linux kernel:
 *
 *  - Older caller: fields beyond struct_size read as 0.  Every field added after 1.0 must
 *    therefore keep the previous behavior when it is 0.
 *  - Newer caller: bytes unknown to the library must be 0; otherwise the call fails with
 *    MP_ERROR_STRUCT_SIZE.  A new feature is never silently ignored.
 *  - Output structs: the library writes at most struct_size bytes.
 *
 *  Callers without a C compiler (ctypes, JNI) pass mp_*_init the size of their own definition.
 *
 *  @{ */

#define MP_VERSION_MAJOR 0
#define MP_VERSION_MINOR 2
#define MP_VERSION_PATCH 0
/** Version as one integer, comparable with <: 0.2.0 is 200, 1.2.3 is 10203. */
#define MP_VERSION (MP_VERSION_MAJOR * 10000 + MP_VERSION_MINOR * 100 + MP_VERSION_PATCH)

/** Exports a function; all other symbols are hidden.  capi/exports.map enforces the same. */
#if defined(__GNUC__)
#define MP_API __attribute__((visibility("default")))
#else
#define MP_API
#endif

/** Returns MP_VERSION of the loaded library, which may differ from that of this header. */
MP_API uint32_t mp_version(void);

/** Returns one line for bug reports: version, git hash, CUDA version, compiled targets and
 *  architectures.  Static storage.  The format is not stable; do not parse it. */
MP_API const char *mp_build_info(void);

/** Zeroes *s and sets s->struct_size. */
#define MP_INIT_STRUCT(s) \
  ((void)memset((s), 0, sizeof *(s)), (void)((s)->struct_size = (uint32_t)sizeof *(s)))

/** @} */

/** @defgroup errors 2. Status, error text, logging
 *  @{ */

/** Status codes.  The values are part of the ABI and grouped in ranges by cause. */
typedef enum mp_status {
  MP_SUCCESS = 0,

  /* 1-19: the call is invalid; retrying it cannot succeed. */
  MP_ERROR_INVALID_ARGUMENT = 1,    /**< a value outside its documented range */
  MP_ERROR_MISALIGNED = 2,          /**< a pointer or ld violates a documented alignment */
  MP_ERROR_WORKSPACE_TOO_SMALL = 3, /**< see mp_*_workspace_size */
  MP_ERROR_STRUCT_SIZE = 4,         /**< struct_size is 0, or unknown fields are set */

  /* 20-39: the call is valid but not supported by this build or device. */
  MP_ERROR_UNSUPPORTED = 20,   /**< no kernel for this combination; mp_last_error names the part */
  MP_ERROR_ARCH_MISMATCH = 21, /**< the build has no code for this device */
  MP_ERROR_NOT_FOUND = 22,     /**< unknown name, index past the end, missing shared library */

  /* 40-59: the environment failed; retrying the call may succeed. */
  MP_ERROR_OUT_OF_MEMORY = 40,
  MP_ERROR_CUDA = 41, /**< mp_last_error contains the CUDA error name */
  MP_ERROR_COMM = 42, /**< a callback of mp_comm_t failed; mp_last_error contains its code */

  /* 60: a bug in mpcore; please report mp_last_error and mp_build_info. */
  MP_ERROR_INTERNAL = 60
} mp_status_t;

/** Returns the name of a status, e.g. "MP_ERROR_UNSUPPORTED".  Static storage; accepts any int. */
MP_API const char *mp_status_string(mp_status_t status);

/** Returns the message of the last failed call on this thread.  It names the offending argument
 *  and its value: "mp_gemm: ld_a = 60 is smaller than k = 64".  Meaningful directly after a call
 *  that returned an error; valid until the next mpcore call on this thread.  Never NULL. */
MP_API const char *mp_last_error(void);

/** Log severity; lower values are more severe. */
typedef enum mp_log_level {
  MP_LOG_ERROR = 1, /**< every error, once; by default only those that no function returns */
  MP_LOG_WARN = 2,  /**< slow paths whose cause the caller can change */
  MP_LOG_INFO = 3,  /**< kernel selections, the first time each is made; skipped steps, if the
                         host queries their outcome */
  MP_LOG_DEBUG = 4  /**< every call */
} mp_log_level_t;

/** Receives one log message.
 *  @param message  one line without a newline, valid only during the callback.
 *  @param user     the pointer passed to mp_set_log_callback. */
typedef void (*mp_log_callback_t)(mp_log_level_t level, const char *message, void *user);

/** Sends messages of severity `level` or higher to `callback`, for the whole process.  The callback
 *  may run on several threads concurrently and must not call mpcore.  If it throws a C++ exception,
 *  the message is written to stderr.  With level 0, no message is sent.
 *
 *  NULL restores the default: MP_LOG_WARN and more severe to stderr, except errors that a call
 *  returns (see mp_last_error).  The environment variable MP_LOG=error|warn|info|debug changes the
 *  level of the default and includes returned errors. */
MP_API void mp_set_log_callback(mp_log_callback_t callback, void *user, mp_log_level_t level);

/** @} */

/** @defgroup context 3. Types, context, device memory
 *
 *  The memory functions serve programs that run on both targets, such as the tests and examples,
 *  and callers that do not use the CUDA runtime.  No other part of mpcore requires them.
 *
 *  @{ */

/** CUDA stream.  The same type as cudaStream_t, declared here so that no CUDA headers are needed.
 *  NULL is the legacy default stream. */
typedef struct CUstream_st *mp_stream_t;

/** Types of elements (1 to 15), of indices (16 to 31) and storage types of optimizer state (32 and
 *  above).  No function of this version accepts a storage type. */
typedef enum mp_dtype {
  MP_DTYPE_NONE = 0,
  MP_FP16 = 1, /**< IEEE binary16: 5 exponent bits, 11 significant bits, max 65504 */
  MP_BF16 = 2, /**< bfloat16: 8 exponent bits, 8 significant bits */
  MP_FP32 = 3, /**< IEEE binary32 */

  MP_INT32 = 16, /**< int32_t; only for indices and labels, if documented */
  MP_INT64 = 17, /**< int64_t; likewise */

  MP_STATE_M8 = 32,    /**< first moments: sign and E4M3, one exponent byte per 256 elements */
  MP_STATE_V8 = 33,    /**< second moments: unsigned E5M3, one exponent byte per 256 elements */
  MP_REMAINDER16 = 34, /**< int16: fp32 weight minus its bfloat16 rounding, in units of the last
                            place of fp32 */
  MP_REMAINDER8 = 35   /**< int8: the same in units of 2^8 last places, rounded at random */
} mp_dtype_t;

/** Returns the bytes per element, or 0 for a storage type or an invalid value. */
MP_API size_t mp_dtype_size(mp_dtype_t dtype);
/** Returns a name in lower case without MP_, e.g. "fp16"; "none" for MP_DTYPE_NONE and "?" for an
 *  invalid value.  Static storage. */
MP_API const char *mp_dtype_name(mp_dtype_t dtype);

/** Statistics of the gradients that a call writes, taken after rounding: device, 1 float each,
 *  optional.  They must overlap neither each other nor another tensor of the call.  Frozen:
 *  every call that produces gradients embeds or takes this pair. */
typedef struct mp_grad_stats {
  float *found_inf; /**< set to 1 if an element is infinite or NaN; never cleared (sticky) */
  /** Updated: the largest absolute value so far.  Clear it first: its value must be >= 0.  After a
   *  NaN it stays NaN until it is cleared. */
  float *amax;
} mp_grad_stats_t;

typedef struct mp_context *mp_context_t;         /**< one device and its limits */
typedef struct mp_tensor_list *mp_tensor_list_t; /**< many tensors processed as one */
typedef struct mp_scaler *mp_scaler_t;           /**< a loss scale in device memory */
typedef struct mp_optimizer *mp_optimizer_t;     /**< an update rule and its tensors */

/** Device memory allocator.  Called only by mp_*_create, mp_*_destroy, mp_graph_compile and
 *  mp_graph_set_batch.  If a callback throws a C++ exception, the call returns
 *  MP_ERROR_OUT_OF_MEMORY; mp_*_destroy logs an error instead. */
typedef struct mp_allocator {
  uint32_t struct_size;
  uint32_t reserved0; /**< must be 0 */
  /** Returns 256-byte aligned memory, or NULL if out of memory. */
  void *(*alloc)(size_t bytes, void *user);
  /** Frees memory.  Enqueued work may still use it, so reuse must wait for that work. */
  void (*free)(void *ptr, size_t bytes, void *user);
  void *user;
} mp_allocator_t;

/** Values of mp_context_config.device besides CUDA ordinals. */
#define MP_DEVICE_CURRENT (-1) /**< the calling thread's current CUDA device; an error if none */
#define MP_DEVICE_HOST (-2)    /**< the CPU */
#define MP_DEVICE_AUTO (-3)    /**< CURRENT; if none is usable, HOST with a warning */

/** Device of a context and limits on its use. */
typedef struct mp_context_config {
  uint32_t struct_size;
  int32_t device;   /**< CUDA ordinal or MP_DEVICE_* */
  int32_t sm_limit; /**< maximum number of SMs, e.g. to leave room for NCCL; 0 = all */
  uint32_t flags;   /**< must be 0 */
  /** Host, copied; NULL = cudaMalloc and cudaFree. */
  const mp_allocator_t *allocator;
} mp_context_config_t;

/** Initializes *config: MP_DEVICE_AUTO, all SMs, cudaMalloc. */
MP_API mp_status_t mp_context_config_init(mp_context_config_t *config, size_t struct_size);
static inline mp_context_config_t mp_context_config_default(void) {
  mp_context_config_t config;
  mp_context_config_init(&config, sizeof config);
  return config;
}

/** Creates a context.  A context is immutable, so threads can share it.
 *  @param config  host, optional; NULL = defaults.
 *  @retval MP_ERROR_UNSUPPORTED the build lacks the target
 *  @retval MP_ERROR_ARCH_MISMATCH the build has no code for the device */
MP_API mp_status_t mp_context_create(mp_context_t *context, const mp_context_config_t *config);

/** Destroys a context.  All objects created from it must be destroyed first.  Destroying the last
 *  host context ends the worker threads and frees their memory; a later context creates them
 *  again. */
MP_API void mp_context_destroy(mp_context_t context);

/** Target that the kernels of a context are compiled for. */
typedef enum mp_target { MP_TARGET_CUDA = 1, MP_TARGET_HOST = 2 } mp_target_t;

/** Device properties. */
typedef struct mp_device_info {
  uint32_t struct_size;
  mp_target_t target;
  int32_t arch;           /**< 80, 90, ... */
  int32_t num_sms;        /**< SMs in use, at most sm_limit */
  int64_t smem_per_block; /**< bytes of shared memory that a kernel may opt in to */
  int64_t l2_bytes;
  char name[64]; /**< NUL-terminated */
} mp_device_info_t;

/** Returns the properties of a context's device.
 *  @param info  host, out; initialize it with MP_INIT_STRUCT. */
MP_API mp_status_t mp_context_get_info(mp_context_t context, mp_device_info_t *info);

/** Allocates `bytes` of uninitialized device memory, 256-byte aligned; NULL for 0 bytes. */
MP_API mp_status_t mp_malloc(mp_context_t context, void **ptr, size_t bytes);
/** Waits until the device is idle, then frees memory from mp_malloc.  NULL does nothing. */
MP_API void mp_free(mp_context_t context, void *ptr);
/** Copies between any combination of host and device memory; the two ranges must not overlap.
 *  Pageable host memory makes the copy synchronous, as in cudaMemcpyAsync.  0 bytes do nothing. */
MP_API mp_status_t mp_memcpy(mp_context_t context, void *dst, const void *src, size_t bytes,
                             mp_stream_t stream);
/** Sets `bytes` bytes of device memory to the low 8 bits of `byte`.  0 bytes do nothing. */
MP_API mp_status_t mp_memset(mp_context_t context, void *dst, int byte, size_t bytes,
                             mp_stream_t stream);
/** Waits until all work enqueued on `stream` has finished. */
MP_API mp_status_t mp_stream_sync(mp_context_t context, mp_stream_t stream);

/** Converts elements: dst[i] = (dtype_dst)src[i].
 *  @param src    device, count elements.
 *  @param dst    device, count elements, written; may be src if both types have equal size.  Any
 *                other overlap is an error.
 *  @param count  >= 0; 0 does nothing. */
MP_API mp_status_t mp_cast(mp_context_t context, const void *src, mp_dtype_t dtype_src, void *dst,
                           mp_dtype_t dtype_dst, int64_t count, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_CORE_H */
