#include "network.h"

#include <cmath>
#include <cstdlib>

#include "tests/support/input_values.h"
#include "tests/support/numeric.h"

namespace mptest {

using mptools::check;
using mptools::kStream;

namespace {

constexpr double kGate = 8.0;  ///< largest |z| for which gradients pass the sign
constexpr int64_t kStepsPerOverflow = 6;

std::vector<double> signs(Random &random, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double &value : values) value = random.integer(0, 1) == 0 ? -1.0 : 1.0;
  return values;
}

double sign(double value) {
  return value < 0.0 ? -1.0 : 1.0;
}

/// Targets of the training: outputs of a network of the same kind.
std::vector<double> teacher(uint64_t seed, const std::vector<double> &x) {
  Random random(seed);
  const std::vector<double> w1 = signs(random, kIn * kHidden), w2 = signs(random, kHidden * kOut);
  std::vector<double> y(static_cast<size_t>(kSamples * kOut));
  for (int64_t i = 0; i < kSamples; ++i) {
    for (int64_t j = 0; j < kHidden; ++j) {
      double z = 0.0;
      for (int64_t k = 0; k < kIn; ++k)
        z += x[static_cast<size_t>(i * kIn + k)] * w1[static_cast<size_t>(k * kHidden + j)];
      for (int64_t c = 0; c < kOut; ++c)
        y[static_cast<size_t>(i * kOut + c)] += sign(z) * w2[static_cast<size_t>(j * kOut + c)];
    }
  }
  return y;
}

void store(const mptools::Buffer &halves, int64_t i, double value) {
  halves.as<uint16_t>()[i] = static_cast<uint16_t>(encode(MP_FP16, value));
}

double load(const uint16_t *halves, int64_t i) {
  return decode(MP_FP16, halves[i]);
}

void store_signs(const mptools::Buffer &to, const uint16_t *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) store(to, i, sign(load(from, i)));
}

/// A row-major operand of mp_gemm.
struct Operand {
  const void *data;
  int64_t ld;
  mp_op_t op = MP_OP_N;
};

void multiply(mp_context_t context, int64_t m, int64_t n, int64_t k, const Operand &a,
              const Operand &b, void *d) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, MP_FP16, MP_FP16);
  desc.op_a = a.op, desc.ld_a = a.ld;
  desc.op_b = b.op, desc.ld_b = b.ld;
  check(mp_gemm(context, &desc, a.data, b.data, nullptr, d, nullptr, nullptr, 0, kStream));
}

}  // namespace

Batch batch_of(uint64_t seed, int64_t step) {
  Random random(seed * 1000003 + static_cast<uint64_t>(step));
  Batch batch;
  batch.x = signs(random, kSamples * kIn);
  batch.target = teacher(seed, batch.x);
  const bool overflows = random.integer(1, kStepsPerOverflow) == 1;
  const int64_t kind = random.integer(Overflow::kInfinity, Overflow::kUnseen);
  batch.overflow.kind = overflows ? static_cast<Overflow::Kind>(kind) : Overflow::kNone;
  batch.overflow.sample = random.integer(0, kSamples - 1);
  return batch;
}

Network::Network(mp_context_t context, int64_t first, int64_t count)
    : context_(context),
      first_(first),
      count_(count),
      x_(mptools::make_buffer(context, count * kIn, MP_FP16)),
      w1_(mptools::make_buffer(context, kNumels[0], MP_FP16)),
      z_(mptools::make_buffer(context, count * kHidden, MP_FP16)),
      h_(mptools::make_buffer(context, count * kHidden, MP_FP16)),
      w2_(mptools::make_buffer(context, kNumels[1], MP_FP16)),
      y_(mptools::make_buffer(context, count * kOut, MP_FP16)),
      dy_(mptools::make_buffer(context, count * kOut, MP_FP16)),
      dz_(mptools::make_buffer(context, count * kHidden, MP_FP16)) {}

int64_t Network::forward_backward(const Batch &batch, const std::array<const uint16_t *, 2> &models,
                                  const std::array<uint16_t *, 2> &grads, mp_scaler_t scaler) {
  for (int64_t i = 0; i < count_ * kIn; ++i)
    store(x_, i, batch.x[static_cast<size_t>(first_ * kIn + i)]);
  store_signs(w1_, models[0], kNumels[0]);
  store_signs(w2_, models[1], kNumels[1]);
  const auto *const z = z_.as<uint16_t>();

  multiply(context_, count_, kHidden, kIn, {x_.data(), kIn}, {w1_.data(), kHidden}, z_.data());
  store_signs(h_, z, count_ * kHidden);
  multiply(context_, count_, kOut, kHidden, {h_.data(), kHidden}, {w2_.data(), kOut}, y_.data());

  const int64_t loss = load_loss_gradient(batch, *mp_scaler_get_scale_address(scaler));
  const bool mine = owns(batch.overflow.sample);
  if (batch.overflow.kind == Overflow::kUnseen && mine) overflow_unseen(scaler);
  multiply(context_, kHidden, kOut, count_, {h_.data(), kHidden, MP_OP_T}, {dy_.data(), kOut},
           grads[1]);
  multiply(context_, count_, kHidden, kOut, {dy_.data(), kOut}, {w2_.data(), kOut, MP_OP_T},
           dz_.data());
  for (int64_t i = 0; i < count_ * kHidden; ++i)
    if (std::abs(load(z, i)) > kGate) store(dz_, i, 0.0);
  multiply(context_, kIn, kHidden, count_, {x_.data(), kIn, MP_OP_T}, {dz_.data(), kHidden},
           grads[0]);
  return loss;
}

int64_t Network::load_loss_gradient(const Batch &batch, float scale) {
  double loss = 0.0;
  for (int64_t i = 0; i < count_ * kOut; ++i) {
    const double error =
        load(y_.as<uint16_t>(), i) - batch.target[static_cast<size_t>(first_ * kOut + i)];
    loss += std::abs(error);
    const double direction = error == 0.0 ? 0.0 : sign(error);
    store(dy_, i, direction * scale / static_cast<double>(count_));
  }
  const Overflow overflow = batch.overflow;
  const int64_t element = (overflow.sample - first_) * kOut;
  if (owns(overflow.sample) && overflow.kind == Overflow::kInfinity) store(dy_, element, HUGE_VAL);
  if (owns(overflow.sample) && overflow.kind == Overflow::kNan) store(dy_, element, std::nan(""));
  return std::llround(loss);
}

void Network::overflow_unseen(mp_scaler_t scaler) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(count_, kHidden, kIn, MP_FP16, MP_FP16);
  desc.alpha = 65504.0f;  // some |z| is at least 2
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.stats.found_inf = mp_scaler_get_found_inf_address(scaler);
  check(mp_gemm(context_, &desc, x_.data(), w1_.data(), nullptr, dz_.data(), &epilogue, nullptr, 0,
                kStream));
}

}  // namespace mptest
