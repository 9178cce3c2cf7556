// Large and deep graphs, and random bytes.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "test_graph.h"

using namespace mptest;
using namespace mptest::autocast;

namespace {

/// Chain of nodes; each reads its predecessor and the node `back` before the predecessor.
struct Chain {
  std::vector<const char *> op;
  std::vector<int32_t> input_offsets, input, producer;
  std::vector<uint8_t> dtype;
  mp_autocast_graph_t graph;

  Chain(int32_t nodes, int32_t back, std::initializer_list<const char *> ops) {
    input_offsets.push_back(0);
    for (int32_t i = 0; i < nodes; i++) {
      op.push_back(ops.begin()[static_cast<size_t>(i) % ops.size()]);
      if (i > 0) input.push_back(i - 1);
      if (i > back) input.push_back(i - 1 - back);
      input_offsets.push_back(static_cast<int32_t>(input.size()));
      producer.push_back(i);
      dtype.push_back(MP_FP32);
    }
    MP_INIT_STRUCT(&graph);
    graph.num_nodes = graph.num_tensors = static_cast<uint32_t>(nodes);
    graph.node_op = op.data();
    graph.input_offsets = input_offsets.data();
    graph.input_tensor = input.data();
    graph.tensor_producer = producer.data();
    graph.tensor_dtype = dtype.data();
  }
};

mp_autocast_result_t rewrite_chain(const Policy &policy, const Chain &chain) {
  auto result = initialized<mp_autocast_result_t>();
  require_ok(mp_autocast_rewrite(policy.get(), nullptr, &chain.graph, &result));
  return result;
}

int64_t status_kilobytes(const std::string &field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field, 0) == 0) return std::stoll(line.substr(field.size()));
  return -1;
}

/// Returns the growth of the peak memory during a rewrite, measured in a child process.
int64_t bytes_of_rewrite(const Policy &policy, const Chain &chain) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Large blocks are mapped separately, and not served from freed memory.
    mallopt(M_MMAP_THRESHOLD, 65536);
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
    const int64_t before = status_kilobytes("VmHWM:");
    auto result = initialized<mp_autocast_result_t>();
    const bool is_done =
        mp_autocast_rewrite(policy.get(), nullptr, &chain.graph, &result) == MP_SUCCESS;
    const int64_t rise = is_done ? status_kilobytes("VmHWM:") - before : -1;
    (void)!write(ends[1], &rise, sizeof rise);
    _exit(0);
  }
  int64_t rise = -1;
  REQUIRE(read(ends[0], &rise, sizeof rise) == sizeof rise);
  close(ends[0]);
  close(ends[1]);
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(rise >= 0);
  return rise * 1024;
}

}  // namespace

TEST_CASE("autocast: a rewrite of a million nodes needs at most 100 bytes per node",
          "[autocast][pure]") {
  constexpr int32_t kNodes = 1000000;
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  // Two products with 10 nodes between, of which one is denied.
  Chain chain(kNodes, 7,
              {"MatMul", "Relu", "Tanh", "Relu", "MatMul", "Relu", "Exp", "Relu", "Tanh", "Relu",
               "Relu", "Relu"});
  Random random(1);
  if (GENERATE(false, true))  // second inputs from anywhere before
    for (int32_t i = 8; i < kNodes; i++)
      chain.input[static_cast<size_t>(chain.input_offsets[static_cast<size_t>(i)]) + 1] =
          static_cast<int32_t>(random.bits() % static_cast<uint64_t>(i));
  const int64_t bytes = bytes_of_rewrite(policy, chain);
  INFO(bytes << " bytes");
  CHECK(bytes < 100 * int64_t{kNodes});
  CHECK(bytes > 20 * int64_t{kNodes});  // otherwise the measurement failed
  CHECK(rewrite_chain(policy, chain).num_low_nodes >= 2 * (kNodes / 12));
}

