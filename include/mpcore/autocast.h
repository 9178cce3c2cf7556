/* mpcore/autocast.h: automatic mixed precision for the caller's own graphs. */
#ifndef MPCORE_AUTOCAST_H
#define MPCORE_AUTOCAST_H

#include "core.h"
#include "scaler.h"

MP_BEGIN_C

/** @defgroup autocast 17. Autocast
 *
 *  Autocast assigns a precision to each operation of a graph, for programs with their own graph and
 *  executor.  mp_autocast_rewrite reads arrays that describe an fp32 graph and writes arrays with
 *  the type of each operation, the required casts and the reasons:
 *
 *      mp_autocast_t policy;
 *      mp_autocast_create(&policy, NULL);                      // fp16, lists of mpcore
 *      mp_autocast_rewrite(policy, NULL, &graph, &result);
 *
 *  All arrays are in host memory.  The functions launch nothing, keep no pointers of the caller and
 *  need no context.  The cost is linear in nodes, inputs and tensors, and equal arrays give equal
 *  results.  docs/autocast.md describes the algorithm step by step, with examples.
 *
 *  Terms:
 *
 *  - **Low precision**: the 16-bit type of the policy, MP_FP16 or MP_BF16.
 *  - **Class**: the list that contains an operation, such as MP_OP_CLASS_ALLOW; determines
 *    whether it may run in low precision.
 *  - **Tensor**: has one producer, or comes from outside the graph, and any number of readers.
 *  - **Slot**: inputs and outputs of a node with the same slot share one type.  Most operations use
 *    only slot 0.
 *  - **Eligible slot**: a slot on which the node reads or writes an MP_FP32 tensor.  Precision
 *    propagates along MP_FP32 tensors and hidden edges.
 *
 *  @source TensorFlow, auto_mixed_precision of grappler; torch.amp.autocast; NVIDIA ModelOpt
 *  AutoCast.
 *
 *  @{ */

/** Class of an operation: the list that contains it.  Names follow TensorFlow. */
typedef enum mp_op_class {
  MP_OP_CLASS_UNLISTED = 0, /**< fp32, independent of its neighbors */
  MP_OP_CLASS_ALLOW = 1,    /**< always low precision: numerically safe, and faster */
  /** Low precision between low-precision nodes, except downstream of an MP_OP_CLASS_DENY. */
  MP_OP_CLASS_INFER = 2,
  /** fp32.  Propagates downstream through MP_OP_CLASS_INFER nodes, and through MP_OP_CLASS_CLEAR
   *  nodes that lead to another MP_OP_CLASS_INFER or MP_OP_CLASS_DENY. */
  MP_OP_CLASS_DENY = 3,
  MP_OP_CLASS_CLEAR = 4, /**< no numerical effect: takes the precision of its neighbors */
  /** MP_AUTOCAST_PRESET_PYTORCH: low precision if all floating-point inputs are.  Other presets
   *  treat it as MP_OP_CLASS_INFER. */
  MP_OP_CLASS_PROMOTE = 5
} mp_op_class_t;

/** Lists of operations and rules of propagation. */
typedef enum mp_autocast_preset {
  /** Names of mpcore, ONNX, TensorFlow and PyTorch.  MP_OP_CLASS_ALLOW: products, convolutions,
   *  attention, recurrent layers.  MP_OP_CLASS_INFER: batch norm.  MP_OP_CLASS_DENY: softmax, norms
   *  over a row, losses, sums. */
  MP_AUTOCAST_PRESET_DEFAULT = 1,
  MP_AUTOCAST_PRESET_TENSORFLOW = 2,      /**< lists of TensorFlow 2.21 for fp16 */
  MP_AUTOCAST_PRESET_TENSORFLOW_BF16 = 3, /**< lists of TensorFlow 2.21 for bf16 */
  /** Lists of torch.amp in PyTorch 2.11 for GPUs, names without overload, plus functions composed
   *  of listed operations, such as cross_entropy and interpolate.  Unknown operations are
   *  MP_OP_CLASS_CLEAR.
   *
   *  Propagation is that of torch.amp, one pass in execution order: a node is low precision if it
   *  is MP_OP_CLASS_ALLOW, or if all its floating-point inputs are and no list requires fp32.
   *  MP_OP_CLASS_DENY does not propagate. */
  MP_AUTOCAST_PRESET_PYTORCH = 4,
  /** Names of ONNX; the block list of onnxconverter-common is unlisted. */
  MP_AUTOCAST_PRESET_ONNX = 5
} mp_autocast_preset_t;

