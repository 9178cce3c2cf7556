// 16-bit types: conversion of every pattern to fp32, and of fp32 at and around all values where
// rounding changes.
#include "cases.h"
#include "tests/support/numeric.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kPatterns = 1 << 16;

struct WidenArgs {
  uint32_t *widened;
};

/// Replaces the payload of a NaN, which is unspecified.
MP_DEVICE uint32_t without_payload(float x) {
  return magnitude_bits(x) > kInfinityBits ? 0x7fffffffu : bits_of(x);
}

template <class T>
MP_KERNEL(kThreads, 1)
widen_patterns(MP_PARAM(WidenArgs) args) {
  const auto i = block_index() * kThreads + thread_index();
  args.widened[i] = without_payload(to_float(T{static_cast<uint16_t>(i)}));
}

struct NarrowArgs {
  const float *in;
  uint16_t *narrowed;
  uint32_t *pairs;  ///< an element and its negative, packed; 0 for NaN
  int64_t count;
  uint32_t mask;  ///< selects bits of the input
};

template <class T>
MP_KERNEL(kThreads, 1)
narrow_floats(MP_PARAM(NarrowArgs) args) {
  const int64_t i = block_index() * kThreads + thread_index();
  if (i >= args.count) return;
  const float x = float_from_bits(bits_of(args.in[i]) & args.mask);
  const uint16_t bits = round_to<T>(x).bits;
  args.narrowed[i] = magnitude_bits(to_float(T{bits})) > kInfinityBits ? uint16_t{0x7fff} : bits;
  args.pairs[i] = magnitude_bits(x) > kInfinityBits ? 0 : pack_pair<T>(x, -x);
}

/// Returns the values of all patterns of the 16-bit types and the midpoints to the next values, the
/// neighbors of all these, and NaN.
std::vector<float> places_of_rounding() {
  std::vector<float> places;
  const auto add = [&](uint32_t bits) { places.push_back(std::bit_cast<float>(bits)); };
  for (const mp_dtype_t dtype : kHalfTypes) {
    for (uint32_t pattern = 0; pattern < kPatterns; pattern++) {
      const double value = mptest::decode(dtype, pattern);
      const double ulp = std::copysign(mptest::decode(dtype, pattern ^ 1) - value, value);
      for (const double x : {value, value + ulp / 2})
        for (const uint32_t step : {0xffffffffu, 0u, 1u})
          add(std::bit_cast<uint32_t>(static_cast<float>(x)) + step);
    }
  }
  for (uint32_t nan = kInfinityBits + 1; nan < 0x80000000; nan += 0x7fff)
    for (const uint32_t sign : {0u, 0x80000000u}) add(sign | nan);
  return places;
}

/// Compares the conversions of a type with those of numeric.h.
template <class T>
void add_type(Output &output, const Device &device, const std::vector<float> &floats,
              Mistake mistake) {
  constexpr mp_dtype_t kType = kFloatType<T>.dtype;
  const std::string name = kFloatType<T>.name;
  const Memory<uint32_t> widened(device, kPatterns), pairs(device, floats.size());
  const Memory<uint16_t> narrowed(device, floats.size());
  const Memory<float> in(device, floats);
  const auto count = static_cast<int64_t>(floats.size());
  run(device, "widen_patterns", widen_patterns<T>, {kPatterns / kThreads, kThreads},
      {widened.data()});
  run(device, "narrow_floats", narrow_floats<T>, {ceil_div<int64_t>(count, kThreads), kThreads},
      {in.data(), narrowed.data(), pairs.data(), count,
       mistake == Mistake::made ? 0xffff0000u : ~0u});

  std::vector<uint32_t> values, halves_of_pairs;
  std::vector<uint16_t> rounded;
  for (uint32_t pattern = 0; pattern < kPatterns; pattern++) {
    const auto value = static_cast<float>(mptest::decode(kType, pattern));
    values.push_back(std::isnan(value) ? 0x7fffffffu : std::bit_cast<uint32_t>(value));
  }
  for (const float x : floats) {
    const uint32_t bits = std::isnan(x) ? 0x7fff : mptest::encode(kType, double{x});
    rounded.push_back(static_cast<uint16_t>(bits));
    halves_of_pairs.push_back(std::isnan(x) ? 0 : bits | (bits ^ 0x8000u) << 16);
  }
  output.push_back(make_part(name + " to fp32", 256, widened.download(), values));
  output.push_back(make_part("fp32 to " + name, 256, narrowed.download(), rounded));
  output.push_back(make_part("pairs of " + name, 256, pairs.download(), halves_of_pairs));
}

}  // namespace

/// Injected bug: numbers are truncated.
Output conform_conversions(const Device &device, Mistake mistake) {
  const std::vector<float> floats = places_of_rounding();
  Output output;
  for (const mp_dtype_t dtype : kHalfTypes)
    with_half_type(dtype, [&]<class T>(std::type_identity<T>) {
      add_type<T>(output, device, floats, mistake);
    });
  return output;
}

}  // namespace mp::MP_TARGET
