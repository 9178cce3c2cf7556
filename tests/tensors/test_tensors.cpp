// Tensor lists: non-finite check, amax and L2 norm, over the list and per tensor.
//
// Values are small integers: the squares of a chunk then sum exactly in fp32 in any order, and the
// norm is the rounded root of an integer, bit for bit.  The guard zones around every tensor are
// NaN, so reading one element past an end changes the result.
#include "tests/step/oracle_step.h"
#include "tests/step/step_fixtures.h"
#include "tests/support/any.h"
#include "tests/support/sparse_zeros.h"

using namespace mptest;

namespace {

constexpr int64_t kRange = 3;
static_assert(kChunk * kRange * kRange < 1 << 24);

// ---------------------------------------------------------------------------- statistics

struct Statistics {
  float found_inf, amax, norm;
  std::vector<float> amaxes, norms;
};

Statistics measure(mp_tensor_list_t list, size_t count) {
  DeviceFloat found_inf(0.0f), amax(-1.0f), norm(-1.0f);
  DeviceBuffer<float> amaxes(static_cast<int64_t>(count)), norms(static_cast<int64_t>(count));
  require_ok(mp_check_nonfinite(list, found_inf.data(), kStream));
  require_ok(mp_amax(list, amax.data(), amaxes.data(), kStream));
  require_ok(mp_l2norm(list, norm.data(), norms.data(), kStream));
  return {found_inf.value(), amax.value(), norm.value(), amaxes.download(), norms.download()};
}

Statistics measure(const TensorSet &tensors) {
  return measure(tensors.list(), tensors.count());
}

/// Returns the expected statistics; `values` and their sum of squares must be exact in fp32.
Statistics expected(const TensorValues &values) {
  Statistics wanted{};
  double amax = 0.0, squares = 0.0;
  for (const std::vector<double> &tensor : values) {
    const double tensor_amax = oracle::amax(tensor, 0.0);
    const double tensor_squares = oracle::sum_squares(tensor);
    if (oracle::any_nonfinite(tensor)) wanted.found_inf = 1.0f;
    wanted.amaxes.push_back(static_cast<float>(tensor_amax));
    wanted.norms.push_back(static_cast<float>(std::sqrt(tensor_squares)));
    amax = oracle::amax({tensor_amax}, amax);
    squares += tensor_squares;
  }
  wanted.amax = static_cast<float>(amax);
  wanted.norm = static_cast<float>(std::sqrt(squares));
  return wanted;
}

int count_differences(const std::vector<float> &got, const std::vector<float> &wanted) {
  int different = got.size() != wanted.size();
  for (size_t t = 0; t < std::min(got.size(), wanted.size()); ++t) {
    different += !same_value(got[t], wanted[t]);
  }
  return different;
}

void check_equal(const Statistics &got, const Statistics &wanted) {
  CHECK(got.found_inf == wanted.found_inf);
  CHECK(same_value(got.amax, wanted.amax));
  CAPTURE(got.amax, wanted.amax);
  CHECK(same_value(got.norm, wanted.norm));
  CAPTURE(got.norm, wanted.norm);
  CHECK(count_differences(got.amaxes, wanted.amaxes) == 0);
  CHECK(count_differences(got.norms, wanted.norms) == 0);
}

/// Checks that small integers give exact statistics and remain unchanged.
void check_exact(const std::vector<TensorSpec> &specs, uint64_t seed) {
  Random random(seed);
  TensorSet tensors(specs);
  const TensorValues values = integer_values(specs, random, kRange);
  tensors.upload(values);
  const std::vector<uint8_t> before = tensors.bits();
  check_equal(measure(tensors), expected(values));
  CHECK(tensors.bits() == before);
}

std::vector<TensorSpec> of_sizes(mp_dtype_t dtype, const std::vector<int64_t> &sizes) {
  std::vector<TensorSpec> specs;
  for (const int64_t size : sizes) specs.push_back({dtype, size});
  return specs;
}

}  // namespace

// ---------------------------------------------------------------------------- finite values

TEST_CASE("tensors: awkward sizes, types and alignments are exact", "[tensors]") {
  check_exact(awkward_tensors(), 1);
}

TEST_CASE("tensors: small lists are exact", "[tensors][short]") {
  check_exact(small_tensors(), 2);
  check_exact({{MP_FP16, kChunk + 1, 1}}, 3);
}

