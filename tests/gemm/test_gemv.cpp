// The kernel "gemv": products with at most 16 rows or at most 16 columns.
//
// The 256 threads of a block share a tile of the larger operand and split k; the number of splits
// depends on the extents, the batch and the device.  The shapes are at the boundaries of all of
// these: 16-byte vectors, steps, stages of 512 to 2048 elements of k, tiles of 32 to 2048.
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
  GemmCase c;
  c.m = few_rows ? shape.count : shape.extent;
  c.n = few_rows ? shape.extent : shape.count;
  c.k = shape.k;
  c.op = op;
  c.ab = types.ab;
  c.cd = types.cd;
  return c;
}

void check_gemv(const GemmCase &c) {
  GemmRun run(c);
  const mp_status_t status = run.launch("gemv");
  expect_none(status == MP_SUCCESS ? run.verify() : mp_last_error(), run.repro());
}

/// Checks few rows and few columns in every order of the operands.
void check_orders(const Shape &shape, const Types &types, void (*change)(GemmCase &) = nullptr) {
  for (const bool few_rows : {true, false}) {
    for (const char *const op : kAllOps) {
      GemmCase c = make_case(shape, few_rows, op, types);
      if (change != nullptr) change(c);
      check_gemv(c);
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

TEST_CASE("gemv: pointers and rows of any alignment are supported", "[gemm]") {
  for (const Types &types : kAllTypes) {
    for (const int64_t count : {1, 6, 13}) {
      for (const int64_t multiple : {1, 2, 4, 8}) {
        for (const int64_t offset : {0, 1}) {
          for (const char *const op : kAllOps) {
            for (const bool few_rows : {true, false}) {
              GemmCase c = make_case({count, 67, 90}, few_rows, op, types);
              c.multiple = multiple;
              c.offset = offset;
              c.beta = 1.0f;
              check_gemv(c);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("gemv: operands misaligned by one element and padded rows are supported",
          "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    check_orders({3, 35, 43}, types, [](GemmCase &c) { c.offset = 1, c.beta = 1.0f; });
    check_orders({3, 35, 43}, types, [](GemmCase &c) { c.multiple = 1, c.pad = 5, c.beta = 1.0f; });
  }
}

TEST_CASE("gemv: batches by stride, shared and by pointers", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const int64_t count : {1, 12}) {
      const Shape shape{count, 50, 70};
      check_orders(shape, types, [](GemmCase &c) { c.batch = 3, c.pad = 3; });
      check_orders(shape, types, [](GemmCase &c) { c.batch = 3, c.shared_a = true; });
      check_orders(shape, types, [](GemmCase &c) { c.batch = 3, c.shared_b = true; });
      check_orders(shape, types, [](GemmCase &c) {
        c.batch = 3;
        c.pointers = true;
        c.offset = 1;
        c.beta = -2.0f;
      });
    }
  }
}

TEST_CASE("gemv: alpha and beta, D out of place and in place", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const float alpha : {0.0f, -2.0f}) {
      for (const float beta : {0.0f, -3.0f}) {
        for (const bool in_place : {false, true}) {
          for (const bool few_rows : {true, false}) {
            GemmCase c = make_case({9, 70, 40}, few_rows, "NT", types);
            c.alpha = alpha;
            c.beta = beta;
            c.in_place = in_place;
            check_gemv(c);
          }
        }
      }
    }
  }
}

TEST_CASE("gemv: k = 0 computes the epilogue of beta C", "[gemm][short]") {
  for (const float beta : {0.0f, -3.0f}) {
    for (const bool few_rows : {true, false}) {
      GemmCase c = make_case({5, 66, 0}, few_rows, "NN", {MP_FP16, MP_FP16});
      c.beta = beta;
      c.bias = MP_FP32;
      c.activation = MP_ACT_RELU;
      c.aux = c.dbias = c.amax = c.found_inf = true;
      check_gemv(c);
    }
  }
}

TEST_CASE("gemv: the complete forward epilogue", "[gemm][short]") {
  for (const mp_activation_t activation :
       {MP_ACT_NONE, MP_ACT_RELU, MP_ACT_GELU, MP_ACT_SIGMOID, MP_ACT_TANH}) {
    for (const Types &types : kOneOfEach) {
      for (const int64_t count : {1, 6, 16}) {
        for (const bool few_rows : {true, false}) {
          GemmCase c = make_case({count, 69, 50}, few_rows, "NT", types);
          c.pad = 3;
          c.alpha = -1.0f;
          c.beta = -2.0f;
          c.scale = 2.0f;
          c.bias = MP_BF16;
          c.activation = activation;
          c.aux = activation != MP_ACT_NONE;
          c.dbias = c.amax = c.found_inf = true;
          check_gemv(c);
          c.in_place = true;
          c.batch = 2;
          check_gemv(c);
        }
      }
    }
  }
}

TEST_CASE("gemv: the complete backward epilogue", "[gemm][short]") {
  for (const mp_activation_t activation : kBackwardActivations) {
    for (const bool few_rows : {true, false}) {
      GemmCase c = make_case({7, 131, 50}, few_rows, "NN", {MP_FP16, MP_FP16});
      c.pad = 3;
      c.scale = 0.5f;
      c.fill = Fill::kReal;
      c.activation = activation;
      c.aux = c.dbias = c.amax = c.found_inf = true;
      check_gemv(c);
    }
  }
}

TEST_CASE("gemv: integers beyond 16 bits are rounded once, to nearest even", "[gemm][short]") {
  for (const Types &types : kAllTypes) {
    for (const bool few_rows : {true, false}) {
      GemmCase c = make_case({4, 65, 200}, few_rows, "NT", types);
      c.fill = Fill::kRounding;
      c.beta = 1.0f;
      check_gemv(c);
    }
  }
}

TEST_CASE("gemv: a non-finite element of A affects only its row", "[gemm][short]") {
  // k and the extent are not multiples of a vector: the padding must not spread the element.
  for (const mp_dtype_t dtype : {MP_FP16, MP_BF16, MP_FP32}) {
    for (const Special special : {Special::kInfinity, Special::kNan}) {
      for (const Place place : {Place::kFirst, Place::kMiddle, Place::kLast}) {
        for (const bool few_rows : {true, false}) {
          for (const char *const op : kAllOps) {
            GemmCase c = make_case({3, 67, 43}, few_rows, op, {dtype, MP_FP32});
            c.special = special;
            c.place = place;
            c.dbias = c.amax = c.found_inf = true;
            check_gemv(c);
          }
        }
      }
    }
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
          require_ok(run.launch("gemv"));
          expect_none(run.verify(), run.repro());
          const std::vector<uint8_t> first = run.output_bits();
          require_ok(run.launch("gemv"));
          const bool same_bits = run.output_bits() == first;
          expect_none(same_bits ? "" : "two equal calls gave different bits", run.repro());
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