/** Override of all lists. */
typedef enum mp_autocast_level {
  MP_AUTOCAST_LEVEL_NORMAL = 1, /**< no override */
  /** Conservative: MP_OP_CLASS_INFER becomes MP_OP_CLASS_DENY. */
  MP_AUTOCAST_LEVEL_INFER_AS_DENY = 2,
  /** All but MP_OP_CLASS_ALLOW become MP_OP_CLASS_UNLISTED. */
  MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY = 3,
  /** Low precision wherever possible, except constants, state and cross-entropies.  For tests;
   *  MP_FP16 only. */
  MP_AUTOCAST_LEVEL_FORCE_ALL = 4
} mp_autocast_level_t;

/** Bits of mp_autocast_config_t.flags. */
typedef enum mp_autocast_flags {
  MP_AUTOCAST_FLAG_NO_ENVIRONMENT = 1 << 0, /**< ignores environment variables */
  /** Ignores the performance condition, see mp_autocast_get_disabled_reason. */
  MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE = 1 << 1,
  /** Keeps tensors of role MP_TENSOR_ROLE_OUTPUT in fp32; the caller counts as a reader.  Outputs
   *  of an mp_graph_t include the gradients of its parameters. */
  MP_AUTOCAST_FLAG_KEEP_IO = 1 << 2,
  /** Emulates 16-bit arithmetic: low-precision nodes compute in fp32 on rounded values.  See
   *  mp_autocast_result. */
  MP_AUTOCAST_FLAG_EMULATE = 1 << 3
} mp_autocast_flags_t;

/** Initial state of a policy. */
typedef struct mp_autocast_config {
  uint32_t struct_size;
  mp_autocast_preset_t preset;
  mp_dtype_t dtype_low; /**< MP_FP16 or MP_BF16 */
  mp_autocast_level_t level;
  uint32_t flags; /**< bitwise or of mp_autocast_flags_t */
  /** Limit of |x|, >= 0; 0 = no limit.  A node that reads or writes a tensor with a larger
   *  mp_autocast_graph.tensor_amax is MP_OP_CLASS_DENY.  65504 / 64 leaves fp16 a headroom of six
   *  bits. */
  float amax_limit;
  /** Limit of mp_autocast_graph.node_depth, >= 0; 0 = no limit.  A node that sums more terms is
   *  MP_OP_CLASS_DENY. */
  int64_t depth_limit;
} mp_autocast_config_t;

/** Initializes a configuration: preset MP_AUTOCAST_PRESET_DEFAULT, level MP_AUTOCAST_LEVEL_NORMAL,
 *  no flags, no limits. */
MP_API mp_status_t mp_autocast_config_init(mp_autocast_config_t *config, size_t struct_size,
                                           mp_dtype_t dtype_low);
static inline mp_autocast_config_t mp_autocast_config_default(mp_dtype_t dtype_low) {
  mp_autocast_config_t config;
  mp_autocast_config_init(&config, sizeof config, dtype_low);
  return config;
}

/** Initializes the loss scaler for `dtype_low`.  MP_FP16: MP_SCALER_PRESET_KERAS, which TensorFlow
 *  calls "dynamic".  MP_BF16 and MP_FP32: S = 1.
 *  @retval MP_ERROR_INVALID_ARGUMENT dtype_low is any other value */
MP_API mp_status_t mp_autocast_scaler_init(mp_scaler_config_t *config, size_t struct_size,
                                           mp_dtype_t dtype_low);
static inline mp_scaler_config_t mp_autocast_scaler_default(mp_dtype_t dtype_low) {
  mp_scaler_config_t config;
  mp_autocast_scaler_init(&config, sizeof config, dtype_low);
  return config;
}

/** Autocast policy: lists of operations, patterns of node names and a level.  Immutable after its
 *  first use, so threads can share it. */
typedef struct mp_autocast *mp_autocast_t;

