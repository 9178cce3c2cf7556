// Networks from single calls of mpcore/gemm.h, conv.h and layers.h, without graphs.
#include "tests/graph/hand_written.h"

#include <algorithm>

namespace mptest {

namespace {

/// Memory and products of a network without a graph.
class ByHand : public Trained {
 public:
  ByHand(mp_dtype_t dtype, std::vector<Floats32> initial, std::vector<bool> is_weight)
      : dtype_(dtype), initial_(std::move(initial)), is_weight_(std::move(is_weight)) {
    std::vector<void *> grads, masters, models;
    std::vector<mp_dtype_t> grad_types, model_types;
    std::vector<int64_t> numel;
    for (size_t i = 0; i < initial_.size(); ++i) {
      const auto count = static_cast<int64_t>(initial_[i].size());
      const mp_dtype_t type = is_weight_[i] ? dtype : MP_FP32;
      const std::vector<double> values(initial_[i].begin(), initial_[i].end());
      numel.push_back(count);
      master_.push_back(std::make_unique<DeviceArray>(MP_FP32, values));
      grad_.push_back(std::make_unique<DeviceArray>(type, count));
      model_.push_back(type == MP_FP32 ? nullptr : std::make_unique<DeviceArray>(type, values));
      masters.push_back(master_.back()->data());
      grads.push_back(grad_.back()->data());
      grad_types.push_back(type);
      models.push_back(type == MP_FP32 ? nullptr : model_.back()->data());
      model_types.push_back(type == MP_FP32 ? MP_FP16 : type);
    }
    grads_ = make_tensor_list(grads, numel, grad_types);
    masters_ = make_tensor_list(masters, numel, std::vector<mp_dtype_t>(numel.size(), MP_FP32));
    if (dtype != MP_FP32) models_ = make_tensor_list(models, numel, model_types);
    trainer_ = std::make_unique<Trainer>(grads_.get(), masters_.get(), models_.get(), numel);
  }

  void update(mp_scaler_t scaler) override { trainer_->step(scaler); }

  std::vector<float> masters() const override {
    std::vector<float> all;
    for (const auto &master : master_)
      for (const double value : master->download()) all.push_back(static_cast<float>(value));
    return all;
  }

 protected:
  const void *weight(size_t i) const { return model_[i] ? model_[i]->data() : master_[i]->data(); }
  float *wide(size_t i) const { return static_cast<float *>(master_[i]->data()); }
  void *grad(size_t i) const { return grad_[i]->data(); }
  float *wide_grad(size_t i) const { return static_cast<float *>(grad_[i]->data()); }
  mp_dtype_t dtype() const { return dtype_; }

  /// Multiplies with the workspace size that the library returns.
  void multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                const mp_epilogue_t &epilogue) const {
    size_t bytes = 0;
    require_ok(mp_gemm_workspace_size(context(), &desc, nullptr, &bytes));
    const DeviceMemory workspace(bytes);
    require_ok(
        mp_gemm(context(), &desc, a, b, nullptr, d, &epilogue, workspace.data(), bytes, kStream));
  }

  /// y = activation(x W + b)
  void linear(int64_t rows, int64_t in, int64_t out, const void *x, size_t w,
              mp_activation_t activation, void *y) const {
    mp_epilogue_t epilogue = mp_epilogue_default();
    epilogue.activation = activation;
    epilogue.bias = wide(w + 1);
    epilogue.dtype_bias = MP_FP32;
    multiply(mp_gemm_desc_default(rows, out, in, dtype_, dtype_), x, weight(w), y, epilogue);
  }

  /// dW = x^T dz and dx = dz W^T with epilogue `below`; dx may be nullptr.
  void linear_backward(int64_t rows, int64_t in, int64_t out, const void *x, const void *dz,
                       size_t w, void *dx, const mp_epilogue_t &below) const {
    mp_gemm_desc_t dw = mp_gemm_desc_default(in, out, rows, dtype_, dtype_);
    dw.op_a = MP_OP_T;
    dw.ld_a = in;
    multiply(dw, x, dz, grad(w), mp_epilogue_default());
    if (dx == nullptr) return;
    mp_gemm_desc_t desc = mp_gemm_desc_default(rows, in, out, dtype_, dtype_);
    desc.op_b = MP_OP_T;
    desc.ld_b = out;
    multiply(desc, dz, weight(w), dx, below);
  }