TEST_CASE("tensors: empty tensors at any position", "[tensors][short]") {
  check_exact({}, 4);
  for (const auto &sizes : std::vector<std::vector<int64_t>>{
           {0}, {0, 0, 0}, {0, 5}, {5, 0}, {5, 0, 0, 9}, {0, 5, 0, 9, 0}, {0, 17, 0}}) {
    check_exact(of_sizes(MP_FP16, sizes), 5);
  }
}

TEST_CASE("tensors: both sides of the chunk boundary are exact", "[tensors]") {
  for (const mp_dtype_t dtype : kDtypes) {
    check_exact(of_sizes(dtype, {kChunk - 1, kChunk, kChunk + 1, 2 * kChunk - 1, 2 * kChunk + 1}),
                6);
  }
}

TEST_CASE("tensors: thousands of tensors are exact", "[tensors]") {
  Random random(8);
  std::vector<TensorSpec> specs;
  for (int t = 0; t < 3000; ++t) {
    specs.push_back({any(random, kDtypes), random.integer(0, 40), random.integer(0, 8)});
  }
  check_exact(specs, 9);
}

TEST_CASE("tensors: the largest of many tensors is found at any position", "[tensors][short]") {
  const std::vector<TensorSpec> specs(300, {MP_FP32, 1});
  for (size_t at = 0; at < specs.size(); at += 37) {
    TensorValues values = constant_values(specs, 1.0);
    values[at] = {7.0};
    TensorSet tensors(specs);
    tensors.upload(values);
    CAPTURE(at);
    check_equal(measure(tensors), expected(values));
  }
}

TEST_CASE("tensors: reals are within the derived bound", "[tensors]") {
  Random random(10);
  const std::vector<TensorSpec> specs = awkward_tensors();
  TensorSet tensors(specs);
  tensors.upload(real_values(specs, random, 2.0));
  const TensorValues values = tensors.download();  // rounded to their types
  const Statistics got = measure(tensors);
  double squares = 0.0;
  for (size_t t = 0; t < values.size(); ++t) {
    const double tensor_squares = oracle::sum_squares(values[t]);
    squares += tensor_squares;
    CAPTURE(t, got.norms[t]);
    CHECK(within(oracle::l2norm(tensor_squares, kChunk), got.norms[t]));
    CHECK(got.amaxes[t] == oracle::amax(values[t], 0.0));
  }
  CHECK(within(oracle::l2norm(squares, kChunk), got.norm));
}

TEST_CASE("tensors: chunks are summed in fp64", "[tensors][short]") {
  // The first chunk has 2^26, each other chunk 1: fp32 sums would lose these.
  constexpr int64_t kOthers = 64;
  TensorSet tensors({{MP_FP32, (kOthers + 1) * kChunk}});
  TensorValues values = constant_values(tensors.specs(), 0.0);
  for (int64_t chunk = 0; chunk <= kOthers; ++chunk) {
    values[0][static_cast<size_t>(chunk * kChunk)] = chunk == 0 ? 8192.0 : 1.0;
  }
  tensors.upload(values);
  check_equal(measure(tensors), expected(values));
}

TEST_CASE("tensors: repeated calls and any number of SMs give the same bits", "[tensors][short]") {
  Random random(11);
  const std::vector<TensorSpec> specs = {{MP_FP32, 5 * kChunk + 77}, {MP_FP16, 3 * kChunk + 1, 1}};
  TensorSet tensors(specs);
  tensors.upload(real_values(specs, random, 1.0));
  const Statistics first = measure(tensors);
  check_equal(measure(tensors), first);
  const UniqueContext one_sm = make_context(1);
  const UniqueList list = tensors.list_in(one_sm.get());
  check_equal(measure(list.get(), tensors.count()), first);
}

TEST_CASE("tensors: each output alone", "[tensors][short]") {
  TensorSet tensors(small_tensors());
  Random random(12);
  const TensorValues values = integer_values(tensors.specs(), random, kRange);
  tensors.upload(values);
  const Statistics wanted = expected(values);
  DeviceFloat amax(-1.0f), norm(-1.0f);
  DeviceBuffer<float> amaxes(static_cast<int64_t>(tensors.count()));
  DeviceBuffer<float> norms(static_cast<int64_t>(tensors.count()));
  require_ok(mp_amax(tensors.list(), amax.data(), nullptr, kStream));
  require_ok(mp_amax(tensors.list(), nullptr, amaxes.data(), kStream));
  require_ok(mp_l2norm(tensors.list(), norm.data(), nullptr, kStream));
  require_ok(mp_l2norm(tensors.list(), nullptr, norms.data(), kStream));
  check_equal({0.0f, amax.value(), norm.value(), amaxes.download(), norms.download()}, wanted);
}

