// The 16-bit copy of the master weights, from mp_masters_to_model and from optimizer steps: rounded
// to nearest or stochastically, clamped or infinite, overflows counted.
#include <limits>

#include "checked_optimizer.h"
#include "oracle_rounding.h"

using namespace mptest;

namespace {

constexpr uint32_t kOverflow = MP_OPT_FLAG_MODEL_OVERFLOW;
constexpr uint32_t kStochastic = MP_OPT_FLAG_STOCHASTIC_ROUNDING;
constexpr uint32_t kPolicies[] = {0, kOverflow, kStochastic, kOverflow | kStochastic};

/// Rounding and overflow options of a copy.
struct Policy {
  uint32_t flags = 0;
  uint64_t seed = 0;
  int64_t t = 0;
};

/// Master weights and their copies, which are initially -7.
struct Copied {
  TensorSet master, model;

  Copied(const std::vector<TensorSpec> &specs, const std::vector<mp_dtype_t> &types)
      : master(with_dtype(specs, MP_FP32)), model(with_types(specs, types)) {
    model.fill(-7.0);
  }

  /// @return number of copies that overflowed
  int64_t copy(const Policy &policy, const float *found_inf = nullptr,
               mp_context_t context = mptest::context()) {
    const UniqueList from = master.list_in(context), to = model.list_in(context);
    const DeviceValue<int64_t> t(policy.t), overflows(100);
    mp_model_options_t options = mp_model_options_default();
    options.flags = policy.flags;
    options.rounding_seed = policy.seed;
    options.t = t.data();
    options.overflows = overflows.data();
    require_ok(mp_masters_to_model(from.get(), to.get(), found_inf, &options, kStream));
    return overflows.value() - 100;
  }

  std::vector<uint8_t> bits_after(const Policy &policy) {
    copy(policy);
    return model.bits();
  }

  static std::vector<TensorSpec> with_types(std::vector<TensorSpec> specs,
                                            const std::vector<mp_dtype_t> &types) {
    for (size_t t = 0; t < specs.size(); ++t) specs[t].dtype = types[t];
    return specs;
  }
};

/// Returns values around every limit of both types, infinities and NaN.
std::vector<double> special_weights() {
  const double most = std::numeric_limits<float>::max();
  return {0.0,       -0.0,       1.0,         -1.0,        0.1f,        65504.0,     65519.0,
          65520.0,   -65520.0,   65535.0,     65536.0,     -70000.0,    most,        -most,
          HUGE_VAL,  0x1p-14,    0x1p-24,     0x1.8p-24,   0x1p-25,     0x1.01p-25,  -0x1p-26,
          0x1p-126,  0x1p-133,   0x1p-149,    -0x1.8p-20,  0x1.fep+127, -0x1.ff8p15, 0x1.ffp+127,
          -HUGE_VAL, -0x1.1p-15, 0x1.ffep-15, std::nan("")};
}

/// Makes copies; compares each and the overflow count with the oracle.
void check_copies(Copied &c, const Policy &policy, mp_context_t context = mptest::context()) {
  const int64_t overflows = c.copy(policy, nullptr, context);
  const TensorValues weights = c.master.download(), got = c.model.download();
  int64_t wrong = 0, wanted_overflows = 0;
  for (size_t t = 0; t < got.size(); ++t) {
    for (size_t i = 0; i < got[t].size(); ++i) {
      const oracle::Copy wanted =
          oracle::copy_of(weights[t][i], c.model.spec(t).dtype, policy.flags,
                          oracle::rounding_word(policy.seed, policy.t, t, i));
      wrong += !same_value(got[t][i], wanted.value);
      wanted_overflows += wanted.overflows;
    }
  }
  CAPTURE(policy.flags, policy.seed, policy.t);
  CHECK(wrong == 0);
  CHECK(overflows == wanted_overflows);
}

}  // namespace

// ---------------------------------------------------------------------------- every policy

