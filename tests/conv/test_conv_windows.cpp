// Hopper kernels that read few channels as overlapping windows of a copy (conv_plan.h).  The
// workspace is initially NaN.
#define MP_ENABLE_EXPERIMENTAL
#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

bool reads_windows(const std::string &kernel) {
  return kernel.starts_with("conv_wgmma") && kernel.ends_with("_copied");
}
/// True for "conv_wgmma_256x64x64_s4_c2_copied", not for "..._k2_copied".
bool reads_unsplit_windows(const std::string &kernel) {
  return reads_windows(kernel) && kernel.find("_k") == std::string::npos;
}

/// Images of one to eight channels, with one or several groups of filter rows and blocks of 64
/// elements of a window.
const std::vector<std::string> kLayers = {
    "layer=2,23,25,3,64,7,7 pad=3 stride=2 ",  // ResNet
    "layer=1,41,33,3,72,7,7 pad=3 stride=2 ",
    "layer=2,15,70,1,32,5,20 stride=2 ",  // speech
    "layer=2,9,11,2,16,3,3 pad=1 ",
    "layer=2,7,9,8,24,3,3 pad=1 ",  // aligned channels
    "layer=1,13,9,8,8,7,7 pad=3 ",  // a group per filter row
    "layer=1,17,12,5,8,4,3 pad_top=3 pad_bottom=2 pad_left=2 dilation_h=2 ",
    "layer=1,30,31,4,8,6,5 pad_top=5 pad_left=1 pad_right=7 stride_h=3 stride_w=4 ",
    "layer=1,26,9,7,8,9,2 pad=1 stride_h=4 stride_w=3 dilation_h=2 ",
    "layer=2,40,3,1,8,19,2 pad_top=4 pad_bottom=3 pad_left=1 pad_right=1 stride=2 ",
    "layer=2,1,40,3,8,1,5 pad_left=2 pad_right=2 ",  // 1-D
    "layer=3,5,4,3,8,5,4 "};                         // one pixel of y

bool has_windows() {
  static const bool has =
      std::ranges::any_of(ConvRun(conv_case(kLayers[0])).kernels(), reads_windows);
  if (!has) skip("this device has no wgmma");
  return has;
}

}  // namespace

TEST_CASE("conv windows: results are exact", "[conv][wgmma][short]") {
  if (!has_windows()) return;
  for (const std::string &layer : kLayers)
    check_conv_kernels(layer + "op=fprop|wgrad ab/cd=fp16/fp16|bf16/fp32", reads_windows);
}

TEST_CASE("conv windows: infinities and NaNs reach only the windows that contain them",
          "[conv][wgmma][short]") {
  if (!has_windows()) return;
  for (const std::string &layer : kLayers)
    check_conv_kernels(layer +
                           "op=fprop|wgrad cd=fp16 special/place=inf/first|nan/middle|inf/last "
                           "special_in_second=0|1 amax=1 found_inf=1",
                       reads_unsplit_windows);
}

TEST_CASE("conv windows: layers without windows are rejected", "[conv][wgmma][short]") {
  if (!has_windows()) return;
  const std::string rgb = "layer=2,9,17,3,16,3,5 pad=2 ";
  for (const std::string &line :
       {rgb + "ab=fp32 op=fprop|wgrad", rgb + "cd=fp16 dilation_w=2 op=fprop|wgrad",
        rgb + "cd=fp16 op=dgrad",
        std::string("cd=fp16 op=fprop|wgrad layer/groups=2,9,17,9,16,3,5/1|2,9,17,3,12,3,5/1|"
                    "2,9,17,2,16,3,5/2")})
    for (const ConvCase &c : conv_cases(line)) check_rejected(c, "conv_wgmma_64x128x64_s8_copied");
}
