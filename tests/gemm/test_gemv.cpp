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

/// Rows or columns of the small operand, the extent of the other operand, and k.
struct Shape {
  int64_t count, extent, k;
};

/// `few_rows`: D is count x extent; otherwise extent x count.
GemmCase make_case(const Shape &shape, bool few_rows, const std::string &op, const Types &types) {
  return few_rows ? gemm_case(shape.count, shape.extent, shape.k, op, types)
                  : gemm_case(shape.extent, shape.count, shape.k, op, types);
}

/// Checks few rows and few columns in every order of the operands.
void check_orders(const Shape &shape, const Types &types) {
  for (const bool few_rows : {true, false}) {
    for (const char *const op : kAllOps) {
      GemmRun run(make_case(shape, few_rows, op, types));
      check_launch(run, "gemv", Misaligned::kNo);
    }
  }
}

}  // namespace

TEST_CASE("gemv: every number of vectors is exact", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (int64_t count = 1; count <= 16; ++count) check_orders({count, 37, 45}, types);
  }
}

TEST_CASE("gemv: extents around vectors, cache lines and tiles are exact", "[gemm]") {
  for (const Types &types : kAllTypes) {
    for (const int64_t count : {1, 3, 16}) {
      for (const int64_t extent : {1, 7, 8, 9, 16, 31, 32, 33, 63, 65, 127, 129, 257, 300})
        check_orders({count, extent, 24}, types);
    }
  }
}

TEST_CASE("gemv: k around vectors and steps is exact", "[gemm]") {
  for (const Types &types : kAllTypes) {
    for (const int64_t count : {1, 2, 7, 15}) {
      for (const int64_t k : {0, 1, 3, 4, 7, 8, 9, 15, 17, 33, 63, 65, 100})
        check_orders({count, 41, k}, types);
    }
  }
}

TEST_CASE("gemv: k around stages is exact", "[gemm]") {
  for (const Types &types : kOneOfEach) {
    for (const int64_t count : {1, 4, 8, 16}) {
      for (const int64_t k : {511, 513, 1024, 1025, 2047, 2049, 4097})
        check_orders({count, 10, k}, types);
    }
  }
}

TEST_CASE("gemv: tall and wide shapes are exact from one split of k to one per thread", "[gemm]") {
  for (const Types &types : kOneOfEach) {
    for (const Shape &shape : {Shape{1, 1, 20000}, Shape{16, 16, 5001}, Shape{1, 9000, 9},
                               Shape{16, 3000, 1}, Shape{5, 2100, 40}, Shape{1, 700, 300}})
      check_orders(shape, types);
  }
}

TEST_CASE("gemv: k of more than one stage is exact", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    check_orders({1, 9, 2100}, types);
    check_orders({5, 33, 1030}, types);
    check_orders({11, 17, 530}, types);
  }
}

TEST_CASE("gemv: reals are within the derived bound and have the same bits in repeated calls",
          "[gemm]") {
  for (const Types &types : kOneOfEach) {
    for (const bool few_rows : {true, false}) {
      for (const char *const op : kAllOps) {
        for (const Shape &shape : {Shape{1, 130, 3001}, Shape{8, 67, 555}, Shape{16, 70, 1000}}) {
          GemmCase c = make_case(shape, few_rows, op, types);
          c.fill = Fill::kReal;
          c.alpha = 0.3f;
          c.beta = -1.7f;
          GemmRun run(c);
          check_same_bits(run, "gemv");
        }
      }
    }
  }
}

TEST_CASE("gemv: nothing is read beyond the operands", "[gemm][short]") {
  // The buffers have no guard zones and are multiples of 256 bytes, so AddressSanitizer and
  // compute-sanitizer detect accesses past them.  68 and 12 end in half a vector, 3 and 5 in a
  // partial group of vectors.
  for (const Shape &shape : {Shape{3, 68, 64}, Shape{5, 12, 512}}) {
    for (const bool few_rows : {true, false}) {
      for (const char *const op : kAllOps) {
        const GemmCase c = make_case(shape, few_rows, op, {MP_FP32, MP_FP32});
        const DeviceMemory a(static_cast<size_t>(c.m * c.k) * 4);
        const DeviceMemory b(static_cast<size_t>(c.k * c.n) * 4);
        DeviceBuffer<float> d(c.m * c.n);
        const auto clear = [](const DeviceMemory &memory, int64_t elems) {
          const std::vector<float> zeros(static_cast<size_t>(elems), 0.0f);
          copy_bytes(memory.data(), zeros.data(), zeros.size() * sizeof(float));
        };
        clear(a, c.m * c.k);
        clear(b, c.k * c.n);
        mp_gemm_desc_t desc = mp_gemm_desc_default(c.m, c.n, c.k, c.ab, c.cd);
        desc.op_a = op[0] == 'N' ? MP_OP_N : MP_OP_T;
        desc.op_b = op[1] == 'N' ? MP_OP_N : MP_OP_T;
        desc.ld_a = op[0] == 'N' ? c.k : c.m;
        desc.ld_b = op[1] == 'N' ? c.n : c.k;
        desc.plan = named_plan("gemv");
        require_ok(mp_gemm(context(), &desc, a.data(), b.data(), nullptr, d.data(), nullptr,
                           nullptr, 0, kStream));
        require_ok(mp_stream_sync(context(), kStream));
        CHECK(d.download() == std::vector<float>(static_cast<size_t>(c.m * c.n), 0.0f));
      }
    }
  }
}
