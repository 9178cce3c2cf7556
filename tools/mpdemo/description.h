// A network while it is described: every layer is a node or two of a graph of mpcore, in fp32.  What runs forward
// and backward, and in which types, follows from it (mpcore/graph.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpcore.hpp"

namespace mpdemo {

/// In what form a network is made.
struct Form {
  mp_dtype_t dtype;   ///< MP_FP32, or the 16-bit type of autocast
  int64_t batch;      ///< images or sequences, at most
  int64_t steps;      ///< of a sequence; images: 1
  float loss_weight;  ///< of the mean over the batch
  bool is_observed;   ///< its logits and the gradients of its activations can be read
};

/// A parameter, or a state that is not trained, and how it begins.
struct Variable {
  int32_t tensor;
  int64_t numel;
  int32_t rank;
  bool is_trained;
  double bound;  ///< random values in [-bound, bound), or
  float value;   ///< where the bound is 0, the same in every element
};

/// What a sequence carries from one batch to the next.
struct Carried {
  int32_t from_before, to_next;
  int64_t numel;  ///< for the largest batch
};

class Description {
 public:
  Description(mp_context_t context, const Form &form);

  /// Pixels as fp32, batch x `extent`.
  int32_t image(const std::vector<int64_t> &extent);
  /// Symbols as integers, batch x steps, of which each sequence has a length.
  int32_t symbols();

  // Each layer returns its y.  Its parameters begin as the paper or the framework named beside them has it.

  /// y = x W + b.
  int32_t linear(const std::string &name, int32_t x, int64_t out);
  int32_t relu(int32_t x);
  /// As many outputs as pixels, without a bias; `size` is odd.
  int32_t conv2d(const std::string &name, int32_t x, int64_t channels, int64_t size);
  int32_t batch_norm_relu(const std::string &name, int32_t x);
  /// The largest of each 2 x 2 pixels.
  int32_t max_pool(const std::string &name, int32_t x);
  /// All dimensions but the batch become one.
  int32_t flatten(const std::string &name, int32_t x);
  int32_t embedding(const std::string &name, int32_t symbols, int64_t vocabulary, int64_t width);
  /// h behind the last step.
  int32_t last_step_lstm(const std::string &name, int32_t x, int64_t hidden);
  /// h of every step.  A batch may begin with the h and c with which the one before has ended, and no gradient goes
  /// from one to the other: truncated back-propagation through time.
  int32_t window_lstm(const std::string &name, int32_t x, int64_t hidden);
  /// The end of every network: the cross-entropy of the labels.
  void loss(int32_t logits);

  mp::graph graph;
  std::vector<Variable> variables;  ///< in the order of their layers
  std::vector<Carried> carried;
  std::vector<int32_t> observed;  ///< whose gradients can be read
  int32_t x = kNone, labels = kNone, lengths = kNone;
  int32_t logits = kNone, mean_loss = kNone, row_loss = kNone, num_correct = kNone;

  static constexpr int32_t kNone = -1;

 private:
  int32_t parameter(const std::string &name, const std::vector<int64_t> &extent, double bound,
                    float value = 0.0f);
  int32_t state(const std::string &name, int64_t numel, float value);
  /// x, the four parameters of an LSTM, and `others`.
  std::vector<int32_t> lstm_inputs(const std::string &name, int32_t x, int64_t hidden,
                                   const std::vector<int32_t> &others);
  Carried carry(const std::string &name, int64_t hidden);
  int32_t observe(int32_t tensor);
  std::vector<int64_t> extent_of(int32_t tensor) const;

  Form form_;
};

}  // namespace mpdemo
