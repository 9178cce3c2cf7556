#include "architectures.h"

#include <limits>

#include "dataset.h"
#include "embedding.h"
#include "image_layers.h"
#include "linear.h"
#include "recurrent.h"
#include "verses.h"

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
  add<LastStepLstm>(layers, setup, kSide, kSide, 128);
  add<Linear>(layers, setup, 128, kClasses, Role::logits);
  return layers;
}

/// After every character of a verse it foresees the next one.
Layers build_character_model(const Setup &setup) {
  constexpr int32_t kWidth = 64;
  constexpr int32_t kHidden = 256;
  Layers layers;
  add<Embedding>(layers, setup, kSymbols, kWidth);
  add<WindowLstm>(layers, setup, kWindow, kWidth, kHidden);
  add<Linear>(layers, setup, kHidden, kSymbols, Role::logits);
  return layers;
}

/// Of images, which have their optimizer, their batch and their metric in common.
Architecture image_architecture(const char *id, const char *name, const char *title,
                                Layers (*build)(const Setup &), double due, double sample_epochs,
                                float peak_lr) {
  constexpr double kFullEpochs = 3;
  return {id,         name,    title, build, accuracy(), due, kFullEpochs, sample_epochs,
          MP_OPT_SGD, peak_lr, 128,   1,     false};
}

}  // namespace

const Architecture &perceptron() {
  static const Architecture architecture = image_architecture(
      "mlp", "Perceptron", "perceptron 784-256-128-10", build_perceptron, 0.86,
      std::numeric_limits<double>::infinity(), 0.05f);  // so fast that it is never cut short
  return architecture;
}

const Architecture &convnet() {
  static const Architecture architecture = image_architecture(
      "cnn", "Convnet",
      "convnet 2 x (conv 5x5, batch norm, max pool), 8 and 16 channels, 784-128-10", build_convnet,
      0.88, 0.25, 0.05f);
  return architecture;
}

const Architecture &row_lstm() {
  static const Architecture architecture =
      image_architecture("rows", "LSTM", "LSTM of 128 units over the 28 rows, 128-10",
                         build_row_lstm, 0.86, 0.25, 0.3f);
  return architecture;
}

const Architecture &character_model() {
  static const Architecture architecture = {
      .id = "charlm",
      .name = "Character model",
      .title = "embedding 96 x 64, LSTM of 256 units over windows of 64 characters, 256-96",
      .build = build_character_model,
      .metric = bits_per_character(),
      .due = 2.0,
      .full_epochs = 0.15,
      .sample_epochs = 0.05,
      .optimizer = MP_OPT_ADAM,
      .peak_lr = 0.008f,
      .batch = 32,
      .steps = kWindow,
      .reads_text = true};
  return architecture;
}

}  // namespace mpdemo
