// Selection of convolution kernels: supported problems, preferred kernels, and names.
#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/conv/conv_plan.h"
#include "kernels/conv/conv_problem.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Returns a convolution with square image, filter and stride, padded to keep the size.
mp_conv2d_desc_t square(int32_t n, int32_t size, int32_t c, int32_t k, int32_t taps,
                        int32_t stride = 1, int32_t groups = 1) {
  mp_conv2d_desc_t d = mp_conv2d_desc_default(n, size, size, c, k, taps, taps, MP_FP16);
  d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = taps / 2;
  d.stride_h = d.stride_w = stride;
  d.groups = groups;
  return d;
}

constexpr mp_conv_op_t kAllOps[] = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};

std::vector<mp_conv2d_desc_t> shapes() {
  return {square(32, 56, 64, 64, 3),      square(32, 56, 256, 64, 1),
          square(32, 224, 3, 64, 7, 2),   square(8, 14, 96, 96, 3, 1, 96),
          square(4, 28, 12, 20, 5, 2, 4), square(1, 7, 512, 512, 3)};
}

mp::PlanRequest request_of(const mp::Device &device, size_t workspace_bytes = SIZE_MAX) {
  return {device, mp::builtin_gemm_tuning(), workspace_bytes};
}

mp::ConvProblem misaligned(mp::ConvProblem p) {
  alignas(16) static char data[32];
  p.image = p.other = data + 2;
  return p;
}

std::vector<mp::RankedConv> ranking(const mp::ConvProblem &p, const mp::Device &device) {
  return mp::rank_conv(p, request_of(device));
}

mp::ConvPlan plan_of(const mp::ConvProblem &p, const mp::Device &device,
                     size_t workspace_bytes = SIZE_MAX) {
  return mp::plan_conv(p, request_of(device, workspace_bytes));
}

std::string first_name(mp_conv_op_t op, const mp_conv2d_desc_t &shape, const mp::Device &device) {
  return ranking(mp::conv_problem(shape, op), device).front().name;
}

/// Returns the reason why the kernel does not support the problem, or an empty string.
std::string why_no_conv(const char *name, const mp::ConvProblem &p, const mp::Device &device) {
  mp::ConvPlan plan;
  const char *why;
  if (mp::plan_named_conv(p, request_of(device), name, &plan, &why)) return {};
  return why != nullptr ? why : "unknown";
}

}  // namespace

TEST_CASE("conv selection: a ranking is sorted, has no duplicates, and agrees with all plans") {
  for (const mp::Device &device :
       {kT4, kA100, kL40s, kH200, kH200WithoutWgmma, kB200, kRtx5090, kHost}) {
    for (const mp_conv2d_desc_t &shape : shapes()) {
      for (const mp_conv_op_t op : kAllOps) {
        const mp::ConvProblem p = mp::conv_problem(shape, op);
        const std::vector<mp::RankedConv> choices = ranking(p, device);
        const auto first_with = [&](size_t bytes) {
          return std::find_if(choices.begin(), choices.end(), [&](const mp::RankedConv &choice) {
            return choice.workspace_bytes <= bytes;
          });
        };
        REQUIRE(first_with(0) != choices.end());
        std::set<std::string> names;
        double last_us = 0;
        for (const mp::RankedConv &choice : choices) {
          CAPTURE(device.arch, op, choice.name);
          CHECK(names.insert(choice.name).second);
          CHECK(std::isfinite(choice.predicted_us));
          const bool is_wgmma =
              choice.variant != nullptr && choice.variant->kernel->family == mp::GemmFamily::wgmma;
          CHECK((device.has_wgmma || !is_wgmma));
          CHECK(choice.predicted_us >= last_us);
          last_us = choice.predicted_us;
          mp::ConvPlan found;
          const char *why;
          REQUIRE(mp::plan_named_conv(p, request_of(device), choice.name, &found, &why));
          CHECK(found.name == choice.name);
          CHECK(found.family == choice.family);
          CHECK(found.gemm.workspace.bytes == choice.workspace_bytes);
          CHECK(found.gemm.predicted_us == choice.predicted_us);
          const size_t bytes = choice.workspace_bytes;
          CHECK(plan_of(p, device, bytes).name == first_with(bytes)->name);
        }
        // A measured kernel replaces it, if it fits.
        const mp::RankedConv &last = choices.back();
        const mp::ConvPlan measured =
            mp::plan_conv(p, request_of(device, last.workspace_bytes), last.name);
        CHECK(measured.name == last.name);
        CHECK(measured.gemm.predicted_us == first_with(last.workspace_bytes)->predicted_us);
        CHECK(measured.gemm.best_us == choices.front().predicted_us);
        const mp::RankedConv &largest = *std::ranges::max_element(
            choices, {}, [](const mp::RankedConv &choice) { return choice.workspace_bytes; });
        if (largest.workspace_bytes > 0)
          CHECK(mp::plan_conv(p, request_of(device, 0), largest.name).name == first_with(0)->name);
      }
    }
  }
}

