// Split-k and its workspace: equal results, no access past the end, any initial contents.
#include "gemm_run.h"
#include "tests/support/named_plan.h"

using namespace mptest;

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

TEST_CASE("workspace: mp_gemm_batched_workspace_size suffices for the fastest kernel", "[gemm]") {
  for (const GemmCase &c :
       gemm_cases("m/n/k=64/1024/1024|64/200/4096|512/512/512 batch=2 pointers=1 fill=real")) {
    INFO(to_string(c));
    GemmRun run(c);
    const mp_gemm_desc_t desc = run.desc("");
    const size_t bytes = run.workspace_bytes("");
    auto plan = initialized<mp_plan_t>(), fastest = plan;
    require_ok(mp_gemm_batched_get_plan(context(), &desc, nullptr, bytes, &plan));
    require_ok(mp_gemm_batched_get_plan(context(), &desc, nullptr, SIZE_MAX, &fastest));
    CHECK(std::string(plan.kernel) == fastest.kernel);
    // The call selects that kernel: its sums of reals have the same bits.
    require_ok(run.launch("", bytes));
    const std::vector<uint8_t> bits = run.output_bits();
    require_ok(run.launch(fastest.kernel, bytes));
    CHECK(run.output_bits() == bits);
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
