// mp_inspect and the reports of mp_scale_step against a plain loop over the values.
#include <optional>

#include "tests/step/checked_optimizer.h"
#include "tests/support/any.h"

using namespace mptest;

namespace {

struct Reports {
  mp_tensor_report_t list;
  std::vector<mp_tensor_report_t> tensors;
};

// ---------------------------------------------------------------------------- expected

void count(mp_tensor_report_t &report, double x, size_t tensor, size_t element) {
  ++report.numel;
  report.num_nan += std::isnan(x);
  report.num_inf += std::isinf(x);
  report.num_zero += x == 0.0;
  report.num_subnormal += x != 0.0 && std::fabs(x) < 0x1p-14;
  if (!(std::fabs(x) <= report.amax) && !std::isnan(report.amax)) {
    report.amax = static_cast<float>(std::fabs(x));
  }
  if (std::isfinite(x) || report.bad_element >= 0) return;
  report.bad_tensor = static_cast<int64_t>(tensor);
  report.bad_element = static_cast<int64_t>(element);
  report.bad_value = static_cast<float>(x);
}

Reports expected(const TensorValues &values) {
  const mp_tensor_report_t empty{0, 0, 0, 0, 0, -1, -1, 0.0f, 0.0f};
  Reports wanted{empty, std::vector<mp_tensor_report_t>(values.size(), empty)};
  for (size_t t = 0; t < values.size(); ++t) {
    for (size_t i = 0; i < values[t].size(); ++i) {
      count(wanted.list, values[t][i], t, i);
      count(wanted.tensors[t], values[t][i], t, i);
    }
  }
  return wanted;
}

// ---------------------------------------------------------------------------- measured

/// Room for the reports, which begin as rubbish.
struct ReportBuffers {
  DeviceBuffer<mp_tensor_report_t> list, tensors;

  explicit ReportBuffers(size_t count) : list(1), tensors(static_cast<int64_t>(count)) {}
  Reports download() const { return {list.download()[0], tensors.download()}; }
};

Reports inspect(mp_tensor_list_t list, size_t count) {
  const ReportBuffers buffers(count);
  require_ok(mp_inspect(list, buffers.list.data(), buffers.tensors.data(), kStream));
  return buffers.download();
}

Reports inspect(const TensorSet &tensors) {
  return inspect(tensors.list(), tensors.count());
}

bool same(const mp_tensor_report_t &x, const mp_tensor_report_t &y) {
  return x.numel == y.numel && x.num_nan == y.num_nan && x.num_inf == y.num_inf &&
         x.num_zero == y.num_zero && x.num_subnormal == y.num_subnormal &&
         x.bad_tensor == y.bad_tensor && x.bad_element == y.bad_element &&
         same_value(x.bad_value, y.bad_value) && same_value(x.amax, y.amax);
}

std::string text_of(const mp_tensor_report_t &r) {
  return format("%lld: %lld NaN %lld inf %lld zero %lld subnormal, bad %lld[%lld] = %g, amax %g",
                static_cast<long long>(r.numel), static_cast<long long>(r.num_nan),
                static_cast<long long>(r.num_inf), static_cast<long long>(r.num_zero),
                static_cast<long long>(r.num_subnormal), static_cast<long long>(r.bad_tensor),
                static_cast<long long>(r.bad_element), static_cast<double>(r.bad_value),
                static_cast<double>(r.amax));
}

void check_same(const Reports &got, const Reports &wanted) {
  CAPTURE(text_of(got.list), text_of(wanted.list));
  CHECK(same(got.list, wanted.list));
  REQUIRE(got.tensors.size() == wanted.tensors.size());
  size_t wrong = 0, first_wrong = 0;
  for (size_t t = 0; t < got.tensors.size(); ++t) {
    if (same(got.tensors[t], wanted.tensors[t])) continue;
    if (wrong++ == 0) first_wrong = t;
  }
  if (wrong > 0) {
    CAPTURE(first_wrong, text_of(got.tensors[first_wrong]), text_of(wanted.tensors[first_wrong]));
    CHECK(wrong == 0);
  }
}

void check_inspect(const TensorSet &tensors) {
  const std::vector<uint8_t> before = tensors.bits();
  check_same(inspect(tensors), expected(tensors.download()));
  CHECK(tensors.bits() == before);
}

// ---------------------------------------------------------------------------- values

/// Zeros, numbers on both sides of every limit, and, `bad_percent` of them, no numbers.
TensorValues mixed_values(const std::vector<TensorSpec> &specs, Random &random, int bad_percent) {
  const double good[] = {0.0,      -0.0,    1.0,  -3.0,      0x1p-14,  0x1.ff8p-15,
                         -0x1p-24, 0x1p-20, -0.5, 0x1.8p-15, -0x1p-14, 65504.0};
  const double bad[] = {HUGE_VAL, -HUGE_VAL, kNaN};
  TensorValues values = constant_values(specs, 0.0);
  for (std::vector<double> &tensor : values) {
    for (double &x : tensor) {
      x = random.integer(0, 99) < bad_percent ? bad[random.integer(0, 2)]
                                              : good[random.integer(0, 11)];
    }
  }
  return values;
}

void check_mixed(const std::vector<TensorSpec> &specs, std::initializer_list<int> bad_percents) {
  Random random(1);
  TensorSet tensors(specs);
  for (const int bad_percent : bad_percents) {
    tensors.upload(mixed_values(specs, random, bad_percent));
    check_inspect(tensors);
  }
}

}  // namespace

