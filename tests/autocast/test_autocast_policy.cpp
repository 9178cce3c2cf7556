// Policies: lists, patterns, disabled rewrites, single operations.
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "test_graph.h"
#include "tests/support/log_lines.h"

using namespace mptest;
using namespace mptest::autocast;

// ---------------------------------------------------------------------------- lists

namespace {

struct PresetName {
  mp_autocast_preset_t preset;
  const char *name;
};
constexpr PresetName kPresets[] = {{MP_AUTOCAST_PRESET_TENSORFLOW, "tensorflow"},
                                   {MP_AUTOCAST_PRESET_TENSORFLOW_BF16, "tensorflow_bf16"},
                                   {MP_AUTOCAST_PRESET_PYTORCH, "pytorch"},
                                   {MP_AUTOCAST_PRESET_ONNX, "onnx"}};

const std::map<std::string, mp_op_class_t> kClasses = {
    {"unlisted", MP_OP_CLASS_UNLISTED}, {"allow", MP_OP_CLASS_ALLOW},
    {"infer", MP_OP_CLASS_INFER},       {"deny", MP_OP_CLASS_DENY},
    {"clear", MP_OP_CLASS_CLEAR},       {"promote", MP_OP_CLASS_PROMOTE},
    {"banned", MP_OP_CLASS_DENY}};

/// Names in lists.txt of one preset, by class.
using Lists = std::map<std::string, std::vector<std::string>>;

std::map<std::string, Lists> read_lists() {
  std::ifstream file("tests/autocast/lists.txt");
  REQUIRE(file.is_open());
  std::map<std::string, Lists> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string preset, op_class;
    words >> preset >> op_class;
    REQUIRE(op_class.back() == ':');
    op_class = op_class.substr(op_class.rfind('_') + 1);  // composite_deny: deny
    op_class.pop_back();
    std::vector<std::string> &names = all[preset][op_class];  // may have several lines
    for (std::string name; words >> name;) names.push_back(name);
  }
  return all;
}

}  // namespace

TEST_CASE("autocast: presets equal the lists of their sources", "[autocast]") {
  const std::map<std::string, Lists> all = read_lists();
  REQUIRE(all.size() == std::size(kPresets));
  for (const PresetName &preset : kPresets) {
    CAPTURE(preset.name);
    const Policy policy(preset.preset);
    for (const auto &[word, names] : all.at(preset.name)) {
      for (const std::string &name : names) {
        CAPTURE(name);
        const bool is_open = preset.preset == MP_AUTOCAST_PRESET_PYTORCH && word == "unlisted";
        CHECK(policy.class_of(name.c_str()) == (is_open ? MP_OP_CLASS_CLEAR : kClasses.at(word)));
      }
    }
    // Names that only other presets list.
    for (const auto &[other, lists] : all)
      for (const auto &[word, names] : lists)
        for (const std::string &name : names) {
          const auto is_named = [&, &name = name](const auto &list) {
            return std::count(list.second.begin(), list.second.end(), name) > 0;
          };
          if (std::any_of(all.at(preset.name).begin(), all.at(preset.name).end(), is_named))
            continue;
          CAPTURE(name);
          CHECK(policy.class_of(name.c_str()) == (preset.preset == MP_AUTOCAST_PRESET_PYTORCH
                                                      ? MP_OP_CLASS_CLEAR
                                                      : MP_OP_CLASS_UNLISTED));
        }
  }
}

TEST_CASE("autocast: the default preset contains the names of all presets", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_DEFAULT);
  const auto class_of = [&](const std::string &name) { return policy.class_of(name.c_str()); };
  // If presets disagree, the first class in this list applies.
  const std::vector<std::string> strictest = {"banned", "deny",    "allow",
                                              "infer",  "promote", "clear"};
  std::map<std::string, std::string> wanted;
  for (const auto &[preset, lists] : read_lists())
    for (const std::string &word : strictest)
      if (lists.count(word) > 0)
        for (const std::string &name : lists.at(word)) {
          // Sum and Mean: TensorFlow denies them in fp16, the base of this preset.
          std::string &known = wanted[name];
          const auto rank = [&](const std::string &w) {
            return std::find(strictest.begin(), strictest.end(), w) - strictest.begin();
          };
          if (known.empty() || rank(word) < rank(known)) known = word;
        }
  for (const auto &[name, word] : wanted) {
    CAPTURE(name);
    const mp_op_class_t effective_class = word == "promote" ? MP_OP_CLASS_INFER : kClasses.at(word);
    CHECK(class_of(name) == effective_class);
  }
  for (const char *name : {"Linear", "Attention", "LSTM", "GRU", "RNN", "Conv2D", "MatMul"})
    CHECK(class_of(name) == MP_OP_CLASS_ALLOW);
  for (const char *name : {"BatchNorm", "BiasAdd", "Gelu", "Add", "Mul"})
    CHECK(class_of(name) == MP_OP_CLASS_INFER);
  for (const char *name : {"Softmax", "LayerNorm", "GroupNorm", "SoftmaxXent", "Sum", "Mean"})
    CHECK(class_of(name) == MP_OP_CLASS_DENY);
  for (const char *name :
       {"Embedding", "Gather", "Dropout", "Relu", "Reshape", "Transpose", "MaxPool"})
    CHECK(class_of(name) == MP_OP_CLASS_CLEAR);
  CHECK(class_of("softmaxXent") == MP_OP_CLASS_UNLISTED);  // case-sensitive
}

