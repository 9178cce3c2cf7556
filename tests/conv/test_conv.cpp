// mp_conv2d_fprop, _dgrad, _wgrad: every kernel by name on typical, awkward and generated problems.
//
// Integer inputs are compared bit for bit, reals with the bounds of bounds.h.  OutputRun::verify
// also checks guard zones and inputs, and the output is initially NaN if it must not be read.
#include <cstdlib>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

void check_layers(const std::vector<std::string> &layers, const std::string &options) {
  for (const std::string &layer : layers) check_conv(layer + " op=fprop|dgrad|wgrad " + options);
}

/// Checks each layer with one set of types, cyclically.
void check_layers_with_types_in_turn(const std::vector<std::string> &layers,
                                     const std::string &options = "") {
  constexpr const char *kTypes[] = {"ab=fp16 cd=fp16", "ab=bf16 cd=fp32", "ab=fp32 cd=fp32"};
  for (size_t i = 0; i < layers.size(); ++i) check_layers({layers[i]}, kTypes[i % 3] + options);
}

}  // namespace

TEST_CASE("conv: the oracle equals results computed by hand", "[conv][short]") {
  // Cross-correlation: with one pixel of padding on the left, the filter's last tap is read first.
  ConvCase line = conv_case("w=3 s=2 pad_left=1");
  const std::vector<double> x = {1, 2, 3}, f = {1, 10}, dy = {100, 200, 300};
  using Values = std::vector<double>;
  CHECK(oracle::convolve(line, MP_CONV_FPROP, x, f).sum.values == Values{10, 21, 32});
  CHECK(oracle::convolve(line, MP_CONV_DGRAD, dy, f).sum.values == Values{1200, 2300, 3000});
  CHECK(oracle::convolve(line, MP_CONV_WGRAD, x, dy).sum.values == Values{800, 1400});

  line.stride_w = 2;
  CHECK(oracle::convolve(line, MP_CONV_FPROP, x, f).sum.values == Values{10, 32});
  line.dilation_w = 3;
  line.pad_right = 1;
  CHECK(oracle::convolve(line, MP_CONV_FPROP, x, f).sum.values == Values{30});

  // Two groups with two input channels and one output: channels 2 and 3 give the second output.
  ConvCase groups = line;
  groups.w = 1, groups.c = 4, groups.k = 2, groups.s = 1, groups.pad_left = groups.pad_right = 0;
  groups.groups = 2;
  CHECK(oracle::convolve(groups, MP_CONV_FPROP, {1, 2, 3, 4}, {1, 10, 100, 1000}).sum.values ==
        Values{21, 4300});

  // Row-major order in image and filter.
  ConvCase square = line;
  square.h = square.w = square.r = square.s = 2, square.dilation_w = square.stride_w = 1;
  square.pad_left = square.pad_right = 0;
  CHECK(oracle::convolve(square, MP_CONV_FPROP, {1, 2, 3, 4}, {1, 10, 100, 1000}).sum.values ==
        Values{4321});
}

TEST_CASE("conv: typical layers are exact in every type", "[conv][long]") {
  check_layers(kUsualConvs, "types=all");
}

TEST_CASE("conv: typical layers are exact", "[conv][short]") {
  check_layers_with_types_in_turn(kUsualConvs);
}

TEST_CASE("conv: awkward shapes are exact in every type", "[conv][long]") {
  check_layers(kAwkwardConvs, "types=all");
}

TEST_CASE("conv: awkward shapes are exact with beta = 1", "[conv][short]") {
  check_layers(kAwkwardConvs, "beta=1");
}

TEST_CASE("conv: many tiles are exact", "[conv][long]") {
  check_layers_with_types_in_turn(kLargeConvs);
}

TEST_CASE("conv: adjacent depthwise outputs in image rows of any length", "[conv][short]") {
  for (const int width : {1, 2, 3, 4, 5, 7, 8, 13}) {
    const std::string square = format("layer=3,3,%d,24,24,3,3 groups=24 ", width);
    for (const std::string &layer :
         {square + "pad=1", square + "pad=1 stride_w=2", square + "pad=2 dilation_w=2",
          square + "pad=3 stride=2 dilation=2", square + "pad=2 stride_h=2 stride_w=3",
          format("layer=5,1,%d,8,8,1,5 groups=8 pad_left=3 pad_right=1", width)})
      check_conv_kernels(layer + " op=fprop|dgrad ab/cd=fp16/fp32|bf16/bf16",
                         [](const std::string &kernel) { return kernel == "conv_depthwise"; });
  }
}