TEST_CASE("model: every copy is its rounded master weight", "[model][short]") {
  const std::vector<double> special = special_weights();
  const int64_t count = static_cast<int64_t>(special.size());
  for (const uint32_t flags : kPolicies) {
    for (const int64_t offset : {0, 1}) {
      Copied c({{MP_FP32, count, offset}, {MP_FP32, count, offset}}, {MP_FP16, MP_BF16});
      c.master.upload({special, special});
      check_copies(c, {flags, 1, 1});
      const std::vector<double> kept = c.master.download()[0];
      for (size_t i = 0; i < special.size(); ++i) CHECK(same_value(kept[i], special[i]));
    }
  }
}

TEST_CASE("model: the default rounds to nearest and clamps", "[model][short]") {
  const std::vector<double> special = special_weights();
  Copied c({{MP_FP32, static_cast<int64_t>(special.size()), 1}}, {MP_FP16});
  c.master.upload({special});
  const std::vector<uint8_t> wanted = c.bits_after({});
  c.model.fill(-7.0);
  require_ok(mp_masters_to_model(c.master.list(), c.model.list(), nullptr, nullptr, kStream));
  CHECK(c.model.bits() == wanted);
}

TEST_CASE("model: awkward sizes and alignments, parameters without a copy", "[model]") {
  const std::vector<TensorSpec> specs = awkward_tensors();
  Copied c(specs, mixed_models(specs.size()));
  Random random(1);
  c.master.upload(real_values(c.master.specs(), random, 1e5));
  const std::vector<uint8_t> before = c.master.bits();
  for (const uint32_t flags : kPolicies) check_copies(c, {flags, random.bits(), 3});
  CHECK(c.master.bits() == before);
}

TEST_CASE("model: empty lists and empty tensors are accepted", "[model][short]") {
  for (const size_t count : {0, 1, 3}) {
    Copied c(std::vector<TensorSpec>(count, {MP_FP32, 0}), std::vector<mp_dtype_t>(count, MP_BF16));
    for (const uint32_t flags : kPolicies) CHECK(c.copy({flags, 0, 0}) == 0);
  }
}

TEST_CASE("model: a raised flag leaves copies and count unchanged", "[model][short]") {
  for (const uint32_t flags : kPolicies) {
    Copied c({{MP_FP32, 33, 1}, {MP_FP32, 8}}, {MP_FP16, MP_BF16});
    c.master.fill(HUGE_VAL);
    const std::vector<uint8_t> before = c.model.bits();
    for (const float flag : {1.0f, 2.0f, NAN, -1.0f, HUGE_VALF, 0x1p-149f}) {
      const DeviceFloat found_inf(flag);
      CAPTURE(flags, flag);
      CHECK(c.copy({flags, 0, 0}, found_inf.data()) == 0);
      CHECK(c.model.bits() == before);
    }
    for (const float flag : {0.0f, -0.0f}) {
      const DeviceFloat found_inf(flag);
      c.model.fill(-7.0);
      CHECK(c.copy({flags, 0, 0}, found_inf.data()) == 41);
      CHECK(c.model.bits() != before);
    }
  }
}

TEST_CASE("model: overflows are counted over many chunks and calls", "[model][short]") {
  Copied c({{MP_FP32, 2 * kChunk + 5, 1}, {MP_FP32, 40}}, {MP_FP16, MP_BF16});
  TensorValues weights = constant_values(c.master.specs(), 1.0);
  for (const int64_t at : {int64_t{0}, kChunk - 1, kChunk, 2 * kChunk + 4})
    weights[0][static_cast<size_t>(at)] = -1e6;
  weights[1][39] = 1e6;  // representable in BF16
  c.master.upload(weights);
  const DeviceValue<int64_t> overflows(0);
  mp_model_options_t options = mp_model_options_default();
  options.overflows = overflows.data();
  for (int64_t call = 1; call <= 3; ++call) {
    require_ok(mp_masters_to_model(c.master.list(), c.model.list(), nullptr, &options, kStream));
    CHECK(overflows.value() == 4 * call);
  }
}

// ---------------------------------------------------------------------------- stochastic rounding

