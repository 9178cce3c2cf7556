// The 16-bit copy of the master weights, from mp_masters_to_model and from the steps of optimizers.
#include <limits>

#include "checked_optimizer.h"

using namespace mptest;

namespace {

mp_model_options_t options_with(uint32_t flags) {
  mp_model_options_t options = mp_model_options_default();
  options.flags = flags;
  return options;
}

/// Masters and their copies, which begin as -7.
struct Copied {
  TensorSet master, model;

  Copied(const std::vector<TensorSpec> &specs, const std::vector<mp_dtype_t> &types)
      : master(with_dtype(specs, MP_FP32)), model(with_types(specs, types)) {
    model.upload(constant_values(model.specs(), -7.0));
  }

  void copy(uint32_t flags, const float *found_inf = nullptr) {
    const mp_model_options_t options = options_with(flags);
    require_ok(mp_masters_to_model(master.list(), model.list(), found_inf,
                                   flags != 0 ? &options : nullptr, kStream));
  }

  static std::vector<TensorSpec> with_types(std::vector<TensorSpec> specs,
                                            const std::vector<mp_dtype_t> &types) {
    for (size_t t = 0; t < specs.size(); ++t) specs[t].dtype = types[t];
    return specs;
  }
};

constexpr uint32_t kOverflow = MP_OPT_MODEL_OVERFLOW;

/// Around every limit of the two types, and what is no number.
std::vector<double> special_weights() {
  const double most = std::numeric_limits<float>::max();
  return {0.0,        -0.0,        1.0,         -1.0,        0.1f,      65504.0,
          65519.0,    65520.0,     -65520.0,    65535.0,     65536.0,   -70000.0,
          most,       -most,       HUGE_VAL,    0x1p-14,     0x1p-24,   0x1.8p-24,
          0x1p-25,    0x1.01p-25,  -0x1p-26,    0x1p-126,    0x1p-133,  0x1p-149,
          -0x1.8p-20, 0x1.fep+127, -0x1.ff8p15, 0x1.ffp+127, -HUGE_VAL, std::nan("")};
}

void check_copies(Copied &c, const TensorValues &weights, uint32_t flags) {
  const TensorValues got = c.model.download();
  int wrong = 0;
  for (size_t t = 0; t < got.size(); ++t) {
    for (size_t i = 0; i < got[t].size(); ++i) {
      wrong +=
          !same_value(got[t][i], oracle::model_of(weights[t][i], c.model.spec(t).dtype, flags));
    }
  }
  CAPTURE(flags);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("model: every copy is its master, rounded", "[model][strict]") {
  const std::vector<double> special = special_weights();
  const int64_t count = static_cast<int64_t>(special.size());
  for (const uint32_t flags : {0u, kOverflow}) {
    for (const int64_t offset : {0, 1}) {
      Copied c({{MP_FP32, count, offset}, {MP_FP32, count, offset}}, {MP_FP16, MP_BF16});
      c.master.upload({special, special});
      c.copy(flags);
      check_copies(c, {special, special}, flags);
      const std::vector<double> kept = c.master.download()[0];
      for (size_t i = 0; i < special.size(); ++i) CHECK(same_value(kept[i], special[i]));
    }
  }
}

TEST_CASE("model: awkward sizes, alignments and parameters without a copy", "[model]") {
  const std::vector<TensorSpec> specs = awkward_tensors();
  Copied c(specs, mixed_models(specs.size()));
  Random random(1);
  c.master.upload(real_values(c.master.specs(), random, 1e5));
  const std::vector<uint8_t> before = c.master.bits();
  for (const uint32_t flags : {0u, kOverflow}) {
    c.copy(flags);
    check_copies(c, c.master.download(), flags);
  }
  CHECK(c.master.bits() == before);
}

TEST_CASE("model: no tensors, or only empty ones", "[model][strict]") {
  for (const size_t count : {0, 1, 3}) {
    const std::vector<TensorSpec> specs(count, {MP_FP32, 0});
    Copied c(specs, std::vector<mp_dtype_t>(count, MP_BF16));
    c.copy(0);
  }
}

TEST_CASE("model: a raised flag leaves the copy alone", "[model][strict]") {
  Copied c({{MP_FP32, 33, 1}, {MP_FP32, 8}}, {MP_FP16, MP_BF16});
  c.master.upload(constant_values(c.master.specs(), 0.5));
  const std::vector<uint8_t> before = c.model.bits();
  for (const float flag : {1.0f, 2.0f, NAN, -1.0f, HUGE_VALF, 0x1p-149f}) {
    const DeviceFloat found_inf(flag);
    c.copy(0, found_inf.data());
    CAPTURE(flag);
    CHECK(c.model.bits() == before);
  }
  for (const float flag : {0.0f, -0.0f}) {
    const DeviceFloat found_inf(flag);
    c.model.upload(constant_values(c.model.specs(), -7.0));
    c.copy(0, found_inf.data());
    CHECK(c.model.download() == constant_values(c.model.specs(), 0.5));
  }
}

TEST_CASE("model: a step without a copy, then the copy, equals the step", "[model][strict]") {
  for (const uint32_t flags : {0u, kOverflow}) {
    for (OptimizerSpec fused_spec : all_kinds()) {
      fused_spec.flags |= flags;
      OptimizerSpec plain_spec = fused_spec;
      plain_spec.model.clear();
      OptimizerRun fused(fused_spec), plain(plain_spec);
      Copied copied(fused_spec.grads, fused_spec.model);
      fused.model()->upload(constant_values(fused.model()->specs(), -7.0));
      Random random(2);
      const TensorValues weights = real_values(plain.master().specs(), random, 1e5);
      fused.master().upload(weights);
      plain.master().upload(weights);
      const mp_model_options_t options = options_with(flags);
      for (const float found_inf : {0.0f, 1.0f, 0.0f}) {
        const TensorValues grads = real_values(fused_spec.grads, random, 4.0);
        fused.grads().upload(grads);
        plain.grads().upload(grads);
        const DeviceFloat flag(found_inf);
        fused.step(nullptr, flag.data());
        plain.step(nullptr, flag.data());
        require_ok(mp_masters_to_model(plain.master().list(), copied.model.list(), flag.data(),
                                       &options, kStream));
        CAPTURE(fused_spec.kind, flags, found_inf);
        CHECK(fused.master().bits() == plain.master().bits());
        CHECK(fused.model()->bits() == copied.model.bits());
      }
    }
  }
}
