// found_inf and amax of all calls of loss.h, layers.h and sequences.h that produce gradients.
//
// The tests of each call compare both with what it stored in all of their cases (GradStats).  Here
// each call stores given values: one that is not finite, or at the limit of fp16, is planted among
// small integers.
#include <functional>
#include <limits>

#include "tests/support/grad_stats.h"

using namespace mptest;

namespace {

constexpr int64_t kRows = 37, kColumns = 19, kCount = kRows * kColumns;

/// Stores `values` as gradients of type `dtype`, by a call whose input they are.
using Store = std::function<void(mp_dtype_t dtype, const std::vector<double> &values,
                                 const mp_grad_stats_t *stats)>;

void by_pointwise(mp_dtype_t dtype, const std::vector<double> &values,
                  const mp_grad_stats_t *stats) {
  // a + b rounds once: b holds the values in fp32.
  auto desc = mp_pointwise_desc_default(MP_POINTWISE_ADD, kRows, kColumns, dtype);
  desc.dtype_b = MP_FP32;
  const DeviceArray zeros(dtype, std::vector<double>(values.size())), b(MP_FP32, values);
  const DeviceArray y(dtype, kCount);
  require_ok(mp_pointwise(context(), &desc, zeros.data(), b.data(), y.data(), stats, kStream));
}

void by_pointwise_rows(mp_dtype_t dtype, const std::vector<double> &values,
                       const mp_grad_stats_t *stats) {
  auto desc = mp_pointwise_desc_default(MP_POINTWISE_MUL, kCount, 1, dtype);
  desc.dtype_b = MP_FP32;
  const DeviceArray ones(dtype, std::vector<double>(values.size(), 1.0)), b(MP_FP32, values);
  const DeviceArray y(dtype, kCount);
  require_ok(mp_pointwise(context(), &desc, ones.data(), b.data(), y.data(), stats, kStream));
}

void by_pool(mp_pool_mode_t mode, int32_t dilation, mp_dtype_t dtype,
             const std::vector<double> &values, const mp_grad_stats_t *stats) {
  auto desc = mp_pool2d_desc_default(mode, 1, kRows, 1, kColumns, 1, 1, dtype);
  desc.dilation_h = dilation;
  const DeviceArray x(dtype, std::vector<double>(values.size())), dy(dtype, values);
  const DeviceArray dx(dtype, kCount);
  require_ok(mp_pool2d_backward(context(), &desc, x.data(), nullptr, dy.data(), dx.data(), stats,
                                kStream));
}

void by_dropout(mp_dtype_t dtype, const std::vector<double> &values, const mp_grad_stats_t *stats) {
  const auto desc = mp_dropout_desc_default(kCount, 0.0f, dtype);
  const DeviceArray x(dtype, values), y(dtype, kCount);
  require_ok(mp_dropout(context(), &desc, nullptr, x.data(), y.data(), stats, kStream));
}

void by_loss(mp_dtype_t dtype, const std::vector<double> &values, const mp_grad_stats_t *stats) {
  // dprediction = weights[i] * sign(x - t), and sign = 1.
  auto desc = mp_loss_desc_default(MP_LOSS_L1, kCount, dtype);
  desc.reduction = MP_LOSS_REDUCTION_SUM;
  const DeviceArray ones(dtype, std::vector<double>(values.size(), 1.0)), dx(dtype, kCount);
  const DeviceArray zeros(dtype, std::vector<double>(values.size())), weights(MP_FP32, values);
  size_t bytes = 0;
  require_ok(mp_loss_workspace_size(context(), &desc, &bytes));
  const GuardedBytes workspace(bytes, 0, kPoison);
  mp_loss_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.prediction = ones.data();
  t.target = zeros.data();
  t.weights = static_cast<const float *>(weights.data());
  t.dprediction = dx.data();
  t.stats = stats != nullptr ? *stats : mp_grad_stats_t{};
  require_ok(mp_loss(context(), &desc, &t, workspace.data(), bytes, kStream));
}

void by_embedding(mp_dtype_t dtype, const std::vector<double> &values,
                  const mp_grad_stats_t *stats) {
  auto desc = mp_embedding_desc_default(kRows, kRows, kColumns, MP_FP32);
  desc.dtype_dtable = dtype;
  std::vector<int32_t> indices;
  for (int32_t i = 0; i < kRows; ++i) indices.push_back(kRows - 1 - i);
  const DeviceBuffer<int32_t> on_device(indices);
  const DeviceArray dout(MP_FP32, values), dtable(dtype, kCount);
  size_t bytes = 0;
  require_ok(mp_embedding_workspace_size(context(), &desc, &bytes));
  const GuardedBytes workspace(bytes, 0, kPoison);
  require_ok(mp_embedding_backward(context(), &desc, on_device.data(), dout.data(), dtable.data(),
                                   stats, workspace.data(), bytes, kStream));
}

void by_column_sum(mp_dtype_t dtype, const std::vector<double> &values,
                   const mp_grad_stats_t *stats) {
  auto desc = mp_column_sum_desc_default(1, kCount, MP_FP32);
  desc.dtype_sum = dtype;
  const DeviceArray x(MP_FP32, values), sum(dtype, kCount);
  size_t bytes = 0;
  require_ok(mp_column_sum_workspace_size(context(), &desc, &bytes));
  const GuardedBytes workspace(bytes, 0, kPoison);
  mp_epilogue_t epilogue = mp_epilogue_default();
  if (stats != nullptr) epilogue.stats = *stats;
  require_ok(mp_column_sum(context(), &desc, x.data(), sum.data(), &epilogue, workspace.data(),
                           bytes, kStream));
}

/// dgamma of one row: g (x - mean) inv_std = g, and dx = 0 with gamma = 0.
void by_batch_norm(mp_dtype_t dtype, const std::vector<double> &values,
                   const mp_grad_stats_t *stats, bool has_dbeta) {
  const auto channels = static_cast<int32_t>(kCount);
  const auto desc = mp_batchnorm_desc_default(1, channels, dtype);
  const std::vector<double> ones(values.size(), 1.0), zeros(values.size());
  const DeviceArray x(dtype, ones), dy(dtype, values), dx(dtype, kCount), gamma(MP_FP32, zeros),
      mean(MP_FP32, zeros), inv_std(MP_FP32, ones), dgamma(MP_FP32, kCount), dbeta(MP_FP32, kCount);
  size_t bytes = 0;
  require_ok(mp_batchnorm_workspace_size(context(), &desc, &bytes));
  const GuardedBytes workspace(bytes, 0, kPoison);
  mp_batchnorm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = x.data(), t.dy = dy.data(), t.dx = dx.data();
  t.gamma = static_cast<float *>(gamma.data());
  t.saved_mean = static_cast<float *>(mean.data());
  t.saved_inv_std = static_cast<float *>(inv_std.data());
  t.dgamma = has_dbeta ? nullptr : static_cast<float *>(dgamma.data());
  t.dbeta = has_dbeta ? static_cast<float *>(dbeta.data()) : nullptr;
  if (stats != nullptr) t.stats = *stats;
  require_ok(
      mp_batchnorm_backward(context(), &desc, &t, workspace.data(), workspace.bytes(), kStream));
}

struct Call {
  const char *name;
  Store store;
  bool rounds;   ///< the values are rounded to fp16 by the call, not before it
  bool is_wide;  ///< the gradients are fp32 for every dtype
};

const std::vector<Call> &calls() {
  const auto pool = [](mp_pool_mode_t mode, int32_t dilation) {
    return [=](auto &&...arguments) { by_pool(mode, dilation, arguments...); };
  };
  const auto norm = [](bool has_dbeta) {
    return [=](auto &&...arguments) { by_batch_norm(arguments..., has_dbeta); };
  };
  static const std::vector<Call> all = {
      {"pointwise, dense", by_pointwise, true, false},
      {"pointwise, b by rows", by_pointwise_rows, true, false},
      {"max pooling", pool(MP_POOL_MAX, 1), false, false},
      {"dilated max pooling", pool(MP_POOL_MAX, 2), false, false},
      {"average pooling", pool(MP_POOL_AVG_INCLUDE_PAD, 1), false, false},
      {"dropout", by_dropout, false, false},
      {"loss", by_loss, true, false},
      {"embedding", by_embedding, true, false},
      {"column sum", by_column_sum, true, false},
      {"dgamma", norm(false), false, true},
      {"dbeta", norm(true), false, true}};
  return all;
}

std::vector<double> integers() {
  std::vector<double> values(kCount);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 15) - 7.0;
  return values;
}

