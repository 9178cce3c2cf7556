// Implementation of mpcore/graph.h: validates arguments.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/autocast_object.h"
#include "graph/executor/executor.h"

using namespace mp;
using namespace mp::graph;

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

/// Runs the body of an API function, which may make other API calls.
template <class Body>
mp_status_t composite_call(const char *function, const Body &body) {
  return call(function, [&] {
    const NestedCallScope parts;
    body();
  });
}

/// Runs the body of a function that modifies a graph before it is compiled.
/// @param body  (mp_graph &)
template <class Body>
mp_status_t call_open(const char *function, mp_graph_t graph, const Body &body) {
  return composite_call(function, [&] {
    mp_graph &g = require_pointer(graph, "graph");
    MP_REQUIRE(g.executor == nullptr, MP_ERROR_INVALID_ARGUMENT,
               "graph is already compiled and cannot be modified; create a new one");
    body(g);
  });
}

/// Runs the body of a function of a compiled graph.
/// @param body  (Executor &)
template <class Body>
mp_status_t call_compiled(const char *function, mp_graph_t graph, const Body &body) {
  return composite_call(function, [&] {
    mp_graph &g = require_pointer(graph, "graph");
    MP_REQUIRE(g.executor != nullptr, MP_ERROR_INVALID_ARGUMENT,
               "graph is not compiled; call mp_graph_compile");
    body(*g.executor);
  });
}

void require_tensor(const Graph &graph, int64_t tensor, const char *name) {
  MP_REQUIRE(tensor >= 0 && tensor < static_cast<int64_t>(graph.tensors.size()),
             MP_ERROR_INVALID_ARGUMENT, name, " = ", tensor, " is outside [0, ",
             graph.tensors.size(), ")");
}

std::string read_name(const char *name) {
  require_pointer(name, "name");
  MP_REQUIRE(*name != '\0', MP_ERROR_INVALID_ARGUMENT, "name must not be empty");
  return name;
}

Tensor read_tensor(const char *name, Role role, mp_dtype_t dtype, int32_t rank,
                   const int64_t *extent) {
  Tensor t;
  t.name = read_name(name);
  t.role = role;
  t.dtype = dtype;
  require_within(rank, "rank", 0, MP_GRAPH_MAX_RANK);
  if (rank > 0) require_pointer(extent, "extent");
  int64_t numel = 1;
  for (int32_t i = 0; i < rank; ++i) {
    MP_REQUIRE(extent[i] >= 1, MP_ERROR_INVALID_ARGUMENT, "extent[", i, "] = ", extent[i],
               " must be at least 1");
    MP_REQUIRE(extent[i] <= kMaxElements / numel, MP_ERROR_INVALID_ARGUMENT, "extent[", i,
               "] = ", extent[i], ": number of elements exceeds 2^48");
    numel *= extent[i];
    t.extent.push_back(extent[i]);
  }
  return t;
}

/// Adds a tensor that the graph owns.
mp_status_t add_own(const char *function, mp_graph_t graph, const char *name, Role role,
                    int32_t rank, const int64_t *extent, int32_t *tensor) {
  return call_open(function, graph, [&](mp_graph &g) {
    require_pointer(tensor, "tensor");
    *tensor = g.described.add(read_tensor(name, role, MP_FP32, rank, extent));
  });
}

/// Returns a tensor, which must be computed by a node.
Tensor &require_computed(Graph &graph, int32_t tensor) {
  require_tensor(graph, tensor, "tensor");
  Tensor &t = graph.tensor(tensor);
  MP_REQUIRE(t.role == Role::activation, MP_ERROR_INVALID_ARGUMENT, "tensor = ", tensor,
             " must be computed by a node");
  return t;
}

