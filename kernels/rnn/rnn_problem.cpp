// Sizes, products, kernel ranking and memory layout of a recurrent network.
#include "kernels/rnn/rnn_problem.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/workspace_layout.h"
#include "kernels/gemm/select.h"

namespace mp {

namespace {

/// Target row count of a product with W_ih; up to kFewRows, the exact row count selects its kernel.
constexpr int64_t kRowsAtOnce = 2048, kFewRows = 64;

int64_t steps_at_once(const RnnShape &s) {
  return std::max<int64_t>(kRowsAtOnce / s.directions / std::max(s.batch, 1), 1);
}

/// Row count that selects the kernels of products over many steps.
int64_t typical_rows(const RnnShape &s) {
  return s.rows <= kFewRows ? s.rows : steps_at_once(s) * s.batch;
}

Operand matrix(int64_t ld) {
  return {.base = nullptr, .items = nullptr, .ld = ld, .stride = 0};
}

/// D = op(A) op(B) + beta D, m x n, without pointers.
GemmProblem product(const RnnShape &s, int64_t m, int64_t n, int64_t k, mp_op_t op_a, int64_t ld_a,
                    mp_op_t op_b, int64_t ld_b, float beta, mp_dtype_t dtype, int64_t ld_d) {
  return {.out = {.m = m,
                  .n = n,
                  .batch_count = 1,
                  .dtype = dtype,
                  .alpha = 1.0f,
                  .beta = beta,
                  .c = matrix(ld_d),
                  .d = matrix(ld_d),
                  .epilogue = {}},
          .k = k,
          .op_a = op_a,
          .op_b = op_b,
          .dtype_ab = s.dtype,
          .a = matrix(ld_a),
          .b = matrix(ld_b)};
}

}  // namespace

RnnShape::RnnShape(const mp_rnn_desc_t &desc) : mp_rnn_desc_t(desc) {
  const int64_t hidden = hidden_size;
  directions = has(MP_RNN_FLAG_BIDIRECTIONAL) ? 2 : 1;
  gates = cell == MP_RNN_LSTM ? 4 : cell == MP_RNN_GRU ? 3 : 1;
  slots = cell == MP_RNN_LSTM || cell == MP_RNN_GRU ? 4 : 1;
  gate_rows = gates * hidden;
  forward_rows = resets_first() ? 2 * hidden : gate_rows;
  backward_rows = cell == MP_RNN_GRU ? 2 * hidden : gate_rows;
  slot_columns = directions * slots * hidden;
  rows = int64_t{timesteps} * batch;
}

int64_t slot_column(const RnnShape &s, int64_t direction, int64_t slot) {
  const int64_t hidden = s.hidden_size;
  if (slot < s.gates) return (direction * s.gates + slot) * hidden;
  return (s.directions * s.gates + direction) * hidden;
}

RnnReserve rnn_reserve(const RnnShape &s) {
  RnnReserve reserve{};
  const auto add = [&](int64_t columns, int64_t elem_bytes) {
    const RnnReserve::Part part{reserve.bytes, s.rows * columns * elem_bytes, columns, elem_bytes};
    reserve.bytes = align_up(part.offset + static_cast<size_t>(part.layer_bytes * s.layers), 64);
    return part;
  };
  reserve.c = add(s.cell == MP_RNN_LSTM ? s.outputs() : 0, sizeof(float));
  reserve.slots = add(s.slot_columns, s.elem_bytes());
  reserve.h = add(s.outputs(), s.elem_bytes());
  return reserve;
}

// ---------------------------------------------------------------------------- products

int64_t rnn_chunk_steps(const RnnShape &s) {
  return std::min<int64_t>(steps_at_once(s), s.timesteps);
}

Output rnn_slot_rows(const RnnShape &s) {
  const int64_t columns = s.slot_columns;
  return product(s, s.rows, columns, 0, MP_OP_N, 0, MP_OP_N, 0, 0.0f, s.dtype, columns).out;
}

GemmProblem rnn_product(const RnnShape &s, RnnProduct kind, int64_t layer) {
  const int64_t hidden = s.hidden_size, inputs = s.inputs(layer), batch = s.batch;
  const auto forward = [&](int64_t m, int64_t n, int64_t k) {
    return product(s, m, n, k, MP_OP_N, k, MP_OP_T, k, 0.0f, MP_FP32, s.gate_rows);
  };
  const auto backward = [&](int64_t m, int64_t n, int64_t k, float beta, mp_dtype_t dtype) {
    return product(s, m, n, k, MP_OP_N, s.slot_columns, MP_OP_N, n, beta, dtype, n);
  };
  // beta = 1 in all cases, so that sizes do not depend on MP_RNN_FLAG_ACCUMULATE.
  const auto weights = [&](int64_t m, int64_t n) {
    return product(s, m, n, s.rows, MP_OP_T, s.slot_columns, MP_OP_N, n, 1.0f, s.dtype_dw, n);
  };
  switch (kind) {
    case RnnProduct::inputs:
      return forward(typical_rows(s), s.gate_rows, inputs);
    case RnnProduct::recurrent:
      return forward(batch, s.forward_rows, hidden);
    case RnnProduct::candidate:
      return forward(batch, hidden, hidden);
    case RnnProduct::recurrent_grad:
      return backward(batch, hidden, s.backward_rows, 1.0f, MP_FP32);
    case RnnProduct::candidate_grad:
      return backward(batch, hidden, hidden, s.resets_first() ? 0.0f : 1.0f, MP_FP32);
    case RnnProduct::inputs_grad:
      return backward(typical_rows(s), inputs, s.directions * s.gate_rows, 0.0f, s.dtype);
    case RnnProduct::weights_ih:
      return weights(s.gate_rows, inputs);
    case RnnProduct::weights_hh:
      return weights(s.backward_rows, hidden);
    case RnnProduct::weights_n:
      return weights(hidden, hidden);
  }
  return {};
}

std::vector<RnnProduct> rnn_products(const RnnShape &s, RnnPass pass, int64_t layer) {
  using enum RnnProduct;
  const bool has_w_ih = !s.skips_input(layer), is_gru = s.cell == MP_RNN_GRU;
  const auto needed = [](std::initializer_list<std::pair<bool, RnnProduct>> all) {
    std::vector<RnnProduct> products;
    for (const auto &[is_needed, product] : all)
      if (is_needed) products.push_back(product);
    return products;
  };
  if (pass == RnnPass::backward_data)
    return needed({{true, recurrent_grad}, {is_gru, candidate_grad}, {has_w_ih, inputs_grad}});
  if (pass == RnnPass::backward_weights)
    return needed({{has_w_ih, weights_ih}, {true, weights_hh}, {is_gru, weights_n}});
  return needed({{has_w_ih, inputs}, {true, recurrent}, {s.resets_first(), candidate}});
}

const char *why_not(RnnKernel kernel, const RnnShape &s, const Device &device) {
  if (kernel == RnnKernel::steps) return nullptr;
  if (const char *const why = why_no_tensor_cores(s.dtype, device.arch); why != nullptr) return why;
  if (s.resets_first()) return "does not support MP_RNN_FLAG_RESET_FIRST";
  if (kernel == RnnKernel::fused_wgmma) {
    if (!device.has_wgmma) return "requires sm_90a code, which this build or driver lacks";
    // TMA requires rows of W_hh and of the gates that are aligned to 16 bytes.
    if (s.hidden_size % 8 != 0) return "requires hidden_size to be a multiple of 8";
  }
  return nullptr;
}

/// A fixed rule, until a device has been measured.  On a GPU, launches and reads of W_hh take most
/// of the time.  With few units there are so few wide wgmma tiles that they read no less than the
/// WMMA tiles (fused_wgmma.cu lists the bytes).  On the host target, launches are cheap and WMMA is
/// slower than the CPU's vector instructions.
std::array<RnnKernel, kRnnKernels> rank_rnn_kernels(const RnnShape &s, const Device &device) {
  constexpr int32_t kFewUnits = 256;
  std::array<RnnKernel, kRnnKernels> ranked = {RnnKernel::fused_wgmma, RnnKernel::fused_wmma,
                                               RnnKernel::steps};
  if (device.target == MP_TARGET_HOST)
    std::reverse(ranked.begin(), ranked.end());
  else if (s.hidden_size < kFewUnits)
    std::swap(ranked[0], ranked[1]);
  std::stable_partition(ranked.begin(), ranked.end(),
                        [&](RnnKernel kernel) { return why_not(kernel, s, device) == nullptr; });
  return ranked;
}

bool has_any_rows(const RnnShape &s, RnnProduct kind) {
  return (kind == RnnProduct::inputs || kind == RnnProduct::inputs_grad) && s.rows > kFewRows;
}

// ---------------------------------------------------------------------------- workspace

namespace {

/// Adds `count` elements, 0 unless `needed`, and returns their offset.
size_t add(WorkspaceLayout &layout, bool needed, int64_t count, int64_t elem_bytes) {
  return layout.add(needed ? static_cast<size_t>(count * elem_bytes) : 0);
}

void add_forward(const RnnShape &s, bool is_training, WorkspaceLayout &layout, RnnWorkspace &w) {
  const int64_t chunk_rows = rnn_chunk_steps(s) * s.batch, elem = s.elem_bytes();
  const int64_t state = int64_t{s.batch} * s.hidden_size, states = s.directions * state;
  w.p = add(layout, !s.skips_input(0) || s.layers > 1, s.directions * chunk_rows * s.gate_rows,
            sizeof(float));
  w.q = add(layout, true, s.batch * s.gate_rows, sizeof(float));
  w.inputs = add(layout, is_training && s.drops(s.layers - 1), chunk_rows * s.outputs(), elem);
  w.h = add(layout, true, 2 * states, elem);
  w.c = add(layout, s.cell == MP_RNN_LSTM, states, sizeof(float));
  w.reset_h = add(layout, s.resets_first(), state, elem);
  for (int i = 0; i < 2; i++)
    w.outputs[i] = add(layout, !is_training && s.layers > 1 + i, s.rows * s.outputs(), elem);
}

void add_backward_data(const RnnShape &s, WorkspaceLayout &layout, RnnWorkspace &w) {
  const int64_t state = int64_t{s.batch} * s.hidden_size, states = s.directions * state;
  const int64_t widest =
      std::max(s.skips_input(0) ? 0 : s.inputs(0), s.layers > 1 ? s.inputs(1) : 0);
  w.dh = add(layout, true, states, sizeof(float));
  w.dc = add(layout, s.cell == MP_RNN_LSTM, states, sizeof(float));
  w.d_reset_h = add(layout, s.resets_first(), state, sizeof(float));
  w.dy = add(layout, s.layers > 1, s.rows * s.outputs(), s.elem_bytes());
  w.w_ih = add(layout, s.directions > 1, s.directions * s.gate_rows * widest, s.elem_bytes());
}

void add_backward_weights(const RnnShape &s, WorkspaceLayout &layout, RnnWorkspace &w) {
  const int64_t widest = std::max<int64_t>(
      {s.hidden_size, s.skips_input(0) ? 0 : s.inputs(0), s.drops(s.layers - 1) ? s.outputs() : 0});
  w.inputs = add(layout, true, s.rows * widest, s.elem_bytes());
  w.sums = add(layout, true, s.slot_columns, sizeof(float));
  w.sum_chunk_bytes = s.rows == 0 ? 0 : plan_column_sum(shape_of(rnn_slot_rows(s)), SIZE_MAX).bytes;
  w.sum_chunks = layout.add(w.sum_chunk_bytes);
}

}  // namespace

RnnWorkspace rnn_workspace(const RnnShape &s, RnnPass pass, size_t gemm_bytes) {
  RnnWorkspace w{};
  WorkspaceLayout layout;
  w.gemm = layout.add(gemm_bytes);
  if (pass == RnnPass::backward_data)
    add_backward_data(s, layout, w);
  else if (pass == RnnPass::backward_weights)
    add_backward_weights(s, layout, w);
  else
    add_forward(s, pass == RnnPass::training, layout, w);
  w.bytes = layout.size();
  return w;
}

}  // namespace mp
