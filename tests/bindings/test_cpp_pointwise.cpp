// Pointwise functions through mpcore.hpp.
#include "cpp.h"

#include <array>

namespace {

using Six = std::array<float, 6>;

mp_pointwise_desc_t two_rows(mp_pointwise_op_t op, mp_activation_t activation) {
  mp_pointwise_desc_t desc = mp_pointwise_desc_default(op, 2, 3, MP_FP32);
  desc.activation = activation;
  return desc;
}

}  // namespace

TEST_CASE("C++: pointwise operations", "[cpp][pointwise]") {
  const mp::context context = mp::context::create(on_host());
  Six a = {1, -2, 3, -4, 5, -6};
  const Six b = {1, 1, -4, 7, -5, 8};
  Six y{};
  context.pointwise(two_rows(MP_POINTWISE_ADD, MP_ACT_RELU), &a, &b, &y);
  CHECK(y == Six{2, 0, 0, 3, 0, 2});
  mp_pointwise_desc_t bias = two_rows(MP_POINTWISE_MUL, MP_ACT_NONE);
  bias.ld_b = 0;
  context.pointwise(bias, &a, &b, &y);
  CHECK(y == Six{1, -2, -12, -4, 5, 24});
  context.pointwise(two_rows(MP_POINTWISE_COPY, MP_ACT_DRELU), &a, &b, &a);
  CHECK(a == Six{1, -2, 0, -4, 0, -6});
  context.pointwise(two_rows(MP_POINTWISE_COPY, MP_ACT_RELU), &b, nullptr, &y);
  CHECK(y == Six{1, 1, 0, 7, 0, 8});
  CHECK(message_of(
            [&] { context.pointwise(two_rows(MP_POINTWISE_ADD, MP_ACT_DTANH), &a, &b, &y); }) ==
        "mp_pointwise: activation = MP_ACT_DTANH requires op = MP_POINTWISE_COPY, but op = "
        "MP_POINTWISE_ADD");
}

TEST_CASE("C++: columns are summed, and a workspace that is too small is rejected",
          "[cpp][pointwise]") {
  const mp::context context = mp::context::create(on_host());
  const Six x = {1, 2, 3, 10, 20, 30};
  std::array<float, 3> sum = {100, 100, 100};
  mp_column_sum_desc_t desc = mp_column_sum_desc_default(2, 3, MP_FP32);
  desc.beta = 1;
  const size_t bytes = context.column_sum_workspace_size(desc);
  alignas(256) std::array<std::byte, 4096> space;
  REQUIRE(bytes <= space.size());
  context.column_sum(desc, &x, &sum, nullptr, {&space, bytes});
  CHECK(sum == std::array<float, 3>{111, 122, 133});
  CHECK(message_of([&] {
          context.column_sum(desc, &x, &sum, nullptr, {});
        }).find("mp_column_sum: workspace_bytes = 0 must be at least ") == 0);
}

TEST_CASE("C++: pointwise losses", "[cpp][pointwise]") {
  const mp::context context = mp::context::create(on_host());
  const mp_loss_desc_t desc = mp_loss_desc_default(MP_LOSS_MSE, 6, MP_FP32);
  const Six x = {1, 2, 3, 4, 5, 6}, t = {1, 1, 1, 1, 1, 1};
  Six dx{};
  float loss = 0;
  const size_t bytes = context.loss_workspace_size(desc);
  alignas(256) std::array<char, 16384> space;
  REQUIRE(bytes <= space.size());
  mp_loss_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.prediction = &x, tensors.target = &t, tensors.loss = &loss, tensors.dprediction = &dx;
  context.loss(desc, tensors, {space.data(), bytes});
  CHECK(loss == 55.0f / 6.0f);
  CHECK(dx[5] == 10.0f * (1.0f / 6.0f));
}
