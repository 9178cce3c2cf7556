#include "architectures.h"

#include <cmath>
#include <numbers>

#include "dataset.h"
#include "verses.h"

namespace mpdemo {
namespace {

/// Fraction of correct predictions.
constexpr Metric kAccuracy = {.id = "test_accuracy",
                              .heading = "accuracy",
                              .more_is_better = true,
                              .largest_gap = 0.005,
                              .gap = "0.5 percentage points",
                              .of =
                                  [](const Evaluation &sums) {
                                    return static_cast<double>(sums.correct) /
                                           static_cast<double>(sums.rows);
                                  },
                              .shown = [](double value) { return text("%.2f %%", 100 * value); }};

/// Cross-entropy of each character given those before it.
constexpr Metric kBitsPerCharacter = {.id = "test_bits_per_character",
                                      .heading = "bits/char",
                                      .more_is_better = false,
                                      .largest_gap = 0.02,
                                      .gap = "0.02 bits",
                                      .of =
                                          [](const Evaluation &sums) {
                                            return sums.nats / static_cast<double>(sums.rows) /
                                                   std::numbers::ln2;
                                          },
                                      .shown = [](double value) { return text("%.4f", value); }};

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

/// GPT-2 (Radford et al. 2019) with the initialization of its code: pre-norm blocks, learned
/// positions, and one table for symbols and logits.
void describe_gpt(Description &d) {
  constexpr int64_t kWidth = 64, kHeads = 2, kLayers = 2;
  constexpr double kDeviation = 0.02;
  const double residual_deviation = kDeviation / std::sqrt(2.0 * kLayers);
  int32_t x = d.embedding("embedding", d.symbols(), kSymbols, kWidth, kDeviation);
  x = d.positions("positions", x, kDeviation / 2);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = "block" + std::to_string(layer) + ".";
    int32_t y = d.linear(block + "qkv", d.layer_norm(block + "norm1", x), 3 * kWidth, kDeviation);
    y = d.causal_attention(block + "attention", y, kHeads);
    x = d.add(block + "residual1", x, d.linear(block + "project", y, kWidth, residual_deviation));
    y = d.linear(block + "widen", d.layer_norm(block + "norm2", x), 4 * kWidth, kDeviation);
    y = d.linear(block + "narrow", d.gelu(y), kWidth, residual_deviation);
    x = d.add(block + "residual2", x, y);
  }
  d.loss(d.tied_linear("logits", d.layer_norm("norm", x)));
}

/// Networks on images share optimizer, batch size and metric.
Architecture image_architecture(const char *id, const char *name, const char *title,
                                void (*describe)(Description &), double due, float peak_lr) {
  return {.id = id,
          .name = name,
          .title = title,
          .describe = describe,
          .metric = &kAccuracy,
          .due = due,
          .epochs = 3,
          .recipe = {MP_OPT_SGD, peak_lr},
          .batch = 128,
          .steps = 1};
}

Architecture text_architecture(const char *id, const char *name, const char *title,
                               void (*describe)(Description &), double due, const Recipe &recipe,
                               int64_t batch, int64_t context) {
  return {.id = id,
          .name = name,
          .title = title,
          .describe = describe,
          .metric = &kBitsPerCharacter,
          .due = due,
          .recipe = recipe,
          .batch = batch,
          .steps = kWindow,
          .context = context};
}

}  // namespace

std::vector<Architecture> architectures(bool full) {
  const Architecture perceptron = image_architecture(
      "mlp", "Perceptron", "perceptron 784-256-128-10", describe_perceptron, 0.86, 0.05f);
  Architecture convnet = image_architecture(
      "cnn", "Convnet",
      "convnet 2 x (conv 5x5, batch norm, max pool), 8 and 16 channels, 784-128-10",
      describe_convnet, 0.88, 0.05f);
  convnet.has_small_weight = false;
  Architecture row_lstm = image_architecture(
      "rows", "LSTM", "LSTM of 128 units over the 28 rows, 128-10", describe_row_lstm, 0.86, 0.3f);
  Architecture character_model = text_architecture(
      "charlm", "Character model",
      "embedding 96 x 64, LSTM of 256 units over windows of 64 characters, 256-96",
      describe_character_model, 2.0, {MP_OPT_ADAM, 0.008f}, 32, 1);
  character_model.epochs = 0.15;
  Architecture gpt =
      text_architecture("gpt", "GPT", "GPT of 2 layers, width 64, 2 heads, context 64, tied table",
                        describe_gpt, full ? 2.2 : 3.3,
                        {.kind = MP_OPT_ADAM,
                         .peak_lr = 0.01f,
                         .beta2 = 0.95f,
                         .matrix_decay = 0.1f,
                         .max_grad_norm = 1.0f,
                         .warmup_steps = 20},
                        full ? 32 : 16, kWindow);
  gpt.num_steps = full ? 1000 : 200;
  gpt.mixed_types = {mp::kHalfTypes.begin(), mp::kHalfTypes.end()};
  const auto shorten = [full](Architecture &architecture, double epochs) {
    if (full) return;
    architecture.epochs = epochs;
    architecture.due.reset();
  };
  shorten(convnet, 0.25);
  shorten(row_lstm, 0.25);
  shorten(character_model, 0.05);
  return {perceptron, convnet, row_lstm, character_model, gpt};
}

}  // namespace mpdemo
