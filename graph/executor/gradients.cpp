// See operation.h.
#include "graph/executor/operation.h"

#include <algorithm>
#include <set>

namespace mp::graph {

namespace {

Node backward_node(std::string_view type, std::string name, const std::vector<int32_t> &inputs,
                   const std::vector<int32_t> &outputs, int32_t forward) {
  Node node = {};
  node.operation = &operation(type);
  node.name = std::move(name);
  for (const int32_t input : inputs) node.inputs.push_back({input});
  node.outputs = outputs;
  node.is_backward = true;
  node.forward = forward;
  return node;
}

}  // namespace

Gradients::Gradients(Graph &graph)
    : graph_(graph), parts_(graph.tensors.size()), is_wanted_(graph.tensors.size()) {
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    is_wanted_[t] = graph.tensors[t].role == Role::parameter;
  for (const Node &node : graph.nodes) {
    const bool is_wanted = std::ranges::any_of(node.inputs, [&](const Input &input) {
      return input.tensor != kNone && is_wanted_[static_cast<size_t>(input.tensor)];
    });
    for (const int32_t output : node.outputs)
      if (output != kNone)
        is_wanted_[static_cast<size_t>(output)] = is_wanted || graph.tensor(output).keeps_gradient;
  }
}

/// Starts the backward pass at external gradients, multiplied by the loss scale.
void Gradients::append_seeds() {
  for (const Graph::Seed &seed : graph_.seeds) {
    const int32_t gradient = new_gradient(seed.tensor);
    parts_[static_cast<size_t>(seed.tensor)].push_back(gradient);
    graph_.add(backward_node("SeedGradient", name_after(seed.tensor, "seed"), {seed.input},
                             {gradient}, graph_.tensor(seed.tensor).producer));
  }
}

std::vector<int32_t> Gradients::append_all() {
  const auto last = static_cast<int32_t>(graph_.nodes.size());
  append_seeds();
  for (int32_t i = last; i-- > 0;) {
    const Node node = graph_.node(i);  // copied, because appending may move the nodes
    const bool is_on_the_way = std::ranges::any_of(node.outputs, [&](int32_t output) {
      return output != kNone &&
             (output == graph_.loss || !parts_[static_cast<size_t>(output)].empty());
    });
    current_ = i;
    if (is_on_the_way) node.operation->differentiate(*this, node);
  }
  const size_t count = parts_.size();
  std::vector<int32_t> all(count, kNone);
  std::set<int32_t> of_parameters;
  for (const bool is_parameter : {true, false})
    for (size_t t = 0; t < count; ++t) {
      if ((graph_.tensors[t].role == Role::parameter) != is_parameter) continue;
      if (!is_parameter && !graph_.tensors[t].keeps_gradient) continue;
      const int32_t gradient = sum_of(static_cast<int32_t>(t));
      const bool is_shared = gradient != kNone && of_parameters.contains(memory_of(gradient));
      all[t] = is_shared ? copy_of(gradient, static_cast<int32_t>(t)) : gradient;
      if (is_parameter && gradient != kNone) of_parameters.insert(memory_of(all[t]));
    }
  return all;
}

int32_t Gradients::memory_of(int32_t tensor) const {
  while (graph_.tensor(tensor).producer != kNone) {
    const Node &node = graph_.node(graph_.tensor(tensor).producer);
    if (!node.operation->traits.is_view) break;
    tensor = node.input(0);
  }
  return tensor;
}

int32_t Gradients::copy_of(int32_t gradient, int32_t of) {
  const int32_t copy = new_gradient(of);
  graph_.add(backward_node("Identity", name_after(of, "grad_copy"), {gradient}, {copy}, kNone));
  return copy;
}

std::string Gradients::name_after(int32_t tensor, const char *word) const {
  const Tensor &t = graph_.tensor(tensor);
  return (t.producer != kNone ? graph_.node(t.producer).name : t.name) + "/" + word;
}

int32_t Gradients::of(const Node &node, size_t output) {
  return node.has_output(output) ? sum_of(node.outputs[output]) : kNone;
}

bool Gradients::is_wanted(const Node &node, size_t input) const {
  return node.has_input(input) && is_wanted_[static_cast<size_t>(node.input(input))];
}

int32_t Gradients::new_if_wanted(const Node &node, size_t input) {
  return is_wanted(node, input) ? make(node, input) : kNone;
}

int32_t Gradients::make(const Node &node, size_t input) {
  return new_gradient(node.input(input));
}

int32_t Gradients::new_gradient(int32_t tensor) {
  Tensor gradient;
  gradient.name = "d " + graph_.tensor(tensor).name;
  gradient.extent = graph_.tensor(tensor).extent;
  gradient.gradient_of = tensor;
  return graph_.add(std::move(gradient));
}

void Gradients::contribute(const Node &node, size_t input, int32_t gradient) {
  if (gradient != kNone && is_wanted(node, input))
    parts_[static_cast<size_t>(node.input(input))].push_back(gradient);
}

void Gradients::append_gradient(const Node &node, size_t input, std::string_view type,
                                std::string_view word, std::initializer_list<int32_t> others) {
  if (!is_wanted(node, input)) return;
  const int32_t gradient = make(node, input);
  std::vector<int32_t> inputs = {of(node, 0)};
  inputs.insert(inputs.end(), others);
  append(node, type, word, inputs, {gradient});
  contribute(node, input, gradient);
}

void Gradients::append(const Node &node, std::string_view type, std::string_view word,
                       const std::vector<int32_t> &inputs, const std::vector<int32_t> &outputs) {
  Node backward =
      backward_node(type, node.name + "/" + std::string(word), inputs, outputs, current_);
  backward.attributes = node.attributes;
  backward.number = node.number;
  graph_.add(std::move(backward));
}

/// Adds the contributions of all readers to the gradient of a tensor, two at a time.
int32_t Gradients::sum_of(int32_t tensor) {
  std::vector<int32_t> &parts = parts_[static_cast<size_t>(tensor)];
  while (parts.size() > 1) {
    const int32_t last = parts.back();
    parts.pop_back();
    const int32_t sum = new_gradient(tensor);
    graph_.tensor(sum).name = graph_.tensor(parts.back()).name;
    graph_.add(backward_node("Add", name_after(tensor, "grad_sum"), {parts.back(), last}, {sum},
                             graph_.tensor(tensor).producer));
    parts.back() = sum;
  }
  return parts.empty() ? kNone : parts.front();
}

// ---------------------------------------------------------------------------- TypeGrad

namespace {

/// Returns the index of a port, or kAbsent.
size_t port_named(const Port (&ports)[kMaxPorts], std::string_view name) {
  for (size_t i = 0; i < kMaxPorts && ports[i].name != nullptr; ++i)
    if (ports[i].name == name) return i;
  return kAbsent;
}

/// Returns the name of the tensor whose gradient a port is.
std::string_view without_d(const Port &port) {
  return port.name + 1;
}

void drop_absent_end(std::vector<int32_t> &tensors) {
  while (!tensors.empty() && tensors.back() == kNone) tensors.pop_back();
}

}  // namespace

void append_gradient_node(Gradients &d, const Node &node) {
  const Operation &op = *node.operation, &grad = operation(std::string(op.type) + "Grad");
  std::vector<size_t> of;  // per output of the new node: the input whose gradient it is
  for (const Port &port : grad.outputs)
    if (port.name != nullptr) of.push_back(port_named(op.inputs, without_d(port)));
  if (std::ranges::none_of(of, [&](size_t i) { return d.is_wanted(node, i); })) return;

  std::vector<int32_t> inputs, outputs;
  const auto add_outputs = [&] {
    for (size_t i = 0; i < of.size(); ++i) {
      const bool is_computed = !grad.outputs[i].has(kOptional) && node.has_input(of[i]);
      outputs.push_back(is_computed ? d.make(node, of[i]) : d.new_if_wanted(node, of[i]));
    }
  };
  const bool has_one_gradient = of.size() == 1 && !grad.outputs[0].has(kOptional);
  // Gradients::of() may add tensors, and the order of tensors decides ties in the layout of memory:
  // a function of dy, like append_gradient(), adds dx first.
  if (has_one_gradient && std::string_view(grad.inputs[0].name) == "dy") add_outputs();
  for (const Port &port : grad.inputs) {
    if (port.name == nullptr) break;
    const size_t in = port_named(op.inputs, port.name), out = port_named(op.outputs, port.name);
    inputs.push_back(in != kAbsent    ? node.input(in)
                     : out != kAbsent ? node.output(out)
                                      : d.of(node, port_named(op.outputs, without_d(port))));
  }
  if (outputs.empty()) add_outputs();
  drop_absent_end(inputs);
  drop_absent_end(outputs);
  std::string word = "grad";
  if (has_one_gradient) word = word + "_" + op.inputs[of[0]].name;
  d.append(node, grad.type, word, inputs, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) d.contribute(node, of[i], outputs[i]);
}

}  // namespace mp::graph