namespace {

/// Checks that mp_tensor_stats gives the bits of the functions with one output each, with a report,
/// which runs another kernel, and without.
void check_stats(const TensorSet &tensors) {
  const Statistics wanted = measure(tensors);
  const auto count = static_cast<int64_t>(tensors.count());
  for (const bool reports : {false, true}) {
    DeviceFloat found_inf(0.0f), amax(-1.0f), norm(-1.0f);
    DeviceBuffer<float> amaxes(count), norms(count);
    DeviceBuffer<mp_tensor_report_t> report(1), tensor_reports(count);
    auto outputs = initialized<mp_stats_outputs_t>();
    outputs.found_inf = found_inf.data();
    outputs.amax = amax.data();
    outputs.tensor_amax = amaxes.data();
    outputs.norm = norm.data();
    outputs.tensor_norm = norms.data();
    if (reports) {
      outputs.report = report.data();
      outputs.tensor_reports = tensor_reports.data();
    }
    require_ok(mp_tensor_stats(tensors.list(), &outputs, kStream));
    check_equal(
        {found_inf.value(), amax.value(), norm.value(), amaxes.download(), norms.download()},
        wanted);
    if (!reports) continue;
    CHECK(same_value(report.download()[0].amax, wanted.amax));
    CHECK(tensor_reports.download().back().numel == tensors.specs().back().numel);
  }
}

}  // namespace

TEST_CASE("tensors: several outputs in one pass", "[tensors][short]") {
  TensorSet tensors(awkward_tensors());
  Random random(14);
  tensors.upload(real_values(tensors.specs(), random, 2.0));
  check_stats(tensors);
  const mp_dtype_t dtype = tensors.spec(1).dtype;
  for (const double bad : {kInfinity, -kInfinity, kNaN}) {
    tensors.inject(1, 0, encode(dtype, bad));
    CHECK(measure(tensors).found_inf == 1.0f);
    check_stats(tensors);
  }
}

TEST_CASE("tensors: set_data replaces the buffers of the list", "[tensors][short]") {
  Random random(13);
  TensorSet first(awkward_tensors()), second(awkward_tensors());
  const TensorValues old_values = integer_values(first.specs(), random, kRange);
  const TensorValues new_values = integer_values(first.specs(), random, kRange);
  first.upload(old_values);
  second.upload(new_values);
  require_ok(mp_tensor_list_set_data(first.list(), second.pointers().data(), kStream));
  check_equal(measure(first), expected(new_values));
  require_ok(mp_tensor_list_set_data(first.list(), first.pointers().data(), kStream));
  check_equal(measure(first), expected(old_values));
}

// ---------------------------------------------------------------------------- non-finite values

namespace {

/// Returns infinities and NaNs of a type: quiet and signaling, of both signs.
std::vector<uint32_t> nonfinite_bits(mp_dtype_t dtype) {
  const uint32_t infinity = encode(dtype, kInfinity);
  const uint32_t sign = 1u << (format_of(dtype).bits - 1);
  return {infinity, sign | infinity, infinity | 1u, sign | infinity | 1u, sign | (sign - 1)};
}

/// Checks that `bits` at element `at` of tensor t affect found_inf, amax and norm of the list and,
/// per tensor, only those of t.
void check_injected(TensorSet &tensors, TensorValues values, size_t t, int64_t at, uint32_t bits) {
  CAPTURE(mp_dtype_name(tensors.spec(t).dtype), t, at, bits);
  double &element = values[t][static_cast<size_t>(at)];
  const uint32_t intact = encode(tensors.spec(t).dtype, element);
  element = decode(tensors.spec(t).dtype, bits);
  tensors.inject(t, at, bits);
  check_equal(measure(tensors), expected(values));
  tensors.inject(t, at, intact);
}

}  // namespace

