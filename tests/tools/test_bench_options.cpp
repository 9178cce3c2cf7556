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
#include "bench/shapes/transformer_shapes.h"
#include "support/program.h"
#include "tests/support/catch.h"
#include "tests/support/testing.h"

namespace {

using mpbench::Options;

Options parse(std::initializer_list<const char *> words) {
  std::vector<const char *> argv = {"mpbench"};
  argv.insert(argv.end(), words);
  return mpbench::parse_options(static_cast<int>(argv.size()), argv.data());
}

void require_refused(std::initializer_list<const char *> words, const std::string &says) {
  CAPTURE(says);
  REQUIRE_THROWS_WITH(parse(words), Catch::Matchers::ContainsSubstring(says));
  REQUIRE_THROWS_AS(parse(words), mptools::UsageError);
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

TEST_CASE("bench: all suites run without options", "[bench]") {
  const Options options = parse({});
  CHECK(options.has_suite("gemm"));
  CHECK(options.has_suite("step"));
  CHECK(options.set == "all");
  CHECK(options.peers.cublaslt);
  CHECK(options.peers.cudnn);
  CHECK(options.peers.torch);
  CHECK(!options.quick);
  CHECK(options.command == "mpbench");
}

TEST_CASE("bench: a set runs only in its suite", "[bench]") {
  const Options options = parse({"--set", "resnet50"});
  CHECK(options.has_suite("conv"));
  CHECK(!options.has_suite("gemm"));
  CHECK(!options.has_suite("step"));
  CHECK(parse({"conv", "--set", "deepbench_conv"}).has_suite("conv"));
  require_refused({"gemm", "--set", "resnet50"}, "--set resnet50 belongs to conv, not to gemm");
  require_refused({"--set", "resnet"}, "resnet50");
}

TEST_CASE("bench: peers are selected by name, none or all", "[bench]") {
  const Options none = parse({"--peer", "none"});
  CHECK(!none.peers.cublaslt);
  CHECK(!none.peers.cudnn);
  CHECK(!none.peers.torch);
  const Options two = parse({"--peer", "torch,cublaslt"});
  CHECK(two.peers.cublaslt);
  CHECK(!two.peers.cudnn);
  CHECK(two.peers.torch);
  CHECK(parse({"--peer", "none", "--peer", "all"}).peers.cudnn);
  for (const char *wrong : {"", "cublas", "cudnn,", "none,cudnn", "cudnn,none"})
    require_refused({"--peer", wrong}, std::string("not \"") + wrong + '"');
}

TEST_CASE("bench: the host target is quick unless shapes are selected", "[bench]") {
  CHECK(parse({}).is_quick(true));
  CHECK(!parse({}).is_quick(false));
  CHECK(parse({"--set", "llm"}).is_quick(true));
  CHECK(!parse({"--filter", "NT"}).is_quick(true));
  CHECK(!parse({"--limit", "3"}).is_quick(true));
  CHECK(parse({"--filter", "NT", "--quick"}).is_quick(true));
  CHECK(parse({"--quick"}).is_quick(false));
}

TEST_CASE("bench: --brief times every shape at the pace of --quick", "[bench]") {
  CHECK(parse({"--brief"}).is_brief());
  CHECK(parse({"--quick"}).is_brief());
  CHECK(!parse({}).is_brief());
  CHECK(!parse({"--brief"}).is_quick(false));
}

TEST_CASE("bench: sustained times are measured for the headline shape, others by option",
          "[bench]") {
  CHECK(parse({}).sustained_seconds(true, false) == 3);
  CHECK(parse({}).sustained_seconds(false, false) == 0);
  CHECK(parse({}).sustained_seconds(true, true) == 0);
  CHECK(parse({"--sustained", "0.5"}).sustained_seconds(false, true) == 0.5);
  CHECK(parse({"--sustained", "0"}).sustained_seconds(true, false) == 0);
  require_refused({"--sustained", "-1"}, "--sustained");
  require_refused({"--sustained", "x"}, "--sustained");
}

TEST_CASE("bench: --tune runs sets of products, briefly and without peers", "[bench]") {
  const Options one = parse({"--tune", "resnet50"});
  CHECK(one.tunes);
  CHECK(one.set == "resnet50");
  CHECK(one.has_suite("conv"));
  CHECK(!one.has_suite("gemm"));
  CHECK(one.is_brief());
  CHECK(!one.peers.cudnn);
  CHECK(one.sustained_seconds(true, false) == 0);
  const Options all = parse({"--tune", "all", "--peer", "cudnn", "--sustained", "1"});
  for (const char *const suite : {"gemm", "epilogue", "batched", "conv"})
    CHECK(all.has_suite(suite));
  CHECK(!all.has_suite("rnn"));
  CHECK(all.peers.cudnn);
  CHECK(all.sustained_seconds(true, false) == 1);
  require_refused({"--tune", "norm"}, "--tune");
  require_refused({"--tune", "llm", "--set", "llm"}, "--tune");
  require_refused({"--out", "file"}, "--tune");
}

TEST_CASE("bench: wrong options are rejected", "[bench]") {
  require_refused({"gemv"}, "must be one of gemm, epilogue, batched, rnn, conv, layers");
  require_refused({"--grep", "x"}, "--grep");
  require_refused({"--filter"}, "--filter");
  require_refused({"--limit", "0"}, "at least 1");
  require_refused({"--limit", "1.5"}, "--limit");
  require_refused({"--set", "resnet"}, "--set");
  require_refused({"--dtype", "fp8"}, "fp8");
  require_refused({"--dtype", "fp16", "--out-dtype", "bf16"}, "--out-dtype");
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
  CHECK(shapes<mpbench::AllReduceShape>("allreduce", {}).size() == 7);
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
  add_quick_sets<mpbench::LayerShape>("layers", on_host, sets);
  add_quick_sets<mpbench::AllReduceShape>("allreduce", on_host, sets);
  for (const char *suite : {"attention", "norm", "linear_xent", "gated"})
    add_quick_sets<mpbench::TransformerShape>(suite, on_host, sets);
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
    kinds.insert(shape.gemm.name().substr(0, 3) + name_of(shape.epilogue));
  CHECK(kinds == std::set<std::string>{"NT plain", "NT bias", "NT bias+ReLU", "NT bias+GELU+aux",
                                       "NN plain", "NN dGELU+dbias", "TN plain",
                                       "TN amax+found_inf", "TN fp32 +="});
  for (const auto &shape : shapes<mpbench::BatchedShape>("batched", {"--quick"}, on_host))
    forms.insert(name_of(shape.form));
  CHECK(forms == std::set<std::string>{"strided", "pointers", "grouped", "ragged"});
}
