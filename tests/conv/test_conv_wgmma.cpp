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
  return kernel.rfind("conv_wgmma", 0) == 0;
}
/// True for "conv_wgmma_128x256x64_s4_c2", not for "..._k4".
bool is_unsplit(const std::string &kernel) {
  return is_wgmma(kernel) && kernel.find("_k") == std::string::npos;
}
bool is_split(const std::string &kernel) {
  return is_wgmma(kernel) && (kernel.ends_with("_k2") || kernel.ends_with("_k3") ||
                              kernel.ends_with("_p2") || kernel.ends_with("_p3"));
}

bool has_wgmma() {
  const std::vector<std::string> kernels = ConvRun(conv_case(1, 8, 8, 8, 8, 3, 3)).kernels();
  if (std::any_of(kernels.begin(), kernels.end(), is_wgmma)) return true;
  skip("this device has no wgmma");
  return false;
}

/// Checks the kernels for which is_wanted is true; at least one must support the case.
void check(const ConvCase &c, bool (*is_wanted)(const std::string &) = is_unsplit) {
  ConvRun run(c);
  INFO(to_string(c));
  CHECK(check_kernels(run, Misaligned::kNo, is_wanted) > 0);
}

constexpr Types kTypes[] = {{MP_FP16, MP_FP16}, {MP_BF16, MP_FP32}};

/// Checks 16-bit and fp32 outputs alternately.
void check_ops(const ConvCase &layer, const std::vector<mp_conv_op_t> &ops) {
  for (const mp_conv_op_t op : ops) check(with(layer, op, kTypes[op % 2]));
}

const std::vector<mp_conv_op_t> kAllOps(std::begin(kConvOps), std::end(kConvOps));

/// Returns the reason why the kernel does not support the case.
std::string refusal(ConvCase c, const std::string &kernel = "conv_wgmma_128x128x64_s6") {
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
  if (!has_wgmma()) return;
  // The numbers of tiles are odd and even, so that clusters have a last tile without a partner; 72
  // channels are a full and a partial block of 64.
  check_ops(padded(conv_case(3, 11, 9, 72, 136, 3, 3), 1), kAllOps);
  check_ops(conv_case(1, 12, 14, 136, 72, 2, 2), kAllOps);
  // Images much smaller than a tile; full channel blocks.
  check_ops(padded(conv_case(60, 1, 5, 64, 64, 1, 3), 0, 0, 1, 1), kAllOps);
}

TEST_CASE("conv wgmma: strides, dilations and unequal padding are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  check_ops(strided(padded(conv_case(2, 17, 15, 24, 40, 3, 5), 1, 2, 2, 1), 2, 3), kAllOps);
  check_ops(dilated(padded(conv_case(2, 9, 10, 16, 8, 3, 2), 0, 5, 4, 1), 3, 5), kAllOps);
  check_ops(strided(dilated(padded(conv_case(1, 20, 19, 8, 8, 3, 3), 3), 2, 3), 3, 2), kAllOps);
  // Padding wider than the filter; a filter larger than the image.
  check_ops(padded(conv_case(2, 4, 5, 8, 8, 3, 3), 5), kAllOps);
  check_ops(padded(conv_case(3, 2, 3, 8, 16, 5, 6), 4), kAllOps);
}

