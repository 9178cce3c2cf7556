// Graphs for the tests of autocast, built by hand, parsed from text or random, and results of their
// rewrites.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mpcore.hpp"
#include "tests/support/testing.h"

namespace mptest::autocast {

/// The arrays of mp_autocast_graph_t.
class Graph {
 public:
  struct Input {
    int32_t tensor;
    uint8_t slot = 0;
  };
  struct Node {
    std::string op, name;
    std::vector<Input> inputs;
    uint16_t flags = 0;
    uint8_t node_class = 0;
    int64_t depth = 0;
  };
  struct Tensor {
    int32_t producer = -1;
    uint8_t slot = 0;
    uint8_t dtype = MP_FP32;
    uint8_t role = MP_TENSOR_ROLE_ACTIVATION;
    float amax = -1.0f;
  };
  struct Edge {
    int32_t src, dst;
  };
  struct Cluster {
    std::vector<int32_t> members;
    uint8_t kind;
  };

  std::vector<Node> nodes;
  std::vector<Tensor> tensors;
  std::vector<Edge> hidden;
  std::vector<Cluster> clusters;

  /// Parses one node per line, "name op input input ...":
  ///
  ///     conv1 Conv2D x w        names without a node are graph inputs
  ///     norm Norm conv1 s@255   with slot 255; "-" is absent; norm.1 is a node's second output
  ///     fetch Identity norm !keep_fp32
  ///
  /// After the inputs: !flag of mp_node_flags_t; > another output, >@255 in slot 255, >none not
  /// floating-point; ~9 number of terms of a sum; ^7e4 amax of the first output.  Other lines:
  /// parameter w, integer i, half h, output y, hidden a b, container a b c, loop a b.
  static Graph parse(std::string_view text);

  /// Returns pointers into this graph, which must not change meanwhile.
  const mp_autocast_graph_t &view();
  int32_t find_node(std::string_view name) const;

 private:
  void read_line(std::string_view line);
  int32_t tensor_named(const std::string &name);

  std::vector<std::string> tensor_names_;
  std::shared_ptr<const mp::autocast_graph> built_;
  mp_autocast_graph_t view_{};
};

/// A policy that ignores the environment.
class Policy : public mp::autocast {
 public:
  explicit Policy(const mp_autocast_config_t &config);
  explicit Policy(mp_autocast_preset_t preset, mp_dtype_t low = MP_FP16);
  void set_class(const char *op, mp_op_class_t op_class) const {
    mp::autocast::set_class({op}, op_class);
  }
};

/// Result of a rewrite.
struct Result : mp::autocast_result {
  int32_t num_casts() const { return static_cast<int32_t>(casts.size()); }
  bool is_low(int32_t node) const { return node_dtype[static_cast<size_t>(node)] != MP_FP32; }
};

Result rewrite(const Policy &policy, Graph &graph);
std::string explain(const Policy &policy, Graph &graph, mp_autocast_format_t form);

/// Returns the names of the low-precision nodes in order, separated by spaces.
std::string low_nodes(const Graph &graph, const Result &result);

}  // namespace mptest::autocast
