// The wgmma kernels by name: every tile, cluster and split, at the boundaries of their pipelines.
//
// Requires wgmma: sm_90, or the host target, whose simulator supports it.  On the host target these
// tests are intended for checked mode with many seeds; `make test` runs them with 20.
#include "gemm_run.h"
#include "tests/support/named_plan.h"

using namespace mptest;

namespace {

/// True for "wgmma_128x256x64_s4_c2", not for "..._k4".
bool is_unsplit(const std::string &kernel) {
  return is_wgmma(kernel) && !splits_k(kernel);
}

/// Checks every tile, alone and in clusters.
void check(const std::string &line) {
  if (has_wgmma()) check_kernels(line, is_unsplit);
}
/// Checks every split of k too.
void check_splits(const std::string &line) {
  if (has_wgmma()) check_kernels(line, is_wgmma);
}

}  // namespace

TEST_CASE("wgmma: every order of operands and type with several tiles per block", "[wgmma]") {
  // Full and partial tiles of 128 x 256, 256 x 128, ...; their numbers are odd and even, so that
  // clusters have a last tile without a partner.  In the simulator, a block has at least three
  // tiles.
  check("m=520 n=520 k=72 op=NN|NT|TN|TT ab/cd=fp16/fp16|bf16/fp32");
  check("op/m/n=NN/1100/100|NT/100/1100 k=72 cd=fp16");
  // Columns of two and three tiles for each order of B, half of which is loaded by each cluster
  // block.
  check("op/m/n=NN/1290/64|TT/1290/64|TN/650/192|NT/650/192 k=136 cd=fp16");
}

TEST_CASE("wgmma: k below, at and above the depth of the pipeline", "[wgmma]") {
  // A stage has 64 of k; a pipeline has 4, 6 or 8 stages.  Each of the three tiles continues at the
  // ring position where the previous tile ended.
  check("m=260 n=264 op=NT k=1|63|65|255|257|385|513 cd=fp16");
  check("m=260 n=264 op=TN k=16|64|192|256|320|384|512|1000 cd=fp16");
}

TEST_CASE("wgmma: awkward shapes are exact", "[wgmma]") {
  check(
      "m/n/k=1/1/1|1/129/64|127/1/33|128/256/64|256/128/64|257/129/31|129/255/65|64/64/128|63/65/7|"
      "17/19/23|5/300/300|190/130/40|256/64/64|257/65/31|128/192/64|129/193/65 op=NN|NT|TN|TT "
      "cd=fp16");
}

TEST_CASE("wgmma: 16-bit tiles are exact with TMA stores and staged stores", "[wgmma]") {
  const std::string line = "m=272 n=520 k=80 op=NT activation=relu amax=1 found_inf=1 ";
  check(line + "cd=fp16|bf16 bias=fp32");
  // TMA still works with an offset of 16 bytes.
  check(line + "cd=fp16 bias=fp16 offset/pad=8/0|0/3");
  check(line + "cd=fp16 bias=fp16 pad=3 activation=gelu fill=real beta/aux/dbias=0/0/0|-2/1/1");
}

TEST_CASE("wgmma: C and aux are loaded and stored with a 16-bit D", "[wgmma][long]") {
  // The bias has a partial last subtile.
  const std::string line = "n=520 k=80 op=NT ab/cd/bias=fp16/fp16/bf16|bf16/bf16/fp16 ";
  check(line + "m=272 beta=-2");
  check(line + "beta=-2 amax=1 found_inf=1 in_place/batch/m=1/1/272|0/3/136");
  check(line +
        "m=136 batch=3 amax=1 found_inf=1 aux=1 fill=real "
        "activation=none|relu|gelu|tanh|drelu|dgelu|dsigmoid");
}

TEST_CASE("wgmma: the last slice loads C and aux", "[wgmma]") {
  const std::string line = "m=136 n=264 k=520 op=TN cd=fp16 bias=fp16 ";
  check_splits(line + "beta=-2");
  check_splits(line + "activation=dgelu aux=1 amax=1 fill=real");
}

