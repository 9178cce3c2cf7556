/* mpcore/conv.h: 2-D convolution: forward pass, input gradient, weight gradient. */
#ifndef MPCORE_CONV_H
#define MPCORE_CONV_H

#include "gemm.h"

MP_BEGIN_C

/** @defgroup conv 6. Convolution (2-D, NHWC)
 *  @{ */

/** Shape, types and layout of a convolution.  Names follow the CUTLASS documentation:
 *
 *      x, dx    activations  N H W C            dense, C contiguous
 *      y, dy    outputs      N P Q K
 *      filter   weights      K R S (C/groups)
 *
 *      P = (pad_top + H + pad_bottom - dilation_h (R - 1) - 1) / stride_h + 1   (rounded down)
 *      y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
 *          x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]
 *
 *  Q is computed like P; x is 0 outside the image.  This is cross-correlation, which deep learning
 *  calls convolution.  Output channel k belongs to group k / (K/groups) and reads only the input
 *  channels of that group.  A 1-D convolution has h = r = 1.  If the filter is larger than the
 *  padded image, P or Q is 0: y is empty and contributes no gradient. */
typedef struct mp_conv2d_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;     /**< type of both inputs; 16-bit: tensor cores; MP_FP32: CUDA cores */
  mp_dtype_t dtype_out; /**< type of the output: any, independent of dtype */
  int32_t n;            /**< >= 0 */
  int32_t h, w, c;      /**< >= 1 */
  int32_t k, r, s;      /**< >= 1 */
  int32_t pad_top, pad_bottom, pad_left, pad_right; /**< rows, columns of zeros; >= 0 */
  int32_t stride_h, stride_w;                       /**< >= 1 */
  int32_t dilation_h, dilation_w;                   /**< >= 1 */
  int32_t groups;                                   /**< divides c and k; groups = c: depthwise */
  float alpha, beta;     /**< out = alpha * conv + beta * out; alpha = 0: inputs are not read */
  uint32_t reserved0;    /**< must be 0 */
  const mp_plan_t *plan; /**< host; NULL = the library chooses at each call */
} mp_conv2d_desc_t;

/** Initializes a convolution with unit stride and dilation, no padding and one group; alpha = 1,
 *  beta = 0, dtype_out = dtype. */
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

/** Pass of a convolutional layer: forward, input gradient (dgrad) or weight gradient (wgrad). */
typedef enum mp_conv_op { MP_CONV_FPROP = 1, MP_CONV_DGRAD = 2, MP_CONV_WGRAD = 3 } mp_conv_op_t;

/** Returns the output height P and width Q; 0 if the filter is larger than the padded image.
 *  @param p,q  host, out. */
MP_API mp_status_t mp_conv2d_get_output_size(const mp_conv2d_desc_t *desc, int32_t *p, int32_t *q);

/** Returns the workspace size with which the pass `op` is fastest, like mp_gemm_workspace_size.
 *  @param epilogue  host, optional; as in mp_gemm_workspace_size.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_conv2d_workspace_size(mp_context_t context, const mp_conv2d_desc_t *desc,
                                            mp_conv_op_t op, const mp_epilogue_t *epilogue,
                                            size_t *bytes);

/** Returns the fastest plan of the pass `op`, like mp_gemm_get_plan. */
MP_API mp_status_t mp_conv2d_get_plan(mp_context_t context, const mp_conv2d_desc_t *desc,
                                      mp_conv_op_t op, const mp_epilogue_t *epilogue,
                                      size_t max_workspace_bytes, mp_plan_t *plan);

/** Computes the forward pass: y = epilogue(alpha conv(x, filter) + beta y).
 *
 *  @param x,filter   device.
 *  @param y          device; read only if beta != 0.  Must not overlap another argument.
 *  @param epilogue   host, optional.  y is a matrix of N P Q rows and K columns, so bias has K
 *                    elements and ld_aux = 0 means K.
 *  @param workspace  device, 256-byte aligned, optional.  With fewer bytes than
 *                    mp_conv2d_workspace_size: possibly slower, never an error.
 *
 *  Algorithm: implicit GEMM; the im2col matrix is never stored.  A 1 x 1 filter with stride 1 and
 *  no padding runs on the kernels of mp_gemm.  Accuracy as in mp_gemm.
 *
 *  Alignment: only that of the elements is required.  16-byte aligned tensors with C/groups and
 *  K/groups multiples of 8 are fastest.  In fprop and wgrad with groups = 1, images with any
 *  other number of channels, such as RGB, are first copied into workspace with zero-padded
 *  channels, if there is room and that is predicted to be faster.
 *
 *  Implicit zeros, such as padding and the gaps between strided outputs in dgrad, may or may not be
 *  multiplied.  If they are, a non-finite weight (wgrad: dy) makes the result NaN.
 *
 *  Limits: one padded image of x, one image of y and the filter must each have less than 2^30
 *  elements.  x and y must each have less than 2^30 pixels (N H W and N P Q).
 *  @source Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a number outside its range, groups that do not divide c and k
 *  @retval MP_ERROR_UNSUPPORTED a limit is exceeded */
MP_API mp_status_t mp_conv2d_fprop(mp_context_t context, const mp_conv2d_desc_t *desc,
                                   const void *x, const void *filter, void *y,
                                   const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** Computes the input gradient: dx = epilogue(alpha conv_transpose(dy, filter) + beta dx).
 *
 *  In the epilogue, dx is a matrix of N H W rows and C columns: MP_ACT_DRELU with the aux of the
 *  layer below computes that layer's dy, and dbias its bias gradient.  Everything else is as in
 *  mp_conv2d_fprop. */
MP_API mp_status_t mp_conv2d_dgrad(mp_context_t context, const mp_conv2d_desc_t *desc,
                                   const void *dy, const void *filter, void *dx,
                                   const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** Computes the weight gradient: dfilter = alpha conv(x, dy) + beta dfilter, summed over n, p, q.
 *
 *  beta = 1 accumulates over micro-batches.  Use dtype_out = MP_FP32 for that; otherwise small
 *  terms are lost to rounding.  The sum is split over blocks in a fixed order, without atomics.
 *  @param epilogue  host, optional: scale, amax and found_inf.  All other fields must be 0.
 *
 *  Everything else is as in mp_conv2d_fprop. */
MP_API mp_status_t mp_conv2d_wgrad(mp_context_t context, const mp_conv2d_desc_t *desc,
                                   const void *x, const void *dy, void *dfilter,
                                   const mp_epilogue_t *epilogue, void *workspace,
                                   size_t workspace_bytes, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_CONV_H */
