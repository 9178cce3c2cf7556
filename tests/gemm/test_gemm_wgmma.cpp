// The wgmma kernels by name: every tile, cluster and split, at the boundaries of their pipelines.
//
// Requires wgmma: sm_90, or the host target, whose simulator supports it.  On the host target these
// tests are intended for checked mode with many seeds; `make test` runs them with 20.
#include "gemm_run.h"
#include "tests/support/named_plan.h"

using namespace mptest;

namespace {

constexpr Types kTypes[] = {{MP_FP16, MP_FP16}, {MP_BF16, MP_FP32}};

/// True for "wgmma_128x256x64_s4_c2", not for "..._k4".
bool is_unsplit(const std::string &kernel) {
  return is_wgmma(kernel) && kernel.find("_k") == std::string::npos;
}

/// Checks every tile, alone and in clusters.
void check(const GemmCase &c) {
  check_kernels(c, is_unsplit);
}
/// Checks every split of k too.
void check_splits(const GemmCase &c) {
  check_kernels(c, is_wgmma);
}

}  // namespace

TEST_CASE("wgmma: every order of operands and type with several tiles per block", "[wgmma]") {
  if (!has_wgmma()) return;
  // Full and partial tiles of 128 x 256, 256 x 128, ...; their numbers are odd and even, so that
  // clusters have a last tile without a partner.  In the simulator, a block has at least three
  // tiles.
  for (const Types &types : kTypes) {
    for (const char *const op : kAllOps) check(gemm_case(520, 520, 72, op, types));
  }
  check(gemm_case(1100, 100, 72));
  check(gemm_case(100, 1100, 72, "NT"));
  // Columns of two and three tiles for each order of B, half of which is loaded by each cluster
  // block.
  for (const char *const op : {"NN", "TT"}) check(gemm_case(1290, 64, 136, op));
  for (const char *const op : {"TN", "NT"}) check(gemm_case(650, 192, 136, op));
}

TEST_CASE("wgmma: k below, at and above the depth of the pipeline", "[wgmma]") {
  if (!has_wgmma()) return;
  // A stage has 64 of k; a pipeline has 4, 6 or 8 stages.  Each of the three tiles continues at the
  // ring position where the previous tile ended.
  for (const int64_t k : {1, 16, 63, 64, 65, 192, 255, 256, 257, 320, 384, 385, 512, 513, 1000})
    check(gemm_case(260, 264, k, k % 2 == 0 ? "TN" : "NT"));
}

TEST_CASE("wgmma: awkward shapes are exact", "[wgmma]") {
  if (!has_wgmma()) return;
  constexpr int64_t kShapes[][3] = {{1, 1, 1},      {1, 129, 64},   {127, 1, 33},   {128, 256, 64},
                                    {256, 128, 64}, {257, 129, 31}, {129, 255, 65}, {64, 64, 128},
                                    {63, 65, 7},    {17, 19, 23},   {5, 300, 300},  {190, 130, 40},
                                    {256, 64, 64},  {257, 65, 31},  {128, 192, 64}, {129, 193, 65}};
  for (const auto &[m, n, k] : kShapes) {
    for (const char *const op : kAllOps) check(gemm_case(m, n, k, op));
  }
}

TEST_CASE("wgmma: 16-bit tiles are exact with TMA stores and staged stores", "[wgmma]") {
  if (!has_wgmma()) return;
  for (const mp_dtype_t cd : {MP_FP16, MP_BF16}) {
    GemmCase c = gemm_case(272, 520, 80, "NT", {MP_FP16, cd});
    c.bias = MP_FP32;
    c.activation = MP_ACT_RELU;
    c.amax = c.found_inf = true;
    check(c);
    if (cd == MP_BF16) continue;
    c.bias = MP_FP16;
    c.offset = 8;  // 16 bytes: TMA still works
    check(c);
    c.offset = 0;
    c.pad = 3;
    check(c);
    c.activation = MP_ACT_GELU;
    c.fill = Fill::kReal;
    check(c);
    c.beta = -2.0f;
    c.aux = c.dbias = true;
    check(c);
  }
}

TEST_CASE("wgmma: C and aux are loaded and stored with a 16-bit D", "[wgmma][long]") {
  if (!has_wgmma()) return;
  for (const mp_dtype_t cd : {MP_FP16, MP_BF16}) {
    GemmCase c = gemm_case(272, 520, 80, "NT", {cd, cd});
    c.beta = -2.0f;
    c.bias = cd == MP_FP16 ? MP_BF16 : MP_FP16;  // partial last subtile
    check(c);
    c.in_place = true;
    c.amax = c.found_inf = true;
    check(c);
    c.in_place = false;
    c.batch = 3;
    c.m = 136;
    check(c);
    c.beta = 0.0f;
    c.aux = true;
    c.fill = Fill::kReal;
    for (const mp_activation_t activation : {MP_ACT_NONE, MP_ACT_RELU, MP_ACT_GELU, MP_ACT_TANH,
                                             MP_ACT_DRELU, MP_ACT_DGELU, MP_ACT_DSIGMOID}) {
      c.activation = activation;
      check(c);
    }
  }
}

TEST_CASE("wgmma: the last slice loads C and aux", "[wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = gemm_case(136, 264, 520, "TN");
  c.beta = -2.0f;
  c.bias = MP_FP16;
  check_splits(c);
  c.beta = 0.0f;
  c.activation = MP_ACT_DGELU;
  c.aux = c.amax = true;
  c.fill = Fill::kReal;
  check_splits(c);
}

