// One GEMM call as plain data that prints as one line, "m=129 n=64 k=72 op=TN ab=fp16 ...", and is
// read back from it:  MP_REPRO="<the line>" mptests "[repro]"  runs the case again.
#pragma once

#include <cstdint>
#include <string>

#include "mpcore.h"

namespace mptest {

/// Integers whose D is exact (fills.h); integers exact in fp32, so that the rounding to D shows;
/// reals in [-1, 1).
enum class Fill { kExact, kRounding, kReal };

/// A non-finite element put into A, and where along item, row and k.
enum class Plant { kNone, kInfinity, kNan };
enum class Place { kFirst, kMiddle, kLast };

struct GemmCase {
  int64_t m = 1, n = 1, k = 1;
  std::string op = "NN";  ///< op_a, op_b
  mp_dtype_t ab = MP_FP16, cd = MP_FP32;
  float alpha = 1.0f, beta = 0.0f;  ///< integers, where the fill is to be exact
  int64_t batch = 1;
  bool shared_a = false, shared_b = false;  ///< one matrix for all items
  bool pointers = false;                    ///< mp_gemm_batched
  bool in_place = false;                    ///< D is C
  int64_t pad = 0;                          ///< ld is at least the row length + pad ...
  int64_t multiple = 8;                     ///< ... rounded up to a multiple of this
  int64_t offset = 0;                       ///< elements by which A, B, C, D miss 256 bytes
  /// "ad2": A and D of batch item 2 lie one element further; with pointers, or in a group.
  std::string stray;
  Fill fill = Fill::kExact;
  Plant plant = Plant::kNone;
  Place place = Place::kFirst;
  mp_activation_t activation = MP_ACT_NONE;
  mp_dtype_t bias = MP_DTYPE_NONE;
  float scale = 0.0f;  ///< what epilogue.scale points to; 0 = no pointer
  bool aux = false;    ///< written by forward activations, read by MP_ACT_D*
  bool dbias = false, amax = false, found_inf = false;
  int64_t seed = 1;
  std::string kernel;  ///< empty = the library's choice
};

/// Whatever differs from a default GemmCase.
std::string to_string(const GemmCase &c);
GemmCase parse_gemm_case(const std::string &line);

}  // namespace mptest
