// Hopper kernels that read few channels as overlapping windows of a copy (conv_plan.h).  The
// workspace is initially NaN.
#define MP_ENABLE_EXPERIMENTAL
#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

constexpr mp_conv_op_t kOps[] = {MP_CONV_FPROP, MP_CONV_WGRAD};

bool reads_windows(const std::string &kernel) {
  return kernel.starts_with("conv_wgmma") && kernel.ends_with("_copied");
}
/// True for "conv_wgmma_256x64x64_s4_c2_copied", not for "..._k2_copied".
bool reads_unsplit_windows(const std::string &kernel) {
  return reads_windows(kernel) && kernel.find("_k") == std::string::npos;
}

/// Checks the kernels for which is_wanted is true; at least one must support the case.
void check(const ConvCase &c, bool (*is_wanted)(const std::string &)) {
  ConvRun run(c);
  INFO(to_string(c));
  CHECK(check_kernels(run, Misaligned::kNo, is_wanted) > 0);
}

/// Images of one to eight channels, with one or several groups of filter rows and blocks of 64
/// elements of a window.
std::vector<ConvCase> layers() {
  return {strided(padded(conv_case(2, 23, 25, 3, 64, 7, 7), 3), 2, 2),  // ResNet
          strided(padded(conv_case(1, 41, 33, 3, 72, 7, 7), 3), 2, 2),
          strided(conv_case(2, 15, 70, 1, 32, 5, 20), 2, 2),  // speech
          padded(conv_case(2, 9, 11, 2, 16, 3, 3), 1),
          padded(conv_case(2, 7, 9, 8, 24, 3, 3), 1),  // aligned channels
          padded(conv_case(1, 13, 9, 8, 8, 7, 7), 3),  // a group per filter row
          dilated(padded(conv_case(1, 17, 12, 5, 8, 4, 3), 3, 2, 2, 0), 2, 1),
          strided(padded(conv_case(1, 30, 31, 4, 8, 6, 5), 5, 0, 1, 7), 3, 4),
          strided(dilated(padded(conv_case(1, 26, 9, 7, 8, 9, 2), 1), 2, 1), 4, 3),
          strided(padded(conv_case(2, 40, 3, 1, 8, 19, 2), 4, 3, 1, 1), 2, 2),
          padded(conv_case(2, 1, 40, 3, 8, 1, 5), 0, 0, 2, 2),  // 1-D
          conv_case(3, 5, 4, 3, 8, 5, 4)};                      // one pixel of y
}

bool has_windows() {
  const std::vector<std::string> kernels = ConvRun(layers()[0]).kernels();
  if (std::any_of(kernels.begin(), kernels.end(), reads_windows)) return true;
  skip("this device has no wgmma");
  return false;
}

}  // namespace

TEST_CASE("conv windows: results are exact", "[conv][wgmma][short]") {
  if (!has_windows()) return;
  for (const ConvCase &layer : layers())
    for (const mp_conv_op_t op : kOps)
      for (const Types &types : {Types{MP_FP16, MP_FP16}, {MP_BF16, MP_FP32}})
        check(with(layer, op, types), reads_windows);
}

TEST_CASE("conv windows: infinities and NaNs reach only the windows that contain them",
          "[conv][wgmma][short]") {
  if (!has_windows()) return;
  for (const ConvCase &layer : layers()) {
    for (const mp_conv_op_t op : kOps) {
      for (const Place place : {Place::kFirst, Place::kMiddle, Place::kLast}) {
        for (const bool second : {false, true}) {
          ConvCase c = with(layer, op, {MP_FP16, MP_FP16});
          c.special = place == Place::kMiddle ? Special::kNan : Special::kInfinity;
          c.place = place;
          c.special_in_second = second;
          c.amax = c.found_inf = true;
          check(c, reads_unsplit_windows);
        }
      }
    }
  }
}

TEST_CASE("conv windows: layers without windows are rejected", "[conv][wgmma][short]") {
  if (!has_windows()) return;
  const ConvCase rgb = padded(conv_case(2, 9, 17, 3, 16, 3, 5), 2);
  const auto check_rejected = [](const ConvCase &c) {
    INFO(to_string(c));
    ConvRun run(c);
    expect_status(run.launch("conv_wgmma_64x128x64_s8_copied", size_t{1} << 20),
                  MP_ERROR_UNSUPPORTED);
    expect_none(run.verify_untouched(), run.repro());
  };
  for (const mp_conv_op_t op : kOps) {
    const Types fp16{MP_FP16, MP_FP16};
    check_rejected(with(rgb, op, {MP_FP32, MP_FP32}));
    check_rejected(with(dilated(rgb, 1, 2), op, fp16));
    check_rejected(with(conv_case(2, 9, 17, 9, 16, 3, 5), op, fp16));
    check_rejected(with(conv_case(2, 9, 17, 3, 12, 3, 5), op, fp16));
    check_rejected(with(grouped(conv_case(2, 9, 17, 2, 16, 3, 5), 2), op, fp16));
  }
  check_rejected(with(rgb, MP_CONV_DGRAD, {MP_FP16, MP_FP16}));
}
