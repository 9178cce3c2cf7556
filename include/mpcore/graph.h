/* mpcore/graph.h: networks as graphs, with automatic differentiation and mixed precision. */
#ifndef MPCORE_GRAPH_H
#define MPCORE_GRAPH_H

#include "autocast.h"

MP_BEGIN_C

/** @defgroup graph 18. Graphs
 *
 *  Graphs train networks without a framework.  The caller describes a network in fp32.
 *  mp_graph_compile then appends the backward pass, assigns a type to each operation, fuses
 *  operations into epilogues and allocates all memory.  After that, a forward or backward pass is a
 *  flat list of calls of this library.  It neither allocates nor waits, and can be captured into a
 *  CUDA graph.
 *
 *      mp_graph_create, _add_input, _add_node ..., _set_loss      describe the network
 *      mp_graph_set_autocast                                      mixed precision, optional
 *      mp_graph_measure_kernels                                   measured kernels, optional
 *      mp_graph_compile                                           differentiate, fuse, allocate
 *      mp_graph_write, mp_graph_get_lists, mp_optimizer_create    initial weights, optimizer
 *      mp_graph_bind, _forward, _backward, mp_scale_step          one training step
 *
 *  Shapes are static, except for the batch, and there is no control flow.  A graph is used by one
 *  thread at a time.
 *
 *  ## Operations
 *
 *  Inputs and outputs are listed with their shapes; "..." is any number of dimensions and "?" marks
 *  an optional tensor.  Attributes follow with their defaults.  Their kind is INT, or FLOAT if the
 *  default has a decimal point (mp_attribute_kind_t).
 *
 *      Linear         x [... in], w [in out], b? [out] -> y [... out]
 *                       transposed = 0     1: w is [out in]
 *      MatMul         a [... m k], b [... k n] -> y [... m n]
 *                       transposed_a = 0, transposed_b = 0     1: a is [... k m], b [... n k]
 *      Conv2D         x [n h w c], w [k r s c/groups], b? [k] -> y [n p q k]
 *                       stride = 1, pad = 0, dilation = 1, groups = 1
 *      BiasAdd        x [... c], b [c] -> y [... c]
 *      Add, Sub, Mul, Div     a, b -> y of the shape of a; b may lack leading dimensions
 *      Relu, Silu, Sigmoid, Tanh     x -> y
 *      Gelu           x -> y
 *                       erf = 0            0: tanh form, 1: exact form
 *      LeakyRelu      x -> y
 *                       slope = 0.01
 *      Clip           x -> y
 *                       min = -infinity, max = infinity; both FLOAT
 *      Swiglu         x [... 2n] = [gate | up] -> y [... n]
 *      Geglu          x [... 2n] -> y [... n]
 *                       erf = 0            as Gelu
 *      MaxPool        x [n h w c] -> y [n p q c]
 *                       window = 2, stride = window, pad = 0, dilation = 1, ceil_mode = 0
 *      AvgPool        x [n h w c] -> y [n p q c]
 *                       attributes of MaxPool; include_pad = 0
 *      BatchNorm      x [... c], gamma? [c], beta? [c], mean [c], variance [c] -> y [... c]
 *                       epsilon = 1.0e-5, momentum = 0.1
 *      LayerNorm      x [... groups n], gamma? [n], beta? [n] -> y
 *                       epsilon = 1.0e-5, groups = 1, zero_centered = 0
 *      RMSNorm        x, gamma? -> y; attributes of LayerNorm
 *      Softmax        x [... n], lengths? of leading dimensions of x -> y
 *                       scale = 1.0        factor of x
 *      LogSoftmax     inputs and attributes of Softmax
 *      Attention      q [batch q_len heads*d], k? [batch kv_len kv_heads*d],
 *                     v? [batch kv_len kv_heads*e], lengths? [batch], sinks? [heads], offset? [],
 *                     q_lengths? [batch] -> o [batch q_len heads*e]
 *                       heads = 1, kv_heads = heads, causal = 0, window_left = -1,
 *                       window_right = -1, p = 0.0, seed = 0
 *                       scale = 0.0        factor of the scores, 0: 1/sqrt(d)
 *      RotaryEmbedding     x [... heads*d], positions? [...] -> y
 *                       heads = 1, rotated_heads = heads, rotary_dim = d, base = 10000.0,
 *                       interleaved = 0
 *      Embedding      table [rows dim], indices [...] -> y [... dim]
 *      Dropout        x, offset? [] -> y
 *                       p = 0.5, seed = 0
 *      Reshape        x -> y
 *                       extent             INTS, one per dimension of y: 0 = that of x at the same
 *                                          position, -1 = computed from the others
 *      Concat         x0, x1? ... x7? of equal shape except on the axis -> y
 *                       axis = -1          -1 is the last dimension
 *      Split          x -> y0, y1? ... y7?
 *                       axis = -1
 *                       extents            INTS, one per output; equal parts by default
 *      Slice          x -> y
 *                       axis = -1, begin = 0, end = extent
 *      Pad            x -> y, with zeros before and after x
 *                       axis = -1, before = 0, after = 0
 *      Transpose      x -> y
 *                       permutation        INTS: dimension i of y is dimension permutation[i] of x
 *      Sum, Mean      x, Mean: lengths? of dimensions before the axis -> y without the axes
 *                       axes               INTS, adjacent and ascending
 *                       keep_dims = 0      1: y has extent 1 on the axes
 *      LSTM           x [batch steps in], w_ih, w_hh, b_ih?, b_hh?, h0? [batch hidden],
 *                     c0? [batch hidden], lengths? [batch]
 *                       -> y [batch steps hidden], h? [batch hidden], c? [batch hidden]
 *      GRU, RNN       inputs of LSTM without c0 -> y, h?
 *                       relu = 0           RNN only; 0: tanh, 1: ReLU
 *      SoftmaxXent    logits [... classes], labels [...], count? []
 *                       -> loss [], row_loss? [rows], correct?
 *                       weight = 1.0, label_smoothing = 0.0, ignore_label = -100, z_loss = 0.0
 *      LinearXent     x [... width], w [classes width], b? [classes], labels [...], count? []
 *                       -> outputs and attributes of SoftmaxXent
 *      MSE, L1, BCEWithLogits     prediction, target, weight? of equal shape -> loss []
 *                       weight = 1.0
 *
 *  They are computed by mp_gemm, mp_conv2d_*, mp_pointwise, mp_glu_*, mp_pool2d_*, mp_batchnorm_*,
 *  mp_norm_*, mp_softmax_*, mp_attention_*, mp_rope, mp_embedding_*, mp_dropout, mp_strided_copy,
 *  mp_sum_rows, mp_rnn_*, mp_softmax_xent, mp_linear_xent and mp_loss (MP_LOSS_REDUCTION_MEAN).
 *
 *  - **Images**: window, stride, pad and dilation are equal for height and width.
 *  - **Integers**: labels, indices, positions and lengths are int32_t, the offset of Dropout and
 *    Attention is 1 uint64_t.  They must be inputs of the graph with dtype MP_DTYPE_NONE; the
 *    offset has rank 0.
 *  - **correct** is 1 int64_t: the number of rows whose largest logit is the label's.
 *    mp_graph_get_tensor returns MP_DTYPE_NONE and extent 8, in bytes.
 *  - **BatchNorm**: mean and variance must be from mp_graph_add_state.
 *  - **LayerNorm, RMSNorm, Softmax, LogSoftmax** compute in fp32, and read and write the type that
 *    their input has.  A norm absorbs an Add before it, and a Dropout that only this Add reads, in
 *    both passes.  It can then read 16 bits, add them to an fp32 residual, and write 16 bits.
 *    zero_centered multiplies by 1 + gamma.  Norms have at most 65,536 columns per group.
 *  - **Attention** without k and v: q is the packed [q | k | v], and lengths apply to all three.
 *    With k and v, lengths are those of k and v.  d and e are at most 256, and batch x heads is at
 *    most 2^31 - 1.
 *  - **RotaryEmbedding** copies the heads after the first rotated_heads, such as v in [q | k | v].
 *    positions default to 0 to n - 1, where n is the last dimension but one of x if its rank is
 *    greater than 2, and otherwise the number of rows.  rotary_dim is at most 512.
 *  - **Concat, Transpose**: the last inputs of Concat can be omitted, but must not be -1.  x of
 *    Transpose has at most 6 dimensions.
 *  - **Mean** with lengths has one axis and averages the first elements along it; a length of 0
 *    gives 0.  In 16 bits, the weights 1 / length are rounded.
 *  - **LSTM, GRU, RNN**: shapes of the weights as in mp_rnn_weights_t; either both biases or none.
 *    Inputs of the graph get no gradient, so h0 and c0 bound by the caller truncate
 *    back-propagation through time.
 *  - **Losses**: target and weight must not depend on a parameter.  count is an input of type
 *    MP_FP32 and rank 0: tensors->count of mp_xent_tensors_t, for micro-batches.
 *  - **LinearXent** is Linear with transposed = 1 and SoftmaxXent, without memory for the logits.
 *    w can be the table of an Embedding.  The gradients of w and b are fp32.
 *  - **Unbound inputs**: h0 and c0 default to 0, lengths to all steps or columns, and the offset to
 *    the step of the graph.  Labels and targets may be unbound in inference; the loss is then not
 *    computed.
 *
 *  ## Dropout
 *
 *  Dropout, and Attention with p > 0, have masks in training, which differ between nodes and
 *  between forward passes.  The offset of mp_dropout and mp_attention_* is the step of the graph:
 *  the number of previous forward passes in training, see mp_graph_get_step_sync.  The seed is
 *  seed + n * 0x9E3779B97F4A7C15 modulo 2^64, where seed is the attribute (as uint64_t) and n the
 *  number of nodes created before this one.  Attention adds n * 0xBF58476D1CE4E5B9 instead.  Ranks
 *  of data-parallel training need different seeds.
 *
 *  If an offset is bound, the call gets that offset and the attribute unchanged; nodes with equal
 *  values then have equal masks.
 *
 *  ## Names in autocast policies
 *
 *  Backward operations are named LinearBackpropInput, LinearBackpropWeight, Conv2DBackpropInput,
 *  Conv2DBackpropFilter, MatMul, and otherwise like the forward operation with the suffix Grad.
 *  RepeatGrad and BiasAddGrad sum the gradient of a repeated operand.  Only the preset
 *  MP_AUTOCAST_PRESET_DEFAULT contains these names.
 *
 *  The name of a backward node is that of its forward node, "/" and a word: the pattern `fc2*`
 *  matches the nodes of both passes.
 *  @{ */

