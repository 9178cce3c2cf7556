// Losses in graphs, and gradients from the caller.
#include <cmath>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

constexpr int64_t kBatch = 8, kIn = 6, kOut = 4;
constexpr const char *kOps[] = {"MSE", "L1", "BCEWithLogits"};

/// The network tanh(x a) b and its results.
class Net {
 public:
  Net() : random_(3) {
    x = graph.input("x", MP_FP32, {kBatch, kIn});
    const int32_t a = graph.parameter("a", {kIn, 5}), b = graph.parameter("b", {5, kOut});
    y = graph.node("Linear", "out",
                   {graph.node("Tanh", "tanh", {graph.node("Linear", "in", {x, a})}), b});
  }

  int32_t add_loss(const char *op, bool has_weight, const Attributes &attributes = {}) {
    target = graph.input("target", MP_FP32, {kBatch, kOut});
    std::vector<int32_t> inputs = {y, target};
    if (has_weight) inputs.push_back(weight = graph.input("weight", MP_FP32, {kBatch, kOut}));
    return loss = graph.node(op, "loss", inputs, attributes);
  }

  void compile(mp_autocast_t policy = nullptr) {
    graph.compile(policy);
    graph.write_random(random_, 6);
    graph.feed(x, x_values_);
  }

  double loss_value() {
    graph.step();
    return graph.read(loss).front();
  }

  Described graph;
  int32_t x, y, target = -1, weight = -1, loss = -1;

 private:
  Random random_;
  Floats32 x_values_ = random_values(random_, kBatch *kIn, 1.0);
};

Floats32 targets_of(const char *op) {
  Random random(5);
  Floats32 t = random_values(random, kBatch * kOut, 1.0);
  if (std::string(op) == "BCEWithLogits")
    for (float &value : t) value = std::fabs(value);
  return t;
}

}  // namespace

TEST_CASE("graph: element-wise losses equal mp_loss in fp32 and fp16", "[graph][loss]") {
  const PolicyHandle policy = make_policy(MP_FP16);
  const mp_loss_kind_t kinds[] = {MP_LOSS_MSE, MP_LOSS_L1, MP_LOSS_BCE_WITH_LOGITS};
  for (size_t k = 0; k < 3; ++k) {
    for (const auto &[is_low, has_weight] :
         {std::pair{false, false}, {true, false}, {false, true}}) {
      Net net;
      net.graph.loss(net.add_loss(kOps[k], has_weight, {{"weight", 2.5}}));
      net.graph.output(net.y);
      net.graph.keep_gradient(net.y);
      net.compile(is_low ? policy.get() : nullptr);
      const DeviceBuffer<float> targets(targets_of(kOps[k]));
      net.graph.bind(net.target, targets.data());
      Random random(6);
      const DeviceBuffer<float> weights(random_values(random, kBatch * kOut, 1.0));
      if (has_weight) net.graph.bind(net.weight, weights.data());
      const double got = net.loss_value();
      const mp_graph_tensor_t y = net.graph.info(net.y);
      CAPTURE(kOps[k], is_low, has_weight);
      CHECK(y.dtype == (is_low ? MP_FP16 : MP_FP32));
      CHECK(y.dtype_grad == y.dtype);  // a loss needs no casts
      mp_loss_desc_t desc = mp_loss_desc_default(kinds[k], kBatch * kOut, y.dtype);
      desc.dtype_target = MP_FP32;
      desc.weight = 2.5f;
      const DeviceWorkspace workspace(mp_loss_workspace_size, context(), &desc);
      const DeviceBuffer<float> loss(std::vector<float>{-1.0f});
      const DeviceArray dy(y.dtype, kBatch * kOut);
      auto tensors = initialized<mp_loss_tensors_t>();
      tensors.prediction = y.data;
      tensors.target = targets.data();
      tensors.weights = has_weight ? weights.data() : nullptr;
      tensors.loss = loss.data();
      tensors.dprediction = dy.data();
      require_ok(mp_loss(context(), &desc, &tensors, workspace.data(), workspace.bytes(), kStream));
      CHECK(got == loss.download()[0]);
      CHECK(net.graph.gradient(net.y) == dy.download());
    }
  }
}

TEST_CASE("graph: inference skips a loss whose target is not bound", "[graph][loss]") {
  Net net;
  net.graph.loss(net.add_loss("MSE", false));
  net.graph.output(net.y);
  net.compile();
  net.graph.forward();
  CHECK(net.graph.read(net.y).size() == kBatch * kOut);
  net.graph.forward(MP_GRAPH_MODE_TRAINING);
  CHECK(mp_graph_backward(net.graph.handle, nullptr, kStream) == MP_ERROR_INVALID_ARGUMENT);
  CHECK(std::string(mp_last_error()) ==
        "mp_graph_backward: input target is not bound; call mp_graph_bind");
}

