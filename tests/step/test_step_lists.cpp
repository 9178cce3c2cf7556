// Steps on lists of any shape: empty tensors at each end or only empty ones, thousands of tensors
// of one element, and non-finite values in the last element of an odd tensor.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

OptimizerSpec with_tensors(OptimizerSpec spec, const std::vector<TensorSpec> &tensors) {
  spec.grads = tensors;
  spec.model = mixed_models(tensors.size());
  return spec;
}

bool has_elements(const std::vector<TensorSpec> &tensors) {
  for (const TensorSpec &tensor : tensors) {
    if (tensor.numel > 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("step lists: empty tensors first, last, in the middle and alone", "[step][short]") {
  const std::vector<std::vector<TensorSpec>> lists = {
      {{MP_FP16, 0}},
      {{MP_FP16, 0}, {MP_FP32, 0}, {MP_BF16, 0}},
      {{MP_FP16, 0}, {MP_FP16, 9, 1}},
      {{MP_BF16, 9, 1}, {MP_FP16, 0}},
      {{MP_FP32, 0}, {MP_FP16, 0}, {MP_BF16, 7}, {MP_FP16, 0}, {MP_FP32, 1, 3}, {MP_FP16, 0}}};
  for (const std::vector<TensorSpec> &tensors : lists) {
    for (const OptimizerSpec &spec : all_kinds()) {
      CAPTURE(spec.kind, spec.flags, tensors.size());
      CheckedRun checked(with_tensors(spec, tensors), 1);
      const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
      checked.fused_step(scaler.get());
      if (has_elements(tensors)) checked.overflowing_step(scaler.get());
      checked.fused_step(scaler.get());
      checked.step(0.25f);
    }
  }
}

// ---------------------------------------------------------------------------- odd tails

TEST_CASE("step lists: a non-finite last element of an odd, misaligned tensor skips",
          "[step][short]") {
  const mp_dtype_t types[] = {MP_FP16, MP_BF16, MP_FP32};
  const double values[] = {HUGE_VAL, -HUGE_VAL, std::nan("")};
  int64_t turn = 0;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const mp_dtype_t dtype : types) {
      for (const int64_t numel : {1, 7, 9, 257}) {
        const int64_t offset = 1 + turn % 7;
        const double value = values[turn++ % 3];
        OptimizerRun run(with_tensors(spec, {{MP_FP32, 8}, {dtype, numel, offset}, {dtype, 0}}));
        run.grads().upload(constant_values(run.grads().specs(), 1.0));
        run.master().upload(constant_values(run.master().specs(), 1.0));
        run.grads().inject(1, numel - 1, encode(dtype, value));
        const OptimizerState before = run.state();
        const UniqueScaler scaler = make_scaler(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
        require_ok(mp_scale_step(run.get(), scaler.get(), nullptr, kStream));
        CAPTURE(spec.kind, spec.flags, mp_dtype_name(dtype), numel, offset, value);
        CHECK(run.state() == before);
        CHECK(state_of(scaler.get()).skipped_nan == (std::isnan(value) ? 1 : 0));
        run.grads().inject(1, numel - 1, encode(dtype, 1.0));
        require_ok(mp_scale_step(run.get(), scaler.get(), nullptr, kStream));
        CHECK(run.t() == 1);
      }
    }
  }
}

// ---------------------------------------------------------------------------- many tensors

namespace {

/// Adjacent tensors of one element: each is the guard zone of its neighbors.
class Singles {
 public:
  Singles(mp_dtype_t dtype, const std::vector<double> &values) : array_(dtype, values) {
    std::vector<void *> data;
    for (size_t i = 0; i < values.size(); ++i) {
      data.push_back(static_cast<uint8_t *>(array_.data()) + i * mp_dtype_size(dtype));
    }
    list_ = mptools::make_list(context(), dtype, data, std::vector<int64_t>(values.size(), 1));
  }
  mp_tensor_list_t list() const { return list_.get(); }
  std::vector<double> download() const { return array_.download(); }
  void upload(const std::vector<double> &values) { array_.upload(values); }

 private:
  DeviceArray array_;
  UniqueList list_;
};

struct ManySingles {
  ManySingles(const OptimizerSpec &s, size_t n) : spec(s), count(n) {
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(spec.kind);
    desc.flags = spec.flags;
    desc.groups = spec.groups.data();
    desc.grads = grads.list();
    desc.master = master.list();
    desc.model = model.list();
    desc.m = spec.kind == MP_OPT_ADAGRAD ? nullptr : m.list();
    desc.v = spec.kind == MP_OPT_SGD ? nullptr : v.list();
    optimizer = mptools::make_optimizer(context(), desc);
  }

  std::vector<double> reals(double range) {
    std::vector<double> values(count);
    for (double &value : values) value = random.real(-range, range);
    return values;
  }

  void step() { require_ok(mp_scale_step(optimizer.get(), nullptr, nullptr, kStream)); }

  /// Counts wrong results of the first step, from weights w and zero states.
  int count_wrong(const std::vector<double> &w) const {
    const std::vector<double> g = grads.download(), w1 = master.download();
    const std::vector<double> m1 = m.download(), v1 = v.download(), copy = model.download();
    const oracle::TensorStep s{
        .kind = spec.kind, .flags = spec.flags, .hyper = spec.groups[0], .chunk_elems = kChunk};
    int wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      Bounded tensor_v = 0.0;
      const oracle::Weight wanted =
          oracle::step_tensor(s, {g[i]}, {}, {{w[i], 0.0, 0.0}}, tensor_v)[0];
      wrong += !within(wanted.w, w1[i]) || !within(wanted.m, m1[i]) ||
               !within(spec.kind == MP_OPT_NOVOGRAD ? tensor_v : wanted.v, v1[i]) ||
               !same_value(copy[i], oracle::model_of(w1[i], MP_FP16, spec.flags));
    }
    return wrong;
  }

  const OptimizerSpec spec;
  const size_t count;
  Random random{5};
  const std::vector<double> zeros = std::vector<double>(count, 0.0);
  Singles grads{MP_FP16, zeros}, master{MP_FP32, reals(2.0)}, model{MP_FP16, zeros};
  Singles m{MP_FP32, zeros}, v{MP_FP32, zeros};
  UniqueOptimizer optimizer;
};

void check_singles(const OptimizerSpec &spec, size_t count) {
  CAPTURE(spec.kind, spec.flags, count);
  ManySingles many(spec, count);
  const std::vector<double> start = many.master.download();
  std::vector<double> grads = many.reals(8.0);
  many.grads.upload(grads);
  many.step();
  CHECK(many.count_wrong(start) == 0);

  const std::vector<double> before = many.master.download();
  grads.back() = std::nan("");
  many.grads.upload(grads);
  many.step();
  CHECK(many.master.download() == before);
}

}  // namespace

TEST_CASE("step lists: thousands of tensors of one element", "[step]") {
  for (const OptimizerSpec &spec : all_kinds()) check_singles(spec, 1000);
  for (const OptimizerSpec &spec : {adamw_spec(), lamb_spec()}) check_singles(spec, 10000);
}
