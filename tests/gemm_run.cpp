// Runs a GemmCase and compares it with the oracle: see gemm_run.h.
#define MP_ENABLE_EXPERIMENTAL
#include "gemm_run.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace mptest {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kSmallInteger = 4;  ///< |C|, |bias|, |aux| in integer fills

/// The largest |sum over k| for which the rest of the epilogue stays exact too.  For D in fp32 it
/// is kept below 2^14, so that dbias over 2^10 rows is exact.
int64_t exact_budget(const GemmCase &c) {
  const int digits = c.fill == Fill::kExact ? std::min(format_of(c.cd).digits, 14) : 24;
  const double others =
      std::abs(c.beta) * kSmallInteger + (c.bias == MP_DTYPE_NONE ? 0 : kSmallInteger);
  const double factor = std::abs(c.alpha * (c.scale == 0.0f ? 1.0f : c.scale));
  return static_cast<int64_t>((std::ldexp(1.0, digits) - others) / std::max(factor, 1.0));
}

void fill(Matrices &matrices, Random &random, bool real, int64_t range) {
  for (double &value : matrices.values) {
    value = real ? random.real(-1.0, 1.0) : static_cast<double>(random.integer(-range, range));
  }
}

void round_all(Matrices &matrices, mp_dtype_t dtype) {
  for (double &value : matrices.values) value = round_to(dtype, value);
}

/// Row i keeps the elements with (p + i) % period == 0 (fills.h).
void thin_out(Matrices &a, int64_t period) {
  for (int64_t item = 0; item < a.count; ++item) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t p = 0; p < a.cols; ++p) {
        if ((p + i) % period != 0) a.at(item, i, p) = 0.0;
      }
    }
  }
}

int64_t place_in(int64_t extent, Place place) {
  if (place == Place::kFirst) return 0;
  return place == Place::kMiddle ? extent / 2 : extent - 1;
}

}  // namespace

GemmRun::Layout GemmRun::layout(int64_t rows, int64_t cols, int64_t more_padding) const {
  const int64_t at_least = cols + case_.pad + more_padding;
  const int64_t ld = (at_least + case_.multiple - 1) / case_.multiple * case_.multiple;
  const int64_t room = case_.pad + (case_.stray.empty() ? 0 : 1);
  return {ld, case_.batch == 1 ? 0 : rows * ld + room * case_.multiple};
}

/// The batch item of that operand which lies one element further than the others, or -1.
int64_t GemmRun::stray_item(char operand) const {
  const std::string &stray = case_.stray;
  if (stray.find(operand) == std::string::npos) return -1;
  return std::stoll(stray.substr(stray.find_first_of("0123456789")));
}

GemmRun::GemmRun(const GemmCase &c)
    : case_(c), items_(4 * c.batch), scale_(1), dbias_(c.n), amax_(1), found_inf_(1) {
  // C and aux get rows of their own length where there is padding at all.
  const int64_t more = c.pad == 0 || c.in_place ? 0 : c.multiple;
  layout_a_ = c.op[0] == 'N' ? layout(c.m, c.k, 0) : layout(c.k, c.m, 0);
  layout_b_ = c.op[1] == 'N' ? layout(c.k, c.n, 0) : layout(c.n, c.k, 0);
  layout_c_ = layout(c.m, c.n, more);
  layout_d_ = layout(c.m, c.n, 0);
  layout_aux_ = layout(c.m, c.n, 2 * more);
  // aux has the stride of D, which therefore has to hold its longer rows.
  layout_d_.stride = layout_aux_.stride;
  if (c.in_place) layout_c_ = layout_d_;

  fill_inputs();
  expected_ = oracle::gemm(inputs_);
  upload_inputs();
}

void GemmRun::fill_inputs() {
  const GemmCase &c = case_;
  const bool real = c.fill == Fill::kReal;
  const ExactPlan plan = exact_plan(c.k, exact_budget(c), c.fill == Fill::kExact ? 8 : 255);
  Random random(static_cast<uint64_t>(c.seed));

  inputs_.count = c.batch;
  inputs_.alpha = c.alpha;
  inputs_.beta = c.beta;
  inputs_.scale = c.scale == 0.0f ? 1.0 : c.scale;
  inputs_.activation = c.activation;
  inputs_.a = Matrices(c.shared_a ? 1 : c.batch, c.m, c.k);
  inputs_.b = Matrices(c.shared_b ? 1 : c.batch, c.k, c.n);
  // With beta == 0 C must not be read: it holds NaN then.
  inputs_.c = Matrices(c.batch, c.m, c.n, kNan);
  fill(inputs_.a, random, real, plan.range);
  fill(inputs_.b, random, real, plan.range);
  if (c.beta != 0.0f) fill(inputs_.c, random, real, kSmallInteger);
  if (!real) thin_out(inputs_.a, plan.period);
  round_all(inputs_.a, c.ab);
  round_all(inputs_.b, c.ab);
  round_all(inputs_.c, c.cd);
  if (c.plant != Plant::kNone) plant_in_a();
  fill_epilogue_inputs(random);
}

