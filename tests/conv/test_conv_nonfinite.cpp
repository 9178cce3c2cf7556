// Convolutions of infinities and NaNs: they reach the outputs whose sums they are in and no others
// (but for products with zeros outside the image, see oracle_conv.h), and amax and found_inf see
// them wherever they are.
#include <algorithm>
#include <cmath>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

std::vector<ConvCase> layers() {
  return {padded(conv_case(2, 5, 6, 8, 16, 3, 3), 1),
          conv_case(2, 6, 5, 8, 16, 3, 2),
          strided(dilated(padded(conv_case(1, 9, 8, 8, 8, 3, 2), 2), 2, 1), 2, 3),
          grouped(padded(conv_case(1, 5, 6, 9, 12, 3, 3), 1), 3),
          grouped(padded(conv_case(1, 6, 6, 16, 16, 3, 3), 1), 16),
          padded(conv_case(1, 7, 7, 3, 8, 5, 5), 2),
          conv_case(2, 5, 5, 16, 8, 1, 1)};
}

ConvCase with_special(const ConvCase &layer, mp_conv_op_t op, mp_dtype_t dtype, Special special,
                      Place place, bool second) {
  ConvCase c = with(layer, op, {dtype, dtype});
  c.special = special;
  c.place = place;
  c.special_in_second = second;
  c.amax = c.found_inf = true;
  c.dbias = op != MP_CONV_WGRAD;
  return c;
}

constexpr Special kSpecials[] = {Special::kInfinity, Special::kNan};

/// Inputs and the sums of their products are finite; the output of type `out` is not.
void check_overflow(const ConvCase &c) {
  const ConvRun run(c);
  REQUIRE(!oracle::any_nonfinite(run.expected().y.values));
  REQUIRE(round_to(c.cd, oracle::amax(run.expected().y.values, 0.0)) == kInfinity);
  check_conv(c);
}

}  // namespace

TEST_CASE("conv non-finite: one element of either input", "[conv][long]") {
  for (const ConvCase &layer : layers()) {
    for (const mp_conv_op_t op : kConvOps) {
      for (const mp_dtype_t dtype : {MP_FP16, MP_BF16, MP_FP32}) {
        for (const Place place : {Place::kFirst, Place::kMiddle, Place::kLast}) {
          for (const bool second : {false, true}) {
            for (const Special special : kSpecials)
              check_conv(with_special(layer, op, dtype, special, place, second));
          }
        }
      }
    }
  }
}

TEST_CASE("conv non-finite: the middle element of either input", "[conv][short]") {
  for (const mp_conv_op_t op : kConvOps) {
    for (const bool second : {false, true}) {
      for (const Special special : kSpecials) {
        const ConvCase c = with_special(layers()[0], op, MP_FP16, special, Place::kMiddle, second);
        const ConvRun run(c);
        // Neither everything nor nothing is reached, so the case can tell.
        const auto &wanted = run.expected().y.values;
        const auto finite = [](double value) { return std::isfinite(value); };
        REQUIRE(oracle::any_nonfinite(wanted));
        REQUIRE(std::any_of(wanted.begin(), wanted.end(), finite));
        check_conv(c);
      }
    }
  }
}

TEST_CASE("conv non-finite: with alpha = 0 or *scale = 0 neither input reaches the output",
          "[conv][short]") {
  for (const ConvCase &layer : layers())
    for (const mp_conv_op_t op : kConvOps)
      for (const mp_dtype_t dtype : {MP_FP16, MP_FP32})
        for (const bool on_device : {false, true}) {
          ConvCase c = with_special(layer, op, dtype, Special::kNan, Place::kMiddle, on_device);
          c.alpha = on_device ? 3.0f : 0.0f;
          c.zero_scale = on_device;
          c.beta = 2.0f;
          check_conv(c);
        }
}

TEST_CASE("conv non-finite: NaN passes through ReLU", "[conv][short]") {
  for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD}) {
    ConvCase c = with_special(layers()[0], op, MP_FP16, Special::kNan, Place::kMiddle, false);
    c.activation = MP_ACT_RELU;
    c.aux = true;
    check_conv(c);
  }
}

TEST_CASE("conv non-finite: overflow in the last rounding raises found_inf", "[conv][short]") {
  for (const ConvCase &layer : layers()) {
    for (const mp_conv_op_t op : kConvOps) {
      ConvCase c = with_special(layer, op, MP_FP16, Special::kNone, Place::kFirst, false);
      c.fill = Fill::kRounding;
      c.alpha = 16.0f;
      check_overflow(c);
    }
  }
}

TEST_CASE("conv non-finite: overflow of fp32 and bf16 raises found_inf", "[conv][short]") {
  for (const mp_dtype_t dtype : {MP_BF16, MP_FP32}) {
    for (const mp_conv_op_t op : kConvOps) {
      ConvCase c = with_special(layers()[0], op, dtype, Special::kNone, Place::kFirst, false);
      c.fill = Fill::kReal;
      c.alpha = 0x1p127f;
      c.dbias = false;
      check_overflow(c);
    }
  }
}

TEST_CASE("conv non-finite: the same values in fp32 raise nothing", "[conv][short]") {
  for (const mp_conv_op_t op : kConvOps) {
    ConvCase c = with(layers()[0], op, {MP_FP16, MP_FP32});
    c.fill = Fill::kRounding;
    c.alpha = 16.0f;
    c.amax = c.found_inf = true;
    check_conv(c);
  }
}
