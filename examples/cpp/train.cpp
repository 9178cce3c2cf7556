// ../c/train.c in C++: the same network on the same data.  Both print the same hash of the weights.
//
//   train_cpp [host|auto]
//
// optimizer::save_sync and restore_sync write and read a checkpoint; ../c/train.c resumes from one.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "mpcore.hpp"

namespace {

constexpr int kBatch = 32, kIn = 24, kHidden = 32, kClasses = 8, kSteps = 120, kBrokenStep = 33;

/// Linear congruential generator; returns its upper 8 bits, -128 to 127.
int next_random(uint32_t &state) {
  state = state * 1664525u + 1013904223u;
  return static_cast<int>(state >> 24) - 128;
}

enum Parameter { kW1, kB1, kW2 };
constexpr std::array<int64_t, 3> kNumels = {kIn * kHidden, kHidden, (kHidden * kClasses)};

mp::memory make_zeros(const mp::context &context, size_t bytes) {
  mp::memory memory = context.malloc(bytes);
  context.memset(memory, 0, bytes);
  return memory;
}

/// One tensor per parameter, with the shapes of the weights.
struct Tensors {
  std::array<mp::memory, kNumels.size()> memory;
  mp::tensor_list list;

  Tensors(const mp::context &context, const std::array<mp_dtype_t, kNumels.size()> &dtypes) {
    std::array<void *, kNumels.size()> data;
    for (size_t i = 0; i < kNumels.size(); i++) {
      memory[i] = make_zeros(context, static_cast<size_t>(kNumels[i]) * mp_dtype_size(dtypes[i]));
      data[i] = memory[i];
    }
    mp_tensor_list_desc_t desc;
    MP_INIT_STRUCT(&desc);
    desc.dtypes = dtypes.data();
    desc.count = static_cast<uint32_t>(kNumels.size());
    desc.data = data.data();
    desc.numel = kNumels.data();
    list = mp::tensor_list::create(context, desc);
  }
};

struct Batch {
  std::array<float, kBatch * kIn> x;
  std::array<int32_t, kBatch> labels;
};

/// Returns a batch.  A sample is noise around the center of its class, in multiples of 2^-6, which
/// are exact in fp16.
Batch make_batch(uint32_t &random, int step) {
  Batch batch;
  for (size_t i = 0; i < kBatch; i++) {
    batch.labels[i] = (next_random(random) + 128) % kClasses;
    auto center = static_cast<uint32_t>(batch.labels[i]);
    for (size_t j = 0; j < kIn; j++) {
      const int from_center = next_random(center);
      batch.x[i * kIn + j] = static_cast<float>(from_center + next_random(random)) / 64.0f;
    }
  }
  if (step == kBrokenStep) batch.x[0] = 1e6f;  // infinity in fp16
  return batch;
}

}  // namespace