/// Returns whether a tensor is an output of a loss or depends on one.  A loss propagates no
/// gradient from the readers of its outputs.
bool comes_from_loss(const Graph &graph, int32_t tensor) {
  std::vector<bool> comes(graph.tensors.size());
  for (const Node &node : graph.nodes) {
    bool from_loss = node.operation->traits.is_loss;
    node.for_each_input(
        [&](const Input &input) { from_loss |= comes[static_cast<size_t>(input.tensor)]; });
    node.for_each_output([&](int32_t output) { comes[static_cast<size_t>(output)] = from_loss; });
  }
  return comes[static_cast<size_t>(tensor)];
}

// ---------------------------------------------------------------------------- nodes

void require_number(const Operation &op, uint32_t count, Arity allowed, const char *name) {
  const bool is_exact = allowed.min == allowed.max;
  MP_REQUIRE(count >= allowed.min && count <= allowed.max, MP_ERROR_INVALID_ARGUMENT, name, " = ",
             count, ", but ", op.type, is_exact ? " takes exactly " : " takes ", allowed.min,
             is_exact ? Message::Part("") : Message::Part(" to "),
             is_exact ? Message::Part("") : Message::Part(allowed.max));
}

template <class T>
void require_range(const Node &node, const char *name, T value, T min, T max) {
  if (!(value >= min && value <= max))
    fail_at(node, name, " = ", value, " is outside [", min, ", ", max, "]");
}

/// Converts an attribute to its row; an INT is accepted for a FLOAT.
Value read_value(const Node &node, const Attribute &row, const mp_graph_attribute_t &given) {
  const bool is_widened =
      row.kind == MP_ATTRIBUTE_KIND_FLOAT && given.kind == MP_ATTRIBUTE_KIND_INT;
  if (given.kind != row.kind && !is_widened)
    fail_at(node, "kind of ", given.name, " = ", given.kind, ": must be ", row.kind);
  Value value;
  if (row.kind == MP_ATTRIBUTE_KIND_INT) {
    value.integer = given.int_value;
    require_range(node, given.name, value.integer, row.min_int, row.max_int);
  } else if (row.kind == MP_ATTRIBUTE_KIND_FLOAT) {
    value.real = is_widened ? static_cast<double>(given.int_value) : given.float_value;
    require_range(node, given.name, value.real, row.min, row.max);
  } else {
    if (given.count > MP_GRAPH_MAX_RANK)
      fail_at(node, given.name, " has ", given.count, " elements: exceeds ", MP_GRAPH_MAX_RANK);
    if (given.count > 0 && given.ints == nullptr)
      fail_at(node, "ints of ", given.name, " = NULL, but count = ", given.count);
    value.integers.assign(given.ints, given.ints + given.count);
    for (size_t i = 0; i < value.integers.size(); ++i)
      require_range(node, Message(given.name, "[", i, "]").c_str(), value.integers[i], row.min_int,
                    row.max_int);
  }
  return value;
}

void read_attributes(Node &node, const mp_graph_attribute_t *attributes, uint32_t count) {
  const auto rows = node.operation->attributes;
  for (const Attribute &row : rows) node.attributes.push_back({row.initial_int, row.initial, {}});
  std::vector<bool> is_given(rows.size());
  for (uint32_t i = 0; i < count; ++i) {
    const mp_graph_attribute_t given = read_element(attributes, i, "attributes");
    MP_REQUIRE(given.name != nullptr, MP_ERROR_INVALID_ARGUMENT, "attributes[", i, "].name = NULL");
    require_enum(given.kind, Message("attributes[", i, "].kind").c_str());
    require_zero(given.reserved0, Message("attributes[", i, "].reserved0").c_str());
    const auto row = std::ranges::find(rows, std::string_view(given.name), &Attribute::name);
    if (row == rows.end())
      fail(MP_ERROR_NOT_FOUND, "node ", node.name, ": ", node.operation->type, ": attribute ",
           given.name, " is unknown");
    const auto index = static_cast<size_t>(row - rows.begin());
    if (is_given[index]) fail_at(node, "attribute ", given.name, " must be given only once");
    is_given[index] = true;
    node.attributes[index] = read_value(node, *row, given);
  }
}

