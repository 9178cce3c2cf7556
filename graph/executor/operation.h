// Operations: one row each, with at most three functions: emit, infer and differentiate.
//
// The rows and functions of a family are in one file; operations.cpp lists the families.  To add an
// operation, add its row and that of its gradient, and list both in rewrite/op_lists.inc.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtypes.h"
#include "graph/executor/graph_data.h"

namespace mp::graph {

class Gradients;
class Emitter;

struct Attribute {
  std::string_view name;
  mp_attribute_kind_t kind;
  int64_t initial_int, min_int, max_int;  ///< INT, and limits of the elements of INTS
  double initial, min, max;               ///< FLOAT
};

constexpr Attribute integer(std::string_view name, int64_t initial, int64_t min, int64_t max) {
  return {name, MP_ATTRIBUTE_KIND_INT, initial, min, max, 0, 0, 0};
}
constexpr Attribute real(std::string_view name, double initial, double min, double max) {
  return {name, MP_ATTRIBUTE_KIND_FLOAT, 0, 0, 0, initial, min, max};
}
/// Returns a list of at most MP_GRAPH_MAX_RANK elements, empty by default.
constexpr Attribute integers(std::string_view name, int64_t min, int64_t max) {
  return {name, MP_ATTRIBUTE_KIND_INTS, 0, min, max, 0, 0, 0};
}

/// Number of enumerators up to the last type of tensors that graphs compute.
constexpr size_t kNumTypes = kLastFloatType + 1;

/// Largest 32-bit integer attribute.
constexpr int64_t kMaxInt32 = 2147483647;

/// Properties of an input or output; bits.
enum PortFlags : uint8_t {
  kOptional = 1 << 0,  ///< may be absent; gradient that is computed only if it is needed
  kFp32 = 1 << 1,      ///< autocast: MP_AUTOCAST_SLOT_FP32
  kUnbound = 1 << 2,   ///< may be unbound when the node runs
  kTriggers = 1 << 3,  ///< the node computes nothing while it is unbound
  kKept = 1 << 4,      ///< output that forward keeps for backward; callers see it if kOptional
  kBytes = 1 << 5,     ///< output of MP_DTYPE_NONE that emit() sizes
};

/// Input or output of an operation.
struct Port {
  const char *name = nullptr;  ///< nullptr after the last one
  uint8_t flags = 0;
  bool has(PortFlags flag) const { return (flags & flag) != 0; }
};
constexpr size_t kMaxPorts = 12;

/// Index of an input or output that an operation does not have.
constexpr size_t kAbsent = ~size_t{0};

/// Number of terms of a sum, for autocast.
enum class Depth {
  unknown,
  columns,  ///< columns of the first input
  inner,    ///< columns of the first matrix, or rows if it is transposed
  rows,     ///< rows of the last input
  filter,   ///< elements of the second input for each of its rows in dimension 0
  weights   ///< columns of the second and third input
};

/// Role in fusion.cpp.
enum class Fusion {
  none,
  product,           ///< absorbs a bias and an activation
  input_gradient,    ///< product that absorbs a derivative and the sum of its rows
  bias_gradient,     ///< sum of the rows of the last input, as the last output
  norm,              ///< absorbs a ReLU
  norm_gradient,     ///< absorbs the derivative of a ReLU
  row_norm,          ///< absorbs the sum that it reads, and a dropout of a term
  row_norm_gradient  ///< absorbs the sum of its gradient with another, and a dropout of this sum
};

/// Properties of an operation that few have.
struct Traits {
  int32_t variant = 0;  ///< enumerator for functions that several operations share
  /// Activation that a preceding product can compute in its epilogue: a function of the input, or
  /// the first input times a derivative at the second.
  mp_activation_t activation = MP_ACT_NONE;
  uint16_t flags = 0;  ///< autocast: mp_node_flags_t
  Depth depth = Depth::unknown;
  Fusion fusion = Fusion::none;
  bool is_loss = false;  ///< backward computes the first output with its gradient
  bool is_view = false;  ///< the output is the input with another shape
  /// The computation and the first output have the type of the first input.
  bool writes_as_it_reads = false;
  bool reads_one_type = false;  ///< likewise all other inputs without kFp32
};

/// Flags of operations with writes_as_it_reads.
constexpr uint16_t kEitherType = MP_NODE_FLAG_READS_EITHER | MP_NODE_FLAG_WRITES_EITHER;

/// Appends the node TypeGrad, if a gradient that it computes is needed.  A port of that operation
/// has the name of an input or output of `node`, or "d" and such a name for its gradient.
void append_gradient_node(Gradients &gradients, const Node &node);

/// Row of the table of operations.
struct Operation {
  std::string_view type;
  Port inputs[kMaxPorts] = {}, outputs[kMaxPorts] = {};
  std::span<const Attribute> attributes = {};
  /// Emits the calls of a node; nullptr for views.
  void (*emit)(Emitter &emitter, const Node &node) = nullptr;
  Traits traits = {};
  /// Sets the extents of the outputs; fails if the inputs do not match.  Called when the node is
  /// added, and for every other batch size.  nullptr: operation of the backward pass, whose outputs
  /// are gradients.
  void (*infer)(Graph &graph, const Node &node) = nullptr;
  /// Appends nodes that compute the gradients of the inputs from those of the outputs.  By default,
  /// the operation TypeGrad computes all of them.  Not called for operations of the backward pass.
  void (*differentiate)(Gradients &gradients, const Node &node) = append_gradient_node;