int main(int argc, char **argv) try {
  mp_context_config_t config = mp_context_config_default();
  if (argc > 1 && std::strcmp(argv[1], "host") == 0) config.device = MP_DEVICE_HOST;
  const mp::context context = mp::context::create(config);

  const mp::memory staging = make_zeros(context, kBatch * kIn * sizeof(float));
  const mp::memory x = make_zeros(context, kBatch * kIn * 2);
  const mp::memory h = make_zeros(context, kBatch * kHidden * 2);
  const mp::memory dh = make_zeros(context, kBatch * kHidden * 2);
  const mp::memory logits = make_zeros(context, kBatch * kClasses * 2);
  const mp::memory labels = make_zeros(context, kBatch * sizeof(int32_t));
  const mp::memory row_loss = make_zeros(context, kBatch * sizeof(float));
  const mp::memory loss = make_zeros(context, sizeof(float));
  const Tensors model(context, {MP_FP16, MP_FP16, MP_FP16});
  const Tensors grads(context, {MP_FP16, MP_FP32, MP_FP16});  // an epilogue computes the bias's
  const Tensors master(context, {MP_FP32, MP_FP32, MP_FP32});

  mp_param_group_t group;
  mp_optimizer_desc_t desc = mp::optimizer_desc_from_name("adamw", group, 0.015625f);
  group.weight_decay = 0.0078125f;
  desc.grads = grads.list;
  desc.master = master.list;
  desc.model = model.list;
  const mp::optimizer adamw = mp::optimizer::create(context, desc);  // allocates the moments
  mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  backoff.growth_interval = 8;
  const mp::scaler scaler = mp::scaler::create(context, backoff);

  uint32_t random = 1;
  for (const Parameter parameter : {kW1, kW2}) {
    std::vector<float> values(static_cast<size_t>(kNumels[parameter]));
    for (float &value : values) value = static_cast<float>(next_random(random)) / 512.0f;
    context.memcpy(master.memory[parameter], values.data(), values.size() * sizeof(float));
  }
  adamw.write_model();  // the fp16 weights from the masters

  mp_epilogue_t relu = mp_epilogue_default();
  relu.activation = MP_ACT_RELU;
  relu.bias = model.memory[kB1];
  relu.dtype_bias = MP_FP16;
  mp_epilogue_t drelu = mp_epilogue_default();
  drelu.activation = MP_ACT_DRELU;
  drelu.aux = h;  // relu'(z) = relu'(relu(z)), so z is not stored
  drelu.dbias = grads.memory[kB1].as<float>();
  drelu.stats.found_inf = scaler.found_inf();
  mp_xent_tensors_t xent;  // the gradient of the logits, times S, replaces them
  MP_INIT_STRUCT(&xent);
  xent.x = xent.dx = logits;
  xent.labels = labels;
  xent.loss_scale = scaler.scale();
  xent.row_loss = row_loss.as<float>();
  xent.loss = loss.as<float>();
  mp_gemm_desc_t dw1 = mp_gemm_desc_default(kIn, kHidden, kBatch, MP_FP16, MP_FP16);
  mp_gemm_desc_t dw2 = mp_gemm_desc_default(kHidden, kClasses, kBatch, MP_FP16, MP_FP16);
  mp_gemm_desc_t dx2 = mp_gemm_desc_default(kBatch, kHidden, kClasses, MP_FP16, MP_FP16);
  dw1.op_a = dw2.op_a = dx2.op_b = MP_OP_T;
  dw1.ld_a = kIn;
  dw2.ld_a = kHidden;
  dx2.ld_b = kClasses;
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 1.0f;

  for (int step = 1; step <= kSteps; step++) {
    const Batch batch = make_batch(random, step);
    context.memcpy(staging, batch.x.data(), sizeof batch.x);
    context.cast(staging, MP_FP32, x, MP_FP16, kBatch * kIn);
    context.memcpy(labels, batch.labels.data(), sizeof batch.labels);

    context.gemm(mp_gemm_desc_default(kBatch, kHidden, kIn, MP_FP16, MP_FP16), x, model.memory[kW1],
                 nullptr, h, &relu);
    context.gemm(mp_gemm_desc_default(kBatch, kClasses, kHidden, MP_FP16, MP_FP16), h,
                 model.memory[kW2], nullptr, logits);
    context.softmax_xent(mp_xent_desc_default(kBatch, kClasses, MP_FP16), xent);
    context.gemm(dw2, h, logits, nullptr, grads.memory[kW2]);
    context.gemm(dx2, logits, model.memory[kW2], nullptr, dh, &drelu);
    context.gemm(dw1, x, dh, nullptr, grads.memory[kW1]);
    adamw.scale_step(scaler, &options);

    if (step % 10 == 0) {  // the host waits only here
      const mp_scaler_state_t state = scaler.get_state_sync();
      float value;
      context.memcpy(&value, loss, sizeof value);
      context.stream_sync();
      std::printf("step %d  loss %.4f  scale %.0f  skipped %d\n", step, static_cast<double>(value),
                  static_cast<double>(state.scale), static_cast<int>(state.skipped));
    }
  }

  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a of the bytes of the master weights
  for (size_t i = 0; i < kNumels.size(); i++) {
    std::vector<unsigned char> bytes(static_cast<size_t>(kNumels[i]) * sizeof(float));
    context.memcpy(bytes.data(), master.memory[i], bytes.size());
    context.stream_sync();
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  }
  std::printf("weights %016llx\n", static_cast<unsigned long long>(hash));
} catch (const mp::error &error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return 2;
}
