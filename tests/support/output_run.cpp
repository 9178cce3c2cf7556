#define MP_ENABLE_EXPERIMENTAL
#include "output_run.h"

#include <algorithm>
#include <cstring>

#include "kernels.h"

namespace mptest {

namespace {

/// Largest |sum| of products for which the rest of the epilogue is exact too.  For fp32 D it is
/// below 2^14, so that dbias over 2^10 rows is exact.
int64_t exact_budget(const OutputCase &c) {
  const int digits = c.fill == Fill::kExact ? std::min(format_of(c.cd).digits, 14) : 24;
  const double others =
      std::abs(c.beta) * kSmallInteger + (c.bias == MP_DTYPE_NONE ? 0 : kSmallInteger);
  const double factor = std::abs(c.alpha * (c.scale == 0.0f ? 1.0f : c.scale));
  const double budget = (std::ldexp(1.0, digits) - others) / std::max(factor, 1.0);
  return std::max<int64_t>(static_cast<int64_t>(budget), 1);
}

}  // namespace

ExactPlan plan_fill(const OutputCase &c, int64_t terms) {
  return exact_plan(terms, exact_budget(c), c.fill == Fill::kExact ? 8 : 255);
}

void fill(std::vector<double> &values, Random &random, Fill fill, int64_t range, mp_dtype_t dtype) {
  const bool real = fill == Fill::kReal;
  for (double &value : values) {
    value = real ? random.real(-1.0, 1.0) : static_cast<double>(random.integer(-range, range));
    value = round_to(dtype, value);
  }
}

int64_t place_in(int64_t extent, Place place) {
  if (place == Place::kFirst) return 0;
  return place == Place::kMiddle ? extent / 2 : extent - 1;
}

double value_of(Special special) {
  return special == Special::kNan ? kNaN : kInfinity;
}

// ---------------------------------------------------------------------------- before the call

OutputRun::OutputRun(const OutputCase &common, int64_t columns)
    : common_(common), scale_(1), dbias_(columns), amax_(1), found_inf_(1) {}

/// C must not be read if beta == 0: it then contains NaN.
void OutputRun::fill_epilogue_inputs(oracle::EpilogueInputs &inputs, Random &random,
                                     const Matrices &shape) {
  const OutputCase &c = common_;
  inputs.alpha = c.alpha;
  inputs.beta = c.beta;
  inputs.scale = c.zero_scale ? 0.0 : c.scale == 0.0f ? 1.0 : c.scale;
  inputs.activation = c.activation;
  inputs.c = Matrices(shape.count, shape.rows, shape.cols, kNaN);
  if (c.beta != 0.0f) fill(inputs.c.values, random, c.fill, kSmallInteger, c.cd);
  if (c.bias != MP_DTYPE_NONE) {
    inputs.bias.resize(static_cast<size_t>(shape.cols));
    fill(inputs.bias, random, c.fill, kSmallInteger, c.bias);
  }
  if (reads_aux(c)) {
    inputs.aux = shape;
    fill(inputs.aux.values, random, c.fill, kSmallInteger, c.cd);
  }
}

void OutputRun::place_outputs(const oracle::EpilogueInputs &inputs, const Matrices &before,
                              Layout d, Layout aux, int64_t stray_d, int64_t stray_aux) {
  const OutputCase &c = common_;
  const auto place = [&](std::optional<DeviceMatrices> &to, Layout layout, int64_t stray_item) {
    to.emplace(c.cd, before.count, before.rows, before.cols, layout.ld, layout.stride, c.offset,
               kCanary, stray_item);
  };
  layout_d_ = d;
  layout_aux_ = aux;
  d_before_ = before;
  aux_before_ = reads_aux(c) ? inputs.aux : Matrices(before.count, before.rows, before.cols, kNaN);
  place(d_, d, stray_d);
  if (c.aux) place(aux_, aux, stray_aux);
  if (!inputs.bias.empty()) bias_.emplace(c.bias, inputs.bias, c.offset);
  scale_.upload({c.zero_scale ? 0.0f : c.scale});
  input_bits_ = input_bits();
}

/// Fills outputs with NaN, so that unwritten elements are found.
void OutputRun::reset_outputs() {
  d_->upload(d_before_);
  if (aux_) aux_->upload(aux_before_);
  dbias_.upload(std::vector<float>(static_cast<size_t>(dbias_.size()), static_cast<float>(kNaN)));
  amax_.upload({amax_start});
  found_inf_.upload({found_inf_start});
  reset_bits_ = output_bits();
}

mp_epilogue_t OutputRun::epilogue() const {
  const OutputCase &c = common_;
  mp_epilogue_t e = mp_epilogue_default();
  e.activation = c.activation;
  if (c.scale != 0.0f || c.zero_scale) e.scale = scale_.data();
  if (bias_) {
    e.bias = bias_->data();
    e.dtype_bias = c.bias;
  }
  if (aux_) {
    e.aux = aux_->item(0);
    e.ld_aux = layout_aux_.ld == layout_d_.ld ? 0 : layout_aux_.ld;
  }
  if (c.dbias) e.dbias = dbias_.data();
  if (c.amax) e.stats.amax = amax_.data();
  if (c.found_inf) e.stats.found_inf = found_inf_.data();
  return e;
}

mp_status_t OutputRun::launch(const std::string &kernel) {
  return launch(kernel, workspace_bytes(kernel));
}

mp_status_t OutputRun::launch(const std::string &kernel, size_t workspace_bytes) {
  launched_kernel_ = kernel;
  workspace_.emplace(static_cast<int64_t>(workspace_bytes));
  reset_outputs();
  const mp_epilogue_t options = epilogue(), no_options = mp_epilogue_default();
  const bool has_options = std::memcmp(&options, &no_options, sizeof options) != 0;
  const mp_status_t status =
      call(kernel, has_options ? &options : nullptr, workspace_->data(), workspace_bytes);
  if (status == MP_SUCCESS) require_ok(mp_stream_sync(context(), kStream));
  return status;
}

// ---------------------------------------------------------------------------- after the call

std::string OutputRun::verify() const {
  const Matrices d = d_->download();
  const bool reads = reads_aux(common_);
  std::string damage = verify_matrix("D", *d_, expected_.y, expected_.y_error);
  if (damage.empty() && aux_ && !reads) {
    damage = verify_matrix("aux", *aux_, expected_.z, expected_.z_error);
  }
  if (damage.empty() && aux_ && reads) damage = aux_->damage();
  if (damage.empty() && common_.dbias) damage = verify_dbias(d);
  if (damage.empty()) damage = verify_flags(d);
  if (damage.empty() && input_bits() != input_bits_) damage = "an input was written to";
  if (damage.empty() && workspace_) damage = workspace_->guard_damage();
  return damage;
}

std::string OutputRun::verify_untouched() const {
  if (output_bits() != reset_bits_) return "a failed call has written to its outputs";
  return input_bits() != input_bits_ ? "a failed call has written to its inputs" : "";
}

std::string OutputRun::verify_matrix(const char *name, const DeviceMatrices &got,
                                     const Matrices &exact, const Matrices &error) const {
  const std::string damage = got.damage();
  if (!damage.empty()) return std::string(name) + ": " + damage;
  const Matrices values = got.download();
  for (size_t at = 0; at < values.values.size(); ++at) {
    const double value = values.values[at];
    const double wanted = round_to(common_.cd, exact.values[at]);
    // Sums of reals in fp32 may differ by the bound of bounds.h; non-finite values must match.
    const double bound = is_exact(common_) || !std::isfinite(wanted)
                             ? 0.0
                             : rounded_error(common_.cd, exact.values[at], error.values[at]);
    if (same_value(value, wanted)) continue;
    if (std::fabs(value - exact.values[at]) <= bound) continue;
    if (std::isnan(value) && !expected_.may_be_nan.empty() && expected_.may_be_nan[at]) continue;
    const long long column = static_cast<long long>(at) % values.cols;
    const long long row = static_cast<long long>(at) / values.cols % values.rows;
    const long long item = static_cast<long long>(at) / values.cols / values.rows;
    return format("%s[%lld][%lld][%lld] = %.9g, expected %.9g within %.3g", name, item, row, column,
                  value, wanted, bound);
  }
  return "";
}

std::string OutputRun::verify_dbias(const Matrices &d) const {
  const std::vector<float> dbias = dbias_.download();
  const oracle::ColumnSums sums = oracle::column_sums(d);
  const double rows = static_cast<double>(d.count * d.rows);
  for (size_t j = 0; j < dbias.size(); ++j) {
    const double bound = common_.fill == Fill::kExact && is_exact(common_)
                             ? 0.0
                             : gamma_bound(rows, unit_roundoff(MP_FP32)) * sums.sum_abs[j];
    if (same_value(dbias[j], sums.sum[j])) continue;
    if (std::fabs(dbias[j] - sums.sum[j]) <= bound) continue;
    return format("dbias[%zu] = %.9g, expected %.9g within %.3g", j, static_cast<double>(dbias[j]),
                  sums.sum[j], bound);
  }
  return "";
}

/// Checks amax and found_inf exactly, from D as stored.
std::string OutputRun::verify_flags(const Matrices &d) const {
  const double amax_wanted =
      common_.amax ? oracle::amax(d.values, amax_start) : static_cast<double>(amax_start);
  if (!same_value(amax(), amax_wanted)) {
    return format("amax = %.9g, expected %.9g", static_cast<double>(amax()), amax_wanted);
  }
  const bool raised = common_.found_inf && oracle::any_nonfinite(d.values);
  const float wanted = raised ? 1.0f : found_inf_start;
  if (found_inf() != wanted) {
    return format("found_inf = %g, expected %g", static_cast<double>(found_inf()),
                  static_cast<double>(wanted));
  }
  return "";
}

std::vector<uint8_t> OutputRun::output_bits() const {
  std::vector<uint8_t> bits = d_->download_bits();
  const auto append = [&bits](const void *data, size_t bytes) {
    const uint8_t *const first = static_cast<const uint8_t *>(data);
    bits.insert(bits.end(), first, first + bytes);
  };
  if (aux_) {
    const std::vector<uint8_t> aux = aux_->download_bits();
    append(aux.data(), aux.size());
  }
  for (const DeviceBuffer<float> *const buffer : {&dbias_, &amax_, &found_inf_}) {
    const std::vector<float> values = buffer->download();
    append(values.data(), values.size() * sizeof(float));
  }
  return bits;
}

// ---------------------------------------------------------------------------- kernels

bool has_wgmma() {
  static const bool has =
      std::ranges::any_of(runnable_kernels(mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16)),
                          [](std::string_view name) { return name.starts_with("wgmma"); });
  if (!has) skip("this device has no wgmma");
  return has;
}

bool splits_k(const std::string &kernel) {
  return kernel.find("_k") != std::string::npos;
}

// ---------------------------------------------------------------------------- checks

int check_kernels(OutputRun &run, Misaligned misaligned,
                  bool (*is_wanted)(const std::string &kernel)) {
  int checked = 0;
  for (const std::string &kernel : run.kernels()) {
    if (!is_wanted(kernel)) continue;
    check_launch(run, kernel, misaligned);
    ++checked;
  }
  return checked;
}

}  // namespace mptest
