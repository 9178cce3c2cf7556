// Cells of recurrent layers, one unit in one step (kernels/rnn/cell.h), against fp64 on a grid of
// arguments.
//
// Forward: gates are logistic functions and tanh, with errors of at most 4 ulp.  States are sums of
// one or two products, with at most 16 ulp per product, including the errors of its factors.
// Backward: products of up to five factors, and differences 1 - s, whose error is that of s.
#include "kernels/rnn/cell.h"

#include <cmath>
#include <limits>
#include <vector>

#include "testing.h"

using namespace mp::host;

namespace {

constexpr double kUlp = 0x1p-23, kSmallest = 0x1p-149;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");
constexpr CellOptions kNoClip{std::numeric_limits<float>::quiet_NaN(), false}, kTanh = kNoClip;
constexpr CellOptions kRelu{kNoClip.clip, true};

const std::vector<float> kArguments = {0.0f,  -0.0f,  1e-40f, -1e-40f, 1e-3f,     -1e-3f,
                                       0.3f,  -0.7f,  1.0f,   -1.5f,   4.0f,      -6.0f,
                                       20.0f, -20.0f, 90.0f,  -90.0f,  kInfinity, -kInfinity};

double sigmoid(double a) {
  return a < 0.0 ? std::exp(a) / (1.0 + std::exp(a)) : 1.0 / (1.0 + std::exp(-a));
}

/// Checks that |got - exact| is at most `ulps` ulps of `magnitude`.
void check_close(float got, double exact, double magnitude, double ulps) {
  CAPTURE(got, exact, magnitude);
  if (std::isnan(exact)) {
    CHECK(std::isnan(got));
    return;
  }
  CHECK((got == exact || std::fabs(got - exact) <= ulps * kUlp * magnitude + 8.0 * kSmallest));
}
void check_gate(float got, double exact) {
  check_close(got, exact, std::fabs(exact), 4.0);
}

/// Calls visit(a, b) for all pairs of arguments.
template <class Visit>
void each_pair(Visit visit) {
  for (const float a : kArguments)
    for (const float b : kArguments) visit(a, b);
}

}  // namespace

TEST_CASE("rnn cell: plain cells are within their error bounds") {
  each_pair([](float p, float q) {
    float slots[1];
    const double sum = static_cast<float>(p + q);
    check_gate(PlainCell::forward({p}, {q}, {}, slots, kTanh).h, std::tanh(sum));
    const float rectified = PlainCell::forward({p}, {q}, {}, slots, kRelu).h;
    check_gate(rectified, std::isnan(sum) ? sum : std::max(sum, 0.0));
  });
  for (const float h : {-1.0f, -0.25f, 0.0f, 0.5f, 1.0f})
    for (const float dh : {-3.0f, 0.0f, 1e-30f, 2.5f}) {
      float slots[1];
      CHECK(PlainCell::backward(slots, {}, {h, 0.0f}, {dh, 0.0f}, kTanh).h == 0.0f);
      check_close(slots[0], dh * (1.0 - double{h} * h), std::fabs(dh), 2.0);
      PlainCell::backward(slots, {}, {h, 0.0f}, {dh, 0.0f}, kRelu);
      CHECK(slots[0] == (h > 0.0f ? dh : 0.0f));
    }
}

TEST_CASE("rnn cell: LSTM forward is within its error bounds") {
  for (const float c_before : {0.0f, -0.5f, 3.0f, 1e4f})
    each_pair([&](float a, float b) {
      const float p[4] = {a, b, -a, 0.25f}, q[4] = {0.0f, 0.5f, b, a};
      float slots[4];
      const CellState after = LstmCell::forward(p, q, {0.0f, c_before}, slots, kNoClip);
      double exact[4];
      for (int g = 0; g < 4; g++) {
        const double sum = static_cast<float>(p[g] + q[g]);
        exact[g] = g == 2 ? std::tanh(sum) : sigmoid(sum);
        check_gate(slots[g], exact[g]);
      }
      const double kept = exact[1] * c_before, added = exact[0] * exact[2];
      check_close(after.c, kept + added, std::fabs(kept) + std::fabs(added), 16.0);
      check_close(after.h, exact[3] * std::tanh(kept + added),
                  std::fabs(exact[3]) * std::min(1.0, std::fabs(kept) + std::fabs(added)), 32.0);
    });
}

