// Convolutions of infinities and NaNs: they reach the outputs whose sums they are in and no others
// (but for products with zeros outside the image, see oracle_conv.h), and amax and found_inf see
// them wherever they are.
#include <algorithm>
#include <cmath>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

const std::vector<std::string> kLayers = {
    "layer=2,5,6,8,16,3,3 pad=1 ",
    "layer=2,6,5,8,16,3,2 ",
    "layer=1,9,8,8,8,3,2 pad=2 stride_h=2 stride_w=3 dilation_h=2 ",
    "layer=1,5,6,9,12,3,3 groups=3 pad=1 ",
    "layer=1,6,6,16,16,3,3 groups=16 pad=1 ",
    "layer=1,7,7,3,8,5,5 pad=2 ",
    "layer=2,5,5,16,8,1,1 "};
/// All passes with every output.
const std::string kPasses = "op/dbias=fprop/1|dgrad/1|wgrad/0 amax=1 found_inf=1 ";

/// Inputs and the sums of their products are finite; the output of type `out` is not.
void check_overflow(const std::string &line) {
  for (const ConvCase &c : conv_cases(line)) {
    const ConvRun run(c);
    REQUIRE(!oracle::any_nonfinite(run.expected().y.values));
    REQUIRE(round_to(c.cd, oracle::amax(run.expected().y.values, 0.0)) == kInfinity);
    check_conv(c);
  }
}

}  // namespace

TEST_CASE("conv non-finite: one element of either input", "[conv][long]") {
  for (const std::string &layer : kLayers)
    check_conv(layer + kPasses +
               "ab/cd=fp16/fp16|bf16/bf16|fp32/fp32 place=first|middle|last "
               "special_in_second=0|1 special=inf|nan");
}

TEST_CASE("conv non-finite: the middle element of either input", "[conv][short]") {
  for (const ConvCase &c :
       conv_cases(kLayers[0] + kPasses +
                  "cd=fp16 place=middle special_in_second=0|1 special=inf|nan beta=0|1")) {
    const ConvRun run(c);
    // Neither everything nor nothing is reached, so the case can tell.
    const auto &wanted = run.expected().y.values;
    const auto finite = [](double value) { return std::isfinite(value); };
    REQUIRE(oracle::any_nonfinite(wanted));
    REQUIRE(std::any_of(wanted.begin(), wanted.end(), finite));
    check_conv(c);
  }
}

TEST_CASE("conv non-finite: with alpha = 0 or *scale = 0 neither input reaches the output",
          "[conv][short]") {
  for (const std::string &layer : kLayers)
    check_conv(layer + kPasses +
               "ab/cd=fp16/fp16|fp32/fp32 special=nan place=middle "
               "special_in_second/alpha/zero_scale=0/0/0|1/3/1 beta=2");
}

TEST_CASE("conv non-finite: NaN passes through ReLU", "[conv][short]") {
  check_conv(kLayers[0] +
             "op=fprop|dgrad cd=fp16 special=nan place=middle activation=relu aux=1 dbias=1 amax=1 "
             "found_inf=1");
}

TEST_CASE("conv non-finite: overflow in the last rounding raises found_inf", "[conv][short]") {
  for (const std::string &layer : kLayers)
    check_overflow(layer + kPasses + "cd=fp16 fill=rounding alpha=16");
}

TEST_CASE("conv non-finite: overflow of fp32 and bf16 raises found_inf", "[conv][short]") {
  // alpha is 2^127.
  check_overflow(kLayers[0] + kPasses +
                 "dbias=0 ab/cd=bf16/bf16|fp32/fp32 fill=real alpha=1.70141183e+38");
}

TEST_CASE("conv non-finite: the same values in fp32 raise nothing", "[conv][short]") {
  check_conv(kLayers[0] + kPasses + "dbias=0 fill=rounding alpha=16");
}