TEST_CASE("graph: a target or weight that depends on a parameter is rejected", "[graph][loss]") {
  for (const bool is_weight : {false, true}) {
    Net net;
    const int32_t other = net.graph.node("Tanh", "other", {net.y});
    const int32_t target = net.graph.input("target", MP_FP32, {kBatch, kOut});
    const int32_t loss = net.graph.node(
        "L1", "loss", is_weight ? std::vector{net.y, target, other} : std::vector{net.y, other});
    net.graph.loss(loss);
    CHECK(mp_graph_compile(net.graph.handle) == MP_ERROR_INVALID_ARGUMENT);
    const std::string sentence = mp_last_error(), input = is_weight ? "weight" : "target";
    CHECK(sentence == "mp_graph_compile: node loss: L1: " + input +
                          " = other must not depend on a parameter: its gradient is not computed");
  }
}

// ---------------------------------------------------------------------------- LinearXent

namespace {

constexpr int64_t kSteps = 3, kWidth = 8, kClasses = 11, kRows = kBatch * kSteps;

/// A linear layer, and a linear layer with its cross-entropy.
struct LinearXentNet {
  Described graph;
  int32_t h, w, b, labels, count = -1;
  std::vector<int32_t> outputs;  ///< loss, row_loss, correct
  DeviceBuffer<int32_t> label_data;

  static std::vector<int32_t> some_labels() {
    std::vector<int32_t> labels;
    for (int32_t i = 0; i < kRows; ++i) labels.push_back(i % 7 == 3 ? -100 : i * 5 % 11);
    return labels;
  }

  LinearXentNet(mp_autocast_t policy, const float *count_data) : label_data(some_labels()) {
    const int32_t x = graph.input("x", MP_FP32, {kBatch, kSteps, kIn});
    h = graph.node("Linear", "in", {x, graph.parameter("a", {kIn, kWidth})});
    w = graph.parameter("w", {kClasses, kWidth});
    b = graph.parameter("b", {kClasses});
    labels = graph.input("labels", MP_DTYPE_NONE, {kBatch, kSteps});
    std::vector<int32_t> inputs = {h, w, b, labels};
    if (count_data != nullptr) inputs.push_back(count = graph.input("count", MP_FP32, {}));
    outputs = graph.node_of("LinearXent", "loss", inputs, 3,
                            {{"weight", 1.5}, {"label_smoothing", 0.125}, {"z_loss", 0.0625}});
    graph.loss(outputs[0]);
    graph.output(h);
    graph.keep_gradient(h);
    graph.compile(policy);
    graph.write_random(random_, kWidth);
    graph.feed(x, random_values(random_, kRows * kIn, 1.0));
    graph.bind(labels, label_data.data());
    if (count >= 0) graph.bind(count, count_data);
  }

 private:
  Random random_{9};
};

}  // namespace

TEST_CASE("graph: LinearXent equals mp_linear_xent", "[graph][loss]") {
  const PolicyHandle policy = make_policy(MP_BF16);
  const DeviceBuffer<float> rows_of_two_batches(std::vector<float>{2.0f * kRows});
  for (const bool is_low : {false, true}) {
    for (const float *const count :
         {(const float *)nullptr, (const float *)rows_of_two_batches.data()}) {
      LinearXentNet net(is_low ? policy.get() : nullptr, count);
      Described &g = net.graph;
      g.step();
      const mp_graph_tensor_t h = g.info(net.h), w = g.info(net.w), b = g.info(net.b);
      CAPTURE(is_low, count != nullptr, g.describe());
      CHECK(h.dtype == (is_low ? MP_BF16 : MP_FP32));
      CHECK(h.dtype_grad == h.dtype);
      CHECK(w.dtype_grad == MP_FP32);
      auto desc = mp_linear_xent_desc_default(kRows, kWidth, kClasses, h.dtype);
      desc.weight = 1.5f, desc.label_smoothing = 0.125f, desc.z_loss = 0.0625f;
      const DeviceWorkspace workspace(mp_linear_xent_workspace_size, context(), &desc);
      const DeviceArray row_loss(MP_FP32, kRows), loss(MP_FP32, 1), dx(h.dtype, kRows * kWidth),
          dw(MP_FP32, kClasses * kWidth), db(MP_FP32, kClasses);
      const DeviceBuffer<int64_t> correct(std::vector<int64_t>{0});
      auto t = initialized<mp_xent_tensors_t>();
      t.x = h.data;
      t.w = is_low ? w.copy : w.data;
      t.bias = is_low ? b.copy : b.data;
      t.labels = net.label_data.data();
      t.count = count;
      t.row_loss = static_cast<float *>(row_loss.data());
      t.loss = static_cast<float *>(loss.data());
      t.correct = correct.data();
      t.dx = dx.data();
      t.dw = static_cast<float *>(dw.data());
      t.dbias = static_cast<float *>(db.data());
      require_ok(
          mp_linear_xent(context(), &desc, &t, workspace.data(), workspace.bytes(), kStream));
      CHECK(g.read(net.outputs[0]) == loss.download());
      CHECK(g.read(net.outputs[1]) == row_loss.download());
      CHECK(g.gradient(net.h) == dx.download());
      CHECK(g.gradient(net.w) == dw.download());
      CHECK(g.gradient(net.b) == db.download());
      int64_t counted = -1;
      require_ok(
          mp_memcpy(context(), &counted, g.info(net.outputs[2]).data, sizeof counted, kStream));
      require_ok(mp_stream_sync(context(), kStream));
      CHECK(counted == correct.download()[0]);
      g.forward();
      CHECK(g.read(net.outputs[0]) == loss.download());
    }
  }
}

