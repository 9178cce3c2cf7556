// ../c/train.c in C++: same network, same data, same bits.
//
//   train_cpp [--device host|auto|N] [--steps N] [--checkpoint FILE] [--resume FILE]
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpcore.hpp"

namespace {

constexpr int kBatch = 32, kIn = 24, kHidden = 32, kClasses = 8, kBrokenStep = 33;

/// Linear congruential generator; returns its upper 8 bits, -128 to 127.
int next_random(uint32_t &state) {
  state = state * 1664525u + 1013904223u;
  return static_cast<int>(state >> 24) - 128;
}

// ---------------------------------------------------------------------------- parameters

enum Parameter { kW1, kB1, kW2 };
constexpr std::array<int64_t, 3> kNumels = {kIn * kHidden, kHidden, (kHidden * kClasses)};
using Dtypes = std::array<mp_dtype_t, 3>;

mp::memory make_zeros(const mp::context &context, size_t bytes) {
  mp::memory memory = context.malloc(bytes);
  context.memset(memory, 0, bytes);
  return memory;
}

/// One tensor per parameter, with the shapes of the weights.
class Tensors {
 public:
  Tensors(const mp::context &context, const Dtypes &dtypes) {
    std::array<void *, kNumels.size()> data;
    for (size_t i = 0; i < kNumels.size(); i++) {
      memory_[i] = make_zeros(context, static_cast<size_t>(kNumels[i]) * mp_dtype_size(dtypes[i]));
      data[i] = memory_[i];
    }
    mp_tensor_list_desc_t desc;
    MP_INIT_STRUCT(&desc);
    desc.dtypes = dtypes.data();
    desc.count = static_cast<uint32_t>(kNumels.size());
    desc.data = data.data();
    desc.numel = kNumels.data();
    list_ = mp::tensor_list::create(context, desc);
  }

  const mp::tensor_list &list() const { return list_; }
  const mp::memory &operator[](size_t i) const { return memory_[i]; }

 private:
  std::array<mp::memory, kNumels.size()> memory_;
  mp::tensor_list list_;
};

// ---------------------------------------------------------------------------- trainer

class Trainer {
 public:
  explicit Trainer(int device);

  void step();
  int step_number() const { return step_; }
  void print_progress() const;
  uint64_t hash_weights() const;
  void save(const std::string &path) const;
  void resume(const std::string &path);

 private:
  void load_batch(int step);
  void forward();
  void backward();
  std::vector<float> download(const mp::memory &memory, int64_t count) const;
  mp::scaler make_scaler() const;
  mp::optimizer make_adamw() const;

