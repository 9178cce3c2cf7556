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

/// x -> conv1 -> norm -> relu -> conv2 -> exp.  Tensors: x, w1, gain, w2, outputs of the nodes.
struct Network {
  enum Node : int32_t { kConv1, kNorm, kRelu, kConv2, kExp };
  enum Tensor : int32_t { kX, kW1, kGain, kW2, kFirstWritten };

  mp::autocast_graph graph;

  Network() {
    const mp::autocast_tensor parameter = {-1, MP_FP32, MP_TENSOR_ROLE_PARAMETER};
    const int32_t x = graph.add_tensor();
    const int32_t w1 = graph.add_tensor(parameter);
    const int32_t gain = graph.add_tensor(parameter);
    const int32_t w2 = graph.add_tensor(parameter);
    const int32_t conv1 = add({"Conv2D", {x, w1}, "one/conv"});
    const int32_t norm = add({"BatchNorm", {conv1, {gain, MP_AUTOCAST_SLOT_FP32}, -1}, "one/norm"});
    const int32_t relu = add({"Relu", {norm}, "one/relu"});
    const int32_t conv2 = add({"Conv2D", {relu, w2}, "two/conv"});
    add({"Exp", {conv2}, "two/exp"}, MP_TENSOR_ROLE_OUTPUT);
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

TEST_CASE("C++: a rewrite returns types, casts and reasons", "[cpp][autocast]") {
  const Network network;
  const mp::autocast policy = mp::autocast::create(config());
  const mp::autocast_result result = policy.rewrite(nullptr, network.graph);
  CHECK(result.disabled_reason == nullptr);
  CHECK(result.num_low_nodes == 4);
  CHECK(result.num_parameters_low == 2);
  CHECK(result.node_dtype == Bytes{MP_FP16, MP_FP16, MP_FP16, MP_FP16, MP_FP32});
  CHECK(result.tensor_dtype ==
        Bytes{MP_FP32, MP_FP32, MP_FP32, MP_FP32, MP_FP16, MP_FP16, MP_FP16, MP_FP16, MP_FP32});
  CHECK(result.node_reason == Bytes{MP_AUTOCAST_REASON_ALLOW_LIST, MP_AUTOCAST_REASON_BETWEEN_ALLOW,
                                    MP_AUTOCAST_REASON_BETWEEN_ALLOW, MP_AUTOCAST_REASON_ALLOW_LIST,
                                    MP_AUTOCAST_REASON_DENY_LIST});
  CHECK(result.node_cause == Indices{-1, Network::kConv2, Network::kConv2, -1, -1});
  // conv1: x, w1; norm: conv1, gain, none; relu: norm; conv2: relu, w2; exp: conv2.
  CHECK(result.input_cast == Indices{0, 1, -1, -1, -1, -1, -1, 2, 3});
  REQUIRE(result.casts.size() == 4);
  constexpr int32_t kConv2Writes = Network::kFirstWritten + Network::kConv2;
  CHECK(fields(result.casts[0]) ==
        std::array<int32_t, 5>{Network::kX, MP_FP32, MP_FP16, MP_CAST_KIND_KERNEL, 1});
  CHECK(fields(result.casts[1]) ==
        std::array<int32_t, 5>{Network::kW1, MP_FP32, MP_FP16, MP_CAST_KIND_MODEL_COPY, 1});
  CHECK(fields(result.casts[2]) ==
        std::array<int32_t, 5>{Network::kW2, MP_FP32, MP_FP16, MP_CAST_KIND_MODEL_COPY, 1});
  CHECK(fields(result.casts[3]) ==
        std::array<int32_t, 5>{kConv2Writes, MP_FP16, MP_FP32, MP_CAST_KIND_KERNEL, 1});
}

TEST_CASE("C++: an autocast graph can be moved; the moved-from graph is empty", "[cpp][autocast]") {
  Network network;
  mp::autocast_graph moved = std::move(network.graph);
  const mp::autocast policy = mp::autocast::create(config());
  CHECK(policy.rewrite(nullptr, moved).num_low_nodes == 4);
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
  CHECK(result.node_dtype == Bytes{MP_FP32, MP_FP32, MP_FP32, MP_FP16, MP_FP16});
  CHECK(result.node_reason == Bytes{MP_AUTOCAST_REASON_DENY_LIST, MP_AUTOCAST_REASON_DENY_LIST,
                                    MP_AUTOCAST_REASON_DENY_LIST, MP_AUTOCAST_REASON_ALLOW_LIST,
                                    MP_AUTOCAST_REASON_ALLOW_LIST});
  CHECK(message_of([&] { policy.set_nodes("two/*", MP_OP_CLASS_DENY); }) ==
        "mp_autocast_set_nodes: policy is in use and cannot be modified; create a new one");
}

TEST_CASE("C++: amax, depth, flags and class of a node decide its type", "[cpp][autocast]") {
  mp_autocast_config_t limited = config();
  limited.amax_limit = 1000;
  limited.depth_limit = 4096;
  const mp::autocast policy = mp::autocast::create(limited);
  mp::autocast_graph graph;
  const int32_t x = graph.add_tensor();
  const int32_t large = graph.add_tensor({-1, MP_FP32, MP_TENSOR_ROLE_ACTIVATION, 0, 1001.0f});
  const int32_t low = graph.add_tensor({-1, MP_BF16});
  const auto reason_of = [&](const mp::autocast_node &node) {
    const int32_t number = graph.add_node(node);
    graph.add_tensor({number});
    return policy.rewrite(nullptr, graph).node_reason[static_cast<size_t>(number)];
  };
  CHECK(reason_of({"MatMul", {x, x}}) == MP_AUTOCAST_REASON_ALLOW_LIST);
  CHECK(reason_of({"MatMul", {x, low}}) == MP_AUTOCAST_REASON_ALLOW_LIST);
  CHECK(reason_of({"MatMul", {x, large}}) == MP_AUTOCAST_REASON_RANGE);
  CHECK(reason_of({"MatMul", {x, x}, "", 0, 4096}) == MP_AUTOCAST_REASON_ALLOW_LIST);
  CHECK(reason_of({"MatMul", {x, x}, "", 0, 4097}) == MP_AUTOCAST_REASON_DEPTH);
  CHECK(reason_of({"MatMul", {x, x}, "", MP_NODE_FLAG_KEEP_FP32}) == MP_AUTOCAST_REASON_KEPT);
  CHECK(reason_of({"MatMul", {x, x}, "", MP_NODE_FLAG_NO_LOW}) == MP_AUTOCAST_REASON_NO_KERNEL);
  CHECK(reason_of({"", {x}, "", 0, 0, MP_OP_CLASS_ALLOW}) == MP_AUTOCAST_REASON_ALLOW_LIST);
  CHECK(reason_of({"MatMul", {x}, "", 0, 0, MP_OP_CLASS_UNLISTED}) == MP_AUTOCAST_REASON_UNLISTED);
}

TEST_CASE("C++: hidden edges and containers connect nodes", "[cpp][autocast]") {
  const mp::autocast policy = mp::autocast::create(config());
  mp::autocast_graph graph;
  const int32_t x = graph.add_tensor();
  const auto add = [&](const mp::autocast_node &node) {
    const int32_t number = graph.add_node(node);
    graph.add_tensor({number});
    return number;
  };
  const int32_t product = add({"MatMul", {x, x}});
  const int32_t neighbor = add({"Relu", {x}});
  graph.add_hidden_edge(product, neighbor);
  const int32_t member = add({"no such operation", {x}});
  graph.add_container({member, product});
  const mp::autocast_result result = policy.rewrite(nullptr, graph);
  CHECK(result.node_reason[static_cast<size_t>(neighbor)] == MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW);
  CHECK(result.node_reason[static_cast<size_t>(member)] == MP_AUTOCAST_REASON_CLUSTER_LOW);
  CHECK(result.node_cause[static_cast<size_t>(member)] == product);
}