/// First, last and odd places.
constexpr int64_t kPlaces[] = {0, 1, 7, 8, 31, 257, kCount - 2, kCount - 1};

}  // namespace

TEST_CASE("grad stats: a planted value is found wherever it is", "[layers][stats][short]") {
  for (const Call &call : calls()) {
    for (const mp_dtype_t dtype : kDtypes) {
      for (const int64_t place : kPlaces) {
        for (const double planted : {kInfinity, -kInfinity, kNaN, -64.0}) {
          if (call.is_wide && !std::isfinite(planted)) continue;  // dx is NaN as well
          std::vector<double> values = integers();
          values[static_cast<size_t>(place)] = planted;
          CAPTURE(call.name, mp_dtype_name(dtype), place, planted);
          const GradStats stats;
          const mp_grad_stats_t pointers = stats.pointers();
          call.store(dtype, values, &pointers);
          stats.check(values);
        }
      }
    }
  }
}

TEST_CASE("grad stats: 65520 rounds to infinity in fp16, 65519 to 65504",
          "[layers][stats][short]") {
  for (const Call &call : calls()) {
    if (!call.rounds) continue;
    for (const double planted : {65504.0, 65519.0, -65519.0, 65520.0, -65520.0}) {
      std::vector<double> values = integers();
      values[257] = planted;
      CAPTURE(call.name, planted);
      for (const mp_dtype_t dtype : kDtypes) {
        const GradStats stats;
        const mp_grad_stats_t pointers = stats.pointers();
        call.store(dtype, values, &pointers);
        values[257] = round_to(dtype, planted);
        stats.check(values);
        values[257] = planted;
      }
    }
  }
}

