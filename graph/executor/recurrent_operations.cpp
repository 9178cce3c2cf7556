// LSTM, GRU and plain RNN layers: one layer, one direction, batch first.
#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

constexpr Attribute kRnn[] = {integer("relu", 0, 0, 1)};

enum : size_t { kX, kWeightIh, kWeightHh, kBiasIh, kBiasHh, kH0 };  // inputs of all cells
enum : size_t { kY, kH, kC };                                       // outputs, then the reserve
enum : size_t { kReserveIn = 8, kDy, kDh, kDc };                    // inputs, backward

/// Cell of a node, and the indices that depend on it; only LSTM has c0 and c.
struct Cell {
  explicit Cell(const Node &n) : kind(static_cast<mp_rnn_cell_t>(n.operation->traits.variant)) {
    const bool is_lstm = kind == MP_RNN_LSTM;
    gates = is_lstm ? 4 : kind == MP_RNN_GRU ? 3 : 1;
    if (is_lstm || n.is_backward) {  // backward nodes always have an input c0
      c0 = 6;
      lengths = 7;
    }
    if (is_lstm) {
      c = kC;
      reserve = 3;
    }
  }
  mp_rnn_cell_t kind;
  int64_t gates;
  size_t c0 = kAbsent, lengths = 6;
  size_t c = kAbsent, reserve = 2;
};

mp_rnn_desc_t rnn_desc(const Cell &cell, const Node &n, const Graph &g, mp_dtype_t dtype_dw) {
  const Extent &x = g.in(n, kX).extent;
  const int64_t hidden = g.in(n, kWeightHh).extent[1];
  const bool is_relu = cell.kind == MP_RNN_TANH && n.attributes[0].integer != 0;
  mp_rnn_desc_t d = mp_rnn_desc_default(is_relu ? MP_RNN_RELU : cell.kind, narrow(x[0]),
                                        narrow(x[1]), narrow(x[2]), narrow(hidden), n.dtype);
  d.dtype_dw = dtype_dw;
  if (!n.has_input(kBiasIh)) d.flags |= MP_RNN_FLAG_NO_BIAS;
  d.x_step = x[2];
  d.x_row = x[1] * x[2];
  d.y_step = hidden;
  d.y_row = x[1] * hidden;
  return d;
}

/// Requests workspace, and returns the size of the reserve.
size_t need_workspace(Emitter &e, const mp_rnn_desc_t &desc) {
  auto sizes = zero_struct<mp_rnn_sizes_t>();
  require_success(mp_rnn_get_sizes(e.context(), &desc, &sizes));
  e.needs_workspace(sizes.workspace_bytes);
  return sizes.reserve_bytes;
}

mp_rnn_weights_t rnn_weights(const LaunchArgs &run) {
  auto w = zero_struct<mp_rnn_weights_t>();
  w.w_ih = run.in(kWeightIh);
  w.w_hh = run.in(kWeightHh);
  w.b_ih = run.floats_in(kBiasIh);
  w.b_hh = run.floats_in(kBiasHh);
  return w;
}

/// Returns the tensors that both passes read.
mp_rnn_tensors_t rnn_tensors(const Cell &cell, const LaunchArgs &run,
                             const mp_rnn_weights_t &weights) {
  auto t = zero_struct<mp_rnn_tensors_t>();
  t.num_weights = 1;
  t.weights = &weights;
  t.lengths = run.integers_in(cell.lengths);
  t.x = run.in(kX);
  t.h0 = run.in(kH0);
  t.c0 = run.floats_in(cell.c0);
  return t;
}

void infer_rnn(Graph &g, const Node &n) {
  const Cell cell(n);
  const Extent &x = require_floats(g, n, kX, 3).extent;
  const Extent &w_hh = require_floats(g, n, kWeightHh, 2).extent;
  for (const size_t i : {kX, kWeightHh}) require_narrow(n, g.in(n, i));
  const int64_t batch = x[0], hidden = w_hh[1];
  require_extent(g, n, kWeightHh, {cell.gates * hidden, hidden});
  require_extent(g, n, kWeightIh, {cell.gates * hidden, x[2]});
  require_vector(g, n, kBiasIh, cell.gates * hidden);
  require_vector(g, n, kBiasHh, cell.gates * hidden);
  if (n.has_input(kBiasIh) != n.has_input(kBiasHh))
    fail_at(n, n.has_input(kBiasIh) ? "b_ih requires b_hh" : "b_hh requires b_ih");
  require_extent(g, n, kH0, {batch, hidden});
  require_extent(g, n, cell.c0, {batch, hidden});
  if (n.has_input(cell.lengths)) {
    require_integers(g, n, cell.lengths);
    require_extent(g, n, cell.lengths, {batch});
  }
  set_extent(g, n, kY, {batch, x[1], hidden});
  set_extent(g, n, kH, {batch, hidden});
  set_extent(g, n, cell.c, {batch, hidden});
}