TEST_CASE("conv selection: a measured kernel of clusters over k is ignored if SMs are limited") {
  const mp::ConvProblem p = mp::conv_problem(square(32, 28, 128, 128, 3), MP_CONV_WGRAD);
  const char *const name = "conv_wgmma_128x128x64_s6_k8_p8";
  mp::Device device = kH200;
  CHECK(mp::plan_conv(p, request_of(device), name).name == std::string_view(name));
  device.has_sm_limit = true;
  CHECK(mp::plan_conv(p, request_of(device), name).name == plan_of(p, device).name);
  CHECK(plan_of(p, device).gemm.parts == 1);
}

TEST_CASE("conv selection: only 1 x 1 filters with stride 1 and no padding are GEMMs") {
  const char *const gemm = "wmma_128x128x32_s3";
  const mp_conv2d_desc_t plain = square(32, 56, 256, 64, 1);
  for (const mp_conv_op_t op : kAllOps) {
    const mp::RankedConv first = ranking(mp::conv_problem(plain, op), kA100).front();
    CHECK(first.family == mp::ConvFamily::gemm);
    CHECK(why_no_conv(gemm, mp::conv_problem(plain, op), kA100).empty());
  }
  const std::string why = "requires a 1 x 1 filter with stride 1, no padding and groups = 1";
  CHECK(why_no_conv(gemm, mp::conv_problem(square(8, 14, 64, 64, 1, 2), MP_CONV_FPROP), kA100) ==
        why);
  CHECK(why_no_conv(gemm, mp::conv_problem(square(8, 14, 64, 64, 3), MP_CONV_FPROP), kA100) == why);
  CHECK(why_no_conv(gemm, mp::conv_problem(square(8, 14, 64, 64, 1, 1, 2), MP_CONV_FPROP), kA100) ==
        why);
  mp_conv2d_desc_t padded = plain;
  padded.pad_top = 1;
  CHECK(why_no_conv(gemm, mp::conv_problem(padded, MP_CONV_FPROP), kA100) == why);
}

TEST_CASE("conv selection: an image of few channels is copied with padding, a product never is") {
  const mp_conv2d_desc_t rgb = square(32, 224, 3, 64, 7, 2);
  for (const mp::Device &device : {kT4, kA100, kH200WithoutWgmma}) {
    CAPTURE(device.arch);
    for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_WGRAD}) {
      const mp::ConvProblem p = mp::conv_problem(rgb, op);
      const mp::RankedConv first = ranking(p, device).front();
      CHECK(std::string_view(first.name).ends_with("_copied"));
      CHECK(first.reads_copies);
      // Rows of 112 outputs with stride 2 and 7 taps: 229 pixels, rounded up to even, of four
      // channels.
      const size_t image = size_t{32} * 224 * 230 * 4 * 2, filter = size_t{64} * 7 * 32 * 2;
      const size_t partial_sums = first.split_k > 1 ? size_t{4} * first.split_k * 64 * 7 * 32 : 0;
      CHECK(first.workspace_bytes == image + (op == MP_CONV_FPROP ? filter : partial_sums));
      const mp::ConvPlan without = plan_of(p, device, image);
      CHECK(without.copy.bytes() == 0);
      CHECK(without.gemm.best_workspace_bytes == first.workspace_bytes);
      CHECK(without.gemm.aligned_us == 0);  // the caller can change only the workspace
    }
    for (const mp_conv_op_t op : kAllOps) {
      const mp::ConvProblem p = mp::conv_problem(square(32, 56, 255, 1001, 1), op);
      for (const mp::RankedConv &choice : ranking(p, device))
        CHECK((!choice.reads_copies || choice.family == mp::ConvFamily::implicit));
      CHECK(why_no_conv("wmma_64x64x32_s4", p, device) == "");
      CHECK(why_no_conv("wmma_64x64x32_s4_copied", p, device) == "unknown");
    }
  }
}