// Recursion over the nodes would overflow the stack.
TEST_CASE("autocast: precision propagates along a chain of a million nodes", "[autocast][pure]") {
  constexpr int32_t kNodes = 1000000;
  Chain chain(kNodes, kNodes, {"Relu"});
  chain.op[0] = "MatMul";
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW), chain).num_low_nodes == kNodes);
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_DEFAULT), chain).num_low_nodes == kNodes);
  Chain torch(kNodes, kNodes, {"relu"});
  torch.op[0] = "mm";
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_PYTORCH), torch).num_low_nodes == kNodes);
  Chain infer(kNodes, kNodes, {"Tanh"});
  infer.op[0] = "MatMul";
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW, MP_BF16), infer).num_low_nodes ==
        kNodes);
  infer.op[kNodes - 1] = "MatMul";
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW), infer).num_low_nodes == kNodes);
  infer.op[0] = "Exp";
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW), infer).num_low_nodes == 1);
  std::vector<uint16_t> flags(kNodes, MP_NODE_FLAG_CAST);
  Chain casts(kNodes, kNodes, {"Cast"});
  casts.op[kNodes - 1] = "MatMul";
  casts.graph.node_flags = flags.data();
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW), casts).num_low_nodes == kNodes);
}

// Quadratic if each reader rescans all of its inputs, or each cluster all others.
TEST_CASE("autocast: rewrite time is not quadratic in inputs of a node or linked clusters",
          "[autocast][pure]") {
  constexpr int32_t kNodes = 200000;
  Chain wide(kNodes, kNodes, {"MatMul"});
  wide.op[kNodes - 1] = "AddN";
  wide.input.clear();
  wide.input_offsets.assign(kNodes, 0);
  for (int32_t i = 0; i + 1 < kNodes; i++) wide.input.push_back(i);
  wide.input_offsets.push_back(kNodes - 1);
  wide.graph.input_offsets = wide.input_offsets.data();
  wide.graph.input_tensor = wide.input.data();
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW, MP_BF16), wide).num_low_nodes ==
        kNodes);

  Chain linked(kNodes, kNodes, {"Merge"});
  linked.op[0] = "MatMul";
  std::vector<int32_t> member_offsets(1, 0), member;
  std::vector<uint8_t> kind;
  for (int32_t i = 0; i + 1 < kNodes; i++) {
    member.insert(member.end(), {i, i + 1});
    member_offsets.push_back(static_cast<int32_t>(member.size()));
    kind.push_back(static_cast<uint8_t>(i % 2));
  }
  linked.graph.num_clusters = static_cast<uint32_t>(kind.size());
  linked.graph.member_offsets = member_offsets.data();
  linked.graph.member = member.data();
  linked.graph.cluster_kind = kind.data();
  CHECK(rewrite_chain(Policy(MP_AUTOCAST_PRESET_TENSORFLOW), linked).num_low_nodes == kNodes);
}

// ---------------------------------------------------------------------------- random bytes

namespace {

/// A graph of random elements, most of which are valid, and its result.  The arrays have exact
/// sizes, so that a sanitizer detects accesses beyond them.
struct RandomArrays {
  explicit RandomArrays(uint64_t seed) : random(seed) {
    const int64_t nodes = random.integer(0, 5), tensors = random.integer(0, 5);
    const int64_t edges = random.integer(0, 2), clusters = random.integer(0, 2);
    graph.num_nodes = static_cast<uint32_t>(nodes);
    graph.num_tensors = static_cast<uint32_t>(tensors);
    graph.num_hidden_edges = static_cast<uint32_t>(edges);
    graph.num_clusters = static_cast<uint32_t>(clusters);
    constexpr const char *kOps[] = {
        "MatMul", "Exp", "Relu", "Tanh", "", "FusedBatchNorm", "FusedBatchNormGrad"};
    const char **const op = add(graph.node_op, nodes);
    for (int64_t i = 0; i < nodes; ++i)
      op[i] = is_rare() ? nullptr : kOps[random.bits() % std::size(kOps)];
    float *const amax = add(graph.tensor_amax, tensors);
    for (int64_t i = 0; i < tensors; ++i)
      amax[i] = std::bit_cast<float>(static_cast<uint32_t>(random.bits()));
    const int64_t inputs = draw_offsets(graph.input_offsets, nodes);
    const int64_t members = draw_offsets(graph.member_offsets, clusters);
    draw(graph.node_class, nodes, 0, 1 + MP_OP_CLASS_PROMOTE);
    draw(graph.node_flags, nodes, 0, 255);
    draw(graph.node_depth, nodes, 0, 8);
    draw(graph.input_tensor, inputs, -1, tensors - 1);
    draw(graph.input_slot, inputs, 0, 2);
    draw(graph.tensor_producer, tensors, -1, nodes - 1);
    draw(graph.tensor_slot, tensors, 0, 2);
    draw(graph.tensor_dtype, tensors, MP_DTYPE_NONE, MP_FP32);
    draw(graph.tensor_role, tensors, 0, MP_TENSOR_ROLE_OUTPUT);
    const int64_t last = std::max<int64_t>(nodes - 1, 0);
    draw(graph.hidden_src, edges, 0, last);
    draw(graph.hidden_dst, edges, 0, last);
    draw(graph.member, members, 0, last);
    draw(graph.cluster_kind, clusters, 0, 1);
    result.tensor_dtype = allocate<uint8_t>(tensors);
    result.node_dtype = allocate<uint8_t>(nodes);
    result.node_reason = allocate<uint8_t>(nodes);
    result.node_cause = allocate<int32_t>(nodes);
    result.input_cast = allocate<int32_t>(inputs);
    result.casts = allocate<mp_autocast_cast_t>(2 * tensors + inputs);
  }

