/* mpcore/autocast.h: which type each operation of a graph runs in. */
#ifndef MPCORE_AUTOCAST_H
#define MPCORE_AUTOCAST_H

#include "core.h"
#include "scaler.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup autocast 11. Autocast: which type each operation of a graph runs in
 *
 *  For programs that have a graph and an executor of their own.  Arrays that describe an fp32 graph go
 *  in; arrays that say what runs in 16 bits, where a cast belongs, and why, come out:
 *
 *      mp_autocast_t policy;
 *      mp_autocast_create(&policy, NULL);                      // fp16, mpcore's own lists
 *      mp_autocast_rewrite(policy, NULL, &graph, &result);
 *
 *  Nothing here launches, waits, or keeps a pointer of the caller; all memory is the host's, and no
 *  context is needed.  The cost is linear in nodes, inputs and tensors, and the same arrays always
 *  give the same arrays.  docs/autocast.md has the algorithm, step by step, and examples.
 *
 *  **Words.**  *low* is the 16-bit type, MP_FP16 or MP_BF16.  A *tensor* has one producer, or comes
 *  from outside, and any number of readers.  Inputs and outputs of a node that have the same *slot*
 *  have one common type; most operations have slot 0 alone.  A node *takes part* with every slot that
 *  an MP_FP32 tensor is read or written on; colour travels along MP_FP32 tensors and hidden edges.
 *
 *  @source TensorFlow, grappler's auto_mixed_precision; torch.amp.autocast; NVIDIA ModelOpt AutoCast.
 *
 *  @{ */

/** What an operation makes of a 16-bit type. */
typedef enum mp_autocast_class {
  MP_CAST_UNLISTED = 0, /**< fp32, whatever stands around it */
  MP_CAST_ALLOW = 1,    /**< always low: it is safe, and faster */
  MP_CAST_INFER = 2,    /**< low between low ones, unless it feels an MP_CAST_DENY */
  MP_CAST_DENY = 3, /**< fp32, and so are the MP_CAST_INFER and what lies before these, behind it */
  MP_CAST_CLEAR = 4, /**< no numerical effect: takes the colour of its neighbours */
  /** MP_AUTOCAST_PYTORCH: low where all its floating-point inputs are.  Elsewhere MP_CAST_INFER. */
  MP_CAST_PROMOTE = 5
} mp_autocast_class_t;

/** Whose lists of operations, and whose way of colouring. */
typedef enum mp_autocast_preset {
  /** Names of mpcore, ONNX, TensorFlow and PyTorch at once.  Softmax, norms over a row, losses and
   *  sums are MP_CAST_DENY; batch norm is MP_CAST_INFER; products, convolutions, attention and
   *  recurrent layers are MP_CAST_ALLOW. */
  MP_AUTOCAST_DEFAULT = 0,
  MP_AUTOCAST_TENSORFLOW = 1,      /**< lists of TensorFlow 2.21 for fp16 */
  MP_AUTOCAST_TENSORFLOW_BF16 = 2, /**< lists of TensorFlow 2.21 for bf16 */
  /** Lists of torch.amp in PyTorch 2.11 on a GPU, names without overload, and compositions of
   *  listed operations, such as cross_entropy and interpolate.  MP_CAST_DENY does not spread, and
   *  one sweep forward replaces the colouring: a node is low if it is MP_CAST_ALLOW, or else if all
   *  its floating-point inputs are low and no list holds it in fp32.  An unknown operation is
   *  MP_CAST_CLEAR. */
  MP_AUTOCAST_PYTORCH = 3,
  MP_AUTOCAST_ONNX = 4 /**< names of ONNX, with the block list of onnxconverter-common unlisted */
} mp_autocast_preset_t;

/** How far it goes. */
typedef enum mp_autocast_level {
  MP_AUTOCAST_NORMAL = 0,
  MP_AUTOCAST_INFER_AS_DENY = 1,     /**< the careful one */
  MP_AUTOCAST_TENSOR_CORES_ONLY = 2, /**< all but MP_CAST_ALLOW is MP_CAST_UNLISTED */
  /** For tests, fp16 alone: everything that can, but constants, state and cross-entropies. */
  MP_AUTOCAST_FORCE_ALL = 3
} mp_autocast_level_t;

/** Bits of mp_autocast_config.flags. */
typedef enum mp_autocast_flags {
  MP_AUTOCAST_NO_ENVIRONMENT = 1 << 0,     /**< the variables of mp_autocast_create are not read */
  MP_AUTOCAST_IGNORE_PERFORMANCE = 1 << 1, /**< no gate: see mp_autocast_gate */
  /** Tensors of role MP_TENSOR_OUTPUT leave the graph in fp32: the outside is one more reader. */
  MP_AUTOCAST_KEEP_IO = 1 << 2,
  /** For machines without 16-bit arithmetic: low nodes run in fp32 on rounded values.  See
   *  mp_autocast_result. */
  MP_AUTOCAST_EMULATE = 1 << 3
} mp_autocast_flags_t;

/** What a policy starts from. */
typedef struct mp_autocast_config {
  uint32_t struct_size;
  mp_autocast_preset_t preset;
  mp_dtype_t low; /**< MP_FP16 or MP_BF16 */
  mp_autocast_level_t level;
  uint32_t flags; /**< mp_autocast_flags_t, or-ed */
  /** A node that reads or writes a tensor with a larger known |x| is MP_CAST_DENY.  0 = do not look.
   *  65504 / 64 leaves activations six bits to grow. */
  float amax_limit;
  int64_t depth_limit; /**< a node that sums more terms is MP_CAST_DENY; 0 = do not look */
} mp_autocast_config_t;

/** Preset MP_AUTOCAST_DEFAULT, level MP_AUTOCAST_NORMAL, no flags and no limits. */
MP_API mp_status_t mp_autocast_config_init(mp_autocast_config_t *config, size_t struct_size,
                                           mp_dtype_t low);
static inline mp_autocast_config_t mp_autocast_config_default(mp_dtype_t low) {
  mp_autocast_config_t config;
  mp_autocast_config_init(&config, sizeof config, low);
  return config;
}

/** The loss scaler that belongs to `low`: for MP_FP16 what TensorFlow's rewrite calls "dynamic",
 *  MP_SCALER_PRESET_KERAS; for MP_BF16, and where all stays MP_FP32, S = 1.
 *  @retval MP_ERROR_INVALID_ARGUMENT low is another type */
MP_API mp_status_t mp_autocast_scaler_init(mp_scaler_config_t *config, size_t struct_size,
                                           mp_dtype_t low);
static inline mp_scaler_config_t mp_autocast_scaler_default(mp_dtype_t low) {
  mp_scaler_config_t config;
  mp_autocast_scaler_init(&config, sizeof config, low);
  return config;
}

/** Lists and a level.  Once it has been used it does not change, and threads may share it. */
typedef struct mp_autocast *mp_autocast_t;

/** Unless MP_AUTOCAST_NO_ENVIRONMENT is set, the environment is read here.  It wins over `config` and
 *  loses to mp_autocast_set_class and mp_autocast_set_nodes.
 *
 *      MP_AUTOCAST=off|fp16|bf16
 *      MP_AUTOCAST_LEVEL=normal|infer_as_deny|tensor_cores_only|force_all
 *      MP_AUTOCAST_ALLOW_ADD, _ALLOW_REMOVE, and so for INFER, DENY, CLEAR =Op,Op
 *      MP_AUTOCAST_IGNORE_PERFORMANCE=1
 *      MP_AUTOCAST_LOG=folder       every rewrite leaves its lists, its report and two pictures there
 *
 *  With the presets of TensorFlow the variables TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_ of the same
 *  meaning (LEVEL, ALLOWLIST_ADD, WHITELIST_ADD, ..., IGNORE_PERFORMANCE, LOG_PATH) are read first.
 *
 *  @param config  host, optional; NULL = mp_autocast_config_default(MP_FP16).
 *  @retval MP_ERROR_INVALID_ARGUMENT a variable has another value, or adds an operation that is in
 *          another list and is not removed there */
MP_API mp_status_t mp_autocast_create(mp_autocast_t *policy, const mp_autocast_config_t *config);
MP_API void mp_autocast_destroy(mp_autocast_t policy);

/** Put operations into a class, out of the one that they are in.
 *  @param op_types  host, `count` names, any but NULL; copied.
 *  @retval MP_ERROR_INVALID_ARGUMENT also where the policy has been used */
MP_API mp_status_t mp_autocast_set_class(mp_autocast_t policy, const char *const *op_types,
                                         uint32_t count, mp_autocast_class_t op_class);
/** Give nodes a class by their name, whatever their operation; where several patterns match, the one
 *  that was set last wins.  `encoder/` in 16 bits, `decoder/` in fp32.
 *  @param pattern  host, copied.  * is any text, ? any character, [a-z] one of these, [!a-z] none of
 *                  these, as in a shell; * also matches "/".
 *  @retval MP_ERROR_INVALID_ARGUMENT also where the policy has been used, or a [ is not closed */
MP_API mp_status_t mp_autocast_set_nodes(mp_autocast_t policy, const char *pattern,
                                         mp_autocast_class_t node_class);
/** The class of an operation before the level is applied.  Names are case-sensitive.
 *  MP_CAST_UNLISTED for an unknown one, for NULL, and without a policy; with MP_AUTOCAST_PYTORCH an
 *  unknown one is MP_CAST_CLEAR. */
MP_API mp_autocast_class_t mp_autocast_class(mp_autocast_t policy, const char *op_type);

/** Whether 16 bits are worth it on a device.  fp16 needs Tensor Cores, sm_70; bf16 needs sm_80; the
 *  host target has no faster 16-bit arithmetic.  It is a question of speed, so a closed gate is no
 *  error: a rewrite then changes nothing, and the log has one warning.
 *  @param context         optional; NULL: any device, so only the environment can close it.
 *  @param closed_because  host, out: one clause in static storage; NULL = open. */
MP_API mp_status_t mp_autocast_gate(mp_autocast_t policy, mp_context_t context,
                                    const char **closed_because);

/** Bits of mp_autocast_graph.node_flags. */
typedef enum mp_node_flags {
  MP_NODE_KEEP = 1 << 0,      /**< is not to be touched: fetched, fed, or the caller's wish */
  MP_NODE_ELSEWHERE = 1 << 1, /**< runs on another device, and is not touched either */
  MP_NODE_NO_LOW = 1 << 2,    /**< has no 16-bit kernel: fp32; its class still spreads */
  MP_NODE_CAST = 1 << 3,      /**< converts to the type of its output */
  /** Reads a variable in place (Identity or Enter of TensorFlow's reference variables): low does not
   *  spread through it. */
  MP_NODE_READS_VARIABLE = 1 << 4,
  MP_NODE_BACK_EDGE = 1 << 5,    /**< of a loop: follows the others (NextIteration) */
  MP_NODE_READS_EITHER = 1 << 6, /**< reads fp32 and low alike, but for MP_SLOT_FP32 */
  MP_NODE_WRITES_EITHER = 1 << 7 /**< writes fp32 or low as it is told, like mp_gemm's dtype_cd */
} mp_node_flags_t;

/** What a tensor is besides a value. */
typedef enum mp_tensor_role {
  MP_TENSOR_ACTIVATION = 0,
  MP_TENSOR_PARAMETER = 1, /**< an optimizer has its master, and can keep a 16-bit copy */
  MP_TENSOR_OUTPUT = 2     /**< read from outside */
} mp_tensor_role_t;

/** The slot of inputs and outputs that are fp32 always: statistics of a batch norm, gain of a layer
 *  norm.  Whatever the class of its node, 16 bits spread neither from this slot nor to it. */
#define MP_SLOT_FP32 255

/** A graph: flat arrays of the host, which are not kept.  It may have cycles.  MP_INIT_STRUCT it. */
typedef struct mp_autocast_graph {
  uint32_t struct_size;
  uint32_t num_nodes, num_tensors; /**< each at most 2^31 - 1 */
  uint32_t num_hidden_edges;
  uint32_t num_clusters;
  uint32_t reserved0;           /**< must be 0 */
  const char *const *node_op;   /**< operations; may be NULL where node_class says a class */
  const uint8_t *node_class;    /**< optional: 1 + mp_autocast_class_t; 0 = by node_op */
  const char *const *node_name; /**< optional, as each of its names: for patterns and reports */
  const uint16_t *node_flags;   /**< optional: mp_node_flags_t, or-ed */
  const int64_t *node_depth;    /**< optional: terms of a sum (k of a product); 0 = not known */
  /** num_nodes + 1, ascending from 0: inputs of node i are [first_input[i], first_input[i + 1]). */
  const int32_t *first_input;
  const int32_t *input_tensor;    /**< -1: an optional input that is absent */
  const uint8_t *input_slot;      /**< optional: 0 */
  const int32_t *tensor_producer; /**< node; -1: from outside */
  const uint8_t *tensor_slot;     /**< optional: 0; the slot of its producer that writes it */
  /** mp_dtype_t.  MP_FP32 takes part; MP_FP16 and MP_BF16 stay; MP_DTYPE_NONE is anything else. */
  const uint8_t *tensor_dtype;
  const uint8_t *tensor_role; /**< optional: mp_tensor_role_t */
  const float
      *tensor_amax; /**< optional: largest |x| that mp_inspect has seen; NaN or < 0: unknown */
  /** num_hidden_edges nodes each: colour travels from the slot 0 of one to that of the other, and no
   *  data that this graph shows; through a container, or through state. */
  const int32_t *hidden_src, *hidden_dst;
  /** Clusters of nodes whose slots 0 have one colour; num_clusters + 1, as first_input. */
  const int32_t *first_member;
  const int32_t *member;
  /** optional; 0: a container, such as a list of tensors.  A member that is denied, is not to be
   *  touched or has no 16-bit kernel denies all; else one that is low makes all low, of any class.
   *  1: a loop.  If all members without MP_NODE_BACK_EDGE are low, and the others can be, they are
   *  too; else none is. */
  const uint8_t *cluster_kind;
} mp_autocast_graph_t;

/** How a tensor comes to its other type. */
typedef enum mp_cast_kind {
  MP_CAST_BY_KERNEL = 1, /**< mp_cast, once for all readers */
  /** No kernel: the 16-bit copy that the optimizer keeps of its master (mp_optimizer_desc.model). */
  MP_CAST_BY_MODEL_COPY = 2
} mp_cast_kind_t;

/** One cast.  Without struct_size: 20 bytes in every version. */
typedef struct mp_autocast_cast {
  int32_t tensor;
  mp_dtype_t from, to;
  mp_cast_kind_t kind;
  int32_t readers; /**< inputs that read the result, and the outside with MP_AUTOCAST_KEEP_IO */
} mp_autocast_cast_t;

/** Why a node has its type.  Below 32 it stays fp32.  node_because names the node in []. */
typedef enum mp_autocast_why {
  MP_WHY_UNLISTED = 1,        /**< no list names its operation */
  MP_WHY_DENY_LIST = 2,       /**< MP_CAST_DENY, by list, pattern or node_class */
  MP_WHY_DENY_UPSTREAM = 3,   /**< behind an MP_CAST_DENY [it] */
  MP_WHY_RANGE = 4,           /**< a tensor with |x| > amax_limit */
  MP_WHY_DEPTH = 5,           /**< more terms than depth_limit */
  MP_WHY_KEPT = 6,            /**< MP_NODE_KEEP */
  MP_WHY_ELSEWHERE = 7,       /**< MP_NODE_ELSEWHERE */
  MP_WHY_NO_KERNEL = 8,       /**< MP_NODE_NO_LOW */
  MP_WHY_NO_ALLOW_NEARBY = 9, /**< could be low, but nothing low is near enough */
  MP_WHY_NOT_FLOAT = 10,      /**< reads and writes no MP_FP32 tensor */
  MP_WHY_GATE = 11,           /**< see mp_autocast_result.gate */
  MP_WHY_CLUSTER_FP32 = 12,   /**< of a cluster that cannot be low [the member that cannot] */

  MP_WHY_ALLOW_LIST = 32, /**< MP_CAST_ALLOW, by list or node_class */
  MP_WHY_BETWEEN_ALLOW =
      33, /**< MP_CAST_INFER or _CLEAR between two low ones [the one behind it] */
  MP_WHY_FOLLOWS_ALLOW = 34,    /**< its inputs are low: bf16, or MP_AUTOCAST_PYTORCH [the first] */
  MP_WHY_CLEAR_BESIDE_LOW = 35, /**< MP_CAST_CLEAR beside a low one [it] */
  MP_WHY_CLUSTER_LOW = 36,      /**< of a cluster that is low [the member that was] */
  MP_WHY_CAST_ABSORBED = 37,    /**< a cast to fp32 all whose readers are low [the first] */
  MP_WHY_PATTERN = 38           /**< MP_CAST_ALLOW by mp_autocast_set_nodes */
} mp_autocast_why_t;

/** What a rewrite says.  Every array is the caller's and optional.  MP_INIT_STRUCT it.
 *
 *  A reader j of tensor t gets tensor_dtype[t], or if input_cast[j] >= 0 what that cast makes of it;
 *  at most one cast belongs to a tensor.
 *
 *  With MP_AUTOCAST_EMULATE there are more: `casts` needs room for 2 num_tensors + the number of
 *  inputs.  Every tensor stays MP_FP32.  One that a low node writes for any reader, or reads from an
 *  fp32 node, is cast to low once.  A cast whose `from` is low reads the result of that one: one for
 *  each input of a low node, and one for all fp32 readers of what a low node writes. */
typedef struct mp_autocast_result {
  uint32_t struct_size;
  int32_t num_casts;          /**< out */
  int32_t num_low_nodes;      /**< out */
  int32_t num_parameters_low; /**< out: casts of kind MP_CAST_BY_MODEL_COPY */
  uint8_t *tensor_dtype;      /**< num_tensors: what the producer writes */
  /** num_nodes: MP_FP32, or low; of slot 0, or where nothing takes part there of the lowest slot that
   *  does.  A node without such a slot is MP_FP32, but in a container that is low it is low: an
   *  empty list of 16-bit tensors. */
  uint8_t *node_dtype;
  int32_t *input_cast;       /**< one per input: an index of casts; -1: reads what is written */
  mp_autocast_cast_t *casts; /**< room for num_tensors; in order of tensors */
  uint8_t *node_why;         /**< num_nodes: mp_autocast_why_t */
  int32_t *node_because;     /**< num_nodes: the node that did it, one if there are several; -1 */
  const char *gate;          /**< out: why nothing was changed, in static storage; NULL */
} mp_autocast_result_t;

/** Which nodes run in 16 bits, and the casts between.
 *  @param context  optional: the gate is that of its device; NULL = none.
 *  @param graph    host.
 *  @param result   host, out.
 *  @retval MP_ERROR_INVALID_ARGUMENT something is out of range, named with its array and index; or
 *          MP_AUTOCAST_FORCE_ALL with MP_BF16 */
MP_API mp_status_t mp_autocast_rewrite(mp_autocast_t policy, mp_context_t context,
                                       const mp_autocast_graph_t *graph,
                                       mp_autocast_result_t *result);

/** How a report is written. */
typedef enum mp_autocast_form {
  /** One line per node, "conv1/bn  FusedBatchNormV3  fp16  between conv1/conv and conv2/conv", and a
   *  summary. */
  MP_AUTOCAST_TEXT = 0,
  MP_AUTOCAST_JSON = 1,
  MP_AUTOCAST_DOT = 2 /**< a picture for Graphviz: low green, fp32 red, casts on their edges */
} mp_autocast_form_t;

/** The report on a rewrite.
 *  @param graph   host, as it was rewritten.
 *  @param result  host: of its rewrite.  Its arrays are not read.
 *  @param text    host, optional, out: NUL-terminated.
 *  @param bytes   host.  In: room in text.  Out: what is needed, the NUL included.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL text has less room */
MP_API mp_status_t mp_autocast_explain(mp_autocast_t policy, const mp_autocast_graph_t *graph,
                                       const mp_autocast_result_t *result, mp_autocast_form_t form,
                                       char *text, size_t *bytes);

/** One operation without a graph, for hosts that execute as they go.
 *
 *      MP_CAST_ALLOW        every input low; the output too
 *      MP_CAST_DENY         every input fp32; the output too
 *      otherwise            inputs of one type stay as they are; of several types, all become fp32
 *
 *  An input that is MP_DTYPE_NONE, an integer or fp64, is left alone.  Gate and level do not count
 *  here, but for MP_AUTOCAST=off, which leaves everything alone.
 *
 *  @param input_dtype  host, `count` of mp_dtype_t; NULL for 0.
 *  @param cast_to      host, out, as many: mp_dtype_t; MP_DTYPE_NONE = leave.
 *  @param output       host, out: what the output is; MP_DTYPE_NONE where no input is of a type.
 *  @retval MP_ERROR_UNSUPPORTED the operation is banned; mp_last_error says what to use instead */
MP_API mp_status_t mp_autocast_op(mp_autocast_t policy, const char *op_type,
                                  const uint8_t *input_dtype, uint32_t count, uint8_t *cast_to,
                                  mp_dtype_t *output);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_AUTOCAST_H */