TEST_CASE("conv selection: on Hopper few channels are read as windows of a copy") {
  const mp_conv2d_desc_t rgb = square(32, 224, 3, 64, 7, 2);
  const mp::ConvProblem p = mp::conv_problem(rgb, MP_CONV_FPROP);
  const mp::RankedConv first = ranking(p, kH200).front();
  CHECK(std::string_view(first.name).ends_with("_copied"));
  CHECK(first.family == mp::ConvFamily::im2col);
  // A pixel of the copy has seven rows of three channels and three zeros; a line of 229 such pixels
  // serves one of the 112 rows of y.
  const mp::PaddedImage copy = mp::window_image(p);
  CHECK(copy.image_bytes == size_t{32} * 112 * 229 * 24 * 2);
  CHECK(copy.filter_bytes == size_t{64} * 7 * 24 * 2);
  CHECK(first.workspace_bytes == copy.bytes());
  const mp::ConvProblem windows = mp::with_padded_image(p, copy);
  CHECK(windows.shape.c == 7 * 24);
  CHECK((windows.pixel_stride == 2 * 24 && windows.row_stride == 229 * 24));
  CHECK(plan_of(p, kH200).gemm.cost.slice_k * 1024 == 192);

  const mp::ConvProblem gradient = mp::conv_problem(rgb, MP_CONV_WGRAD);
  const mp::ConvPlan wgrad = plan_of(gradient, kH200);
  CHECK(wgrad.family == mp::ConvFamily::im2col);
  CHECK(std::string_view(wgrad.name).ends_with("_copied"));
  CHECK(wgrad.copy.image_bytes == copy.image_bytes);
  CHECK(wgrad.copy.filter_bytes == 2 * copy.filter_bytes);  // sums in fp32
  CHECK(wgrad.gemm.workspace.partial_sums == wgrad.copy.bytes());

  mp::Device old_driver = kH200;
  old_driver.has_overlapping_maps = false;
  for (const mp::ConvProblem &each : {p, gradient})
    CHECK(std::string_view(ranking(each, old_driver).front().name).starts_with("conv_wmma"));
  const char *const name = "conv_wgmma_256x64x64_s4_copied";
  CHECK(why_no_conv(name, p, kH200) == "");
  CHECK(why_no_conv(name, p, old_driver) ==
        "requires a driver that encodes tensor maps with overlapping pixels");
  CHECK(why_no_conv(name, p, kA100) == "requires sm_90");
  CHECK(why_no_conv("conv_wgmma_128x192x64_s4_copied", p, kH200) == "does not support this pass");
  CHECK(why_no_conv(name, gradient, kH200) == "does not support this pass");
  CHECK(
      why_no_conv(name, mp::conv_problem(rgb, MP_CONV_DGRAD), kH200).starts_with("requires fprop"));
  CHECK(why_no_conv(name, mp::conv_problem(square(32, 224, 9, 64, 7, 2), MP_CONV_FPROP), kH200)
            .starts_with("requires fprop"));
}

