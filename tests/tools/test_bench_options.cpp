// Tests of bench/options.h and bench/shapes/selection.h: options select the measured shapes.
#include <fstream>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/shapes/batched_shapes.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/epilogue_shapes.h"
#include "bench/shapes/layer_shapes.h"
#include "bench/shapes/rnn_shapes.h"
#include "bench/shapes/selection.h"
#include "bench/shapes/sets.h"
#include "bench/shapes/shapes.h"
#include "support/program.h"
#include "tests/support/catch.h"
#include "tests/support/testing.h"

namespace {

using mpbench::Options;

Options parse(std::vector<const char *> words) {
  words.insert(words.begin(), "mpbench");
  return mpbench::parse_options(static_cast<int>(words.size()), words.data());
}

/// Returns "SUITES; PEERS; NUMBER OF SHAPES; SECONDS of a headline shape on a GPU".
std::string summary(const Options &options) {
  const auto &[cublaslt, cudnn, torch] = options.peers;
  const std::string amount = options.is_quick(false)  ? "quick"
                             : options.is_quick(true) ? "quick on the host"
                                                      : "all";
  std::string suites;
  for (const char *suite : {"gemm", "epilogue", "batched", "conv", "rnn", "step"})
    if (options.has_suite(suite)) suites += suite + std::string(" ");
  return suites + "; " + (cublaslt ? "cublaslt " : "") + (cudnn ? "cudnn " : "") +
         (torch ? "torch " : "") + "; " + amount + (options.is_brief() ? ", brief" : "") +
         mptest::format("; %g s", options.sustained_seconds(true, false));
}

struct Named {
  std::string name, of;
  double flop = 1;
  std::string label() const { return name; }
  std::string kind() const { return of; }
  double effort_flop() const { return flop; }
};

std::vector<std::string> names(const std::vector<Named> &items) {
  std::vector<std::string> names;
  for (const Named &item : items) names.push_back(item.name);
  return names;
}

using Names = std::vector<std::string>;

template <typename Item>
std::vector<Item> shapes(const char *suite, std::initializer_list<const char *> words,
                         bool on_host = false) {
  return mpbench::read_sets<Item>(suite, parse(words), on_host);
}

/// Adds the names of the sets, with which labels begin.
template <typename Item>
void add_quick_sets(const char *suite, bool on_host, std::set<std::string> &sets) {
  for (const Item &shape : shapes<Item>(suite, {"--quick"}, on_host))
    sets.insert(shape.label().substr(0, shape.label().find(' ')));
}

}  // namespace

TEST_CASE("bench: options select suites, peers, the number of shapes and their time", "[bench]") {
  const std::string all = "gemm epilogue batched conv rnn step ; ";
  const std::string every = "cublaslt cudnn torch ; ";
  const std::vector<std::pair<std::vector<const char *>, std::string>> cases = {
      {{}, all + every + "quick on the host; 3 s"},
      {{"--quick"}, all + every + "quick, brief; 3 s"},
      {{"--brief"}, all + every + "quick on the host, brief; 3 s"},
      {{"--filter", "NT"}, all + every + "all; 3 s"},
      {{"--filter", "NT", "--quick"}, all + every + "quick, brief; 3 s"},
      {{"--limit", "3"}, all + every + "all; 3 s"},
      {{"--sustained", "0.5"}, all + every + "quick on the host; 0.5 s"},
      {{"--sustained", "0"}, all + every + "quick on the host; 0 s"},
      {{"--set", "llm"}, "gemm ; " + every + "quick on the host; 3 s"},
      {{"--set", "resnet50"}, "conv ; " + every + "quick on the host; 3 s"},
      {{"conv", "--set", "deepbench_conv"}, "conv ; " + every + "quick on the host; 3 s"},
      {{"--peer", "none"}, all + "; quick on the host; 3 s"},
      {{"--peer", "torch,cublaslt"}, all + "cublaslt torch ; quick on the host; 3 s"},
      {{"--peer", "none", "--peer", "all"}, all + every + "quick on the host; 3 s"},
      {{"--tune", "resnet50"}, "conv ; ; quick on the host, brief; 0 s"},
      {{"--tune", "all", "--peer", "cudnn", "--sustained", "1"},
       "gemm epilogue batched conv ; cudnn ; quick on the host, brief; 1 s"}};
  for (const auto &[words, expected] : cases) CHECK(summary(parse(words)) == expected);
  CHECK(parse({}).sustained_seconds(false, false) == 0);
  CHECK(parse({}).sustained_seconds(true, true) == 0);
  CHECK(parse({"--sustained", "0.5"}).sustained_seconds(false, true) == 0.5);
}

TEST_CASE("bench: wrong options are rejected", "[bench]") {
  const std::vector<std::pair<std::vector<const char *>, std::string>> cases = {
      {{"gemv"}, "must be one of gemm, epilogue, batched, rnn, conv, layers"},
      {{"--grep", "x"}, "--grep"},
      {{"--filter"}, "--filter"},
      {{"--limit", "0"}, "at least 1"},
      {{"--limit", "1.5"}, "--limit"},
      {{"--set", "resnet"}, "resnet50"},
      {{"gemm", "--set", "resnet50"}, "--set resnet50 belongs to conv, not to gemm"},
      {{"--dtype", "fp8"}, "fp8"},
      {{"--dtype", "fp16", "--out-dtype", "bf16"}, "--out-dtype"},
      {{"--sustained", "-1"}, "--sustained"},
      {{"--sustained", "x"}, "--sustained"},
      {{"--tune", "norm"}, "--tune"},
      {{"--tune", "llm", "--set", "llm"}, "--tune"},
      {{"--out", "file"}, "--tune"},
      {{"--peer", ""}, "not \"\""},
      {{"--peer", "cublas"}, "not \"cublas\""},
      {{"--peer", "cudnn,"}, "not \"cudnn,\""},
      {{"--peer", "none,cudnn"}, "not \"none,cudnn\""},
      {{"--peer", "cudnn,none"}, "not \"cudnn,none\""}};
  for (const auto &[words, says] : cases) {
    CHECK_THROWS_WITH(parse(words), Catch::Matchers::ContainsSubstring(says));
    CHECK_THROWS_AS(parse(words), mptools::UsageError);
  }
}

