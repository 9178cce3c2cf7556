// The epilogue of the three convolutions, their workspace, and what holds between them.
#include <limits>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

/// Off the tiles in every direction; dense, strided, depthwise, few channels, 1 x 1.
std::vector<ConvCase> layers() {
  return {padded(conv_case(2, 9, 8, 24, 40, 3, 3), 1),
          strided(padded(conv_case(2, 9, 8, 16, 24, 3, 3), 1), 2, 2),
          grouped(padded(conv_case(2, 7, 8, 24, 24, 3, 3), 1), 24),
          grouped(padded(conv_case(2, 7, 8, 18, 27, 3, 3), 1), 3),
          padded(conv_case(2, 9, 8, 3, 16, 3, 3), 1),
          conv_case(2, 9, 8, 24, 40, 1, 1)};
}

}  // namespace

TEST_CASE("conv epilogue: generated options on generated problems", "[conv]") {
  Random random(3);
  for (int i = 0; i < 600; ++i) check_conv(random_conv_with_epilogue(random, 100000));
}

TEST_CASE("conv epilogue: a few generated options", "[conv][short]") {
  Random random(4);
  for (int i = 0; i < 40; ++i) check_conv(random_conv_with_epilogue(random, 20000));
}

TEST_CASE("conv epilogue: everything at once, in every pass", "[conv][short]") {
  for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD}) {
    for (const mp_activation_t activation : {MP_ACT_RELU, MP_ACT_DRELU}) {
      ConvCase c = with(layers()[0], op, {MP_FP16, MP_FP16});
      c.alpha = -1.0f;
      c.beta = -2.0f;
      c.scale = 2.0f;
      c.bias = MP_BF16;
      c.activation = activation;
      c.aux = c.dbias = c.amax = c.found_inf = true;
      check_conv(c);
    }
  }
}

TEST_CASE("conv epilogue: it is applied where no product is", "[conv][short]") {
  // dx of pixels that no output sees, of a layer without outputs, and y that sees zeros only.
  for (const ConvCase &shape :
       {strided(conv_case(2, 7, 8, 8, 8, 1, 1), 3, 3), conv_case(2, 3, 3, 8, 8, 5, 5),
        padded(conv_case(1, 3, 3, 8, 8, 1, 1), 2)}) {
    for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD}) {
      for (const float beta : {0.0f, 1.0f}) {
        ConvCase c = with(shape, op, {MP_FP16, MP_FP16});
        c.beta = beta;
        c.bias = MP_FP32;
        c.activation = MP_ACT_RELU;
        c.aux = c.dbias = c.amax = c.found_inf = true;
        check_conv(c);
      }
    }
  }
}

TEST_CASE("conv epilogue: no images clear dbias and leave the rest alone", "[conv][short]") {
  for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD}) {
    ConvCase c = with(conv_case(0, 5, 5, 8, 16, 3, 3), op, {MP_FP16, MP_FP32});
    c.dbias = c.amax = c.found_inf = true;
    check_conv(c);
  }
}

TEST_CASE("conv epilogue: found_inf is never cleared, amax never lowered", "[conv][short]") {
  for (const mp_conv_op_t op : kConvOps) {
    ConvCase c = with(layers()[0], op, {MP_FP16, MP_FP32});
    c.amax = c.found_inf = true;
    ConvRun run(c);
    run.found_inf_start = 1.0f;
    for (const float start : {0.0f, 1e6f, std::numeric_limits<float>::quiet_NaN()}) {
      run.amax_start = start;
      for (const std::string &kernel : run.kernels()) check_launch(run, kernel, Misaligned::kNo);
    }
  }
}

TEST_CASE("conv: equal calls give equal bits, whatever the workspace held", "[conv][long]") {
  std::vector<ConvCase> shapes = layers();
  shapes.push_back(padded(conv_case(4, 20, 21, 8, 16, 3, 3), 1));  // a long sum in wgrad
  for (const ConvCase &shape : shapes) {
    for (const mp_conv_op_t op : kConvOps) {
      for (const Types &types : kOneOfEach) {
        ConvCase c = with(shape, op, types);
        c.fill = Fill::kReal;
        c.dbias = op != MP_CONV_WGRAD;
        ConvRun run(c);
        for (const std::string &kernel : run.kernels()) check_same_bits(run, kernel);
      }
    }
  }
}

TEST_CASE("conv: a forced kernel refuses too little workspace", "[conv][short]") {
  for (const ConvCase &shape : {layers()[0], padded(conv_case(4, 20, 21, 8, 16, 3, 3), 1)}) {
    for (const mp_conv_op_t op : kConvOps) {
      ConvRun run(with(shape, op, {MP_FP16, MP_FP16}));
      for (const std::string &kernel : run.kernels()) {
        const size_t needed = run.workspace_bytes(kernel);
        if (needed == 0) continue;
        CAPTURE(kernel, needed);
        for (const size_t bytes : {size_t{0}, needed - 1}) {
          expect_status(run.launch(kernel, bytes), MP_ERROR_WORKSPACE_TOO_SMALL);
          expect_none(run.verify_untouched(), run.repro());
        }
      }
    }
  }
}