TEST_CASE("grad stats: each output is optional", "[layers][stats][short]") {
  for (const Call &call : calls()) {
    CAPTURE(call.name);
    std::vector<double> values = integers();
    values[3] = 100.0;
    const GradStats stats;
    const mp_grad_stats_t only_amax{nullptr, stats.pointers().amax},
        only_found_inf{stats.pointers().found_inf, nullptr}, none{};
    for (const mp_grad_stats_t *const given :
         std::initializer_list<const mp_grad_stats_t *>{nullptr, &none, &only_found_inf}) {
      call.store(MP_FP32, values, given);
      CHECK(stats.amax() == 0.0f);
      CHECK(stats.found_inf() == 0.0f);
    }
    call.store(MP_FP32, values, &only_amax);
    CHECK(stats.amax() == 100.0f);
    CHECK(stats.found_inf() == 0.0f);
  }
}

TEST_CASE("grad stats: a call never clears or lowers them", "[layers][stats][short]") {
  for (const Call &call : calls()) {
    CAPTURE(call.name);
    for (const float before : {1000.0f, std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()}) {
      const GradStats stats(before, 1.0f);
      const mp_grad_stats_t pointers = stats.pointers();
      call.store(MP_BF16, integers(), &pointers);
      CHECK((std::isnan(before) ? std::isnan(stats.amax()) : stats.amax() == before));
      CHECK(stats.found_inf() == 1.0f);
    }
  }
}

TEST_CASE("grad stats: batch norm reports on the gradients that are stored",
          "[layers][stats][short]") {
  // The sum exceeds fp32.
  const std::vector<double> dy(64, 3e38);
  const auto desc = mp_batchnorm_desc_default(64, 1, MP_FP32);
  const DeviceArray on_device(MP_FP32, dy), dx(MP_FP32, 64);
  const DeviceBuffer<float> zero(std::vector<float>{0.0f}), one(std::vector<float>{1.0f});
  const DeviceBuffer<float> dbeta(1);
  size_t bytes = 0;
  require_ok(mp_batchnorm_workspace_size(context(), &desc, &bytes));
  const GuardedBytes workspace(bytes, 0, kPoison);
  mp_batchnorm_tensors_t t;
  MP_INIT_STRUCT(&t);
  const DeviceArray zeros(MP_FP32, std::vector<double>(dy.size()));
  t.x = zeros.data(), t.dy = on_device.data(), t.dx = dx.data();
  t.saved_mean = zero.data(), t.saved_inv_std = one.data(), t.dbeta = dbeta.data();
  const GradStats stats;
  t.stats = stats.pointers();
  require_ok(
      mp_batchnorm_backward(context(), &desc, &t, workspace.data(), workspace.bytes(), kStream));
  CHECK(dbeta.download()[0] == std::numeric_limits<float>::infinity());
  CHECK(stats.found_inf() == 1.0f);
}

TEST_CASE("grad stats: calls without elements write nothing", "[layers][stats][short]") {
  const GradStats stats;
  const mp_grad_stats_t pointers = stats.pointers();
  const auto pool = mp_pool2d_desc_default(MP_POOL_MAX, 0, 4, 4, 8, 2, 2, MP_FP16);
  require_ok(
      mp_pool2d_backward(context(), &pool, nullptr, nullptr, nullptr, nullptr, &pointers, kStream));
  const auto pointwise = mp_pointwise_desc_default(MP_POINTWISE_ADD, 0, 4, MP_FP16);
  require_ok(mp_pointwise(context(), &pointwise, nullptr, nullptr, nullptr, &pointers, kStream));
  const auto dropout = mp_dropout_desc_default(0, 0.5f, MP_FP16);
  require_ok(mp_dropout(context(), &dropout, nullptr, nullptr, nullptr, &pointers, kStream));
  stats.check({});
}