const Operation &read_operation(const char *op_type) {
  const Operation *const op = find_operation(&require_pointer(op_type, "op_type"));
  MP_REQUIRE(op != nullptr, MP_ERROR_NOT_FOUND, "op_type = ", op_type,
             " is not supported; mpcore/graph.h lists the operations");
  return *op;
}

void read_inputs(const Graph &graph, Node &node, const int32_t *inputs, uint32_t count) {
  require_pointer(inputs, "inputs");
  for (uint32_t i = 0; i < count; ++i) {
    if (inputs[i] == kNone && node.operation->input_has(i, kOptional)) {
      node.inputs.push_back({});
      continue;
    }
    require_tensor(graph, inputs[i], Message("inputs[", i, "]").c_str());
    node.inputs.push_back({inputs[i]});
  }
}

void add_node(Graph &graph, Node node, uint32_t num_outputs) {
  for (uint32_t i = 0; i < num_outputs; ++i) {
    Tensor t;
    t.name = i == 0 ? node.name : node.name + ":" + std::to_string(i);
    node.outputs.push_back(graph.add(std::move(t)));
  }
  node.operation->infer(graph, node);
  for (const int32_t output : node.outputs) {
    const Tensor &t = graph.tensor(output);
    if (t.numel() > kMaxElements) fail_at(node, "number of elements exceeds 2^48");
    if (t.extent.size() > MP_GRAPH_MAX_RANK)
      fail_at(node, "number of dimensions exceeds ", MP_GRAPH_MAX_RANK);
  }
  graph.add(std::move(node));
}

}  // namespace

// ---------------------------------------------------------------------------- construction

mp_status_t mp_graph_create(mp_graph_t *graph, mp_context_t context) {
  return call(__func__, [&] {
    require_pointer(graph, "graph");
    *graph = std::make_unique<mp_graph>(require_context(context)).release();
  });
}

void mp_graph_destroy(mp_graph_t graph) {
  call_void(__func__, [&] { delete graph; });
}

mp_status_t mp_graph_add_input(mp_graph_t graph, const char *name, mp_dtype_t dtype, int32_t rank,
                               const int64_t *extent, int32_t *tensor) {
  return call_open(__func__, graph, [&](mp_graph &g) {
    require_enum(dtype, "dtype", MP_DTYPE_NONE, kLastFloatType);
    Tensor t = read_tensor(name, Role::input, dtype, rank, extent);
    int64_t &batch = g.described.batch;
    MP_REQUIRE(rank == 0 || batch == 0 || batch == t.extent[0], MP_ERROR_INVALID_ARGUMENT,
               "extent[0] = ", t.extent[0], " must equal the batch size of the other inputs, ",
               batch);
    require_pointer(tensor, "tensor");
    const int64_t known = rank > 0 ? t.extent[0] : batch;
    *tensor = g.described.add(std::move(t));
    batch = known;
  });
}

mp_status_t mp_graph_add_parameter(mp_graph_t graph, const char *name, int32_t rank,
                                   const int64_t *extent, int32_t *tensor) {
  return add_own(__func__, graph, name, Role::parameter, rank, extent, tensor);
}

mp_status_t mp_graph_add_state(mp_graph_t graph, const char *name, int32_t rank,
                               const int64_t *extent, int32_t *tensor) {
  return add_own(__func__, graph, name, Role::state, rank, extent, tensor);
}

mp_status_t mp_graph_add_node(mp_graph_t graph, const char *op_type, const char *name,
                              const int32_t *inputs, uint32_t num_inputs,
                              const mp_graph_attribute_t *attributes, uint32_t num_attributes,
                              int32_t *outputs, uint32_t num_outputs) {
  return call_open(__func__, graph, [&](mp_graph &g) {
    Node node = {};
    node.operation = &read_operation(op_type);
    node.name = read_name(name);
    const Operation &op = *node.operation;
    require_number(op, num_inputs, arity_of(op.inputs), "num_inputs");
    require_number(op, num_outputs, arity_of(op.outputs), "num_outputs");
    require_pointer(outputs, "outputs");
    read_inputs(g.described, node, inputs, num_inputs);
    read_attributes(node, attributes, num_attributes);
    const size_t known = g.described.tensors.size();
    try {
      add_node(g.described, std::move(node), num_outputs);
    } catch (...) {
      g.described.tensors.resize(known);
      throw;
    }
    for (uint32_t i = 0; i < num_outputs; ++i) outputs[i] = static_cast<int32_t>(known + i);
  });
}

