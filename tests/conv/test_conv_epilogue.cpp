// The epilogue of the three convolutions, their workspace, and what holds between them.
#include <limits>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

/// Off the tiles in every direction; dense, strided, depthwise, few channels, 1 x 1.
const std::vector<std::string> kLayers = {"layer=2,9,8,24,40,3,3 pad=1 ",
                                          "layer=2,9,8,16,24,3,3 pad=1 stride=2 ",
                                          "layer=2,7,8,24,24,3,3 groups=24 pad=1 ",
                                          "layer=2,7,8,18,27,3,3 groups=3 pad=1 ",
                                          "layer=2,9,8,3,16,3,3 pad=1 ",
                                          "layer=2,9,8,24,40,1,1 "};
const std::string kLongSum = "layer=4,20,21,8,16,3,3 pad=1 ";  // wgrad sums 1680 terms
const std::string kOutputs = "aux=1 dbias=1 amax=1 found_inf=1 ";

}  // namespace

TEST_CASE("conv epilogue: many generated options on generated problems", "[conv][long]") {
  Random random(3);
  for (int i = 0; i < 600; ++i) check_conv(random_conv_with_epilogue(random, 100000));
}

TEST_CASE("conv epilogue: generated options on generated problems", "[conv]") {
  Random random(6);
  for (int i = 0; i < 150; ++i) check_conv(random_conv_with_epilogue(random, 100000));
}

TEST_CASE("conv epilogue: a few generated options", "[conv][short]") {
  Random random(4);
  for (int i = 0; i < 40; ++i) check_conv(random_conv_with_epilogue(random, 20000));
}

TEST_CASE("conv epilogue: everything at once, in every pass", "[conv][short]") {
  check_conv(kLayers[0] + kOutputs +
             "op=fprop|dgrad activation=relu|drelu cd=fp16 alpha=-1 beta=-2 scale=2 bias=bf16");
}

TEST_CASE("conv epilogue: it is applied where no product is", "[conv][short]") {
  // dx of pixels that no output sees, of a layer without outputs, and y that sees zeros only.
  check_conv(kOutputs +
             "layer/stride/pad=2,7,8,8,8,1,1/3/0|2,3,3,8,8,5,5/1/0|1,3,3,8,8,1,1/1/2 "
             "op=fprop|dgrad cd=fp16 beta=0|1 bias=fp32 activation=relu");
}

TEST_CASE("conv epilogue: no images clear dbias and leave the rest alone", "[conv][short]") {
  check_conv("layer=0,5,5,8,16,3,3 op=fprop|dgrad dbias=1 amax=1 found_inf=1");
}

TEST_CASE("conv epilogue: found_inf is never cleared, amax never lowered", "[conv][short]") {
  for (const ConvCase &c : conv_cases(kLayers[0] + "op=fprop|dgrad|wgrad amax=1 found_inf=1")) {
    ConvRun run(c);
    run.found_inf_start = 1.0f;
    for (const float start : {0.0f, 1e6f, std::numeric_limits<float>::quiet_NaN()}) {
      run.amax_start = start;
      for (const std::string &kernel : run.kernels()) check_launch(run, kernel, Misaligned::kNo);
    }
  }
}

TEST_CASE("conv: equal calls give equal bits, whatever the workspace held", "[conv][long]") {
  std::vector<std::string> layers = kLayers;
  layers.push_back(kLongSum);
  for (const std::string &layer : layers) {
    for (const ConvCase &c :
         conv_cases(layer + "op/dbias=fprop/1|dgrad/1|wgrad/0 types=each fill=real")) {
      ConvRun run(c);
      for (const std::string &kernel : run.kernels()) check_same_bits(run, kernel);
    }
  }
}

TEST_CASE("conv: a forced kernel refuses too little workspace", "[conv][short]") {
  for (const std::string &layer : {kLayers[0], kLongSum}) {
    for (const ConvCase &c : conv_cases(layer + "op=fprop|dgrad|wgrad cd=fp16")) {
      ConvRun run(c);
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
