// 16-bit types: conversion of every pattern to fp32, and of fp32 at and around all values where
// rounding changes.
#include "cases.h"
#include "tests/support/numeric.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kPatterns = 1 << 16;

struct WidenArgs {
  uint32_t *from_half, *from_bf16;
};

/// Replaces the payload of a NaN, which is unspecified.
MP_DEVICE uint32_t without_payload(float x) {
  return magnitude_bits(x) > kInfinityBits ? 0x7fffffffu : bits_of(x);
}
MP_DEVICE uint16_t without_payload(uint16_t x, uint16_t infinity) {
  return (x & 0x7fff) > infinity ? uint16_t{0x7fff} : x;
}

MP_KERNEL(kThreads, 1) widen_patterns(MP_PARAM(WidenArgs) args) {
  const auto i = block_index() * kThreads + thread_index();
  const auto bits = static_cast<uint16_t>(i);
  args.from_half[i] = without_payload(to_float(half{bits}));
  args.from_bf16[i] = without_payload(to_float(bf16{bits}));
}

struct NarrowArgs {
  const float *in;
  uint16_t *to_half, *to_bf16;
  uint32_t *half_pairs, *bf16_pairs;  ///< an element and its negative, packed; 0 for NaN
  int64_t count;
  uint32_t mask;  ///< selects bits of the input
};

MP_KERNEL(kThreads, 1) narrow_floats(MP_PARAM(NarrowArgs) args) {
  const int64_t i = block_index() * kThreads + thread_index();
  if (i >= args.count) return;
  const float x = float_from_bits(bits_of(args.in[i]) & args.mask);
  args.to_half[i] = without_payload(round_to<half>(x).bits, 0x7c00);
  args.to_bf16[i] = without_payload(round_to<bf16>(x).bits, 0x7f80);
  const bool is_nan = magnitude_bits(x) > kInfinityBits;
  args.half_pairs[i] = is_nan ? 0 : pack_pair<half>(x, -x);
  args.bf16_pairs[i] = is_nan ? 0 : pack_pair<bf16>(x, -x);
}

/// Returns, for each pattern of either type, its value, the midpoint to the next, and the neighbors
/// of both.
std::vector<float> places_of_rounding() {
  std::vector<float> places;
  const auto add = [&](uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    places.push_back(x);
  };
  for (uint32_t pattern = 0; pattern < kPatterns; pattern++) {
    for (const uint32_t offset : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      add(pattern << 16 | offset);  // BF16 is the upper half
    const uint32_t sign = pattern >> 15 << 31, magnitude = pattern & 0x7fff;
    if (magnitude < 0x7c00 && magnitude >= 0x400)
      for (const uint32_t offset : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu})
        add(sign | (0x38000000 + (magnitude << 13)) | offset);
    if (magnitude < 0x400) {  // subnormal in FP16
      const float unit = static_cast<float>(magnitude) * 0x1p-24f, middle = unit + 0x1p-25f;
      for (const float x : {unit, middle})
        for (const uint32_t step : {0xffffffffu, 0u, 1u}) {
          uint32_t bits;
          std::memcpy(&bits, &x, sizeof bits);
          if (bits != 0) add(sign | (bits + step));
        }
    }
  }
  return places;
}

std::vector<uint32_t> widened_patterns(mp_dtype_t dtype) {
  std::vector<uint32_t> widened;
  for (uint32_t pattern = 0; pattern < kPatterns; pattern++) {
    const auto value = static_cast<float>(mptest::decode(dtype, pattern));
    widened.push_back(std::isnan(value) ? 0x7fffffffu : std::bit_cast<uint32_t>(value));
  }
  return widened;
}

std::vector<uint16_t> narrowed(mp_dtype_t dtype, const std::vector<float> &floats) {
  std::vector<uint16_t> bits;
  for (const float x : floats)
    bits.push_back(std::isnan(x) ? uint16_t{0x7fff}
                                 : static_cast<uint16_t>(mptest::encode(dtype, double{x})));
  return bits;
}

std::vector<uint32_t> pairs_of(const std::vector<uint16_t> &bits,
                               const std::vector<float> &floats) {
  std::vector<uint32_t> pairs;
  for (size_t i = 0; i < bits.size(); i++)
    pairs.push_back(std::isnan(floats[i]) ? 0 : bits[i] | (bits[i] ^ 0x8000u) << 16);
  return pairs;
}

}  // namespace

/// Injected bug: numbers are truncated.
Output conform_conversions(const Device &device, Mistake mistake) {
  const Memory<uint32_t> from_half(device, kPatterns), from_bf16(device, kPatterns);
  run(device, "widen_patterns", widen_patterns, {kPatterns / kThreads, kThreads},
      {from_half.data(), from_bf16.data()});

  const std::vector<float> floats = places_of_rounding();
  const size_t count = floats.size();
  const Memory<float> in(device, floats);
  const Memory<uint16_t> to_half(device, count), to_bf16(device, count);
  const Memory<uint32_t> half_pairs(device, count), bf16_pairs(device, count);
  const auto signed_count = static_cast<int64_t>(count);
  run(device, "narrow_floats", narrow_floats, {ceil_div<int64_t>(signed_count, kThreads), kThreads},
      {in.data(), to_half.data(), to_bf16.data(), half_pairs.data(), bf16_pairs.data(),
       signed_count, mistake == Mistake::made ? 0xffff0000u : ~0u});
  const std::vector<uint16_t> halves = narrowed(MP_FP16, floats), bf16s = narrowed(MP_BF16, floats);
  return {make_part("fp16 to fp32", 256, from_half.download(), widened_patterns(MP_FP16)),
          make_part("bf16 to fp32", 256, from_bf16.download(), widened_patterns(MP_BF16)),
          make_part("fp32 to fp16", 256, to_half.download(), halves),
          make_part("fp32 to bf16", 256, to_bf16.download(), bf16s),
          make_part("pairs of fp16", 256, half_pairs.download(), pairs_of(halves, floats)),
          make_part("pairs of bf16", 256, bf16_pairs.download(), pairs_of(bf16s, floats))};
}

}  // namespace mp::MP_TARGET
