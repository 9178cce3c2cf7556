/* mpcore/experimental.h: kernel selection, for tests, benchmarks and tuning. */
#ifndef MPCORE_EXPERIMENTAL_H
#define MPCORE_EXPERIMENTAL_H

#include "attention.h"
#include "conv.h"
#include "rnn.h"

MP_BEGIN_C

#ifdef MP_ENABLE_EXPERIMENTAL

/** @defgroup experimental 20. Experimental: kernel selection
 *
 *  Declared only with MP_ENABLE_EXPERIMENTAL; may change in any release.
 *
 *  mp_plan_init makes a plan from a kernel name.  Tests reach every kernel this way, and benchmarks
 *  check the predicted times.
 *
 *  @{ */

/** Description of a kernel for a given problem. */
typedef struct mp_kernel_info {
  uint32_t struct_size;
  uint32_t is_estimated; /**< 1: predicted_us uses constants that were not measured on this
                              architecture; 0: mptune measured them */
  const char *name;      /**< static storage, e.g. "wmma_128x128x32_s3" */
  const char *reason;    /**< reason why the kernel does not support the problem, a clause in static
                              storage; NULL if it does */
  double predicted_us;   /**< 0 if unsupported, and for recurrent layers, which use fixed rules */
  size_t workspace_bytes; /**< minimum workspace; 0 if unsupported */
} mp_kernel_info_t;

/** Returns a kernel for a problem of mp_gemm with 16-byte aligned operands.  Index 0 is the kernel
 *  that mp_gemm would launch.  The others follow by predicted time; unsupported kernels are last.
 *  @param info  host, out; initialize it with MP_INIT_STRUCT.
 *  @retval MP_ERROR_NOT_FOUND index is past the last kernel */
MP_API mp_status_t mp_gemm_kernel_info(mp_context_t context, const mp_gemm_desc_t *desc,
                                       int32_t index, mp_kernel_info_t *info);

/** Describes the plan of a call of mp_gemm with 16-byte aligned operands as text: kernel, store
 *  path, split, workspace and predicted time with their parts, fallback, and the next five
 *  candidates.  If desc->plan is set, describes that plan.
 *  @param epilogue  host, optional; as in mp_gemm_workspace_size.
 *  @param text,bytes  as in mp_tuning_get_text.
 *  @retval MP_ERROR_NOT_FOUND the problem is empty */
MP_API mp_status_t mp_gemm_explain(mp_context_t context, const mp_gemm_desc_t *desc,
                                   const mp_epilogue_t *epilogue, char *text, size_t *bytes);

/** Describes the plan of one pass of a convolution, like mp_gemm_explain. */
MP_API mp_status_t mp_conv2d_explain(mp_context_t context, const mp_conv2d_desc_t *desc,
                                     mp_conv_op_t op, const mp_epilogue_t *epilogue, char *text,
                                     size_t *bytes);

/** Returns a kernel for one pass of a convolution, like mp_gemm_kernel_info. */
MP_API mp_status_t mp_conv2d_kernel_info(mp_context_t context, const mp_conv2d_desc_t *desc,
                                         mp_conv_op_t op, int32_t index, mp_kernel_info_t *info);

/** Returns an implementation of the time steps of a recurrent layer: separate GEMM and cell
 *  kernels, or one fused kernel per step.  Index 0 is the one that the library would use.
 *  workspace_bytes is that of the complete call, as in mp_rnn_get_sizes. */
MP_API mp_status_t mp_rnn_kernel_info(mp_context_t context, const mp_rnn_desc_t *desc,
                                      int32_t index, mp_kernel_info_t *info);

/** Returns a kernel of both passes of attention, for 16-byte aligned tensors.  Index 0 is the one
 *  that the library would use; workspace_bytes is that of the backward pass.
 *  @retval MP_ERROR_NOT_FOUND index is past the last kernel */
MP_API mp_status_t mp_attention_kernel_info(mp_context_t context, const mp_attention_desc_t *desc,
                                            int32_t index, mp_kernel_info_t *info);

/** Describes both passes of attention with 16-byte aligned tensors and without sinks as text:
 *  kernel, launches with blocks, tile and shared memory, workspace, and the reason why the other
 *  kernel is not used.  text and bytes as in mp_gemm_explain. */
MP_API mp_status_t mp_attention_explain(mp_context_t context, const mp_attention_desc_t *desc,
                                        char *text, size_t *bytes);

/** Selects the kernel of later calls of mp_attention_forward and mp_attention_backward with a
 *  context.  They return MP_ERROR_UNSUPPORTED if it cannot run them.
 *  @param kernel  host, NUL-terminated: a name of mp_attention_kernel_info; NULL = the best one.
 *  @retval MP_ERROR_NOT_FOUND kernel is unknown */
MP_API mp_status_t mp_attention_set_kernel(mp_context_t context, const char *kernel);

/** @} */

#endif /* MP_ENABLE_EXPERIMENTAL */

MP_END_C

#endif /* MPCORE_EXPERIMENTAL_H */