TEST_CASE("wgmma: fp32 tiles are exact with direct stores", "[wgmma]") {
  if (!has_wgmma()) return;
  for (const auto &[beta, in_place] :
       {std::pair{0.0f, false}, std::pair{1.0f, true}, std::pair{-3.0f, false}}) {
    GemmCase c = gemm_case(272, 520, 80, "TN", {MP_FP16, MP_FP32});
    c.alpha = -2.0f;
    c.beta = beta;
    c.in_place = in_place;
    if (!in_place) check(c);
    c.scale = 2.0f;
    c.amax = c.found_inf = true;
    check(c);
  }
}

TEST_CASE("wgmma: backward epilogues are exact", "[wgmma]") {
  if (!has_wgmma()) return;
  for (const mp_activation_t activation : kBackwardActivations) {
    GemmCase c = gemm_case(260, 264, 72, "NN");
    c.activation = activation;
    c.aux = c.dbias = c.amax = c.found_inf = true;
    c.fill = Fill::kReal;
    check(c);
  }
}

TEST_CASE("wgmma: D that does not support TMA is exact", "[wgmma]") {
  if (!has_wgmma()) return;
  // n is odd, so the rows of D are not 16-byte aligned; those of A and B are.
  GemmCase c = gemm_case(272, 517, 80, "NT");
  c.multiple = 8;
  check(c);
}

TEST_CASE("wgmma: split-k sums in a fixed order", "[wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = gemm_case(136, 264, 1100, "TN", {MP_FP16, MP_FP32});
  c.beta = 1.0f;
  c.bias = MP_FP32;
  check_splits(c);
  c = gemm_case(72, 136, 2050, "NT");
  c.fill = Fill::kReal;
  GemmRun run(c);
  for (const std::string &kernel : run.kernels()) {
    if (!is_wgmma(kernel)) continue;
    check_same_bits(run, kernel);
  }
}

TEST_CASE("wgmma: slices that a cluster adds have the bits of slices in workspace", "[wgmma]") {
  if (!has_wgmma()) return;
  // Partial tiles; the last slice is shorter.  Clusters of eight and of fewer blocks.
  for (const int64_t k : {3012, 8132}) {
    GemmCase c = gemm_case(40, 72, k, "TN", {MP_FP16, k == 3012 ? MP_FP32 : MP_FP16});
    c.fill = Fill::kReal;
    c.alpha = -2.0f;
    c.beta = 1.0f;
    c.amax = c.found_inf = c.dbias = true;
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
  const auto check_clusters = [](const GemmCase &c) {
    check_kernels(c, [](const std::string &kernel) {
      return is_wgmma(kernel) && kernel.find("_p") != std::string::npos;
    });
  };
  GemmCase c = gemm_case(136, 264, 1100, "NT");
  c.bias = MP_FP32;
  c.activation = MP_ACT_RELU;
  c.aux = c.amax = c.found_inf = c.dbias = true;
  c.scale = 2.0f;
  check_clusters(c);
  c.pad = 3;
  c.beta = -2.0f;
  c.zero_scale = true;
  check_clusters(c);
  // Sums that are NaN or infinite in one block of the cluster.
  for (const Special special : {Special::kInfinity, Special::kNan}) {
    c = gemm_case(72, 136, 1100, "TN", {MP_BF16, MP_FP32});
    c.special = special;
    c.place = Place::kLast;
    c.amax = c.found_inf = true;
    check_clusters(c);
  }
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
  if (!has_wgmma()) return;
  for (const char *const op : kAllOps) {
    GemmCase c = gemm_case(136, 136, 72, op);
    c.batch = 3;
    c.beta = 1.0f;
    c.found_inf = true;
    check(c);
    c.beta = 0.0f;
    c.pad = 3;
    check(c);
    c.pointers = true;
    check(c);
    c.cd = MP_FP32;
    c.beta = 1.0f;
    check(c);
  }
  for (const auto &[shared_a, shared_b] :
       {std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
    GemmCase c = gemm_case(136, 200, 72, "NT");
    c.batch = 3;
    c.shared_a = shared_a;
    c.shared_b = shared_b;
    check(c);
  }
  GemmCase c = gemm_case(72, 136, 600, "TN", {MP_BF16, MP_FP32});  // also with split-k
  c.batch = 2;
  check_splits(c);
  c.pointers = true;
  check_splits(c);
}

TEST_CASE("wgmma: blocks take runs of tiles of the same item behind pointers", "[wgmma]") {
  if (!has_wgmma()) return;
  // Runs of up to 16 tiles on 1, 2 or 5 SMs.
  GemmCase c = gemm_case(512, 512, 24, "NT");
  c.batch = 5;
  c.pointers = true;
  check(c);
}

TEST_CASE("wgmma: batch items with misaligned pointers are multiplied", "[wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = gemm_case(136, 200, 72, "NT");
  c.batch = 3;
  c.pointers = true;
  c.offset = 1;
  c.beta = 1.0f;
  check(c);
}

TEST_CASE("wgmma: one misaligned pointer among many is detected in any warp and block", "[wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = gemm_case(8, 8, 8, "NT");
  c.pointers = true;
  for (const auto &[batch, stray] : {std::pair{40, "a39"}, std::pair{600, "b599"}}) {
    c.batch = batch;
    c.stray = stray;
    check_kernels(c, [](const std::string &kernel) { return kernel == "wgmma_128x128x64_s6"; });
  }
}

TEST_CASE("wgmma: non-finite values affect only their rows and columns", "[wgmma]") {
  if (!has_wgmma()) return;
  // Zeros past the edge times infinity are NaN: none may be stored or counted.
  for (const Special special : {Special::kInfinity, Special::kNan}) {
    for (const Place place : {Place::kFirst, Place::kLast}) {
      GemmCase c = gemm_case(140, 270, 70, "NT");
      c.special = special;
      c.place = place;
      c.amax = c.found_inf = true;
      check(c);
    }
  }
}
