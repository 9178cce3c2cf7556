// Images whose channels are not a multiple of 8, with kernels that read a padded copy of them: rows
// of taps, or overlapping windows (conv_plan.h).  The workspace is initially NaN.
#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

bool reads_copies(const std::string &kernel) {
  return kernel.ends_with("_copied");
}
/// True for "conv_wmma_64x64x32_s4_copied", not for "..._k4_copied".
bool reads_unsplit_copies(const std::string &kernel) {
  return reads_copies(kernel) && !splits_k(kernel);
}
/// Includes kernels without a copy, which support four channels if aligned.
bool is_unsplit_wmma(const std::string &kernel) {
  return kernel.starts_with("conv_wmma") && !splits_k(kernel);
}

/// Image rows of 17 pixels, padded at both ends.
const std::string kRgb =
    "layer=2,9,17,3,16,3,5 pad_top=1 pad_bottom=2 pad_left=2 pad_right=1 stride_w=2 ";

}  // namespace

TEST_CASE("conv copies: any number of channels, stride and padding is exact", "[conv][short]") {
  constexpr const char *kTypes[] = {"op/ab/cd=fprop/fp16/fp16|wgrad/fp16/fp32",
                                    "op/ab/cd=fprop/bf16/fp32|wgrad/bf16/bf16"};
  size_t drawn = 0;
  int checked = 0;
  for (const int channels : {1, 3, 4, 7, 12}) {
    const int width = channels % 2 == 0 ? 18 : 17;
    for (const int stride : {1, 2, 3, 4}) {
      for (const int before : {0, 1, 4})
        checked += check_conv_kernels(
            format("layer=2,9,%d,%d,16,3,5 pad_top=1 pad_left=%d pad_right=3 stride_h=2 "
                   "stride_w=%d %s",
                   width, channels, before, stride, kTypes[drawn++ % 2]),
            is_unsplit_wmma);
    }
  }
  CHECK(checked > 150);
}

TEST_CASE("conv copies: filters of one tap, one row, one column, and dilated ones are exact",
          "[conv][short]") {
  for (const std::string layer :
       {"layer=2,5,6,12,16,1,1", "layer=2,5,7,12,16,1,1 stride=2",
        "layer=2,1,40,3,8,1,5 pad_left=2 pad_right=2", "layer=2,7,6,5,8,3,1",
        "layer=2,7,9,5,8,1,2 pad=1 stride_w=2", "layer=1,11,12,3,8,3,3 pad=2 dilation=2",
        "layer=1,11,12,12,8,3,3 pad=2 stride=2 dilation_w=3"})
    check_conv_kernels(layer + " op=fprop|wgrad cd=fp16|fp32", reads_unsplit_copies);
}

TEST_CASE("conv copies: split-k, epilogues and unaligned tensors are exact", "[conv][short]") {
  const std::string wgrad =
      "layer=3,20,24,3,24,3,3 pad=1 op=wgrad cd=fp16 beta=1 scale=2 amax=1 found_inf=1 ";
  for (const char *const stride : {"stride_w=1", "stride_w=2"})
    CHECK(check_conv_kernels(wgrad + stride, reads_copies) > 3);
  const std::string fprop =
      kRgb + "op=fprop cd=fp16 bias=fp32 activation=relu aux=1 dbias=1 amax=1 ";
  check_conv_kernels(fprop, reads_unsplit_copies);
  check_conv_kernels(fprop + "stray=1|2|12", reads_unsplit_copies);
  // TMA reads dy in place in wgrad of windows.
  check_conv_kernels(wgrad + "stray=1|2|12", is_unsplit_wmma);
}

TEST_CASE("conv copies: non-finite values affect only their outputs", "[conv][short]") {
  check_conv_kernels(kRgb +
                         "op=fprop|wgrad cd=fp16 special=inf|nan place=first|middle|last "
                         "special_in_second=0|1 amax=1 found_inf=1",
                     reads_unsplit_copies);
}

TEST_CASE("conv copies: kernels reject problems without padded channels", "[conv][short]") {
  for (const ConvCase &c :
       conv_cases(kRgb + "op/c/groups/ab/cd=fprop/8/1/fp16/fp16|fprop/3/1/fp32/fp32|"
                         "wgrad/2/2/fp16/fp16|dgrad/3/1/fp16/fp16"))
    check_rejected(c, "conv_wmma_64x64x32_s4_copied");
}

// ---------------------------------------------------------------------------- windows

namespace {

bool reads_windows(const std::string &kernel) {
  return kernel.starts_with("conv_wgmma") && kernel.ends_with("_copied");
}
/// True for "conv_wgmma_256x64x64_s4_c2_copied", not for "..._k2_copied".
bool reads_unsplit_windows(const std::string &kernel) {
  return reads_windows(kernel) && !splits_k(kernel);
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

}  // namespace

TEST_CASE("conv windows: results are exact", "[conv][wgmma][short]") {
  if (!has_wgmma()) return;
  constexpr const char *kTypes[] = {"op/ab/cd=fprop/fp16/fp16|wgrad/bf16/fp32",
                                    "op/ab/cd=fprop/bf16/fp32|wgrad/fp16/fp16"};
  for (size_t i = 0; i < kLayers.size(); ++i)
    check_conv_kernels(kLayers[i] + kTypes[i % 2], reads_windows);
}

TEST_CASE("conv windows: infinities and NaNs reach only the windows that contain them",
          "[conv][wgmma][short]") {
  if (!has_wgmma()) return;
  for (const std::string &layer : kLayers)
    check_conv_kernels(layer +
                           "op=fprop|wgrad cd=fp16 amax=1 found_inf=1 special/place/"
                           "special_in_second=inf/first/0|nan/middle/1|inf/last/0|inf/last/1",
                       reads_unsplit_windows);
}

TEST_CASE("conv windows: layers without windows are rejected", "[conv][wgmma][short]") {
  if (!has_wgmma()) return;
  const std::string rgb = "layer=2,9,17,3,16,3,5 pad=2 ";
  for (const std::string &line :
       {rgb + "ab=fp32 op=fprop|wgrad", rgb + "cd=fp16 dilation_w=2 op=fprop|wgrad",
        rgb + "cd=fp16 op=dgrad",
        std::string("cd=fp16 op=fprop|wgrad layer/groups=2,9,17,9,16,3,5/1|2,9,17,3,12,3,5/1|"
                    "2,9,17,2,16,3,5/2")})
    for (const ConvCase &c : conv_cases(line)) check_rejected(c, "conv_wgmma_64x128x64_s8_copied");
}
