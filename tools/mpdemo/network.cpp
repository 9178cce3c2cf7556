// Forward and backward of the perceptron: three GEMMs per layer, everything else in epilogues.
#include "network.h"

#include <algorithm>
#include <cmath>

namespace mpdemo {

Network::Network(mp_context_t context, std::span<const int64_t> widths, int64_t max_rows,
                 mp_dtype_t dtype)
    : context_(context), dtype_(dtype), ones_(make_buffer(context, max_rows, dtype)) {
  for (size_t l = 0; l + 1 < widths.size(); ++l) {
    const int64_t in = widths[l];
    const int64_t out = widths[l + 1];
    const bool is_last = l + 2 == widths.size();
    Layer layer;
    layer.in = in;
    layer.out = out;
    layer.activation = is_last ? MP_ACT_NONE : MP_ACT_RELU;
    layer.weight = make_buffer(context, in * out, MP_FP32);
    if (dtype != MP_FP32) layer.weight_model = make_buffer(context, in * out, dtype);
    layer.bias = make_buffer(context, out, MP_FP32);
    layer.dweight = make_buffer(context, in * out, dtype);
    layer.dbias = make_buffer(context, out, MP_FP32);
    layer.y = make_buffer(context, max_rows * out, dtype);
    layer.dz = make_buffer(context, max_rows * out, dtype);
    layers_.push_back(std::move(layer));
  }
  workspace_ = Buffer(context, workspace_bytes(max_rows));

  const std::vector<float> ones(static_cast<size_t>(max_rows), 1.0f);
  const Buffer staging = make_buffer(context, max_rows, MP_FP32);
  check(mp_memcpy(context, staging.data(), ones.data(), ones.size() * sizeof(float), kStream));
  check(mp_cast(context, staging.data(), MP_FP32, ones_.data(), dtype, max_rows, kStream));
  check(mp_stream_sync(context, kStream));
}

void Network::initialise(Random &random) {
  for (const Layer &layer : layers_) {
    // Uniform with variance 2 / in keeps the size of activations through relu (He et al. 2015).
    const double bound = std::sqrt(6.0 / static_cast<double>(layer.in));
    std::vector<float> weight(static_cast<size_t>(layer.in * layer.out));
    for (float &w : weight) w = static_cast<float>(bound * (2 * random.uniform01() - 1));
    check(mp_memcpy(context_, layer.weight.data(), weight.data(), weight.size() * sizeof(float),
                    kStream));
    check(mp_memset(context_, layer.bias.data(), 0, static_cast<size_t>(layer.bias.bytes()),
                    kStream));
    if (layer.weight_model.data() == nullptr) continue;
    check(mp_cast(context_, layer.weight.data(), MP_FP32, layer.weight_model.data(), dtype_,
                  layer.in * layer.out, kStream));
  }
}

void Network::forward(const Batch &batch) {
  const void *x = batch.images;
  for (const Layer &layer : layers_) {
    mp_epilogue_t epilogue = mp_epilogue_default();
    epilogue.activation = layer.activation;
    epilogue.bias = layer.bias.data();
    epilogue.bias_dtype = MP_FP32;
    multiply(fprop_desc(layer, batch.rows), x, layer.gemm_weight(), layer.y.data(), epilogue);
    x = layer.y.data();
  }
}

void Network::backward(const Batch &batch, float *found_inf) {
  // Every other bias gradient falls out of the dgrad GEMM of the layer above.
  sum_rows(layers_.back(), batch.rows);
  for (size_t l = layers_.size(); l-- > 0;) {
    const Layer &layer = layers_[l];
    const void *x = l == 0 ? batch.images : layers_[l - 1].y.data();
    multiply(wgrad_desc(layer, batch.rows), x, layer.dz.data(), layer.dweight.data(),
             mp_epilogue_default());
    if (l == 0) return;  // nobody needs the gradient of the images

    const Layer &below = layers_[l - 1];
    mp_epilogue_t epilogue = mp_epilogue_default();
    epilogue.activation = MP_ACT_DRELU;
    // relu'(z) = relu'(relu(z)): y serves as aux, and no z is ever stored.
    epilogue.aux = below.y.data();
    epilogue.dbias = below.dbias.as<float>();
    epilogue.found_inf = found_inf;
    multiply(dgrad_desc(layer, batch.rows), layer.dz.data(), layer.gemm_weight(), below.dz.data(),
             epilogue);
  }
}

mp_gemm_desc_t Network::fprop_desc(const Layer &layer, int64_t rows) const {
  return mp_gemm_desc_default(rows, layer.out, layer.in, dtype_, dtype_);
}

mp_gemm_desc_t Network::dgrad_desc(const Layer &layer, int64_t rows) const {
  mp_gemm_desc_t desc = mp_gemm_desc_default(rows, layer.in, layer.out, dtype_, dtype_);
  desc.op_b = MP_OP_T;
  desc.ldb = layer.out;
  return desc;
}

mp_gemm_desc_t Network::wgrad_desc(const Layer &layer, int64_t rows) const {
  mp_gemm_desc_t desc = mp_gemm_desc_default(layer.in, layer.out, rows, dtype_, dtype_);
  desc.op_a = MP_OP_T;
  desc.lda = layer.in;
  return desc;
}

int64_t Network::workspace_bytes(int64_t rows) const {
  size_t most = 0;
  for (const Layer &layer : layers_) {
    for (const mp_gemm_desc_t &desc :
         {fprop_desc(layer, rows), dgrad_desc(layer, rows), wgrad_desc(layer, rows)}) {
      size_t bytes = 0;
      check(mp_gemm_workspace_size(context_, &desc, &bytes));
      most = std::max(most, bytes);
    }
  }
  return static_cast<int64_t>(most);
}

void Network::multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                       const mp_epilogue_t &epilogue) const {
  check(mp_gemm(context_, &desc, a, b, nullptr, d, &epilogue, workspace_.data(),
                static_cast<size_t>(workspace_.bytes()), kStream));
}