mp_status_t mp_graph_add_output(mp_graph_t graph, int32_t tensor) {
  return call_open(__func__, graph,
                   [&](mp_graph &g) { require_computed(g.described, tensor).is_output = true; });
}

mp_status_t mp_graph_keep_gradient(mp_graph_t graph, int32_t tensor) {
  return call_open(__func__, graph, [&](mp_graph &g) {
    require_computed(g.described, tensor).keeps_gradient = true;
  });
}

mp_status_t mp_graph_set_loss(mp_graph_t graph, int32_t tensor) {
  return call_open(__func__, graph, [&](mp_graph &opened) {
    Graph &g = opened.described;
    require_tensor(g, tensor, "tensor");
    const int32_t producer = g.tensor(tensor).producer;
    MP_REQUIRE(producer != kNone && g.node(producer).operation->traits.is_loss &&
                   g.node(producer).outputs[0] == tensor,
               MP_ERROR_INVALID_ARGUMENT, "tensor = ", tensor,
               " must be the first output of a loss");
    g.loss = tensor;
  });
}

mp_status_t mp_graph_seed_gradient(mp_graph_t graph, int32_t tensor, int32_t *input) {
  return call_open(__func__, graph, [&](mp_graph &opened) {
    Graph &g = opened.described;
    Tensor &of = require_computed(g, tensor);
    MP_REQUIRE(!comes_from_loss(g, tensor), MP_ERROR_INVALID_ARGUMENT, "tensor = ", tensor, " (",
               of.name,
               ") must not be an output of a loss or depend on one; call mp_graph_set_loss");
    for (const Graph::Seed &seed : g.seeds)
      MP_REQUIRE(seed.tensor != tensor, MP_ERROR_INVALID_ARGUMENT, "tensor = ", tensor, " (",
                 of.name, ") already has gradient ", seed.input);
    require_pointer(input, "input");
    Tensor gradient;
    gradient.name = of.name + "/seed";
    gradient.role = Role::input;
    gradient.extent = of.extent;
    gradient.gradient_of = tensor;
    of.is_output = true;
    g.seeds.push_back({tensor, g.add(std::move(gradient))});
    *input = g.seeds.back().input;
  });
}

mp_status_t mp_graph_set_autocast(mp_graph_t graph, mp_autocast_t policy) {
  return call_open(__func__, graph, [&](mp_graph &g) {
    const auto &config = require_pointer(policy, "policy").policy.config;
    MP_REQUIRE((config.flags & MP_AUTOCAST_FLAG_EMULATE) == 0, MP_ERROR_UNSUPPORTED,
               "policy: MP_AUTOCAST_FLAG_EMULATE is not supported by graphs");
    g.policy = policy;
  });
}

mp_status_t mp_graph_measure_kernels(mp_graph_t graph, int32_t max_kernels) {
  return call_open(__func__, graph, [&](mp_graph &g) {
    require_not_negative(max_kernels, "max_kernels");
    g.measured_kernels = max_kernels;
  });
}

mp_status_t mp_graph_compile(mp_graph_t graph) {
  return call_open(__func__, graph, [&](mp_graph &g) {
    g.executor = std::make_unique<Executor>(g.described, g.policy, &g.context, g.measured_kernels);
  });
}

// ---------------------------------------------------------------------------- execution

