// Plans that users store: the same bits in another process with another tuning table, another limit
// of SMs and more workspace.
#define MP_ENABLE_EXPERIMENTAL
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

#include "tests/support/run_again.h"
#include "tests/support/surroundings.h"
#include "tests/support/tally.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr size_t kMoreWorkspace = 4 << 20;

/// A call with all of its data, whose result depends on the order of summation.
struct Problem {
  std::function<mp_status_t(mp_context_t, size_t, mp_plan_t *)> get_plan;
  std::function<mp_status_t(mp_context_t, const mp_plan_t *, void *, size_t)> call;
  std::function<std::vector<uint8_t>()> bits;
};

std::shared_ptr<DeviceArray> array(mp_dtype_t dtype, int64_t count, int seed) {
  Random random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < count; i++) values.push_back(random.integer(-999, 999) / 317.0);
  return std::make_shared<DeviceArray>(dtype, values);
}

Problem gemm(int64_t m, int64_t n, int64_t k, mp_dtype_t dtype_cd, bool has_dbias) {
  const auto a = array(MP_FP16, m * k, 1), b = array(MP_FP16, k * n, 2);
  const auto d = array(dtype_cd, m * n, 3), dbias = array(MP_FP32, n, 4);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, MP_FP16, dtype_cd);
  mp_epilogue_t epilogue = mp_epilogue_default();
  if (has_dbias) epilogue.dbias = static_cast<float *>(dbias->data());
  return {[=](mp_context_t context, size_t most, mp_plan_t *plan) {
            return mp_gemm_get_plan(context, &desc, &epilogue, most, plan);
          },
          [=](mp_context_t context, const mp_plan_t *plan, void *workspace, size_t bytes) {
            mp_gemm_desc_t planned = desc;
            planned.plan = plan;
            return mp_gemm(context, &planned, a->data(), b->data(), nullptr, d->data(), &epilogue,
                           workspace, bytes, kStream);
          },
          [=] {
            std::vector<uint8_t> bits = d->download_bits(), more = dbias->download_bits();
            bits.insert(bits.end(), more.begin(), more.end());
            return bits;
          }};
}

Problem wgrad() {
  const mp_conv2d_desc_t desc = mp_conv2d_desc_default(4, 14, 14, 16, 24, 3, 3, MP_FP16);
  const auto x = array(MP_FP16, 4 * 14 * 14 * 16, 5), dy = array(MP_FP16, 4 * 12 * 12 * 24, 6);
  const auto dw = array(MP_FP16, 24 * 3 * 3 * 16, 7);
  return {[=](mp_context_t context, size_t most, mp_plan_t *plan) {
            return mp_conv2d_get_plan(context, &desc, MP_CONV_WGRAD, nullptr, most, plan);
          },
          [=](mp_context_t context, const mp_plan_t *plan, void *workspace, size_t bytes) {
            mp_conv2d_desc_t planned = desc;
            planned.plan = plan;
            return mp_conv2d_wgrad(context, &planned, x->data(), dy->data(), dw->data(), nullptr,
                                   workspace, bytes, kStream);
          },
          [=] { return dw->download_bits(); }};
}

Problem lstm() {
  constexpr int32_t kBatch = 3, kSteps = 30, kIn = 40, kHidden = 64;
  const mp_rnn_desc_t desc =
      mp_rnn_desc_default(MP_RNN_LSTM, kBatch, kSteps, kIn, kHidden, MP_FP16);
  const auto w_ih = array(MP_FP16, 4 * kHidden * kIn, 8);
  const auto w_hh = array(MP_FP16, 4 * kHidden * kHidden, 9), b = array(MP_FP32, 4 * kHidden, 10);
  const auto x = array(MP_FP16, kBatch * kSteps * kIn, 11);
  const auto y = array(MP_FP16, kBatch * kSteps * kHidden, 12);
  return {[=](mp_context_t context, size_t, mp_plan_t *plan) {
            return mp_rnn_get_plan(context, &desc, plan);
          },
          [=](mp_context_t context, const mp_plan_t *plan, void *workspace, size_t bytes) {
            mp_rnn_desc_t planned = desc;
            planned.plan = plan;
            const auto *const bias = static_cast<const float *>(b->data());
            const mp_rnn_weights_t weights = {
                sizeof(mp_rnn_weights_t), 0, w_ih->data(), w_hh->data(), bias, bias};
            auto t = initialized<mp_rnn_tensors_t>();
            t.num_weights = 1;
            t.weights = &weights;
            t.x = x->data();
            t.y = y->data();
            return mp_rnn_forward_inference(context, &planned, &t, workspace, bytes, kStream);
          },
          [=] { return y->download_bits(); }};
}

