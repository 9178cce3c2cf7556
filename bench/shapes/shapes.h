// Shapes of the GEMM benchmark: a line of a file is a row-major GEMM.
//
// DeepBench lists column-major problems C(m,n) = op(A) op(B).  A column-major matrix and its
// row-major transpose have the same memory layout.  Transposing the product gives
//
//     C^T (n,m) = op(B)^T (n,k)  op(A)^T (k,m)
//
// whose matrices in row-major order are the given arrays: the operands and m and n are swapped, and
// each operand keeps its flag.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/common.h"
#include "mpcore.h"
#include "shape_file.h"

namespace mpbench {

/// D(m,n) = op_a(A) op_b(B), row-major and dense.
struct Shape {
  std::string set;  ///< name in sets.h
  int64_t m, n, k;
  mp_op_t op_a, op_b;
  /// Accumulates weight gradients over micro-batches: by default, D is fp32 and beta is 1.
  bool is_wgrad = false;
  std::string comment = {};
  /// Number of consecutive GEMMs of this shape, with separate A and D and a shared B.
  int64_t calls = 1;

  /// Name of a single GEMM, e.g. "NT 4096x6144x4096".
  std::string name() const {
    const auto letter = [](mp_op_t op) { return op == MP_OP_T ? 'T' : 'N'; };
    return std::string{letter(op_a), letter(op_b), ' '} + std::to_string(m) + 'x' +
           std::to_string(n) + 'x' + std::to_string(k);
  }
  std::string label() const { return shape_label(set, name(), comment); }
  std::string kind() const { return set + ' ' + name().substr(0, 2); }

  static std::vector<Shape> of_line(std::string_view line, const ShapeSet &set);
  /// Operations of all calls.
  double flop() const { return static_cast<double>(calls) * flop_of(m, n, k); }
  /// A thin matrix takes as long as one with the width of a tile.
  double effort_flop() const {
    constexpr int64_t kTile = 64;
    return static_cast<double>(calls) * flop_of(std::max(m, kTile), std::max(n, kTile), k);
  }

 private:
  static double flop_of(int64_t m, int64_t n, int64_t k) {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// Descriptor of the problem; `out` MP_DTYPE_NONE is resolved as described at Shape::is_wgrad.
inline mp_gemm_desc_t make_desc(const Shape &shape, mp_dtype_t dtype, mp_dtype_t out) {
  const mp_dtype_t usual_out = shape.is_wgrad ? MP_FP32 : dtype;
  mp_gemm_desc_t desc = mp_gemm_desc_default(shape.m, shape.n, shape.k, dtype,
                                             out != MP_DTYPE_NONE ? out : usual_out);
  desc.op_a = shape.op_a;
  desc.op_b = shape.op_b;
  desc.ld_a = shape.op_a == MP_OP_N ? shape.k : shape.m;
  desc.ld_b = shape.op_b == MP_OP_N ? shape.n : shape.k;
  desc.beta = shape.is_wgrad && desc.dtype_cd == MP_FP32 ? 1.0f : 0.0f;
  return desc;
}

/// Bytes of all operands, each counted once; for `calls` GEMMs with separate A and D and a shared
/// B.
inline double min_bytes(const mp_gemm_desc_t &desc, int64_t calls = 1) {
  const double m = static_cast<double>(calls * desc.m), n = static_cast<double>(desc.n),
               k = static_cast<double>(desc.k);
  const double d_passes = desc.beta != 0 ? 2 : 1;
  return (m * k + k * n) * static_cast<double>(dtype_bytes(desc.dtype_ab)) +
         d_passes * m * n * static_cast<double>(dtype_bytes(desc.dtype_cd));
}

inline mp_op_t parse_op(char letter) {
  if (letter != 'N' && letter != 'T')
    throw std::runtime_error("layout must be two letters, each N or T");
  return letter == 'T' ? MP_OP_T : MP_OP_N;
}

/// Parses "m,n,k,a_t,b_t", column-major.
inline Shape parse_deepbench(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 4);
  if (fields.size() != 5) throw std::runtime_error("a line must be m,n,k,a_t,b_t");
  const bool a_t = parse_field(fields[3], 0, 1) != 0;
  const bool b_t = parse_field(fields[4], 0, 1) != 0;
  return {.set = "deepbench",
          .m = parse_field(fields[1]),
          .n = parse_field(fields[0]),
          .k = parse_field(fields[2]),
          .op_a = b_t ? MP_OP_T : MP_OP_N,
          .op_b = a_t ? MP_OP_T : MP_OP_N};
}

/// Parses "m,n,k,layout,comment", row-major; TN is a weight gradient dW = dy^T x.
inline Shape parse_llm(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 4);
  if (fields.size() != 5 || fields[3].size() != 2)
    throw std::runtime_error("a line must be m,n,k,layout,comment");
  return {.set = "llm",
          .m = parse_field(fields[0]),
          .n = parse_field(fields[1]),
          .k = parse_field(fields[2]),
          .op_a = parse_op(fields[3][0]),
          .op_b = parse_op(fields[3][1]),
          .is_wgrad = fields[3] == "TN",
          .comment = std::string(fields[4])};
}

/// Reads a file in the format of llm_gemm_shapes.csv.
/// @throws std::runtime_error if it is missing or malformed.
std::vector<Shape> read_shape_file(const std::string &path);

}  // namespace mpbench
