// Sequences of calls on one stream without synchronization: each call reads tensors that previous
// calls wrote, and overwrites tensors that they read.  Kernels that start before their predecessor
// has ended (LaunchShape::uses_pdl) must access neither too early.
#define MP_ENABLE_EXPERIMENTAL
#include <cstring>
#include <functional>
#include <utility>

#include "tests/support/kernels.h"

using namespace mptest;

namespace {

/// A tensor that calls read and write; initialized before a sequence and compared after it.
struct Tensor {
  DeviceArray device;
  std::vector<double> first;

  Tensor(mp_dtype_t dtype, std::vector<double> values)
      : device(dtype, values), first(std::move(values)) {}
  /// Random integers in [-range, range].
  Tensor(mp_dtype_t dtype, int64_t count, int64_t range, uint64_t seed)
      : Tensor(dtype, random_integers(count, range, seed)) {}
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

/// Checks that the tensors have the same bits as with a synchronization after each call.
void check_sequence(const Calls &calls, const std::vector<Tensor *> &tensors,
                    const std::string &what) {
  const auto wanted = run(calls, tensors, true);
  expect_none(run(calls, tensors, false) == wanted ? "" : "other bits than with waits", what);
}

/// Returns a permutation matrix that shifts columns, so that a product keeps all values.
std::vector<double> shift_of_columns(int64_t n, int64_t by) {
  std::vector<double> values(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; i++) values[static_cast<size_t>(i * n + (i + by) % n)] = 1.0;
  return values;
}

constexpr int kTurns = 4;

/// Computes X P alternately into two buffers, where X is `rows` x `n`; `items` batch items.
struct Products {
  Products(int64_t rows, int64_t n, int32_t items = 1)
      : even(MP_FP16, items * rows * n, 100, 1),
        odd(MP_FP16, items * rows * n, 100, 2),
        shift(MP_FP16, shift_of_columns(n, 37)),
        desc(mp_gemm_desc_default(rows, n, n, MP_FP16, MP_FP16)) {}

  void *from(int turn) const { return (turn % 2 == 0 ? even : odd).data(); }
  void *to(int turn) const { return from(turn + 1); }
  std::vector<Tensor *> tensors() { return {&even, &odd}; }

  Tensor even, odd, shift;
  mp_gemm_desc_t desc;
};

/// Returns the kernels that use programmatic dependent launch; if there are none, the fastest
/// kernel.
std::vector<const char *> early_of(std::vector<const char *> kernels) {
  const char *const fastest = kernels.at(0);
  std::erase_if(kernels, [](const char *name) { return !std::strstr(name, "wgmma"); });
  if (kernels.empty()) kernels.push_back(fastest);
  return kernels;
}
std::vector<const char *> early_kernels(const mp_gemm_desc_t &desc) {
  return early_of(runnable_kernels(desc));
}

/// Returns the workspace of a product with dbias.
size_t workspace_of(const mp_gemm_desc_t &desc) {
  alignas(16) static float dbias;  // only its address is used
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.dbias = &dbias;
  size_t bytes = 0;
  require_ok(mp_gemm_workspace_size(context(), &desc, &epilogue, &bytes));
  return bytes;
}

/// Computes a product and its column sums; every turn has its own `n` sums.
mp_status_t multiply_and_sum(const mp_gemm_desc_t &desc, const Products &p, int turn,
                             const Tensor &sums, const DeviceMemory &workspace) {
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.dbias = static_cast<float *>(sums.data()) + turn * desc.n;
  return mp_gemm(context(), &desc, p.from(turn), p.shift.data(), nullptr, p.to(turn), &epilogue,
                 workspace.data(), workspace_of(desc), kStream);
}

void check_products(Products &p, const char *kernel) {
  Tensor sums(MP_FP32, kTurns * p.desc.n, 100, 3);
  p.desc.plan = named_plan(kernel);
  const DeviceMemory workspace(std::max<size_t>(1, workspace_of(p.desc)));
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++)
    calls.push_back([&, turn] { return multiply_and_sum(p.desc, p, turn, sums, workspace); });
  check_sequence(calls, {&p.even, &p.odd, &sums}, kernel);
}

}  // namespace

TEST_CASE("sequences: products of products and their column sums", "[sequences]") {
  Products p(40, 256);
  for (const char *kernel : early_kernels(p.desc)) check_products(p, kernel);
}