TEST_CASE("conv selection: windows have all rows of their group, and no others") {
  int found = 0;
  for (int32_t channels = 1; channels <= mp::kMaxWindowChannels; channels++) {
    for (const int32_t taps : {1, 2, 3, 4, 7, 9, 17}) {
      for (const int32_t stride : {1, 2, 3, 8}) {
        for (const int32_t dilation : {1, 2, 3}) {
          CAPTURE(channels, taps, stride, dilation);
          mp_conv2d_desc_t shape = square(2, 37, channels, 16, taps, stride);
          shape.dilation_h = dilation;
          if (mp::conv_extents(shape).p == 0) continue;
          const mp::ConvProblem p = mp::conv_problem(shape, MP_CONV_FPROP);
          const mp::PaddedImage copy = mp::window_image(p);
          REQUIRE(copy.bytes() > 0);
          const mp::ConvShape &windows = mp::with_padded_image(p, copy).shape;
          CHECK(windows.r * copy.rows == taps);
          CHECK((copy.channels % 8 == 0 && copy.channels >= copy.rows * channels));
          // Group r of output row h begins in this row of the image, and in this line.
          for (const int32_t h : {0, p.shape.p - 1}) {
            for (int32_t r = 0; r < windows.r; r++) {
              const int32_t line = h * windows.stride_h + r * windows.dilation_h;
              CHECK(line < copy.lines);
              CHECK(line * copy.line_step == h * stride + r * copy.rows * dilation);
            }
          }
          found++;
        }
      }
    }
  }
  CHECK(found > 500);
}

TEST_CASE("conv selection: padded copies are read in 16-byte units") {
  int copies = 0;
  for (const int32_t channels : {1, 2, 3, 4, 5, 12, 33}) {
    for (const int32_t taps : {1, 2, 3, 5, 7}) {
      for (const int32_t stride : {1, 2, 3, 4, 8}) {
        for (const int32_t dilation : {1, 2, 3}) {
          mp_conv2d_desc_t shape = square(2, 37, channels, 16, taps, stride);
          shape.dilation_w = dilation;
          for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_WGRAD}) {
            CAPTURE(channels, taps, stride, dilation, op);
            const mp::ConvProblem p = mp::conv_problem(shape, op);
            const mp::PaddedImage copy = mp::padded_image(p);
            CHECK((copy.bytes() > 0) != mp::vector_operands(p).image);
            if (copy.bytes() == 0) continue;
            const mp::VectorOperands padded = mp::vector_operands(mp::with_padded_image(p, copy));
            CHECK((padded.image && padded.other));
            copies++;
          }
        }
      }
    }
  }
  CHECK(copies > 900);
}

TEST_CASE("conv selection: aligned, grouped or four-channel images are not copied") {
  const auto why = [](const mp::ConvProblem &p) {
    return why_no_conv("conv_wmma_64x64x32_s4_copied", p, kA100);
  };
  const std::string nothing =
      "requires fprop or wgrad of a 16-bit x with groups = 1 and unaligned rows of taps";
  CHECK(why(mp::conv_problem(square(4, 28, 3, 16, 3), MP_CONV_FPROP)) == "");
  CHECK(why(mp::conv_problem(square(4, 28, 3, 16, 3), MP_CONV_DGRAD)) == nothing);
  CHECK(why(mp::conv_problem(square(4, 28, 16, 16, 3), MP_CONV_FPROP)) == nothing);
  CHECK(why(mp::conv_problem(square(4, 28, 6, 16, 3, 1, 2), MP_CONV_WGRAD)) == nothing);
  // Contiguous segments start at multiples of eight elements without a copy.
  CHECK(why(mp::conv_problem(square(4, 28, 4, 16, 5, 2), MP_CONV_FPROP)) == nothing);
  CHECK(why_no_conv("conv_wmma_64x64x32_copied",
                    mp::conv_problem(square(4, 28, 3, 16, 3), MP_CONV_FPROP), kA100) == "unknown");
  // The product of stride and channels requires 64 bits.
  CHECK(why(mp::conv_problem(square(1, 8, 3, 8, 3, 1 << 30), MP_CONV_FPROP)) == "");
  // An image of 2^30 elements exceeds the range of the kernels' indices.
  CHECK(why(mp::conv_problem(square(1, 16384, 3, 8, 3), MP_CONV_FPROP)) == nothing);
  CHECK(why(mp::conv_problem(square(1, 8192, 3, 8, 3), MP_CONV_FPROP)) == "");
}

