// Running maxima of all sequences of three special values, with the place of the first maximum.
#include "kernels/simt/packed.h"

#include "cases.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256, kSteps = 3;

MP_HD constexpr uint32_t place_of(int step) {
  return step == 0 ? 3 : step == 1 ? 200 : 65535;
}

template <class T>
struct MaximumArgs {
  const T *x;  ///< kSteps arrays of `count` elements
  int64_t count;
  uint32_t *value, *place;  ///< count
  bool is_reversed;         ///< injected bug: the last value is seen first
};

template <class T>
MP_KERNEL(kThreads, 1)
find_maxima(MP_PARAM(MaximumArgs<T>) args) {
  constexpr int kElems = Packed<T>::kElems;
  const int64_t first = (block_index() * kThreads + thread_index()) * kElems;
  if (first >= args.count) return;
  Largest<T, uint16_t> largest(place_of(0));
  for (int i = 0; i < kSteps; i++) {
    const int step = args.is_reversed ? kSteps - 1 - i : i;
    const T *const x = args.x + step * args.count + first;
    largest.see(load_packed<true>(x, kElems), place_of(step));
  }
  for (int i = 0; i < kElems; i++) {
    const uint32_t pair = largest.pair_of_places(i / 2) >> (16 * (i % 2)) & 0xffff;
    args.place[first + i] = pair == largest.place(i) ? pair : ~0u;
    args.value[first + i] = largest.value().words[i * sizeof(T) / 4] >> (i * sizeof(T) % 4 * 8) &
                            ~0u >> (32 - 8 * sizeof(T));
  }
}

/// Bits of infinity of a type of `bits` bits, 0x7c00 for example.
struct Format {
  int bits;
  uint32_t infinity;

  uint32_t sign() const { return 1u << (bits - 1); }
  /// Returns an integer that orders like the value.
  int64_t key(uint32_t x) const {
    const int64_t magnitude = x & (sign() - 1);
    if (magnitude > infinity) return int64_t{1} << 32;  // NaN
    return (x & sign()) != 0 ? -magnitude : magnitude;
  }
  /// Returns x without the payload of a NaN.
  uint32_t without_payload(uint32_t x) const { return key(x) > infinity ? infinity + 1 : x; }
};

template <class T>
mpconform::Part test_type(const Device &device, const char *name, const Format &format,
                          bool is_reversed) {
  const uint32_t infinity = format.infinity, sign = format.sign();
  std::vector<uint32_t> special = {0, 1, infinity / 2, infinity - 1, infinity, sign - 1};
  for (size_t i = special.size(); i-- > 0;) special.push_back(special[i] | sign);
  const size_t base = special.size(), sequences = base * base * base;
  const size_t count = (sequences + 7) / 8 * 8;
  std::vector<T> x(kSteps * count);
  std::vector<uint32_t> wanted;
  for (size_t n = 0; n < count; n++) {
    uint32_t value = infinity | sign, place = place_of(0);
    for (size_t step = 0, rest = n; step < kSteps; step++, rest /= base) {
      const uint32_t bits = special[rest % base];
      std::memcpy(&x[step * count + n], &bits, sizeof(T));
      if (format.key(bits) > format.key(value))
        value = bits, place = place_of(static_cast<int>(step));
    }
    wanted.push_back(format.without_payload(value));
    wanted.push_back(place);
  }
  const Memory<T> there(device, x);
  const Memory<uint32_t> values(device, count), places(device, count);
  run(device, "find_maxima", find_maxima<T>,
      {static_cast<int64_t>((count + kThreads - 1) / kThreads), kThreads},
      {there.data(), static_cast<int64_t>(count), values.data(), places.data(), is_reversed});
  std::vector<uint32_t> got;
  const std::vector<uint32_t> value = values.download(), place = places.download();
  for (size_t n = 0; n < count; n++) {
    got.push_back(format.without_payload(value[n]));
    got.push_back(place[n]);
  }
  return make_part(name, 2, got, wanted);
}

}  // namespace

Output conform_maxima(const Device &device, Mistake mistake) {
  const bool is_reversed = mistake == Mistake::made;
  return {test_type<half>(device, "FP16", {16, 0x7c00}, is_reversed),
          test_type<bf16>(device, "BF16", {16, 0x7f80}, is_reversed),
          test_type<float>(device, "FP32", {32, 0x7f800000}, is_reversed)};
}

}  // namespace mp::MP_TARGET
