// Conversions between the element types, bit for bit against the definitions of IEEE 754: mp_cast,
// and the plain C++ version of kernels/simt/half.h, which a host with F16C does not use.
//
// tests/conformance/conversions.cu tests the versions that kernels use, on all targets.
#include <cstring>
#include <limits>

#include "kernels/simt/half.h"
#include "testing.h"

using namespace mptest;

namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

float float_of(uint32_t bits) {
  float value = 0.0f;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_nan(mp_dtype_t dtype, uint32_t bits) {
  return std::isnan(decode(dtype, bits));
}

/// True for equal bits and for two NaNs: payloads are unspecified.
bool agrees(mp_dtype_t dtype, uint32_t got, uint32_t wanted) {
  return got == wanted || (is_nan(dtype, got) && is_nan(dtype, wanted));
}

/// fp32 numbers at rounding boundaries of `dtype`: all its values, the midpoints between neighbors
/// (exact in fp32) with the floats on either side, and the ends of the range.
std::vector<float> rounding_cases(mp_dtype_t dtype) {
  const uint32_t infinity = encode(dtype, kInfinite);
  std::vector<float> cases;
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = decode(dtype, bits), high = decode(dtype, bits + 1);
    const float midpoint = static_cast<float>((low + high) / 2.0);
    for (const float value : {static_cast<float>(low), std::nextafter(midpoint, 0.0f), midpoint,
                              std::nextafter(midpoint, kInfinite)}) {
      cases.push_back(value);
      cases.push_back(-value);
    }
  }
  const float largest = static_cast<float>(largest_finite(dtype));
  const float limit = float_of(bits_of(largest) + (1u << (23 - format_of(dtype).digits)));
  for (const float value :
       {largest, std::nextafter(limit, 0.0f), limit, std::nextafter(limit, kInfinite),
        std::numeric_limits<float>::max(), kInfinite, std::numeric_limits<float>::denorm_min()}) {
    cases.push_back(value);
    cases.push_back(-value);
  }
  return cases;
}

/// Quiet and signaling NaNs of both signs, with payloads in the high bits, the low bits and all.
std::vector<uint32_t> nan_bits(mp_dtype_t dtype) {
  const int fraction_bits = format_of(dtype).digits - 1;
  const uint32_t infinity = encode(dtype, kInfinite);
  const uint32_t sign = 1u << (format_of(dtype).bits - 1);
  const uint32_t all = (1u << fraction_bits) - 1;
  std::vector<uint32_t> patterns;
  for (const uint32_t payload : {1u, 1u << (fraction_bits - 1), all >> 1, all}) {
    patterns.push_back(infinity | payload);
    patterns.push_back(sign | infinity | payload);
  }
  return patterns;
}

}  // namespace

TEST_CASE("numeric: FP16 in plain C++ widens exactly and rounds to nearest even", "[numeric]") {
  namespace soft = mp::host::soft;
  int wrong_wide = 0, wrong_narrow = 0;
  const auto narrow = [&](float value) {
    wrong_narrow += !agrees(MP_FP16, soft::half_of_float(value), encode(MP_FP16, value));
  };
  for (uint32_t bits = 0; bits < 65536; ++bits)
    wrong_wide += !agrees(MP_FP32, bits_of(soft::float_of_half(static_cast<uint16_t>(bits))),
                          encode(MP_FP32, decode(MP_FP16, bits)));
  for (const float value : rounding_cases(MP_FP16)) narrow(value);
  for (const uint32_t bits : nan_bits(MP_FP32)) narrow(float_of(bits));
  Random random(11);
  for (int i = 0; i < 300000; ++i) narrow(float_of(static_cast<uint32_t>(random.bits())));
  CHECK(wrong_wide == 0);
  CHECK(wrong_narrow == 0);
}

