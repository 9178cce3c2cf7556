// Three GEMMs, everything else in epilogues.
#include "linear.h"

#include <algorithm>

namespace mpdemo {
namespace {

Buffer make_ones(const Setup &setup) {
  const std::vector<float> ones(static_cast<size_t>(setup.max_rows), 1.0f);
  const Buffer staging = make_buffer(setup.context, setup.max_rows, MP_FP32);
  Buffer result = make_buffer(setup.context, setup.max_rows, setup.dtype);
  check(
      mp_memcpy(setup.context, staging.data(), ones.data(), ones.size() * sizeof(float), kStream));
  check(mp_cast(setup.context, staging.data(), MP_FP32, result.data(), setup.dtype, setup.max_rows,
                kStream));
  check(mp_stream_sync(setup.context, kStream));
  return result;
}

}  // namespace

Linear::Linear(const Setup &setup, int64_t in, int64_t out, Role role)
    : Layer(setup, out),
      in_(in),
      activation_(role == Role::hidden ? MP_ACT_RELU : MP_ACT_NONE),
      weight_(setup, in * out),
      bias_(setup, out, 0.0f) {
  if (role == Role::logits) ones_ = make_ones(setup);
}

void Linear::initialise(Random &random) {
  weight_.initialise(random, in_);
  bias_.initialise();
}

void Linear::forward(const void *x, const Pass &pass) {
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.activation = activation_;
  epilogue.bias = bias_.data();
  epilogue.bias_dtype = MP_FP32;
  multiply(fprop_desc(pass.rows), x, weight_.data(), y().data(), epilogue, pass);
}

void Linear::backward(const void *x, const Layer *below, const Pass &pass) {
  // Every other bias gradient is computed by the GEMM of the layer above.
  if (activation_ == MP_ACT_NONE) sum_rows(pass);
  multiply(wgrad_desc(pass.rows), x, dy().data(), weight_.grad(), mp_epilogue_default(), pass);
  if (below == nullptr) return;
  multiply(dgrad_desc(pass.rows), dy().data(), weight_.data(), below->dy().data(),
           dx_epilogue(*below, pass), pass);
}

mp_epilogue_t Linear::dy_epilogue() const {
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.activation = MP_ACT_DRELU;
  // relu'(z) = relu'(relu(z)): y serves as aux, and no z is ever stored.
  epilogue.aux = y().data();
  epilogue.dbias = bias_.grad();
  return epilogue;
}

std::vector<Parameter> Linear::parameters() const {
  return {weight_.parameter(), bias_.parameter()};
}

mp_gemm_desc_t Linear::fprop_desc(int64_t rows) const {
  return mp_gemm_desc_default(rows, out(), in_, dtype(), dtype());
}

mp_gemm_desc_t Linear::dgrad_desc(int64_t rows) const {
  mp_gemm_desc_t desc = mp_gemm_desc_default(rows, in_, out(), dtype(), dtype());
  desc.op_b = MP_OP_T;
  desc.ldb = out();
  return desc;
}

mp_gemm_desc_t Linear::wgrad_desc(int64_t rows) const {
  mp_gemm_desc_t desc = mp_gemm_desc_default(in_, out(), rows, dtype(), dtype());
  desc.op_a = MP_OP_T;
  desc.lda = in_;
  return desc;
}

size_t Linear::workspace_bytes() const {
  size_t most = 0;
  for (const mp_gemm_desc_t &desc :
       {fprop_desc(max_rows()), dgrad_desc(max_rows()), wgrad_desc(max_rows())}) {
    size_t bytes = 0;
    check(mp_gemm_workspace_size(context(), &desc, &bytes));
    most = std::max(most, bytes);
  }
  return most;
}

void Linear::add_memory(Memory &memory) const {
  Layer::add_memory(memory);
  memory.activations += ones_.bytes();
}

void Linear::multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                      const mp_epilogue_t &epilogue, const Pass &pass) const {
  check(mp_gemm(context(), &desc, a, b, nullptr, d, &epilogue, pass.workspace.data(),
                static_cast<size_t>(pass.workspace.bytes()), kStream));
}

/// dbias as a GEMM with a row of ones, summed and kept in fp32.
void Linear::sum_rows(const Pass &pass) const {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(1, out(), pass.rows, dtype(), MP_FP32);
  multiply(desc, ones_.data(), dy().data(), bias_.grad(), mp_epilogue_default(), pass);
}

}  // namespace mpdemo
