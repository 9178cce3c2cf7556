// See gemm_ragged.h.
#define MP_ENABLE_EXPERIMENTAL
#include "gemm_ragged.h"

#include <limits>

#include "tests/support/kernels.h"

namespace mptest {

namespace {

constexpr double kUntouched = 77.0;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void fill_integers(Matrices &matrices, Random &random) {
  for (double &value : matrices.values) value = static_cast<double>(random.integer(-3, 3));
}

/// What the header says of ends: they neither fall nor leave the bound.
std::vector<int64_t> clamped(const std::vector<int32_t> &ends, int64_t bound) {
  std::vector<int64_t> clamped;
  int64_t before = 0;
  for (const int32_t end : ends)
    clamped.push_back(before = std::clamp<int64_t>(end, before, bound));
  return clamped;
}

std::string name_of(mp_dtype_t dtype) {
  return mp_dtype_name(dtype);
}

bool same(double got, double wanted) {
  return std::isnan(wanted) ? std::isnan(got) : got == wanted;
}

}  // namespace

std::string to_string(const RaggedCase &c) {
  std::string text = c.dimension == MP_RAGGED_M ? "ragged m" : "ragged k";
  text +=
      format(" %s %s to %s, %lld x %lld x %lld, alpha %g, beta %g, pad %lld, multiple %lld, ",
             c.op.c_str(), name_of(c.types.ab).c_str(), name_of(c.types.cd).c_str(),
             static_cast<long long>(c.m), static_cast<long long>(c.n), static_cast<long long>(c.k),
             static_cast<double>(c.alpha), static_cast<double>(c.beta),
             static_cast<long long>(c.pad), static_cast<long long>(c.multiple));
  text += format("offset %lld, infinite %lld%s%s, ends", static_cast<long long>(c.offset),
                 static_cast<long long>(c.infinite), c.in_place ? ", in place" : "",
                 c.shared_b ? ", one B" : "");
  for (const int32_t end : c.ends) text += " " + std::to_string(end);
  return text;
}

RaggedRun::RaggedRun(const RaggedCase &c)
    : case_(c), ends_(c.ends), scale_(1), found_inf_(1), amax_(1) {
  scale_.upload({c.scale});
  const bool by_m = c.dimension == MP_RAGGED_M;
  const int64_t groups = group_count();
  a_ = Matrices(1, c.m, c.k);
  b_ = Matrices(by_m && !c.shared_b ? groups : 1, c.k, c.n);
  c_ = Matrices(by_m ? 1 : groups, c.m, c.n);
  before_ = Matrices(c_.count, c.m, c.n, kUntouched);
  Random random(7);
  for (Matrices *const matrices : {&a_, &b_, &c_}) fill_integers(*matrices, random);
  if (c.in_place) before_ = c_;
  for (int64_t i = 0; c.infinite >= 0 && i < (by_m ? c.k : c.m); ++i)
    (by_m ? a_.at(0, c.infinite, i) : a_.at(0, i, c.infinite)) =
        std::numeric_limits<double>::infinity();
  expect();

  // What lies past the last end is NaN in memory.
  const int64_t end = clamped(c.ends, by_m ? c.m : c.k).back();
  for (int64_t i = by_m ? end : 0; i < c.m; ++i)
    for (int64_t p = by_m ? 0 : end; p < c.k; ++p) a_.at(0, i, p) = kNan;
  for (int64_t p = end; !by_m && p < c.k; ++p)
    for (int64_t j = 0; j < c.n; ++j) b_.at(0, p, j) = kNan;

  const auto place = [&](std::optional<DeviceMatrices> &to, mp_dtype_t dtype,
                         const Matrices &from) {
    const int64_t ld = (from.cols + c.pad + c.multiple - 1) / c.multiple * c.multiple;
    const int64_t stride = from.count == 1 ? 0 : from.rows * ld + c.pad * c.multiple;
    to.emplace(dtype, from.count, from.rows, from.cols, ld, stride, c.offset, kPoison);
    to->upload(from);
  };
  place(device_a_, c.types.ab, c.op[0] == 'N' ? a_ : transposed(a_));
  place(device_b_, c.types.ab, c.op[1] == 'N' ? b_ : transposed(b_));
  place(device_c_, c.types.cd, c_);
  place(device_d_, c.types.cd, before_);
}

void RaggedRun::set_ends(const std::vector<int32_t> &ends) {
  case_.ends = ends;
  ends_.upload(ends);
  expect();
}

/// Sums of integers, exact in fp32 in any order, and one rounding.
void RaggedRun::expect() {
  const RaggedCase &c = case_;
  const bool by_m = c.dimension == MP_RAGGED_M;
  const std::vector<int64_t> ends = clamped(c.ends, by_m ? c.m : c.k);
  const double factor = static_cast<double>(c.alpha) * (c.scale != 0.0f ? c.scale : 1.0f);
  expected_ = before_;
  for (int64_t g = 0; g < group_count(); ++g) {
    const int64_t begin = g > 0 ? ends[static_cast<size_t>(g - 1)] : 0;
    const int64_t end = ends[static_cast<size_t>(g)];
    const int64_t item = by_m ? 0 : g;
    for (int64_t i = by_m ? begin : 0; i < (by_m ? end : c.m); ++i) {
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0.0;
        for (int64_t p = by_m ? 0 : begin; p < (by_m ? c.k : end); ++p)
          sum += a_.at(0, i, p) * b_.at(by_m && !c.shared_b ? g : 0, p, j);
        const double beside = c.beta != 0.0f ? c.beta * c_.at(item, i, j) : 0.0;
        expected_.at(item, i, j) = round_to(c.types.cd, factor * sum + beside);
      }
    }
  }
}