  mp::context context_;
  mp::memory staging_, x_, h_, dh_, logits_, labels_, row_loss_, loss_;
  Tensors model_, grad_, master_;
  mp::scaler scaler_;
  mp::optimizer optimizer_;
  uint32_t random_ = 1;
  int step_ = 0;
};

constexpr Dtypes kAllFp16 = {MP_FP16, MP_FP16, MP_FP16};
constexpr Dtypes kAllFp32 = {MP_FP32, MP_FP32, MP_FP32};
/// The bias gradient is computed by an epilogue, in fp32.
constexpr Dtypes kGradients = {MP_FP16, MP_FP32, MP_FP16};

mp::context make_context(int device) {
  mp_context_config_t config = mp_context_config_default();
  config.device = device;
  return mp::context::create(config);
}

Trainer::Trainer(int device)
    : context_(make_context(device)),
      staging_(make_zeros(context_, kBatch * kIn * sizeof(float))),
      x_(make_zeros(context_, kBatch * kIn * 2)),
      h_(make_zeros(context_, kBatch * kHidden * 2)),
      dh_(make_zeros(context_, kBatch * kHidden * 2)),
      logits_(make_zeros(context_, kBatch * kClasses * 2)),
      labels_(make_zeros(context_, kBatch * sizeof(int32_t))),
      row_loss_(make_zeros(context_, kBatch * sizeof(float))),
      loss_(make_zeros(context_, sizeof(float))),
      model_(context_, kAllFp16),
      grad_(context_, kGradients),
      master_(context_, kAllFp32),
      scaler_(make_scaler()),
      optimizer_(make_adamw()) {
  for (size_t i = 0; i < kNumels.size(); i++) {
    std::vector<float> values(static_cast<size_t>(kNumels[i]));
    if (i != kB1) {
      for (float &value : values) value = static_cast<float>(next_random(random_)) / 512.0f;
    }
    context_.memcpy(master_[i], values.data(), values.size() * sizeof(float));
  }
  optimizer_.write_model();  // the fp16 weights from the masters
}

mp::scaler Trainer::make_scaler() const {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.growth_interval = 8;
  return mp::scaler::create(context_, config);
}

mp::optimizer Trainer::make_adamw() const {
  mp_param_group_t group;
  mp_optimizer_desc_t desc = mp::optimizer_desc_from_name("adamw", group, 0.015625f);
  group.weight_decay = 0.0078125f;
  desc.grads = grad_.list();
  desc.master = master_.list();
  desc.model = model_.list();
  return mp::optimizer::create(context_, desc);  // allocates the moments
}

// ---------------------------------------------------------------------------- one step

void Trainer::step() {
  load_batch(++step_);
  forward();
  // Computes the loss and replaces the logits with their gradient times S.
  mp_xent_tensors_t loss;
  MP_INIT_STRUCT(&loss);
  loss.x = loss.dx = logits_;
  loss.labels = labels_;
  loss.loss_scale = scaler_.scale();
  loss.row_loss = row_loss_.as<float>();
  loss.loss = loss_.as<float>();
  context_.softmax_xent(mp_xent_desc_default(kBatch, kClasses, MP_FP16), loss);
  backward();
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 1.0f;
  optimizer_.scale_step(scaler_, &options);
}

/// Uploads a batch.  A sample is noise around the center of its class, in multiples of 2^-6, which
/// are exact in fp16.
void Trainer::load_batch(int step) {
  std::array<float, kBatch * kIn> x;
  std::array<int32_t, kBatch> labels;
  for (size_t i = 0; i < kBatch; i++) {
    labels[i] = (next_random(random_) + 128) % kClasses;
    auto center = static_cast<uint32_t>(labels[i]);
    for (size_t j = 0; j < kIn; j++) {
      const int from_center = next_random(center);
      x[i * kIn + j] = static_cast<float>(from_center + next_random(random_)) / 64.0f;
    }
  }
  if (step == kBrokenStep) x[0] = 1e6f;  // infinity in fp16
  context_.memcpy(staging_, x.data(), sizeof x);
  context_.cast(staging_, MP_FP32, x_, MP_FP16, kBatch * kIn);
  context_.memcpy(labels_, labels.data(), sizeof labels);
}

void Trainer::forward() {
  mp_epilogue_t relu = mp_epilogue_default();
  relu.activation = MP_ACT_RELU;
  relu.bias = model_[kB1];
  relu.dtype_bias = MP_FP16;
  context_.gemm(mp_gemm_desc_default(kBatch, kHidden, kIn, MP_FP16, MP_FP16), x_, model_[kW1],
                nullptr, h_, &relu);
  context_.gemm(mp_gemm_desc_default(kBatch, kClasses, kHidden, MP_FP16, MP_FP16), h_, model_[kW2],
                nullptr, logits_);
}

void Trainer::backward() {
  const mp::memory &dlogits = logits_;

  mp_gemm_desc_t dw2 = mp_gemm_desc_default(kHidden, kClasses, kBatch, MP_FP16, MP_FP16);
  dw2.op_a = MP_OP_T;
  dw2.ld_a = kHidden;
  context_.gemm(dw2, h_, dlogits, nullptr, grad_[kW2]);

  mp_gemm_desc_t dh = mp_gemm_desc_default(kBatch, kHidden, kClasses, MP_FP16, MP_FP16);
  dh.op_b = MP_OP_T;
  dh.ld_b = kClasses;
  mp_epilogue_t drelu = mp_epilogue_default();
  drelu.activation = MP_ACT_DRELU;
  drelu.aux = h_;  // relu'(z) = relu'(relu(z)), so z is not stored
  drelu.dbias = grad_[kB1].as<float>();
  drelu.stats.found_inf = scaler_.found_inf();
  context_.gemm(dh, dlogits, model_[kW2], nullptr, dh_, &drelu);

  mp_gemm_desc_t dw1 = mp_gemm_desc_default(kIn, kHidden, kBatch, MP_FP16, MP_FP16);
  dw1.op_a = MP_OP_T;
  dw1.ld_a = kIn;
  context_.gemm(dw1, x_, dh_, nullptr, grad_[kW1]);
}

// ---------------------------------------------------------------- results and checkpoints

std::vector<float> Trainer::download(const mp::memory &memory, int64_t count) const {
  std::vector<float> values(static_cast<size_t>(count));
  context_.memcpy(values.data(), memory, values.size() * sizeof(float));
  context_.stream_sync();
  return values;
}

void Trainer::print_progress() const {
  const mp_scaler_state_t state = scaler_.get_state_sync();
  std::printf("step %d  loss %.4f  scale %.0f  skipped %d\n", step_,
              static_cast<double>(download(loss_, 1)[0]), static_cast<double>(state.scale),
              static_cast<int>(state.skipped));
}

/// FNV-1a hash of the bytes of the master weights.
uint64_t Trainer::hash_weights() const {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < kNumels.size(); i++) {
    const std::vector<float> values = download(master_[i], kNumels[i]);
    const auto *bytes = reinterpret_cast<const unsigned char *>(values.data());
    for (size_t j = 0; j < values.size() * sizeof(float); j++) {
      hash = (hash ^ bytes[j]) * 0x100000001b3u;
    }
  }
  return hash;
}

