// The layers of a convolutional network, all on NHWC images of a fixed size:
//
//     Conv2d      y = conv(x, filter), no bias: a batch normalisation follows
//     BatchNorm   y = relu(normalised x), mp_batchnorm_*
//     MaxPool     y = the largest of each 2 x 2 pixels
#pragma once

#include <cstdint>
#include <vector>

#include "layer.h"

namespace mpdemo {

/// One image.
struct Image {
  int32_t h, w, c;
  int64_t numel() const { return int64_t{h} * w * c; }
};

class Conv2d : public Layer {
 public:
  /// As many outputs as pixels; `size` is odd.
  Conv2d(const Setup &setup, const Image &x, int32_t channels, int32_t size);

  void initialise(Random &random) override;
  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  std::vector<Parameter> parameters() const override { return {filter_.parameter()}; }
  size_t workspace_bytes() const override;

 private:
  mp_conv2d_desc_t desc(int64_t rows) const;

  Image x_;
  int32_t channels_, size_;
  Weight filter_;  ///< channels x size x size x x.c
};

class BatchNorm : public Layer {
 public:
  BatchNorm(const Setup &setup, const Image &x);

  void initialise(Random &random) override;
  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  std::vector<Parameter> parameters() const override;
  size_t workspace_bytes() const override;
  void add_memory(Memory &memory) const override;

 private:
  mp_batchnorm_desc_t desc(int64_t rows) const;
  mp_batchnorm_tensors_t tensors(const void *x) const;

  Image x_;
  Channels gamma_, beta_;
  Buffer running_mean_, running_var_;  ///< for inference
  Buffer saved_mean_, saved_inv_std_;  ///< for backward
};

class MaxPool : public Layer {
 public:
  MaxPool(const Setup &setup, const Image &x);

  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;

 private:
  mp_pool2d_desc_t desc(int64_t rows) const;

  Image x_;
};

}  // namespace mpdemo