  /// Epilogue of the product that computes dz of the layer below: relu' and the bias gradient.
  mp_epilogue_t below_relu(void *y, size_t bias, mp_scaler_t scaler) const {
    mp_epilogue_t epilogue = below(scaler);
    epilogue.activation = MP_ACT_DRELU;
    epilogue.aux = y;
    epilogue.dbias = wide_grad(bias);
    return epilogue;
  }
  static mp_epilogue_t below(mp_scaler_t scaler) {
    mp_epilogue_t epilogue = mp_epilogue_default();
    if (scaler != nullptr) epilogue.stats.found_inf = mp_scaler_get_found_inf_address(scaler);
    return epilogue;
  }

  /// Gradient of the last bias, as a product with a row of ones.
  void sum_rows(int64_t rows, int64_t columns, const void *dz, size_t bias) const {
    const DeviceArray ones(dtype_, std::vector<double>(static_cast<size_t>(rows), 1.0));
    multiply(mp_gemm_desc_default(1, columns, rows, dtype_, MP_FP32), ones.data(), dz, grad(bias),
             mp_epilogue_default());
  }

  void loss(int64_t rows, int64_t classes, const void *logits, const int32_t *labels,
            mp_scaler_t scaler, void *dlogits) const {
    const mp_xent_desc_t desc = mp_xent_desc_default(rows, classes, dtype_);
    const DeviceBuffer<float> row_loss(rows);
    mp_xent_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = logits;
    t.labels = labels;
    t.loss_scale = scaler != nullptr ? mp_scaler_get_scale_address(scaler) : nullptr;
    t.row_loss = row_loss.data();
    t.dx = dlogits;
    require_ok(mp_softmax_xent(context(), &desc, &t, kStream));
  }

  /// Casts the input to the type of the network.
  void cast(const float *x, const DeviceArray &to, int64_t count) const {
    require_ok(mp_cast(context(), x, MP_FP32, to.data(), dtype_, count, kStream));
  }

 private:
  mp_dtype_t dtype_;
  std::vector<Floats32> initial_;
  std::vector<bool> is_weight_;
  std::vector<std::unique_ptr<DeviceArray>> master_, model_, grad_;
  ListHandle grads_, masters_, models_;
  std::unique_ptr<Trainer> trainer_;
};

std::vector<double> first(const DeviceArray &array, int64_t count) {
  std::vector<double> values = array.download();
  values.resize(static_cast<size_t>(count));
  return values;
}

// ---------------------------------------------------------------------------- convnet

/// Convolution, batch normalization with relu, pooling of 2 x 2.
struct Block {
  int64_t side, in, out;
  int64_t numel(int64_t rows) const { return rows * side * side * out; }
  int64_t pooled(int64_t rows) const { return numel(rows) / 4; }
};

class ConvnetByHand final : public ByHand {
  using C = Convnet;
  enum : size_t { kFilter1, kGamma1, kBeta1, kFilter2, kGamma2, kBeta2, kW1, kB1, kW2, kB2 };
  static constexpr Block kBlocks[2] = {{C::side, 1, C::channels},
                                       {C::side / 2, C::channels, C::more_channels}};
  static constexpr int64_t kFlat = C::side * C::side / 16 * C::more_channels;

  struct Buffers {
    Buffers(const Block &b, mp_dtype_t dtype)
        : conv(dtype, b.numel(C::rows)),
          norm(dtype, b.numel(C::rows)),
          pool(dtype, b.pooled(C::rows)),
          dconv(dtype, b.numel(C::rows)),
          dnorm(dtype, b.numel(C::rows)),
          dpool(dtype, b.pooled(C::rows)),
          mean(MP_FP32, std::vector<double>(static_cast<size_t>(b.out))),
          variance(MP_FP32, std::vector<double>(static_cast<size_t>(b.out), 1.0)),
          saved_mean(MP_FP32, b.out),
          saved_inv_std(MP_FP32, b.out) {}
    DeviceArray conv, norm, pool, dconv, dnorm, dpool, mean, variance, saved_mean, saved_inv_std;
  };

