// Losses of single elements against fp64: every output of mp_loss within its running error.
#include "tests/step/step_fixtures.h"
#include "tests/support/grad_stats.h"
#include "tests/support/running_error.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr mp_loss_kind_t kKinds[] = {MP_LOSS_MSE,   MP_LOSS_L1,        MP_LOSS_BCE_WITH_LOGITS,
                                     MP_LOSS_HUBER, MP_LOSS_SMOOTH_L1, MP_LOSS_LINEAR};

struct LossCase {
  mp_loss_desc_t desc;
  std::vector<double> x, t, weights;  ///< no weights: NULL
  float scale = 0.0f;                 ///< 0: NULL
  int64_t offset = 0;                 ///< elements by which everything misses 256-byte alignment
  bool in_place = false;
  bool no_prediction = false;  ///< pass NULL

  bool is_ignored(size_t i) const {
    return (desc.flags & MP_LOSS_FLAG_IGNORE_TARGET) != 0 && same_value(t[i], desc.ignore_target);
  }
};

struct LossResult {
  std::vector<double> element_loss, dprediction;
  float loss;
};

LossResult run(const LossCase &c, mp_context_t context = mptest::context()) {
  const mp_loss_desc_t &d = c.desc;
  const DeviceArray x(d.dtype, c.x, c.offset), t(d.dtype_target, c.t, c.offset);
  const DeviceArray weights(MP_FP32, c.weights, c.offset);
  const DeviceArray beside(d.dtype, d.count, c.offset), element_loss(MP_FP32, d.count, c.offset);
  const DeviceArray &dx = c.in_place ? x : beside;
  const DeviceFloat scale(c.scale), loss(-1.0f);
  const DeviceWorkspace workspace(mp_loss_workspace_size, context, &d);
  CHECK(workspace.bytes() <= 16384);
  const GradStats stats;
  auto tensors = initialized<mp_loss_tensors_t>();
  tensors.prediction = c.no_prediction ? nullptr : x.data();
  tensors.target = t.data();
  tensors.weights = c.weights.empty() ? nullptr : static_cast<const float *>(weights.data());
  tensors.loss_scale = c.scale == 0.0f ? nullptr : scale.data();
  tensors.element_loss = static_cast<float *>(element_loss.data());
  tensors.loss = loss.data();
  tensors.dprediction = dx.data();
  tensors.stats = stats.pointers();
  require_ok(mp_loss(context, &d, &tensors, workspace.data(), workspace.bytes(), kStream));
  stats.check(dx.download());
  return {element_loss.download(), dx.download(), loss.value()};
}

// ---------------------------------------------------------------------------- oracle

struct Expected {
  Bounded loss, slope;
};

/// e / (1 + e) of e = exp(-|x|), which is good to 1.1 ulp.
Bounded rest_of(double x) {
  const Bounded e = exp(Bounded(-std::fabs(x)));
  return e / (Bounded(1.0) + e);
}

Expected expected(const mp_loss_desc_t &d, double x, double t) {
  const mp_loss_kind_t kind = d.kind;
  if (kind == MP_LOSS_LINEAR) return {Bounded(x) * t, Bounded(t)};
  if (std::isnan(x) || std::isnan(t)) return {Bounded(kNaN), Bounded(kNaN)};
  const Bounded difference = Bounded(x) - t;
  if (kind == MP_LOSS_MSE) return {difference * difference, difference * 2.0};
  if (kind == MP_LOSS_L1) {
    if (std::isinf(difference.value)) return {Bounded(kInfinity), Bounded(kNaN)};
    return {{std::fabs(difference.value), difference.error}, x > t ? 1.0 : x < t ? -1.0 : 0.0};
  }
  if (kind == MP_LOSS_HUBER || kind == MP_LOSS_SMOOTH_L1) {
    const double delta = d.delta;
    if (std::isinf(difference.value)) return {Bounded(kInfinity), Bounded(kNaN)};
    const Bounded near(std::clamp(difference.value, -delta, delta), difference.error);
    const Bounded slope = kind == MP_LOSS_HUBER ? near : near / delta;
    return {slope * (difference - near * 0.5), slope};
  }
  if (x == kInfinity) return {Bounded(kNaN), Bounded(kNaN)};
  const Bounded u =
      x >= 0.0 ? t == 0.0 || t == 1.0 ? Bounded(1.0 - t) : Bounded(1.0) - t : Bounded(t);
  if (x == -kInfinity) return {Bounded(t == 0.0 ? 0.0 : kInfinity * t), Bounded(-t)};
  const Bounded far = u.value == 0.0 ? Bounded(0.0) : Bounded(std::fabs(x)) * u;
  const Bounded slope = u.value == 0.0 ? rest_of(x) : rest_of(x) - u;
  return {far + log1p(exp(Bounded(-std::fabs(x)))),
          x >= 0.0 ? Bounded(-slope.value, slope.error) : slope};
}