void Trainer::save(const std::string &path) const {
  const std::vector<std::byte> checkpoint = optimizer_.save_sync(scaler_);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&random_), sizeof random_);
  file.write(reinterpret_cast<const char *>(checkpoint.data()),
             static_cast<std::streamsize>(checkpoint.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

void Trainer::resume(const std::string &path) {
  std::vector<std::byte> checkpoint(optimizer_.checkpoint_size(scaler_));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  file.read(reinterpret_cast<char *>(&random_), sizeof random_);
  file.read(reinterpret_cast<char *>(checkpoint.data()),
            static_cast<std::streamsize>(checkpoint.size()));
  if (!file) throw std::runtime_error("invalid checkpoint " + path);
  optimizer_.restore_sync(scaler_, checkpoint);
  step_ = static_cast<int>(scaler_.get_state_sync().steps);
}

// ---------------------------------------------------------------------------- main

struct Options {
  int device = MP_DEVICE_AUTO;
  int steps = 120;
  std::string checkpoint, resume;
};

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::runtime_error("missing value after " + name);
    const std::string value = argv[i + 1];
    if (name == "--device") {
      options.device = value == "host"   ? MP_DEVICE_HOST
                       : value == "auto" ? MP_DEVICE_AUTO
                                         : std::stoi(value);
    } else if (name == "--steps") {
      options.steps = std::stoi(value);
    } else if (name == "--checkpoint") {
      options.checkpoint = value;
    } else if (name == "--resume") {
      options.resume = value;
    } else {
      throw std::runtime_error("unknown argument " + name);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char **argv) try {
  const Options options = parse(argc, argv);
  Trainer trainer(options.device);
  if (!options.resume.empty()) trainer.resume(options.resume);
  while (trainer.step_number() < options.steps) {
    trainer.step();
    if (trainer.step_number() % 10 == 0) trainer.print_progress();
  }
  if (!options.checkpoint.empty()) trainer.save(options.checkpoint);
  std::printf("weights %016llx\n", static_cast<unsigned long long>(trainer.hash_weights()));
} catch (const std::exception &error) {
  std::fprintf(stderr, "train: %s\n", error.what());
  return 2;
}
