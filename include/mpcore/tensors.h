/* mpcore/tensors.h: many tensors as one: what is in them, their norms. */
#ifndef MPCORE_TENSORS_H
#define MPCORE_TENSORS_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup tensors 6. Tensor lists and their reductions
 *  @{ */

/** Describes `count` dense tensors.  Host arrays, copied by create. */
typedef struct mp_tensor_list_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< of all tensors, where `dtypes` is NULL */
  uint32_t count;
  uint32_t reserved0; /**< must be 0 */
  /** count device pointers, aligned to the element size; NULL where numel is 0, and in the model
   *  list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
   *  the list refuses them with MP_ERROR_INVALID_ARGUMENT. */
  void *const *data;
  /** count element counts, >= 0 and together below 2^40; empty tensors are allowed anywhere. */
  const int64_t *numel;
  /** One type per tensor, optional: layers kept in fp32 beside fp16 ones. */
  const mp_dtype_t *dtypes;
} mp_tensor_list_desc_t;

/** Upload the pointer table once, so that each later call is one kernel launch however
 *  many tensors there are (the idea of apex multi_tensor_apply, without its per-call
 *  packing of metadata into kernel arguments). */
MP_API mp_status_t mp_tensor_list_create(mp_tensor_list_t *list, mp_context_t context,
                                         const mp_tensor_list_desc_t *desc);
/** The tensors stay; optimizers made from the list must be gone. */
MP_API void mp_tensor_list_destroy(mp_tensor_list_t list);

/** Point the list at other buffers of the same sizes, in stream order: for frameworks
 *  that allocate new gradients each step.  Do not capture into a graph.
 *  @param data  host, count device pointers. */
MP_API mp_status_t mp_tensor_list_set_data(mp_tensor_list_t list, void *const *data,
                                           mp_stream_t stream);

/** One tensor of the list, as it is now.
 *  @param data,numel,dtype  host, out, each optional; data is a device address.
 *  @retval MP_ERROR_NOT_FOUND the list has no tensor of this index */
MP_API mp_status_t mp_tensor_list_get(mp_tensor_list_t list, uint32_t index, void **data,
                                      int64_t *numel, mp_dtype_t *dtype);

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
 *  16384 elements and in fp64 across chunks, in a fixed order, without atomics: bitwise
 *  reproducible.  A chunk whose largest |x| is below 2^-40, or 2^56 or more, is read twice and
 *  summed with a power of two as factor: the norm is infinite only if it exceeds fp32.
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

/** What mp_tensor_stats writes; every pointer is device memory and optional.
 *  mp_check_nonfinite, mp_amax, mp_l2norm and mp_inspect say what each of them is. */
typedef struct mp_stats_outputs {
  uint32_t struct_size; /**< MP_INIT_STRUCT asks for nothing yet */
  uint32_t reserved0;   /**< must be 0 */
  float *found_inf;
  float *amax, *tensor_amax; /**< 1; count */
  float *norm, *tensor_norm; /**< 1; count */
  /** 1; count.  Costs counters in the pass, which is slower with a report than without. */
  mp_tensor_report_t *report, *tensor_reports;
} mp_stats_outputs_t;

/** Several of the four above in one pass over the elements: the same results, bit by bit.
 *  @param outputs  host; at least one of its pointers is set. */
MP_API mp_status_t mp_tensor_stats(mp_tensor_list_t list, const mp_stats_outputs_t *outputs,
                                   mp_stream_t stream);

/** out = in * *inv_scale, setting *found_inf as mp_check_nonfinite does on `in`, and if a product
 *  overflows fp32.
 *  @param in,out     lists of equal shapes; types may differ (fp16 grads -> fp32 grads);
 *                    out == in is allowed.
 *  @param inv_scale  device, 1 float. */
MP_API mp_status_t mp_unscale(mp_tensor_list_t in, mp_tensor_list_t out, const float *inv_scale,
                              float *found_inf, mp_stream_t stream);

/** The factor that unscales and clips at once:
 *
 *      *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
 *  @source Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
 *  the 1e-6 is that of torch.nn.utils.clip_grad_norm_.
 *  @param scaled_norm  device, 1 float: norm of the gradients before unscaling. */
MP_API mp_status_t mp_clip_factor(mp_context_t context, const float *scaled_norm,
                                  const float *inv_scale, float max_norm, float *grad_scale,
                                  mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_TENSORS_H */