void GemmRun::fill_epilogue_inputs(Random &random) {
  const GemmCase &c = case_;
  const bool real = c.fill == Fill::kReal;
  if (c.bias != MP_DTYPE_NONE) {
    Matrices bias(1, 1, c.n);
    fill(bias, random, real, kSmallInteger);
    round_all(bias, c.bias);
    inputs_.bias = bias.values;
  }
  if (reads_aux()) {
    inputs_.aux = Matrices(c.batch, c.m, c.n);
    fill(inputs_.aux, random, real, kSmallInteger);
    round_all(inputs_.aux, c.cd);
  }
}

/// B has no zeros where the planted element meets it: infinity gives infinities alone, so that the
/// NaN which it makes of the zeros that pad a tile would show in amax.
void GemmRun::plant_in_a() {
  const GemmCase &c = case_;
  const double value = c.plant == Plant::kNan ? kNan : std::numeric_limits<double>::infinity();
  const int64_t p = place_in(c.k, c.place);
  inputs_.a.at(place_in(inputs_.a.count, c.place), place_in(c.m, c.place), p) = value;
  for (int64_t item = 0; item < inputs_.b.count; ++item) {
    for (int64_t j = 0; j < c.n; ++j) {
      double &factor = inputs_.b.at(item, p, j);
      if (factor == 0.0) factor = 1.0;
    }
  }
}

