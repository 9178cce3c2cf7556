// Selection of wgmma kernels: supported problems, workspace, store paths.
#include "select_cases.h"

using namespace mptest;

namespace {

std::vector<const char *> wgmma_names() {
  std::vector<const char *> names;
  for (const mp::GemmKernel &kernel : mp::gemm_kernels())
    if (kernel.family == mp::GemmFamily::wgmma) names.push_back(kernel.name);
  return names;
}

bool is_wgmma(const mp::GemmPlan &choice) {
  return choice.kernel->family == mp::GemmFamily::wgmma;
}

alignas(16) char memory[64];

mp::GemmProblem with_aux(mp::GemmProblem p, mp_activation_t activation) {
  p.out.epilogue.activation = activation;
  p.out.epilogue.aux = memory;
  p.out.epilogue.ld_aux = p.out.d.ld;
  return p;
}

mp::GemmProblem with_bias(mp::GemmProblem p) {
  p.out.epilogue.bias = memory;
  return p;
}

}  // namespace

TEST_CASE("select wgmma: every tile supports every split alone and few slices in clusters") {
  const mp::GemmProblem p = problem(4096, 4096, 16384);
  for (const std::string name : wgmma_names()) {
    CAPTURE(name);
    for (const std::string suffix : {"", "_c2", "_k2", "_k24", "_k128", "_c2_k4", "_c2_k8",
                                     "_k2_p2", "_k6_p6", "_k24_p8", "_k64_p8"}) {
      CAPTURE(suffix);
      CHECK(why_not(name + suffix, p, kH200) == "");
    }
    for (const std::string suffix :
         {"_k4_c2", "_c1", "_c4", "_c2_k12", "_p8", "_c2_k4_p4", "_k128_p8"}) {
      CAPTURE(suffix);
      CHECK(why_not(name + suffix, p, kH200) == "unknown");
    }
  }
  const mp::GemmPlan choice = plan_named("wgmma_128x256x64_s4_c2_k4", p, kH200);
  CHECK(choice.multicast == 2);
  CHECK(cluster_text(choice) == "2 blocks, which share an operand");
  CHECK(choice.split_k == 4);
}

TEST_CASE("select wgmma: builds without sm_90a select no wgmma kernel") {
  const mp::Device device = kH200WithoutWgmma;
  for (const mp::GemmProblem &p :
       {problem(4096, 4096, 4096), with_batch(problem(64, 128, 256), 500)}) {
    REQUIRE(is_wgmma(plan_of(p, kH200)));
    for (const mp::RankedGemm &choice : ranking(p, device))
      CHECK(choice.variant->kernel->family != mp::GemmFamily::wgmma);
  }
  const mp::GemmGroupItem item{256, 256,     256,     256,     256,     256,
                               256, nullptr, nullptr, nullptr, nullptr, 0};
  const mp::GemmGroup group{problem(1, 1, 1), &item, 1};
  mp::GemmPlan choice;
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  CHECK(plan_gemm_grouped(group, {kH200, tuning}, nullptr, &choice));
  CHECK_FALSE(plan_gemm_grouped(group, {device, tuning}, nullptr, &choice));
}