/** Creates a policy.  Reads environment variables unless MP_AUTOCAST_FLAG_NO_ENVIRONMENT is set:
 *
 *      MP_AUTOCAST=off|fp16|bf16
 *      MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
 *      MP_AUTOCAST_ALLOW_ADD=Op,Op     also INFER, DENY and CLEAR instead of ALLOW
 *      MP_AUTOCAST_ALLOW_REMOVE=Op,Op  likewise
 *      MP_AUTOCAST_IGNORE_PERFORMANCE=1
 *      MP_AUTOCAST_LOG=folder          each rewrite writes its lists, report and two pictures there
 *
 *  These variables override `config`; mp_autocast_set_class and mp_autocast_set_nodes override
 *  them.  With a TensorFlow preset, the corresponding TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_
 *  variables (LEVEL, ALLOWLIST_ADD, WHITELIST_ADD, ..., IGNORE_PERFORMANCE, LOG_PATH) are read
 *  first.
 *
 *  @param config  host, optional; NULL = mp_autocast_config_default(MP_FP16).
 *  @retval MP_ERROR_INVALID_ARGUMENT a variable has an invalid value, or adds an operation that is
 *          on another list and is not removed from it */
MP_API mp_status_t mp_autocast_create(mp_autocast_t *policy, const mp_autocast_config_t *config);
/** Destroys a policy. */
MP_API void mp_autocast_destroy(mp_autocast_t policy);

/** Moves operations to a class.
 *  @param op_types  host, count names, copied; unknown names are added.
 *  @retval MP_ERROR_INVALID_ARGUMENT also if the policy has been used */
MP_API mp_status_t mp_autocast_set_class(mp_autocast_t policy, const char *const *op_types,
                                         uint32_t count, mp_op_class_t op_class);
/** Assigns a class to nodes by name, independent of their operation, e.g. to keep all nodes whose
 *  name begins with "decoder/" in fp32.  If several patterns match, the last one set applies.
 *  @param pattern  host, copied.  As in a shell: * matches any text, including "/", ? any
 *                  character, [a-z] a character in the range and [!a-z] any other.
 *  @retval MP_ERROR_INVALID_ARGUMENT also if the policy has been used, or a [ has no ] */
MP_API mp_status_t mp_autocast_set_nodes(mp_autocast_t policy, const char *pattern,
                                         mp_op_class_t node_class);
/** Returns the class of an operation, before the level is applied.  Names are case-sensitive.
 *  Returns MP_OP_CLASS_UNLISTED if the operation is unknown (with MP_AUTOCAST_PRESET_PYTORCH
 *  MP_OP_CLASS_CLEAR), or if op_type or policy is NULL. */
MP_API mp_op_class_t mp_autocast_get_class(mp_autocast_t policy, const char *op_type);

/** Returns the reason why autocast is disabled on a device, or NULL if it is enabled.
 *
 *  Performance condition: autocast is disabled if low precision is not faster on the device.  fp16
 *  requires tensor cores (sm_70), bf16 requires sm_80, and the host target has no faster 16-bit
 *  arithmetic.  This is not an error: mp_autocast_rewrite leaves the graph unchanged and logs one
 *  warning.  MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE ignores the condition; MP_AUTOCAST=off always
 *  disables autocast.
 *  @param context         optional; NULL = no performance condition.
 *  @param disabled_reason  host, out: a clause in static storage; NULL = enabled. */
MP_API mp_status_t mp_autocast_get_disabled_reason(mp_autocast_t policy, mp_context_t context,
                                                   const char **disabled_reason);

/** Bits of mp_autocast_graph_t.node_flags. */
typedef enum mp_node_flags {
  MP_NODE_FLAG_KEEP_FP32 = 1 << 0,    /**< stays fp32: fetched, fed, or requested by the caller */
  MP_NODE_FLAG_OTHER_DEVICE = 1 << 1, /**< stays fp32: runs on another device */
  MP_NODE_FLAG_NO_LOW = 1 << 2, /**< stays fp32: no 16-bit kernel; its class still propagates */
  MP_NODE_FLAG_CAST = 1 << 3,   /**< converts to the type of its output */
  /** Reads a variable in place (Identity or Enter of TensorFlow's reference variables); low
   *  precision does not propagate through it. */
  MP_NODE_FLAG_READS_VARIABLE = 1 << 4,
  MP_NODE_FLAG_BACK_EDGE = 1 << 5, /**< back edge (NextIteration): follows the rest of its loop */
  /** Reads fp32 and low precision, except on MP_AUTOCAST_SLOT_FP32. */
  MP_NODE_FLAG_READS_EITHER = 1 << 6,
  /** Can write fp32 or low precision, like mp_gemm (dtype_cd). */
  MP_NODE_FLAG_WRITES_EITHER = 1 << 7
} mp_node_flags_t;

