// The 16-bit types against their definition: the instructions of the host's CPU and the portable
// code, which the other builds use.
#include <cmath>

#include "machine_testing.h"
#include "numeric.h"

using namespace mp::host;
using namespace mptest;

namespace {

bool same_float(float got, double wanted) {
  return std::isnan(wanted) ? std::isnan(got)
                            : got == wanted && std::signbit(got) == std::signbit(wanted);
}

bool same_bits(mp_dtype_t dtype, uint32_t got, double x) {
  return std::isnan(x) ? std::isnan(decode(dtype, got)) : got == encode(dtype, x);
}

/// Every value of a 16-bit type, the middle between it and its neighbour, and beside the middle.
template <class Visit>
void each_rounding_case(mp_dtype_t dtype, Visit visit) {
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const float value = static_cast<float>(decode(dtype, bits));
    const float next = static_cast<float>(decode(dtype, (bits + 1) & 0xffff));
    const float middle = value / 2 + next / 2;
    for (const float x :
         {value, middle, std::nextafterf(middle, value), std::nextafterf(middle, next)})
      visit(x);
  }
  for (const float x : {65519.0f, 65520.0f, 3.3961775e38f, 3.4028235e38f, 1e-45f, 2.9802322e-8f})
    for (const float sign : {1.0f, -1.0f}) visit(sign * x);
}

}  // namespace

TEST_CASE("machine: every 16-bit value widens exactly") {
  int wrong = 0;
  for (uint32_t i = 0; i < 0x10000; i++) {
    const uint16_t bits = static_cast<uint16_t>(i);
    wrong += !same_float(to_float(half{bits}), decode(MP_FP16, bits));
    wrong += !same_float(soft::float_of_half(bits), decode(MP_FP16, bits));
    wrong += !same_float(to_float(bf16{bits}), decode(MP_BF16, bits));
  }
  CHECK(wrong == 0);
}

TEST_CASE("machine: fp32 rounds to the nearest 16-bit value, ties to even") {
  int wrong = 0;
  each_rounding_case(MP_FP16, [&](float x) {
    wrong += !same_bits(MP_FP16, round_to<half>(x).bits, double{x});
    wrong += !same_bits(MP_FP16, soft::half_of_float(x), double{x});
  });
  each_rounding_case(
      MP_BF16, [&](float x) { wrong += !same_bits(MP_BF16, round_to<bf16>(x).bits, double{x}); });
  CHECK(wrong == 0);
}