TEST_CASE("autocast: set_class overrides the preset until the policy is used", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  policy.set_class("Own", MP_OP_CLASS_ALLOW);
  policy.set_class("MatMul", MP_OP_CLASS_DENY);
  policy.set_class("Relu", MP_OP_CLASS_UNLISTED);
  CHECK(policy.class_of("Own") == MP_OP_CLASS_ALLOW);
  CHECK(policy.class_of("MatMul") == MP_OP_CLASS_DENY);
  CHECK(policy.class_of("Relu") == MP_OP_CLASS_UNLISTED);
  Graph graph = Graph::parse("a MatMul x\nb Own a\nc Relu b");
  CHECK(low_nodes(graph, rewrite(policy, graph)) == "b");
  const char *const op = "Own";
  expect_status(mp_autocast_set_class(policy.get(), &op, 1, MP_OP_CLASS_DENY),
                MP_ERROR_INVALID_ARGUMENT);
  expect_status(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_DENY),
                MP_ERROR_INVALID_ARGUMENT);
  CHECK(policy.class_of("Own") == MP_OP_CLASS_ALLOW);
}

TEST_CASE("autocast: node_class overrides the class of the operation", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  Graph graph = Graph::parse("a MatMul x\nb MatMul x\nc MatMul x\nd MatMul x");
  graph.nodes[0].node_class = 1 + MP_OP_CLASS_UNLISTED;
  graph.nodes[1].op.clear();
  graph.nodes[1].node_class = 1 + MP_OP_CLASS_ALLOW;
  graph.nodes[2].node_class = 1 + MP_OP_CLASS_DENY;
  CHECK(low_nodes(graph, rewrite(policy, graph)) == "b d");
}

// ---------------------------------------------------------------------------- patterns

namespace {

/// Returns the names that the pattern matches.
std::string matches(const char *pattern, std::initializer_list<const char *> names) {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  policy.set_nodes(pattern, MP_OP_CLASS_ALLOW);
  Graph graph;
  for (const char *name : names) {
    Graph::Node n;
    n.op = "Anything";
    n.name = name;
    n.inputs = {{0}};
    graph.nodes.push_back(n);
  }
  graph.tensors.emplace_back();
  return low_nodes(graph, rewrite(policy, graph));
}

}  // namespace

TEST_CASE("autocast: patterns match names like glob", "[autocast]") {
  CHECK(matches("encoder/*", {"encoder/a", "encoder/a/b", "encoder/", "encoder", "decoder/a"}) ==
        "encoder/a encoder/a/b encoder/");
  CHECK(matches("*", {"a", "b/c"}) == "a b/c");
  CHECK(matches("", {"a"}).empty());
  CHECK(matches("a?c", {"abc", "ac", "abbc", "a/c"}) == "abc a/c");
  CHECK(matches("[a-c]x", {"ax", "bx", "cx", "dx", "x", "]x", "-x"}) == "ax bx cx");
  CHECK(matches("[!a-c]x", {"ax", "dx", "-x"}) == "dx -x");
  CHECK(matches("[]a]", {"]", "a", "b"}) == "] a");
  CHECK(matches("[!]a]", {"]", "a", "b"}) == "b");
  CHECK(matches("[a-]", {"a", "-", "b"}) == "a -");
  CHECK(matches("*a*b", {"ab", "aab", "abab", "aba", "xaxbxb", "b"}) == "ab aab abab xaxbxb");
  CHECK(matches("layer[0-9]*/w", {"layer1/w", "layer12/w", "layer/w", "layer1/b"}) ==
        "layer1/w layer12/w");
  CHECK(matches("\xc3?", {"\xc3\xa9", "\xc3"}) == "\xc3\xa9");
}

