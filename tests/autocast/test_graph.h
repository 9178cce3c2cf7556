// Graphs for the tests of autocast, built by hand, parsed from text or random, and results of their
// rewrites.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "mpcore.h"
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
  int32_t num_inputs() const;

 private:
  void read_line(std::string_view line);
  int32_t tensor_named(const std::string &name);

  std::vector<std::string> tensor_names_;
  mp_autocast_graph_t view_{};
  std::vector<const char *> op_, name_;
  std::vector<uint8_t> class_, input_slot_, tensor_slot_, dtype_, role_, kind_;
  std::vector<uint16_t> flags_;
  std::vector<int64_t> depth_;
  std::vector<int32_t> input_offsets_, input_, producer_, hidden_src_, hidden_dst_, member_offsets_,
      member_;
  std::vector<float> amax_;
};

/// A policy that ignores the environment.
class Policy {
 public:
  explicit Policy(mp_autocast_config_t config);
  explicit Policy(mp_autocast_preset_t preset, mp_dtype_t low = MP_FP16);
  ~Policy() { mp_autocast_destroy(handle_); }
  Policy(const Policy &) = delete;
  Policy &operator=(const Policy &) = delete;
  mp_autocast_t get() const { return handle_; }
  void set_class(const char *op, mp_op_class_t op_class) const {
    require_ok(mp_autocast_set_class(handle_, &op, 1, op_class));
  }

 private:
  mp_autocast_t handle_ = nullptr;
};

/// Result of a rewrite.
struct Result {
  std::vector<uint8_t> tensor_dtype, node_dtype, node_reason;
  std::vector<int32_t> input_cast, node_cause;
  std::vector<mp_autocast_cast_t> casts;
  int32_t num_casts, num_low_nodes, num_parameters_low;
  const char *disabled_reason;

  bool is_low(int32_t node) const { return node_dtype[static_cast<size_t>(node)] != MP_FP32; }
};

Result rewrite(const Policy &policy, Graph &graph);
std::string explain(const Policy &policy, Graph &graph, mp_autocast_format_t form);

/// Returns the names of the low-precision nodes in order, separated by spaces.
std::string low_nodes(const Graph &graph, const Result &result);

}  // namespace mptest::autocast
