// What the cases of mp_gemm and of a convolution have in common: types, scalars, fills, epilogue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "mpcore.h"

namespace mptest {

/// Input values (input_values.h): integers with an exact D, integers exact in fp32, which show the
/// rounding to D, or reals in [-1, 1).
enum class Fill { kExact, kRounding, kReal };

/// A non-finite element put into an input, and where along its dimensions.
enum class Special { kNone, kInfinity, kNan };
enum class Place { kFirst, kMiddle, kLast };

/// Of the two inputs, of what is written.
struct Types {
  mp_dtype_t ab, cd;
};
inline constexpr Types kAllTypes[] = {{MP_FP16, MP_FP16}, {MP_FP16, MP_BF16}, {MP_FP16, MP_FP32},
                                      {MP_BF16, MP_BF16}, {MP_BF16, MP_FP16}, {MP_BF16, MP_FP32},
                                      {MP_FP32, MP_FP32}, {MP_FP32, MP_FP16}, {MP_FP32, MP_BF16}};
inline constexpr Types kOneOfEach[] = {{MP_FP16, MP_FP16}, {MP_BF16, MP_FP32}, {MP_FP32, MP_FP32}};

struct OutputCase {
  mp_dtype_t ab = MP_FP16, cd = MP_FP32;  ///< of the two inputs, of what is written
  float alpha = 1.0f, beta = 0.0f;        ///< integers, where the fill is to be exact
  int64_t offset = 0;                     ///< elements by which all operands miss 256 bytes
  Fill fill = Fill::kExact;
  Special special = Special::kNone;
  Place place = Place::kFirst;
  mp_activation_t activation = MP_ACT_NONE;
  mp_dtype_t bias = MP_DTYPE_NONE;
  float scale = 0.0f;       ///< what epilogue.scale points to; 0 = no pointer
  bool zero_scale = false;  ///< *epilogue.scale = 0, whatever `scale`
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

/// Whether fp32 arithmetic adds nothing to the error of the last rounding.
inline bool is_exact(const OutputCase &c) {
  const bool is_piecewise_linear =
      c.activation == MP_ACT_NONE || c.activation == MP_ACT_RELU || c.activation == MP_ACT_DRELU;
  return c.fill != Fill::kReal && is_piecewise_linear;
}

}  // namespace mptest
