// LSTM, GRU and plain RNN layers: one layer, one direction, batch first.
#include "graph/executor/emitter.h"
#include "graph/executor/families.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

constexpr Attribute kRnn[] = {integer("relu", 0, 0, 1)};

/// Inputs of a cell in the order of its node; only LSTM has c0.
struct Inputs {
  static constexpr size_t x = 0, w_ih = 1, w_hh = 2, b_ih = 3, b_hh = 4, h0 = 5;
  size_t c0, lengths, count;
};
constexpr Inputs kLstmInputs = {6, 7, 8};
constexpr Inputs kOtherInputs = {kAbsent, 6, 7};

enum : size_t { kY, kH, kC };  // outputs, followed by the reserve

struct Cell {
  std::string_view type, grad;
  mp_rnn_cell_t kind;
  int64_t gates;
  Inputs inputs;
  size_t outputs;  ///< 3 with c, else 2

  bool is_lstm() const { return kind == MP_RNN_LSTM; }
  std::span<const Attribute> attributes() const {
    return kind == MP_RNN_TANH ? std::span<const Attribute>(kRnn) : std::span<const Attribute>();
  }
  /// Returns whether an input is always fp32: biases and c0.
  bool is_wide_input(size_t i) const {
    return i == Inputs::b_ih || i == Inputs::b_hh || i == inputs.c0;
  }
};

constexpr Cell kLstm = {"LSTM", "LSTMGrad", MP_RNN_LSTM, 4, kLstmInputs, 3};
constexpr Cell kGru = {"GRU", "GRUGrad", MP_RNN_GRU, 3, kOtherInputs, 2};
constexpr Cell kPlain = {"RNN", "RNNGrad", MP_RNN_TANH, 1, kOtherInputs, 2};

mp_rnn_desc_t rnn_desc(const Cell &cell, const Node &n, const Graph &g, mp_dtype_t dtype_dw) {
  const Extent &x = g.in(n, Inputs::x).extent;
  const int64_t hidden = g.in(n, Inputs::w_hh).extent[1];
  const bool is_relu = cell.kind == MP_RNN_TANH && n.attributes[0].integer != 0;
  mp_rnn_desc_t d = mp_rnn_desc_default(is_relu ? MP_RNN_RELU : cell.kind, narrow(x[0]),
                                        narrow(x[1]), narrow(x[2]), narrow(hidden), n.dtype);
  d.dtype_dw = dtype_dw;
  if (!n.has_input(Inputs::b_ih)) d.flags |= MP_RNN_FLAG_NO_BIAS;
  d.x_step = x[2];
  d.x_row = x[1] * x[2];
  d.y_step = hidden;
  d.y_row = x[1] * hidden;
  return d;
}

mp_rnn_sizes_t sizes_of(mp_context_t context, const mp_rnn_desc_t &desc) {
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&sizes);
  require_success(mp_rnn_get_sizes(context, &desc, &sizes));
  return sizes;
}

/// Places of the tensors that all calls of a cell use.
struct Shared {
  Shared(const Cell &cell, Emitter &e, const Node &n, Place reserve, size_t reserve_bytes)
      : w_ih(e.in(n, Inputs::w_ih)),
        w_hh(e.in(n, Inputs::w_hh)),
        b_ih(e.in(n, Inputs::b_ih)),
        b_hh(e.in(n, Inputs::b_hh)),
        x(e.in(n, Inputs::x)),
        h0(e.in(n, Inputs::h0)),
        c0(e.in(n, cell.inputs.c0)),
        lengths(e.in(n, cell.inputs.lengths)),
        reserve(reserve),
        reserve_bytes(reserve_bytes) {}

  mp_rnn_weights_t weights(const Run &run) const {
    return {sizeof(mp_rnn_weights_t), 0, run.at(w_ih), run.at(w_hh), run.floats_at(b_ih),
            run.floats_at(b_hh)};
  }
  /// Returns the tensors without weights.
  mp_rnn_tensors_t tensors(const Run &run) const {
    mp_rnn_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.num_weights = 1;
    t.lengths = run.integers_at(lengths);
    t.x = run.at(x);
    t.h0 = run.at(h0);
    t.c0 = run.floats_at(c0);
    t.reserve = run.at(reserve);
    t.reserve_bytes = reserve_bytes;
    return t;
  }

  Place w_ih, w_hh, b_ih, b_hh, x, h0, c0, lengths, reserve;
  size_t reserve_bytes;
};