TEST_CASE("sequences: split-k products", "[sequences]") {
  Products p(40, 256);
  const bool has_wgmma = std::strstr(early_kernels(p.desc).at(0), "wgmma") != nullptr;
  check_products(p, has_wgmma ? "wgmma_128x128x64_s6_k2" : "wmma_64x64x32_s4_k2");
}

TEST_CASE("sequences: products with copied rows", "[sequences]") {
  Products words(40, 254), elements(40, 255);
  for (Products *p : {&words, &elements}) check_products(*p, early_kernels(p->desc).at(0));
}

TEST_CASE("sequences: a convolution and its gradients", "[sequences]") {
  constexpr int32_t kChannels = 64;
  for (const int32_t stride : {1, 2}) {
    mp_conv2d_desc_t desc =
        mp_conv2d_desc_default(2, 8 * stride, 8 * stride, kChannels, kChannels, 3, 3, MP_FP16);
    desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
    desc.stride_h = desc.stride_w = stride;
    desc.alpha = 0x1p-5f;  // keeps the magnitude of the output equal to that of the input
    const int64_t pixels = 2 * 8 * 8;
    Tensor x(MP_FP16, pixels * stride * stride * kChannels, 3, 1),
        filter(MP_FP16, 9 * kChannels * kChannels, 3, 2), y(MP_FP16, pixels * kChannels, 3, 3),
        dfilter(MP_FP16, 9 * kChannels * kChannels, 3, 4);
    const auto best = [&](mp_conv_op_t op) {
      mp_conv2d_desc_t one = desc;
      one.plan = named_plan(early_of(runnable_kernels(desc, op)).at(0));
      return one;
    };
    const mp_conv2d_desc_t fprop = best(MP_CONV_FPROP), dgrad = best(MP_CONV_DGRAD),
                           wgrad = best(MP_CONV_WGRAD);
    size_t bytes = 0, most = 1;
    for (const auto &[one, op] :
         {std::pair{&fprop, MP_CONV_FPROP}, {&dgrad, MP_CONV_DGRAD}, {&wgrad, MP_CONV_WGRAD}}) {
      require_ok(mp_conv2d_workspace_size(context(), one, op, nullptr, &bytes));
      most = std::max(most, bytes);
    }
    const DeviceMemory workspace(most);
    Calls calls;
    for (int turn = 0; turn < kTurns; turn++) {
      calls.push_back([&] {
        return mp_conv2d_fprop(context(), &fprop, x.data(), filter.data(), y.data(), nullptr,
                               workspace.data(), most, kStream);
      });
      calls.push_back([&] {
        return mp_conv2d_dgrad(context(), &dgrad, y.data(), filter.data(), x.data(), nullptr,
                               workspace.data(), most, kStream);
      });
    }
    calls.push_back([&] {
      return mp_conv2d_wgrad(context(), &wgrad, x.data(), y.data(), dfilter.data(), nullptr,
                             workspace.data(), most, kStream);
    });
    check_sequence(calls, {&x, &y, &dfilter}, format("stride %d", stride));
  }
}

TEST_CASE("sequences: an image is padded after the call that writes it", "[sequences]") {
  constexpr int32_t kSize = 40;
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(1, kSize, kSize, 3, 16, 3, 3, MP_FP16);
  const std::vector<const char *> kernels = runnable_kernels(desc, MP_CONV_FPROP);
  const auto copied = std::find_if(kernels.begin(), kernels.end(), [](const std::string &name) {
    return name.ends_with("_s4_copied");
  });
  REQUIRE(copied != kernels.end());
  desc.plan = named_plan(*copied);
  const DeviceWorkspace workspace(mp_conv2d_workspace_size, context(), &desc, MP_CONV_FPROP,
                                  nullptr);
  constexpr int64_t kElems = kSize * kSize * 3, kOutputs = (kSize - 2) * (kSize - 2) * 16;
  const auto sum = mp_pointwise_desc_default(MP_POINTWISE_ADD, 1, kElems, MP_FP16);
  Tensor even(MP_FP16, kElems, 9, 1), odd(MP_FP16, kElems, 9, 2), more(MP_FP16, kElems, 3, 3),
      filter(MP_FP16, 16 * 9 * 3, 3, 4), y(MP_FP16, kTurns * kOutputs, 9, 5);
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++) {
    const void *const from = (turn % 2 == 0 ? even : odd).data();
    void *const x = (turn % 2 == 0 ? odd : even).data();
    calls.push_back([&, from, x] {
      return mp_pointwise(context(), &sum, from, more.data(), x, nullptr, kStream);
    });
    calls.push_back([&, x, turn] {
      void *const to = static_cast<uint8_t *>(y.data()) + turn * kOutputs * 2;
      return mp_conv2d_fprop(context(), &desc, x, filter.data(), to, nullptr, workspace.data(),
                             workspace.bytes(), kStream);
    });
  }
  check_sequence(calls, {&even, &odd, &y}, desc.plan->kernel);
}

