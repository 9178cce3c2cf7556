// Digests of the plans for the bench's shapes: kernel, split, store path, copies, workspace and
// predicted time.
//
// A change of kernel selection that intends to change plans updates kPlans; a refactoring leaves it
// unchanged.  To see the plans that differ, compare the texts of two builds:
//
//     MP_PLANS=before.txt build/tests/internals "plans: *"
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bench/shapes/rnn_shapes.h"
#include "bench_problems.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/rnn/rnn_problem.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Lines of text per device.
using Plans = std::map<std::string, std::string>;

struct {
  const char *name;
  mp::Device device;
  uint32_t digest;  ///< digest of the plans
} constexpr kPlans[] = {{"T4", kT4, 0x719d8d64},
                        {"A100", kA100, 0x54924cdc},
                        {"H20", kH20, 0x1ec65427},
                        {"H200", kH200, 0xe07be192},
                        {"sm_90 without wgmma", kH200WithoutWgmma, 0x3425542f},
                        {"sm_120", kRtx5090, 0xe9b83260},
                        {"host", kHost, 0x2303e269}};

/// Returns a 16-byte aligned address that is never read.
void *some_address() {
  alignas(16) static char data[16];
  return data;
}

constexpr size_t kSomeWorkspace = 1 << 20;

template <class... Values>
void append(std::string &text, const char *format, Values... values) {
  char line[512];
  REQUIRE(std::snprintf(line, sizeof line, format, values...) < static_cast<int>(sizeof line));
  text += line;
}

void append_plan(std::string &text, const char *name, const mp::GemmPlan &plan, size_t dbias_bytes,
                 size_t copied_bytes) {
  append(text,
         "  %s split %d cluster %d store %d copies %zu dbias %zu workspace %zu: %.6g us; first "
         "%zu: %.6g us; "
         "mapped %.6g us, aligned %.6g us\n",
         name, plan.split_k, plan.multicast, static_cast<int>(plan.store), copied_bytes,
         dbias_bytes, plan.workspace.bytes, plan.predicted_us, plan.best_workspace_bytes,
         plan.best_us, plan.mapped_us, plan.aligned_us);
}

void add_gemm(Plans &plans, const char *kind, const mp::GemmProblem &p, bool aligned = true) {
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  for (const auto &[name, device, digest] : kPlans) {
    std::string &text = plans[name];
    append(text, "%s, %" PRId64 "x%" PRId64 "x%" PRId64 " %d%d %d%d x %" PRId64 "\n", kind, p.out.m,
           p.out.n, p.k, p.op_a - MP_OP_N, p.op_b - MP_OP_N, p.dtype_ab, p.out.dtype,
           p.out.batch_count);
    for (const size_t limit : {size_t{0}, kSomeWorkspace, SIZE_MAX}) {
      const mp::GemmPlan plan = plan_of(p, device, tuning, aligned, limit);
      append_plan(text, plan.name, plan, mp::dbias_workspace_bytes(mp::shape_of(p.out), plan),
                  plan.copies.bytes());
    }
  }
}

/// Adds products with the fused epilogues of a transformer, also misaligned, batched and by
/// pointers.
void add_variants(Plans &plans, const mp::GemmProblem &p) {
  mp::GemmProblem forward = p;
  forward.out.epilogue.bias = some_address();
  forward.out.epilogue.dtype_bias = MP_FP32;
  forward.out.epilogue.activation = MP_ACT_GELU;
  forward.out.epilogue.aux = some_address();
  forward.out.epilogue.ld_aux = p.out.n;
  add_gemm(plans, "bias, GELU and aux", forward);
  mp::GemmProblem backward = p;
  backward.out.epilogue.activation = MP_ACT_DGELU;
  backward.out.epilogue.aux = some_address();
  backward.out.epilogue.ld_aux = p.out.n;
  backward.out.epilogue.dbias = static_cast<float *>(some_address());
  add_gemm(plans, "dGELU and dbias", backward);
  add_gemm(plans, "fp32 +=", with_fp32_d(p, 1.0f));
  add_gemm(plans, "misaligned A", p, false);
  mp::GemmProblem rows = p;
  rows.a.ld += 1;
  add_gemm(plans, "unaligned rows", rows);
  add_gemm(plans, "unaligned D", with_ld_of_d(p, p.out.n + 2));
  add_gemm(plans, "strided batch", with_batch(p, 12));
  add_gemm(plans, "batch of pointers", with_pointers(p, 12));
}

void add_ragged(Plans &plans, const mp::GemmProblem &p, mp_ragged_t dimension) {
  mp::RaggedProblem ragged{p, dimension, nullptr};
  ragged.all.out.batch_count = 8;
  ragged.all.b.stride = dimension == MP_RAGGED_M ? p.k * p.out.n : 0;
  ragged.all.out.c.stride = ragged.all.out.d.stride =
      dimension == MP_RAGGED_K ? p.out.m * p.out.n : 0;
  for (const auto &[name, device, digest] : kPlans) {
    std::string &text = plans[name];
    append(text, "ragged, %" PRId64 "x%" PRId64 "x%" PRId64 " %d\n", p.out.m, p.out.n, p.k,
           dimension - MP_RAGGED_M);
    for (const size_t limit : {size_t{0}, SIZE_MAX}) {
      const mp::GemmPlan plan =
          mp::plan_gemm(mp::shape_of(ragged), {device, mp::builtin_gemm_tuning(), limit});
      append_plan(text, plan.name, plan, 0, 0);
    }
  }
}

