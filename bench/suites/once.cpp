#include "suite.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/epilogue_shapes.h"
#include "bench/shapes/shapes.h"
#include "problem.h"

namespace mpbench {
namespace {

template <typename Shape>
const std::string &set_of(const Shape &shape) {
  return shape.set;
}
const std::string &set_of(const EpilogueShape &shape) {
  return shape.gemm.set;
}

/// Finds the shape named "set shape"; DeepBench lists some twice.
template <typename Shape>
const Shape *find_shape(const std::vector<Shape> &shapes, const std::string &name) {
  const auto found = std::find_if(shapes.begin(), shapes.end(), [&](const Shape &shape) {
    return set_of(shape) + ' ' + shape.name() == name;
  });
  return found == shapes.end() ? nullptr : &*found;
}

void call(const Machine &machine, RandomPool &pool, const Operation &operation,
          const std::string &name) {
  Problem problem(machine, pool, operation);
  problem.own()();
  machine.synchronize();
  std::printf("%s: %s\n", name.c_str(), operation.kernels.front());
}

}  // namespace

void call_once(const Options &options, const Machine &machine) {
  Options asked = options;
  asked.filter = options.once;
  RandomPool pool(machine, options.dtype);
  if (options.has_suite("gemm")) {
    const std::vector<Shape> shapes = read_shapes(asked, machine.on_host());
    if (const Shape *const shape = find_shape(shapes, options.once)) {
      const mp_gemm_desc_t desc = make_desc(*shape, options.dtype, options.out_dtype);
      return call(machine, pool, gemm_operation(machine, *shape, desc), options.once);
    }
  }
  if (options.has_suite("epilogue")) {
    const std::vector<EpilogueShape> shapes = read_epilogue_shapes(asked, machine.on_host());
    if (const EpilogueShape *const shape = find_shape(shapes, options.once)) {
      const mp_gemm_desc_t desc = make_desc(*shape, options.dtype);
      return call(machine, pool, epilogue_operation(machine, *shape, desc), options.once);
    }
  }
  if (options.has_suite("conv")) {
    const std::vector<ConvShape> shapes = read_conv_shapes(asked, machine.on_host());
    if (const ConvShape *const shape = find_shape(shapes, options.once)) {
      const mp_conv2d_desc_t desc = make_desc(*shape, options.dtype, options.out_dtype);
      return call(machine, pool, conv_operation(machine, *shape, desc), options.once);
    }
  }
  throw std::runtime_error("--once: no GEMM or convolution of this suite and --set is named \"" +
                           options.once + "\"; use \"set shape\" as in the results");
}

}  // namespace mpbench
