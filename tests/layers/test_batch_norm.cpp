// Batch normalization, forward, against fp64.
//
// Error of the statistics in fp32 (u = 2^-24), with X = max |x| and R = max x - min x.  Groups of 4
// rows are combined by Chan's formulas, at most kCombined times until the result; the remaining
// steps are in fp64.
//   mean      The mean of 4 rows is the first row plus the mean of the differences from it.  It
//             takes 7 roundings of at most 4 R / 3; its error is at most u X + 10 u R.  Combining
//             is a weighted mean, which does not increase the errors of its parts; it adds 5 u R
//             for the weighted difference and u X for the sum:
//             E = u X + 10 u R + kCombined u (X + 5 R).
//   variance  Squared deviations delta^2 w, where w is at most the smaller count.  The error of
//             delta is e <= 2 E + u R.  In a chain of parts the sum of w is at most n, and there
//             are three chains (thread, group, block).  By Cauchy-Schwarz, the sum of 2 delta e w
//             is at most 2 e sqrt(3) n sigma, and that of e^2 w is 3 n e^2; the mean of a group
//             adds n E^2.  Every term takes at most 12 roundings and kCombined additions.
#include "batch_norm_layer.h"

using namespace mptest;
using namespace mptest::batch_norm;

namespace {

/// A thread with 20 rows has 5 groups; then 8 threads and at most 32 of their groups are combined.
constexpr double kCombined = 5 + 7 + 32;
int64_t bounded_rows(int64_t channels) {
  return 512 * 20 * (channels <= 8 ? 256 : 32);  // row blocks, rows per thread, threads per column
}

struct Statistics {
  Bounded mean, var;
  double unbiased;  ///< var rows / (rows - 1)
};

Statistics statistics(const Layer &l, int64_t channel) {
  REQUIRE(l.rows() <= bounded_rows(l.channels()));
  const double n = static_cast<double>(l.rows());
  double sum = 0.0, low = kInfinity, high = -kInfinity;
  for (int64_t i = 0; i < l.rows(); ++i) {
    const double x = l.x.at(0, i, channel);
    sum += x;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  const double mean = sum / n;
  double squares = 0.0;
  for (int64_t i = 0; i < l.rows(); ++i) {
    squares += (l.x.at(0, i, channel) - mean) * (l.x.at(0, i, channel) - mean);
  }
  const double u = unit_roundoff(MP_FP32), sigma = std::sqrt(squares / n);
  const double largest = std::max(std::fabs(low), std::fabs(high)), range = high - low;
  const double mean_error = u * (largest + 10.0 * range) + kCombined * u * (largest + 5.0 * range);
  const double delta_error = 2.0 * mean_error + u * range;
  const double var_error = 2.0 * delta_error * std::sqrt(3.0) * sigma +
                           3.0 * delta_error * delta_error + mean_error * mean_error +
                           (kCombined + 12.0) * u * sigma * sigma;
  return {rounded(mean, mean_error), rounded(squares / n, var_error), squares / (n - 1.0)};
}

Bounded inverse_std(const Bounded &var, double epsilon) {
  return Bounded(1.0) / sqrt(var + Bounded(epsilon));
}

Bounded activated(const Bounded &z, mp_activation_t activation) {
  if (activation == MP_ACT_NONE) return z;
  return {std::max(z.value, 0.0), z.error};  // clamping does not increase the error
}

void check_y(const Layer &l, const Vector &y, const std::vector<Bounded> &mean,
             const std::vector<Bounded> &inv_std) {
  const struct { const std::vector<Bounded> &mean, &inv_std; } statistics{mean, inv_std};
  std::vector<Bounded> wanted;
  for (int64_t i = 0; i < l.rows(); ++i)
    for (int64_t j = 0; j < l.channels(); ++j)
      wanted.push_back(activated(normalized(l, statistics, i, j), l.desc.activation));
  CHECK(count_outside(wanted, y, l.desc.dtype) == 0);
}

/// Checks all outputs of the forward pass.
void check_training(const Layer &l) {
  const Trained got = train(l);
  const Bounded momentum = l.desc.momentum, rest = Bounded(1.0) - momentum;
  std::vector<Bounded> mean, inv_std;
  for (int64_t j = 0; j < l.channels(); ++j) {
    const size_t c = static_cast<size_t>(j);
    const Statistics s = statistics(l, j);
    mean.push_back(s.mean);
    inv_std.push_back(inverse_std(s.var, l.desc.epsilon));
    CAPTURE(j, s.mean.value, s.mean.error, got.mean[c], s.var.value, s.var.error, got.inv_std[c]);
    CHECK(within(mean.back(), got.mean[c]));
    CHECK(within(inv_std.back(), got.inv_std[c]));
    CHECK(within(rest * l.running_mean[c] + momentum * s.mean, got.running_mean[c]));
    if (l.rows() == 1) {
      CHECK(got.running_var[c] == l.running_var[c]);
      continue;
    }
    const Bounded unbiased(s.unbiased, s.var.error * s.unbiased / s.var.value);
    CHECK(within(rest * l.running_var[c] + momentum * unbiased, got.running_var[c]));
  }
  check_y(l, got.y, mean, inv_std);
}

}  // namespace

// ---------------------------------------------------------------------------- forward

TEST_CASE("batch norm: training is within bounds for all types and shapes",
          "[layers][batch_norm]") {
  check_shapes(check_training);
}

TEST_CASE("batch norm: training is within bounds for small and unaligned tensors",
          "[layers][batch_norm][short]") {
  check_small(check_training);
}

TEST_CASE("batch norm: more rows than partial sums", "[layers][batch_norm]") {
  check_training(random_layer(MP_FP16, 2'200'000, 1, 201));
}

TEST_CASE("batch norm: a large mean does not increase the error of a small variance",
          "[layers][batch_norm][short]") {
  // E[x^2] - E[x]^2 in fp32 would have an error of about 2^-24 mean^2, at least the variance.
  for (const double mean : {4000.0, -10000.0}) {
    Layer l = random_layer(MP_FP32, 4000, 9, 202, mean);
    const Statistics s = statistics(l, 0);
    CAPTURE(mean, s.var.value, s.var.error);
    REQUIRE(s.var.error < 0.25 * s.var.value);
    check_training(l);
  }
}

TEST_CASE("batch norm: momentum 0 and 1, absent running statistics",
          "[layers][batch_norm][short]") {
  Layer l = random_layer(MP_FP32, 64, 10, 205);
  const Vector old_mean = l.running_mean, old_var = l.running_var;
  l.desc.momentum = 0.0f;
  const Trained kept = train(l);
  CHECK(kept.running_mean == old_mean);
  CHECK(kept.running_var == old_var);
  l.desc.momentum = 1.0f;
  CHECK(train(l).running_mean == kept.mean);
  l.has_running = false;
  CHECK(train(l).y == kept.y);
}

TEST_CASE("batch norm: results have the same bits on any number of SMs",
          "[layers][batch_norm][short]") {
  const Layer l = random_layer(MP_FP16, 1500, 70, 206);
  const Trained all = train(l);
  CHECK(train(l) == all);
  const UniqueContext one_sm = make_context(1);
  CHECK(train(l, one_sm.get()) == all);
}

// ---------------------------------------------------------------------------- inference

TEST_CASE("batch norm: inference is within bounds", "[layers][batch_norm][short]") {
  check_small([](const Layer &l) {
    const DeviceArray x(l.desc.dtype, l.x.values, l.offset), y(l.desc.dtype, x.size(), l.offset);
    const Floats gamma(l.gamma, l.offset), beta(l.beta, l.offset);
    const Floats mean(l.running_mean, l.offset), var(l.running_var, l.offset);
    const auto infer = [&](void *out) {
      mp_batchnorm_tensors_t t = tensors_of(x, gamma, beta, l);
      t.running_mean = mean.data();
      t.running_var = var.data();
      t.y = out;
      require_ok(mp_batchnorm_forward_inference(context(), &l.desc, &t, kStream));
    };
    infer(y.data());
    std::vector<Bounded> means, inv_stds;
    for (size_t c = 0; c < l.gamma.size(); ++c) {
      means.emplace_back(l.running_mean[c]);
      inv_stds.push_back(inverse_std(l.running_var[c], l.desc.epsilon));
    }
    check_y(l, y.download(), means, inv_stds);
    infer(x.data());
    CHECK(x.download_bits() == y.download_bits());
  });
}

// ---------------------------------------------------------------------------- non-finite values

TEST_CASE("batch norm: a non-finite value makes only its channel NaN",
          "[layers][batch_norm][short]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const double bad : {kNaN, kInfinity, -kInfinity})
      for (const mp_activation_t activation : kActivations) {
        Layer l = random_layer(dtype, 90, 12, 800);
        l.desc.activation = activation;
        const Trained clean = train(l);
        l.x.at(0, 77, 5) = bad;
        const Trained got = train(l);
        const Gradients grads = run_backward(l, {got.mean, got.inv_std}, random_dy(l, 801));
        CAPTURE(mp_dtype_name(dtype), bad, activation);
        CHECK(!std::isfinite(got.mean[5]));
        CHECK(std::isnan(got.inv_std[5]));
        CHECK(got.running_mean[5] == l.running_mean[5]);
        CHECK(got.running_var[5] == l.running_var[5]);
        CHECK(std::isnan(grads.dgamma[5]));
        for (size_t i = 0; i < got.y.size(); ++i) {
          CHECK((i % 12 == 5 ? std::isnan(got.y[i]) : got.y[i] == clean.y[i]));
          CHECK((i % 12 == 5 ? std::isnan(grads.dx[i]) : std::isfinite(grads.dx[i])));
        }
      }
}

TEST_CASE("batch norm: non-finite batch statistics do not update the running ones",
          "[layers][batch_norm][short]") {
  // Channels: finite; an infinity; a NaN; a mean of 0 and a variance that overflows fp32.
  for (const float momentum : {0.0f, 0.1f, 1.0f}) {
    Layer l = random_layer(MP_FP32, 2, 4, 806);
    l.desc.momentum = momentum;
    l.x.values = {1.0, kInfinity, kNaN, round_to(MP_FP32, 1e30),
                  3.0, 1.0,       1.0,  -round_to(MP_FP32, 1e30)};
    l.running_mean = {4.0, 5.0, 6.0, 7.0};
    l.running_var = {1.0, 2.0, 3.0, 4.0};
    const Trained got = train(l);
    CAPTURE(momentum);
    const double m = momentum, rest = 1.0f - momentum;
    CHECK(within(rounded(rest * 4.0 + m * 2.0, 0.0, 2.0), got.running_mean[0]));
    CHECK(within(rounded(rest * 1.0 + m * 2.0, 0.0, 2.0), got.running_var[0]));
    for (size_t c = 1; c < 4; ++c) {
      CAPTURE(c);
      CHECK(got.running_mean[c] == l.running_mean[c]);
      CHECK(got.running_var[c] == l.running_var[c]);
      CHECK(std::isnan(got.inv_std[c]));
    }
  }
}

TEST_CASE("batch norm: a finite batch replaces non-finite running statistics",
          "[layers][batch_norm][short]") {
  for (const float momentum : {0.0f, 0.1f, 1.0f}) {
    Layer l = random_layer(MP_FP32, 64, 4, 807);
    l.desc.momentum = momentum;
    const Trained clean = train(l);
    l.running_mean[1] = kNaN;
    l.running_var[2] = kInfinity;
    const Trained got = train(l);
    l.desc.momentum = 1.0f;
    const Trained replaced = train(l);
    CAPTURE(momentum);
    for (const size_t c : {0, 3}) CHECK(got.running_mean[c] == clean.running_mean[c]);
    CHECK(got.running_mean[2] == clean.running_mean[2]);
    CHECK(got.running_var[1] == clean.running_var[1]);
    if (momentum == 0.0f) {  // the batch has weight 0
      CHECK(std::isnan(got.running_mean[1]));
      CHECK(std::isinf(got.running_var[2]));
    } else {
      CHECK(got.running_mean[1] == got.mean[1]);
      CHECK(got.running_var[2] == replaced.running_var[2]);
      CHECK(std::isfinite(got.running_var[2]));
    }
  }
}

TEST_CASE("batch norm: a constant channel of any finite value has variance 0 and becomes beta",
          "[layers][batch_norm][short]") {
  const std::vector<double> values = {1.8e19, -2e19, 1e26, 9e37, 3.4028234663852886e38, 1.0 / 3.0};
  const auto channels = static_cast<int32_t>(values.size());
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t rows : {1, 2, 3, 5, 7, 64, 1000, 100003}) {
      Layer l = random_layer(dtype, rows, channels, 808);
      l.desc.momentum = 1.0f;
      const double most = largest_finite(dtype);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < channels; ++j)
          l.x.at(0, i, j) =
              round_to(dtype, std::clamp(values[static_cast<size_t>(j)], -most, most));
      const Trained got = train(l);
      CAPTURE(mp_dtype_name(dtype), rows);
      for (size_t c = 0; c < values.size(); ++c) {
        CAPTURE(c);
        CHECK(got.mean[c] == l.x.at(0, 0, static_cast<int64_t>(c)));
        CHECK(got.running_mean[c] == got.mean[c]);
        CHECK(got.running_var[c] == (rows > 1 ? 0.0 : l.running_var[c]));
        CHECK(got.inv_std[c] == Approx(1.0 / std::sqrt(1e-5)).epsilon(1e-6));
        CHECK(got.y[c] == round_to(dtype, l.beta[c]));
      }
    }
}