TEST_CASE("select wgmma: groups whose sizes are on the device") {
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  for (const mp_ragged_t dimension : {MP_RAGGED_M, MP_RAGGED_K}) {
    // Operand orders of a forward pass and of weight gradients, in which groups are separate rows.
    const bool in_k = dimension == MP_RAGGED_K;
    mp::RaggedProblem experts{
        problem(8192, 4096, 1024, in_k ? MP_OP_T : MP_OP_N, in_k ? MP_OP_N : MP_OP_T), dimension,
        nullptr};
    experts.all.out.batch_count = 16;
    if (dimension == MP_RAGGED_M) experts.all.b.stride = 4096 * 1024;
    const auto ragged_shape = [&](bool aligned) {
      mp::RaggedShape s = shape_of(experts);
      if (!aligned) s.all.a.alignment = s.all.b.alignment = 2;
      return s;
    };
    const auto best = [&](const mp::Device &device, bool aligned, size_t bytes) {
      return mp::plan_gemm(ragged_shape(aligned), {device, tuning, bytes});
    };
    const mp::GemmPlan choice = best(kH200, true, SIZE_MAX);
    CHECK(is_wgmma(choice));
    CHECK(choice.split_k == 1);
    CHECK(choice.multicast == 1);
    CHECK(cluster_text(choice) == "none");
    const size_t table = mp::wgmma_table_bytes(16);
    CHECK(choice.workspace.bytes == table);
    CHECK(is_wgmma(best(kH200, true, table)));
    for (const mp::GemmPlan &other :
         {best(kH200, true, table - 1), best(kH200, false, SIZE_MAX), best(kA100, true, SIZE_MAX),
          best(kT4, true, SIZE_MAX), best(kH200WithoutWgmma, true, SIZE_MAX)}) {
      CHECK(other.kernel->family == mp::GemmFamily::wmma);
      CHECK(other.workspace.bytes == 0);
    }
    const auto why_not_named = [&](const char *name) -> std::string {
      mp::GemmPlan named;
      const char *why;
      if (mp::plan_named_gemm(ragged_shape(true), {kH200, tuning}, name, &named, &why)) return "";
      return why == nullptr ? "unknown" : why;
    };
    CHECK(why_not_named("wgmma_128x256x64_s4") == "");
    CHECK(why_not_named("wmma_64x64x32_s4") == "");
    CHECK(why_not_named("abacus") == "unknown");
    const int64_t ld = experts.all.a.ld;
    experts.all.a.ld = ld + 1;
    CHECK(why_not_named("wmma_64x64x32_s4") == "");
    for (const char *const name : {"wmma_64x64x32_s4_copied", "wgmma_128x256x64_s4"})
      CHECK(why_not_named(name) == "copies A and B, which mp_gemm_ragged does not support");
    experts.all.a.ld = ld;
    CHECK(why_not_named("wgmma_128x256x64_s4_c2") ==
          "uses clusters, which mp_gemm_ragged does not support");
    CHECK(why_not_named("wmma_64x64x32_s4_k2").find("split") != std::string::npos);
    experts.all.out.m = int64_t{1} << 31;  // a part of it would be supported
    CHECK(why_not_named("wgmma_128x256x64_s4") == "requires dimensions less than 2^31");
    experts.all.out.m = experts.all.out.n = 8;
    CHECK(why_not_named("gemv") == "does not support mp_gemm_ragged");
  }
  // Other orders have several groups in a row of A or B, and groups with any start.
  for (const mp_ragged_t dimension : {MP_RAGGED_M, MP_RAGGED_K})
    for (const mp_op_t op_a : {MP_OP_N, MP_OP_T})
      for (const mp_op_t op_b : {MP_OP_N, MP_OP_T}) {
        mp::RaggedProblem experts{problem(8192, 4096, 1024, op_a, op_b), dimension, nullptr};
        experts.all.out.batch_count = 16;
        if (dimension == MP_RAGGED_M) experts.all.b.stride = 4096 * 1024;
        const bool below_each_other =
            dimension == MP_RAGGED_M ? op_a == MP_OP_N : op_a == MP_OP_T && op_b == MP_OP_N;
        CHECK(is_wgmma(mp::plan_gemm(shape_of(experts), {kH200, tuning})) == below_each_other);
      }
}

