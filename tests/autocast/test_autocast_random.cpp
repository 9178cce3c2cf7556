// Random graphs: precisions equal the oracle's, and invariants of all graphs hold.
#include <cstring>
#include <functional>
#include <numeric>

#include "oracle_autocast.h"
#include "test_graph.h"

using namespace mptest;
using namespace mptest::autocast;

namespace {

uint32_t below(Random &random, size_t n) {
  return static_cast<uint32_t>(random.integer(0, static_cast<int64_t>(n) - 1));
}

bool chance(Random &random, int percent) {
  return random.integer(0, 99) < percent;
}

struct Drawn {
  Graph graph;
  mp_autocast_config_t config;

  std::vector<mp_op_class_t> classes() const {
    std::vector<mp_op_class_t> c;
    for (const Graph::Node &n : graph.nodes)
      c.push_back(static_cast<mp_op_class_t>(n.node_class - 1));
    return c;
  }
};

uint16_t draw_flags(Random &random, bool has_casts) {
  constexpr mp_node_flags_t kRare[] = {MP_NODE_FLAG_KEEP_FP32, MP_NODE_FLAG_OTHER_DEVICE,
                                       MP_NODE_FLAG_NO_LOW, MP_NODE_FLAG_READS_VARIABLE,
                                       MP_NODE_FLAG_BACK_EDGE};
  uint16_t flags = 0;
  for (const mp_node_flags_t flag : kRare)
    if (chance(random, 6)) flags |= static_cast<uint16_t>(flag);
  if (chance(random, 15)) flags |= MP_NODE_FLAG_READS_EITHER;
  if (chance(random, 25)) flags |= MP_NODE_FLAG_WRITES_EITHER;
  if (has_casts && chance(random, 15)) flags |= MP_NODE_FLAG_CAST;
  return flags;
}

uint8_t draw_slot(Random &random) {
  return chance(random, 85)   ? uint8_t{0}
         : chance(random, 50) ? uint8_t{1}
                              : uint8_t{MP_AUTOCAST_SLOT_FP32};
}

/// Assigns each node to at most one cluster, so that the order of clusters has no effect.
void draw_clusters(Random &random, Graph &g) {
  std::vector<int32_t> nodes(g.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  for (size_t i = nodes.size(); i > 1; i--) std::swap(nodes[i - 1], nodes[below(random, i)]);
  for (size_t next = 0; next + 4 < nodes.size() && chance(random, 60);) {
    Graph::Cluster cluster{{}, static_cast<uint8_t>(below(random, 2))};
    for (uint32_t left = 1 + below(random, 4); left > 0; left--)
      cluster.members.push_back(nodes[next++]);
    g.clusters.push_back(cluster);
  }
}

Drawn draw(uint64_t seed, size_t num_nodes) {
  Random random(seed);
  Drawn d{};
  d.config = mp_autocast_config_default(chance(random, 60) ? MP_FP16 : MP_BF16);
  d.config.preset = chance(random, 75) ? MP_AUTOCAST_PRESET_TENSORFLOW : MP_AUTOCAST_PRESET_PYTORCH;
  d.config.level = static_cast<mp_autocast_level_t>(
      MP_AUTOCAST_LEVEL_NORMAL + below(random, d.config.dtype_low == MP_FP16 ? 4 : 3));
  if (chance(random, 20)) d.config.flags |= MP_AUTOCAST_FLAG_KEEP_IO;
  const bool has_clusters = chance(random, 40);
  const bool has_casts = chance(random, 40);
  const bool has_circles = chance(random, 30);

  // More classes that low precision propagates through than classes that stop it.
  constexpr mp_op_class_t kClasses[] = {MP_OP_CLASS_ALLOW,    MP_OP_CLASS_ALLOW,  MP_OP_CLASS_INFER,
                                        MP_OP_CLASS_INFER,    MP_OP_CLASS_CLEAR,  MP_OP_CLASS_CLEAR,
                                        MP_OP_CLASS_CLEAR,    MP_OP_CLASS_CLEAR,  MP_OP_CLASS_DENY,
                                        MP_OP_CLASS_UNLISTED, MP_OP_CLASS_PROMOTE};
  Graph &g = d.graph;
  for (size_t i = 0; i < num_nodes; i++) {
    Graph::Node n;
    n.node_class = static_cast<uint8_t>(1 + kClasses[below(random, std::size(kClasses))]);
    n.flags = draw_flags(random, has_casts);
    g.nodes.push_back(n);
    for (uint32_t outputs = chance(random, 85) ? 1 : below(random, 3); outputs > 0; outputs--) {
      Graph::Tensor t;
      t.producer = static_cast<int32_t>(i);
      t.slot = draw_slot(random);
      if (chance(random, 8)) t.dtype = chance(random, 50) ? MP_DTYPE_NONE : MP_FP16;
      if (t.slot == MP_AUTOCAST_SLOT_FP32 && t.dtype == MP_FP16) t.dtype = MP_FP32;
      t.role = static_cast<uint8_t>(chance(random, 85) ? 0 : 1 + below(random, 2));
      g.tensors.push_back(t);
    }
  }
  for (int outside = 0; outside < 3; outside++) {
    g.tensors.emplace_back();
    g.tensors.back().role = outside == 0 ? MP_TENSOR_ROLE_PARAMETER : MP_TENSOR_ROLE_ACTIVATION;
  }
  const size_t num_tensors = g.tensors.size();
  for (size_t i = 0; i < num_nodes; i++) {
    for (uint32_t inputs = below(random, 4); inputs > 0; inputs--) {
      Graph::Input in{static_cast<int32_t>(below(random, num_tensors)), draw_slot(random)};
      const Graph::Tensor &t = g.tensors[static_cast<size_t>(in.tensor)];
      if (!has_circles && t.producer >= static_cast<int32_t>(i))
        in.tensor = static_cast<int32_t>(num_tensors) - 1;
      if (g.tensors[static_cast<size_t>(in.tensor)].dtype == MP_FP16 &&
          in.slot == MP_AUTOCAST_SLOT_FP32)
        in.slot = 0;
      if (chance(random, 3)) in.tensor = -1;
      g.nodes[i].inputs.push_back(in);
    }
  }
  if (has_clusters) {
    draw_clusters(random, g);
    for (uint32_t edges = below(random, 4); edges > 0; edges--)
      g.hidden.push_back({static_cast<int32_t>(below(random, num_nodes)),
                          static_cast<int32_t>(below(random, num_nodes))});
  }
  return d;
}

std::string repro(uint64_t seed, size_t num_nodes) {
  return format("draw(%llu, %zu)", static_cast<unsigned long long>(seed), num_nodes);
}

OracleConfig oracle_config(const Drawn &d) {
  return {d.config.dtype_low, d.config.level, d.config.preset == MP_AUTOCAST_PRESET_PYTORCH,
          (d.config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0};
}

// ---------------------------------------------------------------------------- invariants

/// Precision of each vertex, from the oracle, which agrees with the library on every node.
struct Precisions {
  const Graph &graph;
  const Oracle &oracle;

  bool is_fp32(int32_t tensor) const {
    return graph.tensors[static_cast<size_t>(tensor)].dtype == MP_FP32;
  }
  bool has_low_producer(int32_t tensor) const {
    const Graph::Tensor &t = graph.tensors[static_cast<size_t>(tensor)];
    return t.producer >= 0 && t.dtype == MP_FP32 && oracle.is_low(t.producer, t.slot);
  }
};

/// Returns the lowest slot on which the node reads or writes an fp32 tensor; 0 if there is none.
uint8_t main_slot(const Graph &g, int32_t node) {
  int slot = 256;
  for (const Graph::Input &in : g.nodes[static_cast<size_t>(node)].inputs)
    if (in.tensor >= 0 && g.tensors[static_cast<size_t>(in.tensor)].dtype == MP_FP32)
      slot = std::min<int>(slot, in.slot);
  for (const Graph::Tensor &t : g.tensors)
    if (t.producer == node && t.dtype == MP_FP32) slot = std::min<int>(slot, t.slot);
  return slot == 256 ? uint8_t{0} : static_cast<uint8_t>(slot);
}

std::string check_precisions(const Graph &g, const Result &r, const Oracle &oracle) {
  int32_t num_low = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(g.nodes.size()); i++) {
    const bool wanted = oracle.is_low(i, main_slot(g, i));
    num_low += wanted ? 1 : 0;
    if (r.is_low(i) != wanted)
      return format("node %d is %s", i, wanted ? "fp32, but must be low" : "low, but must be fp32");
    if ((r.node_reason[static_cast<size_t>(i)] >= 32) != wanted)
      return format("node %d has reason %d", i, r.node_reason[static_cast<size_t>(i)]);
  }
  return num_low == r.num_low_nodes
             ? ""
             : format("num_low_nodes = %d, not %d", r.num_low_nodes, num_low);
}

/// Checks that types and casts follow from the precisions.
std::string check_casts(const Drawn &d, const Result &r, const Oracle &oracle) {
  const Graph &g = d.graph;
  const Precisions precisions{g, oracle};
  const bool keeps_io = (d.config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0;
  struct Readers {
    int all = 0, low = 0, fp32 = 0;  ///< low, fp32: readers that require the type
  };
  std::vector<Readers> readers(g.tensors.size());
  size_t input = 0;
  std::vector<int> cast_readers(r.casts.size(), 0);
  for (int32_t i = 0; i < static_cast<int32_t>(g.nodes.size()); i++) {
    const Graph::Node &n = g.nodes[static_cast<size_t>(i)];
    for (const Graph::Input &in : n.inputs) {
      const int32_t cast = r.input_cast[input++];
      if (in.tensor < 0 || !precisions.is_fp32(in.tensor)) {
        if (cast != -1) return format("input %zu has a cast", input - 1);
        continue;
      }
      const auto t = static_cast<size_t>(in.tensor);
      const bool reads_either =
          (n.flags & MP_NODE_FLAG_READS_EITHER) != 0 && in.slot != MP_AUTOCAST_SLOT_FP32;
      const bool wants_low = oracle.is_low(i, in.slot);
      readers[t].all++;
      if (!reads_either) (wants_low ? readers[t].low : readers[t].fp32)++;
      uint8_t gets = r.tensor_dtype[t];
      if (cast >= 0) {
        if (cast >= r.num_casts())
          return format("input %zu has cast %d of %d", input - 1, cast, r.num_casts());
        const mp_autocast_cast_t &c = r.casts[static_cast<size_t>(cast)];
        if (c.tensor != in.tensor || c.from != gets)
          return format("input %zu has another's cast", input - 1);
        gets = static_cast<uint8_t>(c.to);
        cast_readers[static_cast<size_t>(cast)]++;
      }
      if (!reads_either && gets != (wants_low ? d.config.dtype_low : MP_FP32))
        return format("input %zu gets type %d", input - 1, gets);
    }
  }
  std::vector<int> casts_of(g.tensors.size(), 0);
  int model_copies = 0;
  for (size_t c = 0; c < r.casts.size(); c++) {
    const mp_autocast_cast_t &cast = r.casts[c];
    const auto t = static_cast<size_t>(cast.tensor);
    const bool is_outside =
        keeps_io && g.tensors[t].role == MP_TENSOR_ROLE_OUTPUT && cast.to == MP_FP32;
    if (cast.readers != cast_readers[c] + (is_outside ? 1 : 0))
      return format("cast %zu has other readers", c);
    if (cast.readers == 0) return format("cast %zu has no readers", c);
    if (c > 0 && r.casts[c - 1].tensor >= cast.tensor)
      return "casts are not in order of their tensors";
    const bool is_copy =
        g.tensors[t].role == MP_TENSOR_ROLE_PARAMETER && cast.to == d.config.dtype_low;
    if (is_copy != (cast.kind == MP_CAST_KIND_MODEL_COPY))
      return format("cast %zu has the wrong kind", c);
    model_copies += is_copy ? 1 : 0;
    casts_of[t]++;
  }
  if (model_copies != r.num_parameters_low) return "num_parameters_low";
  for (size_t t = 0; t < g.tensors.size(); t++) {
    const Graph::Tensor &tensor = g.tensors[t];
    if (tensor.dtype != MP_FP32) {
      if (r.tensor_dtype[t] != tensor.dtype)
        return format("tensor %zu, of another type, was changed", t);
      continue;
    }
    const bool is_low = precisions.has_low_producer(static_cast<int32_t>(t));
    const bool is_output = tensor.role == MP_TENSOR_ROLE_OUTPUT;
    Readers &want = readers[t];
    if (is_output && keeps_io) want.all++, want.fp32++;
    const int others = is_low ? want.fp32 : want.low;
    const bool is_copy = tensor.role == MP_TENSOR_ROLE_PARAMETER && !is_low;
    const bool can_write =
        tensor.producer >= 0 && tensor.slot != MP_AUTOCAST_SLOT_FP32 && !is_copy &&
        (g.nodes[static_cast<size_t>(tensor.producer)].flags & MP_NODE_FLAG_WRITES_EITHER) != 0 &&
        (!is_output || keeps_io);
    const bool writes_other = can_write && others > 0 && others == want.all;
    const uint8_t written =
        is_low != writes_other ? static_cast<uint8_t>(d.config.dtype_low) : uint8_t{MP_FP32};
    if (r.tensor_dtype[t] != written)
      return format("tensor %zu is written as %d", t, r.tensor_dtype[t]);
    if (casts_of[t] != (others > 0 && !writes_other ? 1 : 0))
      return format("tensor %zu has %d casts", t, casts_of[t]);
  }
  return "";
}

/// Checks the causes of decisions; the precisions are the oracle's.
std::string check_causes(const Drawn &d, const Result &r) {
  for (size_t i = 0; i < d.graph.nodes.size(); i++) {
    const int32_t because = r.node_cause[i];
    if (because < -1 || because >= static_cast<int32_t>(d.graph.nodes.size()))
      return format("node %zu has cause %d", i, because);
    if (r.node_reason[i] == MP_AUTOCAST_REASON_DENY_UPSTREAM && (because < 0 || r.is_low(because)))
      return format("node %zu is denied by %d", i, because);
    const bool has_low_cause = r.node_reason[i] == MP_AUTOCAST_REASON_BETWEEN_ALLOW ||
                               r.node_reason[i] == MP_AUTOCAST_REASON_CAST_ABSORBED;
    if (has_low_cause && because < 0) return format("node %zu has no cause", i);
  }
  return "";
}

/// Checks the same graph with its nodes permuted.
std::string check_permuted(const Policy &policy, const Drawn &d, const Result &r, Random &random) {
  const size_t n = d.graph.nodes.size();
  std::vector<int32_t> place(n);
  std::iota(place.begin(), place.end(), 0);
  for (size_t i = n; i > 1; i--) std::swap(place[i - 1], place[below(random, i)]);
  Graph other = d.graph;
  const auto moved = [&](int32_t node) {
    return node < 0 ? node : place[static_cast<size_t>(node)];
  };
  for (size_t i = 0; i < n; i++) other.nodes[static_cast<size_t>(place[i])] = d.graph.nodes[i];
  for (Graph::Tensor &t : other.tensors) t.producer = moved(t.producer);
  for (Graph::Edge &e : other.hidden) e = {moved(e.src), moved(e.dst)};
  for (Graph::Cluster &c : other.clusters)
    for (int32_t &m : c.members) m = moved(m);
  const Result q = rewrite(policy, other);
  if (q.tensor_dtype != r.tensor_dtype) return "types depend on the order of nodes";
  for (size_t i = 0; i < n; i++) {
    const auto j = static_cast<size_t>(place[i]);
    if (q.node_dtype[j] != r.node_dtype[i])
      return format("the precision of node %zu depends on the order", i);
    // Another member of the cluster may have decided.
    if (q.node_reason[j] != r.node_reason[i] && d.graph.clusters.empty())
      return format("the reason of node %zu depends on the order", i);
  }
  for (size_t c = 0; c < r.casts.size(); c++)
    if (q.casts.size() != r.casts.size() ||
        std::memcmp(&q.casts[c], &r.casts[c], sizeof r.casts[c]) != 0)
      return "casts depend on the order of nodes";
  return "";
}

/// Checks that emulation has equal precisions, keeps all types, and rounds low-precision tensors.
std::string check_emulated(const Drawn &d, const Result &plain, const Oracle &oracle,
                           Graph &graph) {
  mp_autocast_config_t config = d.config;
  config.flags |= MP_AUTOCAST_FLAG_EMULATE;
  const Result r = rewrite(Policy(config), graph);
  if (r.node_dtype != plain.node_dtype) return "emulation has other precisions";
  struct Readers {
    int low = 0, fp32 = 0;
  };
  std::vector<Readers> readers(graph.tensors.size());
  const Precisions precisions{graph, oracle};
  int32_t wanted = 0;
  size_t input = 0;
  std::vector<int> cast_readers(r.casts.size(), 0);
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes.size()); i++)
    for (const Graph::Input &in : graph.nodes[static_cast<size_t>(i)].inputs) {
      const int32_t cast = r.input_cast[input++];
      if (in.tensor < 0 || !precisions.is_fp32(in.tensor)) {
        if (cast != -1) return format("input %zu has a cast", input - 1);
        continue;
      }
      const bool is_low = oracle.is_low(i, in.slot);
      Readers &of = readers[static_cast<size_t>(in.tensor)];
      (is_low ? of.low : of.fp32)++;
      const bool is_rounded = is_low || precisions.has_low_producer(in.tensor);
      if ((cast >= 0) != is_rounded) return format("input %zu is rounded incorrectly", input - 1);
      if (cast < 0) continue;
      const mp_autocast_cast_t &c = r.casts[static_cast<size_t>(cast)];
      if (c.tensor != in.tensor || c.to != MP_FP32 || c.from != config.dtype_low)
        return format("input %zu reads cast %d", input - 1, cast);
      if (is_low && c.readers != 1) return format("input %zu shares its cast", input - 1);
      cast_readers[static_cast<size_t>(cast)]++;
      wanted += is_low ? 1 : 0;
    }
  std::vector<int> to_low(graph.tensors.size(), 0);
  for (size_t c = 0; c < r.casts.size(); c++) {
    const mp_autocast_cast_t &cast = r.casts[c];
    const auto t = static_cast<size_t>(cast.tensor);
    if (cast.to != MP_FP32)
      to_low[t]++;
    else if (cast.readers != cast_readers[c] && graph.tensors[t].role != MP_TENSOR_ROLE_OUTPUT)
      return format("cast %zu has other readers", c);
  }
  for (size_t t = 0; t < graph.tensors.size(); t++) {
    if (r.tensor_dtype[t] != graph.tensors[t].dtype)
      return format("tensor %zu changes its type", t);
    Readers &of = readers[t];
    if ((config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0 &&
        graph.tensors[t].role == MP_TENSOR_ROLE_OUTPUT && graph.tensors[t].dtype == MP_FP32)
      of.fp32++;
    const bool is_low = precisions.has_low_producer(static_cast<int32_t>(t));
    const int is_rounded = (is_low ? of.low + of.fp32 : of.low) > 0 ? 1 : 0;
    if (to_low[t] != is_rounded) return format("tensor %zu is rounded %d times", t, to_low[t]);
    wanted += is_rounded + (is_low && of.fp32 > 0 ? 1 : 0);
  }
  return wanted == r.num_casts() ? "" : format("%d casts, not %d", r.num_casts(), wanted);
}

/// Returns the first violation, or an empty string.
std::string check_graph(uint64_t seed, size_t num_nodes) {
  Drawn d = draw(seed, num_nodes);
  const Policy policy(d.config);
  const Result r = rewrite(policy, d.graph);
  const Oracle oracle(d.graph, d.classes(), oracle_config(d));
  Random random(~seed);
  for (const auto &check : {std::function([&] { return check_precisions(d.graph, r, oracle); }),
                            std::function([&] { return check_casts(d, r, oracle); }),
                            std::function([&] { return check_causes(d, r); }),
                            std::function([&] { return check_permuted(policy, d, r, random); }),
                            std::function([&] { return check_emulated(d, r, oracle, d.graph); })}) {
    const std::string violation = check();
    if (!violation.empty()) return violation;
  }
  return "";
}

void check_many(uint64_t first, uint64_t count, size_t num_nodes) {
  for (uint64_t seed = first; seed < first + count; seed++) {
    const std::string violation = check_graph(seed, num_nodes);
    if (!violation.empty()) expect_none(violation, repro(seed, num_nodes));
  }
  SUCCEED(count << " graphs");
}

}  // namespace

TEST_CASE("autocast: random graphs of 18 nodes equal the oracle", "[autocast][pure][long]") {
  check_many(0, 100000, 18);
}

TEST_CASE("autocast: random graphs of 1 to 8 nodes equal the oracle", "[autocast][pure]") {
  for (const size_t num_nodes : {1, 2, 3, 5, 8}) check_many(1000000 * num_nodes, 4000, num_nodes);
}

TEST_CASE("autocast: random graphs of 2000 nodes equal the oracle", "[autocast][pure][long]") {
  check_many(0, 1000, 2000);
}