  Random random;
  mp_autocast_graph_t graph = initialized<mp_autocast_graph_t>();
  mp_autocast_result_t result = initialized<mp_autocast_result_t>();

 private:
  bool is_rare() { return random.integer(0, 49) == 0; }

  /// Returns zeroed memory.
  template <class T>
  T *allocate(int64_t count) {
    void *const memory = std::calloc(static_cast<size_t>(count), sizeof(T));
    return static_cast<T *>(kept_.emplace_back(memory, std::free).get());
  }

  /// Returns the array of a field, which is rarely NULL.
  template <class T>
  T *add(const T *&field, int64_t count) {
    T *const array = allocate<T>(count);
    field = is_rare() ? nullptr : array;
    return array;
  }

  template <class T>
  void draw(const T *&field, int64_t count, int64_t first, int64_t last) {
    T *const array = add(field, count);
    for (int64_t i = 0; i < count; ++i)
      array[i] = static_cast<T>(is_rare() ? static_cast<int64_t>(random.bits())
                                          : random.integer(first, last));
  }

  /// Returns the last offset.  It stays valid, because it determines how many elements are read.
  int64_t draw_offsets(const int32_t *&field, int64_t count) {
    int32_t *const offsets = add(field, count + 1);
    for (int64_t i = 0; i < count; ++i)
      offsets[i + 1] = offsets[i] + static_cast<int32_t>(random.integer(0, 3));
    if (count > 0 && is_rare())
      offsets[random.integer(0, count - 1)] = static_cast<int32_t>(random.bits());
    return offsets[count];
  }

  std::vector<std::unique_ptr<void, void (*)(void *)>> kept_;
};

/// Returns whether the library accepted the graph.
bool rewrite_random(const Policy &policy, uint64_t seed) {
  RandomArrays arrays(seed);
  const mp_status_t status =
      mp_autocast_rewrite(policy.get(), nullptr, &arrays.graph, &arrays.result);
  if (status != MP_SUCCESS) {
    REQUIRE(status == MP_ERROR_INVALID_ARGUMENT);
    REQUIRE(std::strstr(mp_last_error(), "graph->") != nullptr);
    REQUIRE(arrays.result.num_casts == 0);
    return false;
  }
  for (const mp_autocast_format_t form :
       {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT})
    if (arrays.random.integer(0, 19) == 0) policy.explain(arrays.graph, {}, form);
  return true;
}

}  // namespace

TEST_CASE("autocast: graphs of random bytes are rewritten or rejected", "[autocast][pure][fuzz]") {
  constexpr uint64_t kGraphs = 1000000;
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.amax_limit = 1e10f;
  config.depth_limit = 7;
  const Policy propagating(config);
  config.preset = MP_AUTOCAST_PRESET_PYTORCH;
  config.flags = MP_AUTOCAST_FLAG_KEEP_IO;
  const Policy forward_only(config);
  config.preset = MP_AUTOCAST_PRESET_TENSORFLOW;
  config.level = MP_AUTOCAST_LEVEL_FORCE_ALL;
  config.flags = MP_AUTOCAST_FLAG_EMULATE;
  const Policy forcing(config);
  const Policy *const policies[] = {&propagating, &forward_only, &forcing};
  uint64_t accepted = 0;
  for (uint64_t seed = 0; seed < kGraphs; seed++)
    accepted += rewrite_random(*policies[seed % 3], seed) ? 1 : 0;
  INFO(accepted << " of " << kGraphs << " are valid graphs");
  CHECK(accepted > kGraphs / 20);
  CHECK(accepted < kGraphs * 19 / 20);
}