TEST_CASE("model: stochastic rounding depends only on seed, t, tensor and element", "[model]") {
  const UniqueContext one_sm = make_context(1);
  for (const mp_dtype_t dtype : kHalfTypes) {
    TensorValues weights(1);
    for (uint32_t bits = 0; bits < 1u << 16; ++bits) weights[0].push_back(decode(dtype, bits));
    for (const double range : {1e5, 0x1p-13}) {
      weights.push_back(random_reals(MP_FP32, 1 << 16, -range, range, 5));
      weights.push_back(weights[1]);
    }
    for (const int64_t offset : {0, 1}) {
      Copied c(std::vector<TensorSpec>(5, {MP_FP32, 1 << 16, offset}),
               std::vector<mp_dtype_t>(5, dtype));
      c.master.upload(weights);
      for (const Policy &policy : {Policy{kStochastic, 9, 5}, Policy{kStochastic | kOverflow, 9, 6},
                                   Policy{kStochastic, 9 | uint64_t{1} << 63, 5},
                                   Policy{kStochastic, 9, 5 | int64_t{1} << 40}})
        check_copies(c, policy);
      check_copies(c, {kStochastic, 9, 5}, one_sm.get());
    }
  }
}

// ---------------------------------------------------------------------------- in a step

namespace {

OptimizerSpec with_policy(OptimizerSpec spec, uint32_t flags) {
  spec.flags |= flags;
  spec.rounding_seed = 0xfeedface12345678;
  return spec;
}

void upload_weights(OptimizerRun &run, const TensorValues &weights) {
  run.master().upload(weights);
  if (run.model() != nullptr) run.model()->fill(-7.0);
}

/// Compares steps of `fused` with steps without a copy, each followed by mp_masters_to_model.
void check_composed(const OptimizerSpec &fused_spec, uint64_t seed) {
  OptimizerSpec plain_spec = fused_spec;
  plain_spec.model.clear();
  OptimizerRun fused(fused_spec), plain(plain_spec);
  Copied copied(fused_spec.grads, fused_spec.model);
  Random random(seed);
  const TensorValues weights = real_values(plain.master().specs(), random, 1e5);
  upload_weights(fused, weights);
  upload_weights(plain, weights);
  const DeviceValue<int64_t> fused_overflows(0), overflows(0);
  mp_step_options_t step = mp_step_options_default();
  step.model_overflows = fused_overflows.data();
  mp_model_options_t options = mp_model_options_default();
  options.flags = fused_spec.flags & (kOverflow | kStochastic);
  options.rounding_seed = fused_spec.rounding_seed;
  options.t = mp_optimizer_get_step_address(plain.get());
  options.overflows = overflows.data();
  for (const bool skips : {false, true, false, false}) {
    TensorValues grads = real_values(fused_spec.grads, random, 4.0);
    if (skips) grads[0][0] = HUGE_VAL;
    fused.grads().upload(grads);
    plain.grads().upload(grads);
    const DeviceFloat flag(skips ? 1.0f : 0.0f);
    require_ok(mp_scale_step(fused.get(), nullptr, &step, kStream));
    plain.step(nullptr, flag.data());
    require_ok(mp_masters_to_model(plain.master().list(), copied.model.list(), flag.data(),
                                   &options, kStream));
    CAPTURE(fused_spec.kind, fused_spec.flags, skips);
    CHECK(fused.master().bits() == plain.master().bits());
    CHECK(fused.model()->bits() == copied.model.bits());
    fused.model()->fill(-7.0);
    require_ok(mp_optimizer_write_model(fused.get(), kStream));
    CHECK(fused.model()->bits() == copied.model.bits());
    CHECK(fused_overflows.value() == overflows.value());
    CHECK(overflows.value() > 0);
  }
}

}  // namespace

TEST_CASE("model: a step and a separate copy equal the fused step", "[model][short]") {
  for (const uint32_t flags : kPolicies) {
    for (const OptimizerSpec &spec : all_kinds()) check_composed(with_policy(spec, flags), 2);
  }
}
