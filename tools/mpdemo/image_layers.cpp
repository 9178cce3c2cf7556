#include "image_layers.h"

#include <algorithm>

namespace mpdemo {
namespace {

constexpr int32_t kWindow = 2;  // of MaxPool

}  // namespace

// ---------------------------------------------------------------------------- convolution

Conv2d::Conv2d(const Setup &setup, const Image &x, int32_t channels, int32_t size)
    : Layer(setup, int64_t{x.h} * x.w * channels),
      x_(x),
      channels_(channels),
      size_(size),
      filter_(setup, int64_t{channels} * size * size * x.c) {}

void Conv2d::initialise(Random &random) {
  filter_.initialise(random, int64_t{size_} * size_ * x_.c);
}

mp_conv2d_desc_t Conv2d::desc(int64_t rows) const {
  mp_conv2d_desc_t d = mp_conv2d_desc_default(static_cast<int32_t>(rows), x_.h, x_.w, x_.c,
                                              channels_, size_, size_, dtype());
  d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = size_ / 2;
  return d;
}

void Conv2d::forward(const void *x, const Pass &pass) {
  const mp_conv2d_desc_t d = desc(pass.rows);
  check(mp_conv2d_fprop(context(), &d, x, filter_.data(), y().data(), nullptr,
                        pass.workspace.data(), static_cast<size_t>(pass.workspace.bytes()),
                        kStream));
}

void Conv2d::backward(const void *x, const Layer *below, const Pass &pass) {
  const mp_conv2d_desc_t d = desc(pass.rows);
  check(mp_conv2d_wgrad(context(), &d, x, dy().data(), filter_.grad(), nullptr,
                        pass.workspace.data(), static_cast<size_t>(pass.workspace.bytes()),
                        kStream));
  if (below == nullptr) return;
  const mp_epilogue_t epilogue = dx_epilogue(*below, pass);
  check(mp_conv2d_dgrad(context(), &d, dy().data(), filter_.data(), below->dy().data(), &epilogue,
                        pass.workspace.data(), static_cast<size_t>(pass.workspace.bytes()),
                        kStream));
}

size_t Conv2d::workspace_bytes() const {
  const mp_conv2d_desc_t d = desc(max_rows());
  size_t most = 0;
  for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
    size_t bytes = 0;
    check(mp_conv2d_workspace_size(context(), &d, op, &bytes));
    most = std::max(most, bytes);
  }
  return most;
}

// ---------------------------------------------------------------------------- batch normalisation

BatchNorm::BatchNorm(const Setup &setup, const Image &x)
    : Layer(setup, x.numel()),
      x_(x),
      gamma_(setup, x.c, 1.0f),
      beta_(setup, x.c, 0.0f),
      running_mean_(make_buffer(setup.context, x.c, MP_FP32)),
      running_var_(make_buffer(setup.context, x.c, MP_FP32)),
      saved_mean_(make_buffer(setup.context, x.c, MP_FP32)),
      saved_inv_std_(make_buffer(setup.context, x.c, MP_FP32)) {}

void BatchNorm::initialise(Random &) {
  gamma_.initialise();
  beta_.initialise();
  fill(context(), running_mean_, 0.0f);
  fill(context(), running_var_, 1.0f);
}

mp_batchnorm_desc_t BatchNorm::desc(int64_t rows) const {
  mp_batchnorm_desc_t d = mp_batchnorm_desc_default(rows * x_.h * x_.w, x_.c, dtype());
  d.activation = MP_ACT_RELU;
  return d;
}

mp_batchnorm_tensors_t BatchNorm::tensors(const void *x) const {
  mp_batchnorm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = x;
  t.gamma = gamma_.data();
  t.beta = beta_.data();
  t.running_mean = running_mean_.as<float>();
  t.running_var = running_var_.as<float>();
  t.saved_mean = saved_mean_.as<float>();
  t.saved_inv_std = saved_inv_std_.as<float>();
  return t;
}

void BatchNorm::forward(const void *x, const Pass &pass) {
  const mp_batchnorm_desc_t d = desc(pass.rows);
  mp_batchnorm_tensors_t t = tensors(x);
  t.y = y().data();
  check(pass.is_training
            ? mp_batchnorm_forward_training(context(), &d, &t, pass.workspace.data(),
                                            static_cast<size_t>(pass.workspace.bytes()), kStream)
            : mp_batchnorm_forward_inference(context(), &d, &t, kStream));
}

void BatchNorm::backward(const void *x, const Layer *below, const Pass &pass) {
  const mp_batchnorm_desc_t d = desc(pass.rows);
  mp_batchnorm_tensors_t t = tensors(x);
  t.dy = dy().data();
  t.dx = below->dy().data();
  t.dgamma = gamma_.grad();
  t.dbeta = beta_.grad();
  check(mp_batchnorm_backward(context(), &d, &t, pass.workspace.data(),
                              static_cast<size_t>(pass.workspace.bytes()), kStream));
}

std::vector<Parameter> BatchNorm::parameters() const {
  return {gamma_.parameter(), beta_.parameter()};
}

size_t BatchNorm::workspace_bytes() const {
  const mp_batchnorm_desc_t d = desc(max_rows());
  size_t bytes = 0;
  check(mp_batchnorm_workspace_size(context(), &d, &bytes));
  return bytes;
}

void BatchNorm::add_memory(Memory &memory) const {
  Layer::add_memory(memory);
  memory.weights += running_mean_.bytes() + running_var_.bytes();
  memory.activations += saved_mean_.bytes() + saved_inv_std_.bytes();
}

// ---------------------------------------------------------------------------- pooling

MaxPool::MaxPool(const Setup &setup, const Image &x)
    : Layer(setup, Image{x.h / kWindow, x.w / kWindow, x.c}.numel()), x_(x) {}

mp_pool2d_desc_t MaxPool::desc(int64_t rows) const {
  return mp_pool2d_desc_default(MP_POOL_MAX, static_cast<int32_t>(rows), x_.h, x_.w, x_.c, kWindow,
                                kWindow, dtype());
}

void MaxPool::forward(const void *x, const Pass &pass) {
  const mp_pool2d_desc_t d = desc(pass.rows);
  check(mp_pool2d_forward(context(), &d, x, y().data(), kStream));
}

void MaxPool::backward(const void *x, const Layer *below, const Pass &pass) {
  const mp_pool2d_desc_t d = desc(pass.rows);
  check(mp_pool2d_backward(context(), &d, x, dy().data(), below->dy().data(), kStream));
}

}  // namespace mpdemo
