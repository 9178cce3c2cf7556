// Softmax and log-softmax with masks, and their gradients, against fp64: exact where all terms are
// powers of two, otherwise within derived bounds.
#include <limits>

#include "tests/support/any.h"
#include "tests/support/grad_stats.h"
#include "tests/support/running_error.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr mp_softmax_mask_t kMasks[] = {MP_SOFTMAX_MASK_NONE, MP_SOFTMAX_MASK_CAUSAL,
                                        MP_SOFTMAX_MASK_LENGTHS, MP_SOFTMAX_MASK_ADDITIVE};

enum class InPlace { kNo, kFirst, kSecond };  ///< second: dy in the backward pass

struct Layer {
  mp_softmax_desc_t desc;
  Matrices x, dy;
  std::vector<int32_t> lengths;
  Matrices mask;
  InPlace in_place = InPlace::kNo;
  int64_t offset = 0;

  bool is_log() const { return desc.flags == MP_SOFTMAX_FLAG_LOG; }
  int64_t mask_rows() const { return desc.mask_rows != 0 ? desc.mask_rows : desc.rows; }
  /// Columns [0, included) take part; -1: the length is out of range.
  int64_t included(int64_t row) const {
    if (desc.mask == MP_SOFTMAX_MASK_CAUSAL)
      return std::clamp<int64_t>(row % mask_rows() + desc.columns - mask_rows() + 1, 0,
                                 desc.columns);
    if (desc.mask != MP_SOFTMAX_MASK_LENGTHS) return desc.columns;
    const int64_t length = lengths[static_cast<size_t>(row / mask_rows())];
    return length > desc.columns ? -1 : std::max<int64_t>(length, -1);
  }
  Bounded score(int64_t row, int64_t j) const {
    const double added =
        desc.mask == MP_SOFTMAX_MASK_ADDITIVE ? mask.at(0, row % mask_rows(), j) : 0.0;
    const double value = desc.scale * x.at(0, row, j) + added;
    return std::isinf(value) ? Bounded(value) : rounded(value, 0.0);
  }
  /// Sequential additions of a sum: within a vector, over the vectors of a thread, over lanes and
  /// warps.
  double additions() const {
    return 8.0 + static_cast<double>(desc.columns) / 256.0 + 4.0 + 32.0 + 16.0;
  }
};

Layer make_layer(int64_t rows, int64_t columns, mp_softmax_mask_t mask, mp_dtype_t dtype = MP_FP32,
                 uint32_t flags = 0) {
  Layer l{mp_softmax_desc_default(rows, columns, dtype),
          Matrices(1, rows, columns),
          Matrices(1, rows, columns),
          {},
          {}};
  l.desc.mask = mask;
  l.desc.flags = flags;
  Random random(static_cast<uint64_t>(rows * 100000 + columns));
  l.x.values = random_reals(dtype, rows * columns, -6.0, 6.0, random);
  l.dy.values = random_reals(dtype, rows * columns, -2.0, 2.0, random);
  if (mask != MP_SOFTMAX_MASK_NONE) l.desc.mask_rows = std::max<int64_t>(rows / 2, 1);
  if (mask == MP_SOFTMAX_MASK_LENGTHS)
    for (int64_t i = 0; i < rows; i += l.desc.mask_rows)
      l.lengths.push_back(static_cast<int32_t>(random.integer(0, columns)));
  if (mask == MP_SOFTMAX_MASK_ADDITIVE) {
    l.desc.dtype_mask = MP_FP16;
    l.mask = Matrices(1, l.desc.mask_rows, columns);
    for (double &value : l.mask.values) value = round_to(MP_FP16, random.real(-3.0, 3.0));
    l.mask.values[0] = -kInfinity;
  }
  return l;
}

/// The mask on the device.
struct DeviceMask {
  explicit DeviceMask(const Layer &l)
      : lengths(l.lengths),
        additive(l.desc.dtype_mask, 1, l.mask.rows, l.mask.cols, l.desc.ld_mask, 0, l.offset,
                 kPoison) {
    if (l.mask.rows > 0) additive.upload(l.mask);
    data = l.desc.mask == MP_SOFTMAX_MASK_LENGTHS    ? lengths.data()
           : l.desc.mask == MP_SOFTMAX_MASK_ADDITIVE ? additive.data()
                                                     : nullptr;
  }
  DeviceBuffer<int32_t> lengths;
  DeviceMatrices additive;
  const void *data;
};