TEST_CASE("rnn cell: LSTM clips c, and a clipped c has no gradient") {
  constexpr CellOptions kClip{2.0f, false};
  const float p[4] = {kInfinity, kInfinity, kInfinity, kInfinity}, q[4] = {};  // gates of 1
  float slots[4];
  for (const float c_before : {-5.0f, 0.0f, 0.5f, 5.0f}) {
    const CellState after = LstmCell::forward(p, q, {0.0f, c_before}, slots, kClip);
    CHECK(after.c == std::min(std::max(c_before + 1.0f, -2.0f), 2.0f));
    const bool is_cut = std::fabs(after.c) == 2.0f;
    float grads[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    const CellState part = LstmCell::backward(grads, {0.0f, c_before}, after, {1.0f, 1.0f}, kClip);
    CHECK((part.c == 0.0f) == is_cut);
    CHECK((grads[2] == 0.0f) == is_cut);
    CHECK(grads[3] == 0.25f * tanh_of(after.c));
  }
  CHECK(std::isnan(LstmCell::forward(p, q, {0.0f, kNan}, slots, kClip).c));
}

TEST_CASE("rnn cell: LSTM backward is within its error bounds") {
  for (const float c_before : {0.0f, -0.5f, 3.0f})
    for (const float i : {0.0f, 0.25f, 1.0f})
      for (const float g : {-1.0f, 0.5f})
        for (const float dh : {-2.0f, 1e-3f})
          for (const float dc : {0.0f, 1.5f}) {
            const float f = 0.75f, o = 0.625f, c = f * c_before + i * g;
            float slots[4] = {i, f, g, o};
            const CellState part =
                LstmCell::backward(slots, {0.0f, c_before}, {0.0f, c}, {dh, dc}, kNoClip);
            const double t = std::tanh(double{c});
            const double through = dc + dh * double{o} * (1.0 - t * t);
            const double size = std::fabs(dc) + std::fabs(dh);
            check_close(slots[0], through * g * i * (1.0 - i), size * std::fabs(g), 16.0);
            check_close(slots[1], through * c_before * f * (1.0 - f), size * std::fabs(c_before),
                        16.0);
            check_close(slots[2], through * i * (1.0 - double{g} * g), size, 16.0);
            check_close(slots[3], dh * t * o * (1.0 - o), std::fabs(dh), 16.0);
            check_close(part.c, through * f, size, 16.0);
            CHECK(part.h == 0.0f);
          }
}

TEST_CASE("rnn cell: both forms of GRU forward are within their error bounds") {
  for (const float h : {0.0f, -0.5f, 3.0f})
    each_pair([&](float a, float b) {
      const float p[3] = {a, b, 0.25f}, q[3] = {0.0f, 0.5f, std::isinf(b) ? 1.0f : b};
      const double r = sigmoid(static_cast<float>(p[0] + q[0]));
      const double z = sigmoid(static_cast<float>(p[1] + q[1]));
      const auto check = [&](const CellState &after, const float(&slots)[4], double n,
                             double error) {
        check_gate(slots[0], r);
        check_gate(slots[1], z);
        check_close(slots[2], n, std::fabs(n) + error, 16.0);
        check_close(after.h, (1.0 - z) * n + z * h, std::fabs(n) + error + std::fabs(h), 32.0);
      };
      float slots[4];
      const CellState after = GruCell::forward(p, q, {h, 0.0f}, slots, kNoClip);
      CHECK(slots[3] == q[2]);
      check(after, slots, std::tanh(p[2] + r * q[2]), std::min(std::fabs(r * q[2]), 1.0));
      const CellState first = ResetFirstCell::forward(p, q, {h, 0.0f}, slots, kNoClip);
      check(first, slots, std::tanh(static_cast<float>(p[2] + q[2])), 0.0);
      check_close(slots[3], r * h, std::fabs(r * h), 8.0);
      CHECK(slots[3] == ResetFirstCell::reset(p[0], q[0], h));
    });
}

TEST_CASE("rnn cell: GRU returns exactly n if z = 0 and exactly h if z = 1") {
  for (const float h : {3.0f, 1e-30f, -0.1f})
    for (const float n : {1.0f, 1e-20f, -0.3f}) {
      CHECK(interpolated(n, h, 1.0f) == h);
      CHECK(interpolated(n, h, 0.0f) == n);
    }
}

TEST_CASE("rnn cell: both forms of GRU backward are within their error bounds") {
  for (const float h : {0.0f, -0.5f, 3.0f})
    for (const float r : {0.0f, 0.25f, 1.0f})
      for (const float z : {0.125f, 1.0f})
        for (const float n : {-1.0f, 0.5f})
          for (const float dh : {-2.0f, 1e-3f}) {
            const double dn = dh * (1.0 - z) * (1.0 - double{n} * n), size = std::fabs(dh);
            const double dz = dh * (double{h} - n) * z * (1.0 - z), q = 0.75;
            float slots[4] = {r, z, n, 0.75f};
            CHECK(GruCell::backward(slots, {h, 0.0f}, {}, {dh, 0.0f}, kNoClip).h == dh * z);
            check_close(slots[0], dn * q * r * (1.0 - r), size, 16.0);
            check_close(slots[1], dz, size * (std::fabs(h) + 1.0), 16.0);
            check_close(slots[2], dn, size, 16.0);
            check_close(slots[3], dn * r, size, 16.0);

            float first[4] = {r, z, n, r * h};
            CHECK(ResetFirstCell::backward(first, {h, 0.0f}, {}, {dh, 0.0f}, kNoClip).h == dh * z);
            CHECK(first[0] == r);
            CHECK(first[1] == slots[1]);
            CHECK(first[2] == slots[2]);
            CHECK(first[3] == r * h);
            float part = 0.5f;
            ResetFirstCell::reset_backward(first[0], part, h, dh);
            check_close(part, 0.5 + double{dh} * r, 0.5 + size, 2.0);
            check_close(first[0], double{dh} * h * r * (1.0 - r), size * std::fabs(h), 8.0);
          }
}

TEST_CASE("rnn cell: NaN propagates") {
  const float p[4] = {0.5f, 0.5f, kNan, 0.5f}, q[4] = {}, one[1] = {kNan}, none[1] = {};
  const float three[3] = {0.5f, 0.5f, kNan}, zeros[3] = {};
  float slots[4], slot[1];
  CHECK(std::isnan(PlainCell::forward(one, none, {}, slot, kTanh).h));
  CHECK(std::isnan(PlainCell::forward(one, none, {}, slot, kRelu).h));
  CHECK(std::isnan(LstmCell::forward(p, q, {}, slots, kNoClip).c));
  CHECK(std::isnan(LstmCell::forward(p, q, {}, slots, kNoClip).h));
  CHECK(std::isnan(GruCell::forward(three, zeros, {}, slots, kNoClip).h));
  CHECK(std::isnan(ResetFirstCell::forward(three, zeros, {}, slots, kNoClip).h));
}
