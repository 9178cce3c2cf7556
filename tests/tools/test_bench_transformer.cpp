// Tests of bench/shapes/layer_shapes.h and bench/suites/layer_data.h: operations and bytes of
// layers of transformers, and calls that write complete results.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "bench/peers/cudnn.h"
#include "bench/suites/layer_data.h"
#include "tests/support/testing.h"

using namespace mpbench;
using Catch::Matchers::ContainsSubstring;

namespace {

LayerShape shape_of(const char *suite, const std::string &line, bool is_forward = true) {
  LayerShape shape = parse_layer(suite, line);
  shape.is_forward = is_forward;
  return shape;
}

double flop(const char *suite, const std::string &line, bool is_forward = true) {
  return shape_of(suite, line, is_forward).flop();
}

/// True if all elements were written and are finite, and some are not 0.
bool is_complete(const std::vector<float> &values) {
  bool has_value = false;
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
    has_value |= value != 0;
  }
  return has_value;
}

}  // namespace

TEST_CASE("bench: operations of attention are those of its visible scores", "[bench]") {
  // 2 (d + dv) operations per score in the forward pass, 2.5 times as many in the backward pass.
  CHECK(flop("attention", "3,32,4,2,16,16,full,") == 2.0 * (16 + 16) * 4 * 3 * 32 * 32);
  CHECK(flop("attention", "3,32,4,2,16,16,full,", false) == 5.0 * (16 + 16) * 4 * 3 * 32 * 32);
  CHECK(flop("attention", "1,32,1,1,24,8,causal,") == 2.0 * (24 + 8) * 32 * 32 / 2);
  // A window counts the triangle of its first rows, then full rows.
  double pairs = kWindow * kWindow / 2;
  for (int64_t row = kWindow; row < 1500; ++row) pairs += kWindow;
  CHECK(flop("attention", "1,1500,1,1,8,8,window,") == 2.0 * 16 * pairs);
  CHECK(flop("attention", "1,64,1,1,8,8,window,") == flop("attention", "1,64,1,1,8,8,causal,"));

  const LayerShape packed = shape_of("attention", "3,8,1,1,8,8,packed,");
  CHECK(std::vector{packed.length(0), packed.length(1), packed.length(2)} ==
        std::vector<int64_t>{4, 8, 12});
  CHECK(packed.rows() == 24);
  CHECK(packed.flop() == 2.0 * 16 * (4 * 4 + 8 * 8 + 12 * 12) / 2);
}

TEST_CASE("bench: layers of transformers move each array once", "[bench]") {
  CHECK(flop("norm", "7,2,16,layer,") == 0);
  CHECK(flop("linear_xent", "5,7,11,labels,") == 2.0 * 5 * 7 * 11);
  CHECK(flop("linear_xent", "5,7,11,labels,", false) == 6.0 * 5 * 7 * 11);
  CHECK(flop("gated", "5,7,11,swiglu,") == 2.0 * 5 * (2 * 7) * 11);
  const auto bytes = [](const char *suite, const char *line, bool is_forward) {
    return shape_of(suite, line, is_forward).min_bytes(MP_FP16);
  };
  CHECK(bytes("norm", "7,2,16,layer,", true) == 2 * 2 * 7 * 2 * 16);
  CHECK(bytes("norm", "7,2,16,rms+residual,", false) == 4 * 2 * 7 * 2 * 16);
  // q, k, v, o in 16 bits, and lse; then each with its gradient.
  CHECK(bytes("attention", "2,8,4,2,16,8,full,", true) ==
        2 * 8 * (2 * (4 * 16 + 2 * 16 + 2 * 8 + 4 * 8) + 4 * 4));
  CHECK(bytes("linear_xent", "5,7,11,labels,", false) == 2 * (2 * 5 * 7 + 11 * 7) + 4 * 11 * 7);
  CHECK(bytes("gated", "5,7,11,geglu,", false) == 2 * (5 * 11 + 7 * 11 + 4 * 5 * 7));
}

