// Tests of bench/timing/agreement.h: correct results agree, and a wrong element is found at any
// position.
#include "bench/timing/agreement.h"

#include "bench/suites/batched_operation.h"
#include "bench/suites/problem.h"
#include "tests/support/testing.h"

using namespace mpbench;
using Catch::Matchers::StartsWith;

namespace {

constexpr int64_t kRows = 300, kCols = 520;

/// A matrix in device memory, and work that writes values into it.
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
  /// Compares the correct values with those that `work` writes.
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

/// The same GEMM by another kernel, with operands that `change` may change.
PeerCall other_kernel(
    const Operation &operation, void (*change)(Operands &) = [](Operands &) {}) {
  return {{.limit = 0, .used = 0}, [=](Operands t) {
            change(t);
            operation.enqueue("simt_64x64x16", t, {});
          }};
}

Shape shape_of(int64_t m, int64_t n, int64_t k, mp_op_t op_a = MP_OP_N, mp_op_t op_b = MP_OP_T) {
  return {.set = "test", .m = m, .n = n, .k = k, .op_a = op_a, .op_b = op_b};
}

/// Reference for a batch: one call of mp_gemm per matrix, on the operands of each set.
PeerCall loop_of(const Machine &machine, const BatchedShape &shape) {
  return {{.limit = 0, .used = 0}, [&machine, shape](const Operands &t) {
            const std::vector<ItemOffsets> offsets = shape.offsets();
            for (int64_t i = 0; i < shape.count; ++i) {
              Shape item = shape.gemm;
              item.m = shape.rows_of(i);
              const ItemOffsets &at = offsets[static_cast<size_t>(i)];
              const mp_gemm_desc_t desc = make_desc(item, MP_FP16, MP_FP16);
              check(mp_gemm(
                  machine.context(), &desc, static_cast<const char *>(t.first) + 2 * at.first,
                  static_cast<const char *>(t.second) + 2 * at.second, nullptr,
                  static_cast<char *>(t.out) + 2 * at.out, nullptr, nullptr, 0, machine.stream()));
            }
          }};
}

}  // namespace

TEST_CASE("bench: elements beyond the bound are found at any position", "[bench]") {
  const Matrix d;
  const size_t last = d.right().size() - 1;
  const Tolerance quarter{.absolute = 0.25, .relative = 0}, wide{.absolute = 1e30, .relative = 1};
  struct Case {
    size_t place;
    float added;
    Tolerance tolerance;
    bool is_found;
  };
  for (const auto &[place, added, tolerance, is_found] :
       {Case{0, 0, kSmall, false}, Case{0, 1, kSmall, true}, Case{65536, 1, kSmall, true},
        Case{last, 1, kSmall, true}, Case{65537, 0.249f, quarter, false},
        Case{65537, 0.251f, quarter, true}, Case{7, INFINITY, wide, true},
        Case{7, -INFINITY, wide, true}, Case{7, NAN, wide, true}}) {
    std::vector<float> values = d.right();
    values[place] += added;
    CAPTURE(place, added);
    const std::string found = "1 of 156000 elements, first at index " + std::to_string(place);
    CHECK_THAT(d.difference_to(d.writing(values), tolerance), StartsWith(is_found ? found : ""));
    CHECK(d.difference_to(d.writing(values), tolerance).empty() == !is_found);
  }
}

TEST_CASE("bench: an unwritten last row is found", "[bench]") {
  const Matrix d;
  const std::vector<float> values(d.right().begin(), d.right().end() - kCols);
  CHECK_THAT(d.difference_to(d.writing(values), kSmall), StartsWith("520 of 156000 elements"));
  // Even if the memory already contains the correct values.
  CHECK_THAT(d.difference_to([] {}, kSmall), StartsWith("156000 of 156000 elements"));
}

TEST_CASE("bench: the bound of a sum grows with its length and the roundoff of its type",
          "[bench]") {
  // 2 (16 + 48) 2^-23 41: 64 products.
  const Tolerance tolerance = tolerance_of_sums(64, MP_FP16);
  CHECK(tolerance.absolute == 2 * 64 * 0x1p-23 * 41);
  CHECK(tolerance.relative == 0x1p-10);
  CHECK(tolerance_of_sums(64, MP_BF16).relative == 0x1p-7);
  CHECK(tolerance_of_sums(64, MP_FP32).relative == 0x1p-23);
  CHECK(tolerance.of(-2, 1) == tolerance.absolute + 2 * 0x1p-10);
  // The bound is small compared with the size of the sums, sqrt(k)/3, even for the longest k of the
  // sets.
  for (const double k : {64., 4096., 28672.})
    CHECK(tolerance_of_sums(static_cast<int64_t>(k), MP_FP16).absolute < 0.03 * std::sqrt(k) / 3);
}

