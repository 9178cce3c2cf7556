/* mpcore/rnn.h: recurrent layers: LSTM, GRU and plain cells. */
#ifndef MPCORE_RNN_H
#define MPCORE_RNN_H

#include "gemm.h"

MP_BEGIN_C

/** @defgroup rnn 7. Recurrent layers
 *
 *  LSTM, GRU and plain (tanh or ReLU) cells in one or more layers, unidirectional or bidirectional,
 *  over sequences of equal or unequal lengths.  A training step makes three calls:
 *  mp_rnn_forward_training, mp_rnn_backward_data and mp_rnn_backward_weights.
 *
 *  Equations and gate order are those of cuDNN and torch, so weights from torch need no
 *  permutation.  With s(a) = 1 / (1 + e^-a), and h and c of the previous time step:
 *
 *      p = x_t W_ih^T + b_ih        q = h W_hh^T + b_hh
 *      MP_RNN_TANH  h' = tanh(p + q)
 *      MP_RNN_RELU  h' = max(p + q, 0)
 *      MP_RNN_LSTM  i = s(p_i + q_i)  f = s(p_f + q_f)  g = tanh(p_g + q_g)  o = s(p_o + q_o)
 *                   c' = f c + i g    h' = o tanh(c')
 *      MP_RNN_GRU   r = s(p_r + q_r)  z = s(p_z + q_z)  n = tanh(p_n + r q_n)
 *                   h' = (1 - z) n + z h
 *
 *  The output of a layer, y_t = h', is the input of the next layer; a bidirectional layer
 *  concatenates the h' of both directions.  The second direction runs from the last time step of
 *  each sequence to the first.
 *
 *  Precision, if desc->dtype is a 16-bit type:
 *
 *      16 bits    x, y, h, weights, dx; gates and gate gradients saved between the passes
 *      fp32       accumulators, biases, gates during computation, c; gradients of h and c that are
 *                 passed from time step to time step
 *
 *  Not supported: peepholes, projections, normalization within the cell, zoneout.
 *
 *  @source Hochreiter & Schmidhuber 1997 and Gers et al. 2000 (LSTM); Cho et al. 2014 (GRU);
 *  Micikevicius et al. 2018, section 4.4 (mixed precision of recurrent layers).
 *  @{ */

/** Cell type. */
typedef enum mp_rnn_cell {
  MP_RNN_TANH = 1,
  MP_RNN_RELU = 2,
  MP_RNN_LSTM = 3, /**< gate order in the rows of the weights: i f g o */
  MP_RNN_GRU = 4   /**< gate order in the rows of the weights: r z n */
} mp_rnn_cell_t;

/** Bits of mp_rnn_desc_t.flags. */
typedef enum mp_rnn_flags {
  MP_RNN_FLAG_BIDIRECTIONAL = 1 << 0,
  MP_RNN_FLAG_NO_BIAS = 1 << 1, /**< no biases; b_ih and b_hh are ignored */
  /** Replaces the input product of the first layer by x_t, which is added to every gate.  W_ih is
   *  ignored; input_size must equal hidden_size. */
  MP_RNN_FLAG_SKIP_INPUT = 1 << 2,
  /** Applies the reset gate before the product, MP_RNN_GRU only: n = tanh(p_n + (r h) W_n^T + b_n).
   *  A time step then has two dependent products.
   *  @source Cho et al. 2014; reset_after=False in TensorFlow and Keras. */
  MP_RNN_FLAG_RESET_FIRST = 1 << 3,
  /** Adds the gradients of weights and biases to the previous values, for micro-batches.  With
   *  dtype_dw = MP_FP32 partial sums are not rounded to 16 bits. */
  MP_RNN_FLAG_ACCUMULATE = 1 << 4
} mp_rnn_flags_t;

/** Shape, types and layout of a recurrent network. */
typedef struct mp_rnn_desc {
  uint32_t struct_size;
  mp_rnn_cell_t cell;
  uint32_t flags;      /**< bitwise or of mp_rnn_flags_t */
  mp_dtype_t dtype;    /**< type of x, y, h, dx, dy, dh and weights; MP_FP32: all data is fp32 */
  mp_dtype_t dtype_dw; /**< type of the weight gradients */
  int32_t layers;      /**< 1 to 65535 */
  int32_t input_size;  /**< elements of x_t, >= 1 */
  int32_t hidden_size; /**< elements of h, >= 1 */
  int32_t batch;       /**< sequences, >= 0 */
  int32_t timesteps;   /**< time steps of the longest sequence, >= 0 */
  /** Probability in [0, 1) that training zeroes an element between layers; the others are divided
   *  by 1 - dropout.  Also set mp_rnn_tensors_t.dropout_offset. */
  float dropout;
  float clip;            /**< MP_RNN_LSTM: clamps c' to [-clip, clip]; 0 = no clipping */
  uint64_t dropout_seed; /**< any value */
  /** Strides of x and dx between time steps and between sequences, in elements; 0 = dense
   *  [time step][sequence][element]. */
  int64_t x_step, x_row;
  int64_t y_step, y_row; /**< strides of y and dy, likewise */
  const mp_plan_t *plan; /**< host; NULL = the library chooses at each call */
} mp_rnn_desc_t;