class Recurrent final : public Operation {
 public:
  explicit Recurrent(const Cell &cell)
      : Operation(cell.type, {3, cell.inputs.count}, {1, cell.outputs}), cell_(cell) {}
  std::span<const Attribute> attributes() const override { return cell_.attributes(); }
  uint8_t input_slot(size_t i) const override {
    return cell_.is_wide_input(i) ? MP_AUTOCAST_SLOT_FP32 : 0;
  }
  bool may_be_unbound(size_t i) const override { return i >= Inputs::h0; }
  uint8_t output_slot(size_t i) const override {
    return cell_.is_lstm() && i == kC ? MP_AUTOCAST_SLOT_FP32 : 0;
  }
  int64_t depth(const Graph &g, const Node &n) const override {
    return g.in(n, Inputs::w_ih).extent[1] + g.in(n, Inputs::w_hh).extent[1];
  }

  void infer(Graph &g, const Node &n) const override {
    const Extent &x = require_floats(g, n, Inputs::x, "x", 3).extent;
    const Extent &w_hh = require_floats(g, n, Inputs::w_hh, "w_hh", 2).extent;
    for (const size_t i : {Inputs::x, Inputs::w_hh}) require_narrow(n, g.in(n, i));
    const int64_t batch = x[0], hidden = w_hh[1];
    require_extent(g, n, Inputs::w_hh, "w_hh", {cell_.gates * hidden, hidden});
    require_extent(g, n, Inputs::w_ih, "w_ih", {cell_.gates * hidden, x[2]});
    require_vector(g, n, Inputs::b_ih, "b_ih", cell_.gates * hidden);
    require_vector(g, n, Inputs::b_hh, "b_hh", cell_.gates * hidden);
    if (n.has_input(Inputs::b_ih) != n.has_input(Inputs::b_hh))
      fail_at(n, n.has_input(Inputs::b_ih) ? "b_ih requires b_hh" : "b_hh requires b_ih");
    require_extent(g, n, Inputs::h0, "h0", {batch, hidden});
    require_extent(g, n, cell_.inputs.c0, "c0", {batch, hidden});
    if (n.has_input(cell_.inputs.lengths)) {
      require_integers(g, n, cell_.inputs.lengths, "lengths");
      require_extent(g, n, cell_.inputs.lengths, "lengths", {batch});
    }
    set_extent(g, n, kY, {batch, x[1], hidden});
    set_extent(g, n, kH, {batch, hidden});
    if (cell_.is_lstm()) set_extent(g, n, kC, {batch, hidden});
  }

  void keep(Graph &g, Node &n) const override {
    if (!g.has_backward()) return;
    n.outputs.resize(cell_.outputs, kNone);  // the reserve follows all states, even absent ones
    Tensor reserve;
    reserve.name = n.name + "/reserve";
    reserve.dtype = MP_DTYPE_NONE;
    reserve.producer = g.out(n, kY).producer;
    n.outputs.push_back(g.add(std::move(reserve)));
  }

  /// Sizes the reserve for the full batch, which suffices for smaller ones: rows have equal size.
  void settle(Graph &g, const Node &n, mp_context_t context) const override {
    if (n.has_output(cell_.outputs))
      g.tensor(n.outputs[cell_.outputs]).extent = {
          static_cast<int64_t>(sizes_of(context, rnn_desc(cell_, n, g, n.dtype)).reserve_bytes)};
  }

  void differentiate(Gradients &d, const Node &n) const override {
    const auto in = [&](size_t i) { return n.has_input(i) ? n.input(i) : kNone; };
    const auto gradient = [&](size_t i) { return d.new_if_wanted(n, i); };
    const size_t inputs[] = {Inputs::x,    Inputs::w_ih, Inputs::w_hh,   Inputs::b_ih,
                             Inputs::b_hh, Inputs::h0,   cell_.inputs.c0};
    int32_t out[7];
    for (size_t i = 0; i < 7; ++i) out[i] = gradient(inputs[i]);
    // Additional inputs: the reserve, and the gradients of y, h and c.
    d.append(
        n, cell_.grad, "grad",
        {in(0), in(1), in(2), in(3), in(4), in(5), in(cell_.inputs.c0), in(cell_.inputs.lengths),
         n.outputs[cell_.outputs], d.of(n, kY), d.of(n, kH), cell_.is_lstm() ? d.of(n, kC) : kNone},
        {out[0], out[1], out[2], out[3], out[4], out[5], out[6]});
    for (size_t i = 0; i < 7; ++i) d.contribute(n, inputs[i], out[i]);
  }

