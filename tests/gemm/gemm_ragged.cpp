// Operands, oracle and launch of RaggedRun.
#define MP_ENABLE_EXPERIMENTAL
#include "gemm_ragged.h"

#include <cstring>
#include <limits>
#include <memory>

#include "tests/support/kernels.h"

namespace mptest {

namespace {

/// Representable in every type, and smaller than any written value, so that the amax of all of D
/// equals that of its groups.
constexpr double kUntouched = 0x1p-10;
constexpr int64_t kLargest = 3;  // largest integer in A and B: no sum overflows FP16

/// Returns the ends as the library uses them: ascending and within the bound.
std::vector<int64_t> clamped(const GemmCase &c) {
  std::vector<int64_t> ends;
  int64_t before = 0;
  for (const int32_t end : c.ends)
    ends.push_back(before = std::clamp<int64_t>(end, before, c.ragged == MP_RAGGED_M ? c.m : c.k));
  return ends;
}

void add_product(oracle::Sums &sums, const oracle::GemmInputs &in, int64_t item, int64_t item_b,
                 int64_t i, int64_t p) {
  for (int64_t j = 0; j < in.b.cols; ++j) {
    const double product = in.a.at(0, i, p) * in.b.at(item_b, p, j);
    sums.sum.at(item, i, j) += product;
    sums.sum_abs.at(item, i, j) += std::fabs(product);
  }
}

}  // namespace

RaggedRun::RaggedRun(const GemmCase &c) : GemmRun(c, WithoutInputs()), ends_(c.ends) {
  fill_inputs();
  expect();
  layout_a_ = layout(c.op[0] == 'N' ? inputs_.a : transposed(inputs_.a));
  layout_b_ = layout(c.op[1] == 'N' ? inputs_.b : transposed(inputs_.b));
  layout_c_ = layout_d_ = layout_aux_ = layout(inputs_.c);
  upload_inputs(before_);
}

RaggedRun::Layout RaggedRun::layout(const Matrices &matrices) const {
  const int64_t ld = leading_dimension(case_, matrices.cols);
  return {ld, matrices.count == 1 ? 0 : matrices.rows * ld + case_.pad * case_.multiple};
}

void RaggedRun::fill_inputs() {
  const GemmCase &c = case_;
  const bool by_m = c.ragged == MP_RAGGED_M;
  const auto groups = static_cast<int64_t>(c.ends.size());
  Random random(static_cast<uint64_t>(c.seed));
  inputs_.a = Matrices(1, c.m, c.k);
  inputs_.b = Matrices(by_m && !c.shared_b ? groups : 1, c.k, c.n);
  fill(inputs_.a.values, random, c.fill, kLargest, c.ab);
  fill(inputs_.b.values, random, c.fill, kLargest, c.ab);
  fill_epilogue_inputs(inputs_, random, Matrices(by_m ? 1 : groups, c.m, c.n));
  before_ = c.in_place ? inputs_.c : Matrices(inputs_.c.count, c.m, c.n, kUntouched);

  const int64_t end = clamped(c).back();
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t p = 0; p < c.k; ++p) {
      double &a = inputs_.a.at(0, i, p);
      if ((by_m ? i : p) == c.infinite) a = std::numeric_limits<double>::infinity();
      if ((by_m ? i : p) >= end) a = std::numeric_limits<double>::quiet_NaN();
    }
  }
  for (int64_t p = end; !by_m && p < c.k; ++p)
    for (int64_t j = 0; j < c.n; ++j)
      inputs_.b.at(0, p, j) = std::numeric_limits<double>::quiet_NaN();
}

