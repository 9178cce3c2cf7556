/* mpcore/tensors.h: lists of tensors, and reductions over them: overflow, amax, norms. */
#ifndef MPCORE_TENSORS_H
#define MPCORE_TENSORS_H

#include "core.h"

MP_BEGIN_C

/** @defgroup tensors 4. Tensor lists and reductions
 *  @{ */

/** Addresses, sizes and types of `count` dense tensors.  All arrays are host, copied. */
typedef struct mp_tensor_list_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< type of all tensors, if `dtypes` is NULL */
  uint32_t count;
  uint32_t reserved0; /**< must be 0 */
  /** `count` device pointers, aligned to the element size.  NULL if numel is 0, or in the model
   *  list of an optimizer.  Tensors may overlap in a list that is only read; every call that writes
   *  to the list rejects overlaps with MP_ERROR_INVALID_ARGUMENT. */
  void *const *data;
  /** `count` sizes in elements, each >= 0 and in total less than 2^40. */
  const int64_t *numel;
  /** One type per tensor, optional, e.g. for layers that stay in fp32. */
  const mp_dtype_t *dtypes;
} mp_tensor_list_desc_t;

/** Creates a list of tensors and uploads its pointer table, so that each later call is one kernel
 *  launch for any number of tensors, or two if it writes tensor_reports.
 *  @source Apex, multi_tensor_apply, which packs the table into kernel arguments in every call. */
MP_API mp_status_t mp_tensor_list_create(mp_tensor_list_t *list, mp_context_t context,
                                         const mp_tensor_list_desc_t *desc);
/** Destroys a list, but not its tensors.  Optimizers that use the list must be destroyed first. */
MP_API void mp_tensor_list_destroy(mp_tensor_list_t list);

/** Replaces the addresses of the tensors, in stream order; sizes and types stay.  For frameworks
 *  that allocate new gradients in each step.  Do not capture into a CUDA graph.
 *  @param data  host, count device pointers. */
MP_API mp_status_t mp_tensor_list_set_data(mp_tensor_list_t list, void *const *data,
                                           mp_stream_t stream);

/** Returns the current address, size and type of one tensor.
 *  @param data,numel,dtype  host, out, each optional; data is a device address.
 *  @retval MP_ERROR_NOT_FOUND index is not less than count */
MP_API mp_status_t mp_tensor_list_get_tensor(mp_tensor_list_t list, uint32_t index, void **data,
                                             int64_t *numel, mp_dtype_t *dtype);

/** Sets *found_inf to 1 if any element is NaN or infinite.  Never clears it, so several lists can
 *  share one flag.  The flag is a float so that it can be all-reduced with the gradients.
 *  @param found_inf  device, 1 float. */
MP_API mp_status_t mp_check_nonfinite(mp_tensor_list_t list, float *found_inf, mp_stream_t stream);

/** Computes the largest absolute value; NaN if any element is NaN (fmaxf would ignore NaN).
 *  @param amax        device, 1 float, optional; 0 for an empty list.
 *  @param per_tensor  device, count floats, optional, but not both NULL. */
MP_API mp_status_t mp_amax(mp_tensor_list_t list, float *amax, float *per_tensor,
                           mp_stream_t stream);

/** Computes the Euclidean norm sqrt(sum x^2) of the list and of each tensor.
 *
 *  Squares are summed in fp32 within chunks of 16384 elements and in fp64 across chunks, in a fixed
 *  order and without atomics, so results are bitwise reproducible.  A chunk whose largest |x| is
 *  below 2^-40, or at least 2^56, is read twice and scaled by a power of two.  The norm is
 *  therefore infinite only if its value exceeds the range of fp32.
 *  @param norm        device, 1 float, optional; 0 for an empty list.
 *  @param per_tensor  device, count floats, optional, but not both NULL. */
MP_API mp_status_t mp_l2norm(mp_tensor_list_t list, float *norm, float *per_tensor,
                             mp_stream_t stream);

/** Counts of special values in one tensor or in a list.  Frozen: kernels write arrays of reports
 *  into device memory, 64 bytes each. */
typedef struct mp_tensor_report {
  int64_t numel;
  int64_t num_nan;
  int64_t num_inf;
  int64_t num_zero;      /**< zeros of either sign */
  int64_t num_subnormal; /**< 0 < |x| < 2^-14, for every type: fp16 stores such values with fewer
                              significant bits, or as 0 */
  /** Index of the first tensor that contains NaN or infinity, and of the first such element in it;
   *  -1 if there is none. */
  int64_t bad_tensor, bad_element;
  float bad_value; /**< value of that element; 0 if there is none */
  float amax;      /**< result of mp_amax */
} mp_tensor_report_t;

/** Reports overflow and imminent underflow of the elements, in one pass.  mp_scale_step can report
 *  on its gradients without an additional pass (mp_step_options_t).
 *  @param report          device, 1 report of the list, optional.
 *  @param tensor_reports  device, one report per tensor, optional, but not both NULL. */
MP_API mp_status_t mp_inspect(mp_tensor_list_t list, mp_tensor_report_t *report,
                              mp_tensor_report_t *tensor_reports, mp_stream_t stream);

/** Outputs of mp_tensor_stats.  Every pointer is device memory and optional, and receives the
 *  result of mp_check_nonfinite, mp_amax, mp_l2norm or mp_inspect. */
typedef struct mp_stats_outputs {
  uint32_t struct_size; /**< MP_INIT_STRUCT: no output is requested */
  uint32_t reserved0;   /**< must be 0 */
  float *found_inf;
  float *amax, *tensor_amax; /**< 1 float; count floats */
  float *norm, *tensor_norm; /**< 1 float; count floats */
  /** 1 report; count reports.  Counting makes the pass slower. */
  mp_tensor_report_t *report, *tensor_reports;
} mp_stats_outputs_t;

/** Computes any of mp_check_nonfinite, mp_amax, mp_l2norm and mp_inspect in one pass over the
 *  elements, with bitwise identical results.
 *  @param outputs  host; at least one of its pointers must be set. */
MP_API mp_status_t mp_tensor_stats(mp_tensor_list_t list, const mp_stats_outputs_t *outputs,
                                   mp_stream_t stream);

/** Computes out = in * *inv_scale.  Sets *found_inf to 1 if an element of `in` is not finite or a
 *  product overflows fp32; never clears it.
 *  @param in,out     lists of equal shapes; types may differ (fp16 gradients, fp32 results).  out
 *                    may be in.
 *  @param inv_scale  device, 1 float.
 *  @param found_inf  device, 1 float. */
MP_API mp_status_t mp_unscale(mp_tensor_list_t in, mp_tensor_list_t out, const float *inv_scale,
                              float *found_inf, mp_stream_t stream);

/** Computes the factor that unscales and clips gradients in one multiplication:
 *
 *      *grad_scale = *inv_scale * min(1, max_norm / (*inv_scale * *scaled_norm + 1e-6))
 *
 *  @param scaled_norm  device, 1 float: norm of the gradients before unscaling.
 *  @param inv_scale    device, 1 float.
 *  @param max_norm     > 0.
 *  @param grad_scale   device, 1 float, overwritten.
 *  @source Pascanu et al., On the difficulty of training RNNs, ICML 2013, algorithm 1;
 *  1e-6 as in torch.nn.utils.clip_grad_norm_. */
MP_API mp_status_t mp_clip_factor(mp_context_t context, const float *scaled_norm,
                                  const float *inv_scale, float max_norm, float *grad_scale,
                                  mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_TENSORS_H */