TEST_CASE("select wgmma: each reason why a kernel rejects a problem") {
  const mp::GemmProblem p = problem(1024, 1024, 1024);
  for (const char *const name : wgmma_names()) {
    CAPTURE(name);
    CHECK(why_not(name, p, kH200) == "");

    mp::GemmProblem q;
    CHECK(why_not(name, with_inputs(p, MP_BF16), kH200) == "");
    CHECK(why_not(name, with_inputs(p, MP_FP32), kH200) == MP_REQUIRES_HALF_TYPE);

    CHECK(why_not(name, p, kHost) == "");
    for (const mp::Device &device : {kT4, kA100, kL40s, kB200, kRtx5090})
      CHECK(why_not(name, p, device) == "requires sm_90");
    CHECK(why_not(name, p, kH200WithoutWgmma) ==
          "requires sm_90a code, which this build or driver lacks");
    CHECK(why_not(name, p, cuda_device(90, 132, 99 << 10)) ==
          "requires more shared memory than the device has");
    CHECK(why_not(name, problem(64, 64, 0), kH200) == "requires k > 0");

    CHECK(why_not(name, p, kH200, false) == "requires 16-byte aligned rows");
    for (mp::Operand mp::GemmProblem::*const x : {&mp::GemmProblem::a, &mp::GemmProblem::b}) {
      // Read from a copy, unless there is another reason.
      q = p;
      (q.*x).ld += 4;
      CHECK(why_not(name, q, kH200) == "");
      CHECK(why_not(name, q, kH200, false) == "requires 16-byte aligned rows");
      CHECK(why_not(name, q, kA100) == "requires sm_90");
      q = with_batch(p, 2);
      (q.*x).stride += 4;
      CHECK(why_not(name, q, kH200) == "");
      q = p;
      (q.*x).ld = int64_t{1} << 39;
      CHECK(why_not(name, q, kH200) == "requires row and batch strides of less than 2^40 bytes");
      (q.*x).ld -= 8;
      CHECK(why_not(name, q, kH200) == "");
      q = with_batch(p, 2);
      (q.*x).stride = int64_t{1} << 39;
      CHECK(why_not(name, q, kH200) == "requires row and batch strides of less than 2^40 bytes");
    }
    // C and D may have any layout.
    q = p;
    q.out.c.ld = q.out.d.ld = 1025;
    CHECK(why_not(name, q, kH200) == "");

    for (int64_t *const extent : {&q.out.m, &q.out.n, &q.k}) {
      q = problem(64, 64, 64);
      *extent = int64_t{1} << 31;
      CHECK(why_not(name, q, kH200) == "requires dimensions less than 2^31");
      *extent = extent == &q.k ? int64_t{1} << 30 : *extent - 1;
      CHECK(why_not(name, q, kH200) == "");
    }
    q.k++;
    CHECK(why_not(name, q, kH200) == "requires k of at most 2^30");
  }
}

TEST_CASE("select wgmma: a cluster requires two adjacent tiles and two SMs") {
  const std::string no_pair = "requires two adjacent tiles for a cluster";
  // 128x256 shares B: its blocks are adjacent along M.
  CHECK(why_not("wgmma_128x256x64_s4_c2", problem(128, 8192, 256), kH200) == no_pair);
  CHECK(why_not("wgmma_128x256x64_s4_c2", problem(129, 8, 256), kH200) == "");
  CHECK(why_not("wgmma_64x256x64_s4_c2", problem(64, 8192, 256), kH200) == no_pair);
  CHECK(why_not("wgmma_64x256x64_s4_c2", problem(65, 8, 256), kH200) == "");
  CHECK(why_not("wgmma_128x128x64_s6_c2", problem(129, 8, 256), kH200) == "");
  CHECK(why_not("wgmma_128x192x64_s4_c2", problem(128, 8192, 256), kH200) == no_pair);
  CHECK(why_not("wgmma_128x192x64_s4_c2", problem(129, 8, 256), kH200) == "");
  // 256x64 too, although A is larger: its products have few columns.
  CHECK(why_not("wgmma_256x64x64_s4_c2", problem(256, 8192, 256), kH200) == no_pair);
  CHECK(why_not("wgmma_256x64x64_s4_c2", problem(257, 8, 256), kH200) == "");
  // 256x128 shares A: adjacent along N.
  CHECK(why_not("wgmma_256x128x64_s4_c2", problem(8192, 128, 256), kH200) == no_pair);
  CHECK(why_not("wgmma_256x128x64_s4_c2", problem(8, 129, 256), kH200) == "");
  CHECK(why_not("wgmma_128x256x64_s4_c2", problem(512, 512, 256), cuda_device(90, 1, 232448)) ==
        "requires two SMs for a cluster");
}