typedef struct mp_graph *mp_graph_t; /**< a network */

/** Maximum number of dimensions of a tensor. */
#define MP_GRAPH_MAX_RANK 8

/** Creates an empty graph. */
MP_API mp_status_t mp_graph_create(mp_graph_t *graph, mp_context_t context);
/** Destroys a graph and its memory.  Wait for enqueued work first, and destroy optimizers created
 *  from its lists. */
MP_API void mp_graph_destroy(mp_graph_t graph);

/** Adds an input: a tensor in memory of the caller, see mp_graph_bind.
 *  @param name    host, copied, not empty.
 *  @param dtype   MP_FP32: autocast may cast it; MP_FP16, MP_BF16: read as stored; MP_DTYPE_NONE:
 *                 integers.
 *  @param extent  host, rank values >= 1; the tensor is dense and row-major.  If rank > 0,
 *                 extent[0] is the maximum batch, equal for all inputs.
 *  @param tensor  host, out: index of the tensor in all other calls. */
MP_API mp_status_t mp_graph_add_input(mp_graph_t graph, const char *name, mp_dtype_t dtype,
                                      int32_t rank, const int64_t *extent, int32_t *tensor);
/** Adds a trainable tensor: fp32, in memory of the graph.  mp_graph_get_lists returns it for an
 *  optimizer.
 *  @param name,rank,extent  as in mp_graph_add_input; extent[0] is not a batch.
 *  @param tensor  host, out. */