/// Returns values with NaN where the mask excludes them.
Matrices poisoned(const Layer &l, Matrices values) {
  for (int64_t i = 0; i < l.desc.rows; i++)
    for (int64_t j = std::max<int64_t>(l.included(i), 0); j < l.desc.columns; j++)
      values.at(0, i, j) = kNaN;
  return values;
}

DeviceMatrices on_device(const Layer &l, int64_t ld, uint8_t padding) {
  return DeviceMatrices(l.desc.dtype, 1, l.desc.rows, l.desc.columns, ld, 0, l.offset, padding);
}

Matrices forward(const Layer &l) {
  const DeviceMask mask(l);
  DeviceMatrices x = on_device(l, l.desc.ld_x, kCanary),
                 beside = on_device(l, l.desc.ld_y, kCanary);
  const DeviceMatrices &y = l.in_place == InPlace::kNo ? beside : x;
  x.upload(poisoned(l, l.x));
  require_ok(mp_softmax_forward(context(), &l.desc, x.data(), mask.data, y.data(), kStream));
  CHECK(y.damage() == "");
  return y.download();
}

Matrices backward(const Layer &l, const Matrices &result) {
  const DeviceMask mask(l);
  DeviceMatrices y = on_device(l, l.desc.ld_y, kCanary), dy = on_device(l, l.desc.ld_y, kCanary),
                 beside = on_device(l, l.desc.ld_x, kCanary);
  const DeviceMatrices &dx = l.in_place == InPlace::kNo      ? beside
                             : l.in_place == InPlace::kFirst ? y
                                                             : dy;
  y.upload(result);
  dy.upload(poisoned(l, l.dy));
  const void *const lengths = l.desc.mask == MP_SOFTMAX_MASK_LENGTHS ? mask.data : nullptr;
  const GradStats stats;
  require_ok(mp_softmax_backward(context(), &l.desc, y.data(), dy.data(), lengths, dx.data(),
                                 stats.get(), kStream));
  CHECK(dx.damage() == "");
  const Matrices got = dx.download();
  stats.check(got.values);
  return got;
}

/// 2^x, where x takes two more roundings, and subnormal results are flushed to 0.
Bounded power_of(const Bounded &a) {
  const Bounded power = exp(rounded(a.value, a.error, 2.0));
  return {power.value, power.error + static_cast<double>(std::numeric_limits<float>::min())};
}

/// Counts wrong elements of y in a row whose included elements are finite or -infinity.
int64_t count_wrong(const Layer &l, const Matrices &y, int64_t row) {
  std::vector<Bounded> scores, powers;
  for (int64_t j = 0; j < l.included(row); j++) scores.push_back(l.score(row, j));
  const auto top = std::ranges::max_element(scores, {}, &Bounded::value);
  BoundedSum sum;
  for (const Bounded &score : scores) {
    powers.push_back(std::isinf(score.value) ? Bounded(0.0) : power_of(score - *top));
    sum.add(powers.back());
  }
  const Bounded total = sum.total(l.additions());
  int64_t wrong = 0;
  for (size_t j = 0; j < static_cast<size_t>(l.desc.columns); j++) {
    const bool is_masked = j >= scores.size() || std::isinf(scores[j].value);
    const Bounded wanted = is_masked    ? Bounded(l.is_log() ? -kInfinity : 0.0)
                           : l.is_log() ? scores[j] - *top - log(total)
                                        : powers[j] / total;
    wrong += !within(wanted, y.at(0, row, static_cast<int64_t>(j)), l.desc.dtype);
  }
  return wrong;
}

/// Counts wrong elements of dx for a given y.
int64_t count_wrong_gradients(const Layer &l, const Matrices &y, const Matrices &dx, int64_t row) {
  const Bounded scale = l.desc.scale;
  BoundedSum sum;
  for (int64_t j = 0; j < l.included(row); j++) {
    const Bounded dy = l.dy.at(0, row, j);
    sum.add(l.is_log() ? dy : dy * y.at(0, row, j));
  }
  const Bounded total = sum.total(l.additions());
  int64_t wrong = 0;
  for (int64_t j = 0; j < l.desc.columns; j++) {
    Bounded wanted = 0.0;
    const Bounded of_y = y.at(0, row, j), dy = l.dy.at(0, row, j);
    if (j < l.included(row) && !std::isinf(of_y.value))
      wanted = l.is_log() ? scale * (dy - power_of(of_y) * total) : scale * of_y * (dy - total);
    wrong += !within(wanted, dx.at(0, row, j), l.desc.dtype);
  }
  return wrong;
}

