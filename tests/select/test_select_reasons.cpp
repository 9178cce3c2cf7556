// Warnings of slow calls: logged only if a larger workspace, or a D that TMA can store, is
// predicted to be faster by a fifth.
#include "kernels/gemm/plan_text.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Returns the reason of the best plan with that workspace.
std::string reason(const mp::GemmProblem &p, size_t workspace_bytes,
                   const mp::Device &device = kH200) {
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  const mp::GemmPlan choice = plan_of(p, device, tuning, kAligned, workspace_bytes);
  return lost_time_reason(shape(p).out, choice, {device, tuning, workspace_bytes});
}

/// Returns the logged reason about A and B.
std::string operand_reason(const mp::GemmProblem &p, const mp::Device &device,
                           bool aligned = kAligned, size_t workspace_bytes = SIZE_MAX) {
  const mp::GemmPlan choice =
      plan_of(p, device, mp::builtin_gemm_tuning(), aligned, workspace_bytes);
  CAPTURE(device.arch, choice.name, choice.predicted_us, choice.aligned_us);
  return mp::if_slower(mp::slow_path_reason(shape(p, aligned), device), choice.predicted_us,
                       choice.aligned_us);
}

mp::GemmProblem with_dbias(mp::GemmProblem p) {
  static float somewhere;
  p.out.epilogue.dbias = &somewhere;
  return p;
}

}  // namespace

TEST_CASE("slow choice: too small a workspace for split-k is logged with the required bytes") {
  for (const mp::Device &device : {kT4, kA100, kH200}) {
    CAPTURE(device.arch);
    const mp::GemmProblem p = problem(128, 128, 65536);
    const size_t bytes = plan_of(p, device).workspace.bytes;
    REQUIRE(bytes > 0);
    const std::string why = reason(p, 0, device);
    CAPTURE(why);
    CHECK(why.find("predicted time is ") == 0);
    CHECK(why.find("us with workspace_bytes = 0, but ") != std::string::npos);
    CHECK(why.ends_with(" us with " + std::to_string(bytes) + " bytes"));
    CHECK(reason(p, bytes, device) == "");
    CHECK(reason(p, SIZE_MAX, device) == "");
    CHECK(reason(problem(8192, 8192, 8192), 0, device) == "");  // no gain
  }
}

TEST_CASE("slow choice: too small a workspace for dbias is logged") {
  const mp::GemmProblem p = with_dbias(problem(802816, 64, 64));
  const size_t bytes = mp::dbias_workspace_bytes(shape(p).out, plan_of(p, kH200));
  REQUIRE(plan_of(p, kH200).workspace.bytes < bytes);
  CHECK(reason(p, 0).find(" us with " + std::to_string(bytes) + " bytes") != std::string::npos);
  CHECK(reason(p, bytes) == "");
  CHECK(reason(problem(802816, 64, 64), 0) == "");
}

TEST_CASE("slow choice: workspace for the product and dbias suffices for any epilogue") {
  alignas(16) static char somewhere[16];
  for (const mp::Device &device : {kT4, kA100, kH200})
    for (const int64_t m : {64, 128, 512, 2048})
      for (const int64_t n : {64, 768, 4096})
        for (const int64_t k : {256, 1024, 4096, 32768}) {
          const mp::GemmProblem plain = problem(m, n, k);
          const mp::GemmPlan choice = plan_of(plain, device);
          const size_t bytes =
              std::max(choice.workspace.bytes, mp::dbias_workspace_bytes(shape(plain).out, choice));
          mp::GemmProblem p = with_dbias(plain);
          p.out.epilogue.activation = MP_ACT_DGELU;
          p.out.epilogue.aux = somewhere;
          p.out.epilogue.ld_aux = n;
          CAPTURE(device.arch, m, n, k);
          CHECK(reason(plain, bytes, device) == "");
          CHECK(reason(p, bytes, device) == "");
        }
}

