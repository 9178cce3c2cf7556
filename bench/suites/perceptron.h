// Training step of a perceptron in two forms that make the same calls with bit-identical results:
// as a graph, and call by call without a graph.
#pragma once

#include <string>
#include <vector>

#include "bench/shapes/perceptron_shape.h"
#include "bench/timing/machine.h"
#include "mpcore.hpp"

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

/// The step by mp_graph_forward and mp_graph_backward.
class PerceptronAsGraph {
 public:
  /// @param dtype  MP_FP32, or the compute type of autocast.  `start` must outlive this object.
  PerceptronAsGraph(const Machine &machine, const PerceptronShape &shape, mp_dtype_t dtype,
                    const PerceptronStart &start);

  void step() const;
  /// Functions that a step calls, in order, as reported by mp_graph_describe.
  std::vector<std::string> calls() const;
  /// Gradients of all weights and biases, and the loss.
  std::vector<Written> written() const;

 private:
  const Machine &machine_;
  mp::graph graph_;
  std::vector<int32_t> parameters_;  ///< weight and bias of each GEMM
  std::vector<int32_t> outputs_;     ///< the loss, row losses, and number of correct rows
};

/// The step without a graph.  Everything that is constant between steps is prepared, as in a
/// compiled graph.
class PerceptronByHand {
 public:
  PerceptronByHand(const Machine &machine, const PerceptronShape &shape, mp_dtype_t dtype,
                   const PerceptronStart &start);

  void step() const;
  std::vector<std::string> calls() const;
  std::vector<Written> written() const;

 private:
  struct Layer {
    Buffer master, model, bias, weight_grad, bias_grad, y;
    mp_epilogue_t forward;  ///< GEMM that computes y
    mp_epilogue_t below;    ///< GEMM that computes the gradient before this layer's relu
    const void *weight;     ///< in the type that GEMMs read
  };

  Layer make_layer(size_t index, const PerceptronStart &start) const;
  void multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                const mp_epilogue_t *epilogue) const;

  const Machine &machine_;
  PerceptronShape shape_;
  mp_dtype_t dtype_;
  const float *x_;
  const int32_t *labels_;
  mp_gemm_desc_t forward_, data_gradient_, weight_gradient_, row_sum_;
  mp_xent_desc_t xent_;
  Buffer low_x_, ones_, workspace_, loss_, row_loss_, correct_;
  Buffer dz_[2];  ///< used alternately
  std::vector<Layer> layers_;
};

}  // namespace mpbench