void check(const Layer &l) {
  const mp_softmax_desc_t &d = l.desc;
  CAPTURE(d.rows, d.columns, d.ld_x, d.ld_y, d.mask, d.mask_rows, d.flags, d.scale, l.offset,
          mp_dtype_name(d.dtype), static_cast<int>(l.in_place));
  const Matrices y = forward(l), dx = backward(l, y);
  int64_t wrong = 0, wrong_gradients = 0;
  for (int64_t i = 0; i < d.rows; i++) {
    wrong += count_wrong(l, y, i);
    wrong_gradients += count_wrong_gradients(l, y, dx, i);
  }
  CHECK(wrong == 0);
  CHECK(wrong_gradients == 0);
}

/// Around vectors, warps, rows in registers of a warp and of a block.
constexpr int64_t kColumns[] = {1,    2,    7,    8,    9,    31,   33,   256,  257,
                                1000, 1023, 1024, 1025, 2049, 8191, 8192, 8193, 13000};

bool all_are(const Matrices &values, int64_t row, bool (*predicate)(double)) {
  const auto begin = values.values.begin() + row * values.cols;
  return std::all_of(begin, begin + values.cols, predicate);
}

}  // namespace

TEST_CASE("softmax: any mask, length, type and layout", "[layers][softmax][short]") {
  for (uint64_t seed = 0; seed < 360; seed++) {
    Random random(seed);
    const int64_t columns = kColumns[seed % std::size(kColumns)];
    const uint32_t flags = any(random, {0u, uint32_t{MP_SOFTMAX_FLAG_LOG}});
    const mp_dtype_t dtype = any(random, kDtypes);
    const mp_softmax_mask_t mask = any(random, kMasks);
    Layer l = make_layer(any(random, {6, 7}), columns, mask, dtype, flags);
    l.desc.scale = any(random, {1.0f, 0.7f});
    l.in_place = any(random, {InPlace::kNo, InPlace::kFirst, InPlace::kSecond});
    if (one_in(2, random)) {
      l.offset = 1;
      l.desc.ld_x = l.desc.ld_y = columns + 3;
      l.desc.ld_mask = columns + 1;
      if (l.in_place == InPlace::kNo) l.desc.ld_y += 8;
    }
    check(l);
  }
}

TEST_CASE("softmax: more rows than the grid has warps or blocks", "[layers][softmax]") {
  for (const mp_softmax_mask_t mask : kMasks) check(make_layer(5003, 40, mask, MP_FP16));
  check(make_layer(1003, 1030, MP_SOFTMAX_MASK_NONE, MP_FP16));
}

TEST_CASE("softmax: equal scores of 2^k columns are exact, and so is a score far above all others",
          "[layers][softmax][short]") {
  for (const int64_t columns : {1, 2, 16, 32, 256, 1024, 2048, 8192, 16384})
    for (const mp_dtype_t dtype : kDtypes)
      for (const bool has_lengths : {false, true}) {
        Layer l = make_layer(3, columns + (has_lengths ? 5 : 0),
                             has_lengths ? MP_SOFTMAX_MASK_LENGTHS : MP_SOFTMAX_MASK_NONE, dtype);
        l.lengths.assign(3, static_cast<int32_t>(columns));
        l.x.values.assign(l.x.values.size(), -3.0);
        for (double &value : l.dy.values) value = 4.0 * std::round(value);
        const Matrices y = forward(l), dx = backward(l, y);
        const double p = 1.0 / static_cast<double>(columns);
        for (int64_t i = 0; i < 3; i++) {
          double sum = 0.0;
          for (int64_t j = 0; j < columns; j++) sum += p * l.dy.at(0, i, j);
          for (int64_t j = 0; j < l.desc.columns; j++) {
            REQUIRE(y.at(0, i, j) == (j < columns ? p : 0.0));
            REQUIRE(dx.at(0, i, j) ==
                    (j < columns ? round_to(dtype, p * (l.dy.at(0, i, j) - sum)) : 0.0));
          }
          l.x.at(0, i, columns - 1) = 2048.0;
        }
        const Matrices one_hot = forward(l);
        for (int64_t i = 0; i < 3; i++)
          for (int64_t j = 0; j < l.desc.columns; j++)
            REQUIRE(one_hot.at(0, i, j) == (j == columns - 1 ? 1.0 : 0.0));
      }
}