/// dbias of the last layer as a product with a row of ones, summed and kept in fp32.
void Network::sum_rows(const Layer &layer, int64_t rows) const {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(1, layer.out, rows, dtype_, MP_FP32);
  multiply(desc, ones_.data(), layer.dz.data(), layer.dbias.data(), mp_epilogue_default());
}

std::vector<Parameter> Network::parameters() const {
  std::vector<Parameter> parameters;
  for (const Layer &layer : layers_) {
    parameters.push_back({layer.in * layer.out, layer.weight.as<float>(), layer.weight_model.data(),
                          layer.dweight.data(), dtype_});
    parameters.push_back({layer.out, layer.bias.as<float>(), nullptr, layer.dbias.data(), MP_FP32});
  }
  return parameters;
}

std::vector<float> Network::weight_gradients_sync() const {
  std::vector<float> all;
  for (const Layer &layer : layers_) append_as_fp32(layer.dweight, layer.in * layer.out, all);
  return all;
}

std::vector<float> Network::activation_gradients_sync(int64_t rows) const {
  std::vector<float> all;
  for (const Layer &layer : layers_) append_as_fp32(layer.dz, rows * layer.out, all);
  return all;
}

void Network::append_as_fp32(const Buffer &tensor, int64_t numel, std::vector<float> &all) const {
  const Buffer wide = make_buffer(context_, numel, MP_FP32);
  check(mp_cast(context_, tensor.data(), dtype_, wide.data(), MP_FP32, numel, kStream));
  const std::vector<float> host = download_sync(context_, wide.as<float>(), numel);
  all.insert(all.end(), host.begin(), host.end());
}

Memory Network::memory() const {
  Memory memory = {};
  for (const Layer &layer : layers_) {
    const bool has_model = layer.weight_model.data() != nullptr;
    memory.weights += (has_model ? layer.weight_model : layer.weight).bytes() + layer.bias.bytes();
    memory.activations += layer.y.bytes();
    memory.gradients += layer.dweight.bytes() + layer.dbias.bytes() + layer.dz.bytes();
  }
  return memory;
}

}  // namespace mpdemo
