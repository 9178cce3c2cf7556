// Output of mp_autocast_explain and MP_AUTOCAST_LOG.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "test_graph.h"
#include "tests/support/surroundings.h"

using namespace mptest;
using namespace mptest::autocast;

namespace {

constexpr const char *kNet = R"(
parameter w
conv1 Conv2D x w !writes_either
norm FusedBatchNormV3 conv1 s@255
relu Relu norm
conv2 Conv2D relu w
pool Mean conv2 !reads_either
exp Exp conv2
tail Tanh exp)";

}  // namespace

TEST_CASE("autocast: explain writes text", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  Graph graph = Graph::parse(kNet);
  CHECK(explain(policy, graph, MP_AUTOCAST_FORMAT_TEXT) ==
        "conv1  Conv2D            fp16  on the allow list\n"
        "norm   FusedBatchNormV3  fp16  between conv1 and conv2\n"
        "relu   Relu              fp16  between conv1 and conv2\n"
        "conv2  Conv2D            fp16  on the allow list\n"
        "pool   Mean              fp32  on the deny list\n"
        "exp    Exp               fp32  on the deny list\n"
        "tail   Tanh              fp32  downstream of exp, which is denied\n"
        "4 of 7 nodes in fp16; casts: 2 by a kernel, 1 by the optimizer's copy\n");
}

TEST_CASE("autocast: explain writes reasons of the PyTorch preset", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_PYTORCH);
  Graph graph = Graph::parse("a mm x x\nb softmax a\nc relu b\nd relu a");
  CHECK(explain(policy, graph, MP_AUTOCAST_FORMAT_TEXT) ==
        "a  mm       fp16  on the allow list\n"
        "b  softmax  fp32  on the deny list\n"
        "c  relu     fp32  not all inputs are 16-bit\n"
        "d  relu     fp16  follows a\n"
        "2 of 4 nodes in fp16; casts: 2 by a kernel, 0 by the optimizer's copy\n");
}

TEST_CASE("autocast: nodes without names and operations are numbered", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  Graph graph = Graph::parse("a MatMul x\nb Tanh a\nc MatMul b");
  for (Graph::Node &n : graph.nodes) n.name.clear();
  graph.nodes[0].op.clear();
  graph.nodes[0].node_class = 1 + MP_OP_CLASS_ALLOW;
  CHECK(explain(policy, graph, MP_AUTOCAST_FORMAT_TEXT) ==
        "#0  -       fp16  on the allow list\n"
        "#1  Tanh    fp16  between #0 and #2\n"
        "#2  MatMul  fp16  on the allow list\n"
        "3 of 3 nodes in fp16; casts: 1 by a kernel, 0 by the optimizer's copy\n");
}

TEST_CASE("autocast: explain writes JSON", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW, MP_BF16);
  Graph graph = Graph::parse("parameter w\na MatMul x w\nb Tanh a");
  graph.nodes[0].name = "a \"quoted\"\\\n\x01";
  CHECK(
      explain(policy, graph, MP_AUTOCAST_FORMAT_JSON) ==
      R"({"low": "bf16", "disabled_reason": null, "num_nodes": 2, "num_low_nodes": 2, "num_casts": 2, "num_parameters_low": 1,
 "nodes": [
  {"name": "a \"quoted\"\\\u000a\u0001", "op": "MatMul", "dtype": "bf16", "reason": "allow_list", "cause": null, "text": "on the allow list"},
  {"name": "b", "op": "Tanh", "dtype": "bf16", "reason": "follows_allow", "cause": 0, "text": "follows a \"quoted\"\\\u000a\u0001"}],
 "casts": [
  {"tensor": 0, "from": "fp32", "to": "bf16", "by": "model_copy", "readers": 1},
  {"tensor": 2, "from": "fp32", "to": "bf16", "by": "kernel", "readers": 1}]}
)");
}

TEST_CASE("autocast: explain writes DOT", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  Graph graph = Graph::parse("parameter w\na MatMul x w\nb Exp a\nc Size b >none\nhidden a c");
  CHECK(explain(policy, graph, MP_AUTOCAST_FORMAT_DOT) ==
        R"(digraph autocast {
  node [shape=box, style=filled, fontname=Helvetica];
  edge [fontname=Helvetica];
  n0 [label="a\nMatMul", fillcolor=palegreen3, tooltip="fp16: on the allow list"];
  n1 [label="b\nExp", fillcolor=lightcoral, tooltip="fp32: on the deny list"];
  n2 [label="c\nSize", fillcolor=palegreen3, tooltip="fp16: next to a"];
  t2 [label="tensor 2", shape=ellipse, style=solid];
  t2 -> n0 [label="cast to fp16", style=bold];
  t0 [label="tensor 0", shape=ellipse, style=solid];
  t0 -> n0 [label="copy in fp16", style=dashed];
  n0 -> n1 [label="cast to fp32", style=bold];
  n1 -> n2 [label="cast to fp16", style=bold];
  n0 -> n2 [style=dotted];
}
)");
}

