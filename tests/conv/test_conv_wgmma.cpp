// The wgmma kernels of convolution by name, at the boundaries of tiles, taps, images and pipelines,
// and the limits of im2col TMA.
//
// Intended for checked mode with many seeds, like test_gemm_wgmma.cpp.
#define MP_ENABLE_EXPERIMENTAL
#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

bool is_wgmma(const std::string &kernel) {
  return kernel.starts_with("conv_wgmma");
}
/// True for "conv_wgmma_128x256x64_s4_c2", not for "..._k4".
bool is_unsplit(const std::string &kernel) {
  return is_wgmma(kernel) && !splits_k(kernel);
}
bool is_split(const std::string &kernel) {
  return is_wgmma(kernel) && (kernel.ends_with("_k2") || kernel.ends_with("_k3") ||
                              kernel.ends_with("_p2") || kernel.ends_with("_p3"));
}

/// Checks all tiles, alone and in clusters, or those for which is_wanted is true.
void check(const std::string &line, bool (*is_wanted)(const std::string &) = is_unsplit) {
  if (has_wgmma()) check_conv_kernels(line, is_wanted);
}

/// Outputs of 16 bits and fp32 alternately.
const std::string kEachPass = "op/ab/cd=fprop/bf16/fp32|dgrad/fp16/fp16|wgrad/bf16/fp32 ";
const std::string kDgrad = "op=dgrad ab/cd=fp16/fp16|bf16/bf16|bf16/fp32 ";

/// Returns the reason why the kernel does not support the case.
std::string refusal(const std::string &line,
                    const std::string &kernel = "conv_wgmma_128x128x64_s6") {
  ConvCase c = conv_case(line);
  c.kernel = kernel;
  const mp_conv2d_desc_t desc = desc_of(c);
  size_t bytes;
  if (mp_conv2d_workspace_size(context(), &desc, c.op, nullptr, &bytes) != MP_ERROR_UNSUPPORTED)
    return "";
  const std::string error = mp_last_error();
  const size_t name = error.find(kernel);
  return name == std::string::npos ? error : error.substr(name + kernel.size() + 1);
}

}  // namespace

TEST_CASE("conv wgmma: tiles with several image rows and images are exact", "[conv][wgmma]") {
  // The numbers of tiles are odd and even, so that clusters have a last tile without a partner; 72
  // channels are a full and a partial block of 64.
  check(kEachPass + "layer=3,11,9,72,136,3,3 pad=1");
  check(kEachPass + "layer=1,12,14,136,72,2,2");
  // Images much smaller than a tile; full channel blocks.
  check(kEachPass + "layer=60,1,5,64,64,1,3 pad_left=1 pad_right=1");
}

TEST_CASE("conv wgmma: strides, dilations and unequal padding are exact", "[conv][wgmma]") {
  check(kEachPass +
        "layer=2,17,15,24,40,3,5 pad_top=1 pad_bottom=2 pad_left=2 pad_right=1 stride_h=2 "
        "stride_w=3");
  check(kEachPass +
        "layer=2,9,10,16,8,3,2 pad_bottom=5 pad_left=4 pad_right=1 dilation_h=3 dilation_w=5");
  check(kEachPass + "layer=1,20,19,8,8,3,3 pad=3 stride_h=3 stride_w=2 dilation_h=2 dilation_w=3");
  // Padding wider than the filter; a filter larger than the image.
  check(kEachPass + "layer/pad=2,4,5,8,8,3,3/5|3,2,3,8,16,5,6/4");
}

TEST_CASE("conv wgmma: stride phases of dgrad are exact", "[conv][wgmma]") {
  // Typical layers; two tiles and more, and image rows that end within a subtile.
  check(kDgrad + "layer=3,28,26,72,40,3,3 pad=1 stride=2");
  // Image rows of 7, 14 and 28 pixels per stride phase.
  check(kDgrad + "layer=3,14,14,72,40,3,3 pad=1 stride=2");
  check(kDgrad + "layer=2,21,42,16,72,2,2 stride=3");
  check(kDgrad + "layer=1,28,56,8,16,3,3 pad=2 stride=2 dilation_h=2 dilation_w=3");
  // Three of four stride phases have no taps, eight of nine, and two of three in one direction.
  check(kDgrad + "layer=2,20,22,136,72,1,1 stride=2");
  check(kDgrad + "layer=2,13,15,24,8,1,1 pad=1 stride=2");
  check(kDgrad + "layer=3,11,14,72,136,1,1 stride=3");
  check(kDgrad + "layer=2,9,20,8,72,3,1 pad=1 stride_w=3");
  // Odd extents: some stride phases have fewer pixels.
  check(kDgrad + "layer=2,21,23,24,8,7,7 pad=3 stride=2");
  check(kDgrad + "layer=4,11,10,8,72,4,5 pad_top=2 pad_left=1 pad_right=3 stride_h=3 stride_w=2");
  // Subtiles that cover many image rows of one column each.
  check(kDgrad + "layer=5,40,3,16,8,3,3 pad=1 stride_h=2 stride_w=3");
  // Stride phases with at most one tap; also strides and dilations with a common factor.
  check(kDgrad + "layer=1,15,17,8,16,2,3 pad=1 stride_h=5 stride_w=3");
  check(kDgrad + "layer=2,17,18,8,8,3,3 pad=4 stride_h=2 stride_w=4 dilation_h=2 dilation_w=6");
  // Pixels that no output reads, and a stride phase without pixels.
  check(kDgrad + "layer=2,2,30,8,8,1,2 stride_h=3 stride_w=7");
}

