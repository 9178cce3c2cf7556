// Random numbers of the 16-bit model copy (kernels/simt/random.h), and stochastic rounding
// (kernels/step/model_copy.h), whose probabilities are counted exhaustively.
#include "kernels/step/model_copy.h"
#include "testing.h"
#include "tests/support/input_values.h"
#include "tests/support/numeric.h"

using namespace mp::host;
using mptest::decode;
using mptest::Random;

namespace {

void check_words(const PhiloxWords &got, const PhiloxWords &wanted) {
  for (int i = 0; i < 4; i++) CHECK(got.x[i] == wanted.x[i]);
}

float negative(float w) {
  return -w;
}

}  // namespace

TEST_CASE("philox: output equals the known answers of Random123") {
  // kat_vectors, philox4x32 10: zeros, ones, digits of pi.
  check_words(philox({{0, 0, 0, 0}}, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  constexpr uint32_t kOnes = 0xffffffff;
  check_words(philox({{kOnes, kOnes, kOnes, kOnes}}, ~uint64_t{0}),
              {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  check_words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                     uint64_t{0x299f31d0} << 32 | 0xa4093822),
              {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
  // philox4x32 7.
  check_words(philox<7>({{0, 0, 0, 0}}, 0), {{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}});
  check_words(philox<7>({{kOnes, kOnes, kOnes, kOnes}}, ~uint64_t{0}),
              {{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}});
  check_words(philox<7>({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                        uint64_t{0x299f31d0} << 32 | 0xa4093822),
              {{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}});
}

TEST_CASE("stochastic rounding: the share of words that round up equals the dropped fraction") {
  // `fraction` is the dropped part of w: exactly that number of the 2^bits values must round up.
  Random random(1);
  for (const mp_dtype_t dtype : mptest::kHalfTypes) {
    const mptest::Format type = mptest::format_of(dtype);
    const int bits = 24 - type.digits;
    const int lowest = mp::has_fp32_range(dtype) ? 0 : type.min_exponent + type.digits + 126;
    for (int i = 0; i < 40; i++) {
      const uint32_t fraction = i == 0   ? 0
                                : i == 1 ? 1
                                : i == 2
                                    ? (1u << bits) - 1
                                    : static_cast<uint32_t>(random.integer(0, (1 << bits) - 1));
      // Exponents of normal numbers, or all of fp32, including 0 (subnormal).
      const auto exponent = static_cast<uint32_t>(random.integer(lowest, type.max_exponent + 126));
      const uint32_t kept = static_cast<uint32_t>(random.integer(0, 0x7fffff)) >> bits << bits;
      const float below = float_from_bits(exponent << 23 | kept);
      const float w = float_from_bits(bits_of(below) | fraction);
      const float above = float_from_bits(bits_of(below) + (1u << bits));
      const uint32_t other_bits = static_cast<uint32_t>(random.bits()) << bits;
      uint32_t ups = 0;
      int64_t wrong = 0;
      for (uint32_t word = 0; word < 1u << bits; word++) {
        const float got = stochastically_rounded(w, dtype, word | other_bits);
        ups += got == above;
        wrong += got != above && got != below;
        wrong += stochastically_rounded(negative(w), dtype, word | other_bits) != negative(got);
      }
      CAPTURE(dtype, w, fraction);
      CHECK(ups == fraction);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("stochastic rounding: the threshold of fp16 subnormals is their fraction of 2^32") {
  Random random(2);
  for (int i = 0; i < 2000; i++) {
    const float w =
        static_cast<float>(random.real(0.0, 0x1p-14) * std::exp2(-random.integer(0, 30)));
    const double units = static_cast<double>(w) * 0x1p24;
    const double below = std::floor(units);
    const double threshold = std::floor((units - below) * 0x1p32);
    const auto rounded = [&](double word) {
      return stochastically_rounded(w, MP_FP16, static_cast<uint32_t>(word)) * 0x1p24;
    };
    CAPTURE(w, threshold);
    if (threshold > 0.0) CHECK(rounded(threshold - 1.0) == below + 1.0);
    CHECK(rounded(threshold) == below);
    CHECK(rounded(0x1p32 - 1.0) == below);
    CHECK(stochastically_rounded(negative(w), MP_FP16, 0) ==
          negative(stochastically_rounded(w, MP_FP16, 0)));
  }
}

TEST_CASE("stochastic rounding: representable values do not change for any word") {
  for (const mp_dtype_t dtype : mptest::kHalfTypes) {
    int64_t wrong = 0;
    for (uint32_t bits = 0; bits < 1u << 16; bits++) {
      const float w = static_cast<float>(decode(dtype, bits));
      for (const uint32_t word : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
        const float got = stochastically_rounded(w, dtype, word);
        wrong += std::isnan(w) ? !std::isnan(got) : bits_of(got) != bits_of(w);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("stochastic rounding: rounding up from the largest finite number overflows") {
  const float between = 65520.0f;  // halfway between 65504 and 65536, the next multiple of the ulp
  CHECK(stochastically_rounded(between, MP_FP16, 0x0fff) == 65504.0f);
  CHECK(stochastically_rounded(between, MP_FP16, 0x1000) == 65536.0f);
  CHECK(!overflows(65504.0f, MP_FP16));
  CHECK(overflows(65536.0f, MP_FP16));
  const float most = std::numeric_limits<float>::max();  // 0xffff / 2^16 ulp above the largest bf16
  CHECK(stochastically_rounded(most, MP_BF16, 0) == kBf16Max);
  CHECK(stochastically_rounded(-most, MP_BF16, 1) == -std::numeric_limits<float>::infinity());
  CHECK(!overflows(kBf16Max, MP_BF16));
  CHECK(overflows(most, MP_BF16));
  CHECK(overflows(-std::numeric_limits<float>::infinity(), MP_FP16));
  CHECK(!overflows(std::numeric_limits<float>::quiet_NaN(), MP_FP16));
}
