#include "architectures.h"

#include "dataset.h"
#include "image_layers.h"
#include "linear.h"
#include "recurrent.h"

namespace mpdemo {
namespace {

template <typename Kind, typename... Arguments>
void add(Layers &layers, const Arguments &...arguments) {
  layers.push_back(std::make_unique<Kind>(arguments...));
}

Layers build_perceptron(const Setup &setup) {
  Layers layers;
  add<Linear>(layers, setup, kPixels, 256, Role::hidden);
  add<Linear>(layers, setup, 256, 128, Role::hidden);
  add<Linear>(layers, setup, 128, kClasses, Role::logits);
  return layers;
}

/// Adds convolution, normalisation and pooling.
/// @return what comes out of them.
Image add_block(Layers &layers, const Setup &setup, const Image &x, int32_t channels) {
  const Image wide = {x.h, x.w, channels};
  add<Conv2d>(layers, setup, x, channels, 5);
  add<BatchNorm>(layers, setup, wide);
  add<MaxPool>(layers, setup, wide);
  return {x.h / 2, x.w / 2, channels};
}

/// LeNet-5 (LeCun et al. 1998) with batch normalisation and one hidden layer behind it.
Layers build_convnet(const Setup &setup) {
  Layers layers;
  Image image = {kSide, kSide, 1};
  image = add_block(layers, setup, image, 8);
  image = add_block(layers, setup, image, 16);
  add<Linear>(layers, setup, image.numel(), 128, Role::hidden);
  add<Linear>(layers, setup, 128, kClasses, Role::logits);
  return layers;
}

/// The image is read row by row, as a text is word by word.
Layers build_row_lstm(const Setup &setup) {
  Layers layers;
  add<Lstm>(layers, setup, kSide, kSide, 128);
  add<Linear>(layers, setup, 128, kClasses, Role::logits);
  return layers;
}

}  // namespace

const Architecture &perceptron() {
  static const Architecture architecture = {
      "mlp", "Perceptron", "perceptron 784-256-128-10", build_perceptron, 0.86, 0.05f};
  return architecture;
}

const Architecture &convnet() {
  static const Architecture architecture = {
      "cnn",
      "Convnet",
      "convnet 2 x (conv 5x5, batch norm, max pool), 8 and 16 channels, 784-128-10",
      build_convnet,
      0.88,
      0.05f};
  return architecture;
}

const Architecture &row_lstm() {
  static const Architecture architecture = {
      "rows", "LSTM", "LSTM of 128 units over the 28 rows, 128-10", build_row_lstm, 0.86, 0.3f};
  return architecture;
}

}  // namespace mpdemo
