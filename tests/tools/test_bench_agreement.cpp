// bench/timing/agreement.h: two correct results agree, and wrong ones are noticed wherever they are wrong.
#include "bench/timing/agreement.h"

#include "bench/suites/batched_operation.h"
#include "bench/suites/problem.h"
#include "tests/support/testing.h"

using namespace mpbench;
using Catch::Matchers::StartsWith;

namespace {

constexpr int64_t kRows = 300, kCols = 520, kTile = 128;

/// A matrix in device memory, and works that write values into it.
class Matrix {
 public:
  Matrix() : machine_(MP_DEVICE_HOST), d_(make_buffer(machine_.context(), kRows * kCols, MP_FP32)) {
    RandomPool(machine_, MP_FP32).fill(d_.data(), kRows * kCols);
    machine_.synchronize();
    right_.assign(d_.as<float>(), d_.as<float>() + kRows * kCols);
  }

  const std::vector<float> &right() const { return right_; }
  Work writing(std::vector<float> values) const {
    return [this, values = std::move(values)] {
      check(mp_memcpy(machine_.context(), d_.data(), values.data(), values.size() * sizeof(float),
                      machine_.stream()));
    };
  }
  /// Between what is right and what `work` writes.
  std::string difference_to(const Work &work, const Tolerance &tolerance) const {
    const std::vector<Result> results = {
        {.data = d_.data(), .count = kRows * kCols, .dtype = MP_FP32, .is_added_to = false}};
    const Values own = values_of(machine_, writing(right_), results);
    return difference(machine_, own, work, results, tolerance);
  }

 private:
  Machine machine_;
  Buffer d_;
  std::vector<float> right_;
};

constexpr Tolerance kSmall = {.absolute = 1e-6, .relative = 1e-6};

/// The same GEMM by another kernel, of other operands where a test has changed them.
class OtherKernel : public Peer {
 public:
  explicit OtherKernel(Operation operation) : operation_(std::move(operation)) {}
  size_t choices() const override { return 1; }
  PeerWorkspace workspace(size_t) const override { return {.limit = 0, .used = 0}; }
  void enqueue(const Operands &t, size_t) const override {
    Operands changed = t;
    change(changed);
    operation_.enqueue("simt_64x64x16", changed, {});
  }

  std::function<void(Operands &)> change = [](Operands &) {};

 private:
  Operation operation_;
};

Shape shape_of(int64_t m, int64_t n, int64_t k, mp_op_t op_a = MP_OP_N, mp_op_t op_b = MP_OP_T) {
  return {.set = "test",
          .m = m,
          .n = n,
          .k = k,
          .op_a = op_a,
          .op_b = op_b,
          .is_wgrad = false,
          .comment = {}};
}

/// What stands in each set of operands for a batch: as many calls of mp_gemm.
class Loop : public Peer {
 public:
  Loop(const Machine &machine, const BatchedShape &shape) : machine_(machine), shape_(shape) {}
  size_t choices() const override { return 1; }
  PeerWorkspace workspace(size_t) const override { return {.limit = 0, .used = 0}; }
  void enqueue(const Operands &t, size_t) const override {
    const std::vector<ItemOffsets> offsets = shape_.offsets();
    for (int64_t i = 0; i < shape_.count; ++i) {
      Shape item = shape_.gemm;
      item.m = shape_.rows_of(i);
      const ItemOffsets &at = offsets[static_cast<size_t>(i)];
      const mp_gemm_desc_t desc = make_desc(item, MP_FP16, MP_FP16);
      check(mp_gemm(machine_.context(), &desc, static_cast<const char *>(t.first) + 2 * at.first,
                    static_cast<const char *>(t.second) + 2 * at.second, nullptr,
                    static_cast<char *>(t.out) + 2 * at.out, nullptr, nullptr, 0,
                    machine_.stream()));
    }
  }

 private:
  const Machine &machine_;
  BatchedShape shape_;
};

}  // namespace

TEST_CASE("bench: what is equal agrees", "[bench]") {
  const Matrix d;
  CHECK(d.difference_to(d.writing(d.right()), kSmall) == "");
}

TEST_CASE("bench: one wrong tile in the far corner is noticed", "[bench]") {
  const Matrix d;
  std::vector<float> values = d.right();
  const int64_t row0 = kRows / kTile * kTile, col0 = kCols / kTile * kTile;
  for (int64_t row = row0; row < kRows; ++row)
    for (int64_t col = col0; col < kCols; ++col)
      values[static_cast<size_t>(row * kCols + col)] = d.right()[static_cast<size_t>(col)];
  CHECK_THAT(d.difference_to(d.writing(values), kSmall), StartsWith("352 of 156000 elements"));
}

TEST_CASE("bench: one element that is twice as large is noticed, wherever it is", "[bench]") {
  const Matrix d;
  for (const size_t place : {size_t{0}, size_t{65536}, d.right().size() - 1}) {
    std::vector<float> values = d.right();
    values[place] *= 2;
    CAPTURE(place);
    CHECK_THAT(d.difference_to(d.writing(values), kSmall),
               StartsWith("1 of 156000 elements, first at index " + std::to_string(place)));
  }
}

TEST_CASE("bench: a last row that nobody wrote is noticed", "[bench]") {
  const Matrix d;
  const std::vector<float> values(d.right().begin(), d.right().end() - kCols);
  CHECK_THAT(d.difference_to(d.writing(values), kSmall), StartsWith("520 of 156000 elements"));
  // Even where what was there before is what ought to be there.
  CHECK_THAT(d.difference_to([] {}, kSmall), StartsWith("156000 of 156000 elements"));
}

