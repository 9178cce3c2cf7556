// See operation.h.
#include "graph/executor/operation.h"

#include <algorithm>
#include <set>

namespace mp::graph {

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
    const Tensor &of = graph_.tensor(seed.tensor);
    Tensor gradient;
    gradient.name = "d " + of.name;
    gradient.extent = of.extent;
    gradient.gradient_of = seed.tensor;
    Node node = {};
    node.operation = &operation("SeedGradient");
    node.name = graph_.node(of.producer).name + "/seed";
    node.inputs = {{seed.input}};
    node.is_backward = true;
    node.forward = of.producer;
    node.outputs = {graph_.add(std::move(gradient))};
    parts_[static_cast<size_t>(seed.tensor)].push_back(node.outputs[0]);
    graph_.add(std::move(node));
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
  Tensor copy;
  copy.name = "d " + graph_.tensor(of).name;
  copy.extent = graph_.tensor(of).extent;
  copy.gradient_of = of;
  Node node = {};
  node.operation = &operation("Identity");
  node.name = name_after(of, "grad_copy");
  node.inputs = {{gradient}};
  node.outputs = {graph_.add(std::move(copy))};
  node.is_backward = true;
  const int32_t output = node.outputs[0];
  graph_.add(std::move(node));
  return output;
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
  const Tensor &of = graph_.in(node, input);
  Tensor gradient;
  gradient.name = "d " + of.name;
  gradient.extent = of.extent;
  gradient.gradient_of = node.input(input);
  return graph_.add(std::move(gradient));
}

void Gradients::contribute(const Node &node, size_t input, int32_t gradient) {
  if (gradient != kNone && is_wanted(node, input))
    parts_[static_cast<size_t>(node.input(input))].push_back(gradient);
}

void Gradients::append_gradients(const Node &node, std::string_view word,
                                 const std::vector<int32_t> &inputs,
                                 const std::vector<size_t> &always,
                                 const std::vector<size_t> &if_wanted) {
  const auto wants = [&](size_t input) { return is_wanted(node, input); };
  if (!std::ranges::any_of(always, wants) && !std::ranges::any_of(if_wanted, wants)) return;
  std::vector<int32_t> outputs;
  for (const size_t i : always) outputs.push_back(node.has_input(i) ? make(node, i) : kNone);
  for (const size_t i : if_wanted) outputs.push_back(new_if_wanted(node, i));
  append(node, std::string(node.operation->type) + "Grad", word, inputs, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    contribute(node, i < always.size() ? always[i] : if_wanted[i - always.size()], outputs[i]);
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
  Node backward = {};
  backward.operation = &operation(type);
  backward.name = node.name + "/" + std::string(word);
  for (const int32_t input : inputs) backward.inputs.push_back({input});
  backward.outputs = outputs;
  backward.attributes = node.attributes;
  backward.is_backward = true;
  backward.forward = current_;
  backward.number = node.number;
  graph_.add(std::move(backward));
}

/// Adds the contributions of all readers to the gradient of a tensor, two at a time.
int32_t Gradients::sum_of(int32_t tensor) {
  std::vector<int32_t> &parts = parts_[static_cast<size_t>(tensor)];
  while (parts.size() > 1) {
    const int32_t last = parts.back();
    parts.pop_back();
    Tensor sum;
    sum.name = graph_.tensor(parts.back()).name;
    sum.extent = graph_.tensor(tensor).extent;
    sum.gradient_of = tensor;
    const int32_t output = graph_.add(std::move(sum));
    Node add = {};
    add.operation = &operation("Add");
    add.name = name_after(tensor, "grad_sum");
    add.inputs = {{parts.back()}, {last}};
    add.outputs = {output};
    add.is_backward = true;
    add.forward = graph_.tensor(tensor).producer;
    graph_.add(std::move(add));
    parts.back() = output;
  }
  return parts.empty() ? kNone : parts.front();
}

}  // namespace mp::graph