 public:
  explicit ConvnetByHand(mp_dtype_t dtype)
      : ByHand(dtype, convnet_parameters(),
               {true, false, false, true, false, false, true, false, true, false}),
        x_(dtype, C::rows * C::side * C::side),
        first_(kBlocks[0], dtype),
        second_(kBlocks[1], dtype),
        h_(dtype, C::rows * C::hidden),
        dz_(dtype, C::rows * C::hidden),
        logits_(dtype, C::rows * C::classes),
        dlogits_(dtype, C::rows * C::classes) {}

  void forward_and_backward(int64_t rows, const float *x, const int32_t *labels,
                            mp_scaler_t scaler) override {
    cast(x, x_, rows * C::side * C::side);
    block_forward(rows, kBlocks[0], x_, kFilter1, first_);
    block_forward(rows, kBlocks[1], first_.pool, kFilter2, second_);
    linear(rows, kFlat, C::hidden, second_.pool.data(), kW1, MP_ACT_RELU, h_.data());
    linear(rows, C::hidden, C::classes, h_.data(), kW2, MP_ACT_NONE, logits_.data());
    loss(rows, C::classes, logits_.data(), labels, scaler, dlogits_.data());
    sum_rows(rows, C::classes, dlogits_.data(), kB2);
    linear_backward(rows, C::hidden, C::classes, h_.data(), dlogits_.data(), kW2, dz_.data(),
                    below_relu(h_.data(), kB1, scaler));
    linear_backward(rows, kFlat, C::hidden, second_.pool.data(), dz_.data(), kW1,
                    second_.dpool.data(), below(scaler));
    block_backward(rows, kBlocks[1], first_.pool, kFilter2, second_, &first_.dpool, scaler);
    block_backward(rows, kBlocks[0], x_, kFilter1, first_, nullptr, scaler);
  }

  std::vector<double> logits(int64_t rows) const override {
    return first(logits_, rows * C::classes);
  }

 private:
  mp_conv2d_desc_t conv(int64_t rows, const Block &b) const {
    const auto side = static_cast<int32_t>(b.side);
    mp_conv2d_desc_t d =
        mp_conv2d_desc_default(static_cast<int32_t>(rows), side, side, static_cast<int32_t>(b.in),
                               static_cast<int32_t>(b.out), 5, 5, dtype());
    d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = 2;
    return d;
  }

  template <class Call>
  void convolve(const Call &call, mp_conv_op_t op, const mp_conv2d_desc_t &d, const void *a,
                const void *b, void *out, const mp_epilogue_t *epilogue) const {
    size_t bytes = 0;
    require_ok(mp_conv2d_workspace_size(context(), &d, op, nullptr, &bytes));
    const DeviceMemory workspace(bytes);
    require_ok(call(context(), &d, a, b, out, epilogue, workspace.data(), bytes, kStream));
  }

  mp_batchnorm_desc_t norm(int64_t rows, const Block &b) const {
    mp_batchnorm_desc_t d =
        mp_batchnorm_desc_default(rows * b.side * b.side, static_cast<int32_t>(b.out), dtype());
    d.activation = MP_ACT_RELU;
    return d;
  }

  mp_batchnorm_tensors_t norm_tensors(const Buffers &m, size_t filter) const {
    const auto floats = [](const DeviceArray &a) { return static_cast<float *>(a.data()); };
    mp_batchnorm_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = m.conv.data();
    t.gamma = wide(filter + 1);
    t.beta = wide(filter + 2);
    t.running_mean = floats(m.mean);
    t.running_var = floats(m.variance);
    t.saved_mean = floats(m.saved_mean);
    t.saved_inv_std = floats(m.saved_inv_std);
    return t;
  }

