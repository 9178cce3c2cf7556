// GEMMs of a transformer's linear layers with the epilogues that training uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shapes.h"

namespace mpbench {

enum class Epilogue {
  kNone,
  kBias,
  kBiasRelu,
  kBiasGeluAux,    ///< GELU; its input is stored for the backward pass
  kDgeluDbias,     ///< gradient of GELU, and of the bias before it
  kAmaxFoundInf,   ///< statistics of 16-bit weight gradients for loss scaling
  kAccumulateFp32  ///< weight gradients accumulated over micro-batches
};

struct EpilogueKind {
  const char *name;  ///< e.g. "bias+GELU+aux"
  mp_activation_t activation = MP_ACT_NONE;
  bool has_bias = false, has_aux = false, has_dbias = false;
  bool has_stats = false;  ///< amax and found_inf
};
const EpilogueKind &kind_of(Epilogue epilogue);

/// Epilogues of a forward pass (NT), a data gradient (NN) or a weight gradient (TN); the first has
/// none.
std::vector<Epilogue> epilogues_of(mp_op_t op_a, mp_op_t op_b);

struct EpilogueShape {
  Shape gemm;
  Epilogue epilogue;

  /// Returns all epilogues of the shape.
  static std::vector<EpilogueShape> of_line(std::string_view line, const ShapeSet &set);
  /// Name, e.g. "NT 8192x4096x1024 bias+ReLU".
  std::string name() const { return gemm.name() + ' ' + kind_of(epilogue).name; }
  std::string label() const { return shape_label(gemm.set, name(), gemm.comment); }
  std::string kind() const { return gemm.kind() + ' ' + kind_of(epilogue).name; }
  double effort_flop() const { return gemm.effort_flop(); }
};

/// Descriptor of the problem; D has the type of the operands, or fp32 if it is accumulated.
mp_gemm_desc_t make_desc(const EpilogueShape &shape, mp_dtype_t dtype);

/// Bytes of all operands and epilogue tensors, each counted once.
double min_bytes(const EpilogueShape &shape, const mp_gemm_desc_t &desc);

}  // namespace mpbench