TEST_CASE("conv wgmma: epilogues and slices of a strided dgrad are exact", "[conv][wgmma]") {
  for (const std::string layer : {"layer=2,13,14,24,72,3,3 pad=1 stride=2 ",
                                  "layer=2,9,20,136,8,2,3 pad=1 stride_h=2 stride_w=3 ",
                                  "layer=3,9,8,72,1032,1,1 stride=2 "}) {
    const std::string line = layer + "op=dgrad ab/cd=fp16/fp16|bf16/fp32 ";
    const auto check_both = [&](const std::string &options) {
      check(line + options);
      if (conv_case(layer).k > 64) check(line + options, is_split);  // others have too short sums
    };
    check_both("");
    check(line + "scale=0.5 amax=1 found_inf=1 bias=fp16");
    check_both("scale=0.5 amax=1 found_inf=1 bias=fp16 beta=1");
    check_both("activation=drelu aux=1 dbias=1 amax=1 aux_pad=8");
    // Such rows of aux cannot be described by a tensor map; MP_ACT_RELU writes them.
    check(line + "activation=drelu|relu aux=1 dbias=1 amax=1 aux_pad=3");
    check(line + "amax=1 found_inf=1 special=inf");
  }
  // The stride phases of odd rows and columns are smaller; past their last pixel they multiply the
  // last pixel of dy, which is used only by the padding: its infinity must not be detected.
  check(
      "layer=2,5,5,8,16,1,1 pad=1 stride=2 op=dgrad cd=fp16|fp32 amax=1 found_inf=1 special=inf "
      "place=last");
}

TEST_CASE("conv wgmma: fewer, as many and more taps than stages are exact", "[conv][wgmma]") {
  // Four tiles continue at the ring position of the previous tile; wgrad has 64 pixels per stage.
  check("layer=6,9,9,8,8,1,1 w/s=9/1|11/3|12/4|13/5|14/6|15/7|21/13 cd=fp16");
  check("layer=1,8,8,16,136,3,3 n=1|4|5|6|7 pad=1 op=wgrad ab=bf16");
}

TEST_CASE("conv wgmma: split-k slices are exact", "[conv][wgmma]") {
  check("layer=2,13,11,24,72,3,3 pad=1 op=fprop|dgrad|wgrad beta=1 cd/amax=fp32/0|fp16/1",
        is_split);
}

TEST_CASE("conv wgmma: weight gradients whose slices a cluster adds are exact", "[conv][wgmma]") {
  // 1456 pixels: eight slices of three k-tiles at most.  Taps of 24 channels are padded.
  check(
      "layer=8,14,13,24,72,3,3 pad=1 op=wgrad amax=1 found_inf=1 "
      "cd/beta/scale/special=fp32/0/0/none|fp16/1/0.5/none|fp16/0/0.5/inf",
      [](const std::string &kernel) {
        return is_wgmma(kernel) && kernel.find("_p") != std::string::npos;
      });
}

