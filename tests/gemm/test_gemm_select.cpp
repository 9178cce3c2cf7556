// Names of the kernels for a problem, and rejection of unsuitable names.
#define MP_ENABLE_EXPERIMENTAL
#include <set>

#include "gemm_run.h"
#include "tests/support/any.h"
#include "tests/support/kernels.h"

using namespace mptest;

namespace {

mp_gemm_desc_t random_problem(Random &random) {
  const auto extent = [&random] {  // small and large with equal probability
    return random.integer(1, int64_t{1} << random.integer(0, 16));
  };
  mp_gemm_desc_t desc = mp_gemm_desc_default(extent(), extent(), extent(), any(random, kDtypes),
                                             any(random, kDtypes));
  desc.op_a = random.integer(0, 1) != 0 ? MP_OP_T : MP_OP_N;
  desc.op_b = random.integer(0, 1) != 0 ? MP_OP_T : MP_OP_N;
  desc.ld_a = (desc.op_a == MP_OP_T ? desc.m : desc.k) + random.integer(0, 9);
  desc.ld_b = (desc.op_b == MP_OP_T ? desc.k : desc.n) + random.integer(0, 9);
  desc.batch_count = static_cast<int32_t>(random.integer(1, 3));
  desc.stride_d = desc.m * desc.n;
  return desc;
}

}  // namespace

TEST_CASE("select: the first kernel of the ranking is launched", "[gemm][short]") {
  for (const GemmCase &c : gemm_cases("m=20 n=30 k=40|600 fill=real")) {
    GemmRun run(c);
    const std::string best = run.kernels().front();
    CHECK(run.workspace_bytes("") == run.workspace_bytes(best));
    require_ok(run.launch(""));
    const std::vector<uint8_t> chosen = run.output_bits();
    require_ok(run.launch(best));
    expect_none(run.output_bits() == chosen ? "" : "not what the library launches", run.repro());
  }
}

TEST_CASE("select: a cached plan equals a new one", "[gemm]") {
  // More problems than the cache holds, twice, alternating between contexts with different limits:
  // the ranking of mp_gemm_kernel_info is never cached.
  const UniqueContext one_sm = make_context(1);
  for (int round = 0; round < 2; ++round) {
    Random random(12);
    for (int i = 0; i < 600; ++i) {
      const mp_gemm_desc_t desc = random_problem(random);
      for (const mp_context_t each : {context(), one_sm.get()}) {
        CAPTURE(round, i, desc.m, desc.n, desc.k, each == one_sm.get());
        auto best = initialized<mp_kernel_info_t>();
        require_ok(mp_gemm_kernel_info(each, &desc, 0, &best));
        mp_epilogue_t sums = mp_epilogue_default();
        alignas(16) float dbias = 0.0f;  // only its address is used
        sums.dbias = &dbias;
        size_t bytes = SIZE_MAX, with_dbias = SIZE_MAX;
        require_ok(mp_gemm_workspace_size(each, &desc, nullptr, &bytes));
        require_ok(mp_gemm_workspace_size(each, &desc, &sums, &with_dbias));
        REQUIRE(bytes == best.workspace_bytes);
        for (const bool has_dbias : {false, true}) {
          auto plan = initialized<mp_plan_t>();
          require_ok(mp_gemm_get_plan(each, &desc, has_dbias ? &sums : nullptr, SIZE_MAX, &plan));
          REQUIRE(plan.workspace_bytes == (has_dbias ? with_dbias : bytes));
        }
      }
    }
  }
}
