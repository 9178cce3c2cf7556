/* mpcore/conv.h: convolutions. */
#ifndef MPCORE_CONV_H
#define MPCORE_CONV_H

#include "gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup conv 5. Convolution (2-D, NHWC)
 *  @{ */

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
  float alpha, beta; /**< out = alpha * conv + beta * out; with alpha = 0 the inputs are not read */
  uint32_t reserved0; /**< must be 0 */
  const char *kernel; /**< host; NULL = the library's choice; see mpcore/experimental.h */
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

/** The three passes of a convolutional layer. */
typedef enum mp_conv_op { MP_CONV_FPROP = 0, MP_CONV_DGRAD = 1, MP_CONV_WGRAD = 2 } mp_conv_op_t;

/** P and Q of `desc`; 0 where the filter is larger than the padded image.
 *  @param p,q  host, out. */
MP_API mp_status_t mp_conv2d_output_size(const mp_conv2d_desc_t *desc, int32_t *p, int32_t *q);

/** Bytes of workspace with which that product runs its fastest kernel and sums dbias fastest, as
 *  mp_gemm_workspace_size has it; often 0.  Of a kernel that desc names: what that cannot do without.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_conv2d_workspace_size(mp_context_t context, const mp_conv2d_desc_t *desc,
                                            mp_conv_op_t op, size_t *bytes);

/** Forward:  y = epilogue(alpha conv(x, filter) + beta y).
 *
 *  @param x,filter   device.
 *  @param y          device; read only when beta != 0.  Must not overlap another argument.
 *  @param epilogue   host, optional; sees y as a matrix of N P Q rows and K columns, so bias has K
 *                    elements; ld_aux 0 = K.
 *  @param workspace  device, 256-byte aligned, optional; less than mp_conv2d_workspace_size is
 *                    never an error, perhaps slower.
 *
 *  An implicit GEMM: the matrix of patches (im2col) is never stored.  Accuracy as in mp_gemm.
 *  16-byte aligned tensors with C/groups and K/groups multiples of 8 are fastest.  Images of other
 *  channels in one group (RGB) are first copied with zeros behind each pixel, forward and for the
 *  gradient of the weights, where that is predicted to pay and the workspace has room.  A 1 x 1
 *  filter with stride 1 and no padding is multiplied by the kernels of mp_gemm.
 *  Zeros that stand for nothing, outside the image or between the strides of dgrad, may or may not
 *  be multiplied.  It shows only beside a non-finite weight (in wgrad: dy), as a NaN.
 *  Limits, beyond which MP_ERROR_UNSUPPORTED: one padded image, one image of y, the filter and the
 *  numbers of pixels N H W and N P Q stay below 2^30 elements; the tensors may be larger.
 *
 *  @source Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, 2014, section 3.
 *
 *  @retval MP_ERROR_INVALID_ARGUMENT a number outside its range, groups that do not divide c, k
 *  @retval MP_ERROR_UNSUPPORTED a limit above */
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

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_CONV_H */