TEST_CASE("conv wgmma: a 64-column tile is exact for 64 channels with every epilogue",
          "[conv][wgmma]") {
  if (!has_wgmma()) return;
  const auto is_narrow = [](const std::string &kernel) {
    return is_unsplit(kernel) && kernel.find("_256x64x64") != std::string::npos;
  };
  const auto is_narrow_and_split = [](const std::string &kernel) {
    return is_split(kernel) && kernel.find("_256x64x64") != std::string::npos;
  };
  // 616 pixels are three tiles, so the last one of a cluster has no partner; sums have 9 or 18
  // stages.
  const std::string types = "ab/cd=fp16/fp16|bf16/bf16|fp16/fp32 ";
  const std::string fprop = types + "op=fprop layer=4,11,14,72,64,3,3 pad=1 ";
  const std::string dgrad = types + "op=dgrad layer=4,11,14,64,64,3,3 pad=1 ";
  check(fprop, is_narrow_and_split);
  check(fprop + "bias=fp32 amax=1 found_inf=1 activation/aux/fill=none/0/exact|gelu/1/real",
        is_narrow);
  check(fprop + "bias=fp16 beta=-2 activation=relu", is_narrow);
  check(dgrad + "beta=1", is_narrow_and_split);
  check(dgrad + "activation=drelu aux=1 dbias=1 amax=1 found_inf=1", is_narrow);
  // Infinity times the zeros beyond 56 channels is NaN, which must not reach any output.
  check("layer=4,11,14,64,56,3,3 pad=1 cd=fp16 amax=1 found_inf=1 special=inf", is_narrow);
  CHECK(refusal("layer=4,11,14,64,64,3,3 pad=1 op=wgrad cd=fp16", "conv_wgmma_256x64x64_s4") ==
        "does not support this pass");
}

TEST_CASE("conv wgmma: dbias has the same bits with and without workspace for partial sums",
          "[conv][wgmma]") {
  if (!has_wgmma()) return;
  for (const ConvCase &c :
       conv_cases("layer=3,9,14,72,136,3,3 pad=1 dbias=1 fill=rounding alpha=0.015625 "
                  "op/ab/cd/stride=fprop/fp16/fp16/1|dgrad/bf16/bf16/1|dgrad/fp16/fp16/2")) {
    ConvRun run(c);
    for (const std::string &kernel : run.kernels())
      if (is_unsplit(kernel) || is_split(kernel)) check_same_bits(run, kernel);
  }
}

TEST_CASE("conv wgmma: weight gradients with padded taps are exact", "[conv][wgmma]") {
  // 64 channels require no padding.
  const std::string line = "op=wgrad layer=2,7,8,8,136,3,2 c=8|40|64|72 cd=fp16|fp32 ";
  check(line + "pad=1 beta/amax/found_inf=0/0/0|1/1/1");
  // Infinity times the zeros that pad a tap is NaN, which must not reach gradients or amax.
  // Without image padding, every gradient of that channel is infinite.
  check(line + "amax=1 found_inf=1 special=inf special_in_second=1");
}

TEST_CASE("conv wgmma: the limits of im2col TMA are supported and exceeded limits rejected",
          "[conv][wgmma]") {
  if (!has_wgmma()) return;
  const std::string square = "layer=1,9,9,8,8,3,3 pad=1 ";
  check(kEachPass + square + "stride=8");
  // 16 stride phases have tensor maps of dx, 20 do not.
  check("layer=2,17,18,8,8,5,5 pad=1 stride_h=4|5 stride_w=4 op=dgrad cd=fp16");
  check("layer=1,1,9,8,8,1,3 pad_left=128 pad_right=129 op=fprop|wgrad ab=bf16");
  check(kEachPass + "layer=1,1,257,8,8,1,2 pad_left=127 pad_right=127 dilation_w=255");
  CHECK(refusal(square + "stride_h=9") == "requires strides of at most 8");

  for (const char *const line :
       {"layer=1,1,9,8,8,1,3 pad_left=129", "layer=1,1,9,8,8,1,3 pad_right=130",
        "layer=1,1,260,8,8,1,131 op=dgrad cd=fp16"})
    CHECK(refusal(line) == "requires corners of the pixel box from -128 to 127");
  CHECK(refusal("layer=1,1,300,8,8,1,2 pad_left=128 dilation_w=256") ==
        "requires offsets of taps in x (dgrad: dy) at most 255 apart");
  CHECK(refusal("layer=1,5,5,16,16,3,3 pad=1 groups=2") == "requires groups = 1");
  for (const char *const line : {"layer=1,5,5,12,16,3,3 pad=1", "layer=1,5,5,16,12,3,3 pad=1"})
    CHECK(refusal(line) == "requires c and k to be multiples of 8");
  CHECK(refusal(square + "ab=fp32") == MP_REQUIRES_HALF_TYPE);
  for (const char *const kernel : {"conv_wgmma_64x256x64_s4", "conv_wgmma_128x192x64_s4"})
    CHECK(refusal(square, kernel) == "does not support this pass");
  CHECK(refusal(square + "stride=2 op=dgrad cd=fp16", "conv_wgmma_256x128x64_s4") ==
        "does not support this pass");
}
