// ../c/fashion.c in C++: trains a perceptron on Fashion-MNIST, in fp32 or, by calling
// graph.autocast, in mixed precision.
//
//   fashion_cpp FOLDER [fp32|fp16|bf16 [STEPS]]
//
// FOLDER contains train-images-idx3-ubyte and train-labels-idx1-ubyte, unpacked.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpcore.hpp"

namespace {

constexpr int kImages = 60000, kPixels = 784, kHidden = 256, kClasses = 10, kBatch = 100;

/// Returns the content of an idx file after its header.
std::vector<unsigned char> load(const std::string &path, int head, size_t bytes) {
  std::vector<unsigned char> content(bytes);
  std::ifstream file(path, std::ios::binary);
  file.seekg(head);
  if (!file.read(reinterpret_cast<char *>(content.data()), static_cast<std::streamsize>(bytes)))
    throw std::runtime_error("cannot read " + path);
  return content;
}

/// Small values from a linear congruential generator; the biases stay 0.
std::vector<float> random_weights(uint32_t &state, size_t count) {
  std::vector<float> values(count);
  for (float &value : values) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<float>(state >> 24) - 127.5f) / 2048.0f;
  }
  return values;
}

float train(const std::string &folder, mp_dtype_t low, int steps) {
  const auto images =
      load(folder + "/train-images-idx3-ubyte", 16, static_cast<size_t>(kImages) * kPixels);
  const auto labels = load(folder + "/train-labels-idx1-ubyte", 8, kImages);

  const mp::context context = mp::context::create();
  const mp::graph graph = mp::graph::create(context);
  const int32_t x = graph.input("x", MP_FP32, {kBatch, kPixels});
  const int32_t y = graph.input("labels", MP_DTYPE_NONE, {kBatch});
  const int32_t w1 = graph.parameter("w", {kPixels, kHidden}), b1 = graph.parameter("b", {kHidden});
  const int32_t w2 = graph.parameter("w", {kHidden, kClasses});
  const int32_t b2 = graph.parameter("b", {kClasses});
  const int32_t hidden = graph.node("Relu", "relu", {graph.node("Linear", "fc1", {x, w1, b1})});
  const int32_t logits = graph.node("Linear", "fc2", {hidden, w2, b2});
  const int32_t loss = graph.node("SoftmaxXent", "loss", {logits, y});
  graph.loss(loss);

  mp_autocast_config_t config = mp_autocast_config_default(low == MP_BF16 ? MP_BF16 : MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;  // also on a CPU, although it is not faster
  const mp::autocast policy = mp::autocast::create(config);
  if (low != MP_FP32) graph.autocast(policy);  // mixed precision
  graph.compile();
  uint32_t state = 1;
  graph.write(w1, random_weights(state, kPixels * kHidden).data());
  graph.write(w2, random_weights(state, kHidden * kClasses).data());

  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.1f);
  group.beta1 = 0.0f;
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
  desc.groups = &group;
  const mp::graph_lists lists = graph.lists();
  desc.grads = lists.grads;
  desc.master = lists.master;
  desc.model = lists.model;
  const mp::optimizer sgd = mp::optimizer::create(context, desc);
  const mp::scaler scaler = mp::scaler::create(context, mp_autocast_scaler_default(low));

  const mp::memory x_batch = context.malloc(kBatch * kPixels * sizeof(float));
  const mp::memory y_batch = context.malloc(kBatch * sizeof(int32_t));
  graph.bind(x, x_batch);
  graph.bind(y, y_batch);
  float sum = 0.0f;
  for (int step = 0; step < steps; step++) {
    const auto *const first = images.data() + static_cast<size_t>(step) * kBatch * kPixels;
    std::vector<float> pixels(first, first + kBatch * kPixels);
    for (float &pixel : pixels) pixel /= 256.0f;
    const std::vector<int32_t> classes(labels.begin() + step * kBatch,
                                       labels.begin() + (step + 1) * kBatch);
    context.memcpy(x_batch, pixels.data(), pixels.size() * sizeof(float));
    context.memcpy(y_batch, classes.data(), classes.size() * sizeof(int32_t));
    graph.forward(MP_GRAPH_MODE_TRAINING);
    graph.backward(scaler);
    sgd.scale_step(scaler);
    if (step < steps - 100) continue;  // average the last hundred losses
    float value = 0.0f;
    context.memcpy(&value, graph.get_tensor(loss).data, sizeof value);
    context.stream_sync();
    sum += value;
  }
  return sum;
}

}  // namespace

int main(int argc, char **argv) try {
  if (argc < 2) throw std::runtime_error("fashion_cpp FOLDER [fp32|fp16|bf16 [STEPS]]");
  const std::string type = argc > 2 ? argv[2] : "fp16";
  const mp_dtype_t low = type == "fp32" ? MP_FP32 : type == "bf16" ? MP_BF16 : MP_FP16;
  const int steps = std::min(argc > 3 ? std::stoi(argv[3]) : kImages, kImages / kBatch);
  std::printf("%s: loss %.4f\n", type.c_str(),
              static_cast<double>(train(argv[1], low, steps)) / std::min(steps, 100));
} catch (const std::exception &error) {
  std::fprintf(stderr, "fashion: %s\n", error.what());
  return 2;
}