  bool input_has(size_t i, PortFlags flag) const { return i < kMaxPorts && inputs[i].has(flag); }
  uint8_t input_slot(size_t i) const { return input_has(i, kFp32) ? MP_AUTOCAST_SLOT_FP32 : 0; }
  uint8_t output_slot(size_t i) const {
    return i < kMaxPorts && outputs[i].has(kFp32) ? MP_AUTOCAST_SLOT_FP32 : 0;
  }
};

/// Allowed number of inputs or outputs.
struct Arity {
  size_t min, max;
};
Arity arity_of(std::span<const Port, kMaxPorts> ports);

/// Families of operations; each has one file.
std::span<const Operation> product_operations();    ///< Linear, MatMul, Conv2D, BiasAddGrad
std::span<const Operation> image_operations();      ///< pooling, BatchNorm
std::span<const Operation> pointwise_operations();  ///< activations, arithmetic, gated units, views
std::span<const Operation> sequence_operations();   ///< attention, Embedding, Dropout
std::span<const Operation> row_operations();        ///< LayerNorm, RMSNorm, Softmax, LogSoftmax
std::span<const Operation> layout_operations();     ///< Concat to Transpose, Sum, Mean
std::span<const Operation> recurrent_operations();  ///< LSTM, GRU, RNN
std::span<const Operation> loss_operations();       ///< SoftmaxXent, LinearXent, MSE, L1, ...

/// Returns nullptr for unknown operations and for those of the backward pass.
const Operation *find_operation(std::string_view type);
/// Returns any operation, including those of the backward pass.
const Operation &operation(std::string_view type);

/// Returns the activation of a node, whose attributes may select another form.
mp_activation_t activation_of(const Node &node);
/// Returns the number of terms of the longest sum in a node, or 0.
int64_t depth_of(const Graph &graph, const Node &node);
/// Adds the outputs that a forward node keeps for backward.
void add_kept_outputs(Graph &graph, Node &node);

/// Fails with a message about a node.
template <class... Parts>
[[noreturn]] void fail_at(const Node &node, const Parts &...parts) {
  fail(MP_ERROR_INVALID_ARGUMENT, "node ", node.name, ": ", node.operation->type, ": ", parts...);
}

/// Returns input i, which must be floating-point with that rank; rank < 0: any rank except 0.
const Tensor &require_floats(const Graph &graph, const Node &node, size_t i, int rank = -1);
/// Returns input i, which must be an external integer tensor.
const Tensor &require_integers(const Graph &graph, const Node &node, size_t i);
/// Requires input i, if present, to be a vector of `columns` floats.
void require_vector(const Graph &graph, const Node &node, size_t i, int64_t columns);
/// Requires input i, if present, to have this shape.
void require_extent(const Graph &graph, const Node &node, size_t i, const Extent &extent);
/// Requires all extents to fit in 32 bits, for calls with 32-bit sizes.
void require_narrow(const Node &node, const Tensor &tensor);

inline int32_t narrow(int64_t value) {
  return static_cast<int32_t>(value);
}

inline void set_extent(Graph &graph, const Node &node, size_t output, const Extent &extent) {
  if (node.has_output(output)) graph.tensor(node.outputs[output]).extent = extent;
}

/// Infers the shape of an operation whose output has the shape of its first input.
void infer_same(Graph &graph, const Node &node);

// ---------------------------------------------------------------------------- gradients

/// Target of Operation::differentiate: appends the nodes that compute gradients, in reverse mode.
class Gradients {
 public:
  explicit Gradients(Graph &graph);

  /// Differentiates from the loss and the seeds back to the parameters.
  /// @return the gradient of each tensor, or kNone if it has none or none is needed
  std::vector<int32_t> append_all();

  /// Returns the gradient of an output, or kNone if the loss does not depend on it.
  int32_t of(const Node &node, size_t output);
  /// Returns whether the gradient of an input is needed: for a parameter, or because it is kept.
  bool is_wanted(const Node &node, size_t input) const;

  /// Adds a tensor for the gradient of an input; returns kNone if the gradient is not needed.
  int32_t new_if_wanted(const Node &node, size_t input);
  int32_t make(const Node &node, size_t input);
  /// Adds a tensor to the gradient of an input, which may have several contributions.
  void contribute(const Node &node, size_t input, int32_t gradient);

  /// Appends the node that computes the gradient of an input, if it is needed, from the gradient of
  /// output 0 and `others`.
  void append_gradient(const Node &node, size_t input, std::string_view type, std::string_view word,
                       std::initializer_list<int32_t> others);
  /// Appends a node that belongs to `node` and has its attributes.
  /// @param word  suffix of the new node's name, after the name of `node`
  void append(const Node &node, std::string_view type, std::string_view word,
              const std::vector<int32_t> &inputs, const std::vector<int32_t> &outputs);

  Graph &graph() { return graph_; }

 private:
  void append_seeds();
  int32_t sum_of(int32_t tensor);
  /// Returns the root of a chain of views, or the tensor itself if it has memory.
  int32_t memory_of(int32_t tensor) const;
  /// Copies a gradient, so that a list of gradients contains it only once.
  /// @param of  tensor whose gradient is copied
  int32_t copy_of(int32_t gradient, int32_t of);
  /// Returns the name of a node that belongs to the producer of a tensor.
  std::string name_after(int32_t tensor, const char *word) const;

  int32_t new_gradient(int32_t tensor);

  Graph &graph_;
  std::vector<std::vector<int32_t>> parts_;  ///< contributions to the gradient of each tensor
  std::vector<bool> is_wanted_;
  int32_t current_ = kNone;
};

}  // namespace mp::graph