TEST_CASE("conv wgmma: stride phases of dgrad are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  const auto check_dgrad = [](const ConvCase &layer) {
    for (const Types &types : {Types{MP_FP16, MP_FP16}, Types{MP_BF16, MP_BF16}, kTypes[1]})
      check(with(layer, MP_CONV_DGRAD, types));
  };
  // Typical layers; two tiles and more, and image rows that end within a subtile.
  check_dgrad(strided(padded(conv_case(3, 28, 26, 72, 40, 3, 3), 1), 2, 2));
  // Image rows of 7, 14 and 28 pixels per stride phase.
  check_dgrad(strided(padded(conv_case(3, 14, 14, 72, 40, 3, 3), 1), 2, 2));
  check_dgrad(strided(conv_case(2, 21, 42, 16, 72, 2, 2), 3, 3));
  check_dgrad(strided(dilated(padded(conv_case(1, 28, 56, 8, 16, 3, 3), 2), 2, 3), 2, 2));
  // Three of four stride phases have no taps, eight of nine, and two of three in one direction.
  check_dgrad(strided(conv_case(2, 20, 22, 136, 72, 1, 1), 2, 2));
  check_dgrad(strided(padded(conv_case(2, 13, 15, 24, 8, 1, 1), 1), 2, 2));
  check_dgrad(strided(conv_case(3, 11, 14, 72, 136, 1, 1), 3, 3));
  check_dgrad(strided(padded(conv_case(2, 9, 20, 8, 72, 3, 1), 1), 1, 3));
  // Odd extents: some stride phases have fewer pixels.
  check_dgrad(strided(padded(conv_case(2, 21, 23, 24, 8, 7, 7), 3), 2, 2));
  check_dgrad(strided(padded(conv_case(4, 11, 10, 8, 72, 4, 5), 2, 0, 1, 3), 3, 2));
  // Subtiles that cover many image rows of one column each.
  check_dgrad(strided(padded(conv_case(5, 40, 3, 16, 8, 3, 3), 1), 2, 3));
  // Stride phases with at most one tap; also strides and dilations with a common factor.
  check_dgrad(strided(padded(conv_case(1, 15, 17, 8, 16, 2, 3), 1), 5, 3));
  check_dgrad(strided(dilated(padded(conv_case(2, 17, 18, 8, 8, 3, 3), 4), 2, 6), 2, 4));
  // Pixels that no output reads, and a stride phase without pixels.
  check_dgrad(strided(conv_case(2, 2, 30, 8, 8, 1, 2), 3, 7));
}

TEST_CASE("conv wgmma: epilogues and slices of a strided dgrad are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  for (const ConvCase &layer : {strided(padded(conv_case(2, 13, 14, 24, 72, 3, 3), 1), 2, 2),
                                strided(padded(conv_case(2, 9, 20, 136, 8, 2, 3), 1), 2, 3),
                                strided(conv_case(3, 9, 8, 72, 1032, 1, 1), 2, 2)}) {
    for (const Types &types : {Types{MP_FP16, MP_FP16}, Types{MP_BF16, MP_FP32}}) {
      const ConvCase plain = with(layer, MP_CONV_DGRAD, types);
      const auto check_both = [&](const ConvCase &v) {
        check(v);
        if (layer.k > 64) check(v, is_split);  // otherwise the sum is too short
      };
      check_both(plain);
      ConvCase c = plain;
      c.scale = 0.5f;
      c.amax = c.found_inf = true;
      c.bias = MP_FP16;
      check(c);
      c.beta = 1.0f;
      check_both(c);
      c = plain;
      c.activation = MP_ACT_DRELU;
      c.aux = c.dbias = c.amax = true;
      c.aux_pad = 8;
      check_both(c);
      c.aux_pad = 3;  // such rows cannot be described by a tensor map
      check(c);
      c.activation = MP_ACT_RELU;  // writes aux
      check(c);
      c = plain;
      c.amax = c.found_inf = true;
      c.special = Special::kInfinity;
      check(c);
    }
  }
  // The stride phases of odd rows and columns are smaller; past their last pixel they multiply the
  // last pixel of dy, which is used only by the padding: its infinity must not be detected.
  for (const mp_dtype_t out : {MP_FP16, MP_FP32}) {
    ConvCase c = with(strided(padded(conv_case(2, 5, 5, 8, 16, 1, 1), 1), 2, 2), MP_CONV_DGRAD,
                      {MP_FP16, out});
    c.amax = c.found_inf = true;
    c.special = Special::kInfinity;
    c.place = Place::kLast;
    check(c);
  }
}