  mp_pool2d_desc_t pool(int64_t rows, const Block &b) const {
    const auto side = static_cast<int32_t>(b.side);
    return mp_pool2d_desc_default(MP_POOL_MAX, static_cast<int32_t>(rows), side, side,
                                  static_cast<int32_t>(b.out), 2, 2, dtype());
  }

  void block_forward(int64_t rows, const Block &b, const DeviceArray &x, size_t filter,
                     const Buffers &m) const {
    convolve(mp_conv2d_fprop, MP_CONV_FPROP, conv(rows, b), x.data(), weight(filter), m.conv.data(),
             nullptr);
    const mp_batchnorm_desc_t n = norm(rows, b);
    mp_batchnorm_tensors_t t = norm_tensors(m, filter);
    t.y = m.norm.data();
    size_t bytes = 0;
    require_ok(mp_batchnorm_workspace_size(context(), &n, &bytes));
    const DeviceMemory workspace(bytes);
    require_ok(mp_batchnorm_forward_training(context(), &n, &t, workspace.data(), bytes, kStream));
    const mp_pool2d_desc_t p = pool(rows, b);
    require_ok(mp_pool2d_forward(context(), &p, m.norm.data(), m.pool.data(), kStream));
  }

  void block_backward(int64_t rows, const Block &b, const DeviceArray &x, size_t filter,
                      const Buffers &m, const DeviceArray *dx, mp_scaler_t scaler) const {
    const mp_pool2d_desc_t p = pool(rows, b);
    require_ok(mp_pool2d_backward(context(), &p, m.norm.data(), m.dpool.data(), m.dnorm.data(),
                                  nullptr, kStream));
    const mp_batchnorm_desc_t n = norm(rows, b);
    mp_batchnorm_tensors_t t = norm_tensors(m, filter);
    t.dy = m.dnorm.data();
    t.dx = m.dconv.data();
    t.dgamma = wide_grad(filter + 1);
    t.dbeta = wide_grad(filter + 2);
    size_t bytes = 0;
    require_ok(mp_batchnorm_workspace_size(context(), &n, &bytes));
    const DeviceMemory workspace(bytes);
    require_ok(mp_batchnorm_backward(context(), &n, &t, workspace.data(), bytes, kStream));
    convolve(mp_conv2d_wgrad, MP_CONV_WGRAD, conv(rows, b), x.data(), m.dconv.data(), grad(filter),
             nullptr);
    if (dx == nullptr) return;
    const mp_epilogue_t epilogue = below(scaler);
    convolve(mp_conv2d_dgrad, MP_CONV_DGRAD, conv(rows, b), m.dconv.data(), weight(filter),
             dx->data(), &epilogue);
  }

  DeviceArray x_;
  Buffers first_, second_;
  DeviceArray h_, dz_, logits_, dlogits_;
};

// ---------------------------------------------------------------------------- graphs

class AsGraph : public Trained {
 public:
  void forward_and_backward(int64_t rows, const float *x, const int32_t *labels,
                            mp_scaler_t scaler) override {
    require_ok(mp_graph_set_batch(graph_.handle, rows));
    graph_.bind(x_, x);
    graph_.bind(labels_, labels);
    graph_.step(scaler);
  }
  void update(mp_scaler_t scaler) override { trainer_->step(scaler); }
  std::vector<float> masters() const override { return graph_.masters(); }
  std::vector<double> logits(int64_t) const override { return graph_.read(logits_); }

 protected:
  int32_t linear(const std::string &name, int32_t x, int64_t in, int64_t out) {
    const int32_t w = graph_.parameter((name + ".w").c_str(), {in, out});
    const int32_t b = graph_.parameter((name + ".b").c_str(), {out});
    return graph_.node("Linear", name.c_str(), {x, w, b});
  }

