// What a recurrent network is asked, where its data lie, and which products it needs.
//
// Rows: one per step and sequence, in the order of the steps.  With `lengths` every step has `batch` of
// them; packed (batch_sizes), those of the sequences that have the step.
//
// The reserve keeps, per row and layer, side by side for both directions
//
//      c      fp32    c' of the step                       (LSTM)
//      slots  dtype   what the backward pass needs of the gates, and their gradients in its place
//      h      dtype   h' of the step, the output of the layer
//
// A row of slots begins with the gates of direction 0, then 1, so that their gradients are one operand:
// [i f g o], [r z n], [a].  Behind them GRU has one slot more per direction: q_n, and then dn r; with
// MP_RNN_RESET_FIRST r h, which stays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/gemm/problem.h"
#include "mpcore/rnn.h"

namespace mp {

enum class RnnPass { training, inference, backward_data, backward_weights };

/// A validated descriptor, and what follows from it.
struct RnnShape : mp_rnn_desc_t {
  explicit RnnShape(const mp_rnn_desc_t &desc);

  bool has(mp_rnn_flags_t flag) const { return (flags & flag) != 0; }
  bool resets_first() const { return has(MP_RNN_RESET_FIRST); }
  /// The first layer has no W_ih.
  bool skips_input(int64_t layer) const { return layer == 0 && has(MP_RNN_SKIP_INPUT); }
  bool drops(int64_t layer) const { return layer > 0 && dropout > 0.0f; }
  int64_t inputs(int64_t layer) const { return layer == 0 ? input_size : outputs(); }
  int64_t outputs() const { return directions * hidden_size; }
  int64_t elem_bytes() const { return dtype == MP_FP32 ? 4 : 2; }
  bool is_empty() const { return batch == 0 || timesteps == 0; }

  int64_t directions, gates;
  int64_t slots;      ///< per direction and unit
  int64_t gate_rows;  ///< of W: gates x hidden_size
  int64_t
      forward_rows;  ///< of W_hh, in the first product of a step; what is left has to do with r h
  int64_t backward_rows;  ///< the same backward, where every GRU has n apart
  int64_t slot_columns;   ///< of a row of slots
  int64_t rows;           ///< timesteps x batch
};

/// Where the first element of a gate of a direction is in a row of slots.
int64_t slot_column(const RnnShape &, int64_t direction, int64_t slot);

/// Offsets of the parts of the reserve; of layer l, l times the size of a layer further on.
struct RnnReserve {
  size_t c, slots, h;
  size_t c_layer, slots_layer, h_layer;
  size_t bytes;
};
RnnReserve rnn_reserve(const RnnShape &);

// ---------------------------------------------------------------------------- products

/// The products of a layer.  One of each is chosen; the first layer has others than those above it.
enum class RnnProduct {
  inputs,          ///< p = x W_ih^T, of as many steps as a chunk has
  recurrent,       ///< q = h W_hh^T, of a step
  candidate,       ///< MP_RNN_RESET_FIRST: q_n = (r h) W_n^T
  recurrent_grad,  ///< dh += dgates W_hh, of a step
  candidate_grad,  ///< GRU: of the gate n alone
  inputs_grad,     ///< dx = dgates W_ih of all steps and both directions
  weights_ih,      ///< dW_ih = dgates^T x
  weights_hh,      ///< dW_hh = dgates^T h of the step before
  weights_n        ///< GRU: of the gate n alone
};
constexpr int kRnnProducts = 9;

/// How many steps are multiplied with W_ih at a time.
int64_t rnn_chunk_steps(const RnnShape &);

/// Without data.  Rows are as many as decide which kernel runs it: bits are not to depend on how
/// many steps there are.
GemmProblem rnn_product(const RnnShape &, RnnProduct, int64_t layer);

/// Which products a pass needs in a layer.
std::vector<RnnProduct> rnn_products(const RnnShape &, RnnPass, int64_t layer);

/// How a step is done.
enum class RnnKernel {
  steps,       ///< products as mp_gemm has them, and a kernel for the cell
  fused_wmma,  ///< one kernel, with the cell as the epilogue of the product
  fused_wgmma  ///< the same on Hopper
};
constexpr int32_t kRnnKernels = 3;
constexpr const char *kRnnKernelNames[kRnnKernels] = {"rnn_steps", "rnn_fused_wmma",
                                                      "rnn_fused_wgmma"};

/// One clause, or NULL.
const char *why_not(RnnKernel, const RnnShape &, const Device &);
/// Those that can run it before the others; the first one is the best.
std::array<RnnKernel, kRnnKernels> rank_rnn_kernels(const RnnShape &, const Device &);

/// The kernels of a pass, of the first layer and of those above it.
struct RnnPlan {
  RnnKernel kernel;
  GemmPlan choices[2][kRnnProducts];
  size_t gemm_bytes;  ///< of workspace, for any of the products
  const GemmTuning *tuning;
};

/// The best kernel of which the bits of a row do not depend on how many rows there are: gemv's do.
GemmPlan best_for_any_rows(const GemmProblem &, const Device &, const GemmTuning &);
/// Whether it is one of many steps, and not of the few that a short sequence has.
bool has_any_rows(const RnnShape &, RnnProduct);

/// The kernel of `planned` for a problem of other rows or another alignment; the best, where it cannot run that.
GemmPlan adapt_plan(const GemmProblem &, const GemmPlan &planned, const Device &,
                    const GemmTuning &, bool aligned, size_t workspace_bytes);

// ---------------------------------------------------------------------------- workspace

/// Offsets of what a pass needs besides; 0 bytes where it needs nothing of the kind.
struct RnnWorkspace {
  size_t gemm;        ///< of the products themselves
  size_t p, q;        ///< fp32: of a chunk, of a step
  size_t inputs;      ///< of a chunk, or of all rows, as they are multiplied
  size_t h, c;        ///< of the step before: dtype, fp32
  size_t reset_h;     ///< dtype: r h
  size_t outputs[2];  ///< inference: of layers that are not the last
  size_t dh, dc;      ///< fp32: from step to step
  size_t d_reset_h;   ///< fp32: gradient of r h
  size_t dy;          ///< of a layer that is not the last
  size_t w_ih;        ///< of both directions, one behind the other
  size_t sums;        ///< fp32: of the columns of slots
  size_t sum_chunks;
  size_t sum_chunk_bytes;
  size_t bytes;
};
RnnWorkspace rnn_workspace(const RnnShape &, RnnPass, size_t gemm_bytes);

// ---------------------------------------------------------------------------- a call

/// One call, after validation; not empty.
struct RnnProblem {
  RnnPass pass;
  RnnShape shape;
  mp_rnn_tensors_t tensors;
  const RnnPlan *plan;
  RnnReserve reserve;
  RnnWorkspace places;
  void *workspace;
  std::vector<int64_t>
      step_rows;  ///< packed: the first row of each step, and past the last; else empty
};

}  // namespace mp
