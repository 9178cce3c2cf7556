// Tensor maps: limits of specs, and the per-thread cache.
#include "kernels/simt/tensor_map.h"

#include <functional>
#include <random>
#include <thread>

#include "testing.h"

using mp::TensorMapSpec;

namespace {

alignas(256) char tensor[1 << 12];

constexpr int64_t kGi = int64_t{1} << 30;

/// Returns a valid spec: 100 x 60 x 3 elements with a row stride of 104.
TensorMapSpec good_spec() {
  return {tensor, MP_FP16, {100, 60, 3}, {104, 104 * 60}, {64, 32}, true};
}

/// Independent implementation of the limits of cuda.h and of tensor_map.cpp.
bool is_allowed(const TensorMapSpec &spec) {
  bool ok = spec.base != nullptr && reinterpret_cast<uintptr_t>(spec.base) % 16 == 0;
  ok = ok && (spec.dtype == MP_FP16 || spec.dtype == MP_BF16 || spec.dtype == MP_FP32);
  for (const int64_t extent : spec.extent) ok = ok && extent >= 1 && extent < 2 * kGi;
  const int bytes = spec.dtype == MP_FP32 ? 4 : 2;
  for (int i = 0; i < 2; i++) {
    const __int128 stride = static_cast<__int128>(spec.stride[i]) * bytes;
    const bool in_limits = stride > 0 && stride % 16 == 0 && stride < (__int128{1} << 40);
    ok = ok && (spec.extent[i + 1] == 1 || in_limits);
    ok = ok && spec.box[i] >= 1 && spec.box[i] <= 256;
  }
  ok = ok && (spec.extent[1] == 1 || spec.stride[0] >= spec.extent[0]);
  ok = ok && spec.box[0] * bytes % 16 == 0;
  return ok && (!spec.swizzle_128 || spec.box[0] * bytes == 128);
}

template <class T>
T one_of(std::mt19937_64 &random, std::initializer_list<T> values) {
  return values.begin()[random() % values.size()];
}

/// Returns a random spec, mostly within the limits and often exactly at one.
TensorMapSpec some_spec(std::mt19937_64 &random) {
  TensorMapSpec spec = good_spec();
  const auto rarely = [&random] { return random() % 4 == 0; };
  if (rarely()) spec.base = tensor + one_of<int>(random, {0, 8, 16, 24, 32, 1});
  if (rarely()) spec.dtype = one_of(random, {MP_FP16, MP_BF16, MP_FP32, MP_DTYPE_NONE});
  for (int64_t &extent : spec.extent)
    if (rarely())
      extent =
          one_of<int64_t>(random, {0, 1, 2, 7, 64, 104, 105, 2 * kGi - 1, 2 * kGi, 4 * kGi, -1});
  for (int64_t &stride : spec.stride)
    if (rarely())
      stride = one_of<int64_t>(
          random, {0, 8, 4, 100, 104, 112, 256 * kGi, 256 * kGi - 4, 512 * kGi, 512 * kGi - 8,
                   512 * kGi - 1, -8, INT64_MIN, INT64_MAX, INT64_MAX / 16 * 16});
  for (int32_t &box : spec.box)
    if (rarely()) box = one_of(random, {0, 1, 4, 8, 32, 60, 64, 72, 128, 255, 256, 257, -64});
  if (rarely()) spec.swizzle_128 = !spec.swizzle_128;
  return spec;
}

int64_t encodes_of(const std::function<void()> &calls) {
  const int64_t before = mp::tensor_map_encodes();
  calls();
  return mp::tensor_map_encodes() - before;
}

}  // namespace

TEST_CASE("tensor map: a random spec is accepted if and only if it is within the limits") {
  std::mt19937_64 random(1);
  int num_allowed = 0;
  constexpr int kTries = 200000;
  for (int i = 0; i < kTries; i++) {
    const TensorMapSpec spec = some_spec(random);
    const bool allowed = is_allowed(spec);
    num_allowed += allowed;
    const char *const why = mp::why_no_tensor_map(spec);
    if ((why == nullptr) == allowed) continue;
    CAPTURE(i, spec.base, spec.dtype, spec.extent[0], spec.extent[1], spec.extent[2],
            spec.stride[0], spec.stride[1], spec.box[0], spec.box[1], spec.swizzle_128);
    FAIL((why == nullptr ? "allowed" : why));
  }
  CHECK(num_allowed > kTries / 20);
  CHECK(num_allowed < kTries / 2);
}