void check(const LossCase &c) {
  const mp_loss_desc_t &d = c.desc;
  CAPTURE(d.kind, d.count, mp_dtype_name(d.dtype), mp_dtype_name(d.dtype_target), d.reduction,
          d.flags, c.offset, c.in_place, c.scale, c.weights.size());
  const LossResult got = run(c);
  int64_t counted = 0, wrong = 0;
  for (size_t i = 0; i < c.x.size(); ++i) counted += !c.is_ignored(i);
  const double divisor = d.reduction == MP_LOSS_REDUCTION_MEAN ? static_cast<double>(counted) : 1.0;
  double sum = 0.0;
  for (size_t i = 0; i < c.x.size(); ++i) {
    sum += got.element_loss[i];
    const double weight = c.weights.empty() ? 1.0 : c.weights[i];
    if (c.is_ignored(i) || weight == 0.0) {
      wrong += got.element_loss[i] != 0.0 || got.dprediction[i] != 0.0;
      continue;
    }
    const Expected e = expected(d, c.x[i], c.t[i]);
    const Bounded all = Bounded(d.weight) * weight;
    const Bounded factor = Bounded(c.scale == 0.0f ? 1.0 : c.scale) * d.weight / divisor * weight;
    const bool is_finite = std::isfinite(e.loss.value) && std::isfinite(e.slope.value);
    if (!is_finite) {
      wrong += !same_value(e.loss.value * d.weight * weight, got.element_loss[i]);
      continue;  // of slopes below
    }
    wrong += !within(all * e.loss, got.element_loss[i]);
    wrong += !within(factor * e.slope, got.dprediction[i], d.dtype);
  }
  CHECK(wrong == 0);
  CHECK(within(rounded(sum / divisor, 0.0), got.loss));  // the sum in fp64, rounded once
}

LossCase random_case(mp_loss_kind_t kind, int64_t count, mp_dtype_t dtype, mp_dtype_t target,
                     uint64_t seed) {
  Random random(seed);
  LossCase c;
  c.desc = mp_loss_desc_default(kind, count, dtype);
  c.desc.dtype_target = target;
  c.desc.delta = static_cast<float>(random.real(0.5, 6.0));
  for (int64_t i = 0; i < count; ++i) {
    c.x.push_back(round_to(dtype, random.real(-6.0, 6.0)));
    const double t =
        kind == MP_LOSS_BCE_WITH_LOGITS ? random.real(0.0, 1.0) : random.real(-6.0, 6.0);
    c.t.push_back(round_to(target, random.integer(0, 3) == 0 ? std::round(t) : t));
  }
  return c;
}

LossCase element(mp_loss_kind_t kind, double x, double t) {
  LossCase c;
  c.desc = mp_loss_desc_default(kind, 1, MP_FP32);
  c.x = {x};
  c.t = {t};
  return c;
}

}  // namespace

TEST_CASE("loss: all kinds, types and numbers of elements", "[loss][short]") {
  uint64_t seed = 0;
  for (const mp_loss_kind_t kind : kKinds) {
    for (const mp_dtype_t dtype : kDtypes) {
      for (const mp_dtype_t target : kDtypes) {
        for (const int64_t count : {1, 7, 8, 2047, 2048, 2049, 5000}) {
          LossCase c = random_case(kind, count, dtype, target, ++seed);
          check(c);
          c.desc.reduction = MP_LOSS_REDUCTION_SUM;
          c.offset = 3;
          c.in_place = true;
          c.scale = 1024.0f;
          c.desc.weight = -0.75f;
          check(c);
        }
      }
    }
  }
}

TEST_CASE("loss: more elements than blocks", "[loss]") {
  LossCase c = random_case(MP_LOSS_MSE, 2048 * 1024 + 77, MP_FP16, MP_FP16, 100);
  check(c);
  c.desc.flags = MP_LOSS_FLAG_IGNORE_TARGET;
  c.desc.ignore_target = 2.0f;
  check(c);
}

