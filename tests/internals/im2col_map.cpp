// im2col maps: which specs are possible, and the cache of each thread.
#include <algorithm>
#include <functional>
#include <random>

#include "kernels/simt/tensor_map.h"
#include "testing.h"

using mp::Im2colSpec;
using mp::host::im2col_map;

namespace {

alignas(256) char memory[1 << 12];
constexpr int64_t kGi = int64_t{1} << 30;

/// 100 channels of 60 x 30 pixels, a few images; 3 x 3 with padding and stride 2.
Im2colSpec good_spec() {
  return {memory,   MP_FP16,  {100, 60, 30, 5}, {104, 104 * 60, 104 * 60 * 30},
          {-1, -1}, {-1, -1}, {2, 2},           64,
          128,      true};
}

/// The limits of cuda.h and those that tensor_map.cpp adds, written a second time.
bool is_allowed(const Im2colSpec &spec) {
  bool ok = spec.base != nullptr && reinterpret_cast<uintptr_t>(spec.base) % 16 == 0;
  ok = ok && (spec.dtype == MP_FP16 || spec.dtype == MP_BF16 || spec.dtype == MP_FP32);
  for (const int64_t extent : spec.extent) ok = ok && extent >= 1 && extent < 2 * kGi;
  const int bytes = spec.dtype == MP_FP32 ? 4 : 2;
  int64_t inner = spec.extent[0];
  for (int i = 0; i < 3; i++) {
    if (spec.extent[i + 1] == 1) continue;
    const __int128 stride = static_cast<__int128>(spec.stride[i]) * bytes;
    ok = ok && stride > 0 && stride % 16 == 0 && stride < (__int128{1} << 40);
    ok = ok && (i == 0 || spec.stride[i] >= inner);
    inner = std::max(inner, spec.stride[i]);
  }
  for (int i = 0; i < 2; i++) {
    const auto fits_a_byte = [](int corner) { return corner == static_cast<int8_t>(corner); };
    ok = ok && fits_a_byte(spec.lower[i]) && fits_a_byte(spec.upper[i]);
    ok = ok && spec.extent[i + 1] + spec.upper[i] - spec.lower[i] > 0;
    ok = ok && spec.step[i] >= 1 && spec.step[i] <= 8;
  }
  ok = ok && spec.channels >= 1 && spec.channels <= 256 && spec.channels * bytes % 16 == 0;
  ok = ok && spec.pixels >= 1 && spec.pixels <= 1024;
  return ok && (!spec.swizzle_128 || spec.channels * bytes == 128);
}

template <class T>
T one_of(std::mt19937_64 &random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

/// Mostly within the limits, often exactly at one.
Im2colSpec some_spec(std::mt19937_64 &random) {
  Im2colSpec spec = good_spec();
  const auto rarely = [&random] { return random() % 8 == 0; };
  if (rarely()) spec.base = memory + one_of<int>(random, {0, 8, 16, 24, 1});
  if (rarely()) spec.dtype = one_of(random, {MP_FP16, MP_BF16, MP_FP32, MP_DTYPE_NONE});
  for (int64_t &extent : spec.extent)
    if (rarely())
      extent = one_of<int64_t>(random, {0, 1, 2, 7, 104, 105, 2 * kGi - 1, 2 * kGi, 4 * kGi, -1});
  for (int64_t &stride : spec.stride)
    if (rarely())
      stride = one_of<int64_t>(
          random, {0, 8, 4, 100, 104, 112, 104 * 60, 256 * kGi, 256 * kGi - 4, 512 * kGi,
                   512 * kGi - 8, 512 * kGi - 1, -8, INT64_MIN, INT64_MAX, INT64_MAX / 16 * 16});
  for (int i = 0; i < 2; i++) {
    if (rarely()) spec.lower[i] = one_of(random, {-129, -128, 0, 1, 29, 59, 127, 128, INT32_MIN});
    if (rarely()) spec.upper[i] = one_of(random, {-129, -128, -60, -30, -2, 0, 127, 128});
    if (rarely()) spec.step[i] = one_of(random, {-1, 0, 1, 3, 8, 9});
  }
  if (rarely()) spec.channels = one_of(random, {0, 1, 4, 8, 32, 60, 64, 72, 256, 257, 264, -64});
  if (rarely()) spec.pixels = one_of(random, {0, 1, 7, 256, 1023, 1024, 1025, -1});
  if (rarely()) spec.swizzle_128 = !spec.swizzle_128;
  return spec;
}

}  // namespace

TEST_CASE("im2col map: the limits, against the rules once more") {
  std::mt19937_64 random(1);
  int num_allowed = 0;
  constexpr int kTries = 200000;
  for (int i = 0; i < kTries; i++) {
    const Im2colSpec spec = some_spec(random);
    const bool allowed = is_allowed(spec);
    num_allowed += allowed;
    const char *const why = mp::why_no_tensor_map(spec);
    if ((why == nullptr) == allowed) continue;
    CAPTURE(i, spec.base, spec.dtype, spec.lower[0], spec.lower[1], spec.upper[0], spec.upper[1]);
    CAPTURE(spec.extent[0], spec.extent[1], spec.extent[2], spec.extent[3], spec.stride[0],
            spec.stride[1], spec.stride[2], spec.channels, spec.pixels, spec.swizzle_128);
    FAIL((why == nullptr ? "allowed" : why));
  }
  CHECK(num_allowed > kTries / 20);
  CHECK(num_allowed < kTries / 2);
}

TEST_CASE("im2col map: a spec is encoded once, and again if any field of it changes") {
  const auto encodes_of = [](const Im2colSpec &spec) {
    const int64_t before = mp::tensor_map_encodes();
    im2col_map(spec);
    return mp::tensor_map_encodes() - before;
  };
  const std::function<void(Im2colSpec &)> changes[] = {
      [](auto &s) { s.base = memory + 16; },
      [](auto &s) { s.dtype = MP_BF16; },
      [](auto &s) { s.extent[0]--; },
      [](auto &s) { s.extent[1]--; },
      [](auto &s) { s.extent[2]--; },
      [](auto &s) { s.extent[3]--; },
      [](auto &s) { s.stride[0] -= 0, s.stride[1] += 8; },
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
  };
  for (const auto &change : changes) {
    const mp::TensorMap map = im2col_map(good_spec());
    CHECK(encodes_of(good_spec()) == 0);
    Im2colSpec other = good_spec();
    change(other);
    CHECK(encodes_of(other) == 1);
    CHECK(encodes_of(other) == 0);
    const mp::TensorMap &again = im2col_map(good_spec());
    CHECK(std::memcmp(&again, &map, sizeof map) == 0);
  }
}

TEST_CASE("im2col map: a stride that leads nowhere is within the limits of the driver") {
  Im2colSpec spec = good_spec();
  CHECK(mp::tensor_map_stride_bytes(spec, 3) == 208 * 60 * 30);
  spec.extent[3] = 1, spec.stride[2] = -1;
  CHECK(mp::why_no_tensor_map(spec) == nullptr);
  CHECK(mp::tensor_map_stride_bytes(spec, 3) == 208 * 60);
  spec.extent[2] = 1, spec.stride[1] = 3, spec.upper[1] = 1;
  CHECK(mp::why_no_tensor_map(spec) == nullptr);
  CHECK(mp::tensor_map_stride_bytes(spec, 3) == 208);
}