TEST_CASE("conv wgmma: fewer, as many and more taps than stages are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  // Four tiles continue at the ring position of the previous tile; wgrad has 64 pixels per stage.
  for (const int32_t s : {1, 3, 4, 5, 6, 7, 13})
    check(with(conv_case(6, 9, 8 + s, 8, 8, 1, s), MP_CONV_FPROP, kTypes[0]));
  for (const int32_t n : {1, 4, 5, 6, 7})
    check(with(padded(conv_case(n, 8, 8, 16, 136, 3, 3), 1), MP_CONV_WGRAD, kTypes[1]));
}

TEST_CASE("conv wgmma: split-k slices are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  for (const mp_conv_op_t op : kConvOps) {
    ConvCase c = with(padded(conv_case(2, 13, 11, 24, 72, 3, 3), 1), op, {MP_FP16, MP_FP32});
    c.beta = 1.0f;
    check(c, is_split);
    c.cd = MP_FP16;
    c.amax = true;
    check(c, is_split);
  }
}

TEST_CASE("conv wgmma: weight gradients whose slices a cluster adds are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  // 1456 pixels: eight slices of three k-tiles at most.  Taps of 24 channels are padded.
  for (const mp_dtype_t out : {MP_FP16, MP_FP32}) {
    ConvCase c = with(padded(conv_case(8, 14, 13, 24, 72, 3, 3), 1), MP_CONV_WGRAD, {MP_FP16, out});
    c.amax = c.found_inf = true;
    const auto adds_in_cluster = [](const std::string &kernel) {
      return is_wgmma(kernel) && kernel.find("_p") != std::string::npos;
    };
    check(c, adds_in_cluster);
    c.beta = 1.0f;
    c.scale = 0.5f;
    check(c, adds_in_cluster);
    c.beta = 0.0f;
    c.special = Special::kInfinity;
    check(c, adds_in_cluster);
  }
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
  const ConvCase fprop = padded(conv_case(4, 11, 14, 72, 64, 3, 3), 1);
  const ConvCase dgrad = padded(conv_case(4, 11, 14, 64, 64, 3, 3), 1);
  for (const Types &types : {Types{MP_FP16, MP_FP16}, {MP_BF16, MP_BF16}, {MP_FP16, MP_FP32}}) {
    ConvCase c = with(fprop, MP_CONV_FPROP, types);
    check(c, is_narrow_and_split);
    c.bias = MP_FP32;
    c.amax = c.found_inf = true;
    check(c, is_narrow);
    c.activation = MP_ACT_GELU;
    c.aux = true;
    c.fill = Fill::kReal;
    check(c, is_narrow);
    c = with(fprop, MP_CONV_FPROP, types);
    c.beta = -2.0f;
    c.bias = MP_FP16;
    c.activation = MP_ACT_RELU;
    check(c, is_narrow);

    c = with(dgrad, MP_CONV_DGRAD, types);
    c.beta = 1.0f;
    check(c, is_narrow_and_split);
    c.beta = 0.0f;
    c.activation = MP_ACT_DRELU;
    c.aux = c.dbias = c.amax = c.found_inf = true;
    check(c, is_narrow);
  }
  // Infinity times the zeros beyond 56 channels is NaN, which must not reach any output.
  ConvCase c = with(padded(conv_case(4, 11, 14, 64, 56, 3, 3), 1), MP_CONV_FPROP, kTypes[0]);
  c.amax = c.found_inf = true;
  c.special = Special::kInfinity;
  check(c, is_narrow);
  CHECK(refusal(with(dgrad, MP_CONV_WGRAD, kTypes[0]), "conv_wgmma_256x64x64_s4") ==
        "does not support this pass");
}

TEST_CASE("conv wgmma: dbias has the same bits with and without workspace for partial sums",
          "[conv][wgmma]") {
  if (!has_wgmma()) return;
  const ConvCase layer = padded(conv_case(3, 9, 14, 72, 136, 3, 3), 1);
  for (const ConvCase &c :
       {with(layer, MP_CONV_FPROP, kTypes[0]), with(layer, MP_CONV_DGRAD, {MP_BF16, MP_BF16}),
        with(strided(layer, 2, 2), MP_CONV_DGRAD, kTypes[0])}) {
    ConvCase summed = c;
    summed.dbias = true;
    summed.fill = Fill::kRounding;
    summed.alpha = 1.0f / 64.0f;
    ConvRun run(summed);
    for (const std::string &kernel : run.kernels())
      if (is_unsplit(kernel) || is_split(kernel)) check_same_bits(run, kernel);
  }
}

