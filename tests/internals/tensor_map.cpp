// Tensor maps and im2col maps: limits of specs, and the per-thread cache.
#include "kernels/simt/tensor_map.h"

#include <algorithm>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

#include "testing.h"

using mp::Im2colSpec;
using mp::TensorMap;
using mp::TensorMapSpec;

namespace {

alignas(256) char tensor[1 << 12];

constexpr int64_t kGi = int64_t{1} << 30;

/// 100 x 60 x 3 elements with a row stride of 104.
constexpr TensorMapSpec kTensor = {tensor, MP_FP16, {100, 60, 3}, {104, 104 * 60}, {64, 32}, true};
/// Images of 100 channels and 60 x 30 pixels; a 3 x 3 filter with padding and stride 2.
constexpr Im2colSpec kImages = {
    tensor,   MP_FP16,  {100, 60, 30, 5}, {104, 104 * 60, 104 * 60 * 30},
    {-1, -1}, {-1, -1}, {2, 2},           64,
    128,      true};

const TensorMap &map_of(const TensorMapSpec &spec) {
  return mp::host::tensor_map(spec);
}
const TensorMap &map_of(const Im2colSpec &spec) {
  return mp::host::im2col_map(spec);
}

int bytes_of(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

bool is_stride(int64_t stride, mp_dtype_t dtype) {
  const __int128 bytes = static_cast<__int128>(stride) * bytes_of(dtype);
  return bytes > 0 && bytes % 16 == 0 && bytes < (__int128{1} << 40);
}

/// Independent implementation of the limits of cuda.h and of tensor_map.cpp that hold for both
/// kinds of maps.
template <class Spec>
bool is_tensor(const Spec &spec, int32_t row_length) {
  bool ok = spec.base != nullptr && reinterpret_cast<uintptr_t>(spec.base) % 16 == 0;
  ok = ok && (spec.dtype == MP_FP16 || spec.dtype == MP_BF16 || spec.dtype == MP_FP32);
  for (const int64_t extent : spec.extent) ok = ok && extent >= 1 && extent < 2 * kGi;
  for (size_t i = 0; i < std::size(spec.stride); i++)
    ok = ok && (spec.extent[i + 1] == 1 || is_stride(spec.stride[i], spec.dtype));
  const int row_bytes = row_length * bytes_of(spec.dtype);
  ok = ok && row_length >= 1 && row_length <= 256 && row_bytes % 16 == 0;
  return ok && (!spec.swizzle_128 || row_bytes == 128);
}

bool is_allowed(const TensorMapSpec &spec) {
  return is_tensor(spec, spec.box[0]) && spec.box[1] >= 1 && spec.box[1] <= 256 &&
         (spec.extent[1] == 1 || spec.stride[0] >= spec.extent[0]);
}

bool is_allowed(const Im2colSpec &spec) {
  bool ok = is_tensor(spec, spec.channels) && spec.pixels >= 1 && spec.pixels <= 1024;
  int64_t inner = spec.extent[0];
  for (int i = 0; i < 3; i++) {
    if (spec.extent[i + 1] == 1) continue;
    ok = ok && (i == 0 || spec.stride[i] >= inner);
    inner = std::max(inner, spec.stride[i]);
  }
  for (int i = 0; i < 2; i++) {
    const auto fits_a_byte = [](int corner) { return corner == static_cast<int8_t>(corner); };
    ok = ok && fits_a_byte(spec.lower[i]) && fits_a_byte(spec.upper[i]);
    ok = ok && spec.extent[i + 1] + spec.upper[i] - spec.lower[i] > 0;
    ok = ok && spec.step[i] >= 1 && spec.step[i] <= 8;
  }
  return ok;
}

/// Changes one value of `sides`, mostly within the limits and often exactly at one.
struct Dice {
  uint64_t sides;
  std::mt19937_64 random{1};

  template <class T>
  void change(T &value, std::type_identity_t<std::initializer_list<T>> values) {
    if (random() % sides == 0) value = values.begin()[random() % values.size()];
  }
  template <class Spec>
  void change_tensor(Spec &spec) {
    change(spec.base, {nullptr, tensor, tensor + 1, tensor + 8, tensor + 16, tensor + 24});
    change(spec.dtype, {MP_FP16, MP_BF16, MP_FP32, MP_DTYPE_NONE});
    for (int64_t &extent : spec.extent)
      change(extent, {0, 1, 2, 7, 64, 104, 105, 2 * kGi - 1, 2 * kGi, 4 * kGi, -1});
    for (int64_t &stride : spec.stride)
      change(stride, {0, 8, 4, 100, 104, 112, 104 * 60, 256 * kGi, 256 * kGi - 4, 512 * kGi,
                      512 * kGi - 8, 512 * kGi - 1, -8, INT64_MIN, INT64_MAX, INT64_MAX / 16 * 16});
    change(spec.swizzle_128, {false});
  }
};

void change_any(Dice &dice, TensorMapSpec &spec) {
  dice.change_tensor(spec);
  for (int32_t &box : spec.box)
    dice.change(box, {0, 1, 4, 8, 32, 60, 64, 72, 128, 255, 256, 257, -64});
}

void change_any(Dice &dice, Im2colSpec &spec) {
  dice.change_tensor(spec);
  for (int i = 0; i < 2; i++) {
    dice.change(spec.lower[i], {-129, -128, 0, 1, 29, 59, 127, 128, INT32_MIN});
    dice.change(spec.upper[i], {-129, -128, -60, -30, -2, 0, 127, 128});
    dice.change(spec.step[i], {-1, 0, 1, 3, 8, 9});
  }
  dice.change(spec.channels, {0, 1, 4, 8, 32, 60, 64, 72, 256, 257, 264, -64});
  dice.change(spec.pixels, {0, 1, 7, 256, 1023, 1024, 1025, -1});
}

std::vector<int32_t> box_of(const TensorMapSpec &spec) {
  return {spec.box[0], spec.box[1]};
}
std::vector<int32_t> box_of(const Im2colSpec &spec) {
  return {spec.lower[0], spec.lower[1], spec.upper[0], spec.upper[1],
          spec.step[0],  spec.step[1],  spec.channels, spec.pixels};
}

template <class Spec>
void check_limits(Dice dice, const Spec &good) {
  constexpr int kTries = 200000;
  int num_allowed = 0;
  for (int i = 0; i < kTries; i++) {
    Spec spec = good;
    change_any(dice, spec);
    const bool allowed = is_allowed(spec);
    num_allowed += allowed;
    const char *const why = mp::why_no_tensor_map(spec);
    if ((why == nullptr) == allowed) continue;
    CAPTURE(i, spec.base, spec.dtype, spec.extent, spec.stride, box_of(spec), spec.swizzle_128);
    FAIL((why == nullptr ? "allowed" : why));
  }
  CHECK(num_allowed > kTries / 20);
  CHECK(num_allowed < kTries / 2);
}

template <class Calls>
int64_t encodes_of(const Calls &calls) {
  const int64_t before = mp::tensor_map_encodes();
  calls();
  return mp::tensor_map_encodes() - before;
}

bool are_equal(const TensorMap &a, const TensorMap &b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class Spec>
void check_cache(const Spec &good,
                 std::initializer_list<void (*)(std::type_identity_t<Spec> &)> changes) {
  map_of(good);
  int shared = 0;  // changes whose spec has the cache entry of `good`, by chance of their addresses
  for (const auto change : changes) {
    Spec other = good;
    change(other);
    const TensorMap map = map_of(good);
    CHECK(encodes_of([&] { map_of(other); }) == 1);
    const int64_t encodes = encodes_of([&] {
      for (int i = 0; i < 1000; i++) map_of(good), map_of(other);
    });
    CHECK((encodes == 0 || encodes == 2000));
    shared += encodes > 0;
    CHECK(are_equal(map_of(good), map));
  }
  CHECK(shared <= 2);
}

}  // namespace

TEST_CASE("tensor map: a random spec is accepted if and only if it is within the limits") {
  check_limits({.sides = 4}, kTensor);
  check_limits({.sides = 8}, kImages);
}

TEST_CASE("tensor map: an unused stride is replaced by a stride that the driver accepts") {
  TensorMapSpec spec = kTensor;
  CHECK(mp::tensor_map_stride_bytes(spec, 1) == 208);
  CHECK(mp::tensor_map_stride_bytes(spec, 2) == 208 * 60);
  spec.extent[2] = 1;
  spec.stride[1] = -1;
  CHECK(mp::tensor_map_stride_bytes(spec, 2) == 208);
  spec.extent[1] = 1;
  spec.stride[0] = 3;
  CHECK(mp::tensor_map_stride_bytes(spec, 1) == 208);
  CHECK(mp::tensor_map_stride_bytes(spec, 2) == 208);

  Im2colSpec images = kImages;
  CHECK(mp::tensor_map_stride_bytes(images, 3) == 208 * 60 * 30);
  images.extent[3] = 1;
  images.stride[2] = -1;
  CHECK(mp::why_no_tensor_map(images) == nullptr);
  CHECK(mp::tensor_map_stride_bytes(images, 3) == 208 * 60);
  images.extent[2] = 1;
  images.stride[1] = 3;
  images.upper[1] = 1;
  CHECK(mp::why_no_tensor_map(images) == nullptr);
  CHECK(mp::tensor_map_stride_bytes(images, 3) == 208);
}

TEST_CASE("tensor map: a spec is encoded once, and again if any field changes") {
  check_cache(kTensor, {
                           [](auto &s) { s.base = tensor + 16; },
                           [](auto &s) { s.dtype = MP_BF16; },
                           [](auto &s) { s.extent[0]--; },
                           [](auto &s) { s.extent[1]--; },
                           [](auto &s) { s.extent[2]--; },
                           [](auto &s) { s.stride[0] += 8; },
                           [](auto &s) { s.stride[1] += 8; },
                           [](auto &s) { s.box[1]--; },
                           [](auto &s) { s.swizzle_128 = false; },
                           [](auto &s) { s.swizzle_128 = false, s.box[0] = 32; },
                       });
  check_cache(kImages, {
                           [](auto &s) { s.base = tensor + 16; },
                           [](auto &s) { s.dtype = MP_BF16; },
                           [](auto &s) { s.extent[0]--; },
                           [](auto &s) { s.extent[1]--; },
                           [](auto &s) { s.extent[2]--; },
                           [](auto &s) { s.extent[3]--; },
                           [](auto &s) { s.stride[0] += 8; },
                           [](auto &s) { s.stride[1] += 8; },
                           [](auto &s) { s.stride[2] += 8; },
                           [](auto &s) { s.lower[0]--; },
                           [](auto &s) { s.lower[1]--; },
                           [](auto &s) { s.upper[0]--; },
                           [](auto &s) { s.upper[1]--; },
                           [](auto &s) { s.step[0]--; },
                           [](auto &s) { s.step[1]--; },
                           [](auto &s) { s.pixels--; },
                           [](auto &s) { s.swizzle_128 = false; },
                           [](auto &s) { s.swizzle_128 = false, s.channels = 8; },
                       });
}

TEST_CASE("tensor map: a spec is encoded again if the encoder changes") {
  const TensorMap map = map_of(kTensor), marked{{2}};
  CHECK(are_equal(
      mp::cached_tensor_map([](const TensorMapSpec &) { return TensorMap{{2}}; }, kTensor),
      marked));
  CHECK(are_equal(map_of(kTensor), map));
}

TEST_CASE("tensor map: every thread has its own cache") {
  map_of(kTensor);
  int64_t encodes = -1;
  std::thread([&encodes] {
    map_of(kTensor);
    map_of(kTensor);
    encodes = mp::tensor_map_encodes();
  }).join();
  CHECK(encodes == 1);
}

TEST_CASE("tensor map: a failed encode is not cached") {
  TensorMapSpec bad = kTensor;
  bad.base = tensor + 8;
  for (int i = 0; i < 2; i++) {
    try {
      map_of(bad);
      FAIL("encoded");
    } catch (const mp::TargetError &error) {
      CHECK(error.status == MP_ERROR_INTERNAL);
      CHECK(std::string(error.what()) == "a tensor map requires a 16-byte aligned base");
    }
  }
  const auto fail = [](const TensorMapSpec &) -> TensorMap {
    throw mp::TargetError(MP_ERROR_CUDA, "no driver");
  };
  for (int i = 0; i < 2; i++)
    CHECK_THROWS_AS(mp::cached_tensor_map(fail, kTensor), mp::TargetError);
  CHECK(encodes_of([] { map_of(kTensor); }) <= 1);
}
