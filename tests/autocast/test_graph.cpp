#include "test_graph.h"

#include <algorithm>
#include <sstream>

namespace mptest::autocast {

namespace {

constexpr std::string_view kFlags[] = {"keep_fp32",    "other_device",   "no_low",
                                       "cast",         "reads_variable", "back_edge",
                                       "reads_either", "writes_either"};

uint16_t flag_named(std::string_view name) {
  const auto *const found = std::find(std::begin(kFlags), std::end(kFlags), name);
  REQUIRE(found != std::end(kFlags));
  return static_cast<uint16_t>(1 << (found - std::begin(kFlags)));
}

uint8_t slot_of(const std::string &word) {
  const size_t at = word.find('@');
  return at == std::string::npos ? 0 : static_cast<uint8_t>(std::stoi(word.substr(at + 1)));
}

}  // namespace

Graph Graph::parse(std::string_view text) {
  Graph g;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) g.read_line(line);
  return g;
}

int32_t Graph::tensor_named(const std::string &name) {
  const auto found = std::find(tensor_names_.begin(), tensor_names_.end(), name);
  if (found != tensor_names_.end()) return static_cast<int32_t>(found - tensor_names_.begin());
  tensor_names_.push_back(name);
  tensors.emplace_back();
  return static_cast<int32_t>(tensors.size()) - 1;
}

int32_t Graph::find_node(std::string_view name) const {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const Node &n) { return n.name == name; });
  REQUIRE(found != nodes.end());
  return static_cast<int32_t>(found - nodes.begin());
}

// A tensor has the name of its producer, which may follow its readers: graphs have cycles.
void Graph::read_line(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string first, word;
  if (!(words >> first) || first[0] == '#') return;
  const auto tensor = [&]() -> Tensor & {
    words >> word;
    return tensors[static_cast<size_t>(tensor_named(word))];
  };
  if (first == "parameter") {
    tensor().role = MP_TENSOR_ROLE_PARAMETER;
  } else if (first == "integer") {
    tensor().dtype = MP_DTYPE_NONE;
  } else if (first == "half") {
    tensor().dtype = MP_FP16;
  } else if (first == "output") {
    tensor().role = MP_TENSOR_ROLE_OUTPUT;
  } else if (first == "hidden") {
    std::string other;
    words >> word >> other;
    hidden.push_back({find_node(word), find_node(other)});
  } else if (first == "container" || first == "loop") {
    Cluster cluster{{}, static_cast<uint8_t>(first == "loop" ? 1 : 0)};
    while (words >> word) cluster.members.push_back(find_node(word));
    clusters.push_back(cluster);
  } else {
    const auto node = static_cast<int32_t>(nodes.size());
    Node n;
    n.name = first;
    words >> n.op;
    tensors[static_cast<size_t>(tensor_named(first))].producer = node;
    int32_t outputs = 1;
    while (words >> word) {
      Tensor &output = tensors[static_cast<size_t>(tensor_named(first))];
      if (word[0] == '!') {
        n.flags |= flag_named(std::string_view(word).substr(1));
      } else if (word == ">none") {
        output.dtype = MP_DTYPE_NONE;
      } else if (word == ">half") {
        output.dtype = MP_FP16;
      } else if (word[0] == '>') {
        Tensor &another =
            tensors[static_cast<size_t>(tensor_named(first + "." + std::to_string(outputs++)))];
        another.producer = node;
        another.slot = slot_of(word);
      } else if (word[0] == '=') {
        output.slot = slot_of(word);
      } else if (word[0] == '~') {
        n.depth = std::stoll(word.substr(1));
      } else if (word[0] == '^') {
        output.amax = std::stof(word.substr(1));
      } else if (word == "-") {
        n.inputs.push_back({-1});
      } else {
        n.inputs.push_back({tensor_named(word.substr(0, word.find('@'))), slot_of(word)});
      }
    }
    nodes.push_back(n);
  }
}

const mp_autocast_graph_t &Graph::view() {
  mp::autocast_graph built;
  for (const Node &n : nodes) {
    mp::autocast_node node{n.op, {}, n.name, n.flags, n.depth};
    if (n.node_class > 0) node.node_class = static_cast<mp_op_class_t>(n.node_class - 1);
    for (const Input &in : n.inputs) node.inputs.emplace_back(in.tensor, in.slot);
    built.add_node(node);
  }
  for (const Tensor &t : tensors)
    built.add_tensor({t.producer, static_cast<mp_dtype_t>(t.dtype),
                      static_cast<mp_tensor_role_t>(t.role), t.slot, t.amax});
  for (const Edge &e : hidden) built.add_hidden_edge(e.src, e.dst);
  for (const Cluster &c : clusters)
    c.kind == 0 ? built.add_container(c.members) : built.add_loop(c.members);
  built_ = std::make_shared<const mp::autocast_graph>(std::move(built));
  return view_ = built_->get();
}

// ---------------------------------------------------------------------------- rewriting

namespace {

mp_autocast_config_t config_of(mp_autocast_preset_t preset, mp_dtype_t low) {
  mp_autocast_config_t config = mp_autocast_config_default(low);
  config.preset = preset;
  return config;
}

mp::autocast make_policy(mp_autocast_config_t config) {
  config.flags |= MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  return mp::autocast::create(config);
}

}  // namespace

Policy::Policy(const mp_autocast_config_t &config) : mp::autocast(make_policy(config)) {}

Policy::Policy(mp_autocast_preset_t preset, mp_dtype_t low) : Policy(config_of(preset, low)) {}

Result rewrite(const Policy &policy, Graph &graph) {
  return {policy.rewrite(nullptr, graph.view())};
}

std::string explain(const Policy &policy, Graph &graph, mp_autocast_format_t form) {
  return policy.explain(graph.view(), rewrite(policy, graph), form);
}

std::string low_nodes(const Graph &graph, const Result &result) {
  std::string names;
  for (size_t i = 0; i < graph.nodes.size(); i++)
    if (result.is_low(static_cast<int32_t>(i)))
      names += (names.empty() ? "" : " ") + graph.nodes[i].name;
  return names;
}

}  // namespace mptest::autocast
