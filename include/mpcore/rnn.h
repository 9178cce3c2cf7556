/* mpcore/rnn.h: recurrent layers. */
#ifndef MPCORE_RNN_H
#define MPCORE_RNN_H

#include "gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup rnn 14. Recurrent layers
 *
 *  LSTM, GRU and plain cells, in layers, in one direction or both, over sequences of equal or unequal
 *  lengths: four calls, of which training makes three per step (forward, backward data, backward
 *  weights).  The equations and the order of the gates are those of cuDNN and torch, so that weights
 *  of torch need no permutation.  With s(a) = 1 / (1 + e^-a), and h, c of the step before:
 *
 *      p = x_t W_ih^T + b_ih        q = h W_hh^T + b_hh
 *      MP_RNN_TANH  h' = tanh(p + q)
 *      MP_RNN_RELU  h' = max(p + q, 0)
 *      MP_RNN_LSTM  i = s(p_i + q_i)  f = s(p_f + q_f)  g = tanh(p_g + q_g)  o = s(p_o + q_o)
 *                   c' = f c + i g    h' = o tanh(c')
 *      MP_RNN_GRU   r = s(p_r + q_r)  z = s(p_z + q_z)  n = tanh(p_n + r q_n)
 *                   h' = (1 - z) n + z h
 *
 *  The output of a layer, y_t = h', is the input of the next one, with both directions side by side.
 *  The second direction walks from the last step of each sequence to its first.
 *
 *  What is 16 bits wide with a 16-bit type: x, y and h, the weights, what is kept for the backward
 *  pass of the gates and their gradients, dx.  What is fp32 all the same: sums of products, biases,
 *  the gates while they are computed, c, and the gradients of h and c on their way from step to step.
 *  With both in 16 bits c would be 3.6 times less accurate after 150 steps, and the gradient of W_hh
 *  three times.
 *
 *  Not here: peepholes, projections, normalisation within the cell, zoneout.
 *
 *  @source Hochreiter & Schmidhuber 1997 and Gers et al. 2000 (LSTM); Cho et al. 2014 (GRU);
 *  Micikevicius et al. 2018, section 4.4 (mixed precision of recurrent layers).
 *  @{ */

/** What happens in a step. */
typedef enum mp_rnn_cell {
  MP_RNN_TANH = 1,
  MP_RNN_RELU = 2,
  MP_RNN_LSTM = 3, /**< rows of the weights: i f g o */
  MP_RNN_GRU = 4   /**< rows of the weights: r z n */
} mp_rnn_cell_t;

/** Bits of mp_rnn_desc_t.flags. */
typedef enum mp_rnn_flags {
  MP_RNN_BIDIRECTIONAL = 1 << 0,
  MP_RNN_NO_BIAS = 1 << 1, /**< b_ih and b_hh are 0 and not looked at */
  /** x_t is added to every gate of the first layer in place of its product with W_ih, which is not
   *  looked at; input_size = hidden_size. */
  MP_RNN_SKIP_INPUT = 1 << 2,
  /** MP_RNN_GRU: n = tanh(p_n + (r h) W_n^T + b_n), with two products in a row in every step.
   *  @source Cho et al. 2014; what TensorFlow and Keras call reset_after=False. */
  MP_RNN_RESET_FIRST = 1 << 3,
  /** Gradients of weights and biases are added to what is there: micro-batches.  dtype_dw = MP_FP32
   *  loses nothing on the way. */
  MP_RNN_ACCUMULATE = 1 << 4
} mp_rnn_flags_t;

/** Shape, types and layout of a recurrent network. */
typedef struct mp_rnn_desc {
  uint32_t struct_size;
  mp_rnn_cell_t cell;
  uint32_t flags;        /**< mp_rnn_flags_t, or-ed */
  mp_dtype_t dtype;      /**< of x, y, h, the weights and their like; MP_FP32: all is fp32 */
  mp_dtype_t dtype_dw;   /**< of the gradients of the weights */
  int32_t layers;        /**< 1 to 65535 */
  int32_t input_size;    /**< >= 1, elements of x_t */
  int32_t hidden_size;   /**< >= 1, elements of h */
  int32_t batch;         /**< >= 0, sequences */
  int32_t timesteps;     /**< >= 0, steps of the longest */
  float dropout;         /**< [0, 1): of the elements between layers that become 0 in training;
                                     the others are divided by 1 - dropout.  Training also sets
                                     mp_rnn_tensors_t.dropout_offset */
  float clip;            /**< MP_RNN_LSTM: c' is kept within [-clip, clip]; 0 = it is not */
  uint64_t dropout_seed; /**< any number */
  int64_t x_step, x_row; /**< elements of x and dx from step to step, from sequence to sequence;
                                     0 = dense, one step after the other */
  int64_t y_step, y_row; /**< the same of y and dy */
  const char *kernel;    /**< host; NULL = the library's choice; see mpcore/experimental.h */
} mp_rnn_desc_t;

/** One layer, one direction, with biases, without dropout, clipping and flags; dense; dtype_dw = dtype.
 *  Batch-major tensors, [sequence][step][element], have x_step = input_size and
 *  x_row = timesteps x input_size. */
MP_API mp_status_t mp_rnn_desc_init(mp_rnn_desc_t *desc, size_t struct_size, mp_rnn_cell_t cell,
                                    int32_t batch, int32_t timesteps, int32_t input_size,
                                    int32_t hidden_size, mp_dtype_t dtype);
static inline mp_rnn_desc_t mp_rnn_desc_default(mp_rnn_cell_t cell, int32_t batch,
                                                int32_t timesteps, int32_t input_size,
                                                int32_t hidden_size, mp_dtype_t dtype) {
  mp_rnn_desc_t desc;
  mp_rnn_desc_init(&desc, sizeof desc, cell, batch, timesteps, input_size, hidden_size, dtype);
  return desc;
}

/** The weights of one layer and direction, device, dense and row-major.  With G gates and the I
 *  elements of the layer's input: w_ih is G hidden_size x I, w_hh G hidden_size x hidden_size, the
 *  biases G hidden_size.  I is input_size in the first layer, directions x hidden_size in the others. */
typedef struct mp_rnn_weights {
  const void *w_ih, *w_hh;
  const float *b_ih, *b_hh;
} mp_rnn_weights_t;

/** Their gradients, device, of the same shapes, each of them optional. */
typedef struct mp_rnn_weight_grads {
  void *w_ih, *w_hh;
  float *b_ih, *b_hh;
} mp_rnn_weight_grads_t;

/** What follows from a descriptor, whatever its strides and with or without MP_RNN_ACCUMULATE. */
typedef struct mp_rnn_sizes {
  uint32_t struct_size;
  uint32_t directions;  /**< 1 or 2 */
  uint32_t gates;       /**< 1, 3 or 4 */
  uint32_t num_weights; /**< layers x directions */
  /** Bytes that a training step keeps between its passes: per step, sequence, hidden unit, layer and
   *  direction 14 for LSTM, 10 for GRU, 4 for the plain cells; 24, 20 and 8 with MP_FP32; and less
   *  than 256 beside that. */
  size_t reserve_bytes;
  size_t workspace_bytes; /**< that suffice for each of the four calls */
} mp_rnn_sizes_t;

/** The data of all calls, device unless said; those that a call does not name below are not looked at.
 *  Zeros and struct_size are a start: MP_INIT_STRUCT. */
typedef struct mp_rnn_tensors {
  uint32_t struct_size;
  uint32_t num_weights; /**< of the arrays `weights` and `weight_grads`: as in mp_rnn_sizes_t */
  const mp_rnn_weights_t
      *weights; /**< host, read before the call returns: [layer x directions + direction] */
  /** 1 integer per sequence, in any order, optional: steps that it has, 0 to timesteps.  Steps behind
   *  its end are never read, neither x nor dy; y and dx are 0 there, and h_n, c_n are those of its
   *  last step, or h_0, c_0 if it has none.  A sequence with another length becomes NaN. */
  const int32_t *lengths;
  /** Host, 1 integer per step, optional: how many sequences have that step, never more than in the
   *  step before; the longest sequences come first.  x, y, dx and dy are packed: the rows of a step
   *  follow those of the step before, x_row and y_row elements apart, and x_step, y_step play no
   *  part.  Not with `lengths`. */
  const int32_t *batch_sizes;
  /** 1 integer, optional, 0 if absent: other masks of dropout for every value.  Without it every step
   *  has the same masks: training gives a counter on the device, such as mp_optimizer_step_counter,
   *  which a replayed graph reads too.  The passes of a step need the same. */
  const uint64_t *dropout_offset;
  const void *x;   /**< timesteps x batch x input_size */
  const void *h0;  /**< layers x directions x batch x hidden_size, optional: 0 */
  const float *c0; /**< the same of c, MP_RNN_LSTM */
  void *y;         /**< timesteps x batch x directions hidden_size, written */
  void *hn;        /**< as h0, written, optional: h after the last step; may be h0 in inference */
  float *cn;       /**< as c0, written, optional; may be c0 in inference */
  void *reserve;   /**< 256-byte aligned: what training keeps from pass to pass */
  size_t reserve_bytes;
  const void *dy;   /**< as y */
  const void *dhn;  /**< as h0, optional: 0 */
  const float *dcn; /**< as c0, optional: 0 */
  void *dx;         /**< as x, written, optional */
  void *dh0;        /**< as h0, written, optional */
  float *dc0;       /**< as c0, written, optional */
  const mp_rnn_weight_grads_t
      *weight_grads; /**< host, read before the call returns: as `weights` */
  float *found_inf;  /**< 1 float, optional: set to 1 and never cleared, see mp_epilogue_t */
  float *amax;       /**< 1 float, optional, updated: of the gradients of weights and biases */
} mp_rnn_tensors_t;

/** What `desc` needs.
 *  @param sizes  host, out; MP_INIT_STRUCT it before the call. */
MP_API mp_status_t mp_rnn_get_sizes(mp_context_t context, const mp_rnn_desc_t *desc,
                                    mp_rnn_sizes_t *sizes);

/** y, h_n and c_n, and in the reserve what the backward passes need.
 *  @param tensors    host: weights, lengths or batch_sizes, dropout_offset, x, h0, c0, y, hn, cn,
 *                    reserve.
 *  @param workspace  device, 256-byte aligned; what it holds is of no use afterwards.
 *
 *  timesteps = 0: h_n = h_0, c_n = c_0, and backward dh_0 = dh_n, dc_0 = dc_n.
 *
 *  The bits of a sequence depend on its own values, on shape and device, and not on the length of the
 *  longest or on how the others end, where more than 64 rows, a row per step and sequence, are there in
 *  both cases; so a sequence cut into windows, with h and c handed over, comes to the same bits.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes or reserve_bytes is less than is needed: what a
 *          call does is settled by mp_rnn_get_sizes */
MP_API mp_status_t mp_rnn_forward_training(mp_context_t context, const mp_rnn_desc_t *desc,
                                           const mp_rnn_tensors_t *tensors, void *workspace,
                                           size_t workspace_bytes, mp_stream_t stream);

/** The same without dropout, and without anything kept: neither dropout_offset nor the reserve is
 *  looked at. */
MP_API mp_status_t mp_rnn_forward_inference(mp_context_t context, const mp_rnn_desc_t *desc,
                                            const mp_rnn_tensors_t *tensors, void *workspace,
                                            size_t workspace_bytes, mp_stream_t stream);

/** dx, dh_0 and dc_0; and in the reserve, in place of the gates, their gradients.
 *  @param tensors  host: what forward read, with the same values, except x; reserve, dy, dhn, dcn, dx, dh0, dc0,
 *                  found_inf.
 *
 *  Gradients of gates, dx and dh_0 are rounded to `dtype`; found_inf is raised by the first two.  Where
 *  c' was clipped no gradient passes. */
MP_API mp_status_t mp_rnn_backward_data(mp_context_t context, const mp_rnn_desc_t *desc,
                                        const mp_rnn_tensors_t *tensors, void *workspace,
                                        size_t workspace_bytes, mp_stream_t stream);

/** The gradients of weights and biases, after mp_rnn_backward_data, summed over all steps and
 *  sequences in fp32 and in a fixed order.  Overwritten, or added to with MP_RNN_ACCUMULATE; of no
 *  steps they are 0.
 *  @param tensors  host: lengths or batch_sizes, dropout_offset, x (optional where no gradient of a W_ih
 *                  of the first layer is wanted), h0, reserve, weight_grads, found_inf, amax. */
MP_API mp_status_t mp_rnn_backward_weights(mp_context_t context, const mp_rnn_desc_t *desc,
                                           const mp_rnn_tensors_t *tensors, void *workspace,
                                           size_t workspace_bytes, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_RNN_H */
