// Autocast through mpcore.hpp: rewrites of a small graph.
#include "cpp.h"

#include <array>
#include <string>
#include <type_traits>

namespace {

using Bytes = std::vector<uint8_t>;
using Indices = std::vector<int32_t>;

static_assert(!std::is_copy_constructible_v<mp::autocast>);
static_assert(!std::is_copy_constructible_v<mp::autocast_graph>);
static_assert(std::is_nothrow_move_constructible_v<mp::autocast>);

mp_autocast_config_t config(uint32_t flags = 0, mp_dtype_t low = MP_FP16) {
  mp_autocast_config_t config = mp_autocast_config_default(low);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | flags;
  return config;
}

/// A graph with a node for each property that decides a type.
struct Network {
  enum Node : int32_t { kConv1, kNorm, kRelu, kConv2, kExp, kFirstNode = 9 };

  mp::autocast_graph graph;

  Network() {
    const mp::autocast_tensor parameter = {-1, MP_FP32, MP_TENSOR_ROLE_PARAMETER};
    const int32_t x = graph.add_tensor();
    const int32_t w1 = graph.add_tensor(parameter);
    const int32_t gain = graph.add_tensor(parameter);
    const int32_t w2 = graph.add_tensor(parameter);
    const int32_t conv1 = add({"Conv2D", {x, w1}, "one/conv", 0, 575});
    const int32_t norm = add({"BatchNorm", {conv1, {gain, MP_AUTOCAST_SLOT_FP32}, -1}, "one/norm"});
    const int32_t relu = add({"Relu", {norm}, "one/relu"});
    const int32_t conv2 = add({"Conv2D", {relu, w2}, "two/conv"});
    add({"Exp", {conv2}, "two/exp"}, MP_TENSOR_ROLE_OUTPUT);
    add({"MatMul", {x, x}, "", 0, 576});
    const int32_t large = graph.add_tensor({-1, MP_FP32, MP_TENSOR_ROLE_ACTIVATION, 0, 1001.0f});
    add({"MatMul", {large, x}});
    add({"MatMul", {x, x}, "", MP_NODE_FLAG_KEEP_FP32});
    add({"", {x}, "", 0, 0, MP_OP_CLASS_ALLOW});
    // Tensors may be read and nodes named before they are added.
    const int32_t merge = kFirstNode, next = merge + 1, first = next + 1, second = first + 1;
    const int32_t back = graph.add_tensor({next});
    const int32_t list = add({"MatMul", {x, back}});
    graph.add_node({"TensorListGetItem", {list}});
    graph.add_container({merge, next});
    graph.add_loop({first, second});
    add({"MatMul", {x, x}});
    add({"TensorListGetItem", {x}});
    const int32_t pulled = add({"Tanh", {add({"MatMul", {x, x}})}});
    graph.add_hidden_edge(kExp, second + 2);
    const int32_t last = graph.add_node({"MatMul", {pulled, -1}});
    graph.add_tensor({last, MP_FP32, MP_TENSOR_ROLE_ACTIVATION, MP_AUTOCAST_SLOT_FP32});
    graph.add_tensor({last, MP_DTYPE_NONE});
  }

  /// Returns the output of the node.
  int32_t add(const mp::autocast_node &node, mp_tensor_role_t role = MP_TENSOR_ROLE_ACTIVATION) {
    return graph.add_tensor({graph.add_node(node), MP_FP32, role});
  }
};

std::array<int32_t, 5> fields(const mp_autocast_cast_t &cast) {
  return {cast.tensor, cast.from, cast.to, cast.kind, cast.readers};
}

}  // namespace

