// Gated linear units: exact for small integers, otherwise within the bounds of the activations.
#include "tests/support/grad_stats.h"
#include "tests/support/oracle.h"
#include "tests/support/output_case.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Forward activations, in the order of kBackwardActivations.
struct Kind {
  mp_activation_t forward, derivative;
};
std::vector<Kind> all_kinds() {
  std::vector<Kind> all{{MP_ACT_NONE, MP_ACT_NONE}};
  for (size_t i = 0; i < std::size(kForwardActivations); i++)
    all.push_back({kForwardActivations[i], kBackwardActivations[i]});
  return all;
}

struct Layer {
  mp_glu_desc_t desc;
  Kind kind;
  Matrices x, dy;  ///< rows x 2 columns, rows x columns
  int64_t offset = 0;
  bool in_place = false;

  double gate(int64_t i, int64_t j) const { return x.at(0, i, j); }
  double up(int64_t i, int64_t j) const { return x.at(0, i, desc.columns + j); }
  bool is_exact() const { return kind.forward == MP_ACT_NONE || kind.forward == MP_ACT_RELU; }
};

Layer make_layer(const Kind &kind, int64_t rows, int64_t columns, mp_dtype_t dtype) {
  Random random(static_cast<uint64_t>(rows * 1000 + columns));
  // Products of two are exact in every type.
  return {mp_glu_desc_default(kind.forward, rows, columns, dtype), kind,
          Matrices(1, rows, 2 * columns, random_integers(2 * rows * columns, 15, random)),
          Matrices(1, rows, columns, random_integers(rows * columns, 15, random))};
}

void fill_with_reals(Layer &l, double range) {
  Random random(static_cast<uint64_t>(l.desc.columns));
  const auto reals = [&](int64_t columns) {
    const int64_t rows = l.desc.rows;
    return Matrices(1, rows, columns,
                    random_reals(l.desc.dtype, rows * columns, -range, range, random));
  };
  l.x = reals(2 * l.desc.columns);
  l.dy = reals(l.desc.columns);
}

Matrices forward(const Layer &l) {
  const mp_glu_desc_t &d = l.desc;
  DeviceMatrices x(d.dtype, 1, d.rows, 2 * d.columns, d.ld_x, 0, l.offset, kPoison);
  DeviceMatrices y(d.dtype, 1, d.rows, d.columns, d.ld_y, 0, l.offset, kCanary);
  x.upload(l.x);
  require_ok(mp_glu_forward(context(), &d, x.data(), y.data(), kStream));
  CHECK(x.damage() == "");
  CHECK(y.damage() == "");
  return y.download();
}

Matrices backward(const Layer &l) {
  const mp_glu_desc_t &d = l.desc;
  const auto make = [&](uint8_t padding) {
    return DeviceMatrices(d.dtype, 1, d.rows, 2 * d.columns, d.ld_x, 0, l.offset, padding);
  };
  DeviceMatrices x = make(l.in_place ? kCanary : kPoison), beside = make(kCanary);
  DeviceMatrices dy(d.dtype, 1, d.rows, d.columns, d.ld_y, 0, l.offset, kPoison);
  const DeviceMatrices &dx = l.in_place ? x : beside;
  x.upload(l.x);
  dy.upload(l.dy);
  const GradStats stats;
  require_ok(mp_glu_backward(context(), &d, x.data(), dy.data(), dx.data(), stats.get(), kStream));
  CHECK(dx.damage() == "");
  CHECK(dy.damage() == "");
  const Matrices got = dx.download();
  stats.check(got.values);
  return got;
}

/// A value and the bound of its error before rounding.
struct Expected {
  double value, error;
};

/// activation(gate) factor.
Expected product(const Layer &l, double gate, double factor) {
  const double act = oracle::activate(l.kind.forward, gate, 0.0), value = act * factor;
  if (l.is_exact()) return {value, 0.0};
  const double error = oracle::activation_error(l.kind.forward, gate, 0.0, 0.0);
  return {value, error * std::fabs(factor) + fp32_operation() * (std::fabs(value) + error)};
}

/// dy up activation'(gate).
Expected gate_gradient(const Layer &l, double gate, double up, double dy) {
  const double z = dy * up, value = oracle::activate(l.kind.derivative, z, gate);
  if (l.is_exact()) return {value, 0.0};
  return {value,
          oracle::activation_error(l.kind.derivative, z, gate, fp32_operation() * std::fabs(z))};
}