MP_API mp_status_t mp_graph_add_parameter(mp_graph_t graph, const char *name, int32_t rank,
                                          const int64_t *extent, int32_t *tensor);
/** Adds a tensor that persists between steps and is not trained, such as running statistics: fp32,
 *  in memory of the graph.  Arguments as in mp_graph_add_parameter.
 *  @param tensor  host, out. */
MP_API mp_status_t mp_graph_add_state(mp_graph_t graph, const char *name, int32_t rank,
                                      const int64_t *extent, int32_t *tensor);

/** Type of an attribute. */
typedef enum mp_attribute_kind {
  MP_ATTRIBUTE_KIND_INT = 1,   /**< int_value, all 64 bits; also accepted for a FLOAT attribute */
  MP_ATTRIBUTE_KIND_FLOAT = 2, /**< float_value */
  MP_ATTRIBUTE_KIND_INTS = 3,  /**< count elements of ints */
  MP_ATTRIBUTE_KIND_FLOATS = 4 /**< count elements of floats; no operation has such an attribute */
} mp_attribute_kind_t;

/** Attribute of an operation, e.g. from mp_graph_int.  Fields that `kind` does not select are not
 *  read. */
typedef struct mp_graph_attribute {
  uint32_t struct_size; /**< equal for all elements of an array */
  mp_attribute_kind_t kind;
  const char *name;
  int64_t int_value;
  double float_value;
  const int64_t *ints;
  const double *floats;
  uint32_t count;
  uint32_t reserved0; /**< must be 0 */
} mp_graph_attribute_t;