mp_status_t mp_graph_bind(mp_graph_t graph, int32_t tensor, const void *data) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    require_tensor(e.graph(), tensor, "tensor");
    const Tensor &t = e.graph().tensor(tensor);
    MP_REQUIRE(t.role == Role::input, MP_ERROR_INVALID_ARGUMENT, "tensor = ", tensor, " (", t.name,
               ") is not an input of the graph");
    // Integer scalars are offsets of dropout masks, which have 64 bits; other integers have 32.
    const size_t integer_size = t.extent.empty() ? sizeof(uint64_t) : sizeof(int32_t);
    require_aligned(data, "data", t.dtype != MP_DTYPE_NONE ? mp_dtype_size(t.dtype) : integer_size);
    e.bind(tensor, data);
  });
}

mp_status_t mp_graph_set_batch(mp_graph_t graph, int64_t batch) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    require_within(batch, "batch", 1, graph->described.batch);
    e.set_batch(graph->described, batch);
  });
}

mp_status_t mp_graph_write(mp_graph_t graph, int32_t tensor, const float *values,
                           mp_stream_t stream) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    require_tensor(e.graph(), tensor, "tensor");
    const Tensor &t = e.graph().tensor(tensor);
    MP_REQUIRE(t.role == Role::parameter || t.role == Role::state, MP_ERROR_INVALID_ARGUMENT,
               "tensor = ", tensor, " (", t.name, ") must be a parameter or a state");
    require_device(values, "values");
    e.write(tensor, values, stream);
  });
}

mp_status_t mp_graph_forward(mp_graph_t graph, mp_graph_mode_t mode, mp_stream_t stream) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    require_enum(mode, "mode");
    e.forward(mode, stream);
  });
}

mp_status_t mp_graph_backward(mp_graph_t graph, mp_scaler_t scaler, mp_stream_t stream) {
  return call_compiled(__func__, graph, [&](Executor &e) { e.backward(scaler, stream); });
}

mp_status_t mp_graph_get_step_sync(mp_graph_t graph, int64_t *t, mp_stream_t stream) {
  return call_compiled(__func__, graph,
                       [&](Executor &e) { require_pointer(t, "t") = e.step(stream); });
}

mp_status_t mp_graph_set_step_sync(mp_graph_t graph, int64_t t, mp_stream_t stream) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    require_step(t);
    e.set_step(t, stream);
  });
}

// ---------------------------------------------------------------------------- queries

mp_status_t mp_graph_get_lists(mp_graph_t graph, mp_tensor_list_t *grads, mp_tensor_list_t *master,
                               mp_tensor_list_t *model) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    MP_REQUIRE(grads == nullptr || e.has_backward(), MP_ERROR_INVALID_ARGUMENT,
               "grads requires a loss: call mp_graph_set_loss or mp_graph_seed_gradient before "
               "mp_graph_compile");
    if (grads != nullptr) *grads = e.grads();
    if (master != nullptr) *master = e.master();
    if (model != nullptr) *model = e.model();
  });
}

mp_status_t mp_graph_get_tensor(mp_graph_t graph, int32_t tensor, mp_graph_tensor_t *info) {
  return call(__func__, [&] {
    const mp_graph &g = require_pointer(graph, "graph");
    require_tensor(g.described, tensor, "tensor");
    write_struct(
        info, "info",
        g.executor != nullptr ? g.executor->tensor(tensor) : shape_of(g.described.tensor(tensor)));
  });
}

mp_status_t mp_graph_get_memory(mp_graph_t graph, mp_graph_memory_t *memory) {
  return call_compiled(__func__, graph,
                       [&](Executor &e) { write_struct(memory, "memory", e.memory()); });
}

mp_status_t mp_graph_explain(mp_graph_t graph, mp_autocast_format_t format, char *text,
                             size_t *bytes) {
  return call_compiled(__func__, graph, [&](Executor &e) {
    require_enum(format, "format");
    MP_REQUIRE(graph->policy != nullptr, MP_ERROR_INVALID_ARGUMENT,
               "graph was compiled without mp_graph_set_autocast");
    write_text(e.reports()[static_cast<size_t>(format)], text, bytes);
  });
}

mp_status_t mp_graph_describe(mp_graph_t graph, char *text, size_t *bytes) {
  return call_compiled(__func__, graph,
                       [&](Executor &e) { write_text(e.description(), text, bytes); });
}