TEST_CASE("select wgmma: tile and slice indices are below 2^31") {
  const auto many = [](int64_t items) { return with_batch(problem(1, 1, 256), items); };
  CHECK(why_not("wgmma_64x128x64_s8", many(INT32_MAX), kH200) == "");
  CHECK(why_not("wgmma_64x128x64_s8_k2", many(INT32_MAX / 2), kH200) == "");
  const char *const too_many = "requires fewer than 2^31 tiles and slices";
  CHECK(why_not("wgmma_64x128x64_s8", many(int64_t{INT32_MAX} + 1), kH200) == too_many);
  CHECK(why_not("wgmma_64x128x64_s8_k2", many(INT32_MAX / 2 + 1), kH200) == too_many);
}

TEST_CASE("select wgmma: workspace holds the pointer table and the sums of every slice") {
  const auto bytes = [](const char *name, const mp::GemmProblem &p) {
    return plan_named(name, p, kH200).workspace.bytes;
  };
  const mp::GemmProblem p = problem(300, 300, 4096);  // 3 x 2 tiles of 128 x 256
  CHECK(bytes("wgmma_128x256x64_s4", p) == 0);
  CHECK(bytes("wgmma_128x256x64_s4_c2", with_batch(p, 7)) == 0);
  const size_t slice = 300 * 300 * 4, kRound = 256;
  const auto rounded = [&](size_t bytes) { return (bytes + kRound - 1) / kRound * kRound; };
  CHECK(bytes("wgmma_128x256x64_s4_k3", p) == rounded(3 * slice));
  CHECK(bytes("wgmma_128x256x64_s4_c2_k3", p) == rounded(3 * slice));
  CHECK(bytes("wgmma_128x256x64_s4_k3", with_batch(p, 5)) == rounded(15 * slice));
  CHECK(bytes("wgmma_128x256x64_s4_k3_p3", p) == 0);
  CHECK(bytes("wgmma_128x256x64_s4_k16_p8", p) == rounded(2 * slice));
  CHECK(bytes("wgmma_128x256x64_s4_k16_p8", with_batch(p, 5)) == rounded(10 * slice));
  const size_t table = 256 + 5 * mp::kWgmmaItemBytes;
  const size_t aligned_table = (table + 255) / 256 * 256;
  CHECK(bytes("wgmma_128x256x64_s4", with_pointers(p, 5)) == aligned_table);
  CHECK(bytes("wgmma_128x256x64_s4_k3", with_pointers(p, 5)) ==
        aligned_table + rounded(15 * slice));
}

TEST_CASE("select wgmma: clusters over k are not selected if SMs are limited") {
  mp::Device limited = kH200;
  const mp::GemmShape s = shape(problem(512, 128, 32 * 28 * 28, MP_OP_T, MP_OP_N));
  const auto parts = [&](const char *measured) {
    return mp::plan_gemm(s, {limited, mp::builtin_gemm_tuning(), SIZE_MAX}, measured).parts;
  };
  const char *const name = "wgmma_128x256x64_s4_k16_p8";
  CHECK((parts(nullptr) > 1 && parts(name) == 8));
  limited.has_sm_limit = true;
  CHECK((parts(nullptr) == 1 && parts(name) == 1));
}

TEST_CASE("select wgmma: clusters that do not run at the same time take turns") {
  // Eight SMs hold one cluster of eight blocks or two of four, each of which has one tile.
  const mp::Device device = cuda_device(90, 8, kH200.smem_per_block);
  const auto waves = [&](const char *name, int64_t tiles) {
    return plan_named(name, problem(64 * tiles, 128, 8192), device).cost.waves;
  };
  CHECK(waves("wgmma_64x128x64_s8_k8_p8", 1) == 1);
  CHECK(waves("wgmma_64x128x64_s8_k8_p8", 3) == 3);
  CHECK(waves("wgmma_64x128x64_s8_k4_p4", 3) == 2);
  CHECK(waves("wgmma_64x128x64_s8_k16_p8", 3) == 6);
  // Clusters of six leave SMs of a GPC idle.
  CHECK(mp::clusters_at_a_time(kH200, 8) == 16);
  CHECK(mp::clusters_at_a_time(kH200, 6) == 16);
  CHECK(mp::clusters_at_a_time(kH200, 4) == 33);
}

