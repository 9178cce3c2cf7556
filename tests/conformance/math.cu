// The functions of reproducible_math.h for ordinary numbers, powers of two and special values.
//
// The bits must be equal on all targets, so they are compared with recorded digests.  An H200 has
// computed those of the first seven functions (docs/on-a-gpu.md); the others are those of the host
// target and the software device.  tests/internals compares the values with the C library.
#include "kernels/simt/reproducible_math.h"

#include <random>

#include "cases.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kArguments = 256 * kThreads;
constexpr int kFunctions = 9;

struct MathArgs {
  const double *any;       ///< kArguments values with arbitrary bits except the sign
  const double *exponent;  ///< exponents of powers that are often finite
  const double *fraction;  ///< in [0, 1]
  double *out;             ///< kArguments rows of kFunctions
  bool fused;              ///< injected bug: a product is contracted with a sum
};

MP_KERNEL(kThreads, 1) call_functions(MP_PARAM(MathArgs) args) {
  namespace math = reproducible;
  const int64_t i = block_index() * kThreads + thread_index();
  const double any = args.any[i], exponent = args.exponent[i], fraction = args.fraction[i];
  double *const out = args.out + i * kFunctions;
  out[0] = math::log2(any);
  out[1] = math::log(any);
  out[2] = math::exp2(exponent);
  out[3] = math::pow(any, exponent * 0x1p-10);
  out[4] = 1.0 - math::pow(fraction, exponent);
  out[5] = math::cospi(fraction);
  out[6] = args.fused ? fma(-fraction, fraction, 1.0) : 1.0 - math::product(fraction, fraction);
  const auto angle = static_cast<float>(exponent * fraction * 0x1p+20);  // below 2^31
  const math::SinCos of_angle = math::sin_cos(angle);
  out[7] = static_cast<double>(of_angle.sin);
  out[8] = static_cast<double>(of_angle.cos);
}

constexpr uint64_t kDigests[kFunctions] = {
    0x60ce5d2c4abe860a, 0x5d644dbc23079a84, 0x0273f621940d6f40,
    0x077901ef60d812ad, 0x6c513dc2bc0651ec, 0xecbf3ea80f112a37,
    0x845c3b1e404c345b, 0x4849d7026109464d, 0x21bd251304a1ae81};

/// Returns the FNV-1a hash of each column.
std::vector<uint64_t> digests_of(const std::vector<double> &rows) {
  std::vector<uint64_t> digests(kFunctions, 0xcbf29ce484222325);
  for (size_t i = 0; i < rows.size(); i++) {
    uint64_t &digest = digests[i % kFunctions];
    for (uint64_t bits = std::bit_cast<uint64_t>(rows[i]), byte = 0; byte < 8; byte++, bits >>= 8)
      digest = (digest ^ (bits & 0xff)) * 0x100000001b3;
  }
  return digests;
}

}  // namespace

/// No arithmetic produces NaN here, so NaN payloads are equal too.
Output conform_math(const Device &device, Mistake mistake) {
  std::mt19937_64 random(1);
  std::vector<double> any, exponent, fraction;
  for (int64_t i = 0; i < kArguments; i++) {
    const uint64_t bits = random() >> 1, power = static_cast<uint64_t>(i % 2048) << 52;
    double argument;
    std::memcpy(&argument, i < 2048 ? &power : &bits, sizeof argument);
    any.push_back(argument);
    exponent.push_back(static_cast<double>(static_cast<int64_t>(random())) * 0x1.2p-53);
    fraction.push_back(static_cast<double>(random() >> 11) * 0x1p-53);
  }
  const Memory<double> any_there(device, any), exponent_there(device, exponent),
      fraction_there(device, fraction), out(device, kArguments * kFunctions);
  run(device, "call_functions", call_functions, {kArguments / kThreads, kThreads},
      {any_there.data(), exponent_there.data(), fraction_there.data(), out.data(),
       mistake == Mistake::made});
  return {make_part("digests of functions", kFunctions, digests_of(out.download()),
                    std::vector<uint64_t>(kDigests, kDigests + kFunctions))};
}

}  // namespace mp::MP_TARGET