TEST_CASE("sequences: products of pointers follow the product that writes an operand",
          "[sequences]") {
  constexpr int32_t kItems = 24;
  constexpr int64_t kSize = 64;
  Products p(kSize, kSize, kItems);
  const std::vector<const char *> kernels = early_kernels(p.desc);
  p.desc.batch_count = kItems;
  mp_gemm_desc_t whole = mp_gemm_desc_default(kItems * kSize, kSize, kSize, MP_FP16, MP_FP16);
  whole.plan = named_plan(early_kernels(whole).at(0));
  Tensor sums(MP_FP32, kTurns * kSize, 100, 3);
  const auto pointers_of = [&](void *base, int64_t step) {
    std::vector<void *> pointers;
    for (int64_t i = 0; i < kItems; i++)
      pointers.push_back(static_cast<uint8_t *>(base) + i * step * kSize * kSize * 2);
    return DeviceBuffer<void *>(pointers);
  };
  const auto even = pointers_of(p.even.data(), 1), odd = pointers_of(p.odd.data(), 1),
             shift = pointers_of(p.shift.data(), 0);
  for (const char *kernel : kernels) {
    p.desc.plan = named_plan(kernel);
    size_t bytes = 0;
    const mp_status_t status = mp_gemm_batched_workspace_size(context(), &p.desc, nullptr, &bytes);
    if (status == MP_ERROR_UNSUPPORTED) continue;
    require_ok(status);
    const DeviceMemory workspace(std::max<size_t>({1, bytes, workspace_of(whole)}));
    Calls calls;
    for (int turn = 0; turn < kTurns; turn += 2) {
      calls.push_back([&, turn] { return multiply_and_sum(whole, p, turn, sums, workspace); });
      calls.push_back([&] {
        return mp_gemm_batched(context(), &p.desc, odd.data(), shift.data(), nullptr, even.data(),
                               nullptr, workspace.data(), bytes, kStream);
      });
    }
    check_sequence(calls, {&p.even, &p.odd, &sums}, kernel);
  }
}

TEST_CASE("sequences: products of groups whose sizes are on the device", "[sequences]") {
  constexpr int64_t kSize = 128;
  Products p(kSize, kSize);
  p.desc.batch_count = 2;
  // The ends differ between turns, and so do the tables of groups.
  std::vector<int32_t> ends;
  for (int turn = 0; turn < kTurns; turn++) ends.insert(ends.end(), {20 * (turn + 1), kSize});
  const DeviceBuffer<int32_t> on_device(ends);
  const DeviceWorkspace workspace(mp_gemm_ragged_workspace_size, context(), &p.desc, MP_RAGGED_M,
                                  nullptr);
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++)
    calls.push_back([&, turn] {
      return mp_gemm_ragged(context(), &p.desc, MP_RAGGED_M, on_device.data() + 2 * turn,
                            p.from(turn), p.shift.data(), nullptr, p.to(turn), nullptr,
                            workspace.data(), workspace.bytes(), kStream);
    });
  check_sequence(calls, p.tensors(), "ragged");
}

