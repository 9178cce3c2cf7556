// Shapes of the recurrent benchmark: a line of a file is a layer; each pass of it is a call of
// mpcore/rnn.h with the GEMMs that it contains.
//
// One step of a layer with hidden size h, over a batch of n, has GEMMs with the recurrent weights R
// (g h, h), where g is the number of gates:
//
//     fprop   gates_t (n, g h) = h_{t-1} (n, h)  R^T         one GEMM per time step
//     dgrad   dh_{t-1} (n, h)  = dgates_t (n, g h)  R        one GEMM per time step
//     wgrad   dR (g h, h)      = dgates^T (g h, n t)  h (n t, h)   one GEMM for all steps
//
// There is no GEMM with input weights: DeepBench makes cuDNN add the input to the gates directly
// (CUDNN_SKIP_INPUT), and counts 2 g h^2 n t operations for every pass.  Its "vanilla" cell is
// CUDNN_RNN_RELU.
// Source: DeepBench, code/nvidia/rnn_bench.cu and cudnn_helper.h; cuDNN API, cudnnRNNMode_t.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shapes.h"

namespace mpbench {

constexpr const char *kRnnPasses[] = {"fprop", "dgrad", "wgrad"};
enum class RnnPass { kForward, kBackwardData, kBackwardWeights };

/// One pass of a layer.
struct RnnShape {
  std::string set = {};  ///< name in sets.h
  std::string pass;      ///< "fprop", "dgrad" or "wgrad"
  std::string cell;      ///< "vanilla", "lstm" or "gru"
  int64_t hidden, batch, timesteps;

  int64_t gates() const { return cell == "lstm" ? 4 : cell == "gru" ? 3 : 1; }

  /// Returns the passes of the layer.
  static std::vector<RnnShape> of_line(std::string_view line, const ShapeSet &set);
  /// Name, e.g. "fprop lstm h512 n16 t25".
  std::string name() const {
    return pass + ' ' + cell + " h" + std::to_string(hidden) + " n" + std::to_string(batch) + " t" +
           std::to_string(timesteps);
  }
  std::string label() const { return shape_label(set, name(), {}); }
  std::string kind() const { return set + ' ' + pass; }
  RnnPass call() const {
    return pass == "wgrad"   ? RnnPass::kBackwardWeights
           : pass == "dgrad" ? RnnPass::kBackwardData
                             : RnnPass::kForward;
  }
  /// True if the set is a training set: forward saves data for the gradients.
  bool is_training() const;
  double effort_flop() const { return gemms().effort_flop(); }

  /// The GEMMs of the pass, all with one shape.
  Shape gemms() const {
    const bool is_wgrad = pass == "wgrad";
    const int64_t gates_size = gates() * hidden;
    return {.set = set,
            .m = is_wgrad ? gates_size : batch,
            .n = pass == "fprop" ? gates_size : hidden,
            .k = is_wgrad          ? batch * timesteps
                 : pass == "fprop" ? hidden
                                   : gates_size,
            .op_a = is_wgrad ? MP_OP_T : MP_OP_N,
            .op_b = pass == "fprop" ? MP_OP_T : MP_OP_N,
            .is_wgrad = is_wgrad,
            .calls = is_wgrad ? 1 : timesteps};
  }
};

/// Returns the layer, which has no W_ih.
inline mp_rnn_desc_t layer_desc(const RnnShape &shape, mp_dtype_t dtype) {
  const mp_rnn_cell_t cell = shape.cell == "lstm"  ? MP_RNN_LSTM
                             : shape.cell == "gru" ? MP_RNN_GRU
                                                   : MP_RNN_RELU;
  const auto hidden = static_cast<int32_t>(shape.hidden);
  mp_rnn_desc_t desc =
      mp_rnn_desc_default(cell, static_cast<int32_t>(shape.batch),
                          static_cast<int32_t>(shape.timesteps), hidden, hidden, dtype);
  desc.flags = MP_RNN_FLAG_SKIP_INPUT;
  return desc;
}

/// Parses "hidden,batch,timesteps,type" as a forward pass.
inline RnnShape parse_rnn(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 4);
  if (fields.size() != 4) throw std::runtime_error("a line must be hidden,batch,timesteps,type");
  if (fields[3] != "vanilla" && fields[3] != "lstm" && fields[3] != "gru")
    throw std::runtime_error("type must be vanilla, lstm or gru");
  const RnnShape shape{.pass = "fprop",
                       .cell = std::string(fields[3]),
                       .hidden = parse_field(fields[0]),
                       .batch = parse_field(fields[1]),
                       .timesteps = parse_field(fields[2])};
  require_countable({4, shape.hidden, std::max(shape.hidden, shape.batch), shape.timesteps});
  return shape;
}

/// Descriptor of a DeepBench layer: one layer, one direction, with biases, without W_ih.
/// @param out  type of dW; NONE = that of the GEMM of `wgrad`, which accumulates in fp32
mp_rnn_desc_t make_desc(const RnnShape &shape, mp_dtype_t dtype, mp_dtype_t out);

/// Type of the output of the pass: y, dx or dW.
inline mp_dtype_t out_dtype(const RnnShape &shape, const mp_rnn_desc_t &desc) {
  return shape.call() == RnnPass::kBackwardWeights ? desc.dtype_dw : desc.dtype;
}

/// Bytes of all arrays of the call, each counted once, accumulated ones twice: W_hh, x and y, and
/// in training the reserve, in which a pass saves data for the next one.
/// @param reserve_bytes  size from mp_rnn_get_sizes
double min_bytes(const RnnShape &shape, const mp_rnn_desc_t &desc, int64_t reserve_bytes);

}  // namespace mpbench
