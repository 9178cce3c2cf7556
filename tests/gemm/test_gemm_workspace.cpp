// Split-k and its workspace: equal results, no access past the end, any initial contents.
#include "gemm_run.h"
#include "tests/support/log_lines.h"
#include "tests/support/named_plan.h"

using namespace mptest;

namespace {

/// True for split-k kernels, which are named "..._k2", "..._k4", ...
bool splits_k(const std::string &kernel) {
  return kernel.find("_k") != std::string::npos;
}

}  // namespace

TEST_CASE("split-k: every kernel is exact for full and partial slices", "[gemm][short]") {
  check_every_kernel("m=33 n=70 op=TN k/cd=512/fp16|1023/fp32|4097/fp16 beta=1 bias=fp32");
}

TEST_CASE("split-k: the maximum number of slices is exact", "[gemm][short]") {
  // The last of 128 slices is partial.
  GemmRun run(gemm_case("m=5 n=70 k=16383 op=TN amax=1"));
  int count = 0;
  for (const std::string &kernel : run.kernels()) {
    const bool most = kernel.ends_with("_k128");
    if (!most && !kernel.ends_with("_k24")) continue;
    check_launch(run, kernel, Misaligned::kNo);
    count += most;
  }
  CHECK(count > 0);
}

TEST_CASE("split-k: the epilogue runs once, after the sum", "[gemm][short]") {
  check_kernels(
      "m=37 n=66 k=520 op=TN cd=fp16 pad=3 beta=-2 scale=2 bias=fp16 activation=relu aux=1 dbias=1 "
      "amax=1 found_inf=1",
      splits_k);
}

TEST_CASE("split-k: batches and non-finite values", "[gemm][short]") {
  check_every_kernel(
      "m=33 n=40 k=600 op=TN cd=fp16 batch=3 found_inf=1 "
      "pointers/amax/special/place=0/1/none/first|1/0/none/first|1/0/inf/last");
}

TEST_CASE("split-k: repeated calls give the same bits for any initial workspace", "[gemm]") {
  GemmRun run(gemm_case("m=65 n=70 k=2050 op=TN fill=real"));
  for (const std::string &kernel : run.kernels())
    if (splits_k(kernel)) check_same_bits(run, kernel);
}

TEST_CASE("workspace: any workspace size is accepted", "[gemm][short]") {
  // Two tiles and a long k: on a GPU, split-k is the fastest choice.
  GemmRun run(gemm_case("m=64 n=64 k=4096 op=TN cd=fp16"));
  const size_t wanted = run.workspace_bytes("");
  for (const size_t bytes : {size_t{0}, wanted / 2, wanted, wanted + 256}) {
    CAPTURE(bytes);
    check_launch(run, "", bytes);
  }
}

namespace {

/// Returns the kernel that mp_gemm_batched logs.  Uses a new context, as each logs a kernel once.
std::string choice_with(const mp_gemm_desc_t &desc, size_t workspace_bytes) {
  const UniqueContext fresh = make_context();
  const DeviceBuffer<uint16_t> a(desc.m * desc.k, 0, 0), b(desc.k * desc.n, 0, 0);
  const DeviceBuffer<float> d(desc.m * desc.n);
  const DeviceBuffer<uint8_t> workspace(static_cast<int64_t>(workspace_bytes));
  DeviceBuffer<void *> items(3);
  items.upload({a.data(), b.data(), d.data()});
  const LogLines lines(MP_LOG_INFO);
  const mp_status_t status = mp_gemm_batched(
      fresh.get(), &desc, items.data(), items.data() + 1, nullptr, items.data() + 2, nullptr,
      workspace_bytes > 0 ? workspace.data() : nullptr, workspace_bytes, kStream);
  require_ok(status);
  require_ok(mp_stream_sync(fresh.get(), kStream));
  REQUIRE(!lines.all().empty());
  return lines.all().back();
}

}  // namespace

TEST_CASE("workspace: mp_gemm_batched_workspace_size suffices for the fastest kernel", "[gemm]") {
  constexpr int64_t kShapes[][3] = {{64, 1024, 1024}, {64, 200, 4096}, {512, 512, 512}};
  for (const auto &[m, n, k] : kShapes) {
    const mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, MP_FP16, MP_FP32);
    size_t bytes = 0;
    require_ok(mp_gemm_batched_workspace_size(context(), &desc, nullptr, &bytes));
    CAPTURE(m, n, k, bytes);
    const std::string chosen = choice_with(desc, bytes);
    CHECK_THAT(chosen, Catch::Matchers::ContainsSubstring("mp_gemm_batched: "));
    CHECK(chosen == choice_with(desc, bytes + (1 << 22)));
  }
}

TEST_CASE("workspace: only mp_gemm_batched requires a table of pointers", "[gemm]") {
  if (!has_wgmma()) return;
  mp_gemm_desc_t desc = mp_gemm_desc_default(512, 512, 512, MP_FP16, MP_FP32);
  desc.plan = named_plan("wgmma_128x128x64_s6");
  size_t of_batched = 0, of_mp_gemm = 1;
  require_ok(mp_gemm_batched_workspace_size(context(), &desc, nullptr, &of_batched));
  require_ok(mp_gemm_workspace_size(context(), &desc, nullptr, &of_mp_gemm));
  CHECK(of_batched == 768);
  CHECK(of_mp_gemm == 0);
}
