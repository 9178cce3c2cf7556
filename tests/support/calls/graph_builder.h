// Builder for graphs of tests: a function per kind of tensor, and a line per node.
#pragma once

#include <string>
#include <vector>

#include "caller.h"

namespace mptest {

using GraphAttributes = std::vector<mp_graph_attribute_t>;

/// Returns the number of elements of a tensor with the graph's largest batch.
int64_t numel_of(const mp_graph_tensor_t &info);

class GraphBuilder {
 public:
  /// Creates a graph; `caller` makes all calls.
  explicit GraphBuilder(Caller &caller);

  int32_t input(const char *name, mp_dtype_t dtype, const std::vector<int64_t> &extent) const;
  int32_t parameter(const char *name, const std::vector<int64_t> &extent);
  int32_t state(const char *name, const std::vector<int64_t> &extent) const;
  /// Adds a node; returns its outputs.
  std::vector<int32_t> outputs_of(const char *op, const char *name,
                                  const std::vector<int32_t> &inputs,
                                  const GraphAttributes &attributes, uint32_t num_outputs) const;
  /// Adds a node with one output.
  int32_t node(const char *op, const char *name, const std::vector<int32_t> &inputs,
               const GraphAttributes &attributes = {}) const {
    return outputs_of(op, name, inputs, attributes, 1).front();
  }
  void loss(int32_t tensor) const { CALL(caller_, mp_graph_set_loss, graph_, tensor); }
  /// @param policy  NULL: fp32
  void compile(mp_autocast_t policy = nullptr) const;
  void bind(int32_t tensor, const void *data) const {
    CALL(caller_, mp_graph_bind, graph_, tensor, data);
  }
  mp_graph_tensor_t info(int32_t tensor) const;

  mp_graph_t graph() const { return graph_; }
  Caller &caller() const { return caller_; }

  std::vector<int32_t> parameters;  ///< all, in the order of creation

 private:
  Caller &caller_;
  mp_graph_t graph_ = nullptr;
};

/// Creates a policy that ignores the environment and performance, so that casts do not depend on
/// the device.
mp_autocast_t make_autocast(Caller &caller, mp_dtype_t low);

}  // namespace mptest