bool is_right(mp_dtype_t dtype, double got, const Expected &expected) {
  const double wanted = round_to(dtype, round_to(MP_FP32, expected.value));
  if (expected.error == 0.0 || !std::isfinite(wanted)) return same_value(got, wanted);
  return std::fabs(got - expected.value) <= rounded_error(dtype, expected.value, expected.error);
}

void check(const Layer &l) {
  const mp_glu_desc_t &d = l.desc;
  CAPTURE(d.rows, d.columns, d.ld_x, d.ld_y, d.activation, mp_dtype_name(d.dtype), l.offset,
          l.in_place);
  const Matrices y = forward(l), dx = backward(l);
  int64_t wrong_y = 0, wrong_gate = 0, wrong_up = 0;
  for (int64_t i = 0; i < d.rows; i++)
    for (int64_t j = 0; j < d.columns; j++) {
      const double gate = l.gate(i, j), up = l.up(i, j), dy = l.dy.at(0, i, j);
      wrong_y += !is_right(d.dtype, y.at(0, i, j), product(l, gate, up));
      wrong_gate += !is_right(d.dtype, dx.at(0, i, j), gate_gradient(l, gate, up, dy));
      wrong_up += !is_right(d.dtype, dx.at(0, i, d.columns + j), product(l, gate, dy));
    }
  CHECK(wrong_y == 0);
  CHECK(wrong_gate == 0);
  CHECK(wrong_up == 0);
}

}  // namespace

TEST_CASE("glu: small integers are exact for every shape and layout", "[layers][glu][short]") {
  for (const Kind &kind : {Kind{MP_ACT_NONE, MP_ACT_NONE}, Kind{MP_ACT_RELU, MP_ACT_DRELU}})
    for (const mp_dtype_t dtype : kDtypes)
      for (const int64_t columns : {1, 7, 8, 9, 16, 65, 300})
        for (const int64_t rows : {1, 6}) {
          Layer l = make_layer(kind, rows, columns, dtype);
          check(l);
          l.in_place = true;
          check(l);
          l.desc.ld_x += 3;
          l.desc.ld_y += 8;
          l.offset = 1;
          check(l);
        }
}

TEST_CASE("glu: every activation is within its bound", "[layers][glu][short]") {
  for (const Kind &kind : all_kinds())
    for (const mp_dtype_t dtype : kDtypes)
      for (const double range : {1.0, 12.0}) {
        Layer l = make_layer(kind, 5, 96, dtype);
        fill_with_reals(l, range);
        if (!l.is_exact()) check(l);
        l.desc.columns = 95;  // a partial vector, with an unaligned half
        fill_with_reals(l, range);
        if (!l.is_exact()) check(l);
      }
}

TEST_CASE("glu: more rows than one block processes", "[layers][glu]") {
  for (const mp_dtype_t dtype : kDtypes) {
    check(make_layer({MP_ACT_RELU, MP_ACT_DRELU}, 3001, 129, dtype));
    check(make_layer({MP_ACT_SILU, MP_ACT_DSILU}, 7, 30011, dtype));
  }
}

TEST_CASE("glu: NaN and infinity propagate", "[layers][glu][short]") {
  for (const Kind &kind : all_kinds())
    for (const mp_dtype_t dtype : kDtypes) {
      Layer l = make_layer(kind, 2, 9, dtype);
      l.x.values.assign(l.x.values.size(), 1.0);
      l.dy.values.assign(l.dy.values.size(), 1.0);
      l.x.at(0, 0, 1) = kNaN;      // gate
      l.x.at(0, 0, 9 + 3) = kNaN;  // up
      l.dy.at(0, 1, 5) = kNaN;
      l.x.at(0, 1, 9 + 7) = kInfinity;
      const Matrices y = forward(l), dx = backward(l);
      for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 9; j++) {
          const bool bad_gate = i == 0 && j == 1, bad_up = i == 0 && j == 3,
                     bad_dy = i == 1 && j == 5;
          CAPTURE(kind.forward, i, j);
          CHECK(std::isnan(y.at(0, i, j)) == (bad_gate || bad_up));
          CHECK(std::isnan(dx.at(0, i, 9 + j)) == (bad_gate || bad_dy));
          // The derivative of ReLU at NaN is 0, that of the identity 1.
          const bool has_slope = kind.forward != MP_ACT_NONE && kind.forward != MP_ACT_RELU;
          CHECK(std::isnan(dx.at(0, i, j)) == ((bad_gate && has_slope) || bad_up || bad_dy));
        }
      CHECK(std::isinf(y.at(0, 1, 7)));
      CHECK(std::isinf(dx.at(0, 1, 7)));
    }
}
