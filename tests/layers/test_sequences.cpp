// Calls on one stream, one behind the other with no wait between them, each of which reads what those before it wrote and
// writes what they read.  Kernels that begin before the one ahead of them has ended (LaunchShape::starts_early) must not
// touch either too early.
#define MP_ENABLE_EXPERIMENTAL
#include <cstring>
#include <functional>

#include "tests/support/kernels.h"

using namespace mptest;

namespace {

/// Memory that calls read and write: it is put back, and looked at when all is done.
struct Tensor {
  DeviceArray device;
  std::vector<double> first;

  Tensor(mp_dtype_t dtype, std::vector<double> values)
      : device(dtype, values), first(std::move(values)) {}
  void *data() const { return device.data(); }
};

using Calls = std::vector<std::function<mp_status_t()>>;

std::vector<std::vector<uint8_t>> run(const Calls &calls, const std::vector<Tensor *> &tensors,
                                      bool waits) {
  for (Tensor *tensor : tensors) tensor->device.upload(tensor->first);
  require_ok(mp_stream_sync(context(), kStream));
  for (const auto &call : calls) {
    require_ok(call());
    if (waits) require_ok(mp_stream_sync(context(), kStream));
  }
  require_ok(mp_stream_sync(context(), kStream));
  std::vector<std::vector<uint8_t>> bits;
  for (const Tensor *tensor : tensors) bits.push_back(tensor->device.download_bits());
  return bits;
}

/// The tensors must have the same bits as if the host had waited after each call.
void check_sequence(const Calls &calls, const std::vector<Tensor *> &tensors,
                    const std::string &what) {
  const auto wanted = run(calls, tensors, true);
  expect_none(run(calls, tensors, false) == wanted ? "" : "other bits than with waits", what);
}

std::vector<double> integers(int64_t count, int64_t range, uint64_t seed) {
  Random random(seed);
  std::vector<double> values(static_cast<size_t>(count));
  for (double &value : values) value = static_cast<double>(random.integer(-range, range));
  return values;
}

/// A matrix that exchanges columns, so that products stay what they are but for their places.
std::vector<double> shift_of_columns(int64_t n, int64_t by) {
  std::vector<double> values(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; i++) values[static_cast<size_t>(i * n + (i + by) % n)] = 1.0;
  return values;
}

constexpr int kTurns = 4;

/// X of `rows` x `n` becomes X P and goes to the other buffer, again and again; `items` of them.
struct Products {
  Products(int64_t rows, int64_t n, int32_t items = 1)
      : even(MP_FP16, integers(items * rows * n, 100, 1)),
        odd(MP_FP16, integers(items * rows * n, 100, 2)),
        shift(MP_FP16, shift_of_columns(n, 37)),
        desc(mp_gemm_desc_default(rows, n, n, MP_FP16, MP_FP16)) {}

  void *from(int turn) const { return (turn % 2 == 0 ? even : odd).data(); }
  void *to(int turn) const { return from(turn + 1); }
  std::vector<Tensor *> tensors() { return {&even, &odd}; }

  Tensor even, odd, shift;
  mp_gemm_desc_t desc;
};

/// The kernels that begin early, and let the next one do so; elsewhere the fastest one.
std::vector<const char *> early_kernels(const mp_gemm_desc_t &desc) {
  std::vector<const char *> kernels = runnable_kernels(desc);
  const char *const fastest = kernels.at(0);
  std::erase_if(kernels, [](const char *name) { return !std::strstr(name, "wgmma"); });
  if (kernels.empty()) kernels.push_back(fastest);
  return kernels;
}

size_t workspace_of(const mp_gemm_desc_t &desc) {
  size_t bytes = 0;
  require_ok(mp_gemm_workspace_size(context(), &desc, &bytes));
  return bytes;
}

}  // namespace

TEST_CASE("sequences: products of products, and sums of their columns", "[sequences]") {
  constexpr int64_t kRows = 40, kSize = 256;
  Products p(kRows, kSize);
  Tensor sums(MP_FP32, integers(kTurns * kSize, 100, 3));
  for (const char *kernel : early_kernels(p.desc)) {
    p.desc.kernel = kernel;
    const DeviceMemory workspace(std::max<size_t>(1, workspace_of(p.desc)));
    Calls calls;
    for (int turn = 0; turn < kTurns; turn++)
      calls.push_back([&, turn] {
        mp_epilogue_t epilogue = mp_epilogue_default();
        epilogue.dbias = static_cast<float *>(sums.data()) + turn * kSize;
        return mp_gemm(context(), &p.desc, p.from(turn), p.shift.data(), nullptr, p.to(turn),
                       &epilogue, workspace.data(), workspace_of(p.desc), kStream);
      });
    std::vector<Tensor *> tensors = p.tensors();
    tensors.push_back(&sums);
    check_sequence(calls, tensors, kernel);
  }
}