  void emit(Emitter &e, const Node &n) const override {
    const bool has_reserve = n.has_output(cell_.outputs);
    const mp_rnn_desc_t desc = rnn_desc(cell_, n, e.graph(), n.dtype);
    e.needs_workspace(sizes_of(e.context(), desc).workspace_bytes);
    const size_t bytes = has_reserve ? e.graph().out(n, cell_.outputs).bytes(false) : 0;
    const Shared shared(cell_, e, n, e.out(n, cell_.outputs), bytes);
    const Place y = e.out(n, kY), h = e.out(n, kH),
                c = cell_.is_lstm() ? e.out(n, kC) : e.nowhere();
    e.append("mp_rnn_forward", [=](const Run &run) {
      const mp_rnn_weights_t weights = shared.weights(run);
      mp_rnn_tensors_t t = shared.tensors(run);
      t.weights = &weights;
      t.y = run.at(y);
      t.hn = run.at(h);
      t.cn = run.floats_at(c);
      const auto forward = run.is_training ? mp_rnn_forward_training : mp_rnn_forward_inference;
      return forward(run.context, &desc, &t, run.workspace, run.workspace_bytes, run.stream);
    });
  }

 private:
  const Cell &cell_;
};

class RecurrentGrad final : public BackwardOperation {
 public:
  explicit RecurrentGrad(const Cell &cell) : BackwardOperation(cell.grad), cell_(cell) {}
  std::span<const Attribute> attributes() const override { return cell_.attributes(); }
  uint8_t input_slot(size_t i) const override {
    return i == Inputs::b_ih || i == Inputs::b_hh || i == 6 || i == 11 ? MP_AUTOCAST_SLOT_FP32 : 0;
  }
  bool may_be_unbound(size_t i) const override { return i >= Inputs::h0; }
  uint8_t output_slot(size_t i) const override {
    return i == Inputs::b_ih || i == Inputs::b_hh || i == 6 ? MP_AUTOCAST_SLOT_FP32 : 0;
  }

  void emit(Emitter &e, const Node &n) const override {
    const Graph &g = e.graph();
    const size_t weight = n.has_output(Inputs::w_ih) ? Inputs::w_ih : Inputs::w_hh;
    const mp_rnn_desc_t desc =
        rnn_desc(cell_, n, g, n.has_output(weight) ? g.out(n, weight).dtype : n.dtype);
    e.needs_workspace(sizes_of(e.context(), desc).workspace_bytes);
    Cell inputs = cell_;
    inputs.inputs = kLstmInputs;  // backward nodes always have an input c0
    const Shared shared(inputs, e, n, e.in(n, 8), g.in(n, 8).bytes(false));
    // If the loss depends only on the last h, there is no dy.
    const size_t y_bytes = checked_bytes(checked_bytes(static_cast<size_t>(g.in(n, 0).rows()),
                                                       static_cast<size_t>(desc.hidden_size)),
                                         mp_dtype_size(n.dtype));
    const Place dy = n.has_input(9) ? e.in(n, 9) : e.zeros(y_bytes);
    const Place dh = e.in(n, 10), dc = e.in(n, 11);
    const Place dx = e.out(n, 0), dw_ih = e.out(n, 1), dw_hh = e.out(n, 2), db_ih = e.out(n, 3),
                db_hh = e.out(n, 4), dh0 = e.out(n, 5), dc0 = e.out(n, 6);
    e.append("mp_rnn_backward", [=](const Run &run) {
      const mp_rnn_weights_t weights = shared.weights(run);
      const mp_rnn_weight_grads_t grads = {
          sizeof(mp_rnn_weight_grads_t), 0, run.at(dw_ih), run.at(dw_hh), run.floats_at(db_ih),
          run.floats_at(db_hh)};
      mp_rnn_tensors_t t = shared.tensors(run);
      t.weights = &weights;
      t.weight_grads = &grads;
      t.dy = run.at(dy);
      t.dhn = run.at(dh);
      t.dcn = run.floats_at(dc);
      t.dx = run.at(dx);
      t.dh0 = run.at(dh0);
      t.dc0 = run.floats_at(dc0);
      t.stats.found_inf = run.found_inf;
      const mp_status_t status = mp_rnn_backward_data(run.context, &desc, &t, run.workspace,
                                                      run.workspace_bytes, run.stream);
      return status != MP_SUCCESS ? status
                                  : mp_rnn_backward_weights(run.context, &desc, &t, run.workspace,
                                                            run.workspace_bytes, run.stream);
    });
  }

 private:
  const Cell &cell_;
};

const Recurrent lstm(kLstm), gru(kGru), rnn(kPlain);
const RecurrentGrad lstm_grad(kLstm), gru_grad(kGru), rnn_grad(kPlain);

}  // namespace

std::span<const Operation *const> recurrent_operations() {
  static const Operation *const all[] = {&lstm, &gru, &rnn, &lstm_grad, &gru_grad, &rnn_grad};
  return all;
}

}  // namespace mp::graph