/** Returns an attribute of kind INT. */
static inline mp_graph_attribute_t mp_graph_int(const char *name, int64_t value) {
  mp_graph_attribute_t attribute;
  MP_INIT_STRUCT(&attribute);
  attribute.kind = MP_ATTRIBUTE_KIND_INT;
  attribute.name = name;
  attribute.int_value = value;
  return attribute;
}
/** Returns an attribute of kind FLOAT. */
static inline mp_graph_attribute_t mp_graph_float(const char *name, double value) {
  mp_graph_attribute_t attribute;
  MP_INIT_STRUCT(&attribute);
  attribute.kind = MP_ATTRIBUTE_KIND_FLOAT;
  attribute.name = name;
  attribute.float_value = value;
  return attribute;
}
/** Returns an attribute of kind INTS.
 *  @param values  host, count elements, which must exist until mp_graph_add_node returns. */
static inline mp_graph_attribute_t mp_graph_ints(const char *name, const int64_t *values,
                                                 uint32_t count) {
  mp_graph_attribute_t attribute;
  MP_INIT_STRUCT(&attribute);
  attribute.kind = MP_ATTRIBUTE_KIND_INTS;
  attribute.name = name;
  attribute.ints = values;
  attribute.count = count;
  return attribute;
}
/** Returns an attribute of kind FLOATS.
 *  @param values  host, count elements, which must exist until mp_graph_add_node returns. */
static inline mp_graph_attribute_t mp_graph_floats(const char *name, const double *values,
                                                   uint32_t count) {
  mp_graph_attribute_t attribute;
  MP_INIT_STRUCT(&attribute);
  attribute.kind = MP_ATTRIBUTE_KIND_FLOATS;
  attribute.name = name;
  attribute.floats = values;
  attribute.count = count;
  return attribute;
}

/** Adds a node: an operation from the list above.
 *  @param op_type     host, e.g. "Linear".
 *  @param name        host, copied, not empty.
 *  @param inputs      host, num_inputs tensors; -1 = absent optional input, except for Concat.  The
 *                     last optional inputs can be omitted.
 *  @param attributes  host, num_attributes values, copied; NULL if num_attributes is 0.
 *  @param outputs     host, out, num_outputs tensors; the last optional outputs can be omitted.
 *  @retval MP_ERROR_NOT_FOUND unknown operation or attribute
 *  @retval MP_ERROR_INVALID_ARGUMENT shapes that do not match, an attribute of another kind, or one
 *          that is given twice; the message names the node */
MP_API mp_status_t mp_graph_add_node(mp_graph_t graph, const char *op_type, const char *name,
                                     const int32_t *inputs, uint32_t num_inputs,
                                     const mp_graph_attribute_t *attributes,
                                     uint32_t num_attributes, int32_t *outputs,
                                     uint32_t num_outputs);

/** Marks an output of a node as readable: it gets memory that is not shared with other tensors and
 *  keeps its value until the next pass.  Outputs of losses are always readable.  A tensor that
 *  depends on the loss is computed together with it, see mp_graph_mode_t. */
MP_API mp_status_t mp_graph_add_output(mp_graph_t graph, int32_t tensor);
/** Keeps the gradient of an output of a node, so that mp_graph_tensor_t.grad can be read, e.g. to
 *  inspect its range in fp16.  Gradients of parameters are always kept. */
MP_API mp_status_t mp_graph_keep_gradient(mp_graph_t graph, int32_t tensor);
/** Sets the loss to minimize: output 0 of a SoftmaxXent, LinearXent, MSE, L1 or BCEWithLogits.
 *  Without a loss and without mp_graph_seed_gradient, the graph has no backward pass. */
MP_API mp_status_t mp_graph_set_loss(mp_graph_t graph, int32_t tensor);
/** Adds an input for the gradient of a loss that the caller computes: dL / d(tensor), in fp32, with
 *  the shape of `tensor`, not multiplied by S.
 *
 *  Read `tensor`, which becomes an output, after mp_graph_forward; bind its gradient before
 *  mp_graph_backward.  mp_graph_backward multiplies the gradient by S.  Gradients of several seeds
 *  and of mp_graph_set_loss add up.
 *  @param tensor  floating-point output of a node; at most one seed per tensor.
 *  @param input   host, out. */
