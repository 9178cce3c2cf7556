#include "rnn_shapes.h"

#include "selection.h"
#include "sets.h"

namespace mpbench {

bool RnnShape::is_training() const {
  const ShapeSet *const own = find_set(set);
  return own == nullptr || own->use == Use::kTraining;
}

mp_rnn_desc_t make_desc(const RnnShape &shape, mp_dtype_t dtype, mp_dtype_t out) {
  const mp_rnn_cell_t cell = shape.cell == "lstm"  ? MP_RNN_LSTM
                             : shape.cell == "gru" ? MP_RNN_GRU
                                                   : MP_RNN_RELU;
  const auto hidden = static_cast<int32_t>(shape.hidden);
  mp_rnn_desc_t desc =
      mp_rnn_desc_default(cell, static_cast<int32_t>(shape.batch),
                          static_cast<int32_t>(shape.timesteps), hidden, hidden, dtype);
  desc.flags = MP_RNN_FLAG_SKIP_INPUT;
  if (shape.call() != RnnPass::kBackwardWeights) return desc;
  const mp_gemm_desc_t gemm = make_desc(shape.gemms(), dtype, out);
  desc.dtype_dw = gemm.dtype_cd;
  if (gemm.beta != 0) desc.flags |= MP_RNN_FLAG_ACCUMULATE;
  return desc;
}

double min_bytes(const RnnShape &shape, const mp_rnn_desc_t &desc, int64_t reserve_bytes) {
  const auto weights = static_cast<double>(shape.gates() * shape.hidden * shape.hidden);
  const auto elems = static_cast<double>(shape.timesteps * shape.batch * shape.hidden);
  const auto elem_bytes = static_cast<double>(dtype_bytes(desc.dtype));
  const double kept = shape.is_training() ? static_cast<double>(reserve_bytes) : 0;
  if (shape.call() != RnnPass::kBackwardWeights) return (weights + 2 * elems) * elem_bytes + kept;
  const double dw_passes = (desc.flags & MP_RNN_FLAG_ACCUMULATE) != 0 ? 2 : 1;
  return dw_passes * weights * static_cast<double>(dtype_bytes(desc.dtype_dw)) + kept;
}

std::vector<RnnShape> read_rnn_shapes(const Options &options, bool on_host) {
  std::vector<RnnShape> shapes;
  for (const ShapeSet &set : sets_of("rnn", options.set)) {
    for (RnnShape &shape : read_shape_lines(options.home + "/shapes/" + set.file, parse_rnn)) {
      shape.set = set.name;
      shapes.push_back(shape);
      if (set.use == Use::kInference) continue;
      for (const char *gradient : {"dgrad", "wgrad"}) {
        shapes.push_back(shape);
        shapes.back().pass = gradient;
      }
    }
  }
  return selected(std::move(shapes), options, on_host);
}

}  // namespace mpbench