/// Split-k, unaligned rows, gemv, dbias in chunks, convolution, recurrent layer.
std::vector<Problem> problems() {
  return {gemm(64, 64, 4096, MP_FP16, true),
          gemm(40, 37, 300, MP_FP32, false),
          gemm(1, 200, 3000, MP_FP32, false),
          gemm(600, 24, 64, MP_FP16, true),
          wgrad(),
          lstm()};
}

uint64_t hash_with(const Problem &problem, mp_context_t context, const mp_plan_t &plan,
                   size_t more_bytes) {
  const size_t bytes = plan.workspace_bytes + more_bytes;
  const DeviceBuffer<uint8_t> workspace(static_cast<int64_t>(bytes));
  require_ok(problem.call(context, &plan, bytes > 0 ? workspace.data() : nullptr, bytes));
  require_ok(mp_stream_sync(context, kStream));
  uint64_t hash = 14695981039346656037u;
  for (const uint8_t byte : problem.bits()) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

/// One with all SMs and workspace, one with 1 SM and the least workspace.
std::vector<mp_plan_t> plans_of(const Problem &problem) {
  std::vector<mp_plan_t> plans(2, initialized<mp_plan_t>());
  const UniqueContext one_sm = make_context(1);
  require_ok(problem.get_plan(context(), SIZE_MAX, &plans[0]));
  require_ok(problem.get_plan(one_sm.get(), 0, &plans[1]));
  return plans;
}

std::string line_of(size_t problem, size_t plan, uint64_t hash) {
  char line[80];
  std::snprintf(line, sizeof line, "problem %zu plan %zu: %016llx\n", problem, plan,
                static_cast<unsigned long long>(hash));
  return line;
}

constexpr const char *kPath = "MP_TEST_PLANS";

}  // namespace

TEST_CASE("stored plans in another process", "[.]") {
  const char *const path = std::getenv(kPath);
  if (path == nullptr) return;  // not run by the test below
  std::ifstream file(path, std::ios::binary);
  const UniqueContext one_sm = make_context(1);
  const std::vector<Problem> all = problems();
  for (size_t i = 0; i < all.size(); i++) {
    auto chosen = initialized<mp_plan_t>();
    require_ok(all[i].get_plan(context(), SIZE_MAX, &chosen));
    for (size_t j = 0; j < 2; j++) {
      mp_plan_t plan;
      file.read(reinterpret_cast<char *>(&plan), sizeof plan);
      REQUIRE(file.good());
      const bool needs_two = std::strstr(plan.kernel, "_c2") != nullptr;
      for (const mp_context_t context : {mptest::context(), one_sm.get()})
        for (const size_t more : {size_t{0}, kMoreWorkspace})
          std::printf(
              "%s",
              line_of(i, j, hash_with(all[i], needs_two ? mptest::context() : context, plan, more))
                  .c_str());
      std::printf("other kernel: %d\n", std::strcmp(chosen.kernel, plan.kernel) != 0);
    }
  }
}

