// dbias, the column sums of D: with every kernel, in one order of summation, by a pass over D or
// from partial sums that the epilogue writes.
#include <algorithm>

#include "gemm_run.h"

using namespace mptest;

namespace {

/// Not a multiple of any tile, with separate padding for C, D and aux.
const std::string kBase = "m=131 n=69 k=50 pad=3 dbias=1 ";
/// Integers that D rounds; alpha is a power of two, so that D is exact before rounding, and finite.
const std::string kRounded = "cd=fp16 fill=rounding alpha=0.015625 ";

}  // namespace

TEST_CASE("dbias: equals the column sums of D", "[gemm][short]") {
  check_every_kernel(kBase +
                     "ab/cd=fp16/fp16|fp16/fp32|bf16/bf16|fp32/fp32 m/fill=131/exact|1000/real");
}

TEST_CASE("dbias: has the same bits in repeated calls and with all kernels that give the same D",
          "[gemm]") {
  GemmRun run(gemm_case(kBase + kRounded + "m=700"));
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
  const std::string line = kBase + "m=933 n=72 batch=3 ";
  GemmRun run(gemm_case(line));
  const size_t wanted = run.workspace_bytes(""), of_chunk = 72 * sizeof(float);
  CHECK(wanted == 6 * of_chunk);
  for (const size_t bytes : {size_t{0}, of_chunk, 2 * of_chunk, wanted - 1, wanted}) {
    CAPTURE(bytes);
    check_launch(run, "simt_64x64x16", bytes);
  }
  check_kernels(line + "fill=real",
                [](const std::string &kernel) { return kernel == "simt_64x64x16"; });
}

TEST_CASE("dbias: wide and tall matrices are summed correctly", "[gemm]") {
  check_every_kernel(kBase + "m/n=1/1030|1030/1|3/257");
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
    if (!is_wgmma(kernel) || splits_k(kernel)) continue;  // split-k kernels write none
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
void check_subtiles(const std::string &line) {
  if (!has_wgmma()) return;
  for (const GemmCase &c : gemm_cases(kBase + line)) check_subtiles(c);
}

}  // namespace

TEST_CASE("dbias: epilogues write sums of 16 rows if workspace has room", "[gemm][wgmma]") {
  check_subtiles(kRounded + "cd=fp16|bf16 m/n=267/523|512/256 k=72");
  check_subtiles(kRounded + "ab=bf16 cd=bf16 k=600 batch=3");  // also tested with split-k shapes
}

TEST_CASE("dbias: partial sums include every other part of the epilogue", "[gemm][wgmma]") {
  // The bias is also added to rows past the last; infinity affects only its columns and subtiles.
  const std::string line = "m=139 n=266 k=72 cd=fp16 batch=2 bias=fp32 ";
  check_subtiles(line);
  check_subtiles(line + "amax=1 found_inf=1 beta=0|-2");
  check_subtiles(line +
                 "amax=1 found_inf=1 aux=1 "
                 "activation/special=relu/none|drelu/none|dgelu/none|dgelu/inf");
}

TEST_CASE("dbias: partial sums are stored after the copies of A and B", "[gemm][wgmma]") {
  // Rows of A and B have 53 elements, those of D 72.
  check_subtiles("m=139 op=NT cd=fp16 multiple=1");
}

TEST_CASE("dbias: no partial sums are written without dbias", "[gemm][wgmma]") {
  if (!has_wgmma()) return;
  const GemmCase c = gemm_case(kBase + "m=139 n=266 k=72 cd=fp16 dbias=0");
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
  GemmRun run(gemm_case(kBase + kRounded + "m=1400 n=72 k=64 batch=2"));
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
