// Normalization, rotary embedding, softmax, gated units, sums of rows, strided copies and attention
// through mpcore.hpp; most numbers are exact.
#include "cpp.h"

#include <array>
#include <cmath>

namespace {

using Four = std::array<float, 4>;
using Eight = std::array<float, 8>;

}  // namespace

// Vectors of mean 1 and 2 and variance 1.
TEST_CASE("C++: layer normalization, and a workspace that is too small is rejected",
          "[cpp][norm]") {
  const mp::context context = mp::context::create(on_host());
  mp_norm_desc_t desc = mp_norm_desc_default(MP_NORM_LAYER, 2, 4, MP_FP32);
  desc.epsilon = 0;
  const Eight x = {0, 0, 2, 2, 3, 1, 3, 1}, dy = {2, 0, 0, 0, 0, 2, 0, 0};
  const Four gamma = {2, 2, 2, 2}, beta = {1, 1, 1, 1};
  std::array<float, 2> mean{}, rstd{};
  Eight y{}, dx{};
  Four dgamma{}, dbeta{};
  float amax = 0;
  mp_norm_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = &x, tensors.y = &y, tensors.gamma = gamma.data(), tensors.beta = beta.data();
  tensors.mean = mean.data(), tensors.rstd = rstd.data();
  context.norm_forward(desc, tensors);
  CHECK(y == Eight{-1, -1, 3, 3, 3, -1, 3, -1});
  CHECK(mean == std::array<float, 2>{1, 2});

  tensors.dy = &dy, tensors.dx = &dx, tensors.stats.amax = &amax;
  tensors.dgamma = dgamma.data(), tensors.dbeta = dbeta.data();
  const size_t bytes = context.norm_backward_workspace_size(desc);
  const mp::memory space = context.malloc(bytes);
  context.norm_backward(desc, tensors, {space, bytes});
  CHECK(dx == Eight{2, -2, 0, 0, 0, 2, 0, -2});
  CHECK(dgamma == Four{-2, -2, 0, 0});
  CHECK(dbeta == Four{2, 2, 0, 0});
  CHECK(amax == 2);
  CHECK(message_of([&] {
          context.norm_backward(desc, tensors, {space, bytes - 1});
        }).find("mp_norm_backward: workspace_bytes = ") == 0);
}

TEST_CASE("C++: a rotary embedding and its inverse", "[cpp][sequences]") {
  const mp::context context = mp::context::create(on_host());
  mp_rope_desc_t desc = mp_rope_desc_default(2, 1, 4, MP_FP32);
  const std::array<int32_t, 2> positions = {0, 1};
  const std::array<float, 2> inv_freq = {1, 0};
  const Eight x = {1, 2, 3, 4, 1, 2, 3, 4};
  Eight y{};
  context.rope(desc, positions.data(), inv_freq.data(), &x, &y);
  const double c = std::cos(1.0), s = std::sin(1.0);
  for (int i = 0; i < 4; ++i) CHECK(y[i] == x[i]);
  CHECK(std::abs(y[4] - (c - 3 * s)) < 1e-6);
  CHECK(std::abs(y[6] - (3 * c + s)) < 1e-6);
  CHECK((y[5] == 2 && y[7] == 4));
  desc.flags = MP_ROPE_FLAG_INVERSE;
  context.rope(desc, positions.data(), inv_freq.data(), &y, &y);
  for (int i = 0; i < 8; ++i) CHECK(std::abs(y[i] - x[i]) < 1e-6);
  desc.rotary_dim = 3;
  CHECK(message_of([&] { context.rope(desc, nullptr, nullptr, &x, &y); }) ==
        "mp_rope: rotary_dim = 3 must be even");
}

TEST_CASE("C++: causal softmax and its gradient", "[cpp][sequences]") {
  const mp::context context = mp::context::create(on_host());
  mp_softmax_desc_t desc = mp_softmax_desc_default(2, 2, MP_FP32);
  desc.mask = MP_SOFTMAX_MASK_CAUSAL;
  const Four x{}, dy = {4, 9, 2, 6};
  Four y{};
  context.softmax_forward(desc, &x, nullptr, &y);
  CHECK(y == Four{1, 0, 0.5f, 0.5f});
  float amax = 0;
  const mp_grad_stats_t stats = {nullptr, &amax};
  context.softmax_backward(desc, &y, &dy, nullptr, &y, &stats);
  CHECK(y == Four{0, 0, -1, 1});
  CHECK(amax == 1);
  desc.mask = MP_SOFTMAX_MASK_LENGTHS;
  CHECK(message_of([&] { context.softmax_forward(desc, &x, nullptr, &y); }) ==
        "mp_softmax_forward: mask = NULL");
}