TEST_CASE("bench: what is not finite never agrees, with itself neither", "[bench]") {
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    const Matrix d;
    std::vector<float> values = d.right();
    values[7] = value;
    CHECK_THAT(d.difference_to(d.writing(values), {.absolute = 1e30, .relative = 1}),
               StartsWith("1 of 156000 elements, first at index 7"));
  }
}

TEST_CASE("bench: a difference is allowed up to the bound", "[bench]") {
  const Matrix d;
  const Tolerance tolerance{.absolute = 0.25, .relative = 0};
  std::vector<float> values = d.right();
  values[65537] += 0.249f;
  CHECK(d.difference_to(d.writing(values), tolerance) == "");
  values[65537] += 0.002f;
  CHECK_THAT(d.difference_to(d.writing(values), tolerance), StartsWith("1 of "));
}

TEST_CASE("bench: the bound of a sum of products grows with its length and the type", "[bench]") {
  // 2 (16 + 48) 2^-23 41: 64 products.
  const Tolerance tolerance = tolerance_of_sums(64, MP_FP16);
  CHECK(tolerance.absolute == 2 * 64 * 0x1p-23 * 41);
  CHECK(tolerance.relative == 0x1p-10);
  CHECK(tolerance_of_sums(64, MP_BF16).relative == 0x1p-7);
  CHECK(tolerance_of_sums(64, MP_FP32).relative == 0x1p-23);
  CHECK(tolerance.of(-2, 1) == tolerance.absolute + 2 * 0x1p-10);
  // Of values whose size is sqrt(k)/3 it is a small part, even for the longest k of the sets.
  for (const double k : {64., 4096., 28672.})
    CHECK(tolerance_of_sums(static_cast<int64_t>(k), MP_FP16).absolute < 0.03 * std::sqrt(k) / 3);
}

TEST_CASE("bench: two kernels agree, and one that leaves out an element of k does not", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const mp_dtype_t dtype = GENERATE(MP_FP16, MP_BF16);
  const auto k = GENERATE(int64_t{33}, int64_t{512}, int64_t{4096});
  const mp_dtype_t out =
      GENERATE_COPY(mp_dtype_t{dtype}, MP_FP32);  // of an lvalue it keeps a reference
  CAPTURE(mp_dtype_name(dtype), mp_dtype_name(out), k);
  const Shape shape = shape_of(72, 136, k);
  mp_gemm_desc_t desc = make_desc(shape, dtype, out);
  RandomPool pool(machine, dtype);
  Problem problem(machine, pool, gemm_operation(machine, shape, desc));
  CHECK(problem.difference_to(OtherKernel(gemm_operation(machine, shape, desc)), 0) == "");
  desc.k -= 1;
  CHECK(problem.difference_to(OtherKernel(gemm_operation(machine, shape, desc)), 0) != "");
}

TEST_CASE("bench: sums that leave out what was there do not agree", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  Shape shape = shape_of(64, 64, 128, MP_OP_T, MP_OP_N);
  shape.is_wgrad = true;
  mp_gemm_desc_t desc = make_desc(shape, MP_FP16, MP_DTYPE_NONE);
  RandomPool pool(machine, MP_FP16);
  Problem problem(machine, pool, gemm_operation(machine, shape, desc));
  CHECK(problem.difference_to(OtherKernel(gemm_operation(machine, shape, desc)), 0) == "");
  desc.beta = 0;
  CHECK_THAT(problem.difference_to(OtherKernel(gemm_operation(machine, shape, desc)), 0),
             StartsWith("4096 of 4096"));
}

TEST_CASE("bench: every epilogue computes the same by two kernels, and misses what is left out",
          "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const Epilogue epilogue =
      GENERATE(Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasRelu, Epilogue::kBiasGeluAux,
               Epilogue::kDgeluDbias, Epilogue::kAmaxFoundInf, Epilogue::kAccumulateFp32);
  CAPTURE(name_of(epilogue));
  const EpilogueShape shape{shape_of(72, 136, 256), epilogue};
  const mp_gemm_desc_t desc = make_desc(shape, MP_FP16);
  RandomPool pool(machine, MP_FP16);
  Problem problem(machine, pool, epilogue_operation(machine, shape, desc));
  OtherKernel other(epilogue_operation(machine, shape, desc));
  CHECK(problem.difference_to(other, 0) == "");
  const EpilogueTensors &t = problem.first_set().epilogue;
  if (epilogue == Epilogue::kDgeluDbias) {
    CHECK(t.dbias[135] != 0);
  } else if (t.amax != nullptr) {
    CHECK(*t.amax > 1);
    CHECK(*t.found_inf == 0);
  }
  if (t.bias != nullptr) {
    other.change = [](Operands &o) { o.epilogue.bias = nullptr; };
    CHECK(problem.difference_to(other, 0) != "");
  }
  if (epilogue == Epilogue::kBiasGeluAux) {
    other.change = [](Operands &o) { o.epilogue.aux = nullptr; };
    CHECK_THAT(problem.difference_to(other, 0), StartsWith("9792 of 9792"));
  }
}

TEST_CASE("bench: batches and groups are what a loop computes", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const BatchForm form =
      GENERATE(BatchForm::kStrided, BatchForm::kPointers, BatchForm::kGrouped, BatchForm::kRagged);
  CAPTURE(name_of(form));
  BatchedShape shape{form, 3, shape_of(40, 72, 64)};
  RandomPool pool(machine, MP_FP16);
  Problem problem(machine, pool, batched_operation(machine, shape, MP_FP16));
  CHECK(problem.difference_to(Loop(machine, shape), 0) == "");
  // The last of them left out.
  shape.count = 2;
  if (!is_group(form))
    CHECK_THAT(problem.difference_to(Loop(machine, shape), 0), StartsWith("2880 of 8640"));
}
