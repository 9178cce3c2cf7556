// Tensor lists, scalers and optimizers for the tests of mp_scale_step.
#include "step_fixtures.h"

#include <bit>
#include <cstring>

namespace mptest {

// ---------------------------------------------------------------------------- ownership

UniqueScaler make_scaler(const mp_scaler_config_t &config) {
  return mptools::make_scaler(context(), config);
}

UniqueScaler make_scaler(mp_scaler_policy_t policy) {
  return make_scaler(mp_scaler_config_default(policy));
}

mp_scaler_state_t state_of(mp_scaler_t scaler) {
  auto state = initialized<mp_scaler_state_t>();
  require_ok(mp_scaler_get_state_sync(scaler, &state, kStream));
  return state;
}

void set_state(mp_scaler_t scaler, const mp_scaler_state_t &state) {
  require_ok(mp_scaler_set_state_sync(scaler, &state, kStream));
}

bool same_state(const mp_scaler_state_t &one, const mp_scaler_state_t &other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

bool same_state(const UniqueScaler &one, const UniqueScaler &other) {
  return same_state(state_of(one.get()), state_of(other.get()));
}

mp_step_outcome_t outcome_sync(const UniqueScaler &scaler, int64_t step) {
  require_ok(mp_stream_sync(context(), kStream));
  auto outcome = static_cast<mp_step_outcome_t>(77);  // not an enumerator
  require_ok(mp_scaler_query_step(scaler.get(), step, &outcome));
  return outcome;
}

float read_float(const float *device) {
  float value = 0.0f;
  copy_bytes(&value, device, sizeof value);
  return value;
}

void write_float(float *device, float value) {
  copy_bytes(device, &value, sizeof value);
}

float scale_of(const UniqueScaler &scaler) {
  return read_float(mp_scaler_get_scale_address(scaler.get()));
}

float flag_of(const UniqueScaler &scaler) {
  return read_float(mp_scaler_get_found_inf_address(scaler.get()));
}

void raise_flag(const UniqueScaler &scaler, float flag) {
  write_float(mp_scaler_get_found_inf_address(scaler.get()), flag);
}

bool same_bits(float x, float y) {
  return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

// ---------------------------------------------------------------------------- tensors

TensorSet::TensorSet(const std::vector<TensorSpec> &specs, mp_context_t context) : specs_(specs) {
  for (const TensorSpec &spec : specs_) {
    const bool absent = spec.dtype == MP_DTYPE_NONE;
    arrays_.emplace_back(absent ? MP_FP16 : spec.dtype, absent ? 0 : spec.numel, spec.offset);
  }
  list_ = list_in(context);
}

std::vector<void *> TensorSet::pointers() const {
  std::vector<void *> pointers;
  for (size_t t = 0; t < count(); ++t) {
    pointers.push_back(specs_[t].dtype == MP_DTYPE_NONE ? nullptr : arrays_[t].data());
  }
  return pointers;
}

UniqueList TensorSet::list_in(mp_context_t context) const {
  std::vector<int64_t> numel;
  std::vector<mp_dtype_t> dtypes;
  for (size_t t = 0; t < count(); ++t) {
    numel.push_back(specs_[t].numel);
    dtypes.push_back(arrays_[t].dtype());
  }
  const std::vector<void *> data = pointers();
  auto desc = initialized<mp_tensor_list_desc_t>();
  desc.count = static_cast<uint32_t>(count());
  desc.data = data.data();
  desc.numel = numel.data();
  desc.dtype = MP_FP32;  // used only if `dtypes` is NULL, which is allowed for an empty list
  desc.dtypes = dtypes.data();
  mp_tensor_list_t list = nullptr;
  require_ok(mp_tensor_list_create(&list, context, &desc));
  return UniqueList(list);
}

void TensorSet::upload(const TensorValues &values) {
  REQUIRE(values.size() == count());
  for (size_t t = 0; t < count(); ++t) {
    if (specs_[t].dtype != MP_DTYPE_NONE) arrays_[t].upload(values[t]);
  }
}

void TensorSet::fill(double value) {
  upload(constant_values(specs_, value));
}

TensorValues TensorSet::download() const {
  TensorValues values;
  for (const DeviceArray &array : arrays_) values.push_back(array.download());
  return values;
}

std::vector<uint8_t> TensorSet::bits() const {
  std::vector<uint8_t> all;
  for (const DeviceArray &array : arrays_) {
    const std::vector<uint8_t> bits = array.download_bits();
    all.insert(all.end(), bits.begin(), bits.end());
  }
  return all;
}

void TensorSet::inject(size_t t, int64_t at, uint32_t bits) {
  const size_t size = mp_dtype_size(specs_[t].dtype);
  uint8_t *const data = static_cast<uint8_t *>(arrays_[t].data());
  copy_bytes(data + static_cast<size_t>(at) * size, &bits, size);  // little-endian
}

namespace {

template <typename Make>
TensorValues filled(const std::vector<TensorSpec> &specs, Make make) {
  TensorValues values;
  for (const TensorSpec &spec : specs) {
    std::vector<double> &tensor = values.emplace_back(static_cast<size_t>(spec.numel));
    for (double &value : tensor) value = make();
  }
  return values;
}

}  // namespace

TensorValues integer_values(const std::vector<TensorSpec> &specs, Random &random, int64_t range) {
  return filled(specs, [&] { return static_cast<double>(random.integer(-range, range)); });
}

TensorValues real_values(const std::vector<TensorSpec> &specs, Random &random, double range) {
  return filled(specs, [&] { return random.real(-range, range); });
}

TensorValues constant_values(const std::vector<TensorSpec> &specs, double value) {
  return filled(specs, [&] { return value; });
}

std::vector<TensorSpec> with_dtype(std::vector<TensorSpec> specs, mp_dtype_t dtype) {
  for (TensorSpec &spec : specs) spec.dtype = dtype;
  return specs;
}

int count_differences(const TensorValues &got, const TensorValues &wanted) {
  int different = got.size() != wanted.size();
  for (size_t t = 0; t < wanted.size(); ++t) {
    different += got[t].size() != wanted[t].size();
    for (size_t i = 0; i < wanted[t].size(); ++i) different += !same_value(got[t][i], wanted[t][i]);
  }
  return different;
}

void inject_nonfinite(std::initializer_list<TensorSet *> sets, Random &random) {
  const std::vector<TensorSpec> &specs = (*sets.begin())->specs();
  const double special[] = {kInfinity, -kInfinity, kNaN};
  size_t t = 0;
  do {
    t = static_cast<size_t>(random.integer(0, static_cast<int64_t>(specs.size()) - 1));
  } while (specs[t].numel == 0);
  const int64_t at = random.integer(0, specs[t].numel - 1);
  const uint32_t bits = encode(specs[t].dtype, special[random.integer(0, 2)]);
  for (TensorSet *const set : sets) set->inject(t, at, bits);
}

bool upload_gradients(std::initializer_list<TensorSet *> sets, Random &random) {
  const TensorValues values =
      real_values((*sets.begin())->specs(), random, std::exp2(random.real(-3.0, 12.0)));
  for (TensorSet *const set : sets) set->upload(values);
  if (random.integer(0, 2) != 0) return false;
  inject_nonfinite(sets, random);
  return true;
}

std::vector<TensorSpec> awkward_tensors() {
  return {{MP_FP16, 0},
          {MP_FP16, 1, 3},
          {MP_BF16, 7, 1},
          {MP_FP32, 8},
          {MP_FP16, kChunk - 1, 1},
          {MP_FP32, 0, 1},
          {MP_BF16, kChunk},
          {MP_FP32, kChunk + 1, 1},
          {MP_FP16, 33333, 7},
          {MP_BF16, 9, 2},
          {MP_FP32, 2 * kChunk + 5},
          {MP_FP16, 8, 8},
          {MP_BF16, 555 * 3, 5},
          {MP_FP16, 0, 1}};
}

std::vector<TensorSpec> small_tensors() {
  return {{MP_FP16, 33, 1}, {MP_FP32, 0}, {MP_BF16, 40}, {MP_FP32, 7, 1}, {MP_FP16, 8}};
}

// ---------------------------------------------------------------------------- optimizers

mp_param_group_t sgd_hyper(float lr, float momentum, float dampening, float weight_decay) {
  mp_param_group_t hyper = mp_param_group_default(MP_OPT_SGD, lr);
  hyper.beta1 = momentum;
  hyper.dampening = dampening;
  hyper.weight_decay = weight_decay;
  return hyper;
}

mp_param_group_t adam_hyper(float lr, float weight_decay) {
  mp_param_group_t hyper = mp_param_group_default(MP_OPT_ADAM, lr);
  hyper.weight_decay = weight_decay;
  return hyper;
}

namespace {

std::vector<TensorSpec> model_specs(const OptimizerSpec &spec) {
  std::vector<TensorSpec> specs = spec.grads;
  for (size_t t = 0; t < specs.size(); ++t) specs[t].dtype = spec.model[t];
  return specs;
}

mp_tensor_list_t list_of(const std::optional<TensorSet> &tensors) {
  return tensors ? tensors->list() : nullptr;
}

}  // namespace

OptimizerRun::OptimizerRun(const OptimizerSpec &spec, mp_context_t context)
    : spec_(spec), grads_(spec.grads, context), master_(with_dtype(spec.grads, MP_FP32), context) {
  const std::vector<TensorSpec> &fp32 = master_.specs();
  if (!spec_.model.empty()) model_.emplace(model_specs(spec_), context);
  if (spec_.has_m && spec_.kind != MP_OPT_ADAGRAD && !spec_.has_own_moments) {
    m_.emplace(fp32, context).upload(constant_values(fp32, 0.0));
  }
  if (spec_.kind != MP_OPT_SGD && !spec_.has_own_moments) {
    const std::vector<TensorSpec> specs =
        spec_.kind == MP_OPT_NOVOGRAD ? std::vector<TensorSpec>(fp32.size(), {MP_FP32, 1}) : fp32;
    v_.emplace(specs, context).upload(constant_values(specs, 0.0));
  }
  if (spec_.has_extra) extra_.emplace(fp32, context).upload(constant_values(fp32, 0.0));
  const auto upload = [](const std::vector<float> &values) {
    return values.empty() ? nullptr : std::make_unique<DeviceBuffer<float>>(values);
  };
  lr_multipliers_ = upload(spec_.lr_multipliers);
  decay_multipliers_ = upload(spec_.decay_multipliers);

  mp_optimizer_desc_t desc = mp_optimizer_desc_default(spec_.kind);
  desc.flags = spec_.flags;
  desc.rounding_seed = spec_.rounding_seed;
  desc.num_groups = static_cast<uint32_t>(spec_.groups.size());
  desc.groups = spec_.groups.data();
  desc.tensor_group = spec_.tensor_group.empty() ? nullptr : spec_.tensor_group.data();
  desc.grads = grads_.list();
  desc.master = master_.list();
  desc.model = list_of(model_);
  desc.m = list_of(m_);
  desc.v = list_of(v_);
  desc.extra_grads = list_of(extra_);
  if (lr_multipliers_) desc.lr_multipliers = lr_multipliers_->data();
  if (decay_multipliers_) desc.decay_multipliers = decay_multipliers_->data();
  optimizer_ = mptools::make_optimizer(context, desc);
}

const mp_param_group_t &OptimizerRun::hyper_of(size_t t) const {
  return spec_.groups[spec_.tensor_group.empty() ? 0 : spec_.tensor_group[t]];
}

void OptimizerRun::step(const float *grad_scale, const float *found_inf) {
  require_ok(mp_optimizer_step(get(), grad_scale, found_inf, kStream));
}

void OptimizerRun::set_hyper(uint32_t group, const mp_param_group_t &hyper) {
  spec_.groups[group] = hyper;
  require_ok(mp_optimizer_set_group(get(), group, &hyper, kStream));
}

void OptimizerRun::set_lr_multipliers(const std::vector<float> &multipliers) {
  spec_.lr_multipliers = multipliers;
  copy_bytes(lr_multipliers_->data(), multipliers.data(), multipliers.size() * sizeof(float));
}

int64_t OptimizerRun::t() const {
  int64_t t = -1;
  require_ok(mp_optimizer_get_step_sync(get(), &t, nullptr, kStream));
  return t;
}

void OptimizerRun::set_t(int64_t t) {
  require_ok(mp_optimizer_set_step_sync(get(), t, nullptr, kStream));
}

OptimizerState OptimizerRun::state() const {
  const auto bits = [](const std::optional<TensorSet> &tensors) {
    return tensors ? tensors->bits() : std::vector<uint8_t>();
  };
  std::vector<float> rates;
  for (uint32_t group = 0; group < spec_.groups.size(); ++group) rates.push_back(lr(group));
  return {t(), rates, master_.bits(), bits(model_), bits(m_), bits(v_)};
}

// ---------------------------------------------------------------------------- steps

mp_step_options_t step_options(uint32_t flags, float max_grad_norm) {
  mp_step_options_t options = mp_step_options_default();
  options.flags = flags;
  options.max_grad_norm = max_grad_norm;
  return options;
}

StepRun::StepRun(const OptimizerSpec &spec, const std::optional<mp_scaler_config_t> &config)
    : run(spec) {
  if (config) scaler = make_scaler(*config);
  run.master().fill(1.0);
  if (run.model() != nullptr) run.model()->fill(-7.0);
}

void StepRun::inject(double value) {
  size_t t = 0;
  while (run.grads().spec(t).numel == 0) ++t;
  run.grads().inject(t, 0, encode(run.grads().spec(t).dtype, value));
}

mp_status_t StepRun::try_step(mp_step_options_t options, mp_scaler_t other) {
  options.found_inf = skipped.data();
  if (reports_norms && (options.flags & MP_STEP_FLAG_CHECKED) == 0) {
    options.grad_norm = grad_norm.data();
    options.tensor_norms = tensor_norms.data();
  }
  return mp_scale_step(run.get(), other != nullptr ? other : scaler.get(), &options, kStream);
}

void check_gradients(StepRun &side, const DeviceFloat &amax) {
  const mp_tensor_list_t grads = side.run.grads().list();
  float *const flag = mp_scaler_get_found_inf_address(side.used_scaler());
  require_ok(mp_check_nonfinite(grads, flag, kStream));
  require_ok(mp_amax(grads, amax.data(), nullptr, kStream));
}

void check_equal(const StepRun &one, const StepRun &other) {
  CHECK(one.run.state() == other.run.state());
  CHECK(one.skipped.value() == other.skipped.value());
  CHECK(same_value(one.grad_norm.value(), other.grad_norm.value()));
  const std::vector<float> norms = one.tensor_norms.download(),
                           others = other.tensor_norms.download();
  for (size_t t = 0; t < norms.size(); ++t) CHECK(same_value(norms[t], others[t]));
  if (!one.scaler || !other.scaler) return;
  CHECK(same_state(one.scaler, other.scaler));
  CHECK(same_bits(flag_of(one.scaler), 0.0f));
  CHECK(same_bits(scale_of(one.scaler), state_of(one.scaler.get()).scale));
  CHECK(same_bits(read_float(mp_scaler_get_inv_scale_address(one.scaler.get())),
                  read_float(mp_scaler_get_inv_scale_address(other.scaler.get()))));
}

}  // namespace mptest