TEST_CASE("softmax: a row without an included element is 0", "[layers][softmax][short]") {
  const auto is_zero = [](double v) { return v == 0.0; };
  const auto is_lowest = [](double v) { return v == -kInfinity; };
  for (const int64_t columns : {5, 2000, 9000})
    for (const uint32_t flags : {0, int{MP_SOFTMAX_FLAG_LOG}}) {
      Layer lengths = make_layer(4, columns, MP_SOFTMAX_MASK_LENGTHS, MP_FP16, flags);
      lengths.lengths = {0, static_cast<int32_t>(columns)};
      Layer infinite = make_layer(4, columns, MP_SOFTMAX_MASK_NONE, MP_FP16, flags);
      for (int64_t j = 0; j < columns; j++) infinite.x.at(0, 1, j) = -kInfinity;
      for (const Layer &l : {lengths, infinite}) {
        const Matrices y = forward(l), dx = backward(l, y);
        CHECK((flags == 0 ? all_are(y, 1, is_zero) : all_are(y, 1, is_lowest)));
        CHECK(all_are(dx, 1, is_zero));
        check(l);
      }
    }
  // Three queries and two keys: the first sees none.
  Layer l = make_layer(3, 2, MP_SOFTMAX_MASK_CAUSAL);
  l.desc.mask_rows = 3;
  CHECK((l.included(0) == 0 && l.included(1) == 1 && l.included(2) == 2));
  check(l);
}

TEST_CASE("softmax: a length out of range makes its rows NaN", "[layers][softmax][short]") {
  const auto is_nan = [](double v) { return std::isnan(v); };
  for (const int64_t columns : {5, 2000, 9000})
    for (const uint32_t flags : {0, int{MP_SOFTMAX_FLAG_LOG}})
      for (const int32_t bad :
           {-1, static_cast<int32_t>(columns) + 1, std::numeric_limits<int32_t>::max()}) {
        Layer l = make_layer(4, columns, MP_SOFTMAX_MASK_LENGTHS, MP_FP32, flags);
        l.lengths = {3, bad};
        const Matrices y = forward(l), dx = backward(l, y);
        for (int64_t i = 0; i < 4; i++) {
          CHECK(all_are(y, i, is_nan) == (i >= 2));
          CHECK(all_are(dx, i, is_nan) == (i >= 2));
        }
        CHECK(count_wrong(l, y, 1) == 0);
      }
}

TEST_CASE("softmax: NaN and infinity stay in their row", "[layers][softmax][short]") {
  for (const int64_t columns : {9, 3000, 9000})
    for (const uint32_t flags : {0, int{MP_SOFTMAX_FLAG_LOG}})
      for (const double bad : {kNaN, kInfinity}) {
        Layer l = make_layer(3, columns, MP_SOFTMAX_MASK_CAUSAL, MP_FP16, flags);
        l.desc.mask_rows = 3;
        l.x.at(0, 1, 2) = bad;
        const Matrices y = forward(l);
        for (int64_t j = 0; j < columns; j++)
          REQUIRE(std::isnan(y.at(0, 1, j)) == (j < l.included(1)));
        CHECK(count_wrong(l, y, 0) + count_wrong(l, y, 2) == 0);
        l.x.at(0, 1, 2) = 0.0;
        l.dy.at(0, 1, 2) = bad;
        const Matrices dx = backward(l, forward(l));
        CHECK(std::isnan(dx.at(0, 1, 2)));
        for (const int64_t i : {0, 2})
          for (int64_t j = 0; j < columns; j++) REQUIRE(std::isfinite(dx.at(0, i, j)));
      }
}

TEST_CASE("softmax: the bits of a row depend on neither other rows nor addresses",
          "[layers][softmax][short]") {
  for (const int64_t columns : {100, 1500, 9001}) {
    const Layer all = make_layer(9, columns, MP_SOFTMAX_MASK_NONE, MP_FP32);
    const Matrices y = forward(all), dx = backward(all, y);
    for (const int64_t row : {0, 5}) {
      Layer one = make_layer(1, columns, MP_SOFTMAX_MASK_NONE, MP_FP32);
      one.offset = row;
      one.desc.ld_x = one.desc.ld_y = columns + 2;
      Matrices of_row(1, 1, columns);
      for (int64_t j = 0; j < columns; j++) {
        one.x.at(0, 0, j) = all.x.at(0, row, j);
        one.dy.at(0, 0, j) = all.dy.at(0, row, j);
        of_row.at(0, 0, j) = y.at(0, row, j);
      }
      CHECK(forward(one).values == of_row.values);
      const Matrices of_dx = backward(one, of_row);
      for (int64_t j = 0; j < columns; j++) REQUIRE(of_dx.at(0, 0, j) == dx.at(0, row, j));
    }
  }
}
