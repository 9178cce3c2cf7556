// Tests of the test utilities: a wrong conversion or an ineffective guard would hide errors in all
// other tests.
#include <cmath>
#include <cstring>
#include <limits>

#include "testing.h"

using namespace mptest;

TEST_CASE("testing: formats have the limits of IEEE 754", "[testing][short]") {
  CHECK(largest_finite(MP_FP16) == 65504.0);
  CHECK(largest_finite(MP_FP32) == std::numeric_limits<float>::max());
  CHECK(largest_finite(MP_BF16) == 0x1.fep127);
  CHECK(decode(MP_FP16, 0x3c00) == 1.0);
  CHECK(decode(MP_FP16, 0x0001) == 0x1p-24);
  CHECK(decode(MP_BF16, 0x3f80) == 1.0);
  CHECK(decode(MP_BF16, 0xc040) == -3.0);
  CHECK(std::isnan(decode(MP_FP16, 0xffff)));
  CHECK(decode(MP_FP16, 0xfc00) == -kInfinity);
}

TEST_CASE("testing: only the first elements of a long vector are printed", "[testing][short]") {
  using Catch::Detail::stringify;
  CHECK(stringify(std::vector<int>{1, 2, 3}) == "{ 1, 2, 3 }");
  CHECK(stringify(std::vector<std::vector<int>>{{1}, std::vector<int>(17, 5)}) ==
        "{ { 1 }, { 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5 } and 1 more }");
}

TEST_CASE("testing: 16-bit midpoints round to even, overflow to infinity", "[testing][short]") {
  for (const mp_dtype_t dtype : kHalfTypes) {
    const uint32_t infinity = encode(dtype, kInfinity);
    int wrong = 0;
    for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
      const double midpoint = (decode(dtype, bits) + decode(dtype, bits + 1)) / 2.0;
      wrong += encode(dtype, midpoint) != bits + (bits & 1);
      // FP64 neighbors, which a conversion by way of fp32 would round to the midpoint.
      wrong += encode(dtype, std::nextafter(midpoint, 0.0)) != bits;
      wrong += encode(dtype, std::nextafter(midpoint, kInfinity)) != bits + 1;
    }
    CAPTURE(mp_dtype_name(dtype));
    CHECK(wrong == 0);
    const double half_step =
        unit_roundoff(dtype) * std::ldexp(1.0, format_of(dtype).max_exponent - 1);
    CHECK(encode(dtype, largest_finite(dtype) + half_step) == infinity);
    CHECK(encode(dtype, std::nextafter(largest_finite(dtype) + half_step, 0.0)) == infinity - 1);
  }
}

TEST_CASE("testing: fp32 agrees with the processor", "[testing][short]") {
  Random random(3);
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value =
        random.real(-1.0, 1.0) * std::ldexp(1.0, static_cast<int>(random.integer(-155, 130)));
    const float rounded = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &rounded, sizeof bits);
    wrong += encode(MP_FP32, value) != bits;
    wrong += decode(MP_FP32, bits) != rounded;
  }
  CHECK(wrong == 0);
}

TEST_CASE("testing: guard zones detect a one-byte write on either side", "[testing][short]") {
  for (const int64_t offset : {0, 1}) {
    DeviceBuffer<float> buffer(5, offset);
    CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 256 ==
          static_cast<uintptr_t>(offset) * sizeof(float));
    CHECK(buffer.guard_damage() == "");
    const uint8_t stray = 0, intact = kPoison;
    for (uint8_t *const at : {reinterpret_cast<uint8_t *>(buffer.data()) - 1,
                              reinterpret_cast<uint8_t *>(buffer.data() + 5)}) {
      copy_bytes(at, &stray, 1);
      CHECK(buffer.guard_damage() != "");
      copy_bytes(at, &intact, 1);
    }
    CHECK(buffer.guard_damage() == "");
  }
}

TEST_CASE("testing: matrices keep their values and detect writes to the padding",
          "[testing][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    DeviceMatrices matrices(dtype, 2, 3, 4, 7, 30, 1, kCanary);
    Matrices values(2, 3, 4);
    for (size_t i = 0; i < values.values.size(); ++i)
      values.values[i] = static_cast<double>(i) - 9.0;
    matrices.upload(values);
    CHECK(matrices.download().values == values.values);
    CHECK(matrices.damage() == "");
    const uint8_t stray = 0;
    copy_bytes(static_cast<uint8_t *>(matrices.data()) + 4 * mp_dtype_size(dtype), &stray, 1);
    CHECK(matrices.damage() != "");
  }
}

TEST_CASE("testing: a stray matrix is shifted by one element, including padding",
          "[testing][short]") {
  for (const int64_t stray : {0, 1}) {
    DeviceMatrices matrices(MP_FP16, 2, 3, 4, 8, 32, 0, kCanary, stray);
    Matrices values(2, 3, 4);
    for (size_t i = 0; i < values.values.size(); ++i) values.values[i] = static_cast<double>(i);
    matrices.upload(values);
    CHECK(matrices.download().values == values.values);
    CHECK(matrices.damage() == "");
    for (const int64_t item : {0, 1}) {
      const size_t missed = reinterpret_cast<uintptr_t>(matrices.item(item)) % 16;
      CHECK(missed == (item == stray ? 2 : 0));
    }
    const uint8_t zero = 0;
    copy_bytes(static_cast<uint8_t *>(matrices.item(stray)) - 2, &zero, 1);
    CHECK(matrices.damage() == "padding overwritten at element " + std::to_string(32 * stray));
  }
}

TEST_CASE("testing: exact plans are within their budget", "[testing][short]") {
  for (const int64_t k : {0, 1, 7, 64, 300, 4096, 100000}) {
    for (const int64_t budget : {100, 256, 2048, 1 << 24}) {
      const ExactPlan plan = exact_plan(k, budget, 8);
      const int64_t terms = (k + plan.period - 1) / plan.period;
      CAPTURE(k, budget);
      CHECK(terms * plan.range * plan.range <= budget);
      CHECK(plan.range >= 1);
    }
  }
}