// ---------------------------------------------------------------------------- tests

TEST_CASE("report: small lists of each type, and mixed ones", "[report][short]") {
  check_mixed(small_tensors(), {0, 1, 30, 100});
  for (const mp_dtype_t dtype : kDtypes)
    check_mixed(with_dtype(small_tensors(), dtype), {0, 1, 30, 100});
}

TEST_CASE("report: awkward sizes, types and alignments", "[report]") {
  check_mixed(awkward_tensors(), {0, 1, 50});
}

TEST_CASE("report: a chunk full of one kind", "[report][short]") {
  for (const double x : {0.0, 1.0, 0x1p-20, HUGE_VAL, kNaN}) {
    TensorSet tensors({{MP_FP16, kChunk + 9}});
    tensors.fill(x);
    check_inspect(tensors);
  }
}

TEST_CASE("report: every number of the 16-bit types", "[report]") {
  for (const mp_dtype_t dtype : kHalfTypes) {
    TensorSet tensors({{dtype, 1 << 16}});
    for (int64_t bits = 0; bits < 1 << 16; ++bits)
      tensors.inject(0, bits, static_cast<uint32_t>(bits));
    check_inspect(tensors);
  }
}

TEST_CASE("report: fp32 beyond the range of the others", "[report][short]") {
  TensorSet tensors({{MP_FP32, 11, 1}});
  tensors.upload(
      {{1e38, -1e-38, 0x1p-149, 0x1.fffffep-15, 0x1p-14, -0x1p-126, 70000, 0, -0.0, 1, 2}});
  check_inspect(tensors);
}

TEST_CASE("report: empty tensors anywhere", "[report][short]") {
  for (const auto &sizes : std::vector<std::vector<int64_t>>{
           {}, {0}, {0, 0, 0}, {0, 5}, {5, 0}, {5, 0, 0, 9}, {0, 17, 0}}) {
    std::vector<TensorSpec> specs;
    for (const int64_t size : sizes) specs.push_back({MP_BF16, size});
    check_mixed(specs, {20});
  }
}

TEST_CASE("report: thousands of tensors of one element", "[report]") {
  Random random(4);
  std::vector<TensorSpec> specs;
  for (int t = 0; t < 4000; ++t) specs.push_back({any(random, kDtypes), 1});
  check_mixed(specs, {0, 1});
}

TEST_CASE("report: the first bad element, wherever it is", "[report][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const std::vector<TensorSpec> specs = {
        {dtype, 9, 1}, {dtype, 0}, {dtype, 1}, {dtype, kChunk + 33, 3}, {dtype, 6}};
    for (size_t t = 0; t < specs.size(); ++t) {
      for (const int64_t at :
           {int64_t{0}, specs[t].numel / 2, kChunk - 1, kChunk, specs[t].numel - 1}) {
        if (at < 0 || at >= specs[t].numel) continue;
        for (const double x : {HUGE_VAL, -HUGE_VAL, kNaN}) {
          TensorSet tensors(specs);
          tensors.upload(constant_values(specs, 0.25));
          tensors.inject(t, at, encode(dtype, x));
          const Reports got = inspect(tensors);
          CAPTURE(mp_dtype_name(dtype), t, at, x);
          CHECK(got.list.bad_tensor == static_cast<int64_t>(t));
          CHECK(got.list.bad_element == at);
          CHECK(same_value(got.list.bad_value, x));
          CHECK(got.list.num_nan + got.list.num_inf == 1);
          check_same(got, expected(tensors.download()));
        }
      }
    }
  }
}

