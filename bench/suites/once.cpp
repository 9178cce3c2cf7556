#include <cstdio>
#include <stdexcept>

#include "bench/shapes/conv_shapes.h"
#include "bench/shapes/epilogue_shapes.h"
#include "bench/shapes/shapes.h"
#include "problem.h"
#include "suite.h"

namespace mpbench {
namespace {

template <typename Shape>
const std::string &set_of(const Shape &shape) {
  return shape.set;
}
const std::string &set_of(const EpilogueShape &shape) {
  return shape.gemm.set;
}

/// Calls the shape named "set shape", the first one if DeepBench lists it twice.
/// @return false if the suite has none
template <typename Item, typename OperationOf>
bool call_named(const char *suite, const Options &options, const Machine &machine,
                OperationOf operation_of) {
  if (!options.has_suite(suite)) return false;
  Options asked = options;
  asked.filter = options.once;
  for (const Item &shape : read_sets<Item>(suite, asked, machine.on_host())) {
    if (set_of(shape) + ' ' + shape.name() != options.once) continue;
    RandomPool pool(machine, options.dtype);
    Problem problem(machine, pool, operation_of(shape));
    problem.own()();
    machine.synchronize();
    std::printf("%s: %s\n", options.once.c_str(), problem.operation().kernels.front());
    return true;
  }
  return false;
}

}  // namespace

void call_once(const Options &options, const Machine &machine) {
  const auto gemm = [&](const Shape &shape) {
    return gemm_operation(machine, shape, make_desc(shape, options.dtype, options.out_dtype));
  };
  const auto epilogue = [&](const EpilogueShape &shape) {
    return epilogue_operation(machine, shape, make_desc(shape, options.dtype));
  };
  const auto conv = [&](const ConvShape &shape) {
    return conv_operation(machine, shape, make_desc(shape, options.dtype, options.out_dtype));
  };
  if (!call_named<Shape>("gemm", options, machine, gemm) &&
      !call_named<EpilogueShape>("epilogue", options, machine, epilogue) &&
      !call_named<ConvShape>("conv", options, machine, conv))
    throw std::runtime_error("--once: no GEMM or convolution of this suite and --set is named \"" +
                             options.once + "\"; use \"set shape\" as in the results");
}

}  // namespace mpbench