TEST_CASE("conv selection: each pass supports the skinny tile of its shape") {
  for (const mp_conv_op_t op : kAllOps) {
    const mp::ConvProblem p = mp::conv_problem(square(8, 14, 64, 64, 3), op);
    const bool is_wgrad = op == MP_CONV_WGRAD;
    CHECK(why_no_conv("conv_simt_128x16x16", p, kA100) ==
          (is_wgrad ? "does not support this pass" : ""));
    CHECK(why_no_conv("conv_simt_16x128x16", p, kA100) ==
          (is_wgrad ? "" : "does not support this pass"));
  }
}

TEST_CASE("conv selection: a depthwise convolution is not computed as a GEMM") {
  const mp_conv2d_desc_t shape = square(32, 56, 96, 96, 3, 1, 96);
  for (const mp::Device &device : {kT4, kA100, kH200, kHost}) {
    for (const mp_conv_op_t op : kAllOps)
      CHECK(first_name(op, shape, device).starts_with("conv_depthwise"));
  }
  const auto why = [](const char *name, mp_conv_op_t op, const mp_conv2d_desc_t &s) {
    return why_no_conv(name, mp::conv_problem(s, op), kA100);
  };
  CHECK(why("conv_depthwise", MP_CONV_FPROP, square(8, 14, 64, 64, 3)) ==
        "requires groups = c = k > 1");
  CHECK(why("conv_depthwise", MP_CONV_FPROP, square(8, 14, 64, 128, 3, 1, 64)) ==
        "requires groups = c = k > 1");
  CHECK(why("conv_depthwise", MP_CONV_FPROP, square(8, 14, 64, 64, 13, 1, 64)) ==
        "requires a filter of at most 128 taps");
  CHECK(why("conv_depthwise_k4", MP_CONV_FPROP, shape) == "supports split-k only in wgrad");
  CHECK(why("conv_depthwise_k256", MP_CONV_WGRAD, square(1, 14, 96, 96, 3, 1, 96)) ==
        "requires more output pixels for this split");
}

TEST_CASE("conv selection: the reason of a slow path names the channels or the device") {
  using mp::conv_slow_path_reason;
  mp::ConvProblem p = mp::conv_problem(square(4, 28, 16, 16, 3), MP_CONV_DGRAD);
  CHECK(conv_slow_path_reason(p, kT4) == "");
  CHECK(conv_slow_path_reason(misaligned(p), kA100) == "a tensor is not 16-byte aligned");
  p.dtype = MP_BF16;
  CHECK(conv_slow_path_reason(p, kT4) == "sm_75 has Tensor Cores for FP16, but not for BF16");
  CHECK(conv_slow_path_reason(p, kA100) == "");
  p = mp::conv_problem(square(4, 28, 12, 16, 3), MP_CONV_DGRAD);
  CHECK(conv_slow_path_reason(p, kA100) == "c / groups = 12 is not a multiple of 8");
  const auto aligned_us = [&](bool aligned) {
    return plan_of(aligned ? p : misaligned(p), kA100).gemm.aligned_us;
  };
  CHECK(aligned_us(true) > 0);   // compared with 16 channels
  CHECK(aligned_us(false) > 0);  // compared with 12 channels in aligned tensors
  CHECK(aligned_us(false) < plan_of(misaligned(p), kA100).gemm.predicted_us * 1.001);
  p = mp::conv_problem(square(4, 28, 16, 16, 3, 1, 16), MP_CONV_FPROP);
  p.dtype = MP_BF16;  // depthwise: no device uses tensor cores
  CHECK(conv_slow_path_reason(p, kT4) == "");
}

TEST_CASE("conv selection: the cache key includes the alignment of each tensor") {
  mp::ConvProblem p = mp::conv_problem(square(2, 32, 3, 64, 3), MP_CONV_WGRAD), image = p,
                  other = p;
  image.image = misaligned(p).image;
  other.other = misaligned(p).other;
  CHECK(mp::key_of(image) != mp::key_of(p));
  CHECK(mp::key_of(other) != mp::key_of(p));
  CHECK(mp::key_of(image) != mp::key_of(other));
}

