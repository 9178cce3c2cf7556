// When the log says that a call takes longer than it could: where the prediction is a fifth better with more workspace,
// or with a D that TMA can store, and only there.
#include "kernels/gemm/dbias.h"
#include "kernels/gemm/select_reasons.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Of the best choice with that much workspace.
std::string reason(const mp::GemmProblem &p, size_t workspace_bytes,
                   const mp::Device &device = h200()) {
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  const mp::GemmChoice choice = mp::best_gemm(p, device, tuning, kAligned, workspace_bytes);
  return lost_time_reason(p.out, choice, device, tuning, workspace_bytes);
}

mp::GemmChoice best(const mp::GemmProblem &p, const mp::Device &device) {
  return mp::best_gemm(p, device, mp::builtin_gemm_tuning(), kAligned, SIZE_MAX);
}
size_t best_bytes(const mp::GemmProblem &p, const mp::Device &device) {
  return best(p, device).workspace_bytes;
}

mp::GemmProblem with_dbias(mp::GemmProblem p) {
  static float somewhere;
  p.out.epilogue.dbias = &somewhere;
  return p;
}

}  // namespace

TEST_CASE("slow choice: a split that has no room is told with its bytes") {
  for (const mp::Device &device : {t4(), a100(), h200()}) {
    CAPTURE(device.arch);
    const mp::GemmProblem p = problem(256, 256, 65536);
    const size_t bytes = best_bytes(p, device);
    REQUIRE(bytes > 0);
    const std::string why = reason(p, 0, device);
    CAPTURE(why);
    CHECK(why.find("workspace_bytes = 0 is predicted to take ") == 0);
    CHECK(why.find(", and " + std::to_string(bytes) + " bytes ") != std::string::npos);
    CHECK(reason(p, bytes, device) == "");
    CHECK(reason(p, SIZE_MAX, device) == "");
    CHECK(reason(problem(8192, 8192, 8192), 0, device) == "");  // nothing to gain
  }
}

TEST_CASE("slow choice: so are the sums of dbias") {
  const mp::GemmProblem p = with_dbias(problem(802816, 64, 64));
  const size_t bytes = mp::dbias_workspace_bytes(p.out, best(p, h200()));
  REQUIRE(best_bytes(p, h200()) < bytes);
  CHECK(reason(p, 0).find("and " + std::to_string(bytes) + " bytes ") != std::string::npos);
  CHECK(reason(p, bytes) == "");
  CHECK(reason(problem(802816, 64, 64), 0) == "");
}

TEST_CASE("slow choice: what mp_gemm_workspace_size says is enough, whatever the epilogue") {
  // It knows no epilogue.
  alignas(16) static char somewhere[16];
  for (const mp::Device &device : {t4(), a100(), h200()})
    for (const int64_t m : {64, 128, 512, 2048})
      for (const int64_t n : {64, 768, 4096})
        for (const int64_t k : {256, 1024, 4096, 32768}) {
          const mp::GemmProblem plain = problem(m, n, k);
          const mp::GemmChoice choice = best(plain, device);
          const size_t bytes =
              std::max(choice.workspace_bytes, mp::dbias_workspace_bytes(plain.out, choice));
          mp::GemmProblem p = with_dbias(plain);
          p.out.epilogue.activation = MP_ACT_DGELU;
          p.out.epilogue.aux = somewhere;
          p.out.epilogue.ld_aux = n;
          CAPTURE(device.arch, m, n, k);
          CHECK(reason(plain, bytes, device) == "");
          CHECK(reason(p, bytes, device) == "");
        }
}

TEST_CASE("slow choice: a D whose rows have no tensor map is named, where it matters") {
  const mp::GemmProblem p = problem(8192, 4096, 128);
  CHECK(reason(p, SIZE_MAX) == "");
  CHECK(reason(with_ld_of_d(p, 4097), SIZE_MAX) == "ldd = 4097 is not a multiple of 8");
  CHECK(reason(with_ld_of_d(p, 4104), SIZE_MAX) == "");
  CHECK(reason(with_ld_of_d(p, 4097), SIZE_MAX, a100()) == "");  // has no other way
  CHECK(reason(with_ld_of_d(with_fp32_d(p, 0), 4098), SIZE_MAX) == "");
  // Where the products take long, who waits for the rest?
  CHECK(reason(with_ld_of_d(problem(8192, 8192, 65536), 8193), SIZE_MAX) == "");

  alignas(16) static char memory[32];
  mp::GemmProblem q = p;
  q.out.d.base = memory + 2;
  CHECK(reason(q, SIZE_MAX) == "C, D or aux is not 16-byte aligned");
  q = p;
  q.out.epilogue.activation = MP_ACT_DGELU;
  q.out.epilogue.aux = memory;
  q.out.epilogue.ld_aux = 4100;
  CHECK(reason(q, SIZE_MAX) == "ld_aux = 4100 is not a multiple of 8");
  q = p;
  q.out.beta = 1;
  q.out.c.ld = 4098;
  CHECK(reason(q, SIZE_MAX) == "ldc = 4098 is not a multiple of 8");
}

TEST_CASE(
    "slow choice: copies of A and B are told where they take a fifth of the time, rows in place "
    "always") {
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  const auto is_told = [&](const mp::GemmProblem &p, const mp::Device &device, size_t bytes) {
    const mp::GemmChoice choice = mp::best_gemm(p, device, tuning, kAligned, bytes);
    CAPTURE(device.arch, choice.name, choice.predicted_us);
    CHECK(choice.reads_copies == (bytes > 0));
    return !copies_are_cheap(p, choice, device, tuning);
  };
  for (const mp::Device &device : {t4(), a100(), h200()}) {
    mp::GemmProblem p = problem(4096, 4096, 4096);
    p.b.ld = 4097;
    CHECK(!is_told(p, device, SIZE_MAX));
    CHECK(is_told(p, device, 0));
    p = problem(4096, 256, 4096);
    p.a.ld = 4097;
    CHECK(is_told(p, device, SIZE_MAX));
  }
}

TEST_CASE("slow choice: a kernel that was named has lost nothing") {
  const mp::GemmProblem p = problem(256, 256, 65536);
  const mp::GemmChoice choice = choice_named("simt_64x64x16", p, h200());
  CHECK(lost_time_reason(p.out, choice, h200(), mp::builtin_gemm_tuning(), 0) == "");
}
