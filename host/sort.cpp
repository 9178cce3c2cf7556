// Radix sort, least significant digit first.  std::stable_sort would allocate.
#include "kernels/simt/sort.h"

#include <array>
#include <utility>

namespace mp::host {

namespace {

constexpr int kDigitBits = 8;
constexpr size_t kDigits = size_t{1} << kDigitBits;

struct Pairs {
  uint32_t *keys, *values;
};

/// Sorts `from` by one digit into `to`.
void sort_by_digit(const Pairs &from, const Pairs &to, int64_t count, int shift) {
  const auto digit = [shift](uint32_t key) { return key >> shift & (kDigits - 1); };
  std::array<int64_t, kDigits> place{};  // index of the next pair with that digit
  for (int64_t i = 0; i < count; i++) place[digit(from.keys[i])]++;
  int64_t before = 0;
  for (int64_t &of_digit : place) before += std::exchange(of_digit, before);
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = place[digit(from.keys[i])]++;
    to.keys[at] = from.keys[i];
    to.values[at] = from.values[i];
  }
}

}  // namespace

int sort_pairs(const Device &, const SortBuffers &buffers, int64_t count, int bits,
               const Workspace &, mp_stream_t) {
  int now = 0;
  for (int shift = 0; shift < bits; shift += kDigitBits, now = 1 - now)
    sort_by_digit({buffers.keys[now], buffers.values[now]},
                  {buffers.keys[1 - now], buffers.values[1 - now]}, count, shift);
  return now;
}

}  // namespace mp::host
