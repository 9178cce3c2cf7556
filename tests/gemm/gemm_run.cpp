// Operands, oracle and launch of GemmRun.
#define MP_ENABLE_EXPERIMENTAL
#include "gemm_run.h"
#include "tests/support/kernels.h"

#include <limits>

namespace mptest {

namespace {

/// Row i keeps the elements with (p + i) % period == 0 (input_values.h).
void thin_out(Matrices &a, int64_t period) {
  for (int64_t item = 0; item < a.count; ++item) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t p = 0; p < a.cols; ++p) {
        if ((p + i) % period != 0) a.at(item, i, p) = 0.0;
      }
    }
  }
}

}  // namespace

GemmRun::Layout GemmRun::layout(int64_t rows, int64_t cols, int64_t more_padding) const {
  const int64_t ld = leading_dimension(case_, cols + more_padding);
  const int64_t room = case_.pad + (case_.stray.empty() ? 0 : 1);
  return {ld, case_.batch == 1 ? 0 : rows * ld + room * case_.multiple};
}

/// Returns the batch item of that operand which is offset by one element, or -1.
int64_t GemmRun::stray_item(char operand) const {
  const std::string &stray = case_.stray;
  if (stray.find(operand) == std::string::npos) return -1;
  return std::stoll(stray.substr(stray.find_first_of("0123456789")));
}

GemmRun::GemmRun(const GemmCase &c) : GemmRun(c, WithoutInputs()) {
  // C and aux get longer rows if there is padding.
  const int64_t more = c.pad == 0 || c.in_place ? 0 : c.multiple;
  layout_a_ = c.op[0] == 'N' ? layout(c.m, c.k, 0) : layout(c.k, c.m, 0);
  layout_b_ = c.op[1] == 'N' ? layout(c.k, c.n, 0) : layout(c.n, c.k, 0);
  layout_c_ = layout(c.m, c.n, more);
  layout_d_ = layout(c.m, c.n, 0);
  layout_aux_ = layout(c.m, c.n, 2 * more);
  // aux has the stride of D, so D's stride must also fit aux's longer rows.
  layout_d_.stride = layout_aux_.stride;
  if (c.in_place) layout_c_ = layout_d_;

  fill_inputs();
  expected_ = oracle::gemm(inputs_);
  const Matrices nothing(c.batch, c.m, c.n, std::numeric_limits<double>::quiet_NaN());
  upload_inputs(c.in_place ? inputs_.c : nothing);
}

void GemmRun::fill_inputs() {
  const GemmCase &c = case_;
  const ExactPlan plan = plan_fill(c, c.k);
  Random random(static_cast<uint64_t>(c.seed));

  inputs_.count = c.batch;
  inputs_.a = Matrices(c.shared_a ? 1 : c.batch, c.m, c.k);
  inputs_.b = Matrices(c.shared_b ? 1 : c.batch, c.k, c.n);
  fill(inputs_.a.values, random, c.fill, plan.range, c.ab);
  fill(inputs_.b.values, random, c.fill, plan.range, c.ab);
  if (c.fill != Fill::kReal) thin_out(inputs_.a, plan.period);
  if (c.special != Special::kNone) put_special_in_a();
  fill_epilogue_inputs(inputs_, random, Matrices(c.batch, c.m, c.n));
}

/// B has no zeros at the indices of the special value: an infinity in A gives only infinities, so
/// that NaN from zero padding of a tile would be visible in amax.
void GemmRun::put_special_in_a() {
  const GemmCase &c = case_;
  const int64_t p = place_in(c.k, c.place);
  inputs_.a.at(place_in(inputs_.a.count, c.place), place_in(c.m, c.place), p) = value_of(c.special);
  for (int64_t item = 0; item < inputs_.b.count; ++item) {
    for (int64_t j = 0; j < c.n; ++j) {
      double &factor = inputs_.b.at(item, p, j);
      if (factor == 0.0) factor = 1.0;
    }
  }
}

void GemmRun::upload_inputs(const Matrices &before) {
  const GemmCase &c = case_;
  const auto place = [&](std::optional<DeviceMatrices> &to, mp_dtype_t dtype, const Matrices &from,
                         Layout layout, char name) {
    to.emplace(dtype, from.count, from.rows, from.cols, layout.ld, layout.stride, c.offset, kPoison,
               stray_item(name));
    to->upload(from);
  };
  place(a_, c.ab, c.op[0] == 'N' ? inputs_.a : transposed(inputs_.a), layout_a_, 'a');
  place(b_, c.ab, c.op[1] == 'N' ? inputs_.b : transposed(inputs_.b), layout_b_, 'b');
  place(c_, c.cd, inputs_.c, layout_c_, 'c');
  place_outputs(inputs_, before, layout_d_, layout_aux_, stray_item('d'), stray_item('x'));
}

void GemmRun::upload_pointers() {
  std::vector<void *> items;
  const auto append = [&](const DeviceMatrices &matrices, bool shared) {
    for (int64_t item = 0; item < case_.batch; ++item)
      items.push_back(matrices.item(shared ? 0 : item));
  };
  append(*a_, case_.shared_a);
  append(*b_, case_.shared_b);
  append(case_.in_place ? *d_ : *c_, false);
  append(*d_, false);
  items_.upload(items);
}

