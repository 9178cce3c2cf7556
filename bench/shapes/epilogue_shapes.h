// GEMMs of a transformer's linear layers, each with the epilogues that training gives it.
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
  kBiasGeluAux,    ///< GELU, and what it is applied to for the backward pass
  kDgeluDbias,     ///< gradient of GELU, and the gradient of the bias before it
  kAmaxFoundInf,   ///< what loss scaling asks of weight gradients in 16 bits
  kAccumulateFp32  ///< D += of weight gradients over micro-batches
};

/// "bias+GELU+aux"
const char *name_of(Epilogue epilogue);

/// Of what a forward pass (NT), a data gradient (NN) and a weight gradient (TN) take, plain first.
std::vector<Epilogue> epilogues_of(mp_op_t op_a, mp_op_t op_b);

struct EpilogueShape {
  Shape gemm;
  Epilogue epilogue;

  /// e.g. "NT 8192x4096x1024 bias+ReLU"
  std::string name() const { return gemm.name() + ' ' + name_of(epilogue); }
  std::string label() const { return shape_label(gemm.set, name(), gemm.comment); }
  std::string kind() const { return gemm.kind() + ' ' + name_of(epilogue); }
  double effort_flop() const { return gemm.effort_flop(); }
};

/// The problem; D has the type of the operands, and is fp32 where it is accumulated.
mp_gemm_desc_t make_desc(const EpilogueShape &shape, mp_dtype_t dtype);

/// Every operand once, with those of the epilogue.
double min_bytes(const EpilogueShape &shape, const mp_gemm_desc_t &desc);

/// The shapes that the options ask for, each with its epilogues after each other.
/// @throws std::runtime_error if a file is missing or malformed.
std::vector<EpilogueShape> read_epilogue_shapes(const Options &options, bool on_host);

}  // namespace mpbench