TEST_CASE("numeric: magnitudes as bits order NaN above infinity above finite values", "[numeric]") {
  using mp::host::is_nonfinite;
  using mp::host::magnitude_bits;
  CHECK(magnitude_bits(-2.0f) == magnitude_bits(2.0f));
  CHECK(magnitude_bits(std::numeric_limits<float>::max()) < magnitude_bits(-kInfinite));
  for (const uint32_t bits : nan_bits(MP_FP32)) {
    CHECK(magnitude_bits(float_of(bits)) > magnitude_bits(kInfinite));
    CHECK(is_nonfinite(float_of(bits)));
  }
  CHECK(is_nonfinite(kInfinite));
  CHECK_FALSE(is_nonfinite(std::numeric_limits<float>::max()));
}

// ---------------------------------------------------------------------------- mp_cast

namespace {

/// Number of wrong results of a cast of `src`, given as bits of the source type.
int wrong_casts(mp_dtype_t from, mp_dtype_t to, const std::vector<uint32_t> &src, int64_t offset) {
  const int64_t count = static_cast<int64_t>(src.size());
  const size_t src_size = mp_dtype_size(from), dst_size = mp_dtype_size(to);
  GuardedBytes in(src.size() * src_size, static_cast<size_t>(offset) * src_size, kPoison);
  GuardedBytes out(src.size() * dst_size, static_cast<size_t>(offset) * dst_size, kCanary);
  std::vector<uint8_t> bytes(in.bytes());
  for (size_t i = 0; i < src.size(); ++i) std::memcpy(&bytes[i * src_size], &src[i], src_size);
  in.upload(bytes.data(), bytes.size());

  require_ok(mp_cast(context(), in.data(), from, out.data(), to, count, kStream));
  const std::vector<uint8_t> got = out.download();
  int wrong = in.download() != bytes;
  for (size_t i = 0; i < src.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &got[i * dst_size], dst_size);
    wrong += !agrees(to, bits, encode(to, decode(from, src[i])));
  }
  return wrong;
}

/// Storage bits that test a conversion from `from` to `to`.
std::vector<uint32_t> cast_cases(mp_dtype_t from, mp_dtype_t to) {
  std::vector<uint32_t> cases = nan_bits(from);
  if (from == MP_FP32) {
    const mp_dtype_t midpoints_of = to == MP_FP32 ? MP_FP16 : to;
    for (const float value : rounding_cases(midpoints_of)) cases.push_back(bits_of(value));
  } else {
    for (uint32_t bits = 0; bits < 65536; ++bits) cases.push_back(bits);
  }
  return cases;
}

}  // namespace

TEST_CASE("cast: correct for all pairs of types, 16-bit values and midpoints", "[numeric][cast]") {
  for (const mp_dtype_t from : kDtypes) {
    for (const mp_dtype_t to : kDtypes) {
      CAPTURE(mp_dtype_name(from), mp_dtype_name(to));
      CHECK(wrong_casts(from, to, cast_cases(from, to), 0) == 0);
    }
  }
}

TEST_CASE("cast: neighbors are not written for any count and alignment", "[numeric][cast][short]") {
  for (const mp_dtype_t from : kDtypes) {
    for (const mp_dtype_t to : kDtypes) {
      for (const int64_t offset : {0, 1, 3, 8}) {
        for (const size_t count : {0, 1, 7, 8, 9, 31, 2049}) {
          std::vector<uint32_t> src = cast_cases(from, to);
          src.resize(count);
          CAPTURE(mp_dtype_name(from), mp_dtype_name(to), offset, count);
          CHECK(wrong_casts(from, to, src, offset) == 0);
        }
      }
    }
  }
}

TEST_CASE("cast: in-place casts between types of equal size are correct",
          "[numeric][cast][short]") {
  for (const mp_dtype_t from : kHalfTypes) {
    const mp_dtype_t to = from == MP_FP16 ? MP_BF16 : MP_FP16;
    const std::vector<double> values = {1.0, -0.5, 65504.0, 0x1p-24, 0.0, 3.140625};
    DeviceArray array(from, values, 1);
    const int64_t count = array.size();
    require_ok(mp_cast(context(), array.data(), from, array.data(), to, count, kStream));
    const std::vector<uint8_t> got = array.download_bits();
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t bits = 0;
      std::memcpy(&bits, &got[2 * i], sizeof bits);
      CAPTURE(mp_dtype_name(from), i);
      CHECK(bits == encode(to, round_to(from, values[i])));
    }
  }
}
