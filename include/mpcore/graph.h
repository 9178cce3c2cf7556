/* mpcore/graph.h: a network described once, which runs forward and backward in the types it is told. */
#ifndef MPCORE_GRAPH_H
#define MPCORE_GRAPH_H

#include "autocast.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup graph 16. Graphs
 *
 *  For programs without a framework.  A network is described once, in fp32; compiling it appends
 *  the backward pass, gives every operation its type, fuses what epilogues can do, and allocates
 *  everything, once.  From then on forward and backward are flat lists of calls of this library:
 *  they allocate nothing and wait for nothing, and can be captured into a CUDA graph.
 *  mp_graph_autocast is the one call between training in fp32 and in mixed precision.
 *
 *      mp_graph_create, _input, _parameter, _node ..., _loss       describe
 *      mp_graph_autocast                                           mixed precision, optional
 *      mp_graph_compile                                            allocate
 *      mp_graph_write, mp_graph_lists, mp_optimizer_create         first weights, optimizer
 *      mp_graph_bind, _forward, _backward, mp_scale_step           a step
 *
 *  Shapes are static but for the batch, and there is no control flow.  Operations are these; [] is
 *  optional, rows are all dimensions but the last:
 *
 *      type         inputs                              outputs        attributes and their defaults
 *      Linear       x, w [in out], [b]                  y              transposed 0; 1: w is [out in]
 *      Conv2D       x [n h w c], w [k r s c/groups], [b]  y            stride 1, pad 0, dilation 1, groups 1
 *      BiasAdd      x, b                                y
 *      Relu, Silu, Sigmoid, Tanh   x                    y
 *      Gelu         x                                   y              erf 0; 1: the exact form
 *      Add, Mul     a, b of one shape                   y
 *      MaxPool      x [n h w c]                         y              window 2, stride: window, pad 0,
 *                                                                        dilation 1, ceil_mode 0
 *      AvgPool      x [n h w c]                         y              the same, and include_pad 0
 *      BatchNorm    x, [gamma], [beta], mean, variance  y              epsilon 1e-5, momentum 0.1
 *      Embedding    table [vocabulary width], indices   y
 *      Dropout      x, [offset]                         y              p 0.5, seed 0
 *      Reshape      x                                   y              extent, one for each dimension of y
 *      LSTM         x [batch steps in], w_ih, w_hh, [b_ih, b_hh, h0, c0, lengths]  y, [h, c]
 *      GRU, RNN     x, w_ih, w_hh, [b_ih, b_hh, h0, lengths]  y, [h]   relu 0 (RNN)
 *      SoftmaxXent  logits, labels                      loss, [row_loss, correct]  weight 1,
 *                                                         label_smoothing 0, ignore_label -100
 *      MSE, L1, BCEWithLogits   prediction, target, [weight], of one shape   loss   weight 1
 *
 *  They compute the same as mp_gemm, mp_conv2d_*, mp_pointwise, mp_pool2d_*, mp_batchnorm_*,
 *  mp_embedding_*, mp_dropout, mp_rnn_*, mp_softmax_xent and mp_loss; losses use
 *  MP_LOSS_MEAN.  `target` and `weight` must not depend on a parameter.  A target may be left
 *  unbound in inference, as labels may.  An absent gamma or beta is -1.  mean and variance of
 *  BatchNorm are of mp_graph_state; weights of recurrent layers are as in mp_rnn_weights_t.  No
 *  gradient goes to an input of the graph, so h0 and c0 from outside cut back-propagation through
 *  time.  Reshape: an extent of 0 is that of x in the same place, -1 what remains.  Labels, indices
 *  and lengths are int32_t, the offset of Dropout is 1 uint64_t; all of them are inputs of the
 *  graph of type MP_DTYPE_NONE, and the offset is one of rank 0.  h0, c0, lengths and the offset
 *  may be left unbound: zeros, zeros, all steps, the step of the graph. correct is 1 int64_t, the
 *  number of rows whose largest logit is the label's; its extent is 8, in bytes.
 *
 *  Dropout draws another mask in every forward pass in training, and in every node.  The offset of
 *  mp_dropout is the step of the graph: the number of such passes before (mp_graph_get_step_sync).
 *  The seed is the attribute plus n times 0x9E3779B97F4A7C15, modulo 2^64, with n the number of
 *  nodes made before this one.  Ranks of data-parallel training need different seeds.  If an offset
 *  is bound, the mask is that of mp_dropout with this offset and the attribute: equal ones draw
 *  equal masks.
 *
 *  The names of the backward operations, for autocast's lists: LinearBackpropInput,
 *  LinearBackpropWeight, Conv2DBackpropInput, Conv2DBackpropFilter, SoftmaxXentGrad, and else the
 *  type with Grad behind it.  A backward node is called as its forward node with "/" and a word
 *  behind it, so that a pattern of names finds both.  Autocast's preset has to be
 *  MP_AUTOCAST_DEFAULT to know these names.
 *
 *  A graph is used by one thread at a time.
 *  @{ */

typedef struct mp_graph *mp_graph_t;

/** The most dimensions that a tensor has. */
#define MP_GRAPH_MAX_RANK 8

/** Begin a graph. */
MP_API mp_status_t mp_graph_create(mp_graph_t *graph, mp_context_t context);
/** Its memory too; work that has been enqueued must be done.  Optimizers made from its lists must
 *  be gone. */
MP_API void mp_graph_destroy(mp_graph_t graph);

/** A tensor from outside.
 *  @param name    host, copied; as every name, any text but an empty one.
 *  @param dtype   MP_FP32, which autocast may convert; MP_FP16, MP_BF16: read as it is;
 *                 MP_DTYPE_NONE: integers.
 *  @param extent  host, `rank` elements, >= 1, dense and row-major.  Where rank > 0, extent[0] is
 *                 the batch, the same for all inputs.
 *  @param tensor  host, out: by which the tensor is named from now on. */
MP_API mp_status_t mp_graph_input(mp_graph_t graph, const char *name, mp_dtype_t dtype,
                                  int32_t rank, const int64_t *extent, int32_t *tensor);
/** A tensor to train: fp32, the graph's own.  An optimizer has it from mp_graph_lists.
 *  @param tensor  host, out. */
MP_API mp_status_t mp_graph_parameter(mp_graph_t graph, const char *name, int32_t rank,
                                      const int64_t *extent, int32_t *tensor);
/** A tensor that lives from step to step and is not trained: fp32, the graph's own.
 *  @param tensor  host, out. */
MP_API mp_status_t mp_graph_state(mp_graph_t graph, const char *name, int32_t rank,
                                  const int64_t *extent, int32_t *tensor);

/** A named number.  Without struct_size: 16 bytes in every version. */
typedef struct mp_graph_attribute {
  const char *name;
  double value;
} mp_graph_attribute_t;

/** An operation of the list above.
 *  @param inputs      host, num_inputs tensors; -1 for an optional one that is absent.
 *  @param attributes  host, num_attributes; copied.  May be NULL for 0.
 *  @param outputs     host, out, num_outputs tensors, from the first on; optional ones may be left
 *                     out.
 *  @retval MP_ERROR_NOT_FOUND an operation, or an attribute of it, of that name does not exist
 *  @retval MP_ERROR_INVALID_ARGUMENT shapes that do not fit, named with the node */
MP_API mp_status_t mp_graph_node(mp_graph_t graph, const char *op_type, const char *name,
                                 const int32_t *inputs, uint32_t num_inputs,
                                 const mp_graph_attribute_t *attributes, uint32_t num_attributes,
                                 int32_t *outputs, uint32_t num_outputs);

/** The tensor is read from outside: its memory is its own, and holds its value until the next pass.
 *  Those of losses are outputs anyway.  A tensor that depends on the loss is computed with it
 *  (mp_graph_mode_t). */
MP_API mp_status_t mp_graph_output(mp_graph_t graph, int32_t tensor);
/** The gradient of a tensor is read from outside, mp_graph_tensor_t.grad: for those who look at
 *  what fp16 does to it. Parameters need no such call. */
MP_API mp_status_t mp_graph_keep_gradient(mp_graph_t graph, int32_t tensor);
/** What is to become small: the loss of a SoftmaxXent, MSE, L1 or BCEWithLogits.  Without one, and
 *  without mp_graph_seed_gradient, the graph has no backward pass. */
MP_API mp_status_t mp_graph_loss(mp_graph_t graph, int32_t tensor);
/** Declares an input with the gradient of a loss that the caller computes: dL / d(tensor), in fp32,
 *  of the shape of `tensor` and not multiplied by S.  mp_graph_backward multiplies it by S and
 *  starts there, and from the loss of mp_graph_loss if there is one: gradients add up.  The tensor
 *  becomes an output, so that it can be read after mp_graph_forward; its gradient is bound like any
 *  input, before mp_graph_backward.
 *  @param tensor  floating-point output of a node; at most one seed per tensor.
 *  @param input   host, out. */
MP_API mp_status_t mp_graph_seed_gradient(mp_graph_t graph, int32_t tensor, int32_t *input);

/** Mixed precision: operations get their types as the policy says.  To be called before
 *  mp_graph_compile; nothing changes, with one warning, where the policy's gate is closed on this
 *  device (mp_autocast_gate).
 *  @param policy  must live until mp_graph_compile has succeeded.  Not with MP_AUTOCAST_EMULATE. */
MP_API mp_status_t mp_graph_autocast(mp_graph_t graph, mp_autocast_t policy);

/** Append the backward pass, cast, fuse, and allocate.  Parameters and states are 0 from here on,
 *  and the graph takes no more nodes.
 *  @retval MP_ERROR_INVALID_ARGUMENT a parameter that the loss does not depend on, or none at all
 *  @retval MP_ERROR_OUT_OF_MEMORY nothing was allocated */
MP_API mp_status_t mp_graph_compile(mp_graph_t graph);

/** Where an input lies from the next pass on; it may be another place each time.  As many elements
 *  are read as the batch has that is set then.
 *  @param data  device, aligned to its elements, 16 bytes for the fastest kernels.  NULL: unbound.
 *               */
MP_API mp_status_t mp_graph_bind(mp_graph_t graph, int32_t tensor, const void *data);
/** How large the batch is from the next pass on.  The first call with a size takes longer on the
 *  host.  A batch that needs more workspace than planned allocates it in this call.
 *  @param batch  1 to extent[0] of the inputs.
 *  @retval MP_ERROR_OUT_OF_MEMORY the batch size is unchanged */
MP_API mp_status_t mp_graph_set_batch(mp_graph_t graph, int64_t batch);
/** Set a parameter or a state, and the 16-bit copy of a parameter where there is one, in stream
 *  order.
 *  @param values  host or device, its elements in fp32. */
MP_API mp_status_t mp_graph_write(mp_graph_t graph, int32_t tensor, const float *values,
                                  mp_stream_t stream);

typedef enum mp_graph_mode {
  /** BatchNorm with its states, no Dropout.  The loss, and all that depends on it, if its labels
   *  are bound. */
  MP_GRAPH_INFERENCE = 0,
  /** All that mp_graph_backward needs, which computes the loss with its gradient, and all that
   *  depends on the loss. */
  MP_GRAPH_TRAINING = 1
} mp_graph_mode_t;

/** All outputs from the inputs that are bound.
 *  @retval MP_ERROR_INVALID_ARGUMENT an input that is not bound */
MP_API mp_status_t mp_graph_forward(mp_graph_t graph, mp_graph_mode_t mode, mp_stream_t stream);
/** The loss, and the gradients of all parameters times S, after mp_graph_forward in training.
 *  @param scaler  optional: its S, and its found_inf, which is raised by an overflow on the way.
 *                 NULL: S = 1. */
MP_API mp_status_t mp_graph_backward(mp_graph_t graph, mp_scaler_t scaler, mp_stream_t stream);

/** Returns the step of a graph with Dropout: its forward passes in training so far, replays of a
 *  CUDA graph included.  Part of a checkpoint: a resumed run then draws the masks of the run that
 *  goes on.  Waits for `stream`.
 *  @param t  host, out; 0 for a graph without Dropout, which counts nothing. */
MP_API mp_status_t mp_graph_get_step_sync(mp_graph_t graph, int64_t *t, mp_stream_t stream);
/** Sets the step from a checkpoint; 0 after mp_graph_compile.  Waits for `stream`.
 *  @param t  0 to 2^52.  No effect on a graph without Dropout. */
MP_API mp_status_t mp_graph_set_step_sync(mp_graph_t graph, int64_t t, mp_stream_t stream);

/** The lists of an optimizer: all parameters in the order of their creation.  Borrowed: they live
 *  as long as the graph.  No two gradients share memory.
 *  @param grads,master,model  host, out, each optional.  model is NULL where no parameter has a
 *                             16-bit copy. */
MP_API mp_status_t mp_graph_lists(mp_graph_t graph, mp_tensor_list_t *grads,
                                  mp_tensor_list_t *master, mp_tensor_list_t *model);

/** What became of a tensor. */
typedef struct mp_graph_tensor {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< as it is in memory */
  int32_t rank;
  mp_dtype_t dtype_copy;             /**< of its cast or 16-bit copy; MP_DTYPE_NONE: it has none */
  int64_t extent[MP_GRAPH_MAX_RANK]; /**< for the batch that is set */
  const char *name;                  /**< lives as long as the graph, once that is compiled */
  void *data; /**< device; NULL where it has no memory that lasts, or is not computed at all */
  void *copy; /**< device: of that type; NULL as data is */
  void *grad; /**< device: the gradient of a parameter, or of mp_graph_keep_gradient; else NULL */
  mp_dtype_t dtype_grad; /**< of grad */
  uint32_t reserved0;    /**< out: 0 */
} mp_graph_tensor_t;

/** Before mp_graph_compile it has a name and a shape, and no memory.
 *  @param info  host, out; MP_INIT_STRUCT it before the call. */
MP_API mp_status_t mp_graph_get_tensor(mp_graph_t graph, int32_t tensor, mp_graph_tensor_t *info);

/** Bytes of device memory that a compiled graph holds.  Its sum is what it has allocated, but for
 *  tables of its lists. */
typedef struct mp_graph_memory {
  uint32_t struct_size;
  uint32_t reserved0;  /**< out: 0 */
  int64_t parameters;  /**< fp32 */
  int64_t copies;      /**< of parameters, in 16 bits */
  int64_t gradients;   /**< of parameters, and of mp_graph_keep_gradient */
  int64_t states;      /**< of mp_graph_state, and constants */
  int64_t activations; /**< and their gradients: memory that they share, one after the other */
  int64_t activations_alone; /**< what these would need if each had its own; not in the sum */
  int64_t workspace;
} mp_graph_memory_t;

/** After mp_graph_compile.
 *  @param memory  host, out; MP_INIT_STRUCT it before the call. */
MP_API mp_status_t mp_graph_get_memory(mp_graph_t graph, mp_graph_memory_t *memory);

/** How the operations came to their types, forward and backward, before fusion: mp_autocast_explain
 *  of the graph. Without mp_graph_autocast nothing has a reason: MP_ERROR_INVALID_ARGUMENT.
 *  @param text   host, optional, out: NUL-terminated.
 *  @param bytes  host.  In: room in text.  Out: what is needed, the NUL included.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL text has less room */
MP_API mp_status_t mp_graph_explain(mp_graph_t graph, mp_autocast_form_t form, char *text,
                                    size_t *bytes);
/** What is called, in order: one line per call with its operations, function, tensors, types and
 *  shapes.  It begins with "forward", "backward", or "inference": in training that call is one of
 *  backward.  After mp_graph_compile; parameters and room as in mp_graph_explain. */
MP_API mp_status_t mp_graph_describe(mp_graph_t graph, char *text, size_t *bytes);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_GRAPH_H */