TEST_CASE("tensor map: an unused stride is replaced by a stride that the driver accepts") {
  TensorMapSpec spec = good_spec();
  CHECK(mp::tensor_map_stride_bytes(spec, 1) == 208);
  CHECK(mp::tensor_map_stride_bytes(spec, 2) == 208 * 60);
  spec.extent[2] = 1;
  spec.stride[1] = -1;
  CHECK(mp::tensor_map_stride_bytes(spec, 2) == 208);
  spec.extent[1] = 1;
  spec.stride[0] = 3;
  CHECK(mp::tensor_map_stride_bytes(spec, 1) == 208);
  CHECK(mp::tensor_map_stride_bytes(spec, 2) == 208);
}

TEST_CASE("tensor map: a spec is encoded once, and again if any field or the encoder changes") {
  const TensorMapSpec spec = good_spec();
  mp::host::tensor_map(spec);
  CHECK(encodes_of([&] {
          for (int i = 0; i < 1000; i++) mp::host::tensor_map(spec);
        }) == 0);
  const std::function<void(TensorMapSpec &)> changes[] = {
      [](auto &s) { s.base = tensor + 16; },  [](auto &s) { s.dtype = MP_BF16; },
      [](auto &s) { s.extent[0]--; },         [](auto &s) { s.extent[1]--; },
      [](auto &s) { s.extent[2]--; },         [](auto &s) { s.stride[0] += 8; },
      [](auto &s) { s.stride[1] += 8; },      [](auto &s) { s.box[1]--; },
      [](auto &s) { s.swizzle_128 = false; }, [](auto &s) { s.swizzle_128 = false, s.box[0] = 32; },
  };
  for (const auto &change : changes) {
    TensorMapSpec other = good_spec();
    change(other);
    const mp::TensorMap map = mp::host::tensor_map(spec);
    CHECK(encodes_of([&] { mp::host::tensor_map(other); }) == 1);
    CHECK(encodes_of([&] { mp::host::tensor_map(other); }) == 0);
    const mp::TensorMap &again = mp::host::tensor_map(spec);
    CHECK(std::memcmp(&again, &map, sizeof map) == 0);
  }
  const mp::TensorMap map = mp::host::tensor_map(spec), marked{{2}};
  const mp::TensorMap &of_another_encoder =
      mp::cached_tensor_map([](const TensorMapSpec &) { return mp::TensorMap{{2}}; }, spec);
  CHECK(std::memcmp(&of_another_encoder, &marked, sizeof marked) == 0);
  const mp::TensorMap &again = mp::host::tensor_map(spec);
  CHECK(std::memcmp(&again, &map, sizeof map) == 0);
}

TEST_CASE("tensor map: every thread has its own cache") {
  mp::host::tensor_map(good_spec());
  int64_t encodes = -1;
  std::thread([&encodes] {
    mp::host::tensor_map(good_spec());
    mp::host::tensor_map(good_spec());
    encodes = mp::tensor_map_encodes();
  }).join();
  CHECK(encodes == 1);
}

TEST_CASE("tensor map: a failed encode is not cached") {
  TensorMapSpec bad = good_spec();
  bad.base = tensor + 8;
  for (int i = 0; i < 2; i++) {
    try {
      mp::host::tensor_map(bad);
      FAIL("encoded");
    } catch (const mp::TargetError &error) {
      CHECK(error.status == MP_ERROR_INTERNAL);
      CHECK(std::string(error.what()) == "a tensor map requires a 16-byte aligned base");
    }
  }
  const auto fail = [](const TensorMapSpec &) -> mp::TensorMap {
    throw mp::TargetError(MP_ERROR_CUDA, "no driver");
  };
  for (int i = 0; i < 2; i++)
    CHECK_THROWS_AS(mp::cached_tensor_map(fail, good_spec()), mp::TargetError);
  const int64_t encodes = encodes_of([] { mp::host::tensor_map(good_spec()); });
  CHECK(encodes <= 1);
}
