// mp_strided_copy: exact integers in views of every rank, and elements between those of a view.
#include <numeric>

#include "tests/support/grad_stats.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

using Sizes = std::vector<int64_t>;

mp_strided_copy_desc_t desc_of(mp_dtype_t dtype, const Sizes &extent, const Sizes &x_stride,
                               const Sizes &y_stride) {
  mp_strided_copy_desc_t d = mp_strided_copy_desc_default(dtype);
  d.rank = static_cast<int32_t>(extent.size());
  for (size_t i = 0; i < extent.size(); ++i) {
    d.extent[i] = extent[i];
    d.x_stride[i] = x_stride[i];
    d.y_stride[i] = y_stride[i];
  }
  return d;
}

/// Returns the offset of element `number` of a view.
int64_t offset_of(const mp_strided_copy_desc_t &d, const int64_t *stride, int64_t number) {
  int64_t offset = 0;
  for (int32_t i = d.rank; i-- > 0; number /= d.extent[i])
    offset += number % d.extent[i] * stride[i];
  return offset;
}

int64_t numel(const mp_strided_copy_desc_t &d) {
  return std::accumulate(d.extent, d.extent + d.rank, int64_t{1}, std::multiplies<>());
}

/// Compares a copy with a loop; elements of y outside of the view keep their values.
void check_copy(const mp_strided_copy_desc_t &d, int64_t offset = 0) {
  CAPTURE(mp_dtype_name(d.dtype), offset, d.alpha, d.beta, Sizes(d.extent, d.extent + d.rank),
          Sizes(d.x_stride, d.x_stride + d.rank), Sizes(d.y_stride, d.y_stride + d.rank));
  const int64_t count = numel(d);
  const auto size = [&](const int64_t *stride) {
    return count > 0 ? offset_of(d, stride, count - 1) + 1 : int64_t{1};
  };
  Random random(static_cast<uint64_t>(count));
  const std::vector<double> x = random_integers(size(d.x_stride), 8, random);
  const bool reads_y = d.beta != 0.0f;
  std::vector<double> before = random_integers(size(d.y_stride), 8, random);
  if (!reads_y) std::ranges::fill(before, kNaN);
  std::vector<double> wanted = before, written;
  for (int64_t i = 0; i < count; ++i) {
    double &y = wanted[static_cast<size_t>(offset_of(d, d.y_stride, i))];
    y = static_cast<double>(d.alpha) * x[static_cast<size_t>(offset_of(d, d.x_stride, i))] +
        (reads_y ? static_cast<double>(d.beta) * y : 0.0);
    written.push_back(y);
  }
  const DeviceArray in(d.dtype, x, offset), out(d.dtype, before, offset);
  const GradStats stats;
  require_ok(mp_strided_copy(context(), &d, in.data(), out.data(), stats.get(), kStream));
  CHECK(in.guard_damage() == "");
  CHECK(out.guard_damage() == "");
  const std::vector<double> got = out.download();
  for (size_t i = 0; i < wanted.size(); ++i) REQUIRE(same_value(got[i], wanted[i]));
  stats.check(written);
}

}  // namespace

TEST_CASE("strided copy: integers are exact in every type, rank and layout",
          "[layers][strided_copy][short]") {
  const struct {
    Sizes extent, x_stride, y_stride;
  } cases[] = {
      {{}, {}, {}},                                    // one element
      {{17}, {1}, {1}},                                // dense
      {{9}, {3}, {2}},                                 // strided vectors
      {{5, 7}, {7, 1}, {1, 5}},                        // transposition
      {{4, 3, 16}, {48, 16, 1}, {48, 16, 1}},          // dimensions that merge
      {{3, 8}, {8, 1}, {20, 1}},                       // concatenation
      {{6, 4, 5}, {0, 1, 0}, {20, 5, 1}},              // repetition
      {{1, 4, 1, 3}, {99, 3, 99, 1}, {7, 40, 7, 13}},  // extents of 1
      {{2, 3, 4, 5}, {60, 1, 15, 3}, {60, 20, 5, 1}},  // permutation
      {{2, 3, 2, 3, 2}, {1, 2, 6, 12, 36}, {40, 13, 6, 2, 1}},
      {{2, 2, 3, 2, 2, 9}, {216, 108, 1, 54, 27, 3}, {500, 230, 70, 30, 10, 1}},
      {{4, 0, 3}, {3, 3, 1}, {3, 3, 1}},  // nothing
  };
  for (const mp_dtype_t dtype : kDtypes)
    for (const auto &c : cases)
      for (const int64_t offset : {0, 1}) {
        mp_strided_copy_desc_t d = desc_of(dtype, c.extent, c.x_stride, c.y_stride);
        check_copy(d, offset);
        d.alpha = -0.5f;
        d.beta = 2.0f;
        check_copy(d, offset);
      }
}

TEST_CASE("strided copy: more elements than one block processes", "[layers][strided_copy]") {
  for (const mp_dtype_t dtype : kDtypes) {
    check_copy(desc_of(dtype, {70, 90, 33}, {33, 2310, 1}, {2970, 33, 1}));
    check_copy(desc_of(dtype, {300, 500}, {1, 300}, {500, 1}));
  }
}

TEST_CASE("strided copy: sums are fp32, and infinity, NaN and the sign of 0 are copied",
          "[layers][strided_copy][short]") {
  const std::vector<double> x = {kInfinity, -kInfinity, kNaN, -0.0, 60000.0};
  const auto d = desc_of(MP_FP16, {5}, {1}, {1});
  const DeviceArray in(MP_FP16, x), out(MP_FP16, std::vector<double>(5, 60000.0));
  auto sum = d;
  sum.beta = 1.0f;
  sum.alpha = -1.0f;
  require_ok(mp_strided_copy(context(), &sum, in.data(), out.data(), nullptr, kStream));
  const std::vector<double> sums = out.download();
  CHECK((sums[0] == -kInfinity && sums[1] == kInfinity && std::isnan(sums[2])));
  CHECK((sums[3] == 60000.0 && sums[4] == 0.0));
  require_ok(mp_strided_copy(context(), &d, in.data(), out.data(), nullptr, kStream));
  const std::vector<double> copy = out.download();
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(same_value(copy[i], x[i]));
    CHECK((std::isnan(x[i]) || std::signbit(copy[i]) == std::signbit(x[i])));
  }
}
