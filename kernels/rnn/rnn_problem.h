// Problem of a recurrent network: shape, products, kernel plan, layout of reserve and workspace.
//
// There is one row per step and sequence, ordered by step.  A step has `batch` rows with `lengths`,
// or one row per sequence that has the step if packed (batch_sizes).
//
// The reserve holds, per row and layer, with both directions adjacent in each row:
//
//      c      fp32    c' of the step                        (LSTM)
//      slots  dtype   saved gates; the backward pass overwrites them with their gradients
//      h      dtype   h' of the step, the output of the layer
//
// A row of slots has the gates of direction 0, then those of direction 1, so that their gradients
// are one operand: [i f g o], [r z n], [a].  For GRU, one more slot per direction follows: q_n,
// overwritten with dn r; with MP_RNN_FLAG_RESET_FIRST r h, which is not overwritten.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/gemm/plan.h"
#include "mpcore/rnn.h"

namespace mp {

enum class RnnPass { training, inference, backward_data, backward_weights };

/// Validated descriptor and the sizes derived from it.
struct RnnShape : mp_rnn_desc_t {
  explicit RnnShape(const mp_rnn_desc_t &desc);

  bool has(mp_rnn_flags_t flag) const { return (flags & flag) != 0; }
  bool resets_first() const { return has(MP_RNN_FLAG_RESET_FIRST); }
  /// Returns whether the layer has no W_ih.
  bool skips_input(int64_t layer) const { return layer == 0 && has(MP_RNN_FLAG_SKIP_INPUT); }
  bool drops(int64_t layer) const { return layer > 0 && dropout > 0.0f; }
  int64_t inputs(int64_t layer) const { return layer == 0 ? input_size : outputs(); }
  int64_t outputs() const { return directions * hidden_size; }
  int64_t elem_bytes() const { return float_type(dtype).bytes; }
  bool is_empty() const { return batch == 0 || timesteps == 0; }

  int64_t directions, gates;
  int64_t slots;          ///< per direction and unit
  int64_t gate_rows;      ///< rows of W: gates x hidden_size
  int64_t forward_rows;   ///< rows of W_hh in a step's first product; the rest multiplies r h
  int64_t backward_rows;  ///< same for backward, where n of a GRU is a separate product
  int64_t slot_columns;   ///< columns of a row of slots
  int64_t rows;           ///< timesteps x batch
};

/// Returns the first column of a slot of a direction in a row of slots.
int64_t slot_column(const RnnShape &, int64_t direction, int64_t slot);

/// Parts of the reserve; the layers of a part are contiguous.
struct RnnReserve {
  struct Part {
    size_t offset;
    int64_t layer_bytes;  ///< 0: the part is absent
    int64_t columns, elem_bytes;
  };
  Part c, slots, h;
  size_t bytes;
};
RnnReserve rnn_reserve(const RnnShape &);

// ---------------------------------------------------------------------------- products

/// Products of a layer.  Each has one plan for the first layer and one for all others.
enum class RnnProduct {
  inputs,          ///< p = x W_ih^T, for the steps of a chunk
  recurrent,       ///< q = h W_hh^T, for one step
  candidate,       ///< MP_RNN_FLAG_RESET_FIRST: q_n = (r h) W_n^T
  recurrent_grad,  ///< dh += dgates W_hh, for one step
  candidate_grad,  ///< GRU: same for the gate n
  inputs_grad,     ///< dx = dgates W_ih, for all steps and both directions
  weights_ih,      ///< dW_ih = dgates^T x
  weights_hh,      ///< dW_hh = dgates^T h, with h of the previous step
  weights_n        ///< GRU: same for the gate n
};
constexpr int kRnnProducts = 9;

/// Returns the slots of a layer as a matrix without pointers, whose columns are summed.
Output rnn_slot_rows(const RnnShape &);

/// Number of steps that are multiplied by W_ih at a time.
int64_t rnn_chunk_steps(const RnnShape &);

/// Returns a product without pointers.  Its row count is the one that selects the kernel, not the
/// actual one: bits must not depend on the number of steps.
GemmProblem rnn_product(const RnnShape &, RnnProduct, int64_t layer);

/// Products of a pass in a layer.
std::vector<RnnProduct> rnn_products(const RnnShape &, RnnPass, int64_t layer);

/// Implementation of a time step.
enum class RnnKernel {
  steps,       ///< GEMMs as in mp_gemm, and a kernel for the cell
  fused_wmma,  ///< one kernel: a GEMM with the cell as its epilogue
  fused_wgmma  ///< the same on Hopper
};
constexpr int32_t kRnnKernels = 3;
constexpr const char *kRnnKernelNames[kRnnKernels] = {"rnn_steps", "rnn_fused_wmma",
                                                      "rnn_fused_wgmma"};

/// Returns the reason why a kernel cannot run a shape, or NULL.
const char *why_not(RnnKernel, const RnnShape &, const Device &);
/// Returns all kernels, best first; kernels that cannot run the shape come last.
std::array<RnnKernel, kRnnKernels> rank_rnn_kernels(const RnnShape &, const Device &);

/// Plans of a pass: plans[0] is for the first layer, plans[1] for all others.
struct RnnPlan {
  RnnKernel kernel;
  GemmPlan plans[2][kRnnProducts];
  size_t gemm_bytes;  ///< workspace, sufficient for each product
  // Bits depend on these two, so a plan of the user determines them.
  const GemmTuning *tuning;  ///< constants for adapt_plan
  Device device;             ///< device for adapt_plan and fused kernels, whose parts of k
                             ///< depend on its num_sms
};

/// True if the product covers many steps, so that its row count varies.
bool has_any_rows(const RnnShape &, RnnProduct);

// ---------------------------------------------------------------------------- workspace

/// Byte offsets of a pass's temporary data in the workspace; unused parts have 0 bytes.
struct RnnWorkspace {
  size_t gemm;        ///< workspace of the products
  size_t p, q;        ///< fp32: p of a chunk, q of a step
  size_t inputs;      ///< gathered input rows of a chunk, or of all steps
  size_t h, c;        ///< state of the previous step: dtype, fp32
  size_t reset_h;     ///< dtype: r h
  size_t outputs[2];  ///< inference: outputs of all layers but the last, alternating
  size_t dh, dc;      ///< fp32: gradients of h and c, updated by each step
  size_t d_reset_h;   ///< fp32: gradient of r h
  size_t dy;          ///< gradient of the output of a layer that is not the last
  size_t w_ih;        ///< W_ih of both directions, concatenated
  size_t sums;        ///< fp32: sums of the columns of slots
  size_t sum_chunks;
  size_t sum_chunk_bytes;
  size_t bytes;
};
RnnWorkspace rnn_workspace(const RnnShape &, RnnPass, size_t gemm_bytes);

// ---------------------------------------------------------------------------- a call

/// Validated call with at least one row.
struct RnnProblem {
  RnnPass pass;
  RnnShape shape;
  mp_rnn_tensors_t tensors;
  const RnnPlan *plan;
  RnnReserve reserve;
  RnnWorkspace layout;
  void *workspace;
  std::vector<int64_t> step_rows;  ///< packed: first row of each step, then the total; else empty
};

}  // namespace mp