MP_API mp_status_t mp_graph_seed_gradient(mp_graph_t graph, int32_t tensor, int32_t *input);

/** Enables mixed precision: the policy determines the type of each operation.  Call it before
 *  mp_graph_compile.  If autocast is disabled on this device (see
 *  mp_autocast_get_disabled_reason), the graph stays fp32, with one warning.
 *  @param policy  must exist until mp_graph_compile has succeeded.  MP_AUTOCAST_FLAG_EMULATE is not
 *                 supported. */
MP_API mp_status_t mp_graph_set_autocast(mp_graph_t graph, mp_autocast_t policy);

/** Selects kernels by measured times: the first time that a pass makes a call of mp_gemm or
 *  mp_conv2d_*, for each batch size, the call measures kernels as after mp_tuning_measure.  Call it
 *  before mp_graph_compile.
 *
 *  Passes that measure return ordinary results, but allocate memory, wait for the device, and must
 *  not be captured into a CUDA graph: run one step before capturing.  mp_tuning_get_text returns
 *  the results.  With a file of these lines as MP_GEMM_TUNING, later processes measure nothing and
 *  compute the same bits.
 *  @param max_kernels  number of kernels to measure for a call, such as 8; 0 (default) = none */
MP_API mp_status_t mp_graph_measure_kernels(mp_graph_t graph, int32_t max_kernels);

/** Appends the backward pass, inserts casts, fuses operations and allocates memory.  The graph
 *  cannot be modified afterwards.  Parameters and states are initialized to 0.
 *  @retval MP_ERROR_INVALID_ARGUMENT the loss depends on no parameter, or a parameter has no
 *          influence on it
 *  @retval MP_ERROR_OUT_OF_MEMORY nothing was allocated */
MP_API mp_status_t mp_graph_compile(mp_graph_t graph);

/** Sets the address of an input, from the next pass on.  A pass reads as many elements as the
 *  current batch has.
 *  @param data  device, aligned to its element size; 16-byte alignment selects the fastest kernels.
 *               NULL = unbound. */
MP_API mp_status_t mp_graph_bind(mp_graph_t graph, int32_t tensor, const void *data);
/** Sets the batch size, from the next pass on.  The first call with a new size takes longer on the
 *  host, and allocates if that size needs more workspace than mp_graph_compile planned.
 *  @param batch  1 to extent[0] of the inputs.
 *  @retval MP_ERROR_OUT_OF_MEMORY the batch size is unchanged */
MP_API mp_status_t mp_graph_set_batch(mp_graph_t graph, int64_t batch);
/** Copies values to a parameter or state, in stream order, and updates the 16-bit copy of a
 *  parameter if it has one.
 *  @param values  host or device, fp32, all elements of the tensor. */
MP_API mp_status_t mp_graph_write(mp_graph_t graph, int32_t tensor, const float *values,
                                  mp_stream_t stream);

/** Mode of a forward pass. */
typedef enum mp_graph_mode {
  /** BatchNorm uses its states, Dropout is the identity, Attention has no dropout.  The loss and
   *  tensors that depend on it are computed only if labels or target are bound. */
  MP_GRAPH_MODE_INFERENCE = 1,
  /** Prepares mp_graph_backward, which computes the loss together with its gradient, and tensors
   *  that depend on the loss. */
  MP_GRAPH_MODE_TRAINING = 2
} mp_graph_mode_t;

/** Computes the outputs from the bound inputs.
 *  @retval MP_ERROR_INVALID_ARGUMENT a required input is not bound */
MP_API mp_status_t mp_graph_forward(mp_graph_t graph, mp_graph_mode_t mode, mp_stream_t stream);
/** Computes the loss, and S times the gradients of all parameters.
 *  @param scaler  optional: provides S and found_inf, which an overflow in the pass sets.
 *                 NULL: S = 1.
 *  @retval MP_ERROR_INVALID_ARGUMENT the previous pass was not mp_graph_forward with
 *          MP_GRAPH_MODE_TRAINING and the same batch */
MP_API mp_status_t mp_graph_backward(mp_graph_t graph, mp_scaler_t scaler, mp_stream_t stream);