TEST_CASE("autocast: the last matching pattern decides", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  policy.set_nodes("net/*", MP_OP_CLASS_DENY);
  policy.set_nodes("net/head/*", MP_OP_CLASS_ALLOW);
  policy.set_nodes("net/head/x", MP_OP_CLASS_UNLISTED);
  Graph graph = Graph::parse(R"(
net/body MatMul x
net/head/a Exp x
net/head/x MatMul x
other MatMul x)");
  CHECK(low_nodes(graph, rewrite(policy, graph)) == "net/head/a other");
}

// Exponential for a matcher that backtracks to every star.
TEST_CASE("autocast: a pattern of 200 stars is not matched in exponential time", "[autocast]") {
  std::string pattern, name(2000, 'a');
  for (int i = 0; i < 200; i++) pattern += "a*";
  pattern += "b";
  CHECK(matches(pattern.c_str(), {name.c_str(), (name + "b").c_str()}) == name + "b");
}

// ---------------------------------------------------------------- disabled rewrites

TEST_CASE("autocast: a disabled rewrite changes nothing and warns once", "[autocast]") {
  const LogLines warnings(MP_LOG_WARN);
  const UniqueContext host = mptools::make_context(MP_DEVICE_HOST);
  const Policy policy(MP_AUTOCAST_PRESET_DEFAULT);
  REQUIRE(policy.disabled_reason(host.get()) != nullptr);
  CHECK_THAT(policy.disabled_reason(host.get()), Catch::Matchers::ContainsSubstring("CPU"));
  CHECK(policy.disabled_reason() == nullptr);

  Graph graph = Graph::parse("parameter w\nhalf h\na MatMul x w\nb Add a h");
  const size_t nodes = graph.nodes.size(), tensors = graph.tensors.size();
  std::vector<uint8_t> tensor_dtype(tensors, 9), node_dtype(nodes, 9), why_array(nodes, 9);
  std::vector<int32_t> cast(4, 9), because(nodes, 9);
  mp_autocast_cast_t untouched = {9, MP_FP16, MP_FP16, MP_CAST_KIND_KERNEL, 9};
  for (int repeat = 0; repeat < 2; repeat++) {
    auto r = initialized<mp_autocast_result_t>();
    r.num_casts = r.num_low_nodes = r.num_parameters_low = 9;
    r.tensor_dtype = tensor_dtype.data(), r.node_dtype = node_dtype.data();
    r.node_reason = why_array.data(), r.node_cause = because.data();
    r.input_cast = cast.data(), r.casts = &untouched;
    require_ok(mp_autocast_rewrite(policy.get(), host.get(), &graph.view(), &r));
    CHECK(r.num_casts + r.num_low_nodes + r.num_parameters_low == 0);
    REQUIRE(r.disabled_reason != nullptr);
    mp::autocast_result disabled;
    disabled.disabled_reason = r.disabled_reason;
    CHECK_THAT(policy.explain(graph.view(), disabled),
               Catch::Matchers::ContainsSubstring("the rewrite is disabled: 16-bit arithmetic"));
  }
  CHECK(tensor_dtype == std::vector<uint8_t>({MP_FP32, MP_FP16, MP_FP32, MP_FP32, MP_FP32}));
  CHECK(node_dtype == std::vector<uint8_t>(nodes, MP_FP32));
  CHECK(why_array == std::vector<uint8_t>(nodes, MP_AUTOCAST_REASON_DISABLED));
  CHECK(because == std::vector<int32_t>(nodes, -1));
  CHECK(cast == std::vector<int32_t>(4, -1));
  CHECK(untouched.tensor == 9);
  CHECK(warnings.count_with("the graph stays fp32") == 1);

  mp_autocast_config_t open = mp_autocast_config_default(MP_FP16);
  open.flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
  const Policy ignoring(open);
  CHECK(ignoring.disabled_reason(host.get()) == nullptr);
}

TEST_CASE("autocast: disabled reason of the device under test", "[autocast]") {
  const mp_device_info_t info = device_info();
  for (const mp_dtype_t low : kHalfTypes) {
    const Policy policy(MP_AUTOCAST_PRESET_DEFAULT, low);
    const char *const why = policy.disabled_reason(context());
    const bool is_fast = info.target == MP_TARGET_CUDA && !mp::why_no_tensor_cores(low, info.arch);
    CHECK((why == nullptr) == is_fast);
    if (why != nullptr && info.target == MP_TARGET_CUDA)
      CHECK_THAT(why, Catch::Matchers::ContainsSubstring("sm_" + std::to_string(info.arch)));
  }
}