mp_gemm_desc_t RaggedRun::desc(const std::string &kernel) const {
  const RaggedCase &c = case_;
  mp_gemm_desc_t d = mp_gemm_desc_default(c.m, c.n, c.k, c.types.ab, c.types.cd);
  const auto ld = [&](int64_t cols) {
    return (cols + c.pad + c.multiple - 1) / c.multiple * c.multiple;
  };
  const auto stride = [&](int64_t rows, int64_t ld) { return rows * ld + c.pad * c.multiple; };
  d.op_a = c.op[0] == 'N' ? MP_OP_N : MP_OP_T;
  d.op_b = c.op[1] == 'N' ? MP_OP_N : MP_OP_T;
  d.lda = ld(c.op[0] == 'N' ? c.k : c.m);
  d.ldb = ld(c.op[1] == 'N' ? c.n : c.k);
  d.ldc = d.ldd = ld(c.n);
  if (c.dimension == MP_RAGGED_K)
    d.stride_c = d.stride_d = stride(c.m, d.ldd);
  else if (!c.shared_b)
    d.stride_b = stride(c.op[1] == 'N' ? c.k : c.n, d.ldb);
  d.batch_count = static_cast<int32_t>(group_count());
  d.alpha = c.alpha;
  d.beta = c.beta;
  d.kernel = kernel.empty() ? nullptr : kernel.c_str();
  return d;
}

std::vector<std::string> RaggedRun::kernels() const {
  mp_gemm_desc_t any = desc("");
  any.stride_a = 8;  // mp_gemm's rules: a batch whose D lie apart
  any.batch_count = 1;
  const std::vector<const char *> names = runnable_kernels(any);
  return {names.begin(), names.end()};
}

size_t RaggedRun::workspace_bytes(const std::string &kernel) const {
  const mp_gemm_desc_t d = desc(kernel);
  size_t bytes = 0;
  const mp_status_t status = mp_gemm_ragged_workspace_size(context(), &d, case_.dimension, &bytes);
  return status == MP_SUCCESS ? bytes : 0;
}

mp_status_t RaggedRun::launch(const std::string &kernel) {
  return launch(kernel, workspace_bytes(kernel));
}

mp_status_t RaggedRun::launch(const std::string &kernel, size_t workspace_bytes) {
  const RaggedCase &c = case_;
  workspace_.emplace(static_cast<int64_t>(workspace_bytes));
  device_d_->upload(before_);
  found_inf_.upload({0.0f});
  amax_.upload({0.0f});
  mp_epilogue_t e = mp_epilogue_default();
  if (c.scale != 0.0f) e.scale = scale_.data();
  if (c.found_inf) e.found_inf = found_inf_.data();
  if (c.amax) e.amax = amax_.data();
  const bool has_options = c.scale != 0.0f || c.found_inf || c.amax;
  const mp_gemm_desc_t d = desc(kernel);
  const void *const beside = c.in_place ? device_d_->data() : device_c_->data();
  const mp_status_t status =
      mp_gemm_ragged(context(), &d, c.dimension, ends_.data(), device_a_->data(), device_b_->data(),
                     c.beta != 0.0f ? beside : nullptr, device_d_->data(),
                     has_options ? &e : nullptr, workspace_->data(), workspace_bytes, kStream);
  if (status == MP_SUCCESS) require_ok(mp_stream_sync(context(), kStream));
  return status;
}

std::string RaggedRun::verify_d(const Matrices &expected) const {
  const Matrices got = device_d_->download();
  for (int64_t item = 0; item < got.count; ++item)
    for (int64_t i = 0; i < got.rows; ++i)
      for (int64_t j = 0; j < got.cols; ++j)
        if (!same(got.at(item, i, j), expected.at(item, i, j)))
          return format("D_%lld(%lld, %lld) = %g, expected %g", static_cast<long long>(item),
                        static_cast<long long>(i), static_cast<long long>(j), got.at(item, i, j),
                        expected.at(item, i, j));
  return device_d_->damage() + device_c_->damage() + workspace_->guard_damage();
}

std::string RaggedRun::verify() const {
  const std::string damage = verify_d(expected_);
  if (!damage.empty()) return damage;
  double largest = 0.0;
  for (size_t i = 0; i < expected_.values.size(); ++i) {
    // Where D was not written, nothing was measured.
    const double value = std::fabs(expected_.values[i]);
    if (value == kUntouched && before_.values[i] == kUntouched) continue;
    largest = std::isnan(largest) || value <= largest ? largest : value;
  }
  if (case_.found_inf && (found_inf_.download()[0] != 0.0f) == std::isfinite(largest))
    return format("found_inf = %g", static_cast<double>(found_inf_.download()[0]));
  if (case_.amax && !same(amax_.download()[0], largest))
    return format("amax = %g, expected %g", static_cast<double>(amax_.download()[0]), largest);
  return "";
}

std::string RaggedRun::verify_untouched() const {
  return verify_d(before_);
}

std::vector<uint8_t> RaggedRun::output_bits() const {
  return device_d_->download_bits();
}

std::vector<std::string> check_ragged(const RaggedCase &c) {
  RaggedRun run(c);
  std::vector<std::string> ran;
  std::vector<std::string> kernels = run.kernels();
  kernels.push_back("");
  for (const std::string &kernel : kernels) {
    const std::string what = to_string(c) + ", kernel " + kernel;
    const mp_status_t status = run.launch(kernel);
    if (status == MP_ERROR_UNSUPPORTED && !kernel.empty()) {
      expect_none(run.verify_untouched(), what);
    } else {
      expect_none(status == MP_SUCCESS ? run.verify() : mp_last_error(), what);
      ran.push_back(kernel);
    }
  }
  return ran;
}

}  // namespace mptest
