// Common parts of GEMM and convolution test cases: types, scalars, input values, epilogue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "mpcore.h"

namespace mptest {

/// Input values (input_values.h): integers with an exact D, integers exact in fp32, which test the
/// rounding to D, or reals in [-1, 1).
enum class Fill { kExact, kRounding, kReal };

/// A non-finite element in an input, and its position along each dimension.
enum class Special { kNone, kInfinity, kNan };
enum class Place { kFirst, kMiddle, kLast };

/// Types of the inputs and of the output.
struct Types {
  mp_dtype_t ab, cd;
};

struct OutputCase {
  mp_dtype_t ab = MP_FP16, cd = MP_FP32;  ///< types of inputs and output
  float alpha = 1.0f, beta = 0.0f;        ///< integers, if the result must be exact
  int64_t offset = 0;                     ///< misalignment of all operands in elements
  Fill fill = Fill::kExact;
  Special special = Special::kNone;
  Place place = Place::kFirst;
  mp_activation_t activation = MP_ACT_NONE;
  mp_dtype_t bias = MP_DTYPE_NONE;
  float scale = 0.0f;       ///< value of *epilogue.scale; 0 = no pointer
  bool zero_scale = false;  ///< *epilogue.scale = 0, overrides `scale`
  bool aux = false;         ///< written by forward activations, read by MP_ACT_D*
  bool dbias = false, amax = false, found_inf = false;
  int64_t seed = 1;
  std::string kernel;  ///< empty = the library's choice
};

constexpr mp_activation_t kForwardActivations[] = {MP_ACT_RELU, MP_ACT_GELU, MP_ACT_SIGMOID,
                                                   MP_ACT_TANH, MP_ACT_SILU, MP_ACT_GELU_ERF};
constexpr mp_activation_t kBackwardActivations[] = {MP_ACT_DRELU, MP_ACT_DGELU, MP_ACT_DSIGMOID,
                                                    MP_ACT_DTANH, MP_ACT_DSILU, MP_ACT_DGELU_ERF};

inline bool reads_aux(const OutputCase &c) {
  return std::ranges::find(kBackwardActivations, c.activation) != std::end(kBackwardActivations);
}

/// True if fp32 arithmetic is exact, so that the final rounding is the only error.
inline bool is_exact(const OutputCase &c) {
  const bool is_piecewise_linear =
      c.activation == MP_ACT_NONE || c.activation == MP_ACT_RELU || c.activation == MP_ACT_DRELU;
  return c.fill != Fill::kReal && is_piecewise_linear;
}

}  // namespace mptest
