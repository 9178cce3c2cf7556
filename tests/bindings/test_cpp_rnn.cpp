// Recurrent layers through mpcore.hpp: a RELU cell in one direction; integers make sums exact.
#include "cpp.h"

#include <algorithm>
#include <array>
#include <string>

namespace {

constexpr int kSteps = 3, kBatch = 2, kInputs = 2, kHidden = 2;

template <int rows, int columns>
using Matrix = std::array<std::array<float, columns>, rows>;
template <int columns>
using Steps = std::array<Matrix<kBatch, columns>, kSteps>;
using Row = std::array<float, kHidden>;

/// Weights, or their gradients.
struct Weights {
  Matrix<kHidden, kInputs> ih;
  Matrix<kHidden, kHidden> hh;
  Row b_ih, b_hh;
};

struct Result {
  Steps<kHidden> y;
  Matrix<kBatch, kHidden> hn;
  Steps<kInputs> dx;
  Matrix<kBatch, kHidden> dh0;
  Weights dw;
};

const Weights kWeights = {{{{1, -1}, {2, 1}}}, {{{1, 1}, {-1, 2}}}, {1, 0}, {0, -1}};
const Steps<kInputs> kX = {{{{{1, 2}, {3, 1}}}, {{{-1, 1}, {2, 2}}}, {{{0, 3}, {1, -2}}}}};
const Matrix<kBatch, kHidden> kH0 = {{{1, 2}, {0, 3}}}, kDhn = {{{1, -1}, {2, 1}}};
const Steps<kHidden> kDy = {{{{{1, 2}, {-1, 1}}}, {{{2, 1}, {1, 3}}}, {{{1, -2}, {2, 1}}}}};

/// Reference, computed per sequence and unit.
Result by_loops() {
  Result r{};
  for (int n = 0; n < kBatch; ++n) {
    Row h = kH0[n];
    for (int t = 0; t < kSteps; ++t) {
      Row next{};
      for (int j = 0; j < kHidden; ++j) {
        float a = kWeights.b_ih[j] + kWeights.b_hh[j];
        for (int i = 0; i < kInputs; ++i) a += kWeights.ih[j][i] * kX[t][n][i];
        for (int k = 0; k < kHidden; ++k) a += kWeights.hh[j][k] * h[k];
        next[j] = std::max(a, 0.0f);
      }
      r.y[t][n] = h = next;
    }
    r.hn[n] = h;
    Row dh = kDhn[n];
    for (int t = kSteps - 1; t >= 0; --t) {
      const Row &before = t == 0 ? kH0[n] : r.y[t - 1][n];
      Row below{};
      for (int j = 0; j < kHidden; ++j) {
        const float da = r.y[t][n][j] > 0.0f ? dh[j] + kDy[t][n][j] : 0.0f;
        r.dw.b_ih[j] += da;
        r.dw.b_hh[j] += da;
        for (int i = 0; i < kInputs; ++i) {
          r.dw.ih[j][i] += da * kX[t][n][i];
          r.dx[t][n][i] += da * kWeights.ih[j][i];
        }
        for (int k = 0; k < kHidden; ++k) {
          r.dw.hh[j][k] += da * before[k];
          below[k] += da * kWeights.hh[j][k];
        }
      }
      dh = below;
    }
    r.dh0[n] = dh;
  }
  return r;
}

mp_rnn_desc_t relu() {
  return mp_rnn_desc_default(MP_RNN_RELU, kBatch, kSteps, kInputs, kHidden, MP_FP32);
}

}  // namespace

TEST_CASE("C++: all passes of a recurrent layer equal the reference", "[cpp][rnn]") {
  const mp::context context = mp::context::create(on_host());
  const mp_rnn_desc_t desc = relu();
  const mp_rnn_sizes_t sizes = context.rnn_get_sizes(desc);
  CHECK(sizes.num_weights == 1);
  CHECK(sizes.gates == 1);
  const mp::memory reserve = context.malloc(sizes.reserve_bytes);
  const mp::memory space = context.malloc(sizes.workspace_bytes);
  const mp::workspace workspace = {space, sizes.workspace_bytes};

  Result got{};
  const mp_rnn_weights_t weights = {
      sizeof(mp_rnn_weights_t), 0, &kWeights.ih, &kWeights.hh, kWeights.b_ih.data(),
      kWeights.b_hh.data()};
  const mp_rnn_weight_grads_t grads = {sizeof(mp_rnn_weight_grads_t),
                                       0,
                                       &got.dw.ih,
                                       &got.dw.hh,
                                       got.dw.b_ih.data(),
                                       got.dw.b_hh.data()};
  mp_rnn_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.num_weights = sizes.num_weights;
  tensors.weights = &weights;
  tensors.weight_grads = &grads;
  tensors.x = &kX;
  tensors.h0 = &kH0;
  tensors.y = &got.y;
  tensors.hn = &got.hn;
  tensors.reserve = reserve;
  tensors.reserve_bytes = sizes.reserve_bytes;
  tensors.dy = &kDy;
  tensors.dhn = &kDhn;
  tensors.dx = &got.dx;
  tensors.dh0 = &got.dh0;
  const Result wanted = by_loops();

  context.rnn_forward_training(desc, tensors, workspace);
  CHECK(got.y == wanted.y);
  CHECK(got.hn == wanted.hn);
  context.rnn_backward_data(desc, tensors, workspace);
  CHECK(got.dx == wanted.dx);
  CHECK(got.dh0 == wanted.dh0);
  context.rnn_backward_weights(desc, tensors, workspace);
  CHECK(got.dw.ih == wanted.dw.ih);
  CHECK(got.dw.hh == wanted.dw.hh);
  CHECK(got.dw.b_ih == wanted.dw.b_ih);
  CHECK(got.dw.b_hh == wanted.dw.b_hh);
  got.y = {};
  context.rnn_forward_inference(desc, tensors, workspace);
  CHECK(got.y == wanted.y);
}

TEST_CASE("C++: errors of a recurrent layer name the argument", "[cpp][rnn]") {
  const mp::context context = mp::context::create(on_host());
  mp_rnn_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  mp_rnn_desc_t desc = relu();
  CHECK(message_of([&] { context.rnn_forward_training(desc, tensors, {}); }) ==
        "mp_rnn_forward_training: tensors->num_weights = 0 must equal layers * directions = 1");
  desc.layers = 0;
  CHECK(message_of([&] { context.rnn_get_sizes(desc); }) ==
        "mp_rnn_get_sizes: layers = 0 is outside [1, 65535]");
}