mp_gemm_desc_t GemmRun::desc(const std::string &kernel) const {
  const GemmCase &c = case_;
  mp_gemm_desc_t desc = descriptor(c, c.m, c.n, c.k, kernel);
  desc.batch_count = static_cast<int32_t>(c.batch);
  desc.ld_a = layout_a_.ld;
  desc.ld_b = layout_b_.ld;
  desc.ld_c = layout_c_.ld;
  desc.ld_d = layout_d_.ld;
  desc.stride_a = c.shared_a || c.pointers ? 0 : layout_a_.stride;
  desc.stride_b = c.shared_b || c.pointers ? 0 : layout_b_.stride;
  desc.stride_c = c.pointers ? 0 : layout_c_.stride;
  desc.stride_d = c.pointers ? 0 : layout_d_.stride;
  return desc;
}

mp_gemm_group_item_t GemmRun::group_item() const {
  const GemmCase &c = case_;
  mp_gemm_group_item_t item = mp_gemm_group_item_default(c.m, c.n, c.k);
  item.ld_a = layout_a_.ld;
  item.ld_b = layout_b_.ld;
  item.ld_c = layout_c_.ld;
  item.ld_d = layout_d_.ld;
  item.A = a_->item(0);
  item.B = b_->item(0);
  item.C = null_c ? nullptr : (c.in_place ? *d_ : *c_).item(0);
  item.D = d_->item(0);
  return item;
}

std::vector<std::string> GemmRun::kernels() const {
  mp_gemm_desc_t any = desc("");
  if (!case_.pointers) {
    const std::vector<const char *> names = runnable_kernels(any);
    return {names.begin(), names.end()};
  }
  // Kernels of mp_gemm that mp_gemm_batched supports, the library's choice first.
  auto best = initialized<mp_plan_t>();
  if (mp_gemm_batched_get_plan(context(), &any, nullptr, SIZE_MAX, &best) != MP_SUCCESS) return {};
  std::vector<std::string> names = {best.kernel};
  any.batch_count = 1;
  for (const char *const name : runnable_kernels(any)) {
    const mp_gemm_desc_t forced = desc(name);
    size_t bytes = 0;
    if (name != names[0] &&
        mp_gemm_batched_workspace_size(context(), &forced, nullptr, &bytes) == MP_SUCCESS)
      names.emplace_back(name);
  }
  return names;
}

size_t GemmRun::workspace_bytes(const std::string &kernel) const {
  const mp_gemm_desc_t forced = desc(kernel);
  const auto query = case_.pointers ? mp_gemm_batched_workspace_size : mp_gemm_workspace_size;
  const mp_epilogue_t options = epilogue();
  size_t bytes = 0;
  // Some tests pass epilogues that mp_gemm_batched rejects.
  require_ok(query(context(), &forced, case_.pointers ? nullptr : &options, &bytes));
  return bytes;
}

void GemmRun::reset_outputs() {
  OutputRun::reset_outputs();
  upload_pointers();
}

mp_status_t GemmRun::call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                          size_t workspace_bytes) {
  const mp_gemm_desc_t d = desc(kernel);
  if (case_.pointers) {
    void **const table = items_.data();
    void **const c = null_c ? nullptr : table + 2 * case_.batch;
    return mp_gemm_batched(context(), &d, table, table + case_.batch, c, table + 3 * case_.batch,
                           epilogue, workspace, workspace_bytes, kStream);
  }
  const void *const c = null_c ? nullptr : (case_.in_place ? *d_ : *c_).data();
  return mp_gemm(context(), &d, a_->data(), b_->data(), c, d_->data(), epilogue, workspace,
                 workspace_bytes, kStream);
}

std::vector<uint8_t> GemmRun::input_bits() const {
  std::vector<uint8_t> bits = a_->download_bits();
  for (const auto &more : {b_->download_bits(), c_->download_bits()}) {
    bits.insert(bits.end(), more.begin(), more.end());
  }
  return bits;
}

bool is_wgmma(const std::string &kernel) {
  return kernel.starts_with("wgmma");
}

void check_every_kernel(const std::string &line) {
  check_kernels(line, [](const std::string &) { return true; });
  // Its instances for one vector, and for two groups of eight.
  for (const char *const few : {" m=1", " m=13", " n=1", " n=13"})
    check_library_choice(line + few + " kernel=gemv");
}

void check_kernels(const std::string &line, bool (*is_wanted)(const std::string &kernel)) {
  for (const GemmCase &c : gemm_cases(line)) {
    GemmRun run(c);
    INFO(to_string(c));
    const Misaligned misaligned = c.offset != 0 ? Misaligned::kYes : Misaligned::kNo;
    CHECK(check_kernels(run, misaligned, is_wanted) > 0);
  }
}

void check_library_choice(const std::string &line) {
  for (const GemmCase &c : gemm_cases(line)) {
    GemmRun run(c);
    check_launch(run, c.kernel, Misaligned::kNo);
  }
}

void check_kernels_and_choice(const std::string &line) {
  check_every_kernel(line);
  check_library_choice(line);
}

}  // namespace mptest