TEST_CASE("bench: two kernels agree, and a sum without one element of k does not", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const mp_dtype_t dtype = GENERATE(from_range(mptest::kHalfTypes));
  const auto k = GENERATE(int64_t{33}, int64_t{512}, int64_t{4096});
  const mp_dtype_t out =
      GENERATE_COPY(mp_dtype_t{dtype}, MP_FP32);  // GENERATE_COPY keeps a reference to an lvalue
  CAPTURE(mp_dtype_name(dtype), mp_dtype_name(out), k);
  const Shape shape = shape_of(72, 136, k);
  mp_gemm_desc_t desc = make_desc(shape, dtype, out);
  RandomPool pool(machine, dtype);
  Problem problem(machine, pool, gemm_operation(machine, shape, desc));
  CHECK(problem.difference_to(other_kernel(gemm_operation(machine, shape, desc))) == "");
  desc.k -= 1;
  CHECK(problem.difference_to(other_kernel(gemm_operation(machine, shape, desc))) != "");
}

TEST_CASE("bench: results without the accumulated input do not agree", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  Shape shape = shape_of(64, 64, 128, MP_OP_T, MP_OP_N);
  shape.is_wgrad = true;
  mp_gemm_desc_t desc = make_desc(shape, MP_FP16, MP_DTYPE_NONE);
  RandomPool pool(machine, MP_FP16);
  Problem problem(machine, pool, gemm_operation(machine, shape, desc));
  CHECK(problem.difference_to(other_kernel(gemm_operation(machine, shape, desc))) == "");
  desc.beta = 0;
  CHECK_THAT(problem.difference_to(other_kernel(gemm_operation(machine, shape, desc))),
             StartsWith("4096 of 4096"));
}

TEST_CASE("bench: two kernels agree for every epilogue, and an omitted part is found", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const Epilogue epilogue =
      GENERATE(Epilogue::kNone, Epilogue::kBias, Epilogue::kBiasRelu, Epilogue::kBiasGeluAux,
               Epilogue::kDgeluDbias, Epilogue::kAmaxFoundInf, Epilogue::kAccumulateFp32);
  CAPTURE(kind_of(epilogue).name);
  const EpilogueShape shape{shape_of(72, 136, 256), epilogue};
  const mp_gemm_desc_t desc = make_desc(shape, MP_FP16);
  RandomPool pool(machine, MP_FP16);
  Problem problem(machine, pool, epilogue_operation(machine, shape, desc));
  const Operation operation = epilogue_operation(machine, shape, desc);
  CHECK(problem.difference_to(other_kernel(operation)) == "");
  const EpilogueTensors &t = problem.first_set().epilogue;
  if (epilogue == Epilogue::kDgeluDbias) {
    CHECK(t.dbias[135] != 0);
  } else if (t.amax != nullptr) {
    CHECK(*t.amax > 1);
    CHECK(*t.found_inf == 0);
  }
  const auto without_bias = [](Operands &o) { o.epilogue.bias = nullptr; };
  const auto without_aux = [](Operands &o) { o.epilogue.aux = nullptr; };
  if (t.bias != nullptr) CHECK(problem.difference_to(other_kernel(operation, without_bias)) != "");
  if (epilogue == Epilogue::kBiasGeluAux)
    CHECK_THAT(problem.difference_to(other_kernel(operation, without_aux)),
               StartsWith("9792 of 9792"));
}

TEST_CASE("bench: batches and groups agree with a loop of GEMMs", "[bench]") {
  const Machine machine(MP_DEVICE_HOST);
  const BatchForm form =
      GENERATE(BatchForm::kStrided, BatchForm::kPointers, BatchForm::kGrouped, BatchForm::kRagged);
  CAPTURE(name_of(form));
  BatchedShape shape{form, 3, shape_of(40, 72, 64)};
  RandomPool pool(machine, MP_FP16);
  Problem problem(machine, pool, batched_operation(machine, shape, MP_FP16));
  CHECK(problem.difference_to(loop_of(machine, shape)) == "");
  // Without the last matrix.
  shape.count = 2;
  if (!is_group(form))
    CHECK_THAT(problem.difference_to(loop_of(machine, shape)), StartsWith("2880 of 8640"));
}