TEST_CASE("conv: many generated problems", "[conv][long]") {
  Random random(1);
  for (int i = 0; i < 600; ++i) check_conv(random_conv(random, 200000));
}

TEST_CASE("conv: generated problems", "[conv]") {
  Random random(5);
  for (int i = 0; i < 150; ++i) check_conv(random_conv(random, 200000));
}

TEST_CASE("conv: a few generated problems", "[conv][short]") {
  Random random(2);
  for (int i = 0; i < 40; ++i) check_conv(random_conv(random, 20000));
}

TEST_CASE("conv: alpha and beta", "[conv][short]") {
  check_conv("layer=2,5,6,8,16,3,3 pad=1 op=fprop|dgrad|wgrad cd=fp16 alpha=0|1|-2 beta=0|1|-3");
}

TEST_CASE("conv: integers beyond 16 bits are rounded once, to nearest even", "[conv]") {
  check_layers({"layer=2,9,11,16,24,3,3 pad=1", "layer=2,8,9,16,16,3,3 groups=16 pad=1",
                "layer=2,7,9,24,40,1,1"},
               "ab/cd=fp16/fp16|bf16/bf16|fp32/fp16|fp32/bf16 fill=rounding beta=1");
}

TEST_CASE("conv: reals are within the derived bound", "[conv]") {
  check_layers_with_types_in_turn(kUsualConvs, " fill=real alpha=0.3 beta=-1.7");
}

TEST_CASE("conv: misaligned tensors, together and separately", "[conv]") {
  const std::vector<std::string> layers = {"layer=2,6,7,16,24,3,3 pad=1", "layer=2,5,6,16,24,1,1",
                                           "layer=1,9,9,3,8,5,5 pad=2 stride=2",
                                           "layer=2,6,7,16,16,3,3 groups=16 pad=1"};
  check_layers(layers, "types=each offset=1");
  check_layers(layers, "types=each stray/beta=1/0|2/0|d/1");
}

TEST_CASE("conv: tensors misaligned by one element", "[conv][short]") {
  check_layers({"layer=1,5,6,16,24,3,3 pad=1"}, "cd=fp16 offset=1");
}

TEST_CASE("conv: printing and parsing preserve a case", "[conv][short]") {
  const std::string line =
      "op=wgrad n=2 h=7 w=9 c=3 k=8 r=3 s=5 ab=bf16 cd=fp32 pad_top=1 pad_left=2 pad_right=3 "
      "stride_h=2 dilation_w=2 special=nan special_in_second=1 kernel=abacus";
  const ConvCase c = conv_case(line);
  CHECK((c.op == MP_CONV_WGRAD && c.n == 2 && c.h == 7 && c.w == 9 && c.c == 3 && c.k == 8));
  CHECK((c.r == 3 && c.s == 5 && c.ab == MP_BF16 && c.cd == MP_FP32 && c.pad_top == 1));
  CHECK((c.pad_left == 2 && c.pad_right == 3 && c.stride_h == 2 && c.dilation_w == 2));
  CHECK((c.special == Special::kNan && c.special_in_second && c.kernel == "abacus"));
  CHECK(to_string(c) == line);
  CHECK_THROWS(conv_case("n=1 rows=2"));
  CHECK_THROWS(conv_case("layer=1,2"));
  CHECK(to_string(conv_case("layer=2,7,9,3,8,3,5 pad=1 stride=2 dilation=3 pad_left=4")) ==
        "op=fprop n=2 h=7 w=9 c=3 k=8 r=3 s=5 ab=fp16 cd=fp32 pad_top=1 pad_bottom=1 pad_left=4 "
        "pad_right=1 stride_h=2 stride_w=2 dilation_h=3 dilation_w=3");
}

TEST_CASE("conv: the case in MP_REPRO", "[.repro-conv]") {
  const char *const line = std::getenv("MP_REPRO");
  REQUIRE(line != nullptr);
  const ConvCase c = conv_case(line);
  ConvRun run(c);
  check_launch(run, c.kernel, Misaligned::kNo);
}
