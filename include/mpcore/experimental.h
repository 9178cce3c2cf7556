/* mpcore/experimental.h: which kernel runs.  For tests, benchmarks, tuning. */
#ifndef MPCORE_EXPERIMENTAL_H
#define MPCORE_EXPERIMENTAL_H

#include "conv.h"
#include "rnn.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef MP_ENABLE_EXPERIMENTAL

/** @defgroup experimental Experimental
 *
 *  May change in any release.
 *
 *  mp_gemm_desc.kernel, mp_conv2d_desc.kernel and mp_rnn_desc.kernel force the kernel of that name, in
 *  mp_gemm_grouped one that runs every product.  This is how the tests reach every kernel and the benchmarks check
 *  the prediction.  Beside what the call itself says it then returns
 *
 *      MP_ERROR_NOT_FOUND            no kernel has that name; also where there is nothing to do
 *      MP_ERROR_UNSUPPORTED          that kernel cannot run this problem
 *      MP_ERROR_WORKSPACE_TOO_SMALL  it needs more workspace than there is
 *
 *  @{ */

/** One kernel and what it makes of a problem. */
typedef struct mp_kernel_info {
  uint32_t struct_size;
  uint32_t is_estimated; /**< 1: the constants behind predicted_us were never measured on this
                              architecture; 0: mptune measured them */
  const char *name;      /**< static storage, e.g. "wmma_128x128x32_s3" */
  const char
      *why_not; /**< why it cannot run the problem, one clause, static storage; NULL = it can */
  double predicted_us; /**< 0 where it cannot, and of recurrent layers, which are chosen by rules */
  size_t workspace_bytes; /**< that it needs; 0 where it cannot */
} mp_kernel_info_t;

/** The kernels by predicted time, so that index 0 is what mp_gemm would launch, and behind them those
 *  that cannot run `desc`.
 *  @param info  host, out; MP_INIT_STRUCT it before the call.
 *  @retval MP_ERROR_NOT_FOUND when index is past the last kernel. */
MP_API mp_status_t mp_gemm_kernel_info(mp_context_t context, const mp_gemm_desc_t *desc,
                                       int32_t index, mp_kernel_info_t *info);

/** The same for one product of a convolution. */
MP_API mp_status_t mp_conv2d_kernel_info(mp_context_t context, const mp_conv2d_desc_t *desc,
                                         mp_conv_op_t op, int32_t index, mp_kernel_info_t *info);

/** How the steps of a recurrent layer are done: by products of mp_gemm's kernels and kernels for the cell,
 *  or in one kernel a step.  The one that the library would take comes first.  workspace_bytes is that of the
 *  whole call, as in mp_rnn_get_sizes. */
MP_API mp_status_t mp_rnn_kernel_info(mp_context_t context, const mp_rnn_desc_t *desc,
                                      int32_t index, mp_kernel_info_t *info);

/** @} */

#endif /* MP_ENABLE_EXPERIMENTAL */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_EXPERIMENTAL_H */
