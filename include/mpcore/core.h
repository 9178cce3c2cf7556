/* mpcore/core.h: version, statuses, types, contexts, device memory. */
#ifndef MPCORE_CORE_H
#define MPCORE_CORE_H

#include <stddef.h> /* size_t */
#include <stdint.h>
#include <string.h> /* memset, in MP_INIT_STRUCT */

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup version 1. Version, visibility, struct versioning
 *
 *  Every struct passed to the library starts with `struct_size`, which must be
 *  sizeof that struct as the caller was compiled.  mp_*_init(&s, sizeof s, ...) fills a struct
 *  with its defaults, and mp_*_default(...) is the same as a value.  Use
 *  MP_INIT_STRUCT only for structs whose defaults are all 0; call mp_*_init for the others.
 *
 *  The defaults are the library's, for every language.  An mp_*_init function checks the size
 *  alone; a field with a value out of its range is refused by the function that takes the struct.
 *  If it fails, all bytes of the struct are zeros, struct_size included, which every function
 *  refuses; if the size is larger than any version of a struct, nothing is written.
 *
 *  A caller older than the library: fields beyond struct_size are taken as 0.
 *  A caller newer than the library: unknown bytes must be 0, otherwise the call
 *  fails with MP_ERROR_STRUCT_SIZE; a new feature is never silently ignored.
 *  Hence every field added after 1.0 must mean "as before" when it is 0.
 *  (Same protocol as copy_struct_from_user in Linux.)  Of a struct that the library
 *  fills, at most struct_size bytes are written.
 *
 *  Callers without a C compiler (ctypes, JNI) call mp_*_init with the size that they know.
 *
 *  @{ */

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

/** Zero *s and set s->struct_size. */
#define MP_INIT_STRUCT(s) \
  ((void)memset((s), 0, sizeof *(s)), (void)((s)->struct_size = (uint32_t)sizeof *(s)))

/** @} */

/** @defgroup errors 2. Status, error text, logging
 *  @{ */

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
  MP_LOG_ERROR = 1, /**< every error, once; by default only errors that no status returns */
  MP_LOG_WARN = 2,  /**< slow paths taken for a reason the caller can change */
  MP_LOG_INFO = 3,  /**< kernel choices, the first time each is made; skipped steps, where the
                         host asks for their outcome */
  MP_LOG_DEBUG = 4  /**< every call */
} mp_log_level_t;

/** @param message  one line without newline; valid during the callback only.
 *  @param user     the pointer given to mp_set_log_callback. */
typedef void (*mp_log_callback_t)(mp_log_level_t level, const char *message, void *user);

/** Send messages of `level` or more important to `callback`, for the whole process.
 *  NULL restores the default: MP_LOG_WARN and above to stderr, without returned errors, which
 *  mp_last_error has.  The environment variable MP_LOG=error|warn|info|debug changes the level and
 *  adds returned errors.  The callback may run on any thread, several at a time, and must not call
 *  mpcore.  If it throws a C++ exception, its line goes to stderr. */
MP_API void mp_set_log_callback(mp_log_callback_t callback, void *user, mp_log_level_t level);

/** @} */

/** @defgroup context 3. Types, context, device memory
 *
 *  Device memory from here is for programs that should run on both targets (the tests and examples
 *  of this library do) and for callers without the CUDA runtime at hand.  Nothing else in mpcore
 *  requires it.
 *
 *  @{ */

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
/** "fp16", "bf16", "fp32"; "none" for MP_DTYPE_NONE, "?" for an invalid value.  Static storage. */
MP_API const char *mp_dtype_name(mp_dtype_t dtype);

typedef struct mp_context *mp_context_t;         /**< one device and its limits */
typedef struct mp_tensor_list *mp_tensor_list_t; /**< many tensors treated as one */
typedef struct mp_scaler *mp_scaler_t;           /**< a loss scale living on the device */
typedef struct mp_optimizer *mp_optimizer_t;     /**< update rule + the tensors it updates */

/** Source of the device memory of objects.  Called only by mp_*_create, mp_*_destroy,
 *  mp_graph_compile and mp_graph_set_batch.  If a callback throws a C++ exception, the call returns
 *  MP_ERROR_OUT_OF_MEMORY; a destroy call logs an error. */
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
 *  @retval MP_ERROR_ARCH_MISMATCH if this build holds no code for the device. */
MP_API mp_status_t mp_context_create(mp_context_t *context, const mp_context_config_t *config);

/** Destroys a context.  Objects created from `context` must have been destroyed before.  Destroying
 *  the last host context ends the worker threads and frees their memory; a later context creates
 *  them again. */
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

/** *ptr = `bytes` of device memory, 256-byte aligned, with anything in it; NULL for 0 bytes. */
MP_API mp_status_t mp_malloc(mp_context_t context, void **ptr, size_t bytes);
/** Release what mp_malloc gave, when all that the device has been given to do is done: it waits.
 *  NULL does nothing. */
MP_API void mp_free(mp_context_t context, void *ptr);
/** Either side may be host or device memory; they must not overlap.  Pageable host memory makes the
 *  copy synchronous, as in cudaMemcpyAsync. */
MP_API mp_status_t mp_memcpy(mp_context_t context, void *dst, const void *src, size_t bytes,
                             mp_stream_t stream);
/** Each of `bytes` bytes of dst, device memory, becomes `byte`. */
MP_API mp_status_t mp_memset(mp_context_t context, void *dst, int byte, size_t bytes,
                             mp_stream_t stream);
/** Wait until everything enqueued on `stream` has finished. */
MP_API mp_status_t mp_stream_sync(mp_context_t context, mp_stream_t stream);

/** dst[i] = (dst_dtype) src[i].  dst may be src if the types have equal sizes; any other overlap is
 *  refused. */
MP_API mp_status_t mp_cast(mp_context_t context, const void *src, mp_dtype_t src_dtype, void *dst,
                           mp_dtype_t dst_dtype, int64_t count, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_CORE_H */