TEST_CASE("sequences: products of matrices at pointers", "[sequences]") {
  constexpr int32_t kItems = 3;
  constexpr int64_t kSize = 64;
  Products p(kSize, kSize, kItems);
  p.desc.batch_count = kItems;
  const auto pointers_of = [&](void *base, int64_t step) {
    std::vector<void *> pointers;
    for (int64_t i = 0; i < kItems; i++)
      pointers.push_back(static_cast<uint8_t *>(base) + i * step * kSize * kSize * 2);
    return DeviceBuffer<void *>(pointers);
  };
  const auto even = pointers_of(p.even.data(), 1), odd = pointers_of(p.odd.data(), 1),
             shift = pointers_of(p.shift.data(), 0);
  for (const char *kernel : early_kernels(p.desc)) {
    p.desc.kernel = kernel;
    const DeviceMemory workspace(std::max<size_t>(1, workspace_of(p.desc)));
    Calls calls;
    for (int turn = 0; turn < kTurns; turn++)
      calls.push_back([&, turn] {
        return mp_gemm_batched(context(), &p.desc, (turn % 2 == 0 ? even : odd).data(),
                               shift.data(), nullptr, (turn % 2 == 0 ? odd : even).data(), nullptr,
                               workspace.data(), workspace_of(p.desc), kStream);
      });
    check_sequence(calls, p.tensors(), kernel);
  }
}

TEST_CASE("sequences: products of groups whose sizes the device knows", "[sequences]") {
  constexpr int64_t kSize = 128;
  Products p(kSize, kSize);
  p.desc.batch_count = 2;
  // Other ends in each turn: the tables of groups differ.
  std::vector<int32_t> ends;
  for (int turn = 0; turn < kTurns; turn++) ends.insert(ends.end(), {20 * (turn + 1), kSize});
  const DeviceBuffer<int32_t> on_device(ends);
  size_t bytes = 0;
  require_ok(mp_gemm_ragged_workspace_size(context(), &p.desc, MP_RAGGED_M, &bytes));
  const DeviceMemory workspace(std::max<size_t>(1, bytes));
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++)
    calls.push_back([&, turn] {
      return mp_gemm_ragged(context(), &p.desc, MP_RAGGED_M, on_device.data() + 2 * turn,
                            p.from(turn), p.shift.data(), nullptr, p.to(turn), nullptr,
                            workspace.data(), bytes, kStream);
    });
  check_sequence(calls, p.tensors(), "ragged");
}

TEST_CASE("sequences: normalisation of what was normalised, and its gradients", "[sequences]") {
  constexpr int64_t kRows = 300;
  constexpr int32_t kChannels = 72;
  const mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(kRows, kChannels, MP_FP16);
  size_t bytes = 0;
  require_ok(mp_batchnorm_workspace_size(context(), &desc, &bytes));
  const DeviceMemory workspace(bytes);
  Tensor even(MP_FP16, integers(kRows * kChannels, 9, 1)),
      odd(MP_FP16, integers(kRows * kChannels, 9, 2)),
      dy(MP_FP16, integers(kRows * kChannels, 5, 3)), gamma(MP_FP32, integers(kChannels, 3, 4)),
      beta(MP_FP32, integers(kChannels, 3, 5)), saved(MP_FP32, integers(4 * kChannels, 1, 6));
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++) {
    mp_batchnorm_tensors_t t;
    MP_INIT_STRUCT(&t);
    float *const floats = static_cast<float *>(saved.data());
    t.x = (turn % 2 == 0 ? even : odd).data();
    t.y = (turn % 2 == 0 ? odd : even).data();
    t.gamma = static_cast<const float *>(gamma.data());
    t.beta = static_cast<const float *>(beta.data());
    t.saved_mean = floats;
    t.saved_inv_std = floats + kChannels;
    t.dgamma = floats + 2 * kChannels;
    t.dbeta = floats + 3 * kChannels;
    t.dy = t.dx = dy.data();
    calls.push_back([&desc, &workspace, bytes, t] {
      return mp_batchnorm_forward_training(context(), &desc, &t, workspace.data(), bytes, kStream);
    });
    calls.push_back([&desc, &workspace, bytes, t] {
      return mp_batchnorm_backward(context(), &desc, &t, workspace.data(), bytes, kStream);
    });
  }
  check_sequence(calls, {&even, &odd, &dy, &saved}, "batch norm");
}
