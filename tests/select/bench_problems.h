// The products and convolutions of the bench's shape files, as selection gets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/shape_file.h"
#include "bench/shapes/shapes.h"
#include "kernels/conv/conv_plan.h"
#include "select_cases.h"

namespace mptest {

template <class Shape>
std::vector<Shape> shapes_of(const char *path, Shape (*parse)(std::string_view)) {
  return mpbench::read_shape_lines(std::string("bench/shapes/") + path, parse);
}

/// Each for 16 bits and for FP32, behind what `problems` has.
inline void add_bench_gemms(const char *path, mpbench::Shape (*parse)(std::string_view),
                            std::vector<mp::GemmProblem> &problems) {
  for (const mpbench::Shape &shape : shapes_of(path, parse))
    for (const mp_dtype_t dtype : {MP_FP16, MP_FP32})
      problems.push_back(mp::gemm_problem(mpbench::make_desc(shape, dtype, MP_DTYPE_NONE)));
}

/// The three passes of each layer.
inline std::vector<mp::ConvProblem> bench_convolutions(const char *path, mp_dtype_t dtype) {
  std::vector<mp::ConvProblem> problems;
  for (const mpbench::ConvShape &shape : shapes_of(path, mpbench::parse_conv))
    for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD})
      problems.push_back(mp::conv_problem(mpbench::make_desc(shape, dtype, MP_DTYPE_NONE), op));
  return problems;
}

}  // namespace mptest