/** Returns the step of a graph with Dropout, or Attention with p > 0: the number of forward passes
 *  in training, including replays of a CUDA graph.  Waits for `stream`.  Save it in checkpoints, so
 *  that a resumed run has the same masks as an uninterrupted one.
 *  @param t  host, out; 0 for a graph without dropout. */
MP_API mp_status_t mp_graph_get_step_sync(mp_graph_t graph, int64_t *t, mp_stream_t stream);
/** Sets the step, e.g. from a checkpoint; mp_graph_compile sets it to 0.  Waits for `stream`.
 *  @param t  0 to 2^52.  No effect on a graph without dropout. */
MP_API mp_status_t mp_graph_set_step_sync(mp_graph_t graph, int64_t t, mp_stream_t stream);

/** Returns the lists for an optimizer: all parameters, in the order of their creation.  The lists
 *  belong to the graph and exist as long as it does.  No two gradients share memory.
 *  @param grads,master,model  host, out, each optional.  model is NULL if no parameter has a 16-bit
 *                             copy; mp_optimizer_desc_t accepts that.
 *  @retval MP_ERROR_INVALID_ARGUMENT grads is not NULL, but the graph has no backward pass */
MP_API mp_status_t mp_graph_get_lists(mp_graph_t graph, mp_tensor_list_t *grads,
                                      mp_tensor_list_t *master, mp_tensor_list_t *model);

/** Shape, types and addresses of a tensor. */
typedef struct mp_graph_tensor {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< type in memory */
  int32_t rank;
  mp_dtype_t dtype_copy;             /**< type of its cast or 16-bit copy; MP_DTYPE_NONE = none */
  int64_t extent[MP_GRAPH_MAX_RANK]; /**< for the current batch */
  const char *name; /**< if read after mp_graph_compile, valid as long as the graph */
  void *data;       /**< device; NULL if other tensors share its memory or it is not computed */
  void *copy;       /**< device, of type dtype_copy; NULL likewise */
  void *grad;       /**< device: gradient of a parameter or of mp_graph_keep_gradient; else NULL */
  mp_dtype_t dtype_grad; /**< type of grad */
  uint32_t reserved0;    /**< out: 0 */
} mp_graph_tensor_t;

/** Returns the properties of a tensor.  Before mp_graph_compile it has no addresses.
 *  @param info  host, out; initialize it with MP_INIT_STRUCT. */
MP_API mp_status_t mp_graph_get_tensor(mp_graph_t graph, int32_t tensor, mp_graph_tensor_t *info);

/** Device memory of a compiled graph, in bytes.  The sum of all fields except activations_unshared
 *  is the allocated memory, apart from the tables of the lists. */
typedef struct mp_graph_memory {
  uint32_t struct_size;
  uint32_t reserved0;           /**< out: 0 */
  int64_t parameters;           /**< fp32 */
  int64_t copies;               /**< 16-bit copies of parameters */
  int64_t gradients;            /**< gradients of parameters and of mp_graph_keep_gradient */
  int64_t states;               /**< states and constants */
  int64_t activations;          /**< activations and their gradients, which reuse memory */
  int64_t activations_unshared; /**< activations without reuse of memory; not part of the sum */
  int64_t workspace;
} mp_graph_memory_t;

/** Returns the device memory of a compiled graph.
 *  @param memory  host, out; initialize it with MP_INIT_STRUCT. */
MP_API mp_status_t mp_graph_get_memory(mp_graph_t graph, mp_graph_memory_t *memory);

/** Writes the reason for the type of each operation, forward and backward, before fusion.  The
 *  report is that of mp_autocast_explain.
 *  @param text,bytes  as in mp_autocast_explain.
 *  @retval MP_ERROR_INVALID_ARGUMENT compiled without mp_graph_set_autocast */
MP_API mp_status_t mp_graph_explain(mp_graph_t graph, mp_autocast_format_t format, char *text,
                                    size_t *bytes);
/** Writes the calls of a compiled graph in order, one per line: pass, operations, function,
 *  tensors, types and shapes.
 *
 *  The pass is "forward", "backward" or "inference".  Lines marked inference compute the loss and
 *  tensors that depend on it: in inference mode they run in the forward pass; in training the
 *  backward pass makes these calls.  `text` and `bytes` as in mp_graph_explain. */
MP_API mp_status_t mp_graph_describe(mp_graph_t graph, char *text, size_t *bytes);

/** @} */

MP_END_C

#endif /* MPCORE_GRAPH_H */