/** Role of a tensor. */
typedef enum mp_tensor_role {
  MP_TENSOR_ROLE_ACTIVATION = 0,
  MP_TENSOR_ROLE_PARAMETER = 1, /**< an optimizer has its fp32 master and can keep a 16-bit copy */
  MP_TENSOR_ROLE_OUTPUT = 2     /**< read by the caller */
} mp_tensor_role_t;

/** Slot of inputs and outputs that are always fp32, such as statistics of a batch norm or the gain
 *  of a layer norm.  Low precision propagates neither from nor to this slot, for any class. */
#define MP_AUTOCAST_SLOT_FP32 255

/** Graph to rewrite: flat arrays in host memory, read during the call.  Cycles are allowed.
 *  Optional arrays may be NULL, as if all elements were 0.  Initialize with MP_INIT_STRUCT. */
typedef struct mp_autocast_graph {
  uint32_t struct_size;
  uint32_t num_nodes, num_tensors; /**< each at most 2^31 - 1 */
  uint32_t num_hidden_edges;
  uint32_t num_clusters;
  uint32_t reserved0;           /**< must be 0 */
  const char *const *node_op;   /**< names of operations; NULL elements require a node_class */
  const uint8_t *node_class;    /**< optional: 1 + mp_op_class_t; 0 = class of node_op */
  const char *const *node_name; /**< optional, for patterns and reports; elements may be NULL */
  const uint16_t *node_flags;   /**< optional: bitwise or of mp_node_flags_t */
  const int64_t *node_depth;    /**< optional: terms of a sum, e.g. k of a GEMM; 0 = unknown */
  /** Inputs of node i are [input_offsets[i], input_offsets[i + 1]); num_nodes + 1 values, the first
   *  is 0. */
  const int32_t *input_offsets;
  const int32_t *input_tensor;    /**< tensor of each input; -1 = absent optional input */
  const uint8_t *input_slot;      /**< optional: slot of each input */
  const int32_t *tensor_producer; /**< node that writes the tensor; -1 = outside the graph */
  const uint8_t *tensor_slot;     /**< optional: slot of the producer that writes the tensor */
  /** mp_dtype_t: MP_FP32 may become low precision, MP_FP16 and MP_BF16 stay; MP_DTYPE_NONE is any
   *  other type, as are MP_INT32 and MP_INT64. */
  const uint8_t *tensor_dtype;
  const uint8_t *tensor_role; /**< optional: mp_tensor_role_t */
  const float *tensor_amax;   /**< optional: largest |x|, e.g. of mp_inspect; < 0, NaN = unknown */
  /** Hidden edges, e.g. through a container or through state: precision propagates from slot 0 of
   *  hidden_src[i] to slot 0 of hidden_dst[i] without a tensor of this graph. */
  const int32_t *hidden_src, *hidden_dst;
  /** Clusters: members [member_offsets[i], member_offsets[i + 1]) have equal precision in slot 0;
   *  num_clusters + 1 values, the first is 0. */
  const int32_t *member_offsets;
  const int32_t *member; /**< nodes of the clusters */
  /** Rule of each cluster, optional.  0, a container such as a list of tensors: fp32 if a member is
   *  MP_OP_CLASS_DENY or downstream of one, or has MP_NODE_FLAG_KEEP_FP32, _OTHER_DEVICE or
   *  _NO_LOW; otherwise low precision if any member is, regardless of classes.  1, a loop: low
   *  precision if all members without MP_NODE_FLAG_BACK_EDGE are and the others can be; otherwise
   *  fp32. */
  const uint8_t *cluster_kind;
} mp_autocast_graph_t;