TEST_CASE("conv wgmma: weight gradients with padded taps are exact", "[conv][wgmma]") {
  if (!has_wgmma()) return;
  for (const int32_t channels : {8, 40, 64, 72}) {  // 64 requires no padding
    for (const mp_dtype_t out : {MP_FP16, MP_FP32}) {
      ConvCase c =
          with(padded(conv_case(2, 7, 8, channels, 136, 3, 2), 1), MP_CONV_WGRAD, {MP_FP16, out});
      check(c);
      c.beta = 1.0f;
      c.amax = c.found_inf = true;
      check(c);
      // Infinity times the zeros that pad a tap is NaN, which must not reach gradients or amax.
      // Without image padding, every gradient of that channel is infinite.
      c = with(conv_case(2, 7, 8, channels, 136, 3, 2), MP_CONV_WGRAD, {MP_FP16, out});
      c.amax = c.found_inf = true;
      c.special = Special::kInfinity;
      c.special_in_second = true;
      check(c);
    }
  }
}

TEST_CASE("conv wgmma: the limits of im2col TMA are supported and exceeded limits rejected",
          "[conv][wgmma]") {
  if (!has_wgmma()) return;
  const ConvCase square = padded(conv_case(1, 9, 9, 8, 8, 3, 3), 1);
  check_ops(strided(square, 8, 8), kAllOps);
  // 16 stride phases have tensor maps of dx, 20 do not.
  check_ops(strided(padded(conv_case(2, 17, 18, 8, 8, 5, 5), 1), 4, 4), {MP_CONV_DGRAD});
  check_ops(strided(padded(conv_case(2, 17, 18, 8, 8, 5, 5), 1), 5, 4), {MP_CONV_DGRAD});
  CHECK(refusal(strided(square, 9, 1)) == "requires strides of at most 8");

  const auto line = [](int32_t w, int32_t taps, int32_t left, int32_t right) {
    return padded(conv_case(1, 1, w, 8, 8, 1, taps), 0, 0, left, right);
  };
  check_ops(line(9, 3, 128, 129), {MP_CONV_FPROP, MP_CONV_WGRAD});
  check_ops(dilated(line(257, 2, 127, 127), 1, 255), kAllOps);
  CHECK(refusal(line(9, 3, 129, 0)) == "requires corners of the pixel box from -128 to 127");
  CHECK(refusal(line(9, 3, 0, 130)) == "requires corners of the pixel box from -128 to 127");
  CHECK(refusal(with(line(260, 131, 0, 0), MP_CONV_DGRAD, kTypes[0])) ==
        "requires corners of the pixel box from -128 to 127");
  CHECK(refusal(dilated(line(300, 2, 128, 0), 1, 256)) == "requires taps at most 255 pixels apart");

  CHECK(refusal(grouped(padded(conv_case(1, 5, 5, 16, 16, 3, 3), 1), 2)) == "requires groups = 1");
  CHECK(refusal(padded(conv_case(1, 5, 5, 12, 16, 3, 3), 1)) ==
        "requires c and k to be multiples of 8");
  CHECK(refusal(padded(conv_case(1, 5, 5, 16, 12, 3, 3), 1)) ==
        "requires c and k to be multiples of 8");
  CHECK(refusal(with(square, MP_CONV_FPROP, {MP_FP32, MP_FP32})) == "requires FP16 or BF16");
  for (const char *const kernel : {"conv_wgmma_64x256x64_s4", "conv_wgmma_128x192x64_s4"})
    CHECK(refusal(square, kernel) == "does not support this pass");
  CHECK(refusal(with(strided(square, 2, 2), MP_CONV_DGRAD, kTypes[0]),
                "conv_wgmma_256x128x64_s4") == "does not support this pass");
}
