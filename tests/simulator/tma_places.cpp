// TMA in the simulator: valid start coordinates of boxes, and valid ends of stored boxes.  The PTX
// ISA does not have these rules; they were observed on an H200 with driver 580.159.
#include <array>
#include <climits>

#include "tma_rules.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr TensorShape kHalves{MP_FP16, 100, 30, 3, 104, 104 * 30, 64, 8, false};
constexpr TensorShape kFloats{MP_FP32, 100, 30, 3, 104, 104 * 30, 32, 8, false};

void load(const mp::TensorMap &map, int x, int y, int z) {
  const SmemAddress bar = initialized_barrier();
  if (thread_index() == 0) {
    mbarrier_arrive_expect(bar, kBytes);
    noted_line = __LINE__, tma_load(box(0), map, bar, x, y, z);
  }
  mbarrier_wait(bar, 0);
}
void load_multicast(const mp::TensorMap &map, int x, int y, int z) {
  const SmemAddress bar = initialized_barrier();
  if (thread_index() == 0) {
    mbarrier_arrive_expect(bar, kBytes);
    noted_line = __LINE__, tma_load_multicast(box(0), map, bar, x, y, z, 1);
  }
  mbarrier_wait(bar, 0);
}
template <auto kStore>
void store(const mp::TensorMap &map, int x, int y, int z) {
  if (thread_index() != 0) return;
  noted_line = __LINE__ + 1;
  kStore(map, box(0), x, y, z, source_location::current());
  tma_store_commit();
  tma_store_wait_read<0>();
}

/// Primitive that copies a box; `copy` issues it in thread 0 and waits for its completion.
struct Primitive {
  std::string name;
  void (*copy)(const mp::TensorMap &, int x, int y, int z);
  TensorShape shape;
};
const Primitive kLoads[] = {{"tma_load", load, kHalves},
                            {"tma_load_multicast", load_multicast, kHalves}};
const Primitive kStores[] = {{"tma_store", store<tma_store>, kHalves},
                             {"tma_reduce_add", store<tma_reduce_add>, kFloats}};

auto at(const Primitive &primitive, const mp::TensorMap &map, int x, int y = 0, int z = 0) {
  return [copy = primitive.copy, map, x, y, z] { copy(map, x, y, z); };
}

/// Number of columns whose rows consist of full units.
constexpr int kWholeColumns = 96;

/// Checks first columns, except aligned columns before the tensor, which only loads support.
void check_first_columns(const Primitive &primitive) {
  const Tensor tensor(primitive.shape.with_columns(kWholeColumns));
  const int unit = primitive.shape.unit(), columns = kWholeColumns;
  for (const int x :
       {1, unit / 2, unit - 1, unit + 1, columns + unit / 2, INT_MAX, -1, -unit / 2, 1 - unit})
    check_violation(at(primitive, tensor.map(), x),
                    {"passes column " + std::to_string(x) + " to " + primitive.name +
                     ", which is not a multiple of 16 bytes"});
  for (const int x : {0, unit, columns - unit, columns, INT_MAX / unit * unit})
    check_fine(at(primitive, tensor.map(), x));
}

}  // namespace

TEST_CASE("tma: a first column that is not a multiple of 16 bytes is reported") {
  for (const Primitive &primitive : kLoads) {
    check_first_columns(primitive);
    const int unit = primitive.shape.unit();
    for (const int x : {-unit, -2 * unit, INT_MIN})
      check_fine(at(primitive, Tensor(primitive.shape).map(), x));
  }
  for (const Primitive &primitive : kStores) check_first_columns(primitive);
}

TEST_CASE("tma: a load may begin before the tensor, a store is reported") {
  const auto places = [](const TensorShape &shape) {
    return std::vector<std::array<int, 3>>{{-shape.unit(), 0, 0}, {INT_MIN, 0, 0}, {0, -1, 0},
                                           {0, INT_MIN, 0},       {0, 0, -1},      {8, -3, -1}};
  };
  for (const Primitive &primitive : kStores) {
    const Tensor tensor(primitive.shape.with_columns(kWholeColumns));
    for (const auto &[x, y, z] : places(primitive.shape))
      check_violation(at(primitive, tensor.map(), x, y, z),
                      {"passes column " + std::to_string(x) + ", row " + std::to_string(y) +
                       ", matrix " + std::to_string(z) + " to " + primitive.name + ": a store "});
    check_fine(at(primitive, tensor.map(), 0, 0, 0));
    check_fine(
        at(primitive, tensor.map(), 0, primitive.shape.rows, 0));  // first row after the tensor
    check_fine(at(primitive, tensor.map(), 0, 0, primitive.shape.matrices));
  }
  for (const Primitive &primitive : kLoads) {
    const Tensor tensor(primitive.shape);
    for (const auto &[x, y, z] : places(primitive.shape))
      check_fine(at(primitive, tensor.map(), x, y, z));
  }
}

TEST_CASE("tma: a store across the last column requires rows of a multiple of 16 bytes") {
  for (const Primitive &primitive : kStores) {
    const TensorShape &shape = primitive.shape;
    const int unit = shape.unit(), end = kWholeColumns;
    for (const int columns : {end - 1, end - unit / 2, end - unit + 1}) {
      CAPTURE(columns);
      const Tensor tensor(shape.with_columns(columns));
      for (const int x : {end - shape.box_columns, end - unit})
        check_violation(at(primitive, tensor.map(), x),
                        {"stores a box with " + primitive.name + " that ends at the last of " +
                         std::to_string(columns) + " columns, not at a multiple of 16 bytes"});
      // Boxes that end before the last unit or begin after it are valid.
      check_fine(at(primitive, tensor.map(), end - unit - shape.box_columns));
      check_fine(at(primitive, tensor.map(), end));
    }
    const Tensor whole(shape.with_columns(end));
    for (const int x : {end - shape.box_columns, end - shape.box_columns + unit, end - unit})
      check_fine(at(primitive, whole.map(), x));
    // The end of the box exceeds INT_MAX.
    const Tensor line(shape);
    mp::TensorMapSpec long_line = line.spec();
    long_line.extent[0] = INT_MAX, long_line.extent[1] = long_line.extent[2] = 1;
    check_violation(at(primitive, tensor_map(long_line), INT_MAX / unit * unit),
                    {"that ends at the last of 2147483647 columns, not at a multiple of 16 bytes"});
  }
  for (const Primitive &primitive : kLoads)
    for (const int columns : {kWholeColumns - 1, kWholeColumns - primitive.shape.unit() / 2})
      for (const int x :
           {kWholeColumns - primitive.shape.box_columns, kWholeColumns - primitive.shape.unit()})
        check_fine(at(primitive, Tensor(primitive.shape.with_columns(columns)).map(), x));
}