TEST_CASE("plans: a stored plan gives the same bits with any tuning, workspace and SM limit",
          "[gemm][conv][rnn]") {
  const std::vector<Problem> all = problems();
  const Folder folder;
  const std::string path = folder / "plans";
  const std::string table =
      folder.file("table",
                  "host dram_us_per_mb=0 l2_us_per_mb=0\nhost simt_64x64x16 0 0\n"
                  "sm_90 dram_us_per_mb=0 l2_us_per_mb=0\nsm_90 simt_64x64x16 0 0\n");
  std::string wanted;
  {
    std::ofstream file(path, std::ios::binary);
    for (size_t i = 0; i < all.size(); i++) {
      const std::vector<mp_plan_t> plans = plans_of(all[i]);
      for (size_t j = 0; j < plans.size(); j++) {
        file.write(reinterpret_cast<const char *>(&plans[j]), sizeof plans[j]);
        wanted += line_of(i, j, hash_with(all[i], context(), plans[j], 0));
      }
    }
  }
  const std::string output =
      output_of_test("stored plans in another process",
                     std::string(kPath) + "=" + path + " MP_GEMM_TUNING=" + table);
  CAPTURE(output, wanted);
  for (size_t at = 0; at < wanted.size();) {
    const size_t end = wanted.find('\n', at) + 1;
    CHECK(times(output, wanted.substr(at, end - at)) == 4);
    at = end;
  }
  CHECK(times(output, "other kernel: 1\n") > 0);  // the table changes the choice
}

TEST_CASE("plans: a call reports the plan that it cannot follow", "[gemm]") {
  const Problem problem = gemm(64, 64, 4096, MP_FP16, false);
  auto plan = initialized<mp_plan_t>();
  require_ok(problem.get_plan(context(), SIZE_MAX, &plan));
  const DeviceBuffer<uint8_t> workspace(static_cast<int64_t>(plan.workspace_bytes + 256));
  const auto call = [&](const mp_plan_t &changed, size_t bytes) {
    return problem.call(context(), &changed, workspace.data(), bytes);
  };
  require_ok(call(plan, plan.workspace_bytes));
  mp_plan_t other = plan;
  other.split_k += 1;
  expect_status(call(other, plan.workspace_bytes), MP_ERROR_INVALID_ARGUMENT);
  other = plan;
  std::snprintf(other.kernel, sizeof other.kernel, "abacus");
  expect_status(call(other, plan.workspace_bytes), MP_ERROR_NOT_FOUND);
  other = mp_plan_default("wmma_128x128x32_s3_k128");
  expect_status(call(other, plan.workspace_bytes), MP_ERROR_UNSUPPORTED);
  CHECK(std::string(mp_last_error()).find("requires a larger k") != std::string::npos);
  if (plan.workspace_bytes == 0) return;
  expect_status(call(plan, plan.workspace_bytes - 1), MP_ERROR_WORKSPACE_TOO_SMALL);
}

namespace {

/// Returns a complete plan for 64 x 64 x 4096, or nullopt if the device does not support it.
std::optional<mp_plan_t> plan_of_kernel(const char *kernel) {
  const mp_plan_t named = mp_plan_default(kernel);
  mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, 4096, MP_FP16, MP_FP32);
  desc.plan = &named;
  auto plan = initialized<mp_plan_t>();
  const mp_status_t status = mp_gemm_get_plan(context(), &desc, nullptr, SIZE_MAX, &plan);
  if (status == MP_ERROR_UNSUPPORTED) return std::nullopt;
  require_ok(status);
  return plan;
}

constexpr const char *kPlannedKernels[] = {"wmma_128x128x32_s3_k8", "wgmma_64x128x64_s8_k2",
                                           "simt_64x64x16", "wgmma_64x128x64_s8"};

}  // namespace

