// Shapes of GEMMs, epilogues, convolutions and recurrent layers.
#include "shapes.h"

#include "conv_shapes.h"
#include "epilogue_shapes.h"
#include "rnn_shapes.h"

namespace mpbench {

std::vector<Shape> read_shape_file(const std::string &path) {
  std::vector<Shape> shapes = read_shape_lines(path, parse_llm);
  for (Shape &shape : shapes) shape.set = path;
  return shapes;
}

std::vector<Shape> Shape::of_line(std::string_view line, const ShapeSet &set) {
  const bool is_row_major = std::string_view(set.name) == "llm";
  Shape shape = is_row_major ? parse_llm(line) : parse_deepbench(line);
  shape.set = set.name;
  return {shape};
}

// ---------------------------------------------------------------------------- epilogues

const EpilogueKind &kind_of(Epilogue epilogue) {
  static constexpr EpilogueKind kKinds[] = {
      {.name = "plain"},
      {.name = "bias", .has_bias = true},
      {.name = "bias+ReLU", .activation = MP_ACT_RELU, .has_bias = true},
      {.name = "bias+GELU+aux", .activation = MP_ACT_GELU, .has_bias = true, .has_aux = true},
      {.name = "dGELU+dbias", .activation = MP_ACT_DGELU, .has_aux = true, .has_dbias = true},
      {.name = "amax+found_inf", .has_stats = true},
      {.name = "fp32 +="}};
  return kKinds[static_cast<size_t>(epilogue)];
}

std::vector<Epilogue> epilogues_of(mp_op_t op_a, mp_op_t op_b) {
  if (op_a == MP_OP_T) return {Epilogue::kNone, Epilogue::kAmaxFoundInf, Epilogue::kAccumulateFp32};
  if (op_b == MP_OP_T)
    return {Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasRelu, Epilogue::kBiasGeluAux};
  return {Epilogue::kNone, Epilogue::kDgeluDbias};
}

mp_gemm_desc_t make_desc(const EpilogueShape &shape, mp_dtype_t dtype) {
  Shape gemm = shape.gemm;
  gemm.is_wgrad = shape.epilogue == Epilogue::kAccumulateFp32;
  return make_desc(gemm, dtype, MP_DTYPE_NONE);
}

double min_bytes(const EpilogueShape &shape, const mp_gemm_desc_t &desc) {
  const auto d_bytes = static_cast<double>(desc.m * desc.n * dtype_bytes(desc.dtype_cd));
  return min_bytes(desc) + (kind_of(shape.epilogue).has_aux ? d_bytes : 0);
}

std::vector<EpilogueShape> EpilogueShape::of_line(std::string_view line, const ShapeSet &set) {
  Shape gemm = parse_llm(line);
  gemm.set = set.name;
  std::vector<EpilogueShape> shapes;
  for (const Epilogue epilogue : epilogues_of(gemm.op_a, gemm.op_b))
    shapes.push_back({gemm, epilogue});
  return shapes;
}

// ---------------------------------------------------------------------------- convolutions

std::vector<ConvShape> ConvShape::of_line(std::string_view line, const ShapeSet &set) {
  ConvShape shape = parse_conv(line);
  shape.set = set.name;
  std::vector<ConvShape> passes(set.use == Use::kInference ? 1 : 3, shape);
  for (size_t i = 0; i < passes.size(); ++i) passes[i].op = kConvPasses[i];
  return passes;
}

// ---------------------------------------------------------------------------- recurrent layers

bool RnnShape::is_training() const {
  const ShapeSet *const own = find_set(set);
  return own == nullptr || own->use == Use::kTraining;
}

mp_rnn_desc_t make_desc(const RnnShape &shape, mp_dtype_t dtype, mp_dtype_t out) {
  mp_rnn_desc_t desc = layer_desc(shape, dtype);
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

std::vector<RnnShape> RnnShape::of_line(std::string_view line, const ShapeSet &set) {
  RnnShape shape = parse_rnn(line);
  shape.set = set.name;
  std::vector<RnnShape> passes(set.use == Use::kInference ? 1 : 3, shape);
  for (size_t i = 0; i < passes.size(); ++i) passes[i].pass = kRnnPasses[i];
  return passes;
}

}  // namespace mpbench