TEST_CASE("bench: a spread has equally many items of each kind, in order", "[bench]") {
  std::vector<Named> items;
  for (const char *name : {"a0", "b0", "a1", "a2", "a3", "c0", "a4", "c1", "c2"})
    items.push_back({name, std::string(1, name[0])});
  mpbench::keep_spread(items, 2);
  CHECK(names(items) == Names{"a0", "b0", "a3", "c0", "c2"});
}

TEST_CASE("bench: options select items", "[bench]") {
  const std::vector<Named> items = {{"x0", "k"}, {"y0", "k"}, {"x1", "k", 1e12},
                                    {"x2", "k"}, {"x3", "k"}, {"x4", "k"}};
  const auto select = [&](std::initializer_list<const char *> words, bool on_host) {
    return names(mpbench::selected(items, parse(words), on_host));
  };
  CHECK(select({}, false).size() == items.size());
  CHECK(select({"--filter", "x"}, true) == Names{"x0", "x1", "x2", "x3", "x4"});
  CHECK(select({"--filter", "x", "--limit", "2"}, true) == Names{"x0", "x1"});
  CHECK(select({"--filter", "x", "--quick"}, false) == Names{"x0", "x3"});
  // The slow item is excluded before the spread.
  CHECK(select({"--filter", "x", "--quick"}, true) == Names{"x0", "x3"});
  CHECK(select({"--filter", "x1", "--quick"}, true).empty());
  CHECK(select({"--filter", "z"}, false).empty());
}

TEST_CASE("bench: inference has no gradients", "[bench]") {
  if (!std::ifstream("bench/shapes/resnet50.csv"))
    return mptest::skip("not started in the repository");
  const auto count = [](const char *set, const char *pass) {
    return shapes<mpbench::ConvShape>("conv", {"--set", set, "--filter", pass}).size();
  };
  for (const char *pass : {"fprop", "dgrad", "wgrad"}) CHECK(count("deepbench_conv", pass) == 94);
  CHECK(count("deepbench_conv_infer", "fprop") == 107);
  CHECK(count("deepbench_conv_infer", "") == 107);
  CHECK(count("deepbench_conv_infer_device", "") == 16);

  const auto layers = [](const char *set, const char *pass) {
    return shapes<mpbench::RnnShape>("rnn", {"--set", set, "--filter", pass}).size();
  };
  for (const char *pass : {"fprop", "dgrad", "wgrad"})
    CHECK(layers("deepbench_rnn_train", pass) == 53);
  CHECK(layers("deepbench_rnn_infer", "") == 69);
  CHECK(layers("deepbench_rnn_infer_device", "") == 3);

  CHECK(shapes<mpbench::Shape>("gemm", {"--set", "deepbench"}).size() == 160);
  CHECK(shapes<mpbench::Shape>("gemm", {"--set", "deepbench_infer"}).size() == 75);
}

TEST_CASE("bench: a quick run has shapes of every set", "[bench]") {
  if (!std::ifstream("bench/shapes/resnet50.csv"))
    return mptest::skip("not started in the repository");
  const bool on_host = GENERATE(false, true);
  std::set<std::string> sets;
  add_quick_sets<mpbench::Shape>("gemm", on_host, sets);
  add_quick_sets<mpbench::ConvShape>("conv", on_host, sets);
  add_quick_sets<mpbench::RnnShape>("rnn", on_host, sets);
  add_quick_sets<mpbench::EpilogueShape>("epilogue", on_host, sets);
  add_quick_sets<mpbench::BatchedShape>("batched", on_host, sets);
  for (const char *suite : {"layers", "attention", "norm", "linear_xent", "gated"})
    add_quick_sets<mpbench::LayerShape>(suite, on_host, sets);
  for (const mpbench::ShapeSet &set : mpbench::kShapeSets) {
    CAPTURE(set.name);
    CHECK(sets.count(set.name) == 1);
  }
}

TEST_CASE("bench: every epilogue and form of batch is measured", "[bench]") {
  if (!std::ifstream("bench/shapes/transformer_gemm_shapes.csv"))
    return mptest::skip("not started in the repository");
  const bool on_host = GENERATE(false, true);
  std::set<std::string> kinds, forms;
  for (const auto &shape : shapes<mpbench::EpilogueShape>("epilogue", {"--quick"}, on_host))
    kinds.insert(shape.gemm.name().substr(0, 3) + kind_of(shape.epilogue).name);
  CHECK(kinds == std::set<std::string>{"NT plain", "NT bias", "NT bias+ReLU", "NT bias+GELU+aux",
                                       "NN plain", "NN dGELU+dbias", "TN plain",
                                       "TN amax+found_inf", "TN fp32 +="});
  for (const auto &shape : shapes<mpbench::BatchedShape>("batched", {"--quick"}, on_host))
    forms.insert(name_of(shape.form));
  CHECK(forms == std::set<std::string>{"strided", "pointers", "grouped", "ragged"});
}