void GemmRun::upload_inputs() {
  const GemmCase &c = case_;
  const auto place = [&](std::optional<DeviceMatrices> &to, mp_dtype_t dtype, const Matrices &from,
                         Layout layout, uint8_t padding, char name) {
    to.emplace(dtype, from.count, from.rows, from.cols, layout.ld, layout.stride, c.offset, padding,
               stray_item(name));
    to->upload(from);
  };
  place(a_, c.ab, c.op[0] == 'N' ? inputs_.a : transposed(inputs_.a), layout_a_, kPoison, 'a');
  place(b_, c.ab, c.op[1] == 'N' ? inputs_.b : transposed(inputs_.b), layout_b_, kPoison, 'b');
  place(c_, c.cd, inputs_.c, layout_c_, kPoison, 'c');
  place(d_, c.cd, inputs_.c, layout_d_, kCanary, 'd');
  if (c.aux) place(aux_, c.cd, expected_.z, layout_aux_, kCanary, 'x');
  if (!inputs_.bias.empty()) bias_.emplace(c.bias, inputs_.bias, c.offset);
  scale_.upload({c.scale});
  input_bits_ = input_bits();
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

bool GemmRun::reads_aux() const {
  return case_.activation == MP_ACT_DRELU || case_.activation == MP_ACT_DGELU;
}

bool GemmRun::is_exact() const {
  return case_.fill != Fill::kReal && case_.activation != MP_ACT_GELU &&
         case_.activation != MP_ACT_DGELU;
}

mp_gemm_desc_t GemmRun::desc(const std::string &kernel) const {
  const GemmCase &c = case_;
  mp_gemm_desc_t desc = mp_gemm_desc_default(c.m, c.n, c.k, c.ab, c.cd);
  desc.op_a = c.op[0] == 'N' ? MP_OP_N : MP_OP_T;
  desc.op_b = c.op[1] == 'N' ? MP_OP_N : MP_OP_T;
  desc.alpha = c.alpha;
  desc.beta = c.beta;
  desc.batch_count = static_cast<int32_t>(c.batch);
  desc.lda = layout_a_.ld;
  desc.ldb = layout_b_.ld;
  desc.ldc = layout_c_.ld;
  desc.ldd = layout_d_.ld;
  desc.stride_a = c.shared_a || c.pointers ? 0 : layout_a_.stride;
  desc.stride_b = c.shared_b || c.pointers ? 0 : layout_b_.stride;
  desc.stride_c = c.pointers ? 0 : layout_c_.stride;
  desc.stride_d = c.pointers ? 0 : layout_d_.stride;
  desc.kernel = kernel.empty() ? nullptr : kernel.c_str();
  return desc;
}

mp_gemm_group_item_t GemmRun::group_item() const {
  const GemmCase &c = case_;
  mp_gemm_group_item_t item = mp_gemm_group_item_default(c.m, c.n, c.k);
  item.lda = layout_a_.ld;
  item.ldb = layout_b_.ld;
  item.ldc = layout_c_.ld;
  item.ldd = layout_d_.ld;
  item.A = a_->item(0);
  item.B = b_->item(0);
  item.C = null_c ? nullptr : (c.in_place ? *d_ : *c_).item(0);
  item.D = d_->item(0);
  return item;
}

std::vector<std::string> GemmRun::kernels() const {
  const mp_gemm_desc_t any = desc("");
  std::vector<std::string> names;
  const char *name = nullptr;
  while (mp_gemm_kernel_name(context(), &any, static_cast<int32_t>(names.size()), &name) ==
         MP_SUCCESS) {
    names.push_back(name);
  }
  return names;
}

size_t GemmRun::workspace_bytes(const std::string &kernel) const {
  const mp_gemm_desc_t forced = desc(kernel);
  size_t bytes = 0;
  require_ok(mp_gemm_workspace_size(context(), &forced, &bytes));
  return bytes;
}

mp_epilogue_t GemmRun::epilogue() const {
  const GemmCase &c = case_;
  mp_epilogue_t e = mp_epilogue_default();
  e.activation = c.activation;
  if (c.scale != 0.0f) e.scale = scale_.data();
  if (bias_) {
    e.bias = bias_->data();
    e.bias_dtype = c.bias;
  }
  if (aux_) {
    e.aux = aux_->data();
    e.ld_aux = layout_aux_.ld == layout_d_.ld ? 0 : layout_aux_.ld;
  }
  if (c.dbias) e.dbias = dbias_.data();
  if (c.amax) e.amax = amax_.data();
  if (c.found_inf) e.found_inf = found_inf_.data();
  return e;
}

/// Whatever the call does not write keeps a NaN.
void GemmRun::reset_outputs() {
  const Matrices nothing(case_.batch, case_.m, case_.n, kNan);
  d_->upload(case_.in_place ? inputs_.c : nothing);
  if (aux_) aux_->upload(reads_aux() ? inputs_.aux : nothing);
  dbias_.upload(std::vector<float>(static_cast<size_t>(case_.n), static_cast<float>(kNan)));
  amax_.upload({amax_start});
  found_inf_.upload({found_inf_start});
  upload_pointers();
  reset_bits_ = output_bits();
}

mp_status_t GemmRun::launch(const std::string &kernel) {
  return launch(kernel, workspace_bytes(kernel));
}

mp_status_t GemmRun::launch(const std::string &kernel, size_t workspace_bytes) {
  case_.kernel = kernel;
  workspace_.emplace(static_cast<int64_t>(workspace_bytes));
  reset_outputs();
  const mp_gemm_desc_t d = desc(kernel);
  const mp_epilogue_t options = epilogue(), no_options = mp_epilogue_default();
  const bool has_options = std::memcmp(&options, &no_options, sizeof options) != 0;
  const mp_epilogue_t *const e = has_options ? &options : nullptr;
  mp_status_t status = MP_SUCCESS;
  if (case_.pointers) {
    void **const table = items_.data();
    void **const c = null_c ? nullptr : table + 2 * case_.batch;
    status = mp_gemm_batched(context(), &d, table, table + case_.batch, c, table + 3 * case_.batch,
                             e, workspace_->data(), workspace_bytes, kStream);
  } else {
    const void *const c = null_c ? nullptr : (case_.in_place ? *d_ : *c_).data();
    status = mp_gemm(context(), &d, a_->data(), b_->data(), c, d_->data(), e, workspace_->data(),
                     workspace_bytes, kStream);
  }
  if (status == MP_SUCCESS) require_ok(mp_stream_sync(context(), kStream));
  return status;
}

std::vector<uint8_t> GemmRun::input_bits() const {
  std::vector<uint8_t> bits = a_->download_bits();
  for (const auto &more : {b_->download_bits(), c_->download_bits()}) {
    bits.insert(bits.end(), more.begin(), more.end());
  }
  return bits;
}

std::vector<uint8_t> GemmRun::output_bits() const {
  std::vector<uint8_t> bits = d_->download_bits();
  const auto append = [&bits](const void *data, size_t bytes) {
    const uint8_t *const first = static_cast<const uint8_t *>(data);
    bits.insert(bits.end(), first, first + bytes);
  };
  if (aux_) append(aux_->download_bits().data(), aux_->download_bits().size());
  for (const DeviceBuffer<float> *const buffer : {&dbias_, &amax_, &found_inf_}) {
    const std::vector<float> values = buffer->download();
    append(values.data(), values.size() * sizeof(float));
  }
  return bits;
}

std::string GemmRun::repro() const {
  return "MP_REPRO=\"" + to_string(case_) + "\" mptests \"[repro]\"";
}

}  // namespace mptest
