// A recurrent layer on mp_rnn_*: an LSTM reads a sequence, and y is its h after the last step.
#pragma once

#include <cstdint>
#include <vector>

#include "layer.h"

namespace mpdemo {

class Lstm : public Layer {
 public:
  /// A row of the batch is `steps` times `in` elements.
  Lstm(const Setup &setup, int32_t steps, int32_t in, int32_t hidden);

  void initialise(Random &random) override;
  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  std::vector<Parameter> parameters() const override;
  size_t workspace_bytes() const override;
  void add_memory(Memory &memory) const override;

 private:
  mp_rnn_desc_t desc(int64_t rows) const;
  mp_rnn_sizes_t sizes(int64_t rows) const;
  mp_rnn_weights_t weights() const;
  /// What every call reads.
  mp_rnn_tensors_t tensors(const void *x, const mp_rnn_weights_t &weights) const;

  int32_t steps_, in_, hidden_;
  Weight w_ih_, w_hh_;
  Channels b_ih_, b_hh_;
  Buffer sequence_;     ///< h of every step, which nobody here needs
  Buffer no_gradient_;  ///< zeros: the loss depends on the last h alone
  Buffer reserve_;
};

}  // namespace mpdemo
