// Training step of a perceptron in two forms that make the same calls with bit-identical results:
// as a graph, and call by call without a graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/shapes/perceptron_shape.h"
#include "bench/timing/machine.h"

namespace mpbench {

/// An array of floats or integers that a step writes.
struct Written {
  std::string name;
  void *data;
  int64_t bytes;
  bool may_be_zero = false;  ///< all elements may be zero
};

/// Initial state of both forms, in host memory except for the batch.
struct PerceptronStart {
  PerceptronStart(const Machine &machine, const PerceptronShape &shape);

  std::vector<std::vector<float>> weights, biases;  ///< per GEMM
  Buffer x, labels;                                 ///< fp32, int32_t
};

/// A form of the step, which owns its memory except the start.
struct PerceptronStep {
  std::function<void()> run = {};
  std::vector<std::string> calls = {};  ///< functions that it calls, in order
  /// Gradients of the weight and the bias of each GEMM; loss, row losses, number of correct rows.
  std::vector<Written> written = {};
};

/// The step by mp_graph_forward and mp_graph_backward, with the calls that mp_graph_describe lists.
/// @param dtype  MP_FP32, or the compute type of autocast
PerceptronStep graph_step(const Machine &machine, const PerceptronShape &shape, mp_dtype_t dtype,
                          const PerceptronStart &start);

/// The step without a graph.  Everything that is constant between steps is prepared, as in a
/// compiled graph.
PerceptronStep hand_step(const Machine &machine, const PerceptronShape &shape, mp_dtype_t dtype,
                         const PerceptronStart &start);

}  // namespace mpbench