/** Source of the converted tensor. */
typedef enum mp_cast_kind {
  MP_CAST_KIND_KERNEL = 1, /**< mp_cast, once for all readers */
  /** The 16-bit copy of a parameter that the optimizer writes (mp_optimizer_desc.model): no
   *  kernel. */
  MP_CAST_KIND_MODEL_COPY = 2
} mp_cast_kind_t;

/** Cast of a tensor.  Frozen: results are arrays of casts, 20 bytes each. */
typedef struct mp_autocast_cast {
  int32_t tensor;
  mp_dtype_t from, to;
  mp_cast_kind_t kind;
  /** Inputs that read the result, plus the caller with MP_AUTOCAST_FLAG_KEEP_IO. */
  int32_t readers;
} mp_autocast_cast_t;

/** Reason for the type of a node: fp32 if < 32, otherwise low precision.  node_cause is the node
 *  in brackets. */
typedef enum mp_autocast_reason {
  MP_AUTOCAST_REASON_UNLISTED = 1,  /**< MP_OP_CLASS_UNLISTED: on no list, or by level */
  MP_AUTOCAST_REASON_DENY_LIST = 2, /**< MP_OP_CLASS_DENY by list, pattern, node_class or level */
  MP_AUTOCAST_REASON_DENY_UPSTREAM = 3, /**< downstream of an MP_OP_CLASS_DENY [that node] */
  MP_AUTOCAST_REASON_RANGE = 4,         /**< tensor_amax of a tensor exceeds amax_limit */
  MP_AUTOCAST_REASON_DEPTH = 5,         /**< node_depth exceeds depth_limit */
  MP_AUTOCAST_REASON_KEPT = 6,          /**< MP_NODE_FLAG_KEEP_FP32 */
  MP_AUTOCAST_REASON_OTHER_DEVICE = 7,  /**< MP_NODE_FLAG_OTHER_DEVICE */
  MP_AUTOCAST_REASON_NO_KERNEL = 8,     /**< MP_NODE_FLAG_NO_LOW */
  /** Low precision is possible, but does not propagate to the node. */
  MP_AUTOCAST_REASON_NO_ALLOW_NEARBY = 9,
  MP_AUTOCAST_REASON_NOT_FLOAT = 10, /**< reads and writes no MP_FP32 tensor */
  MP_AUTOCAST_REASON_DISABLED = 11, /**< autocast is disabled: mp_autocast_result.disabled_reason */
  MP_AUTOCAST_REASON_CLUSTER_FP32 = 12, /**< in an fp32 cluster [the member that requires fp32] */

  MP_AUTOCAST_REASON_ALLOW_LIST = 32, /**< MP_OP_CLASS_ALLOW by list, node_class or level */
  /** Node between two MP_OP_CLASS_ALLOW [the downstream one]. */
  MP_AUTOCAST_REASON_BETWEEN_ALLOW = 33,
  /** Downstream of a low-precision node [that node], with MP_BF16 or MP_AUTOCAST_PRESET_PYTORCH. */
  MP_AUTOCAST_REASON_FOLLOWS_ALLOW = 34,
  /** MP_OP_CLASS_CLEAR connected to a low-precision node [that node]. */
  MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW = 35,
  /** Member of a low-precision cluster [the member that caused it]. */
  MP_AUTOCAST_REASON_CLUSTER_LOW = 36,
  /** Cast to fp32 with only low-precision readers [the first]. */
  MP_AUTOCAST_REASON_CAST_ABSORBED = 37,
  MP_AUTOCAST_REASON_PATTERN = 38 /**< MP_OP_CLASS_ALLOW by mp_autocast_set_nodes */
} mp_autocast_reason_t;

/** Result of mp_autocast_rewrite.  The arrays belong to the caller; each is optional.  Initialize
 *  with MP_INIT_STRUCT.
 *
 *  Input j reads its tensor t as written, in type tensor_dtype[t], or the result of cast
 *  input_cast[j] if that is >= 0.  A tensor has at most one cast.
 *
 *  MP_AUTOCAST_FLAG_EMULATE requires more casts; `casts` must have room for 2 num_tensors + the
 *  number of inputs:
 *
 *  - All tensors stay MP_FP32.
 *  - Each tensor that is read, and written or read by a low-precision node, has one cast to low
 *    precision.
 *  - Casts back to fp32 read the result of that cast: one for each input of a low-precision node,
 *    and one for all fp32 readers of a tensor written by a low-precision node. */
