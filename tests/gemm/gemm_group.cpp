// See gemm_group.h.
#include "gemm_group.h"

#include <algorithm>
#include <cstring>

namespace mptest {

namespace {

GemmCase product_of(const GemmCase &c, size_t index) {
  const GroupItem &item = c.items[index];
  GemmCase product = c;
  product.items = {};
  product.m = item.m;
  product.n = item.n;
  product.k = item.k;
  product.pad = item.pad;
  product.stray = item.stray.empty() ? "" : item.stray + "0";
  product.special = item.infinite ? Special::kInfinity : Special::kNone;
  product.place = Place::kMiddle;
  product.found_inf = false;
  // Products that share A have the same m, k and seed, which gives them the same A.
  if (!c.shared_a) product.seed = c.seed + static_cast<int64_t>(index);
  return product;
}

bool is_empty(const GroupItem &item) {
  return item.m == 0 || item.n == 0;
}

}  // namespace

GroupRun::GroupRun(const GemmCase &c) : case_(c), scale_(1), found_inf_(1) {
  for (size_t i = 0; i < c.items.size(); ++i) {
    products_.push_back(std::make_unique<GemmRun>(product_of(c, i)));
  }
  scale_.upload({c.zero_scale ? 0.0f : c.scale});
}

mp_gemm_desc_t GroupRun::desc(const std::string &kernel) const {
  return descriptor(case_, 0, 0, 0, kernel);
}

std::vector<mp_gemm_group_item_t> GroupRun::items() const {
  std::vector<mp_gemm_group_item_t> items;
  for (const auto &product : products_) {
    items.push_back(product->group_item());
    if (case_.shared_a) items.back().A = items.front().A;
  }
  return items;
}

std::vector<std::string> GroupRun::kernels() const {
  std::vector<std::string> common;
  bool is_first = true;
  for (size_t i = 0; i < products_.size(); ++i) {
    if (is_empty(case_.items[i])) continue;
    const std::vector<std::string> own = products_[i]->kernels();
    if (is_first) common = own;
    is_first = false;
    std::erase_if(common, [&](const std::string &kernel) {
      return std::find(own.begin(), own.end(), kernel) == own.end();
    });
  }
  return common;
}

size_t GroupRun::workspace_bytes(const std::string &kernel) const {
  const mp_gemm_desc_t forced = desc(kernel);
  const std::vector<mp_gemm_group_item_t> all = items();
  size_t bytes = 0;
  require_ok(mp_gemm_grouped_workspace_size(context(), &forced, static_cast<int32_t>(all.size()),
                                            all.data(), nullptr, &bytes));
  return bytes;
}

mp_status_t GroupRun::launch(const std::string &kernel, size_t workspace_bytes) {
  launched_kernel_ = kernel;
  workspace_ = std::make_unique<DeviceBuffer<uint8_t>>(static_cast<int64_t>(workspace_bytes));
  for (const auto &product : products_) product->reset_outputs();
  found_inf_.upload({found_inf_start});

  const mp_gemm_desc_t d = desc(kernel);
  std::vector<mp_gemm_group_item_t> all = items();
  mp_epilogue_t e = mp_epilogue_default();
  if (case_.scale != 0.0f || case_.zero_scale) e.scale = scale_.data();
  if (case_.found_inf) e.stats.found_inf = found_inf_.data();
  const bool has_options = e.scale != nullptr || e.stats.found_inf != nullptr;
  const mp_status_t status =
      mp_gemm_grouped(context(), &d, static_cast<int32_t>(all.size()), all.data(),
                      has_options ? &e : nullptr, workspace_->data(), workspace_bytes, kStream);
  std::memset(static_cast<void *>(all.data()), 0xff, all.size() * sizeof all[0]);
  if (status == MP_SUCCESS) require_ok(mp_stream_sync(context(), kStream));
  return status;
}

std::string GroupRun::verify() const {
  bool raised = false;
  for (size_t i = 0; i < products_.size(); ++i) {
    const std::string damage = products_[i]->verify();
    if (!damage.empty()) return "items[" + std::to_string(i) + "]: " + damage;
    raised = raised || oracle::any_nonfinite(products_[i]->d().values);
  }
  const float wanted = case_.found_inf && raised ? 1.0f : found_inf_start;
  if (found_inf() != wanted) {
    return format("found_inf = %g, expected %g", static_cast<double>(found_inf()),
                  static_cast<double>(wanted));
  }
  return workspace_->guard_damage();
}

std::string GroupRun::verify_untouched() const {
  for (size_t i = 0; i < products_.size(); ++i) {
    const std::string damage = products_[i]->verify_untouched();
    if (!damage.empty()) return "items[" + std::to_string(i) + "]: " + damage;
  }
  return found_inf() != found_inf_start ? "a failed call has raised found_inf" : "";
}

std::vector<uint8_t> GroupRun::output_bits() const {
  std::vector<uint8_t> bits;
  for (const auto &product : products_) {
    const std::vector<uint8_t> more = product->output_bits();
    bits.insert(bits.end(), more.begin(), more.end());
  }
  return bits;
}

void check_group(const GemmCase &c) {
  GroupRun run(c);
  const auto is_stray = [](const GroupItem &item) { return !item.stray.empty(); };
  const bool may_decline = std::any_of(c.items.begin(), c.items.end(), is_stray);
  std::vector<std::string> kernels = run.kernels();
  kernels.push_back("");
  for (const std::string &kernel : kernels)
    check_launch(run, kernel, may_decline ? Misaligned::kYes : Misaligned::kNo);
}

void check_group(const std::string &line) {
  for (const GemmCase &c : gemm_cases(line)) check_group(c);
}

}  // namespace mptest