/** Initializes one unidirectional layer with biases: dense tensors, dtype_dw = dtype, no dropout,
 *  clipping or flags.
 *
 *  For batch-major tensors, [sequence][time step][element], set x_step = input_size and
 *  x_row = timesteps * input_size, and y_step and y_row accordingly. */
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

/** Weights of one layer and direction; initialize with MP_INIT_STRUCT.  Device, dense; w_ih and
 *  w_hh have type dtype:
 *
 *      w_ih          G hidden_size x I              G = 1, 3 or 4 gates
 *      w_hh          G hidden_size x hidden_size    I = input_size in the first layer,
 *      b_ih, b_hh    G hidden_size                      directions * hidden_size in the others */
typedef struct mp_rnn_weights {
  uint32_t struct_size; /**< in an array, also the distance between elements, in bytes */
  uint32_t reserved0;   /**< must be 0 */
  const void *w_ih, *w_hh;
  const float *b_ih, *b_hh;
} mp_rnn_weights_t;

/** Gradients of mp_rnn_weights_t, device, of the same shapes; each is optional.  w_ih and w_hh have
 *  type dtype_dw. */
typedef struct mp_rnn_weight_grads {
  uint32_t struct_size; /**< as in mp_rnn_weights_t */
  uint32_t reserved0;   /**< must be 0 */
  void *w_ih, *w_hh;
  float *b_ih, *b_hh;
} mp_rnn_weight_grads_t;

/** Sizes derived from a descriptor, independent of strides and MP_RNN_FLAG_ACCUMULATE. */
typedef struct mp_rnn_sizes {
  uint32_t struct_size;
  uint32_t directions;  /**< 1 or 2 */
  uint32_t gates;       /**< 1, 3 or 4 */
  uint32_t num_weights; /**< layers * directions */
  /** Bytes that a training step keeps from the forward to the backward pass.  Per time step,
   *  sequence, hidden unit, layer and direction: 14 for LSTM, 10 for GRU and 4 for plain cells, or
   *  24, 20 and 8 with MP_FP32; in addition less than 256. */
  size_t reserve_bytes;
  size_t workspace_bytes; /**< sufficient for each mp_rnn_* call */
} mp_rnn_sizes_t;

/** Tensors of the mp_rnn_* calls, device except where noted.  Each call ignores the fields that it
 *  does not list.  Initialize with MP_INIT_STRUCT. */
typedef struct mp_rnn_tensors {
  uint32_t struct_size;
  uint32_t num_weights; /**< length of `weights` and `weight_grads`: layers * directions */
  /** Host, read before the call returns; index layer * directions + direction. */
  const mp_rnn_weights_t *weights;
  /** Length of each sequence, batch values in [0, timesteps] in any order; NULL = timesteps.
   *  Elements of x and dy past the end of a sequence are not read; y and dx are 0 there.  hn and cn
   *  are the states of its last time step, or h0 and c0 if its length is 0.  A length outside the
   *  range makes its sequence NaN.  Mutually exclusive with batch_sizes. */
  const int32_t *lengths;
  /** Number of sequences that have each time step, host, timesteps values, non-increasing; the
   *  longest sequence is first.  NULL = not packed.  x, y, dx and dy are then packed: the rows of a
   *  time step, x_row or y_row elements apart, directly follow those of the previous time step;
   *  x_step and y_step are ignored. */
  const int32_t *batch_sizes;
  const uint64_t *dropout_offset; /**< 1 value, optional; NULL = 0: as `offset` of mp_dropout */
  const void *x;                  /**< timesteps x batch x input_size */
  const void *h0;  /**< layers x directions x batch x hidden_size, optional; NULL = 0 */
  const float *c0; /**< shape of h0, MP_RNN_LSTM, optional; NULL = 0 */
  void *y;         /**< timesteps x batch x (directions * hidden_size), written */
  void *hn;        /**< h after the last time step, shape of h0, written, optional; may be h0 in
                        inference */
  float *cn;       /**< c after the last time step, likewise; may be c0 in inference */
  void *reserve;   /**< data kept from forward to backward, 256-byte aligned */
  size_t reserve_bytes;
  const void *dy;   /**< shape of y */
  const void *dhn;  /**< shape of h0, optional; NULL = 0 */
  const float *dcn; /**< shape of c0, optional; NULL = 0 */
  void *dx;         /**< shape of x, written, optional */
  void *dh0;        /**< shape of h0, written, optional */
  float *dc0;       /**< shape of c0, written, optional */
  /** Host, read before the call returns; indexed like `weights`. */
  const mp_rnn_weight_grads_t *weight_grads;
  mp_grad_stats_t stats; /**< backward_data: found_inf of gate gradients and dx;
                              backward_weights: both, of the gradients of weights and biases */
} mp_rnn_tensors_t;