void add_conv(Plans &plans, const mp::ConvProblem &p) {
  for (const auto &[name, device, digest] : kPlans) {
    std::string &text = plans[name];
    append(text, "convolution, %d n%d %dx%dx%d k%d %dx%d %d\n", p.op - MP_CONV_FPROP, p.shape.n,
           p.shape.h, p.shape.w, p.shape.c, p.shape.k, p.shape.r, p.shape.s, p.dtype);
    for (const size_t limit : {size_t{0}, kSomeWorkspace, SIZE_MAX}) {
      const mp::ConvPlan plan = mp::plan_conv(p, {device, mp::builtin_gemm_tuning(), limit});
      append_plan(text, plan.name, plan.gemm,
                  mp::dbias_workspace_bytes(mp::shape_of(p.out), plan.gemm), plan.copy.bytes());
    }
  }
}

/// Adds the kernels of a recurrent network, best first, and the products and sizes of its passes.
void add_rnn(Plans &plans, const mp_rnn_desc_t &desc) {
  const mp::RnnShape s(desc);
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  for (const auto &[name, device, digest] : kPlans) {
    std::string &text = plans[name];
    append(text, "recurrent, cell %d, dtype %d, flags %u, n%d t%d h%d, %d layers:", s.cell, s.dtype,
           s.flags, s.batch, s.timesteps, s.hidden_size, s.layers);
    for (const mp::RnnKernel kernel : mp::rank_rnn_kernels(s, device))
      append(text, " %s%s", mp::why_not(kernel, s, device) == nullptr ? "" : "not ",
             mp::kRnnKernelNames[static_cast<int>(kernel)]);
    append(text, "; reserve %zu\n", mp::rnn_reserve(s).bytes);
    for (const mp::RnnPass pass : {mp::RnnPass::training, mp::RnnPass::inference,
                                   mp::RnnPass::backward_data, mp::RnnPass::backward_weights}) {
      size_t gemm_bytes = 0;
      for (int64_t layer = 0; layer < s.layers; layer++)
        for (const mp::RnnProduct product : mp::rnn_products(s, pass, layer)) {
          const mp::GemmShape shape = mp::shape_of(mp::rnn_product(s, product, layer));
          const mp::GemmPlan plan = mp::has_any_rows(s, product)
                                        ? mp::plan_for_any_rows(shape, {device, tuning})
                                        : mp::plan_gemm(shape, {device, tuning, SIZE_MAX});
          append_plan(text, plan.name, plan, 0, plan.copies.bytes());
          gemm_bytes = std::max(gemm_bytes, plan.workspace.bytes);
        }
      append(text, "  workspace %zu\n", mp::rnn_workspace(s, pass, gemm_bytes).bytes);
    }
  }
}

/// Adds a layer of the bench, which has no W_ih, and a network of two layers and directions.
void add_rnns(Plans &plans, const char *path) {
  for (const mpbench::RnnShape &shape : shapes_of(path, mpbench::parse_rnn))
    for (const mp_dtype_t dtype : {MP_FP16, MP_FP32}) {
      mp_rnn_desc_t desc = mpbench::layer_desc(shape, dtype);
      add_rnn(plans, desc);
      desc.flags = MP_RNN_FLAG_BIDIRECTIONAL;
      desc.layers = 2;
      add_rnn(plans, desc);
    }
}

Plans bench_plans() {
  Plans plans;
  std::vector<mp::GemmProblem> gemms;
  add_bench_gemms("llm_gemm_shapes.csv", mpbench::parse_llm, gemms);
  add_bench_gemms("transformer_gemm_shapes.csv", mpbench::parse_llm, gemms);
  for (const mp::GemmProblem &p : gemms)
    if (p.dtype_ab == MP_FP16) {
      add_variants(plans, p);
      add_ragged(plans, p, MP_RAGGED_M);
      add_ragged(plans, p, MP_RAGGED_K);
    }
  add_bench_gemms("deepbench_gemm_train.csv", mpbench::parse_deepbench, gemms);
  add_bench_gemms("deepbench_gemm_infer.csv", mpbench::parse_deepbench, gemms);
  add_bench_gemms("deepbench_gemm_infer_device.csv", mpbench::parse_deepbench, gemms);
  for (const mp::GemmProblem &p : gemms) add_gemm(plans, "plain", p);
  for (const char *const path : {"resnet50.csv", "deepbench_conv_train.csv"})
    for (const mp_dtype_t dtype : {MP_FP16, MP_FP32})
      for (mp::ConvProblem &p : bench_convolutions(path, dtype)) {
        add_conv(plans, p);
        p.out.dtype = MP_FP32;
        p.out.beta = 1.0f;
        add_conv(plans, p);
      }
  for (const char *const path :
       {"deepbench_rnn_train.csv", "deepbench_rnn_infer.csv", "deepbench_rnn_infer_device.csv"})
    add_rnns(plans, path);
  return plans;
}