typedef struct mp_autocast_result {
  uint32_t struct_size;
  int32_t num_casts;          /**< out */
  int32_t num_low_nodes;      /**< out */
  int32_t num_parameters_low; /**< out: casts of kind MP_CAST_KIND_MODEL_COPY */
  uint8_t *tensor_dtype;      /**< num_tensors: type that the producer writes */
  /** Type of each node, num_nodes: MP_FP32 or low precision, for slot 0, or for the lowest eligible
   *  slot if slot 0 is not eligible.  A node without eligible slots is MP_FP32, except in a
   *  low-precision container, e.g. an empty list of 16-bit tensors. */
  uint8_t *node_dtype;
  int32_t *input_cast;         /**< one per input: index into casts; -1 = no cast */
  mp_autocast_cast_t *casts;   /**< room for num_tensors; ordered by tensor */
  uint8_t *node_reason;        /**< num_nodes: mp_autocast_reason_t */
  int32_t *node_cause;         /**< num_nodes: a node that caused the type, or -1 */
  const char *disabled_reason; /**< out: static storage; NULL if autocast is enabled */
} mp_autocast_result_t;

/** Determines the type of each node and the required casts.
 *  @param context  optional: device of the performance condition; NULL = none.
 *  @param graph    host.
 *  @param result   host, out.
 *  @retval MP_ERROR_INVALID_ARGUMENT a value is out of range (the message names array and index),
 *          or MP_AUTOCAST_LEVEL_FORCE_ALL with MP_BF16 */
MP_API mp_status_t mp_autocast_rewrite(mp_autocast_t policy, mp_context_t context,
                                       const mp_autocast_graph_t *graph,
                                       mp_autocast_result_t *result);

/** Format of a report. */
typedef enum mp_autocast_format {
  /** One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and
   *  a summary. */
  MP_AUTOCAST_FORMAT_TEXT = 1,
  MP_AUTOCAST_FORMAT_JSON = 2,
  MP_AUTOCAST_FORMAT_DOT = 3 /**< for Graphviz: low precision green, fp32 red, casts on the edges */
} mp_autocast_format_t;

/** Writes a report: the type of each node and the reason.
 *  @param graph   host: the graph that was rewritten, unchanged.
 *  @param result  host: the result of mp_autocast_rewrite; its arrays are not read.
 *  @param text    host, optional, out: NUL-terminated; NULL only returns the size.
 *  @param bytes   host.  In: size of text.  Out: required size, including the NUL.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL *bytes is smaller than the required size */
MP_API mp_status_t mp_autocast_explain(mp_autocast_t policy, const mp_autocast_graph_t *graph,
                                       const mp_autocast_result_t *result,
                                       mp_autocast_format_t format, char *text, size_t *bytes);

/** Determines the casts of a single operation, for programs that execute eagerly:
 *
 *      MP_OP_CLASS_ALLOW    inputs and output in low precision
 *      MP_OP_CLASS_DENY     inputs and output in fp32
 *      otherwise            inputs of one type stay unchanged; inputs of several types become fp32
 *
 *  Inputs of MP_DTYPE_NONE (any other type, such as fp64), MP_INT32 and MP_INT64 stay unchanged.
 *  The performance condition and the level are ignored, but MP_AUTOCAST=off disables all casts.
 *
 *  @param input_dtype  host, count values of mp_dtype_t; NULL if count is 0.
 *  @param cast_to      host, out, count values of mp_dtype_t; MP_DTYPE_NONE = no cast.
 *  @param output       host, out: type of the output; MP_DTYPE_NONE if no input has a
 *                      floating-point type of mp_dtype_t.
 *  @retval MP_ERROR_UNSUPPORTED the operation is unsafe in 16 bits; the message names a
 *          replacement */
MP_API mp_status_t mp_autocast_op(mp_autocast_t policy, const char *op_type,
                                  const uint8_t *input_dtype, uint32_t count, uint8_t *cast_to,
                                  mp_dtype_t *output);

/** @} */

MP_END_C

#endif /* MPCORE_AUTOCAST_H */
