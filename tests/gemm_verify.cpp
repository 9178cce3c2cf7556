// What has to be true after a GEMM call: the half of GemmRun that judges.
#include <algorithm>

#include "gemm_run.h"

namespace mptest {

std::string GemmRun::verify() const {
  const Matrices d = d_->download();
  std::string damage = verify_matrix("D", *d_, expected_.y, expected_.y_error);
  if (damage.empty() && aux_ && !reads_aux()) {
    damage = verify_matrix("aux", *aux_, expected_.z, expected_.z_error);
  }
  if (damage.empty() && aux_ && reads_aux()) damage = aux_->damage();
  if (damage.empty() && case_.dbias) damage = verify_dbias(d);
  if (damage.empty()) damage = verify_flags(d);
  if (damage.empty() && input_bits() != input_bits_) damage = "A, B or C was written to";
  if (damage.empty() && workspace_) damage = workspace_->guard_damage();
  return damage;
}

std::string GemmRun::verify_untouched() const {
  if (output_bits() != reset_bits_) return "a failed call has written to its outputs";
  return input_bits() != input_bits_ ? "a failed call has written to its inputs" : "";
}

std::string GemmRun::verify_matrix(const char *name, const DeviceMatrices &got,
                                   const Matrices &exact, const Matrices &error) const {
  const std::string damage = got.damage();
  if (!damage.empty()) return std::string(name) + ": " + damage;
  const Matrices values = got.download();
  for (size_t at = 0; at < values.values.size(); ++at) {
    const double value = values.values[at];
    const double wanted = round_to(case_.cd, exact.values[at]);
    // fp32 sums of reals may differ by what bounds.h derives, non-finite values not at all.
    const double bound = is_exact() || !std::isfinite(wanted)
                             ? 0.0
                             : rounded_error(case_.cd, exact.values[at], error.values[at]);
    if (same_value(value, wanted)) continue;
    if (std::fabs(value - exact.values[at]) <= bound) continue;
    const long long column = static_cast<long long>(at) % values.cols;
    const long long row = static_cast<long long>(at) / values.cols % values.rows;
    const long long item = static_cast<long long>(at) / values.cols / values.rows;
    return format("%s[%lld][%lld][%lld] = %.9g, expected %.9g within %.3g", name, item, row, column,
                  value, wanted, bound);
  }
  return "";
}

std::string GemmRun::verify_dbias(const Matrices &d) const {
  const std::vector<float> dbias = dbias_.download();
  const oracle::ColumnSums sums = oracle::column_sums(d);
  const double rows = static_cast<double>(d.count * d.rows);
  for (size_t j = 0; j < dbias.size(); ++j) {
    const double bound = case_.fill == Fill::kExact && is_exact()
                             ? 0.0
                             : gamma_bound(rows, unit_roundoff(MP_FP32)) * sums.sum_abs[j];
    if (same_value(dbias[j], sums.sum[j])) continue;
    if (std::fabs(dbias[j] - sums.sum[j]) <= bound) continue;
    return format("dbias[%zu] = %.9g, expected %.9g within %.3g", j, static_cast<double>(dbias[j]),
                  sums.sum[j], bound);
  }
  return "";
}

/// amax and found_inf follow from D as stored, exactly.
std::string GemmRun::verify_flags(const Matrices &d) const {
  const double amax_wanted =
      case_.amax ? oracle::amax(d.values, amax_start) : static_cast<double>(amax_start);
  if (!same_value(amax(), amax_wanted)) {
    return format("amax = %.9g, expected %.9g", static_cast<double>(amax()), amax_wanted);
  }
  const bool raised = case_.found_inf && oracle::any_nonfinite(d.values);
  const float wanted = raised ? 1.0f : found_inf_start;
  if (found_inf() != wanted) {
    return format("found_inf = %g, expected %g", static_cast<double>(found_inf()),
                  static_cast<double>(wanted));
  }
  return "";
}

void check_every_kernel(const GemmCase &c) {
  check_kernels(c, [](const std::string &) { return true; });
}

void check_kernels(const GemmCase &c, bool (*is_wanted)(const std::string &kernel)) {
  GemmRun run(c);
  int checked = 0;
  for (const std::string &kernel : run.kernels()) {
    if (!is_wanted(kernel)) continue;
    ++checked;
    const mp_status_t status = run.launch(kernel);
    if (status == MP_ERROR_UNSUPPORTED && c.offset != 0) {
      expect_none(run.verify_untouched(), run.repro());
    } else if (status != MP_SUCCESS) {
      expect_none(std::string(mp_status_string(status)) + ": " + mp_last_error(), run.repro());
    } else {
      expect_none(run.verify(), run.repro());
    }
  }
  CHECK(checked > 0);
}

void check_library_choice(const GemmCase &c) {
  GemmRun run(c);
  const mp_status_t status = run.launch(c.kernel);
  expect_none(status == MP_SUCCESS ? run.verify() : mp_last_error(), run.repro());
}

}  // namespace mptest