  void finish(int32_t logits, int64_t rows, mp_dtype_t low, const std::vector<Floats32> &initial) {
    logits_ = logits;
    graph_.output(logits);
    labels_ = graph_.input("labels", MP_DTYPE_NONE, {rows});
    graph_.loss(graph_.node("SoftmaxXent", "loss", {logits, labels_}));
    const PolicyHandle policy = low != MP_FP32 ? make_policy(low) : nullptr;
    graph_.compile(policy.get());
    std::vector<int64_t> numel;
    for (size_t i = 0; i < initial.size(); ++i) {
      graph_.write(graph_.parameters[i], initial[i]);
      numel.push_back(static_cast<int64_t>(initial[i].size()));
    }
    mp_tensor_list_t grads = nullptr, master = nullptr, model = nullptr;
    require_ok(mp_graph_get_lists(graph_.handle, &grads, &master, &model));
    trainer_ = std::make_unique<Trainer>(grads, master, model, numel);
  }

  Described graph_;
  int32_t x_ = -1;

 private:
  int32_t labels_ = -1, logits_ = -1;
  std::unique_ptr<Trainer> trainer_;
};

class ConvnetAsGraph final : public AsGraph {
 public:
  explicit ConvnetAsGraph(mp_dtype_t low) {
    using C = Convnet;
    x_ = graph_.input("x", MP_FP32, {C::rows, C::side, C::side, 1});
    int32_t h = block("1", x_, 1, C::channels);
    h = block("2", h, C::channels, C::more_channels);
    h = graph_.node("Reshape", "flat", {h}, {{"extent", {0, -1}}});
    h = graph_.node("Relu", "relu",
                    {linear("fc1", h, C::side * C::side / 16 * C::more_channels, C::hidden)});
    finish(linear("fc2", h, C::hidden, C::classes), C::rows, low, convnet_parameters());
    for (const int32_t variance : variances_)
      graph_.write(variance, Floats32(static_cast<size_t>(graph_.info(variance).extent[0]), 1.0f));
  }

 private:
  int32_t block(const std::string &number, int32_t x, int64_t in, int64_t out) {
    const int32_t filter = graph_.parameter(("conv" + number + ".w").c_str(), {out, 5, 5, in});
    const int32_t gamma = graph_.parameter(("bn" + number + ".gamma").c_str(), {out});
    const int32_t beta = graph_.parameter(("bn" + number + ".beta").c_str(), {out});
    const int32_t mean = graph_.state(("bn" + number + ".mean").c_str(), {out});
    variances_.push_back(graph_.state(("bn" + number + ".variance").c_str(), {out}));
    int32_t y = graph_.node("Conv2D", ("conv" + number).c_str(), {x, filter}, {{"pad", 2}});
    y = graph_.node("BatchNorm", ("bn" + number).c_str(),
                    {y, gamma, beta, mean, variances_.back()});
    y = graph_.node("Relu", ("bn" + number + "/relu").c_str(), {y});
    return graph_.node("MaxPool", ("pool" + number).c_str(), {y});
  }

  std::vector<int32_t> variances_;
};

}  // namespace

std::vector<Floats32> convnet_parameters() {
  using C = Convnet;
  constexpr int64_t kFlat = C::side * C::side / 16 * C::more_channels;
  Random random(2);
  const auto ones = [](int64_t count) { return Floats32(static_cast<size_t>(count), 1.0f); };
  return {random_weights(random, 25 * C::channels, 25),
          ones(C::channels),
          random_weights(random, C::channels, 64),
          random_weights(random, 25 * C::channels * C::more_channels, 25 * C::channels),
          ones(C::more_channels),
          random_weights(random, C::more_channels, 64),
          random_weights(random, kFlat * C::hidden, kFlat),
          random_weights(random, C::hidden, 64),
          random_weights(random, C::hidden * C::classes, C::hidden),
          random_weights(random, C::classes, 64)};
}

std::unique_ptr<Trained> convnet_as_graph(mp_dtype_t low) {
  return std::make_unique<ConvnetAsGraph>(low);
}
std::unique_ptr<Trained> convnet_by_hand(mp_dtype_t dtype) {
  return std::make_unique<ConvnetByHand>(dtype);
}

}  // namespace mptest
