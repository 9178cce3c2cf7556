// Description of a network: each layer is one or two nodes of an mpcore graph, in fp32.  The
// forward and backward computation and its types are derived from it (mpcore/graph.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpcore.hpp"

namespace mpdemo {

/// Variant in which a network is created.
struct Form {
  mp_dtype_t dtype;   ///< MP_FP32, or the 16-bit type of autocast
  int64_t batch;      ///< maximum; images or sequences
  int64_t steps;      ///< per sequence; images: 1
  float loss_weight;  ///< factor of the mean loss over the batch
  bool is_observed;   ///< logits and activation gradients can be read
};

/// Initial values; at most one member is not 0.
struct Initial {
  double bound = 0;      ///< uniform in [-bound, bound)
  double deviation = 0;  ///< normal
  float value = 0;       ///< every element
};

/// A parameter, or a state that is not trained.
struct Variable {
  int32_t tensor;
  int64_t numel;
  int32_t rank;
  bool is_trained;
  Initial initial;
};

/// State that a sequence carries from one batch to the next.
struct Carried {
  int32_t from_before, to_next;
  int64_t numel;  ///< for the largest batch
};

class Description {
 public:
  Description(mp_context_t context, const Form &form);

  /// Pixels as fp32, batch x `extent`.
  int32_t image(const std::vector<int64_t> &extent);
  /// Symbols as integers, batch x steps.
  int32_t symbols();

  // Each layer returns its y.  Parameters are initialized as in the named paper or framework;
  // a deviation selects normal weights instead.

  /// y = x W + b.
  int32_t linear(const std::string &name, int32_t x, int64_t out, double deviation = 0);
  int32_t relu(int32_t x);
  /// Output has as many pixels as x; no bias; `size` is odd.
  int32_t conv2d(const std::string &name, int32_t x, int64_t channels, int64_t size);
  int32_t batch_norm_relu(const std::string &name, int32_t x);
  /// Maximum of each 2 x 2 pixels.
  int32_t max_pool(const std::string &name, int32_t x);
  /// Merges all dimensions except the batch.
  int32_t flatten(const std::string &name, int32_t x);
  int32_t embedding(const std::string &name, int32_t symbols, int64_t vocabulary, int64_t width,
                    double deviation = 0);
  /// y = x table^T, with the table of the embedding.
  int32_t tied_linear(const std::string &name, int32_t x);
  /// Adds a learned vector per step.
  int32_t positions(const std::string &name, int32_t x, double deviation);
  int32_t add(const std::string &name, int32_t x, int32_t y);
  int32_t layer_norm(const std::string &name, int32_t x);
  int32_t gelu(int32_t x);
  /// Attention of each step to itself and those before it; x is [q | k | v].
  int32_t causal_attention(const std::string &name, int32_t x, int64_t heads);
  /// Returns h of the last step.
  int32_t last_step_lstm(const std::string &name, int32_t x, int64_t hidden);
  /// Returns h of every step; each sequence has a length.  A batch may start with the final h and
  /// c of the previous batch, without gradients between batches: truncated backpropagation through
  /// time.
  int32_t window_lstm(const std::string &name, int32_t x, int64_t hidden);
  /// Final layer of every network: cross-entropy of the labels.
  void loss(int32_t logits);

  mp::graph graph;
  std::vector<Variable> variables;  ///< in the order of their layers
  std::vector<Carried> carried;
  std::vector<int32_t> observed;  ///< tensors with readable gradients
  int32_t x = kNone, labels = kNone, lengths = kNone;
  int32_t logits = kNone, mean_loss = kNone, row_loss = kNone, num_correct = kNone;

  static constexpr int32_t kNone = -1;

 private:
  int32_t parameter(const std::string &name, const std::vector<int64_t> &extent,
                    const Initial &initial);
  int32_t state(const std::string &name, int64_t numel, float value);
  /// Returns x, the four parameters of an LSTM, and `others`.
  std::vector<int32_t> lstm_inputs(const std::string &name, int32_t x, int64_t hidden,
                                   const std::vector<int32_t> &others);
  Carried carry(const std::string &name, int64_t hidden);
  int32_t observe(int32_t tensor);
  std::vector<int64_t> extent_of(int32_t tensor) const;

  Form form_;
  int32_t table_ = kNone;
};

}  // namespace mpdemo