TEST_CASE("bench: malformed lines of layers of transformers are rejected", "[bench]") {
  CHECK_THROWS_WITH(parse_layer("norm", "1,1,16,batch,"),
                    ContainsSubstring("form must be one of layer"));
  CHECK_THROWS_WITH(parse_layer("norm", "1,16,layer,"), ContainsSubstring("a line must be"));
  CHECK_THROWS_WITH(parse_layer("attention", "1,8,3,2,8,8,full,"), "kv must divide h");
  CHECK_THROWS_WITH(parse_layer("gated", "0,8,8,swiglu,"), ContainsSubstring("integer"));
}

TEST_CASE("bench: layers compute complete results", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const auto &[suite, line] =
      GENERATE(table<const char *, const char *>({{"attention", "2,16,2,1,8,8,full,"},
                                                  {"attention", "2,16,2,2,8,16,packed,"},
                                                  {"layers", "2,6,8,7,1,1,0,batchnorm,"},
                                                  {"layers", "2,6,8,7,3,2,1,maxpool,"},
                                                  {"layers", "2,6,8,7,3,2,1,avgpool,"},
                                                  {"layers", "6,1,1,10,1,1,0,softmax_xent,"},
                                                  {"norm", "4,2,16,layer,"},
                                                  {"norm", "4,1,16,rms+residual,"},
                                                  {"linear_xent", "16,8,24,labels,"},
                                                  {"gated", "8,16,8,swiglu,"},
                                                  {"gated", "8,16,8,geglu,"}}));
  const bool is_forward = GENERATE(true, false);
  CAPTURE(suite, line, is_forward);
  LayerData data(machine, shape_of(suite, line, is_forward), MP_FP32);
  CHECK(data.sets() >= 1);
  CHECK(data.has_product() == (suite == std::string("gated")));
  for (const auto &[values, elems] : data.results_of_first_set())
    std::fill_n(static_cast<float *>(const_cast<void *>(values)), elems, std::nanf(""));
  for (int call = 0; call < 2; ++call) data.own()();
  if (data.has_product()) data.product()();
  // Every array that a pass writes is complete; all are fp32.
  for (const auto &[values, elems] : data.results_of_first_set()) {
    const float *const first = static_cast<const float *>(values);
    CHECK(is_complete({first, first + elems}));
  }
}

// A sum of gradients has at most as many terms as elements; each is a product of values in [-1, 1]
// and a probability.
TEST_CASE("bench: cuDNN's graph API computes the same attention", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  REQUIRE(dlopen((tests / "stub/libcudnn.so.9").c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  const bool is_forward = GENERATE(true, false);
  CAPTURE(is_forward);
  const LayerShape shape = shape_of("attention", "2,9,4,2,16,8,full,", is_forward);
  LayerData data(machine, shape, MP_FP32);
  const Cudnn library(machine.context(), machine.stream());
  const std::vector<DnnCall> engines = library.attention_engines(shape, MP_FP32);
  REQUIRE(engines.size() == 2);
  CHECK(engines[0].is_deterministic == false);
  CHECK(engines[1].is_deterministic == true);
  CHECK(engines[1].workspace_bytes == 256);
  const Work peer = [&] { engines[1].enqueue(data.first_set()); };
  if (is_forward) {
    CHECK(data.difference_to(peer) == "");
    CHECK(data.difference_to([] {}) != "");  // o is not written
    return;
  }
  std::vector<Result> results;
  for (const auto &[values, elems] : data.results_of_first_set())
    results.push_back({const_cast<void *>(values), elems, MP_FP32, false});
  REQUIRE(results.size() == 3);
  const Values own = values_of(machine, data.own(), results);
  CHECK(difference(machine, own, peer, results, tolerance_of_sums(2 * 9 * 16, MP_FP32)) == "");
  CHECK(difference(
            machine, own, [] {}, results, tolerance_of_sums(2 * 9 * 16, MP_FP32)) != "");

  CHECK_THROWS_WITH(
      library.attention_engines(shape_of("attention", "1,8,1,1,8,8,causal,"), MP_FP32),
      "cuDNN's attention operation has no mask");
}