TEST_CASE("slow choice: rows of D without a tensor map are logged if they matter") {
  const mp::GemmProblem p = problem(8192, 4096, 128);
  CHECK(reason(p, SIZE_MAX) == "");
  CHECK(
      reason(with_ld_of_d(p, 4097), SIZE_MAX).starts_with("ld_d = 4097 is not a multiple of 8 ("));
  CHECK(reason(with_ld_of_d(p, 4097), SIZE_MAX).find(" us predicted, ") != std::string::npos);
  CHECK(reason(with_ld_of_d(p, 4104), SIZE_MAX) == "");
  CHECK(reason(with_ld_of_d(p, 4097), SIZE_MAX, kA100) == "");  // has only one store path
  CHECK(reason(with_ld_of_d(with_fp32_d(p, 0), 4098), SIZE_MAX) == "");
  // The cost is negligible for long products.
  CHECK(reason(with_ld_of_d(problem(8192, 8192, 65536), 8193), SIZE_MAX) == "");

  alignas(16) static char memory[32];
  mp::GemmProblem q = p;
  q.out.d.base = memory + 2;
  CHECK(reason(q, SIZE_MAX).starts_with("C, D or aux is not 16-byte aligned ("));
  q = p;
  q.out.epilogue.activation = MP_ACT_DGELU;
  q.out.epilogue.aux = memory;
  q.out.epilogue.ld_aux = 4100;
  CHECK(reason(q, SIZE_MAX).starts_with("ld_aux = 4100 is not a multiple of 8 ("));
  q = p;
  q.out.beta = 1;
  q.out.c.ld = 4098;
  CHECK(reason(q, SIZE_MAX).starts_with("ld_c = 4098 is not a multiple of 8 ("));
}

TEST_CASE("slow choice: unaligned rows of A and B are logged if aligned ones are a fifth faster") {
  for (const mp::Device &device : {kT4, kA100, kH200}) {
    mp::GemmProblem p = problem(4096, 4096, 4096);
    p.b.ld = 4097;
    CHECK(operand_reason(p, device) == "");  // copies are cheap
    CHECK(
        operand_reason(p, device, kAligned, 0).starts_with("ld_b = 4097 is not a multiple of 8 ("));
    p = problem(4096, 256, 4096);
    p.a.ld = 4097;
    CHECK(operand_reason(p, device).starts_with("ld_a = 4097 is not a multiple of 8 ("));
    CHECK(operand_reason(problem(4096, 256, 4096), device) == "");
    CHECK(operand_reason(problem(4096, 4096, 4096), device, !kAligned)
              .starts_with("A or B is not 16-byte aligned ("));
  }
  const mp::GemmProblem bf16 = with_inputs(problem(4096, 4096, 4096), MP_BF16);
  CHECK(operand_reason(bf16, kT4).starts_with("sm_75 has Tensor Cores for FP16"));
}

TEST_CASE("slow choice: a warning implies a faster plan on every device") {
  int told = 0, silent = 0;
  for (const mp::Device &device : {kT4, kA100, kH200, kHost})
    for (const int64_t m : {4, 64, 128, 1000, 4096})
      for (const int64_t n : {4, 60, 1001})
        for (const int64_t k : {4, 64, 127, 2048}) {
          const mp::GemmProblem p = problem(m, n, k, MP_OP_N, MP_OP_N);
          const std::string why = operand_reason(p, device);
          mp::GemmProblem better = p;
          better.a.ld = (k + 7) / 8 * 8;
          better.b.ld = (n + 7) / 8 * 8;
          CAPTURE(device.arch, device.target, m, n, k, why);
          const double us = plan_of(p, device).predicted_us,
                       faster_us = plan_of(better, device).predicted_us;
          CHECK(why.empty() == (us < 1.2 * faster_us));
          (why.empty() ? silent : told)++;
        }
  CHECK(told > 10);
  CHECK(silent > 10);
}

TEST_CASE("slow choice: products of a small layer on the host are not logged") {
  // 4 classes of 64 hidden units, 128 samples: forward and both gradients.
  for (const mp::GemmProblem &p :
       {problem(128, 4, 64, MP_OP_N, MP_OP_N), problem(128, 64, 4, MP_OP_N, MP_OP_T),
        problem(64, 4, 128, MP_OP_T, MP_OP_N)})
    CHECK(operand_reason(p, kHost) == "");
}

TEST_CASE("slow choice: a named kernel is not logged") {
  const mp::GemmProblem p = problem(256, 256, 65536);
  const mp::GemmPlan choice = plan_named("simt_64x64x16", p, kH200);
  CHECK(lost_time_reason(shape(p).out, choice, {kH200, mp::builtin_gemm_tuning(), 0}) == "");
}
