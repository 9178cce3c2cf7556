// A recurrent network as plain data: descriptor, lengths and all tensors in fp64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/testing.h"

namespace mptest {

using Values = std::vector<double>;

/// A cell, with the flags that change its equations.
struct RnnCell {
  mp_rnn_cell_t cell;
  uint32_t flags;
};
inline constexpr RnnCell kRnnCells[] = {{MP_RNN_TANH, 0},
                                        {MP_RNN_RELU, 0},
                                        {MP_RNN_LSTM, 0},
                                        {MP_RNN_GRU, 0},
                                        {MP_RNN_GRU, MP_RNN_FLAG_RESET_FIRST}};

/// Layout of x, y and their gradients.
enum class RnnLayout { kDense, kPadded, kBatchMajor };

struct RnnCase {
  mp_rnn_desc_t desc{};
  std::vector<int32_t> lengths;  ///< empty: all sequences have `timesteps` steps
  bool packed = false;           ///< lengths must be in descending order
  bool states = true;            ///< h_0, c_0 and the gradients of h_n, c_n are passed
  bool final_states = true;      ///< h_n, c_n, dh_0, dc_0 are requested
  RnnLayout layout = RnnLayout::kDense;
  int64_t offset = 0;  ///< offset of tensors from 256-byte alignment, in elements
  uint64_t dropout_offset = 0;
  bool has_dropout_offset = false;

  int64_t directions() const { return desc.flags & MP_RNN_FLAG_BIDIRECTIONAL ? 2 : 1; }
  int64_t gates() const { return desc.cell == MP_RNN_LSTM ? 4 : desc.cell == MP_RNN_GRU ? 3 : 1; }
  int64_t hidden() const { return desc.hidden_size; }
  int64_t outputs() const { return directions() * hidden(); }
  int64_t inputs(int64_t layer) const { return layer == 0 ? desc.input_size : outputs(); }
  int64_t gate_rows() const { return gates() * hidden(); }
  bool has(mp_rnn_flags_t flag) const { return (desc.flags & flag) != 0; }
  bool is_lstm() const { return desc.cell == MP_RNN_LSTM; }
  int64_t num_weights() const { return desc.layers * directions(); }
  int64_t states_size() const { return num_weights() * desc.batch * hidden(); }
  int32_t length(int64_t n) const {
    return lengths.empty() ? desc.timesteps : lengths[static_cast<size_t>(n)];
  }
  /// False for W_ih of the first layer if its input is added to the gates.
  bool has_w_ih(size_t weights) const {
    return !has(MP_RNN_FLAG_SKIP_INPUT) || static_cast<int64_t>(weights) >= directions();
  }
  bool has_step(int64_t n, int64_t t) const { return t < length(n); }

  size_t x_at(int64_t t, int64_t n) const {
    return static_cast<size_t>((t * desc.batch + n) * desc.input_size);
  }
  size_t y_at(int64_t t, int64_t n, int64_t direction = 0) const {
    return static_cast<size_t>((t * desc.batch + n) * outputs() + direction * hidden());
  }
  size_t state_at(int64_t layer, int64_t direction, int64_t n) const {
    return static_cast<size_t>(((layer * directions() + direction) * desc.batch + n) * hidden());
  }
};

/// Returns a network whose weights have FP32 gradients.
inline RnnCase make_rnn(mp_rnn_cell_t cell, int32_t batch, int32_t timesteps, int32_t input,
                        int32_t hidden, mp_dtype_t dtype, uint32_t flags = 0, int32_t layers = 1) {
  RnnCase c;
  c.desc = mp_rnn_desc_default(cell, batch, timesteps, input, hidden, dtype);
  c.desc.dtype_dw = MP_FP32;
  c.desc.flags = flags;
  c.desc.layers = layers;
  return c;
}

/// Weights of a layer and direction, or their gradients.
struct RnnWeights {
  Values w_ih, w_hh, b_ih, b_hh;
};

/// A tensor of RnnWeights.
struct RnnPart {
  const char *name;
  Values RnnWeights::*values;