TEST_CASE("sequences: repeated normalization and its gradients", "[sequences]") {
  constexpr int64_t kRows = 300;
  constexpr int32_t kChannels = 72;
  const mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(kRows, kChannels, MP_FP16);
  const DeviceWorkspace workspace(mp_batchnorm_workspace_size, context(), &desc);
  Tensor even(MP_FP16, kRows * kChannels, 9, 1), odd(MP_FP16, kRows * kChannels, 9, 2),
      dy(MP_FP16, kRows * kChannels, 5, 3), gamma(MP_FP32, kChannels, 3, 4),
      beta(MP_FP32, kChannels, 3, 5), saved(MP_FP32, 4 * kChannels, 1, 6);
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++) {
    auto t = initialized<mp_batchnorm_tensors_t>();
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
    calls.push_back([&desc, &workspace, t] {
      return mp_batchnorm_forward_training(context(), &desc, &t, workspace.data(),
                                           workspace.bytes(), kStream);
    });
    calls.push_back([&desc, &workspace, t] {
      return mp_batchnorm_backward(context(), &desc, &t, workspace.data(), workspace.bytes(),
                                   kStream);
    });
  }
  check_sequence(calls, {&even, &odd, &dy, &saved}, "batch norm");
}

// Each function directly follows a product that starts its successor early.
TEST_CASE("sequences: functions of transformer layers after products", "[sequences]") {
  constexpr int64_t kRows = 40, kColumns = 256;
  Products p(kRows, kColumns);
  const mp_norm_desc_t norm = mp_norm_desc_default(MP_NORM_RMS, kRows, kColumns, MP_FP16);
  const mp_rope_desc_t rope = mp_rope_desc_default(kRows, 4, kColumns / 4, MP_FP16);
  const mp_softmax_desc_t softmax = mp_softmax_desc_default(kRows, kColumns, MP_FP16);
  const mp_glu_desc_t glu = mp_glu_desc_default(MP_ACT_SILU, kRows, kColumns / 2, MP_FP16);
  const mp_sum_rows_desc_t sum = mp_sum_rows_desc_default(kRows, 8, kColumns, MP_FP16);
  const DeviceWorkspace workspace(mp_norm_backward_workspace_size, context(), &norm);
  Tensor result(MP_FP16, 2 * kRows * kColumns, 9, 4), rstd(MP_FP32, kRows, 1, 5),
      dgamma(MP_FP32, kColumns, 1, 6);
  auto t = initialized<mp_norm_tensors_t>();
  t.y = t.dx = result.data();
  t.rstd = static_cast<float *>(rstd.data());
  t.dgamma = static_cast<float *>(dgamma.data());
  using Function = std::function<mp_status_t(void *x)>;
  const std::vector<std::pair<const char *, Function>> functions = {
      {"norm",
       [&](void *x) {
         t.x = x;
         return mp_norm_forward(context(), &norm, &t, kStream);
       }},
      {"gradient of a norm",
       [&](void *x) {
         t.x = t.dy = x;
         return mp_norm_backward(context(), &norm, &t, workspace.data(), workspace.bytes(),
                                 kStream);
       }},
      {"rope",
       [&](void *x) {
         return mp_rope(context(), &rope, nullptr, nullptr, x, x, nullptr, kStream);
       }},
      {"softmax",
       [&](void *x) {
         return mp_softmax_forward(context(), &softmax, x, nullptr, result.data(), kStream);
       }},
      {"gradient of a softmax",
       [&](void *x) {
         return mp_softmax_backward(context(), &softmax, x, x, nullptr, result.data(), nullptr,
                                    kStream);
       }},
      {"gated unit",
       [&](void *x) { return mp_glu_forward(context(), &glu, x, result.data(), kStream); }},
      {"gradient of a gated unit",
       [&](void *x) {
         return mp_glu_backward(context(), &glu, x, x, result.data(), nullptr, kStream);
       }},
      {"sum of rows",
       [&](void *x) { return mp_sum_rows(context(), &sum, x, result.data(), nullptr, kStream); }}};
  p.desc.plan = named_plan(early_kernels(p.desc).at(0));
  const DeviceWorkspace gemm_workspace(mp_gemm_workspace_size, context(), &p.desc, nullptr);
  for (const auto &function : functions) {
    Calls calls;
    for (int turn = 0; turn < kTurns; turn++) {
      calls.push_back([&, turn] {
        return mp_gemm(context(), &p.desc, p.from(turn), p.shift.data(), nullptr, p.to(turn),
                       nullptr, gemm_workspace.data(), gemm_workspace.bytes(), kStream);
      });
      calls.push_back([&, turn] { return function.second(p.to(turn)); });
    }
    check_sequence(calls, {&p.even, &p.odd, &result, &rstd, &dgamma}, function.first);
  }
}