TEST_CASE("tensors: infinity and NaN are detected in the first, middle and last element",
          "[tensors]") {
  for (const mp_dtype_t dtype : kDtypes) {
    TensorSet tensors({{dtype, 9, 1}, {dtype, 1}, {dtype, kChunk + 33, 3}, {dtype, 0}});
    Random random(14);
    const TensorValues values = integer_values(tensors.specs(), random, kRange);
    tensors.upload(values);
    for (size_t t = 0; t < 3; ++t) {
      const int64_t last = tensors.spec(t).numel - 1;
      for (const int64_t at : {int64_t{0}, last / 2, last}) {
        for (const uint32_t bits : nonfinite_bits(dtype))
          check_injected(tensors, values, t, at, bits);
      }
    }
  }
}

TEST_CASE("tensors: an infinity is detected in any element", "[tensors][short]") {
  for (const int64_t offset : {0, 1}) {
    TensorSet tensors({{MP_FP16, 35, offset}});
    const TensorValues values = constant_values(tensors.specs(), 1.0);
    tensors.upload(values);
    for (int64_t at = 0; at < 35; ++at) check_injected(tensors, values, 0, at, 0x7c00);
  }
}

TEST_CASE("tensors: NaN takes precedence over infinity in either order", "[tensors][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const uint32_t infinity = encode(dtype, kInfinity), nan = encode(dtype, kNaN);
    for (const int64_t distance : {1, 8, 300, 16384}) {
      for (const bool nan_first : {false, true}) {
        TensorSet tensors({{dtype, 2 * kChunk}});
        tensors.fill(1.0);
        tensors.inject(0, 5, nan_first ? nan : infinity);
        tensors.inject(0, 5 + distance, nan_first ? infinity : nan);
        const Statistics got = measure(tensors);
        CAPTURE(mp_dtype_name(dtype), distance, nan_first);
        CHECK(std::isnan(got.amax));
        CHECK(std::isnan(got.amaxes[0]));
        CHECK(std::isnan(got.norm));
        CHECK(got.found_inf == 1.0f);
      }
    }
  }
}

TEST_CASE("tensors: the largest finite values are finite", "[tensors][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    TensorSet tensors({{dtype, 11, 1}});
    tensors.fill(-largest_finite(dtype));
    const Statistics got = measure(tensors);
    CHECK(got.found_inf == 0.0f);
    CHECK(std::isinf(got.norm) == (dtype != MP_FP16));  // their squares overflow fp32
    CHECK(got.amax == static_cast<float>(largest_finite(dtype)));
  }
}

TEST_CASE("tensors: found_inf is set to 1 and never cleared", "[tensors][short]") {
  TensorSet clean({{MP_FP16, 40}}), spoilt({{MP_FP16, 40}});
  clean.fill(1.0);
  spoilt.fill(1.0);
  spoilt.inject(0, 39, 0x7c00);
  DeviceFloat found_inf(0.0f);
  const auto after = [&](const TensorSet &tensors) {
    require_ok(mp_check_nonfinite(tensors.list(), found_inf.data(), kStream));
    return found_inf.value();
  };
  CHECK(after(clean) == 0.0f);
  CHECK(after(spoilt) == 1.0f);
  CHECK(after(clean) == 1.0f);
  found_inf.set(2.0f);
  CHECK(after(clean) == 2.0f);
  CHECK(after(spoilt) == 1.0f);
}

// ---------------------------------------------------------------------------- more than 2^31
// elements

TEST_CASE("tensors: one tensor of more than 2^31 elements", "[tensors][slow][long]") {
  const int64_t count = (int64_t{1} << 31) + kChunk + 5;
  constexpr int64_t kBytes = 2;
  std::vector<int64_t> written;
  for (const int64_t at : {int64_t{0}, (int64_t{1} << 31) - 1, int64_t{1} << 31, count - 1}) {
    written.push_back(at * kBytes);
  }
  const SparseZeros zeros(count * kBytes, written);
  if (zeros.data() == nullptr) return skip("not enough memory for 2^31 elements");
  double value = 1.0, squares = 0.0;
  for (const int64_t at : written) {
    const uint16_t bits = static_cast<uint16_t>(encode(MP_FP16, value));
    copy_bytes(zeros.data() + at, &bits, sizeof bits);
    squares += value * value;  // different powers of two: the norm shows which elements it covers
    value *= 2.0;
  }
  const mptools::TensorList list = mptools::make_list(context(), MP_FP16, {zeros.data()}, {count});
  DeviceFloat norm(-1.0f);
  require_ok(mp_l2norm(list.get(), norm.data(), nullptr, kStream));
  CHECK(norm.value() == static_cast<float>(std::sqrt(squares)));
}