TEST_CASE("loss: weights, ignored targets and the loss scale", "[loss][short]") {
  for (const mp_loss_kind_t kind : kKinds) {
    for (const double ignored : {1.0, -100.0, kNaN}) {
      LossCase c = random_case(kind, 4100, MP_FP16, MP_FP32, 200);
      Random random(201);
      for (size_t i = 0; i < c.x.size(); ++i)
        c.weights.push_back(static_cast<double>(random.integer(0, 3)));
      for (size_t i = 0; i < c.t.size(); i += 5) c.t[i] = ignored;
      c.desc.flags = MP_LOSS_FLAG_IGNORE_TARGET;
      c.desc.ignore_target = static_cast<float>(ignored);
      c.scale = 256.0f;
      for (const mp_loss_reduction_t reduction : {MP_LOSS_REDUCTION_MEAN, MP_LOSS_REDUCTION_SUM}) {
        c.desc.reduction = reduction;
        check(c);
      }
      for (double &t : c.t) t = ignored;  // no element counts
      const LossResult none = run(c);
      CHECK(none.loss == 0.0f);
      c.desc.reduction = MP_LOSS_REDUCTION_MEAN;
      CHECK(std::isnan(run(c).loss));
      CHECK(run(c).dprediction == std::vector<double>(c.x.size(), 0.0));
    }
  }
}

TEST_CASE("loss: a gradient of the caller is multiplied by S and converted", "[loss][short]") {
  LossCase c = random_case(MP_LOSS_LINEAR, 3000, MP_FP16, MP_FP32, 400);
  CHECK(c.desc.reduction == MP_LOSS_REDUCTION_SUM);
  Random random(401);
  for (double &t : c.t) t = static_cast<double>(random.integer(-200, 200));
  c.t[5] = 4096.0;  // overflows in fp16 after multiplication by S
  c.scale = 32.0f;
  c.desc.weight = 0.5f;
  for (const bool no_prediction : {true, false}) {
    c.no_prediction = no_prediction;
    const LossResult got = run(c);
    int64_t wrong = 0;
    for (size_t i = 0; i < c.t.size(); ++i)
      wrong += got.dprediction[i] != (i == 5 ? kInfinity : 16.0 * c.t[i]);
    CHECK(wrong == 0);
    CHECK((got.loss == 0.0f) == no_prediction);
  }
}

TEST_CASE("loss: infinities and NaN", "[loss][short]") {
  for (const mp_loss_kind_t kind : kKinds) {
    for (const double x : {kInfinity, -kInfinity, kNaN, 1.0, 20.0, -60.0, 85.0}) {
      for (const double t : {0.0, 1.0, 0.5, kNaN}) {
        check(element(kind, x, t));
        LossCase c = element(kind, x, t);
        const double gradient = run(c).dprediction[0];
        const bool is_masked = kind == MP_LOSS_BCE_WITH_LOGITS && x == -kInfinity;
        CAPTURE(kind, x, t);
        const bool reads_x = kind != MP_LOSS_LINEAR;
        CHECK(std::isfinite(gradient) ==
              (std::isfinite(t) && (std::isfinite(x) || is_masked || !reads_x)));
        if (is_masked && !std::isnan(t)) CHECK(gradient == -t);
        // A weight of 0 leaves nothing of an infinite loss; NaN stays.
        const bool is_nan = std::isnan(run(c).element_loss[0]);
        c.desc.weight = 0.0f;
        CHECK((is_nan ? std::isnan(run(c).element_loss[0]) : run(c).element_loss[0] == 0.0));
        if (!std::isnan(gradient)) CHECK(run(c).dprediction[0] == 0.0);
        // An element that is weighted out is not looked at.
        c.weights = {0.0};
        CHECK(run(c).element_loss[0] == 0.0);
        CHECK(run(c).dprediction[0] == 0.0);
      }
    }
  }
}

TEST_CASE("loss: equal bits on devices of all sizes", "[loss][short]") {
  const LossCase c = random_case(MP_LOSS_BCE_WITH_LOGITS, 30000, MP_BF16, MP_FP32, 300);
  const UniqueContext one_sm = make_context(1);
  const LossResult all = run(c), again = run(c, one_sm.get());
  CHECK(again.dprediction == all.dprediction);
  CHECK(same_bits(again.loss, all.loss));
}