// Every block reads a row that one block of the previous call wrote.
TEST_CASE("sequences: element-wise functions and sums with one row", "[sequences]") {
  constexpr int64_t kRows = 40, kColumns = 1003;
  mp_pointwise_desc_t sum = mp_pointwise_desc_default(MP_POINTWISE_ADD, kRows, kColumns, MP_FP16);
  sum.ld_b = 0;
  mp_pointwise_desc_t last = mp_pointwise_desc_default(MP_POINTWISE_COPY, 1, kColumns, MP_FP16);
  last.activation = MP_ACT_RELU;
  const auto copy = mp_pointwise_desc_default(MP_POINTWISE_COPY, kRows, kColumns, MP_FP16);
  Tensor even(MP_FP16, kRows * kColumns, 9, 1), odd(MP_FP16, kRows * kColumns, 9, 2),
      row(MP_FP16, kColumns, 9, 3);
  Calls calls;
  for (int turn = 0; turn < kTurns; turn++) {
    calls.push_back([&] {
      return mp_pointwise(context(), &sum, even.data(), row.data(), odd.data(), nullptr, kStream);
    });
    calls.push_back([&] {
      const auto *const bytes = static_cast<const uint8_t *>(odd.data());
      return mp_pointwise(context(), &last, bytes + (kRows - 1) * kColumns * 2, nullptr, row.data(),
                          nullptr, kStream);
    });
    calls.push_back([&] {
      return mp_pointwise(context(), &copy, odd.data(), nullptr, even.data(), nullptr, kStream);
    });
  }
  check_sequence(calls, {&even, &odd, &row}, "pointwise");
}

// The smaller table leaves SMs free for a kernel that starts early; the larger one has more
// accesses that could be overtaken.
TEST_CASE("sequences: the gradient of a table becomes the next table", "[sequences]") {
  constexpr int64_t kRows = 1500, kMoreRows = 6000, kWidth = 72;
  for (const int32_t vocabulary : {150, 300}) {
    const auto desc = mp_embedding_desc_default(kRows, vocabulary, kWidth, MP_FP32);
    const auto more = mp_embedding_desc_default(kMoreRows, vocabulary, kWidth, MP_FP32);
    const auto mask = mp_dropout_desc_default(kRows * kWidth, 0.5f, MP_FP32);
    // A third of the words does not occur, a few occur often; which ones alternates between turns.
    Random random(1);
    const int32_t third = vocabulary / 3;
    std::vector<int32_t> indices;
    for (int64_t i = 0; i < 2 * kMoreRows; i++)
      indices.push_back(static_cast<int32_t>(
          (i % 3 == 0 ? 7 + i % 5 : random.integer(0, 2 * third - 1)) + i / kMoreRows * third));
    const DeviceBuffer<int32_t> on_device(indices);
    const DeviceWorkspace workspace(mp_embedding_workspace_size, context(), &more);
    const int64_t elements = vocabulary * kWidth;
    Tensor even(MP_FP32, elements, 9, 2), odd(MP_FP32, elements, 9, 3),
        of_few(MP_FP32, elements, 9, 4), of_many(MP_FP32, elements, 9, 5),
        rows(MP_FP32, kMoreRows * kWidth, 9, 6);
    Calls calls;
    for (int turn = 0; turn < kTurns; turn++) {
      void *const table = (turn % 2 == 0 ? even : odd).data();
      void *const gradient = (turn % 2 == 0 ? odd : even).data();
      const int32_t *const words = on_device.data() + turn % 2 * kMoreRows;
      calls.push_back([&, table, words] {
        return mp_embedding_forward(context(), &desc, table, words, rows.data(), kStream);
      });
      calls.push_back([&] {
        return mp_dropout(context(), &mask, nullptr, rows.data(), rows.data(), nullptr, kStream);
      });
      // The workspace contents differ between the calls.
      for (const auto &[one, to] :
           {std::pair{&desc, of_few.data()}, {&more, of_many.data()}, {&desc, gradient}})
        calls.push_back([&, one = one, to = to, words] {
          return mp_embedding_backward(context(), one, words, rows.data(), to, nullptr,
                                       workspace.data(), workspace.bytes(), kStream);
        });
    }
    check_sequence(calls, {&even, &odd, &of_few, &of_many, &rows},
                   format("vocabulary = %d", vocabulary));
  }
}