void RaggedRun::expect() {
  const GemmCase &c = case_;
  const bool by_m = c.ragged == MP_RAGGED_M;
  const Matrices zeros(before_.count, c.m, c.n);
  oracle::Sums sums{zeros, zeros, c.k};
  int64_t begin = 0, group = 0;
  for (const int64_t end : clamped(c)) {
    for (int64_t i = by_m ? begin : 0; i < (by_m ? end : c.m); ++i)
      for (int64_t p = by_m ? 0 : begin; p < (by_m ? c.k : end); ++p)
        add_product(sums, inputs_, by_m ? 0 : group, inputs_.b.count == 1 ? 0 : group, i, p);
    begin = end;
    group++;
  }
  expected_ = oracle::apply_epilogue(sums, inputs_);
  for (int64_t i = begin; by_m && i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) expected_.y.at(0, i, j) = before_.at(0, i, j);
}

mp_gemm_desc_t RaggedRun::desc(const std::string &kernel) const {
  const bool by_m = case_.ragged == MP_RAGGED_M;
  mp_gemm_desc_t d = descriptor(case_, case_.m, case_.n, case_.k, kernel);
  d.ld_a = layout_a_.ld;
  d.ld_b = layout_b_.ld;
  d.ld_c = d.ld_d = layout_c_.ld;
  d.stride_b = by_m ? layout_b_.stride : 0;
  d.stride_c = d.stride_d = by_m ? 0 : layout_c_.stride;
  d.batch_count = static_cast<int32_t>(case_.ends.size());
  return d;
}

std::vector<std::string> RaggedRun::kernels() const {
  mp_gemm_desc_t any = desc("");
  any.batch_count = 1;
  std::vector<std::string> names;
  for (const char *const name : runnable_kernels(any)) {
    mp_gemm_desc_t named = desc("");
    named.plan = named_plan(name);
    size_t bytes;
    if (mp_gemm_ragged_workspace_size(context(), &named, case_.ragged, nullptr, &bytes) ==
        MP_SUCCESS)
      names.emplace_back(name);
  }
  return names;
}

size_t RaggedRun::workspace_bytes(const std::string &kernel) const {
  const mp_gemm_desc_t d = desc(kernel);
  size_t bytes = 0;
  const mp_epilogue_t options = epilogue();
  require_ok(mp_gemm_ragged_workspace_size(context(), &d, case_.ragged, &options, &bytes));
  return bytes;
}

mp_status_t RaggedRun::call(const std::string &kernel, const mp_epilogue_t *epilogue,
                            void *workspace, size_t workspace_bytes) {
  const mp_gemm_desc_t d = desc(kernel);
  return mp_gemm_ragged(context(), &d, case_.ragged, ends_.data(), a_->data(), b_->data(),
                        (case_.in_place ? *d_ : *c_).data(), d_->data(), epilogue, workspace,
                        workspace_bytes, kStream);
}

void RaggedRun::replay(const std::string &kernel, const std::vector<std::vector<int32_t>> &lists) {
  const DeviceBuffer<uint8_t> workspace(static_cast<int64_t>(workspace_bytes(kernel)));
  std::vector<std::unique_ptr<DeviceBuffer<int32_t>>> sources;
  for (const std::vector<int32_t> &list : lists)
    sources.push_back(std::make_unique<DeviceBuffer<int32_t>>(list));
  launched_kernel_ = kernel;
  reset_outputs();
  for (const auto &source : sources) {
    require_ok(mp_memcpy(context(), ends_.data(), source->data(),
                         static_cast<size_t>(source->size()) * sizeof(int32_t), kStream));
    require_ok(call(kernel, nullptr, workspace.data(), static_cast<size_t>(workspace.size())));
  }
  require_ok(mp_stream_sync(context(), kStream));
  case_.ends = lists.back();
  expect();
}

std::vector<std::string> check_ragged(const GemmCase &c) {
  RaggedRun run(c);
  const std::vector<std::string> kernels = run.kernels();
  for (const std::string &kernel : kernels)
    check_launch(run, kernel, c.offset != 0 ? Misaligned::kYes : Misaligned::kNo);
  check_launch(run, "", Misaligned::kNo);
  return kernels;
}

void check_ragged(const std::string &line) {
  for (const GemmCase &c : gemm_cases(line)) check_ragged(c);
}

}  // namespace mptest