TEST_CASE("wgmma: fp32 tiles are exact with direct stores", "[wgmma]") {
  const std::string line = "m=272 n=520 k=80 op=TN alpha=-2 ";
  check(line + "beta=0|-3");
  check(line + "beta/in_place=0/0|1/1|-3/0 scale=2 amax=1 found_inf=1");
}

TEST_CASE("wgmma: backward epilogues are exact", "[wgmma]") {
  check("m=260 n=264 k=72 cd=fp16 activation=backward aux=1 dbias=1 amax=1 found_inf=1 fill=real");
}

TEST_CASE("wgmma: D that does not support TMA is exact", "[wgmma]") {
  // n is odd, so the rows of D are not 16-byte aligned; those of A and B are.
  check("m=272 n=517 k=80 op=NT cd=fp16");
}

TEST_CASE("wgmma: split-k sums in a fixed order", "[wgmma]") {
  if (!has_wgmma()) return;
  check_splits("m=136 n=264 k=1100 op=TN beta=1 bias=fp32");
  GemmRun run(gemm_case("m=72 n=136 k=2050 op=NT cd=fp16 fill=real"));
  for (const std::string &kernel : run.kernels()) {
    if (!is_wgmma(kernel)) continue;
    check_same_bits(run, kernel);
  }
}

TEST_CASE("wgmma: slices that a cluster adds have the bits of slices in workspace", "[wgmma]") {
  if (!has_wgmma()) return;
  // Partial tiles; the last slice is shorter.  Clusters of eight and of fewer blocks.
  for (const GemmCase &c :
       gemm_cases("m=40 n=72 op=TN k/cd=3012/fp32|8132/fp16 fill=real alpha=-2 beta=1 amax=1 "
                  "found_inf=1 dbias=1")) {
    GemmRun run(c);
    for (const std::string &kernel : run.kernels()) {
      const size_t suffix = kernel.find("_p");
      if (!is_wgmma(kernel) || suffix == std::string::npos) continue;
      check_same_bits(run, kernel);
      // Groups of 8 slices; without clusters, groups of 24 have 6.
      if (kernel.find("_k24") != std::string::npos) continue;
      const std::vector<uint8_t> bits = run.output_bits();
      require_ok(run.launch(kernel.substr(0, suffix)));
      expect_none(run.output_bits() == bits ? "" : kernel + " has other bits without clusters",
                  run.repro());
    }
  }
}

TEST_CASE("wgmma: slices that a cluster adds are exact with every epilogue", "[wgmma]") {
  if (!has_wgmma()) return;
  const auto check_clusters = [](const std::string &line) {
    check_kernels(line, [](const std::string &kernel) {
      return is_wgmma(kernel) && kernel.find("_p") != std::string::npos;
    });
  };
  check_clusters(
      "m=136 n=264 k=1100 op=NT cd=fp16 bias=fp32 activation=relu aux=1 amax=1 found_inf=1 dbias=1 "
      "scale=2 pad/beta/zero_scale=0/0/0|3/-2/1");
  // Sums that are NaN or infinite in one block of the cluster.
  check_clusters("m=72 n=136 k=1100 op=TN ab=bf16 special=inf|nan place=last amax=1 found_inf=1");
}