TEST_CASE("select wgmma: the epilogue determines the store path of a tile") {
  using mp::StorePath, mp::wgmma_store_path;
  const mp::GemmProblem p = problem(512, 512, 512);
  CHECK(wgmma_store_path(shape(p).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_pointers(p, 3)).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_bias(p)).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_aux(p, MP_ACT_GELU)).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_ld_of_d(p, 513)).out) == StorePath::staged);
  CHECK(wgmma_store_path(shape(with_fp32_d(p, 0)).out) == StorePath::direct);
  CHECK(wgmma_store_path(shape(with_fp32_d(p, 1)).out) == StorePath::direct);
  CHECK(wgmma_store_path(shape(with_bias(with_fp32_d(p, 0))).out) == StorePath::staged);

  mp::GemmProblem q = p;
  q.out.d.base = memory + 8;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::staged);
  q.out.d.base = memory + 16;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  // C or aux requires a tensor map too; there is space for one.
  q = p;
  q.out.beta = 1;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_aux(q, MP_ACT_GELU)).out) == StorePath::staged);
  CHECK(wgmma_store_path(shape(with_pointers(q, 3)).out) == StorePath::staged);
  q.out.c.ld = 513;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::staged);
  q.out.beta = 0;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  // Columns of the product that D lacks: their values must not be used.
  q = p;
  q.out.n = 640;
  CHECK(wgmma_store_path(shape(q).out) == StorePath::tma);
  CHECK(wgmma_store_path(shape(with_bias(q)).out) == StorePath::staged);
}

TEST_CASE("select thin: at most 32 rows with op_a = N in FP16 or BF16 on sm_90") {
  const mp::GemmProblem p = problem(16, 1760, 1760),
                        transposed = problem(16, 1760, 1760, MP_OP_T, MP_OP_T);
  for (const std::string name : {"thin_16x64x64_s8", "thin_32x64x64_s8_k8_p8"}) {
    CHECK(why_not(name, p, kH200) == "");
    CHECK(why_not(name, problem(32, 64, 1024, MP_OP_N, MP_OP_N), kHost) == "");
    CHECK(why_not(name, problem(33, 1760, 1760), kH200) == "requires m of at most 32");
    CHECK(why_not(name, transposed, kH200) == "requires op_a = MP_OP_N");
    CHECK(why_not(name, with_pointers(p, 2), kH200) == "does not support arrays of pointers");
    CHECK(why_not(name, with_inputs(p, MP_FP32), kH200) == MP_REQUIRES_HALF_TYPE);
    CHECK(why_not(name, p, kA100) == "requires sm_90");
  }
  CHECK(why_not("thin_16x64x64_s8_k16_p16", p, kH200) == "unknown");
  CHECK(why_not("thin_16x64x64_s8_k4_p4", problem(16, 1760, 200), kH200) ==
        "requires a larger k for this split");
  mp::Device limited = kH200;
  limited.num_sms = 1;  // an SM limit; every sm_90 runs clusters of eight blocks
  CHECK(why_not("thin_16x64x64_s8_k8_p8", p, limited) == "");
}

TEST_CASE("select thin: most SMs read B, without workspace") {
  for (const auto &[m, n, k] : {std::tuple{16, 1760, 1760}, std::tuple{32, 1760, 1760},
                                std::tuple{8, 1024, 500000}, std::tuple{16, 2560, 2560}})
    for (const mp_op_t op_b : {MP_OP_N, MP_OP_T}) {
      const mp::GemmPlan best = plan_of(problem(m, n, k, MP_OP_N, op_b), kH200);
      CAPTURE(m, n, k, best.name);
      CHECK(best.kernel->family == mp::GemmFamily::thin);
      const mp::TileCounts tiles = tile_counts(*best.kernel, 1, m, n);
      CHECK(tiles.m * tiles.n * best.split_k >= 112);
      CHECK(best.workspace.bytes == 0);
      CHECK(best.cost.launches == 1);
      CHECK(cluster_text(best) == std::to_string(best.split_k) + " blocks, which split k");
      CHECK(best.cost.dram_mb < 1.01e-6 * 2 * (double(m) * k + double(k) * n + double(m) * n));
    }
}