TEST_CASE("C++: gated linear unit and sums of rows", "[cpp][pointwise]") {
  const mp::context context = mp::context::create(on_host());
  const mp_glu_desc_t glu = mp_glu_desc_default(MP_ACT_RELU, 2, 2, MP_FP32);
  Eight x = {2, -1, 3, 5, 1, 4, -2, 6};
  Four y{};
  context.glu_forward(glu, &x, &y);
  CHECK(y == Four{6, 0, -2, 24});
  const Four dy = {1, 2, 3, 1};
  float amax = 0;
  const mp_grad_stats_t stats = {nullptr, &amax};
  context.glu_backward(glu, &x, &dy, &x, &stats);
  CHECK(x == Eight{3, 0, 2, 0, -6, 6, 3, 4});
  CHECK(amax == 6);
  CHECK(message_of([&] {
          context.glu_forward(mp_glu_desc_default(MP_ACT_DRELU, 2, 2, MP_FP32), &x, &y);
        }).find("mp_glu_forward: activation = MP_ACT_DRELU is a derivative") == 0);

  mp_sum_rows_desc_t desc = mp_sum_rows_desc_default(4, 2, 2, MP_FP32);
  desc.beta = 1;
  context.sum_rows(desc, &x, &y, &stats);
  CHECK(y == Four{3, 6, 3, 28});
  CHECK(amax == 28);
  desc.period = 0;
  CHECK(message_of([&] { context.sum_rows(desc, &x, &y); }) ==
        "mp_sum_rows: period = 0 must be at least 1 if rows = 4");
}

TEST_CASE("C++: strided copy", "[cpp][pointwise]") {
  const mp::context context = mp::context::create(on_host());
  mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(MP_FP32);
  desc.rank = 2;
  desc.extent[0] = 4, desc.extent[1] = 2;
  desc.x_stride[0] = 1, desc.x_stride[1] = 4;
  desc.y_stride[0] = 2, desc.y_stride[1] = 1;
  desc.alpha = 2, desc.beta = -1;
  const Eight x = {1, 2, 3, 4, 5, 6, 7, 8};
  Eight y = {1, 1, 1, 1, 1, 1, 1, 1};
  float amax = 0;
  const mp_grad_stats_t stats = {nullptr, &amax};
  context.strided_copy(desc, &x, &y, &stats);
  CHECK(y == Eight{1, 9, 3, 11, 5, 13, 7, 15});
  CHECK(amax == 15);
  desc.y_stride[0] = 0;
  CHECK(message_of([&] { context.strided_copy(desc, &x, &y); }) ==
        "mp_strided_copy: y_stride[0] = 0 must be at least 1: elements of y may share an address");
}

// Queries of 0 give equal weights to the visible keys.
TEST_CASE("C++: causal attention, and a workspace that is too small is rejected",
          "[cpp][attention]") {
  const mp::context context = mp::context::create(on_host());
  mp_attention_desc_t desc = mp_attention_desc_default(1, 2, 2, 2, 1, MP_FP32);
  desc.kv_heads = 1;
  desc.flags = MP_ATTENTION_FLAG_CAUSAL;
  const Four q{}, d_o = {1, 1, 2, 4};
  const std::array<float, 2> k = {1, 2}, v = {4, 8};
  Four o{}, lse{}, dq{};
  std::array<float, 2> dk{}, dv{};
  float amax = 0;
  mp_attention_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.q = &q, tensors.k = &k, tensors.v = &v, tensors.o = &o, tensors.lse = lse.data();
  context.attention_forward(desc, tensors);
  const auto check_close = [](const auto &got, const auto &wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) < 1e-5f);
  };
  check_close(o, Four{4, 4, 6, 6});
  check_close(lse, Four{0, std::log(2.0f), 0, std::log(2.0f)});

  tensors.d_o = &d_o, tensors.dq = &dq, tensors.dk = &dk, tensors.dv = &dv;
  tensors.stats.amax = &amax;
  const size_t bytes = context.attention_backward_workspace_size(desc);
  const mp::memory space = context.malloc(bytes);
  context.attention_backward(desc, tensors, {space, bytes});
  check_close(dq, Four{0, 0, 2, 4});
  check_close(dk, std::array<float, 2>{0, 0});
  check_close(dv, std::array<float, 2>{5, 3});
  CHECK(amax == dv[0]);
  CHECK(message_of([&] {
          context.attention_backward(desc, tensors, {space, bytes - 1});
        }).find("mp_attention_backward: workspace_bytes = ") == 0);
}
