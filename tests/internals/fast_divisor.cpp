// Division by a known number (kernels/simt/fast_math.h): exact up to its documented limit.
#include "kernels/simt/fast_math.h"
#include "testing.h"
#include "tests/support/input_values.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int64_t kLargest = INT32_MAX;

int64_t count_wrong(int64_t divisor, int64_t dividend) {
  if (dividend < 0 || dividend > kLargest) return 0;
  const Quotient got = fast_divisor(divisor).divide(static_cast<int32_t>(dividend));
  return got.quotient != dividend / divisor || got.remainder != dividend % divisor;
}

/// Quotients change at the multiples of the divisor.
int64_t count_wrong_near_multiples(int64_t divisor) {
  int64_t wrong = count_wrong(divisor, kLargest);
  const int64_t most = kLargest / divisor;
  for (const int64_t multiple : {int64_t{0}, int64_t{1}, int64_t{2}, most / 3, most - 1, most}) {
    for (int64_t off = -1; off <= 1; off++) wrong += count_wrong(divisor, multiple * divisor + off);
  }
  return wrong;
}

}  // namespace

TEST_CASE("fast divisor: small divisors, powers of two and their neighbours") {
  int64_t wrong = 0;
  for (int64_t divisor = 1; divisor <= 3000; divisor++)
    wrong += count_wrong_near_multiples(divisor);
  for (int bit = 1; bit < 31; bit++) {
    for (int64_t off = -1; off <= 1; off++)
      wrong += count_wrong_near_multiples((int64_t{1} << bit) + off);
  }
  wrong += count_wrong_near_multiples(kLargest);
  CHECK(wrong == 0);
}

TEST_CASE("fast divisor: any divisor and dividend") {
  Random random(1);
  int64_t wrong = 0;
  for (int i = 0; i < 200000; i++)
    wrong += count_wrong(random.integer(1, kLargest), random.integer(0, kLargest));
  CHECK(wrong == 0);
}