// ---------------------------------------------------------------------------- seeds

TEST_CASE("graph: a seeded gradient equals that of the corresponding loss", "[graph][loss]") {
  // 32 elements and a power of two as scale: the seed is exact.
  const PolicyHandle policy = make_policy(MP_FP16);
  for (const bool is_low : {false, true}) {
    for (const bool has_scaler : {false, true}) {
      const Floats32 targets = targets_of("MSE");
      const ScalerHandle scaler = make_scaler(MP_SCALER_POLICY_BACKOFF, 0x1p10f);
      const mp_scaler_t used = has_scaler ? scaler.get() : nullptr;
      Net with_loss;
      with_loss.graph.loss(with_loss.add_loss("MSE", false));
      // Both have equal types of y and of its gradient.
      with_loss.graph.output(with_loss.y);
      with_loss.compile(is_low ? policy.get() : nullptr);
      with_loss.graph.feed(with_loss.target, targets);
      with_loss.graph.step(used);

      Net seeded;
      const int32_t seed = seeded.graph.seed_gradient(seeded.y);
      seeded.compile(is_low ? policy.get() : nullptr);
      seeded.graph.forward(MP_GRAPH_MODE_TRAINING);
      const std::vector<double> y = seeded.graph.read(seeded.y);
      CHECK(y == with_loss.graph.read(with_loss.y));
      CAPTURE(is_low, has_scaler);
      CHECK(mp_graph_backward(seeded.graph.handle, used, kStream) == MP_ERROR_INVALID_ARGUMENT);
      CHECK(std::string(mp_last_error()) ==
            "mp_graph_backward: input out/seed is not bound; call mp_graph_bind");
      Floats32 gradient = targets;
      for (size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = 2.0f * (static_cast<float>(y[i]) - gradient[i]) / 32.0f;
      seeded.graph.feed(seed, gradient);
      seeded.graph.step(used);
      for (size_t p = 0; p < 2; ++p)
        CHECK(seeded.graph.gradient(seeded.graph.parameters[p]) ==
              with_loss.graph.gradient(with_loss.graph.parameters[p]));
    }
  }
}

TEST_CASE("graph: loss and seeded gradients add up for every batch size", "[graph][loss]") {
  const Floats32 targets = targets_of("MSE");
  const auto gradients = [&](bool has_loss, bool has_seed, int64_t batch) {
    Net net;
    if (has_loss) net.graph.loss(net.add_loss("MSE", false));
    const int32_t seed = has_seed ? net.graph.seed_gradient(net.y) : -1;
    net.compile();
    if (has_loss) net.graph.feed(net.target, targets);
    if (has_seed) net.graph.feed(seed, targets);
    require_ok(mp_graph_set_batch(net.graph.handle, batch));
    if (has_seed) CHECK(net.graph.info(seed).extent[0] == batch);
    net.graph.step();
    return net.graph.gradient(net.graph.parameters[1]);
  };
  for (const int64_t batch : {kBatch, int64_t{3}}) {
    const std::vector<double> both = gradients(true, true, batch),
                              loss = gradients(true, false, batch),
                              seed = gradients(false, true, batch);
    for (size_t i = 0; i < both.size(); ++i)
      CHECK(both[i] == Approx(loss[i] + seed[i]).margin(1e-5));
  }
}

TEST_CASE("graph: a loss that depends on no parameter is rejected, with or without seeds",
          "[graph][loss]") {
  Net net;
  const int32_t target = net.graph.input("target", MP_FP32, {kBatch, kIn});
  net.graph.seed_gradient(net.y);
  net.graph.loss(net.graph.node("MSE", "loss", {net.x, target}));
  CHECK(mp_graph_compile(net.graph.handle) == MP_ERROR_INVALID_ARGUMENT);
  CHECK(std::string(mp_last_error()).find("must depend on a parameter") != std::string::npos);
}

TEST_CASE("graph: tensors that cannot be seeded are rejected", "[graph][loss]") {
  Net net;
  const int32_t loss = net.add_loss("MSE", false);
  int32_t seed = -1;
  const auto why = [&](int32_t tensor) {
    CHECK(mp_graph_seed_gradient(net.graph.handle, tensor, &seed) == MP_ERROR_INVALID_ARGUMENT);
    return std::string(mp_last_error());
  };
  CHECK(why(loss) ==
        "mp_graph_seed_gradient: tensor = " + std::to_string(loss) +
            " (loss) must not be an output of a loss or depend on one; call mp_graph_set_loss");
  CHECK(why(net.x) == "mp_graph_seed_gradient: tensor = 0 must be computed by a node");
  CHECK(seed == -1);
  net.graph.seed_gradient(net.y);
  CHECK(why(net.y).find("already has gradient") != std::string::npos);
}