/** Returns the sizes of reserve and workspace and the number of weights.
 *  @param sizes  host, out; initialize it with MP_INIT_STRUCT. */
MP_API mp_status_t mp_rnn_get_sizes(mp_context_t context, const mp_rnn_desc_t *desc,
                                    mp_rnn_sizes_t *sizes);

/** Returns the plan of all four passes, like mp_gemm_get_plan: the implementation of the time steps
 *  and the kernels of the products.  Calls with a plan of one layer for a network of several return
 *  MP_ERROR_UNSUPPORTED.
 *  @param plan  host, out; initialize it with MP_INIT_STRUCT.
 *  @retval MP_ERROR_NOT_FOUND batch or timesteps is 0 */
MP_API mp_status_t mp_rnn_get_plan(mp_context_t context, const mp_rnn_desc_t *desc,
                                   mp_plan_t *plan);

/** Computes y, hn and cn, and fills the reserve for the backward passes.
 *  @param tensors  host: weights, lengths or batch_sizes, dropout_offset, x, h0, c0, y, hn, cn,
 *                  reserve.
 *
 *  If timesteps is 0, hn = h0 and cn = c0; backward, dh0 = dhn and dc0 = dcn.
 *
 *  Determinism: the bits of a sequence depend on its own values, the shape and the device, not on
 *  the padding or the lengths of the other sequences.  Likewise, a sequence split into windows that
 *  pass on h and c gives results bitwise identical to the unsplit sequence.  Both hold for calls
 *  that each have more than 64 rows, where a row is one time step of one sequence.
 *
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes or reserve_bytes is smaller than
 *          mp_rnn_get_sizes returns; unlike in mp_gemm, neither is optional */
MP_API mp_status_t mp_rnn_forward_training(mp_context_t context, const mp_rnn_desc_t *desc,
                                           const mp_rnn_tensors_t *tensors, void *workspace,
                                           size_t workspace_bytes, mp_stream_t stream);

/** Computes y, hn and cn like mp_rnn_forward_training, but without dropout and without a reserve.
 *  dropout_offset and reserve are ignored. */
MP_API mp_status_t mp_rnn_forward_inference(mp_context_t context, const mp_rnn_desc_t *desc,
                                            const mp_rnn_tensors_t *tensors, void *workspace,
                                            size_t workspace_bytes, mp_stream_t stream);

/** Computes dx, dh0 and dc0, and overwrites the saved gates in the reserve with their gradients.
 *  @param tensors  host: weights, lengths or batch_sizes, dropout_offset, h0 and c0 with the values
 *                  of the forward pass; reserve, dy, dhn, dcn, dx, dh0, dc0, stats.found_inf.
 *
 *  Gate gradients, dx and dh0 are rounded to desc->dtype.  Non-finite gate gradients or dx set
 *  stats.found_inf.  The gradient of a clipped c' is 0. */
MP_API mp_status_t mp_rnn_backward_data(mp_context_t context, const mp_rnn_desc_t *desc,
                                        const mp_rnn_tensors_t *tensors, void *workspace,
                                        size_t workspace_bytes, mp_stream_t stream);

/** Computes the gradients of weights and biases, after mp_rnn_backward_data.
 *
 *  They are sums over all time steps and sequences, in fp32 and in a fixed order; 0 if there are no
 *  time steps.  MP_RNN_FLAG_ACCUMULATE adds them to the previous values.
 *  @param tensors  host: lengths or batch_sizes, dropout_offset, x (optional if the first layer's
 *                  w_ih gradients are NULL), h0, reserve, weight_grads, stats. */
MP_API mp_status_t mp_rnn_backward_weights(mp_context_t context, const mp_rnn_desc_t *desc,
                                           const mp_rnn_tensors_t *tensors, void *workspace,
                                           size_t workspace_bytes, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_RNN_H */