TEST_CASE("plans: query and call agree on the workspace of a plan for another shape", "[gemm]") {
  for (const char *const kernel : kPlannedKernels) {
    const std::optional<mp_plan_t> plan = plan_of_kernel(kernel);
    if (!plan) continue;
    for (const int64_t m : {16, 64, 256}) {
      CAPTURE(kernel, m);
      mp_gemm_desc_t desc = mp_gemm_desc_default(m, 64, 4096, MP_FP16, MP_FP32);
      desc.plan = &*plan;
      size_t bytes = 0;
      require_ok(mp_gemm_workspace_size(context(), &desc, nullptr, &bytes));
      CHECK(bytes == plan->workspace_bytes * static_cast<size_t>(m) / 64);
      const Problem problem = gemm(m, 64, 4096, MP_FP32, false);
      const DeviceBuffer<uint8_t> workspace(static_cast<int64_t>(bytes + 256));
      require_ok(problem.call(context(), &*plan, workspace.data(), bytes));
      if (bytes > 0)
        expect_status(problem.call(context(), &*plan, workspace.data(), bytes - 1),
                      MP_ERROR_WORKSPACE_TOO_SMALL);
    }
    mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, 4096, MP_FP16, MP_FP32);
    desc.plan = &*plan;
    size_t bytes = 0;
    require_ok(mp_gemm_batched_workspace_size(context(), &desc, nullptr, &bytes));
    CHECK(bytes >= plan->workspace_bytes);
    if (bytes == 0) continue;
    const DeviceBuffer<uint8_t> space(static_cast<int64_t>(bytes + 1024));
    const auto at = [&](int i) { return reinterpret_cast<void **>(space.data() + 256 * i); };
    expect_status(mp_gemm_batched(context(), &desc, at(0), at(1), nullptr, at(2), nullptr,
                                  space.data() + 1024, bytes - 1, kStream),
                  MP_ERROR_WORKSPACE_TOO_SMALL);
  }
}

TEST_CASE("plans: alpha = 0 and k = 0 need neither the plan nor its workspace", "[gemm]") {
  const auto d = array(MP_FP32, 64 * 64, 3), dbias = array(MP_FP32, 64, 4);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.dbias = static_cast<float *>(dbias->data());
  for (const char *const kernel : kPlannedKernels) {
    const std::optional<mp_plan_t> plan = plan_of_kernel(kernel);
    if (!plan) continue;
    for (const bool is_alpha : {true, false}) {
      CAPTURE(kernel, is_alpha);
      mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, is_alpha ? 4096 : 0, MP_FP16, MP_FP32);
      if (is_alpha) desc.alpha = 0.0f;
      desc.plan = &*plan;
      size_t bytes = 1;
      require_ok(mp_gemm_workspace_size(context(), &desc, &epilogue, &bytes));
      CHECK(bytes == 0);
      require_ok(mp_gemm(context(), &desc, nullptr, nullptr, nullptr, d->data(), &epilogue, nullptr,
                         0, kStream));
      auto again = initialized<mp_plan_t>();
      if (!is_alpha) continue;
      require_ok(mp_gemm_get_plan(context(), &desc, nullptr, SIZE_MAX, &again));
      CHECK(std::string(again.kernel) == kernel);
      CHECK(again.workspace_bytes == plan->workspace_bytes);
    }
  }
  require_ok(mp_stream_sync(context(), kStream));
}

TEST_CASE("plans: a plan without a name or with a long one is rejected", "[gemm]") {
  const Problem problem = gemm(64, 64, 64, MP_FP16, false);
  const mp_plan_t none = mp_plan_default(nullptr);
  expect_status(problem.call(context(), &none, nullptr, 0), MP_ERROR_INVALID_ARGUMENT);
  CHECK(std::string(mp_last_error()) == "mp_gemm: plan->kernel = \"\" must not be empty");
  const mp_plan_t longest = mp_plan_default(std::string(64, 'w').c_str());
  expect_status(problem.call(context(), &longest, nullptr, 0), MP_ERROR_NOT_FOUND);
}

TEST_CASE("plans: recurrent layers check the plan", "[rnn]") {
  mp_rnn_desc_t desc = mp_rnn_desc_default(MP_RNN_LSTM, 3, 30, 64, 64, MP_FP16);
  auto plan = initialized<mp_plan_t>();
  require_ok(mp_rnn_get_plan(context(), &desc, &plan));
  auto sizes = initialized<mp_rnn_sizes_t>(), same = sizes;
  desc.plan = &plan;
  require_ok(mp_rnn_get_sizes(context(), &desc, &sizes));
  plan.num_sms = 0;
  require_ok(mp_rnn_get_sizes(context(), &desc, &same));
  CHECK(sizes.workspace_bytes == same.workspace_bytes);
  desc.layers = 2;
  expect_status(mp_rnn_get_sizes(context(), &desc, &sizes), MP_ERROR_UNSUPPORTED);
  desc.plan = nullptr;
  desc.timesteps = 0;
  expect_status(mp_rnn_get_plan(context(), &desc, &plan), MP_ERROR_NOT_FOUND);
}

