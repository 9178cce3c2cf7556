#include "architectures.h"

#include <limits>

#include "dataset.h"
#include "verses.h"

namespace mpdemo {
namespace {

void describe_perceptron(Description &d) {
  int32_t x = d.image({kPixels});
  x = d.relu(d.linear("hidden1", x, 256));
  x = d.relu(d.linear("hidden2", x, 128));
  d.loss(d.linear("logits", x, kClasses));
}

/// LeNet-5 (LeCun et al. 1998) with batch normalization and one hidden layer after it.
void describe_convnet(Description &d) {
  int32_t x = d.image({kSide, kSide, 1});
  x = d.max_pool("pool1", d.batch_norm_relu("norm1", d.conv2d("conv1", x, 8, 5)));
  x = d.max_pool("pool2", d.batch_norm_relu("norm2", d.conv2d("conv2", x, 16, 5)));
  x = d.relu(d.linear("hidden", d.flatten("flat", x), 128));
  d.loss(d.linear("logits", x, kClasses));
}

/// LSTM over the rows of an image, like a text over its words.
void describe_row_lstm(Description &d) {
  const int32_t x = d.last_step_lstm("lstm", d.image({kSide, kSide}), 128);
  d.loss(d.linear("logits", x, kClasses));
}

/// Predicts the next character after each character of a verse.
void describe_character_model(Description &d) {
  const int32_t x = d.embedding("embedding", d.symbols(), kSymbols, 64);
  d.loss(d.linear("logits", d.window_lstm("lstm", x, 256), kSymbols));
}

/// Architecture of image networks, which share optimizer, batch size and metric.
Architecture image_architecture(const char *id, const char *name, const char *title,
                                void (*describe)(Description &), double due, double sample_epochs,
                                float peak_lr) {
  constexpr double kFullEpochs = 3;
  return {id,         name,    title, describe, accuracy(), due, kFullEpochs, sample_epochs,
          MP_OPT_SGD, peak_lr, 128,   1,        false};
}

}  // namespace

const Architecture &perceptron() {
  static const Architecture architecture = image_architecture(
      "mlp", "Perceptron", "perceptron 784-256-128-10", describe_perceptron, 0.86,
      std::numeric_limits<double>::infinity(), 0.05f);  // short enough to run in full
  return architecture;
}

const Architecture &convnet() {
  static const Architecture architecture = image_architecture(
      "cnn", "Convnet",
      "convnet 2 x (conv 5x5, batch norm, max pool), 8 and 16 channels, 784-128-10",
      describe_convnet, 0.88, 0.25, 0.05f);
  return architecture;
}

const Architecture &row_lstm() {
  static const Architecture architecture =
      image_architecture("rows", "LSTM", "LSTM of 128 units over the 28 rows, 128-10",
                         describe_row_lstm, 0.86, 0.25, 0.3f);
  return architecture;
}

const Architecture &character_model() {
  static const Architecture architecture = {
      .id = "charlm",
      .name = "Character model",
      .title = "embedding 96 x 64, LSTM of 256 units over windows of 64 characters, 256-96",
      .describe = describe_character_model,
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