uint32_t digest_of(const std::string &text) {  // FNV-1a
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace

TEST_CASE("plans: plans of the bench's shapes are unchanged") {
  const Plans plans = bench_plans();
  if (const char *const path = std::getenv("MP_PLANS"); path != nullptr) {
    std::ofstream file(path);
    for (const auto &[name, text] : plans) file << name << "\n" << text;
    REQUIRE(file.flush().good());
  }
  for (const auto &[name, device, digest] : kPlans) {
    CAPTURE(name);
    CHECK(digest_of(plans.at(name)) == digest);
  }
}

TEST_CASE("plans: costs that no plan of the bench's shapes shows") {
  const mp::GemmTuning &tuning = mp::builtin_gemm_tuning();
  // Five SMs hold two clusters.
  const auto us = [&](int64_t tiles) {
    const mp::Device device = cuda_device(90, 5, kH200.smem_per_block);
    return plan_named("wgmma_128x256x64_s4_c2", problem(128 * tiles, 256, 65536), device, tuning)
        .predicted_us;
  };
  CHECK(us(10) > 1.4 * us(8));
  // The host runs both warpgroups of a block on one thread.
  const mp::GemmProblem p = problem(1000, 2000, 3000);
  CHECK(plan_named("wgmma_128x128x64_s6", p, kH200).cost.ping_pong);
  CHECK(!plan_named("wgmma_128x128x64_s6", p, kHost).cost.ping_pong);
  // All items of a batch read the same B: A 6 MB, B 12 MB, D 4 MB.
  mp::GemmProblem shared = with_batch(p, 5);
  shared.b.stride = 0;
  CHECK(plan_named("wmma_128x128x32_s3", shared, kA100).cost.dram_mb == Approx(5 * (6 + 4) + 12));
}

TEST_CASE("plans: the work of a plan is counted") {
  // A 6 MB, B 12 MB, D 4 MB; 8 x 16 tiles on 108 SMs.
  mp::GemmProblem p = problem(1000, 2000, 3000);
  const auto cost = [&](const char *name) { return plan_named(name, p, kA100).cost; };
  const mp::PlanCost whole = cost("wmma_128x128x32_s3");
  CHECK(whole.launches == 1);
  CHECK(whole.waves == 2);
  CHECK(whole.slice_k == Approx(3008 / 1024.0));  // 94 k-tiles
  CHECK(whole.l2_mb == Approx(16 * 6 + 8 * 12));
  CHECK(whole.dram_mb == Approx(6 + 12 + 4));
  // Slices of 768; their fp32 sums, 8 MB each, are written and read.  Two blocks share an SM, and
  // the fifth one, alone, takes 1.3 times as long.
  const mp::PlanCost split = cost("wmma_128x128x32_s3_k4");
  CHECK(split.launches == 2);
  CHECK(split.waves == Approx(4 + 1.3));
  CHECK(split.slice_k == Approx(0.75));
  CHECK(split.dram_mb == Approx(6 + 12));
  CHECK(split.partial_mb == Approx(4 * 8 * 2));
  CHECK(split.post_pass_mb == Approx(4));
  const mp::GemmTuning tuning = tuning_with(
      "sm_80 launch_us=4 dram_us_per_mb=0.5 partial_us_per_mb=0.25\n"
      "sm_80 wmma_128x128x32_s3 2 16");
  CHECK(plan_named("wmma_128x128x32_s3_k4", p, kA100, tuning).predicted_us ==
        Approx(2 * 4 + 5.3 * (2 + 16 * 0.75) + 64 * 0.25 + 4 * 0.5));
  // Rows of A are not aligned: loads of one element, or a copy.
  p.a.ld = 3001;
  CHECK(cost("wmma_128x128x32_s3").scalar_elems == Approx(128 * 1024.0 / (1 << 20)));
  CHECK(cost("wmma_128x128x32_s3_copied").copied_mb == Approx(6).epsilon(0.01));
  CHECK(cost("wmma_128x128x32_s3_copied").launches == 2);
  // The epilogue of a tile reads C; each element takes a conversion and a multiply-add.
  p = with_fp32_d(problem(1000, 2000, 3000), 1);
  CHECK(cost("wmma_128x128x32_s3").epilogue.source_mb == Approx(128 * 128 * 4e-6));
  CHECK(cost("wmma_128x128x32_s3").epilogue.ops == Approx(2 * 128 * 128.0 / (1 << 20)));
  // The larger matrix in tiles of 16 rows, 63 of them; three vectors are padded to four.
  p = problem(3, 1000, 3000);
  CHECK(cost("gemv").waves == Approx(1000.0 * 3000 / 63 / (1 << 20)));
  CHECK(cost("gemv").slice_k == 4);
}
