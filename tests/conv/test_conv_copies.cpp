// Images whose channels are not a multiple of 8, with kernels that read a padded copy of them: rows
// of taps, or windows (test_conv_windows.cpp).  The workspace is initially NaN.
#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

constexpr mp_conv_op_t kCopyingOps[] = {MP_CONV_FPROP, MP_CONV_WGRAD};

bool reads_copies(const std::string &kernel) {
  return kernel.ends_with("_copied");
}
/// True for "conv_wmma_64x64x32_s4_copied", not for "..._k4_copied".
bool reads_unsplit_copies(const std::string &kernel) {
  return reads_copies(kernel) && kernel.find("_k") == std::string::npos;
}
/// Includes kernels without a copy, which support four channels if aligned.
bool is_unsplit_wmma(const std::string &kernel) {
  return kernel.starts_with("conv_wmma") && kernel.find("_k") == std::string::npos;
}

int check_copies(const ConvCase &c, bool (*is_wanted)(const std::string &) = reads_unsplit_copies) {
  ConvRun run(c);
  INFO(to_string(c));
  return check_kernels(run, Misaligned::kNo, is_wanted);
}

/// Returns a layer with image rows of 17 pixels, padded at both ends.
ConvCase rgb(int32_t channels = 3) {
  return strided(padded(conv_case(2, 9, 17, channels, 16, 3, 5), 1, 2, 2, 1), 1, 2);
}

}  // namespace

TEST_CASE("conv copies: any number of channels, stride and padding is exact", "[conv][short]") {
  constexpr Types kTypes[] = {
      {MP_FP16, MP_FP16}, {MP_FP16, MP_FP32}, {MP_BF16, MP_FP32}, {MP_BF16, MP_BF16}};
  size_t drawn = 0;
  int checked = 0;
  for (const int32_t channels : {1, 3, 4, 7, 12}) {
    for (const int32_t stride : {1, 2, 3, 4}) {
      for (const int32_t before : {0, 1, 4}) {
        ConvCase c = strided(padded(rgb(channels), 1, 0, before, 3), 2, stride);
        c.w += channels % 2 == 0;
        for (const mp_conv_op_t op : kCopyingOps)
          checked +=
              check_copies(with(c, op, kTypes[drawn++ % std::size(kTypes)]), is_unsplit_wmma);
      }
    }
  }
  CHECK(checked > 150);
}

TEST_CASE("conv copies: filters of one tap, one row, one column, and dilated ones are exact",
          "[conv][short]") {
  for (const ConvCase &layer :
       {conv_case(2, 5, 6, 12, 16, 1, 1), strided(conv_case(2, 5, 7, 12, 16, 1, 1), 2, 2),
        padded(conv_case(2, 1, 40, 3, 8, 1, 5), 0, 0, 2, 2), conv_case(2, 7, 6, 5, 8, 3, 1),
        strided(padded(conv_case(2, 7, 9, 5, 8, 1, 2), 1), 1, 2),
        dilated(padded(conv_case(1, 11, 12, 3, 8, 3, 3), 2), 2, 2),
        strided(dilated(padded(conv_case(1, 11, 12, 12, 8, 3, 3), 2), 1, 3), 2, 2)}) {
    for (const mp_conv_op_t op : kCopyingOps) {
      for (const Types &types : {Types{MP_FP16, MP_FP16}, {MP_FP16, MP_FP32}})
        CHECK(check_copies(with(layer, op, types)) > 0);
    }
  }
}

TEST_CASE("conv copies: split-k, epilogues and unaligned tensors are exact", "[conv][short]") {
  ConvCase wgrad =
      with(padded(conv_case(3, 20, 24, 3, 24, 3, 3), 1), MP_CONV_WGRAD, {MP_FP16, MP_FP16});
  wgrad.beta = 1.0f;
  wgrad.scale = 2.0f;
  wgrad.amax = wgrad.found_inf = true;
  for (const int32_t stride : {1, 2})
    CHECK(check_copies(strided(wgrad, 1, stride), reads_copies) > 3);
  ConvCase fprop = with(rgb(), MP_CONV_FPROP, {MP_FP16, MP_FP16});
  fprop.bias = MP_FP32;
  fprop.activation = MP_ACT_RELU;
  fprop.aux = fprop.dbias = fprop.amax = true;
  CHECK(check_copies(fprop) > 0);
  for (ConvCase c : {wgrad, fprop}) {
    for (const char *const stray : {"1", "2", "12"}) {
      c.stray = stray;
      // TMA reads dy in place in wgrad of windows.
      CHECK(check_copies(c, c.op == MP_CONV_FPROP ? reads_unsplit_copies : is_unsplit_wmma) > 0);
    }
  }
}

TEST_CASE("conv copies: non-finite values affect only their outputs", "[conv][short]") {
  for (const mp_conv_op_t op : kCopyingOps) {
    for (const Special special : {Special::kInfinity, Special::kNan}) {
      for (const Place place : {Place::kFirst, Place::kMiddle, Place::kLast}) {
        for (const bool second : {false, true}) {
          ConvCase c = with(rgb(), op, {MP_FP16, MP_FP16});
          c.special = special;
          c.place = place;
          c.special_in_second = second;
          c.amax = c.found_inf = true;
          CHECK(check_copies(c) > 0);
        }
      }
    }
  }
}

TEST_CASE("conv copies: kernels reject problems without padded channels", "[conv][short]") {
  const std::string kernel = "conv_wmma_64x64x32_s4_copied";
  const Types fp16{MP_FP16, MP_FP16};
  for (const ConvCase &c :
       {with(rgb(8), MP_CONV_FPROP, fp16), with(rgb(), MP_CONV_FPROP, {MP_FP32, MP_FP32}),
        with(grouped(rgb(2), 2), MP_CONV_WGRAD, fp16), with(rgb(), MP_CONV_DGRAD, fp16)}) {
    INFO(to_string(c));
    ConvRun run(c);
    expect_status(run.launch(kernel, size_t{1} << 20), MP_ERROR_UNSUPPORTED);
    expect_none(run.verify_untouched(), run.repro());
  }
}