TEST_CASE("plans: a recurrent layer with num_sms = 0 or 1 runs a kernel of clusters", "[rnn]") {
  const Problem problem = lstm();
  auto plan = initialized<mp_plan_t>();
  require_ok(problem.get_plan(context(), SIZE_MAX, &plan));
  uint32_t code = 2166136261u;
  for (const char c : std::string("wgmma_64x256x64_s4_c2"))
    code = (code ^ static_cast<unsigned char>(c)) * 16777619u;
  plan.products[0] = code;  // x W_ih^T, of 90 x 256
  const DeviceBuffer<uint8_t> workspace(64 << 20);
  std::vector<std::vector<uint8_t>> bits;
  for (const int32_t num_sms : {0, 1}) {
    plan.num_sms = num_sms;
    const mp_status_t status = problem.call(context(), &plan, workspace.data(), 64 << 20);
    if (status == MP_ERROR_UNSUPPORTED) return skip(mp_last_error());
    require_ok(status);
    require_ok(mp_stream_sync(context(), kStream));
    bits.push_back(problem.bits());
  }
  CHECK(bits[0] == bits[1]);
}

TEST_CASE("explain: a text has the kernel of the plan, its cost and five candidates", "[gemm]") {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, 4096, MP_FP16, MP_FP16);
  auto plan = initialized<mp_plan_t>();
  require_ok(mp_gemm_get_plan(context(), &desc, nullptr, SIZE_MAX, &plan));
  size_t bytes = 0;
  require_ok(mp_gemm_explain(context(), &desc, nullptr, nullptr, &bytes));
  std::string text(bytes, '\0');
  require_ok(mp_gemm_explain(context(), &desc, nullptr, text.data(), &bytes));
  CAPTURE(text);
  CHECK(times(text, std::string("kernel        ") + plan.kernel + "\n") == 1);
  CHECK(times(text, "tiles: main loops") == 1);
  const std::string next = text.substr(text.find("next candidates\n"));
  CHECK(times(next, "\n  ") == 5);
  const size_t needed = bytes--;
  expect_status(mp_gemm_explain(context(), &desc, nullptr, text.data(), &bytes),
                MP_ERROR_WORKSPACE_TOO_SMALL);
  CHECK(bytes == needed);
}

namespace {

/// Two shapes, each in two contexts.
void plan_repeatedly() {
  const UniqueContext other = make_context(0);
  size_t bytes = 0;
  for (const mp_context_t context : {mptest::context(), other.get()})
    for (const int64_t m : {64, 96, 64}) {
      const mp_gemm_desc_t desc = mp_gemm_desc_default(m, 64, 64, MP_FP16, MP_FP16);
      require_ok(mp_gemm_workspace_size(context, &desc, nullptr, &bytes));
    }
}

}  // namespace

TEST_CASE("two shapes in two contexts", "[.]") {
  plan_repeatedly();
}

TEST_CASE("two shapes with a callback for errors", "[.]") {
  const auto print = [](mp_log_level_t, const char *line, void *) {
    std::printf("callback: %s\n", line);
  };
  mp_set_log_callback(print, nullptr, MP_LOG_ERROR);
  plan_repeatedly();
}

TEST_CASE("log: MP_LOG_PLANS logs each plan once per process, whatever the level", "[gemm]") {
  const auto output = [](const char *variables) {
    return output_of_test("two shapes in two contexts", variables);
  };
  CHECK(times(output("MP_LOG=error MP_LOG_PLANS=1"), "info: plan: ") == 2);
  CHECK(times(output("MP_LOG=error MP_LOG_PLANS=0"), "info: plan: ") == 0);
  const std::string other =
      output_of_test("two shapes with a callback for errors", "MP_LOG_PLANS=1");
  CAPTURE(other);
  CHECK(times(other, "info: plan: ") == 2);
  CHECK(times(other, "callback: plan: ") == 0);
}
