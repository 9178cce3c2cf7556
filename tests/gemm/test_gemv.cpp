// The kernel "gemv": products with at most 16 rows or at most 16 columns.
//
// The 256 threads of a block share a tile of the larger operand and split k; the number of splits
// depends on the extents, the batch and the device.  The shapes are at the boundaries of all of
// these: 16-byte vectors, steps, stages of 512 to 2048 elements of k, tiles of 32 to 2048.  All
// tests that call check_every_kernel also run this kernel, with every option and alignment.
#include "gemm_run.h"
#include "tests/support/named_plan.h"

using namespace mptest;

namespace {

/// Returns the start of a line: few rows and few columns in every order of the operands.
std::string all_orders(int count, int extent) {
  return format("m/n=%d/%d|%d/%d op=NN|NT|TN|TT ", count, extent, extent, count);
}

void check_orders(int count, int extent, const std::string &rest) {
  check_library_choice(all_orders(count, extent) + rest + " kernel=gemv");
}

}  // namespace

TEST_CASE("gemv: every number of vectors is exact", "[gemm][short]") {
  for (int count = 1; count <= 16; ++count) check_orders(count, 37, "k=45 types=each");
}

TEST_CASE("gemv: extents around vectors, cache lines and tiles are exact", "[gemm]") {
  for (const int count : {1, 3, 16}) {
    for (const int extent : {1, 7, 8, 9, 16, 31, 32, 33, 63, 65, 127, 129, 257, 300})
      check_orders(count, extent, "k=24 types=each");
  }
}

TEST_CASE("gemv: k around vectors and steps is exact", "[gemm]") {
  for (const int count : {1, 2, 7, 15})
    check_orders(count, 41, "k=0|1|3|4|7|8|9|15|17|33|63|65|100 types=each");
}

TEST_CASE("gemv: k around stages is exact", "[gemm]") {
  for (const int count : {1, 4, 8, 16})
    check_orders(count, 10, "k=511|513|1024|1025|2047|2049|4097 types=each");
}

TEST_CASE("gemv: tall and wide shapes are exact from one split of k to one per thread", "[gemm]") {
  check_orders(1, 1, "k=20000 types=each");
  check_orders(16, 16, "k=5001 types=each");
  check_orders(1, 9000, "k=9 types=each");
  check_orders(16, 3000, "k=1 types=each");
  check_orders(5, 2100, "k=40 types=each");
  check_orders(1, 700, "k=300 types=each");
}

TEST_CASE("gemv: k of more than one stage is exact", "[gemm][short]") {
  check_orders(1, 9, "k=2100 types=each");
  check_orders(5, 33, "k=1030 types=each");
  check_orders(11, 17, "k=530 types=each");
}

TEST_CASE("gemv: reals are within the derived bound and have the same bits in repeated calls",
          "[gemm]") {
  for (const auto &[count, extent, k] :
       {std::tuple{1, 130, 3001}, std::tuple{8, 67, 555}, std::tuple{16, 70, 1000}}) {
    for (const GemmCase &c :
         gemm_cases(all_orders(count, extent) +
                    format("k=%d types=each fill=real alpha=0.3 beta=-1.7", k))) {
      GemmRun run(c);
      check_same_bits(run, "gemv");
    }
  }
}

TEST_CASE("gemv: nothing is read beyond the operands", "[gemm][short]") {
  // The buffers have no guard zones and are multiples of 256 bytes, so AddressSanitizer and
  // compute-sanitizer detect accesses past them.  68 and 12 end in half a vector, 3 and 5 in a
  // partial group of vectors.
  for (const auto &[count, extent, k] : {std::tuple{3, 68, 64}, std::tuple{5, 12, 512}}) {
    for (const GemmCase &c : gemm_cases(all_orders(count, extent) + format("k=%d ab=fp32", k))) {
      const DeviceMemory a(static_cast<size_t>(c.m * c.k) * 4);
      const DeviceMemory b(static_cast<size_t>(c.k * c.n) * 4);
      DeviceBuffer<float> d(c.m * c.n);
      require_ok(mp_memset(context(), a.data(), 0, static_cast<size_t>(c.m * c.k) * 4, kStream));
      require_ok(mp_memset(context(), b.data(), 0, static_cast<size_t>(c.k * c.n) * 4, kStream));
      mp_gemm_desc_t desc = mp_gemm_desc_default(c.m, c.n, c.k, c.ab, c.cd);
      desc.op_a = c.op[0] == 'N' ? MP_OP_N : MP_OP_T;
      desc.op_b = c.op[1] == 'N' ? MP_OP_N : MP_OP_T;
      desc.ld_a = c.op[0] == 'N' ? c.k : c.m;
      desc.ld_b = c.op[1] == 'N' ? c.n : c.k;
      desc.plan = named_plan("gemv");
      require_ok(mp_gemm(context(), &desc, a.data(), b.data(), nullptr, d.data(), nullptr, nullptr,
                         0, kStream));
      require_ok(mp_stream_sync(context(), kStream));
      CHECK(d.download() == std::vector<float>(static_cast<size_t>(c.m * c.n), 0.0f));
    }
  }
}