TEST_CASE("batch norm: overflow gives infinity or NaN", "[layers][batch_norm][short]") {
  Layer half = random_layer(MP_FP16, 64, 1, 804);
  half.gamma = {1e6};
  const Trained large = train(half);
  CHECK(std::none_of(large.y.begin(), large.y.end(), [](double y) { return std::isnan(y); }));
  CHECK(std::count_if(large.y.begin(), large.y.end(), [](double y) { return std::isinf(y); }) > 32);

  Layer wide = random_layer(MP_FP32, 64, 1, 805);
  for (double &x : wide.x.values) x = round_to(MP_FP32, 1e25 * x);  // the variance overflows fp32
  const Trained got = train(wide);
  CHECK(std::all_of(got.y.begin(), got.y.end(), [](double y) { return std::isnan(y); }));
}

// ---------------------------------------------------------------------------- empty tensors

TEST_CASE("batch norm: no rows or no channels", "[layers][batch_norm][short]") {
  for (const auto &[rows, channels] : {std::pair<int64_t, int32_t>{0, 5}, {7, 0}, {0, 0}}) {
    const mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(rows, channels, MP_FP16);
    size_t bytes = 1;
    require_ok(mp_batchnorm_workspace_size(context(), &desc, &bytes));
    CHECK(bytes == 0);
    const Floats kept(Vector(5, 3.0)), dgamma(5), dbeta(5);
    auto t = initialized<mp_batchnorm_tensors_t>();
    require_ok(mp_batchnorm_forward_inference(context(), &desc, &t, kStream));
    t.running_mean = t.running_var = t.saved_mean = t.saved_inv_std = kept.data();
    require_ok(mp_batchnorm_forward_training(context(), &desc, &t, nullptr, 0, kStream));
    t.dgamma = dgamma.data();
    t.dbeta = dbeta.data();
    require_ok(mp_batchnorm_backward(context(), &desc, &t, nullptr, 0, kStream));
    CHECK(kept.download() == Vector(5, 3.0));
    if (channels == 0) continue;
    CHECK(dgamma.download() == Vector(5, 0.0));
    CHECK(dbeta.download() == Vector(5, 0.0));
  }
}

TEST_CASE("batch norm: the workspace is small", "[layers][batch_norm][short]") {
  for (const int64_t rows : {int64_t{1}, int64_t{100000}, int64_t{1} << 40}) {
    for (const int32_t channels : {1, 100, 4096}) {
      const mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(rows, channels, MP_FP16);
      size_t bytes = 0;
      require_ok(mp_batchnorm_workspace_size(context(), &desc, &bytes));
      CHECK(bytes > 0);
      CHECK(bytes <= 4096 * static_cast<size_t>(channels));
    }
  }
}