TEST_CASE("report: of several, the lowest tensor and its lowest element", "[report][short]") {
  const std::vector<TensorSpec> specs = {{MP_FP16, 40}, {MP_FP32, 3 * kChunk + 1}, {MP_BF16, 40}};
  TensorSet tensors(specs);
  tensors.upload(constant_values(specs, 1.0));
  // Injected from the last to the first, so that each becomes the first.
  const std::vector<std::pair<size_t, int64_t>> places = {{2, 39},
                                                          {2, 0},
                                                          {1, 3 * kChunk},
                                                          {1, 2 * kChunk + 1},
                                                          {1, kChunk + 800},
                                                          {1, kChunk + 8},
                                                          {1, kChunk},
                                                          {1, kChunk - 1},
                                                          {1, 0},
                                                          {0, 39},
                                                          {0, 8},
                                                          {0, 7},
                                                          {0, 0}};
  bool infinite = true;
  for (const auto &[t, at] : places) {
    tensors.inject(t, at, encode(specs[t].dtype, infinite ? -HUGE_VAL : kNaN));
    infinite = !infinite;
    const Reports got = inspect(tensors);
    CHECK(got.list.bad_tensor == static_cast<int64_t>(t));
    CHECK(got.list.bad_element == at);
    check_same(got, expected(tensors.download()));
  }
}

TEST_CASE("report: the same each time and for any number of SMs", "[report][short]") {
  Random random(5);
  const std::vector<TensorSpec> specs = {{MP_FP32, 5 * kChunk + 77}, {MP_FP16, 3 * kChunk + 1, 1}};
  TensorSet tensors(specs);
  tensors.upload(mixed_values(specs, random, 1));
  const Reports first = inspect(tensors);
  check_same(first, expected(tensors.download()));
  check_same(inspect(tensors), first);
  const UniqueContext one_sm = make_context(1);
  check_same(inspect(tensors.list_in(one_sm.get()).get(), tensors.count()), first);
}

TEST_CASE("report: either output alone", "[report][short]") {
  Random random(6);
  TensorSet tensors(small_tensors());
  tensors.upload(mixed_values(tensors.specs(), random, 10));
  const ReportBuffers buffers(tensors.count());
  require_ok(mp_inspect(tensors.list(), buffers.list.data(), nullptr, kStream));
  require_ok(mp_inspect(tensors.list(), nullptr, buffers.tensors.data(), kStream));
  check_same(buffers.download(), expected(tensors.download()));
}

// ---------------------------------------------------------------------------- in a step

namespace {

void take_step(StepRun &twin, const ReportBuffers *reports, bool clips) {
  mp_step_options_t options = step_options(0, clips ? 0.5f : 0.0f);
  if (reports != nullptr) {
    options.report = reports->list.data();
    options.tensor_reports = reports->tensors.data();
  }
  twin.reports_norms = clips;
  twin.step(options);
}

/// Compares steps with reports and the same steps without.
void check_twins(const OptimizerSpec &spec, const std::optional<mp_scaler_config_t> &config,
                 bool clips, uint64_t seed) {
  StepRun with(spec, config), without(spec, config);
  Random random(seed);
  for (int step = 0; step < 5; ++step) {
    TensorValues grads = real_values(spec.grads, random, 4.0);
    if (step % 2 == 1) grads[4][7] = step == 1 ? HUGE_VAL : kNaN;
    with.run.grads().upload(grads);
    without.run.grads().upload(grads);
    const ReportBuffers reports(spec.grads.size());
    take_step(with, &reports, clips);
    take_step(without, nullptr, clips);
    CAPTURE(spec.kind, clips, step);
    check_equal(with, without);
    CHECK(with.skipped.value() == (step % 2 == 1 ? 1.0f : 0.0f));
    check_same(reports.download(), expected(with.run.grads().download()));
  }
}

}  // namespace

TEST_CASE("report: a step that reports is the step that does not", "[report][step][short]") {
  uint64_t seed = 10;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const bool clips : {false, true}) {
      check_twins(spec, std::nullopt, clips, ++seed);
      check_twins(spec, mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL), clips, ++seed);
    }
  }
  OptimizerSpec clipping = adamw_spec();
  clipping.groups[0].max_tensor_norm = 0.25f;
  check_twins(clipping, mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF), true, 100);
}
