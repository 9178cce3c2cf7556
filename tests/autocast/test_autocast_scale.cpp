// Large and deep graphs, and random bytes.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// Source of arrays that form a nearly valid graph.
class Bytes {
 public:
  explicit Bytes(uint64_t seed) : random_(seed) {}
  uint64_t next() { return random_.bits(); }
  bool chance(uint64_t percent) { return next() % 100 < percent; }
  /// Heap array of exact size, so that a sanitizer detects accesses beyond it; mostly small values.
  template <class T>
  std::unique_ptr<T[]> array(size_t count, uint64_t below, int64_t from = 0) {
    auto values = std::make_unique<T[]>(count);
    for (size_t i = 0; i < count; i++)
      values[i] = static_cast<T>(chance(2) ? next() : from + static_cast<int64_t>(next() % below));
    return values;
  }

 private:
  Random random_;
};

/// Returns whether the library accepted the graph.
bool rewrite_bytes(mp_autocast_t policy, uint64_t seed) {
  Bytes bytes(seed);
  const size_t nodes = bytes.next() % 6, tensors = bytes.next() % 6, edges = bytes.next() % 3;
  const size_t clusters = bytes.next() % 3;
  const auto ranges = [&](size_t count, size_t *total) {
    auto first = std::make_unique<int32_t[]>(count + 1);
    for (size_t i = 0; i < count; i++)
      first[i + 1] = first[i] + static_cast<int32_t>(bytes.next() % 4);
    *total = static_cast<size_t>(first[count]);
    // The last offset stays valid: it determines how many elements are read.
    if (count > 0 && bytes.chance(2))
      first[bytes.next() % count] = static_cast<int32_t>(bytes.next());
    return first;
  };
  size_t inputs, members;
  const auto input_offsets = ranges(nodes, &inputs);
  const auto member_offsets = ranges(clusters, &members);
  constexpr const char *kOps[] = {
      "MatMul", "Exp", "Relu", "Tanh", "", "FusedBatchNorm", "FusedBatchNormGrad"};
  auto op = std::make_unique<const char *[]>(nodes);
  for (size_t i = 0; i < nodes; i++)
    op[i] = bytes.chance(2) ? nullptr : kOps[bytes.next() % std::size(kOps)];
  const auto node_class = bytes.array<uint8_t>(nodes, 7);
  const auto flags = bytes.array<uint16_t>(nodes, 256);
  const auto depth = bytes.array<int64_t>(nodes, 9);
  const auto input = bytes.array<int32_t>(inputs, tensors + 1, -1);
  const auto input_slot = bytes.array<uint8_t>(inputs, 3);
  const auto producer = bytes.array<int32_t>(tensors, nodes + 1, -1);
  const auto tensor_slot = bytes.array<uint8_t>(tensors, 3);
  const auto dtype = bytes.array<uint8_t>(tensors, 4);
  const auto role = bytes.array<uint8_t>(tensors, 3);
  auto amax = std::make_unique<float[]>(tensors);
  for (size_t t = 0; t < tensors; t++) {
    const auto bits = static_cast<uint32_t>(bytes.next());
    std::memcpy(&amax[t], &bits, sizeof bits);
  }
  const auto src = bytes.array<int32_t>(edges, nodes + (nodes == 0 ? 1 : 0));
  const auto dst = bytes.array<int32_t>(edges, nodes + (nodes == 0 ? 1 : 0));
  const auto member = bytes.array<int32_t>(members, nodes + (nodes == 0 ? 1 : 0));
  const auto kind = bytes.array<uint8_t>(clusters, 2);
  const auto or_null = [&](auto *pointer) { return bytes.chance(10) ? nullptr : pointer; };
  auto g = initialized<mp_autocast_graph_t>();
  g.num_nodes = static_cast<uint32_t>(nodes), g.num_tensors = static_cast<uint32_t>(tensors);
  g.num_hidden_edges = static_cast<uint32_t>(edges),
  g.num_clusters = static_cast<uint32_t>(clusters);
  g.node_op = or_null(op.get()), g.node_class = or_null(node_class.get());
  g.node_name = nullptr, g.node_flags = or_null(flags.get()), g.node_depth = or_null(depth.get());
  g.input_offsets = bytes.chance(1) ? nullptr : input_offsets.get(), g.input_tensor = input.get();
  g.input_slot = or_null(input_slot.get()), g.tensor_producer = producer.get();
  g.tensor_slot = or_null(tensor_slot.get()), g.tensor_dtype = dtype.get();
  g.tensor_role = or_null(role.get()), g.tensor_amax = or_null(amax.get());
  g.hidden_src = src.get(), g.hidden_dst = dst.get();
  g.member_offsets = member_offsets.get(), g.member = member.get(),
  g.cluster_kind = or_null(kind.get());

  const auto node_dtype = std::make_unique<uint8_t[]>(nodes),
             why = std::make_unique<uint8_t[]>(nodes);
  const auto tensor_dtype = std::make_unique<uint8_t[]>(tensors);
  const auto because = std::make_unique<int32_t[]>(nodes),
             cast = std::make_unique<int32_t[]>(inputs);
  const auto casts = std::make_unique<mp_autocast_cast_t[]>(2 * tensors + inputs);
  auto r = initialized<mp_autocast_result_t>();
  r.tensor_dtype = tensor_dtype.get(), r.node_dtype = node_dtype.get(), r.node_reason = why.get();
  r.node_cause = because.get(), r.input_cast = cast.get(), r.casts = casts.get();
  const mp_status_t status = mp_autocast_rewrite(policy, nullptr, &g, &r);
  if (status != MP_SUCCESS) {
    REQUIRE(status == MP_ERROR_INVALID_ARGUMENT);
    REQUIRE(std::strstr(mp_last_error(), "graph->") != nullptr);
    REQUIRE(r.num_casts == 0);
    return false;
  }
  size_t needed = 0;
  for (const mp_autocast_format_t form :
       {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT}) {
    if (!bytes.chance(5)) continue;
    REQUIRE(mp_autocast_explain(policy, &g, &r, form, nullptr, &needed) == MP_SUCCESS);
    const auto text = std::make_unique<char[]>(needed);
    REQUIRE(mp_autocast_explain(policy, &g, &r, form, text.get(), &needed) == MP_SUCCESS);
  }
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
  const mp_autocast_t policies[] = {propagating.get(), forward_only.get(), forcing.get()};
  uint64_t accepted = 0;
  for (uint64_t seed = 0; seed < kGraphs; seed++)
    accepted += rewrite_bytes(policies[seed % 3], seed) ? 1 : 0;
  INFO(accepted << " of " << kGraphs << " are valid graphs");
  CHECK(accepted > kGraphs / 20);
  CHECK(accepted < kGraphs * 19 / 20);
}
