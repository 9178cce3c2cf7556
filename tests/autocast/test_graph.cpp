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

int32_t Graph::num_inputs() const {
  size_t count = 0;
  for (const Node &n : nodes) count += n.inputs.size();
  return static_cast<int32_t>(count);
}

const mp_autocast_graph_t &Graph::view() {
  op_.clear(), name_.clear(), class_.clear(), flags_.clear(), depth_.clear();
  input_.clear(), input_slot_.clear();
  input_offsets_ = {0};
  for (const Node &n : nodes) {
    op_.push_back(n.op.empty() ? nullptr : n.op.c_str());
    name_.push_back(n.name.empty() ? nullptr : n.name.c_str());
    class_.push_back(n.node_class);
    flags_.push_back(n.flags);
    depth_.push_back(n.depth);
    for (const Input &in : n.inputs) {
      input_.push_back(in.tensor);
      input_slot_.push_back(in.slot);
    }
    input_offsets_.push_back(static_cast<int32_t>(input_.size()));
  }
  producer_.clear(), tensor_slot_.clear(), dtype_.clear(), role_.clear(), amax_.clear();
  for (const Tensor &t : tensors) {
    producer_.push_back(t.producer);
    tensor_slot_.push_back(t.slot);
    dtype_.push_back(t.dtype);
    role_.push_back(t.role);
    amax_.push_back(t.amax);
  }
  hidden_src_.clear(), hidden_dst_.clear();
  for (const Edge &e : hidden) {
    hidden_src_.push_back(e.src);
    hidden_dst_.push_back(e.dst);
  }
  member_offsets_ = {0};
  member_.clear(), kind_.clear();
  for (const Cluster &c : clusters) {
    member_.insert(member_.end(), c.members.begin(), c.members.end());
    member_offsets_.push_back(static_cast<int32_t>(member_.size()));
    kind_.push_back(c.kind);
  }
  MP_INIT_STRUCT(&view_);
  view_.num_nodes = static_cast<uint32_t>(nodes.size());
  view_.num_tensors = static_cast<uint32_t>(tensors.size());
  view_.num_hidden_edges = static_cast<uint32_t>(hidden.size());
  view_.num_clusters = static_cast<uint32_t>(clusters.size());
  view_.node_op = op_.data();
  view_.node_class = class_.data();
  view_.node_name = name_.data();
  view_.node_flags = flags_.data();
  view_.node_depth = depth_.data();
  view_.input_offsets = input_offsets_.data();
  view_.input_tensor = input_.data();
  view_.input_slot = input_slot_.data();
  view_.tensor_producer = producer_.data();
  view_.tensor_slot = tensor_slot_.data();
  view_.tensor_dtype = dtype_.data();
  view_.tensor_role = role_.data();
  view_.tensor_amax = amax_.data();
  view_.hidden_src = hidden_src_.data();
  view_.hidden_dst = hidden_dst_.data();
  view_.member_offsets = member_offsets_.data();
  view_.member = member_.data();
  view_.cluster_kind = kind_.data();
  return view_;
}

// ---------------------------------------------------------------------------- rewriting

namespace {

mp_autocast_config_t config_of(mp_autocast_preset_t preset, mp_dtype_t low) {
  mp_autocast_config_t config = mp_autocast_config_default(low);
  config.preset = preset;
  return config;
}

}  // namespace

Policy::Policy(mp_autocast_config_t config) {
  config.flags |= MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  require_ok(mp_autocast_create(&handle_, &config));
}

Policy::Policy(mp_autocast_preset_t preset, mp_dtype_t low) : Policy(config_of(preset, low)) {}

Result rewrite(const Policy &policy, Graph &graph) {
  Result r{};
  const size_t num_nodes = graph.nodes.size(), num_tensors = graph.tensors.size();
  const auto num_inputs = static_cast<size_t>(graph.num_inputs());
  constexpr uint8_t kUnwritten = 77;
  r.tensor_dtype.assign(num_tensors, kUnwritten);
  r.node_dtype.assign(num_nodes, kUnwritten);
  r.node_reason.assign(num_nodes, kUnwritten);
  r.node_cause.assign(num_nodes, kUnwritten);
  r.input_cast.assign(num_inputs, kUnwritten);
  r.casts.resize(2 * num_tensors + num_inputs);  // the maximum, for emulation
  auto result = initialized<mp_autocast_result_t>();
  result.tensor_dtype = r.tensor_dtype.data();
  result.node_dtype = r.node_dtype.data();
  result.node_reason = r.node_reason.data();
  result.node_cause = r.node_cause.data();
  result.input_cast = r.input_cast.data();
  result.casts = r.casts.data();
  require_ok(mp_autocast_rewrite(policy.get(), nullptr, &graph.view(), &result));
  r.num_casts = result.num_casts;
  r.num_low_nodes = result.num_low_nodes;
  r.num_parameters_low = result.num_parameters_low;
  r.disabled_reason = result.disabled_reason;
  REQUIRE(r.num_casts >= 0);
  r.casts.resize(static_cast<size_t>(r.num_casts));
  return r;
}

std::string explain(const Policy &policy, Graph &graph, mp_autocast_format_t form) {
  auto result = initialized<mp_autocast_result_t>();
  const mp_autocast_graph_t &view = graph.view();
  require_ok(mp_autocast_rewrite(policy.get(), nullptr, &view, &result));
  size_t bytes = 0;
  require_ok(mp_autocast_explain(policy.get(), &view, &result, form, nullptr, &bytes));
  std::string text(bytes, '?');
  const size_t room = bytes;
  require_ok(mp_autocast_explain(policy.get(), &view, &result, form, text.data(), &bytes));
  REQUIRE(bytes == room);
  REQUIRE(text.back() == '\0');
  text.pop_back();
  REQUIRE(text.find('\0') == std::string::npos);
  return text;
}

std::string low_nodes(const Graph &graph, const Result &result) {
  std::string names;
  for (size_t i = 0; i < graph.nodes.size(); i++)
    if (result.is_low(static_cast<int32_t>(i)))
      names += (names.empty() ? "" : " ") + graph.nodes[i].name;
  return names;
}

}  // namespace mptest::autocast