// ---------------------------------------------------------------------------- one operation

TEST_CASE("autocast: mp_autocast_op returns casts and output type", "[autocast]") {
  using Types = std::vector<uint8_t>;
  constexpr uint8_t kNone = MP_DTYPE_NONE, kHalf = MP_FP16, kBfloat = MP_BF16, kFloat = MP_FP32;
  struct OpCase {
    const char *op;
    mp_dtype_t low;
    Types inputs, cast_to;
    mp_dtype_t output;
  };
  const OpCase cases[] = {
      {"mm", MP_FP16, {kFloat, kFloat}, {kHalf, kHalf}, MP_FP16},
      {"mm", MP_BF16, {kFloat, kHalf}, {kBfloat, kBfloat}, MP_BF16},
      {"mm", MP_FP16, {kHalf, kHalf}, {kNone, kNone}, MP_FP16},
      {"mm", MP_FP16, {kNone, kNone}, {kNone, kNone}, MP_DTYPE_NONE},  // fp64 stays
      {"layer_norm", MP_FP16, {kHalf, kFloat, kNone}, {kFloat, kNone, kNone}, MP_FP32},
      {"softmax", MP_FP16, {kBfloat}, {kFloat}, MP_FP32},
      {"addcmul", MP_FP16, {kHalf, kFloat, kHalf}, {kFloat, kNone, kFloat}, MP_FP32},
      {"addcmul", MP_FP16, {kHalf, kBfloat}, {kFloat, kFloat}, MP_FP32},
      {"cat", MP_FP16, {kHalf, kHalf}, {kNone, kNone}, MP_FP16},
      {"relu", MP_FP16, {kHalf}, {kNone}, MP_FP16},
      {"add", MP_FP16, {kFloat, kHalf, kNone}, {kNone, kFloat, kNone}, MP_FP32},
      {"anything", MP_FP16, {kBfloat}, {kNone}, MP_BF16},
      {"anything", MP_FP16, {}, {}, MP_DTYPE_NONE},
  };
  for (const OpCase &c : cases) {
    CAPTURE(c.op);
    const Policy policy(MP_AUTOCAST_PRESET_PYTORCH, c.low);
    Types cast_to(c.inputs.size(), 9);
    CHECK(policy.op(c.op, c.inputs.data(), static_cast<uint32_t>(c.inputs.size()),
                    cast_to.data()) == c.output);
    CHECK(cast_to == c.cast_to);
  }
}

TEST_CASE("autocast: the error of a banned operation names the alternative", "[autocast]") {
  const uint8_t input = MP_FP16;
  uint8_t cast_to = 9;
  mp_dtype_t output = MP_BF16;
  const Policy policy(MP_AUTOCAST_PRESET_PYTORCH);
  expect_status(mp_autocast_op(policy.get(), "binary_cross_entropy", &input, 1, &cast_to, &output),
                MP_ERROR_UNSUPPORTED);
  CHECK_THAT(mp_last_error(),
             Catch::Matchers::ContainsSubstring("binary_cross_entropy_with_logits"));
  CHECK(cast_to == 9);
  CHECK(output == MP_BF16);
  Graph graph = Graph::parse("a mm x x\nloss binary_cross_entropy a");
  CHECK(low_nodes(graph, rewrite(policy, graph)) == "a");  // fp32 in a graph

  const Policy other(MP_AUTOCAST_PRESET_PYTORCH);
  other.set_class("binary_cross_entropy", MP_OP_CLASS_DENY);
  other.op("binary_cross_entropy", &input, 1, &cast_to);
  CHECK(cast_to == MP_FP32);
}

// ---------------------------------------------------------------------------- scaler

TEST_CASE("autocast: default scaler of each type", "[autocast]") {
  const mp_scaler_config_t fp16 = mp_autocast_scaler_default(MP_FP16);
  mp_scaler_config_t keras;
  require_ok(mp_scaler_config_init_preset(&keras, sizeof keras, MP_SCALER_PRESET_KERAS));
  CHECK(std::memcmp(&fp16, &keras, sizeof keras) == 0);
  const mp_scaler_config_t bf16 = mp_autocast_scaler_default(MP_BF16);
  CHECK(bf16.policy == MP_SCALER_POLICY_STATIC);
  CHECK(bf16.init_scale == 1.0f);
  mp_scaler_config_t none;
  expect_status(mp_autocast_scaler_init(&none, sizeof none, MP_DTYPE_NONE),
                MP_ERROR_INVALID_ARGUMENT);
}