void emit_rnn(Emitter &e, const Node &n) {
  const Cell cell(n);
  const mp_rnn_desc_t desc = rnn_desc(cell, n, e.graph(), n.dtype);
  e.size_output(n, cell.reserve, need_workspace(e, desc));
  const size_t reserve_bytes =
      n.has_output(cell.reserve) ? e.graph().out(n, cell.reserve).bytes(false) : 0;
  e.append("mp_rnn_forward", [=](const LaunchArgs &run) {
    const mp_rnn_weights_t weights = rnn_weights(run);
    mp_rnn_tensors_t t = rnn_tensors(cell, run, weights);
    t.reserve = run.out(cell.reserve);
    t.reserve_bytes = reserve_bytes;
    t.y = run.out(kY);
    t.hn = run.out(kH);
    t.cn = run.floats_out(cell.c);
    const auto forward = run.is_training ? mp_rnn_forward_training : mp_rnn_forward_inference;
    return forward(run.context, &desc, &t, run.workspace, run.workspace_bytes, run.stream);
  });
}

void emit_rnn_grad(Emitter &e, const Node &n) {
  const Cell cell(n);
  const Graph &g = e.graph();
  const size_t weight = n.has_output(kWeightIh) ? kWeightIh : kWeightHh;
  const mp_rnn_desc_t desc =
      rnn_desc(cell, n, g, n.has_output(weight) ? g.out(n, weight).dtype : n.dtype);
  need_workspace(e, desc);
  const size_t reserve_bytes = g.in(n, kReserveIn).bytes(false);
  // If the loss depends only on the last h, there is no dy.
  const size_t y_bytes = checked_bytes(
      checked_bytes(static_cast<size_t>(g.in(n, kX).rows()), static_cast<size_t>(desc.hidden_size)),
      mp_dtype_size(n.dtype));
  const AddressIndex dy = n.has_input(kDy) ? e.in(n, kDy) : e.zeros(y_bytes);
  e.append("mp_rnn_backward", [=](const LaunchArgs &run) {
    const mp_rnn_weights_t weights = rnn_weights(run);
    auto grads = zero_struct<mp_rnn_weight_grads_t>();
    grads.w_ih = run.out(kWeightIh);
    grads.w_hh = run.out(kWeightHh);
    grads.b_ih = run.floats_out(kBiasIh);
    grads.b_hh = run.floats_out(kBiasHh);
    mp_rnn_tensors_t t = rnn_tensors(cell, run, weights);
    t.reserve = run.in(kReserveIn);
    t.reserve_bytes = reserve_bytes;
    t.weight_grads = &grads;
    t.dy = run.at(dy);
    t.dhn = run.in(kDh);
    t.dcn = run.floats_in(kDc);
    t.dx = run.out(kX);
    t.dh0 = run.out(kH0);
    t.dc0 = run.floats_out(cell.c0);
    t.stats = run.stats;
    const mp_status_t status = mp_rnn_backward_data(run.context, &desc, &t, run.workspace,
                                                    run.workspace_bytes, run.stream);
    return status != MP_SUCCESS ? status
                                : mp_rnn_backward_weights(run.context, &desc, &t, run.workspace,
                                                          run.workspace_bytes, run.stream);
  });
}

// ---------------------------------------------------------------------------- the table

constexpr Port kBiases[] = {{"b_ih", kOptional | kFp32}, {"b_hh", kOptional | kFp32}};
constexpr Port kStates[] = {{"h0", kOptional | kUnbound}, {"c0", kOptional | kUnbound | kFp32}};
constexpr Port kLengths = {"lengths", kOptional | kUnbound};
constexpr Port kReserve = {"reserve", kKept | kBytes};

constexpr Traits forward(mp_rnn_cell_t cell) {
  return {.variant = cell, .depth = Depth::weights};
}

// clang-format off
constexpr Operation backward(std::string_view type, mp_rnn_cell_t cell,
                             std::span<const Attribute> attributes) {
  return {type,
          {{"x"}, {"w_ih"}, {"w_hh"}, kBiases[0], kBiases[1], kStates[0], kStates[1], kLengths,
           {"reserve"}, {"dy", kOptional}, {"dh", kOptional}, {"dc", kOptional | kFp32}},
          {{"dx", kOptional}, {"dw_ih", kOptional}, {"dw_hh", kOptional},
           {"db_ih", kOptional | kFp32}, {"db_hh", kOptional | kFp32}, {"dh0", kOptional},
           {"dc0", kOptional | kFp32}},
          attributes, emit_rnn_grad, {.variant = cell}};
}

constexpr Operation kRecurrent[] = {
    {"LSTM", {{"x"}, {"w_ih"}, {"w_hh"}, kBiases[0], kBiases[1], kStates[0], kStates[1], kLengths},
     {{"y"}, {"h", kOptional}, {"c", kOptional | kFp32}, kReserve}, {}, emit_rnn,
     forward(MP_RNN_LSTM), infer_rnn},
    {"GRU", {{"x"}, {"w_ih"}, {"w_hh"}, kBiases[0], kBiases[1], kStates[0], kLengths},
     {{"y"}, {"h", kOptional}, kReserve}, {}, emit_rnn, forward(MP_RNN_GRU), infer_rnn},
    {"RNN", {{"x"}, {"w_ih"}, {"w_hh"}, kBiases[0], kBiases[1], kStates[0], kLengths},
     {{"y"}, {"h", kOptional}, kReserve}, kRnn, emit_rnn, forward(MP_RNN_TANH), infer_rnn},
    backward("LSTMGrad", MP_RNN_LSTM, {}),
    backward("GRUGrad", MP_RNN_GRU, {}),
    backward("RNNGrad", MP_RNN_TANH, kRnn)};
// clang-format on

}  // namespace

std::span<const Operation> recurrent_operations() {
  return kRecurrent;
}

}  // namespace mp::graph