TEST_CASE("autocast: explain escapes quotes in names and operations", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  Graph graph = Graph::parse("a MatMul x");
  graph.nodes[0].name = "a\"b";
  graph.nodes[0].op = "c\\\"";
  CHECK_THAT(explain(policy, graph, MP_AUTOCAST_FORMAT_DOT),
             Catch::Matchers::ContainsSubstring(R"([label="a\"b\nc\\\"", fillcolor=)"));
}

TEST_CASE("autocast: explain escapes control characters and invalid UTF-8", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  Graph graph = Graph::parse("a MatMul x\nb Exp a");
  graph.nodes[0].name = "a\n2 of 2\r\x1b[2K\x7f\xff\xc3\xa4";
  graph.nodes[1].op = "E\xe2\x80\xa8\xc0\x8a\\";
  const std::string name = "a\\u000a2 of 2\\u000d\\u001b[2K\\u007f\xef\xbf\xbd\xc3\xa4";
  const std::string op = "E\\u2028\xef\xbf\xbd\xef\xbf\xbd\\";
  const std::string text = explain(policy, graph, MP_AUTOCAST_FORMAT_TEXT);
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(text.starts_with(name + "  MatMul"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("b" + std::string(name.size() - 1, ' ') +
                                                      "  " + op + "  fp32"));
  const std::string json = explain(policy, graph, MP_AUTOCAST_FORMAT_JSON);
  CHECK_THAT(json, Catch::Matchers::ContainsSubstring("{\"name\": \"" + name + "\"") &&
                       Catch::Matchers::ContainsSubstring("\"op\": \"" + op + "\\\""));
  const std::string dot = explain(policy, graph, MP_AUTOCAST_FORMAT_DOT);
  CHECK_THAT(dot, Catch::Matchers::ContainsSubstring("a\\\\u000a2 of 2") &&
                      !Catch::Matchers::ContainsSubstring("\x1b"));
}

namespace {

std::string content(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("autocast: MP_AUTOCAST_LOG writes four files per rewrite", "[autocast]") {
  const Folder above;
  const std::string folder = above / "new/folder";
  const Environment log({{"MP_AUTOCAST_LOG", folder}});
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.preset = MP_AUTOCAST_PRESET_TENSORFLOW;
  const mp::autocast policy = mp::autocast::create(config);
  policy.set_nodes("own/*", MP_OP_CLASS_CLEAR);
  Graph graph = Graph::parse(kNet);
  policy.rewrite(nullptr, graph.view());

  std::map<std::string, std::string> files;  // by suffix after the number
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename();
    files[file.substr(file.rfind('-'))] = content(entry.path());
  }
  CHECK(files.size() == 4);
  const Policy same(MP_AUTOCAST_PRESET_TENSORFLOW);
  CHECK(files["-report.txt"] == explain(same, graph, MP_AUTOCAST_FORMAT_TEXT));
  CHECK(files["-after.dot"] == explain(same, graph, MP_AUTOCAST_FORMAT_DOT));
  CHECK_THAT(files["-before.dot"], Catch::Matchers::ContainsSubstring("n0 -> n1;") &&
                                       !Catch::Matchers::ContainsSubstring("palegreen3"));
  CHECK_THAT(files["-lists.txt"],
             Catch::Matchers::ContainsSubstring("\ndeny: Exp Expm1 L2Loss Mean Pow SaveV2 ") &&
                 Catch::Matchers::ContainsSubstring("\nclear by name: own/*\n"));
}

TEST_CASE("autocast: MP_AUTOCAST_LOG replaces symbolic links and does not follow them",
          "[autocast]") {
  const Folder folder;
  std::ofstream(folder / "victim") << "precious";
  const std::string stem = "autocast-" + std::to_string(getpid()) + "-";
  for (int i = 1; i < 2000; i++)  // for any number of the next rewrite
    std::filesystem::create_symlink("victim", folder / (stem + std::to_string(i) + "-lists.txt"));
  const Environment log({{"MP_AUTOCAST_LOG", folder.path()}});
  Graph graph = Graph::parse("a MatMul x");
  mp::autocast::create().rewrite(nullptr, graph.view());
  CHECK(content(folder / "victim") == "precious");
  int num_files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path()))
    num_files += entry.is_symlink() ? 0 : 1;
  CHECK(num_files == 5);  // the victim and four of the rewrite
}
