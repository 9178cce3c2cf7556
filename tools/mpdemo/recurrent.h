// Recurrent layers on mp_rnn_*: an LSTM reads a sequence, and hands on its h, of the last step or of all.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "layer.h"

namespace mpdemo {

/// What both have in common: the weights, and how the calls are made.
class Lstm : public Layer {
 public:
  void initialise(Random &random) override;
  std::vector<Parameter> parameters() const override;

 protected:
  Lstm(const Setup &setup, int32_t in, int32_t hidden);

  int32_t in() const { return in_; }
  int32_t hidden() const { return static_cast<int32_t>(out()); }
  /// Without strides.
  mp_rnn_desc_t desc(int64_t sequences, int32_t steps) const;
  mp_rnn_sizes_t sizes(const mp_rnn_desc_t &desc) const;
  /// Of the largest batch.
  void make_reserve(const mp_rnn_desc_t &desc);
  const Buffer &reserve() const { return reserve_; }
  /// x and the reserve; the caller adds what it has besides.
  mp_rnn_tensors_t tensors(const void *x) const;
  void call_forward(const mp_rnn_desc_t &desc, mp_rnn_tensors_t tensors, const Pass &pass) const;
  void call_backward(const mp_rnn_desc_t &desc, mp_rnn_tensors_t tensors, const Layer *below,
                     const Pass &pass) const;

 private:
  mp_rnn_weights_t weights() const;

  int32_t in_;
  Weight w_ih_, w_hh_;
  Channels b_ih_, b_hh_;
  Buffer reserve_;
};

/// y is h after the last step.
class LastStepLstm : public Lstm {
 public:
  /// A row of the batch is `steps` times `in` elements.
  LastStepLstm(const Setup &setup, int32_t steps, int32_t in, int32_t hidden);

  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  size_t workspace_bytes() const override;
  void add_memory(Memory &memory) const override;

 private:
  mp_rnn_desc_t row_major(int64_t rows) const;

  int32_t steps_;
  Buffer sequence_;     ///< h of every step, which nobody here needs
  Buffer no_gradient_;  ///< zeros: the loss depends on the last h alone
};

/// y is h of every step of a window of text.  The window after it begins with the h and c with which it
/// ends, and no gradient goes from one to the other: truncated back-propagation through time.
class WindowLstm : public Lstm {
 public:
  /// A row of the batch is one step of one sequence.
  WindowLstm(const Setup &setup, int32_t steps, int32_t in, int32_t hidden);

  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  size_t workspace_bytes() const override;
  void add_memory(Memory &memory) const override;

 private:
  struct State {
    Buffer h, c;
  };

  /// The state that the window begins with, and that with which it ends.
  mp_rnn_tensors_t tensors_of(const void *x, const Window &window) const;

  mp_rnn_desc_t largest_;
  std::array<State, 2> states_;
  size_t latest_ = 0;  ///< which of them the window before has left, or in backward() this one
};

}  // namespace mpdemo
