// dbias, the column sums of D: with every kernel, in one order of summation, by a pass over D or
// from partial sums that the epilogue writes.
#include <algorithm>

#include "gemm_run.h"

using namespace mptest;

namespace {

/// Not a multiple of any tile, with separate padding for C, D and aux.
GemmCase make_case(mp_dtype_t ab, mp_dtype_t cd, int64_t m = 131, int64_t n = 69, int64_t k = 50) {
  GemmCase c = gemm_case(m, n, k, "NN", {ab, cd});
  c.pad = 3;
  c.dbias = true;
  return c;
}

constexpr Types kTypes[] = {
    {MP_FP16, MP_FP16}, {MP_FP16, MP_FP32}, {MP_BF16, MP_BF16}, {MP_FP32, MP_FP32}};

}  // namespace

TEST_CASE("dbias: equals the column sums of D", "[gemm][short]") {
  for (const Types &types : kTypes) {
    GemmCase c = make_case(types.ab, types.cd);
    check_every_kernel(c);
    c.m = 1000;
    c.fill = Fill::kReal;
    check_every_kernel(c);
  }
}

TEST_CASE("dbias: has the same bits in repeated calls and with all kernels that give the same D",
          "[gemm]") {
  GemmCase c = make_case(MP_FP16, MP_FP16);
  c.m = 700;
  c.fill = Fill::kRounding;
  c.alpha = 1.0f / 64.0f;  // a power of two: D stays exact before rounding, and finite
  GemmRun run(c);
  std::vector<uint8_t> first;
  for (const std::string &kernel : run.kernels()) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      check_launch(run, kernel, Misaligned::kNo);
      if (first.empty()) first = run.output_bits();
      expect_none(run.output_bits() == first ? "" : "D or dbias differs between equal calls",
                  run.repro());
    }
  }
}

TEST_CASE("dbias: as many row blocks are summed in parallel as workspace allows", "[gemm]") {
  // 2800 rows of three items in blocks of at least 512, whose borders are within the items.  No
  // kernel writes partial sums of an fp32 D, so the workspace is that of the row blocks for every
  // kernel.
  GemmCase c = make_case(MP_FP16, MP_FP32);
  c.m = 933;
  c.n = 72;
  c.batch = 3;
  GemmRun run(c);
  const size_t wanted = run.workspace_bytes(""), of_chunk = 72 * sizeof(float);
  CHECK(wanted == 6 * of_chunk);
  for (const size_t bytes : {size_t{0}, of_chunk, 2 * of_chunk, wanted - 1, wanted}) {
    CAPTURE(bytes);
    check_launch(run, "simt_64x64x16", bytes);
  }
  c.fill = Fill::kReal;
  check_kernels(c, [](const std::string &kernel) { return kernel == "simt_64x64x16"; });
}

TEST_CASE("dbias: wide and tall matrices are summed correctly", "[gemm]") {
  for (const auto &[m, n] : {std::pair<int64_t, int64_t>{1, 1030}, {1030, 1}, {3, 257}}) {
    GemmCase c = make_case(MP_FP16, MP_FP32);
    c.m = m;
    c.n = n;
    check_every_kernel(c);
  }
}

// ---------------------------------------------------------------------------- partial column sums

