// Tensors of more than 2^32 elements at low cost: nine images of 2^29 elements, of which a large
// stride or padding makes only two pixels relevant.  Only the pages of these pixels are touched.
//
// Each problem equals a compact one with only these pixels, whose result the oracle computes.
#define MP_ENABLE_EXPERIMENTAL
#include "conv_cases.h"
#include "conv_run.h"
#include "tests/support/kernels.h"

using namespace mptest;

namespace {

constexpr int32_t kImages = 9;
constexpr int32_t kChannels = 16;         // channels of the large tensor
constexpr int32_t kOthers = 8;            // channels of the other tensor
constexpr int32_t kPixels = 1 << 25;      // pixels of a large image, which has 2^29 elements
constexpr int32_t kStride = kPixels - 1;  // pixels 0 and 2^25 - 1 are read
constexpr size_t kElemBytes = 2;          // fp16
constexpr size_t kRowBytes = kChannels * kElemBytes;

/// Sets the pixels `first` and `second` of every image to those of the compact tensor.
void scatter(uint8_t *arena, int64_t image_pixels, int64_t first, int64_t second,
             const std::vector<double> &compact) {
  for (int64_t image = 0; image < kImages; ++image) {
    for (const int64_t pixel : {int64_t{0}, int64_t{1}}) {
      uint16_t row[kChannels];
      for (int64_t c = 0; c < kChannels; ++c) {
        const size_t from = static_cast<size_t>((image * 2 + pixel) * kChannels + c);
        row[c] = static_cast<uint16_t>(encode(MP_FP16, compact[from]));
      }
      const int64_t to = image * image_pixels + (pixel == 0 ? first : second);
      copy_bytes(arena + static_cast<size_t>(to) * kRowBytes, row, sizeof row);
    }
  }
}

std::vector<double> integers(int64_t count, int64_t seed) {
  Random random(static_cast<uint64_t>(seed));
  std::vector<double> values(static_cast<size_t>(count));
  fill(values, random, Fill::kExact, 8, MP_FP16);
  return values;
}

/// Checks a convolution whose first input is large against the `compact` one of its relevant
/// pixels.
void check_large(const ConvCase &large, const ConvCase &compact, const uint8_t *arena,
                 const std::vector<double> &first) {
  const std::vector<double> second = integers(
      large.op == MP_CONV_WGRAD ? compact.elements_of_y() : compact.elements_of_filter(), 7);
  const Matrices expected = oracle::convolve(compact, large.op, first, second).sum;
  const DeviceArray b(MP_FP16, second);
  const auto pass = large.op == MP_CONV_FPROP   ? mp_conv2d_fprop
                    : large.op == MP_CONV_DGRAD ? mp_conv2d_dgrad
                                                : mp_conv2d_wgrad;
  mp_conv2d_desc_t desc = desc_of(large);
  const std::vector<const char *> kernels = runnable_kernels(desc, large.op);
  for (const char *const kernel : kernels) {
    desc.plan = named_plan(kernel);
    CAPTURE(to_string(large), kernel);
    const DeviceWorkspace workspace(mp_conv2d_workspace_size, context(), &desc, large.op, nullptr);
    const DeviceArray out(MP_FP32, static_cast<int64_t>(expected.values.size()));
    require_ok(pass(context(), &desc, arena, b.data(), out.data(), nullptr, workspace.data(),
                    workspace.bytes(), kStream));
    require_ok(mp_stream_sync(context(), kStream));
    CHECK(out.download() == expected.values);
  }
  CHECK(!kernels.empty());
}

constexpr int64_t kLargestImage = int64_t{kPixels} + 2;
constexpr size_t kArenaBytes = static_cast<size_t>(kImages * kLargestImage) * kRowBytes;

}  // namespace

TEST_CASE("conv large: x of fprop and wgrad", "[conv][short]") {
  const DeviceMemory arena(kArenaBytes);
  if (!arena.allocated()) return skip(format("needs %zu MB of memory", kArenaBytes >> 20));
  const std::vector<double> x = integers(kImages * 2 * kChannels, 5);
  scatter(arena.data(), kPixels, 0, kStride, x);
  const std::string line = format("n=%d c=%d k=%d ", kImages, kChannels, kOthers);
  for (const ConvCase &large :
       conv_cases(line + format("w=%d stride_w=%d op=fprop|wgrad", kPixels, kStride)))
    check_large(large, conv_case(line + "w=2"), arena.data(), x);
}

TEST_CASE("conv large: dy of dgrad", "[conv][short]") {
  const DeviceMemory arena(kArenaBytes);
  if (!arena.allocated()) return skip(format("needs %zu MB of memory", kArenaBytes >> 20));
  // One pixel follows kPixels columns of zeros: the last two outputs depend on it.
  const std::vector<double> dy = integers(kImages * 2 * kChannels, 6);
  scatter(arena.data(), int64_t{kPixels} + 1, kPixels - 1, kPixels, dy);
  const std::string line =
      format("n=%d c=%d k=%d s=2 pad_right=1 op=dgrad pad_left=", kImages, kOthers, kChannels);
  check_large(conv_case(line + std::to_string(kPixels)), conv_case(line + "1"), arena.data(), dy);
}