TEST_CASE("wgmma: slices are added in the order of k", "[wgmma]") {
  if (!has_wgmma()) return;
  // Slices with sums 2^25, 1, -2^25 and, of thin kernels, 0: 2^25 absorbs the 1 unless it is added
  // last.
  constexpr int64_t kM = 32, kN = 128, kSlice = 128, kK = 4 * kSlice;
  constexpr uint16_t kOne = 0x3c00, kBig = 0x7800, kMinusBig = 0xf800,
                     kFactor = 0x6400;  // 2^15, 2^10
  struct Order {
    const char *kernel;
    int64_t num_slices;
    uint16_t order[3];
  };
  for (const auto &[kernel, num_slices, order] :
       {Order{"wgmma_64x128x64_s8_k3", 3, {kBig, kOne, kMinusBig}},
        Order{"wgmma_64x128x64_s8_k3", 3, {kBig, kMinusBig, kOne}},
        Order{"wgmma_64x128x64_s8_k3_p3", 3, {kBig, kOne, kMinusBig}},
        Order{"wgmma_64x128x64_s8_k3_p3", 3, {kBig, kMinusBig, kOne}},
        Order{"thin_32x64x64_s8_k4_p4", 4, {kBig, kOne, kMinusBig}},
        Order{"thin_32x64x64_s8_k4_p4", 4, {kBig, kMinusBig, kOne}}}) {
    std::vector<uint16_t> a(kM * kK), b(kK * kN);
    for (int64_t slice = 0; slice < 3; ++slice) {
      for (int64_t i = 0; i < kM; ++i) a[i * kK + slice * kSlice] = order[slice];
      const uint16_t factor = order[slice] == kOne ? kOne : kFactor;
      for (int64_t j = 0; j < kN; ++j) b[slice * kSlice * kN + j] = factor;
    }
    const DeviceBuffer<uint16_t> a_device(a), b_device(b);
    const DeviceBuffer<float> d_device(kM * kN);
    mp_gemm_desc_t desc = mp_gemm_desc_default(kM, kN, num_slices * kSlice, MP_FP16, MP_FP32);
    desc.ld_a = kK;
    desc.plan = named_plan(kernel);
    const DeviceWorkspace workspace(mp_gemm_workspace_size, context(), &desc, nullptr);
    require_ok(mp_gemm(context(), &desc, a_device.data(), b_device.data(), nullptr, d_device.data(),
                       nullptr, workspace.data(), workspace.bytes(), kStream));
    require_ok(mp_stream_sync(context(), kStream));
    const float expected = order[2] == kOne ? 1.0f : 0.0f;
    int64_t wrong = 0;
    for (const float value : d_device.download()) wrong += value != expected;
    CHECK(wrong == 0);
  }
}

TEST_CASE("wgmma: batches by stride, shared operands and pointers", "[wgmma]") {
  check(
      "m=136 n=136 k=72 batch=3 found_inf=1 op/cd/beta/pad/pointers="
      "NN/fp16/1/0/0|TT/fp16/1/0/0|NT/fp16/0/3/0|TN/fp16/0/3/0|NN/fp16/0/3/1|TN/fp16/0/3/1|"
      "NT/fp32/1/3/1|TT/fp32/1/3/1");
  check("m=136 n=200 k=72 op=NT cd=fp16 batch=3 shared_a/shared_b=1/0|0/1|1/1");
  check_splits("m=72 n=136 k=600 op=TN ab=bf16 batch=2 pointers=0|1");
}

TEST_CASE("wgmma: blocks take series of tiles of the same item behind pointers", "[wgmma]") {
  // Series of up to 16 tiles on 1, 2 or 5 SMs.
  check("m=512 n=512 k=24 op=NT cd=fp16 batch=5 pointers=1");
}

TEST_CASE("wgmma: batch items with misaligned pointers are multiplied", "[wgmma]") {
  check("m=136 n=200 k=72 op=NT cd=fp16 batch=3 pointers=1 offset=1 beta=1");
}

TEST_CASE("wgmma: one misaligned pointer among many is detected in any warp and block", "[wgmma]") {
  if (!has_wgmma()) return;
  check_kernels("m=8 n=8 k=8 op=NT cd=fp16 pointers=1 batch/stray=40/a39|600/b599",
                [](const std::string &kernel) { return kernel == "wgmma_128x128x64_s6"; });
}

TEST_CASE("wgmma: non-finite values affect only their rows and columns", "[wgmma]") {
  // Zeros past the edge times infinity are NaN: none may be stored or counted.
  const std::string line = "m=140 n=270 k=70 op=NT cd=fp16 special=inf|nan amax=1 found_inf=1 ";
  check(line + "place/beta=first/0|last/0|last/1");
}