namespace {

constexpr int64_t kRows = 16, kVector = 8;

int64_t round_up(int64_t x, int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

/// Bytes of the partial sums of 16 rows each, after the kernel's other workspace; columns rounded
/// up.
struct PartialSumLayout {
  PartialSumLayout(const GemmCase &c, size_t own_bytes)
      : first(static_cast<size_t>(round_up(static_cast<int64_t>(own_bytes), 256))),
        end(first +
            static_cast<size_t>(round_up(
                c.batch * round_up(c.m, kRows) / kRows * round_up(c.n, kVector) * 4, 256))) {}
  const size_t first, end;
};

/// Returns whether the workspace behind the kernel's own was written.
bool has_partial_sums(const GemmRun &run, const PartialSumLayout &layout) {
  const std::vector<uint8_t> workspace = run.workspace();
  return std::any_of(workspace.begin() + static_cast<ptrdiff_t>(layout.first), workspace.end(),
                     [](uint8_t byte) { return byte != kPoison; });
}

/// Checks that a workspace for the partial sums and one that is a byte too small give the same
/// bits.  Requires at most 512 rows: one row block.
void check_subtiles(const GemmCase &c) {
  GemmCase without_dbias = c;
  without_dbias.dbias = false;
  const GemmRun own_run(without_dbias);
  GemmRun run(c);
  int count = 0;
  for (const std::string &kernel : run.kernels()) {
    const bool is_split =
        kernel.find("_k") != std::string::npos;  // split-k kernels write no partial sums
    if (!is_wgmma(kernel) || is_split) continue;
    const PartialSumLayout layout(c, own_run.workspace_bytes(kernel));
    std::vector<uint8_t> bits;
    for (const bool has_room : {true, false}) {
      check_launch(run, kernel, layout.end - (has_room ? 0 : 1));
      std::vector<uint8_t> last = run.output_bits();
      if (has_room)
        expect_none(has_partial_sums(run, layout) ? "" : "partial sums are missing", run.repro());
      else
        expect_none(last == bits ? "" : "a pass over D gives other bits", run.repro());
      bits = std::move(last);
    }
    count++;
  }
  CHECK(count > 0);
}

}  // namespace

TEST_CASE("dbias: epilogues write sums of 16 rows if workspace has room", "[gemm][wgmma]") {
  if (!has_wgmma()) return;
  for (const mp_dtype_t cd : {MP_FP16, MP_BF16}) {
    GemmCase c = make_case(MP_FP16, cd, 267, 523, 72);
    c.fill = Fill::kRounding;
    c.alpha = 1.0f / 64.0f;
    check_subtiles(c);
    c.m = 512;
    c.n = 256;
    check_subtiles(c);
  }
  GemmCase c = make_case(MP_BF16, MP_BF16, 131, 69, 600);  // also tested with split-k shapes
  c.batch = 3;
  c.fill = Fill::kRounding;
  c.alpha = 1.0f / 64.0f;
  check_subtiles(c);
}

TEST_CASE("dbias: partial sums include every other part of the epilogue", "[gemm][wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = make_case(MP_FP16, MP_FP16, 139, 266, 72);
  c.batch = 2;
  c.bias = MP_FP32;  // also added to rows past the last
  check_subtiles(c);
  c.amax = c.found_inf = true;
  check_subtiles(c);
  c.beta = -2.0f;
  check_subtiles(c);
  c.beta = 0.0f;
  c.aux = true;
  for (const mp_activation_t activation : {MP_ACT_RELU, MP_ACT_DRELU, MP_ACT_DGELU}) {
    c.activation = activation;
    check_subtiles(c);
  }
  c.special = Special::kInfinity;  // affects only its columns and subtiles
  check_subtiles(c);
}

TEST_CASE("dbias: partial sums are stored after the copies of A and B", "[gemm][wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = make_case(MP_FP16, MP_FP16, 139, 69, 50);
  c.op = "NT";
  c.multiple = 1;  // rows of A and B have 53 elements, those of D 72
  check_subtiles(c);
}

TEST_CASE("dbias: no partial sums are written without dbias", "[gemm][wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = make_case(MP_FP16, MP_FP16, 139, 266, 72);
  c.dbias = false;
  GemmRun run(c);
  for (const std::string &kernel : run.kernels()) {
    const size_t own = run.workspace_bytes(kernel);
    const PartialSumLayout layout(c, own);
    check_launch(run, kernel, layout.end);
    expect_none(has_partial_sums(run, layout) ? "partial sums were written" : "", run.repro());
  }
}

TEST_CASE("dbias: partial sums of many rows are added in the row blocks of a pass over D",
          "[gemm][wgmma]") {
  if (!has_wgmma()) return;
  GemmCase c = make_case(MP_FP16, MP_FP16, 1400, 72, 64);
  c.batch = 2;
  c.fill = Fill::kRounding;
  c.alpha = 1.0f / 64.0f;
  GemmRun run(c);
  std::vector<uint8_t> first;
  for (const std::string &kernel : run.kernels()) {
    // Room for everything that a pass uses, with partial sums and without.
    for (const int64_t more : {int64_t{72 * 4 * 6}, int64_t{1} << 20}) {
      check_launch(run, kernel, run.workspace_bytes(kernel) + static_cast<size_t>(more));
      if (first.empty()) first = run.output_bits();
      expect_none(run.output_bits() == first ? "" : "other bits", run.repro());
    }
  }
}