TEST_CASE("C++: every property of a graph decides types, casts and reasons", "[cpp][autocast]") {
  const Network network;
  mp_autocast_config_t limited = config();
  limited.amax_limit = 1000;
  limited.depth_limit = 575;
  const mp::autocast policy = mp::autocast::create(limited);
  const mp::autocast_result result = policy.rewrite(nullptr, network.graph);
  CHECK(result.disabled_reason == nullptr);
  CHECK(result.num_low_nodes == 9);
  CHECK(result.num_parameters_low == 2);
  constexpr uint8_t f = MP_FP32, h = MP_FP16;
  CHECK(result.node_dtype == Bytes{h, h, h, h, f, f, f, f, h, h, h, f, f, h, f, h});
  CHECK(result.tensor_dtype ==
        Bytes{f, f, f, f, h, h, h, h, f, f, f, f, f, h, h, h, f, f, h, f, f, MP_DTYPE_NONE});
  CHECK(result.node_reason ==
        Bytes{MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_BETWEEN_ALLOW,
              MP_AUTOCAST_REASON_BETWEEN_ALLOW, MP_AUTOCAST_REASON_ALLOW_LIST,
              MP_AUTOCAST_REASON_DENY_LIST, MP_AUTOCAST_REASON_DEPTH, MP_AUTOCAST_REASON_RANGE,
              MP_AUTOCAST_REASON_KEPT, MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_ALLOW_LIST,
              MP_AUTOCAST_REASON_CLUSTER_LOW, MP_AUTOCAST_REASON_CLUSTER_FP32,
              MP_AUTOCAST_REASON_NO_ALLOW_NEARBY, MP_AUTOCAST_REASON_ALLOW_LIST,
              MP_AUTOCAST_REASON_DENY_UPSTREAM, MP_AUTOCAST_REASON_ALLOW_LIST});
  CHECK(result.node_cause == Indices{-1, 3, 3, -1, -1, -1, -1, -1, -1, -1, 9, 12, -1, -1, 4, -1});
  CHECK(result.input_cast == Indices{0,  1, -1, -1, -1, -1, -1, 2,  3, -1, -1, -1, -1, -1,
                                     -1, 0, 0,  -1, -1, -1, -1, -1, 0, 0,  4,  5,  -1});
  REQUIRE(result.casts.size() == 6);
  using Cast = std::array<int32_t, 5>;
  CHECK(fields(result.casts[0]) == Cast{0, f, h, MP_CAST_KIND_KERNEL, 5});
  CHECK(fields(result.casts[1]) == Cast{1, f, h, MP_CAST_KIND_MODEL_COPY, 1});
  CHECK(fields(result.casts[3]) == Cast{7, h, f, MP_CAST_KIND_KERNEL, 1});
}

TEST_CASE("C++: an autocast graph can be moved; the moved-from graph is empty", "[cpp][autocast]") {
  Network network;
  mp::autocast_graph moved = std::move(network.graph);
  const mp::autocast policy = mp::autocast::create(config());
  CHECK(policy.rewrite(nullptr, moved).num_low_nodes == 11);
  CHECK(std::strcmp(moved.get().node_name[Network::kNorm], "one/norm") == 0);
  moved = mp::autocast_graph();
  CHECK(policy.rewrite(nullptr, moved).node_dtype.empty());
  moved.add_node({"MatMul", {moved.add_tensor(), moved.add_tensor()}});
  CHECK(policy.rewrite(nullptr, moved).node_dtype == Bytes{MP_FP16});
}

TEST_CASE("C++: set_class and set_nodes override classes", "[cpp][autocast]") {
  const Network network;
  const mp::autocast policy = mp::autocast::create(config());
  CHECK(policy.class_of("Exp") == MP_OP_CLASS_DENY);
  CHECK(policy.class_of("no such operation") == MP_OP_CLASS_UNLISTED);
  policy.set_class({"Exp", "Log"}, MP_OP_CLASS_ALLOW);
  policy.set_nodes("one/*", MP_OP_CLASS_DENY);
  CHECK(policy.class_of("Log") == MP_OP_CLASS_ALLOW);
  const mp::autocast_result result = policy.rewrite(nullptr, network.graph);
  const std::vector<uint8_t> &reasons = result.node_reason;
  CHECK(Bytes(reasons.begin(), reasons.begin() + 5) ==
        Bytes{MP_AUTOCAST_REASON_DENY_LIST, MP_AUTOCAST_REASON_DENY_LIST,
              MP_AUTOCAST_REASON_DENY_LIST, MP_AUTOCAST_REASON_ALLOW_LIST,
              MP_AUTOCAST_REASON_ALLOW_LIST});
  CHECK(message_of([&] { policy.set_nodes("two/*", MP_OP_CLASS_DENY); }) ==
        "mp_autocast_set_nodes: policy is in use and cannot be modified; create a new one");
}