  bool is_bias() const { return *name == 'b'; }
};
inline constexpr RnnPart kRnnParts[] = {{"w_ih", &RnnWeights::w_ih},
                                        {"w_hh", &RnnWeights::w_hh},
                                        {"b_ih", &RnnWeights::b_ih},
                                        {"b_hh", &RnnWeights::b_hh}};

/// Inputs of a network.  Rows of x and dy past the end of a sequence are NaN: they must not be
/// read.
struct RnnData {
  Values x;                         ///< [t][n][input]
  Values h0, c0;                    ///< [layer][direction][n][hidden]
  std::vector<RnnWeights> weights;  ///< [layer][direction]
  Values dy, dhn, dcn;
  std::vector<RnnWeights> dw;  ///< initial gradients of the weights
};

/// Outputs of a network.
struct RnnResult {
  Values y, hn, cn, dx, dh0, dc0;
  std::vector<RnnWeights> dw;
  float found_inf = 0.0f, amax = 0.0f;
};

inline bool equal(const Values &a, const Values &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_value);
}

/// Calls visit(name, output of a, output of b) for all gradients of weights that a case has.
template <class Visit>
void each_weight_gradient(const RnnCase &c, const RnnResult &a, const RnnResult &b, Visit visit) {
  for (size_t i = 0; i < a.dw.size(); ++i)
    for (const RnnPart &part : kRnnParts) {
      CAPTURE(i);
      if (part.values == &RnnWeights::w_ih && !c.has_w_ih(i)) continue;
      if (part.is_bias() && c.has(MP_RNN_FLAG_NO_BIAS)) continue;
      visit(part.name, a.dw[i].*part.values, b.dw[i].*part.values);
    }
}

/// The same for all outputs.
template <class Visit>
void each_output(const RnnCase &c, const RnnResult &a, const RnnResult &b, Visit visit) {
  visit("y", a.y, b.y);
  visit("hn", a.hn, b.hn);
  visit("cn", a.cn, b.cn);
  visit("dx", a.dx, b.dx);
  visit("dh0", a.dh0, b.dh0);
  visit("dc0", a.dc0, b.dc0);
  each_weight_gradient(c, a, b, visit);
}

/// Checks that all outputs have the same bits.
inline void check_same(const RnnCase &c, const RnnResult &a, const RnnResult &b) {
  each_output(c, a, b, [](const char *name, const Values &x, const Values &y) {
    CAPTURE(name);
    CHECK(equal(x, y));
  });
}

/// Returns rounded values from a random generator; tensors are generated in the order of the
/// struct.
template <class Draw>
Values drawn(int64_t count, mp_dtype_t dtype, Draw draw) {
  Values values(static_cast<size_t>(count));
  for (double &value : values) value = round_to(dtype, draw());
  return values;
}

inline void hide_padding(const RnnCase &c, Values &rows, int64_t columns) {
  for (int64_t t = 0; t < c.desc.timesteps; ++t)
    for (int64_t n = 0; n < c.desc.batch; ++n)
      for (int64_t j = 0; j < columns && !c.has_step(n, t); ++j)
        rows[static_cast<size_t>((t * c.desc.batch + n) * columns + j)] = kNaN;
}

/// Returns values in [-1, 1) and weights in +-1/sqrt(hidden), like torch's initialization.
inline RnnData real_data(const RnnCase &c, uint64_t seed, double dy_size = 1.0) {
  Random random(seed);
  const mp_dtype_t dtype = c.desc.dtype;
  const double weight = 1.0 / std::sqrt(static_cast<double>(c.hidden()));
  const auto unit = [&] { return random.real(-1.0, 1.0); };
  const auto small = [&] { return random.real(-weight, weight); };
  const auto gradient = [&] { return dy_size * random.real(-1.0, 1.0); };
  const int64_t rows = int64_t{c.desc.timesteps} * c.desc.batch;
  RnnData data;
  data.x = drawn(rows * c.desc.input_size, dtype, unit);
  data.h0 = drawn(c.states ? c.states_size() : 0, dtype, unit);
  data.c0 = drawn(c.states && c.is_lstm() ? c.states_size() : 0, MP_FP32, unit);
  for (int64_t i = 0; i < c.num_weights(); ++i) {
    const int64_t inputs = c.inputs(i / c.directions());
    data.weights.push_back({drawn(c.gate_rows() * inputs, dtype, small),
                            drawn(c.gate_rows() * c.hidden(), dtype, small),
                            drawn(c.gate_rows(), MP_FP32, small),
                            drawn(c.gate_rows(), MP_FP32, small)});
  }
  data.dy = drawn(rows * c.outputs(), dtype, gradient);
  data.dhn = drawn(c.states ? c.states_size() : 0, dtype, gradient);
  data.dcn = drawn(c.states && c.is_lstm() ? c.states_size() : 0, MP_FP32, gradient);
  hide_padding(c, data.x, c.desc.input_size);
  hide_padding(c, data.dy, c.outputs());
  return data;
}

}  // namespace mptest
