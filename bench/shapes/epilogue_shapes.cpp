#include "epilogue_shapes.h"

#include "selection.h"
#include "sets.h"

namespace mpbench {

const char *name_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "plain";
    case Epilogue::kBias:
      return "bias";
    case Epilogue::kBiasRelu:
      return "bias+ReLU";
    case Epilogue::kBiasGeluAux:
      return "bias+GELU+aux";
    case Epilogue::kDgeluDbias:
      return "dGELU+dbias";
    case Epilogue::kAmaxFoundInf:
      return "amax+found_inf";
    case Epilogue::kAccumulateFp32:
      return "fp32 +=";
  }
  return "";
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
  const bool has_aux =
      shape.epilogue == Epilogue::kBiasGeluAux || shape.epilogue == Epilogue::kDgeluDbias;
  const auto d_bytes = static_cast<double>(desc.m * desc.n * dtype_bytes(desc.dtype_cd));
  return min_bytes(desc) + (has_aux ? d_bytes : 0);
}

std::vector<EpilogueShape> read_epilogue_shapes(const Options &options, bool on_host) {
  std::vector<EpilogueShape> shapes;
  for (const ShapeSet &set : sets_of("epilogue", options.set)) {
    for (Shape &shape : read_shape_lines(options.home + "/shapes/" + set.file, parse_llm)) {
      shape.set = set.name;
      for (const Epilogue epilogue : epilogues_of(shape.op_a, shape.op_b))
        shapes.push_back({shape, epilogue});
    }
  }
  return selected(std::move(shapes), options, on_host);
}

}  // namespace mpbench