TEST_CASE("conv selection: a dgrad with a huge stride is planned without a loop over its phases") {
  mp_conv2d_desc_t shape = square(1, 1, 1, 1, 1);
  shape.w = shape.stride_w = (1 << 30) - 1;  // would take seconds with a loop over these phases
  const mp::ConvProblem p = mp::conv_problem(shape, MP_CONV_DGRAD);
  for (const mp::Device &device : {kT4, kH200, kHost})
    for (int i = 0; i < 100; i++) CHECK(plan_of(p, device).family != mp::ConvFamily::im2col);
}

TEST_CASE("conv selection: the work of a plan is counted") {
  const auto cost = [](mp_conv_op_t op, const mp_conv2d_desc_t &shape) {
    mp::ConvPlan plan;
    const char *why;
    REQUIRE(mp::plan_named_conv(mp::conv_problem(shape, op), request_of(kA100),
                                "conv_wmma_128x128x32_s3", &plan, &why));
    return plan.gemm.cost;
  };
  // Nine taps read each pixel, which is in memory once: x and y 12.8 MB, w 0.07 MB.
  CHECK(cost(MP_CONV_FPROP, square(32, 56, 64, 64, 3)).dram_mb == Approx(2 * 12.845056 + 0.073728));
  // A 1 x 1 filter with stride 2 reaches one of four phases of 392 tiles.  Two blocks share each of
  // 108 SMs, and one that is alone takes 1.3 times as long.
  const mp::PlanCost dgrad = cost(MP_CONV_DGRAD, square(32, 56, 256, 512, 1, 2));
  CHECK(dgrad.waves == 4);
  CHECK(dgrad.epilogues == Approx(14 + 1.3));
}

TEST_CASE("conv selection: unknown and unsupported names are rejected") {
  const mp::ConvProblem p = mp::conv_problem(square(8, 14, 64, 64, 3), MP_CONV_FPROP);
  CHECK(why_no_conv("conv_simt_64x64x16", p, kA100).empty());
  CHECK(why_no_conv("conv_gemv", p, kA100) == "requires m or n of at most 16");
  for (const char *const name : {"", "conv_", "conv", "conv_wmma", "conv_depthwise_k3", "im2col"})
    CHECK(why_no_conv(name, p, kA100) == "unknown");
}

TEST_CASE("conv selection: phases of a strided dgrad partition taps and pixels") {
  for (int32_t extent = 1; extent < 12; extent++) {
    for (int32_t taps = 1; taps < 7; taps++) {
      for (int32_t stride = 1; stride < 6; stride++) {
        for (int32_t dilation = 1; dilation < 5; dilation++) {
          CAPTURE(extent, taps, stride, dilation);
          const mp::StridePhases got = mp::stride_phases({extent, 0, taps, 0, stride, dilation});
          // Count from the definition.
          int32_t most_pixels = 0, most_taps = 0, phases = 0, reached = 0;
          for (int32_t residue = 0; residue < stride; residue++) {
            int32_t pixels = 0, reach = 0;
            for (int32_t h = residue; h < extent; h += stride) pixels++;
            for (int32_t r = 0; r < taps; r++) reach += (residue + r * dilation) % stride == 0;
            phases += pixels > 0;
            reached += pixels > 0 && reach > 0;
            most_pixels = std::max(most_pixels, pixels);
            most_taps = std::max(most_taps, reach);
          }
          CHECK(got.count == phases);
          CHECK(got.max_pixels == most_pixels);
          CHECK(got.max_taps >= most_taps);
          CHECK(got.reached >= reached);
          if (extent >= stride) CHECK(got.reached == reached);
          if (got.tap_step < taps) CHECK(got.tap_step * dilation % stride == 0);
          if (got.tap_step < taps) CHECK(got.dy_step == got.tap_step * dilation / stride);
        }
      }
    }
  }
}
