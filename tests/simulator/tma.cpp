// TMA in the simulator: every element of every box against the definition.
#include "tma.h"

#include <climits>

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kThreads = 64;

struct Place {
  int x, y, z;
};

const TensorShape kShapes[] = {
    {MP_FP16, 150, 21, 3, 152, 152 * 22, 64, 9, true},
    {MP_BF16, 50, 21, 2, 56, 56 * 21, 64, 24, true},  // the box is larger than a matrix
    {MP_FP16, 150, 21, 2, 152, 152 * 21, 40, 7, false},
    {MP_FP32, 70, 21, 3, 72, 72 * 22, 32, 12, true},
    {MP_FP32, 70, 21, 2, 72, 72 * 21, 52, 5, false},
    {MP_FP16, 64, 10, 4, 256, 64, 64, 8, true},  // interleaved matrices, like attention heads
    {MP_FP16, 300, 3, 1, 304, 0, 256, 1, false},
};

/// Returns boxes inside the tensor, across each edge and corner, just outside, and far outside.
std::vector<Place> places_of(const TensorShape &shape) {
  const auto along = [](int extent, int box, int unit) {
    const int last = (extent - 1) / unit * unit;  // unit of the last element
    const int far = INT_MAX / unit * unit;
    return std::vector<int>{INT_MIN,     -box, unit - box,        -unit,
                            0,           unit, 2 * unit,          last,
                            last + unit, far,  last + unit - box, last + 2 * unit - box};
  };
  std::vector<Place> places;
  for (int z : {-1, 0, shape.matrices - 1, shape.matrices})
    for (int y : along(shape.rows, shape.box_rows, 1))
      for (int x : along(shape.columns, shape.box_columns, shape.unit()))
        places.push_back({x, y, z});
  return places;
}

/// Returns boxes that can be stored: not before the tensor, and not across the last column if that
/// does not end a unit.
std::vector<Place> stored_places_of(const TensorShape &shape) {
  const bool has_whole_units = shape.columns % shape.unit() == 0;
  std::vector<Place> places = places_of(shape);
  std::erase_if(places, [&](const Place &at) {
    const bool crosses = at.x < shape.columns && at.x + shape.box_columns > shape.columns;
    return at.x < 0 || at.y < 0 || at.z < 0 || (crosses && !has_whole_units);
  });
  return places;
}

size_t smem_bytes(const TensorShape &shape) {
  return static_cast<size_t>(shape.box_bytes()) + kSwizzlePeriodBytes;
}

/// Copies with all threads of the block; `bytes` must be a multiple of 16.
void copy(uint8_t *to, const uint8_t *from, int bytes) {
  constexpr int kPiece = 16;
  for (int at = thread_index() * kPiece; at < bytes; at += kThreads * kPiece)
    std::memcpy(to + at, from + at, kPiece);
}

// ---------------------------------------------------------------- load

struct LoadArgs {
  mp::TensorMap map;
  const Place *places;
  int count, box_bytes;
  uint8_t *boxes;  ///< out, contiguous
};

MP_KERNEL(kThreads, 1) load_boxes(MP_PARAM(LoadArgs) args) {
  MP_SHARED(uint64_t, loaded, [1]);
  const SmemAddress bar = smem_address(loaded);
  uint8_t *const box = aligned_smem();
  if (thread_index() == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
    tma_prefetch(args.map);
  }
  block_sync();
  for (int i = 0; i < args.count; i++) {
    if (thread_index() == 0) {
      const Place place = args.places[i];
      mbarrier_arrive_expect(bar, static_cast<uint32_t>(args.box_bytes));
      tma_load(smem_address(box), args.map, bar, place.x, place.y, place.z);
    }
    mbarrier_wait(bar, static_cast<uint32_t>(i % 2));
    copy(args.boxes + static_cast<size_t>(i) * args.box_bytes, box, args.box_bytes);
    block_sync();
  }
}

// ---------------------------------------------------------------- store

struct StoreArgs {
  mp::TensorMap map;
  const Place *places;
  int count, box_bytes;
  bool add;
  const uint8_t *box;  ///< the contents of shared memory for every store
  uint8_t *tensor;     ///< the memory of the map; restored from `before` after every store
  const uint8_t *before;
  int tensor_bytes;
  uint8_t *tensors;  ///< out: a copy of the tensor after each store
};

MP_KERNEL(kThreads, 1) store_boxes(MP_PARAM(StoreArgs) args) {
  uint8_t *const box = aligned_smem();
  copy(box, args.box, args.box_bytes);
  async_proxy_fence();
  block_sync();
  for (int i = 0; i < args.count; i++) {
    if (thread_index() == 0) {
      const Place place = args.places[i];
      const auto store = args.add ? tma_reduce_add : tma_store;
      store(args.map, smem_address(box), place.x, place.y, place.z, source_location::current());
      tma_store_commit();
      tma_store_wait<0>();
    }
    block_sync();
    copy(args.tensors + static_cast<size_t>(i) * args.tensor_bytes, args.tensor, args.tensor_bytes);
    copy(args.tensor, args.before, args.tensor_bytes);
    block_sync();
  }
}

/// Returns a box, swizzled if its map is, of values that do not occur in the tensor.
std::vector<uint8_t> some_box(const TensorShape &shape) {
  std::vector<uint8_t> box(static_cast<size_t>(shape.box_bytes()));
  for (int row = 0; row < shape.box_rows; row++)
    for (int column = 0; column < shape.box_columns; column++) {
      const int value = 5000 + 64 * row + column;
      const float as_float = static_cast<float>(value);
      const uint16_t as_bits = static_cast<uint16_t>(value);
      uint8_t *const at = &box[static_cast<size_t>(place_in_box(shape, column, row))];
      if (shape.dtype == MP_FP32)
        std::memcpy(at, &as_float, 4);
      else
        std::memcpy(at, &as_bits, 2);
    }
  return box;
}

/// Reference implementation of a store or an fp32 reduction.
void store_or_add(Tensor &tensor, const TensorShape &shape, const std::vector<uint8_t> &box,
                  const Place &place, bool add) {
  for (int row = 0; row < shape.box_rows; row++)
    for (int column = 0; column < shape.box_columns; column++) {
      uint8_t *const element =
          tensor.element(int64_t{place.x} + column, int64_t{place.y} + row, place.z);
      if (element == nullptr) continue;
      const uint8_t *const from = &box[static_cast<size_t>(place_in_box(shape, column, row))];
      if (add) {
        float sum, term;
        std::memcpy(&sum, element, sizeof sum);
        std::memcpy(&term, from, sizeof term);
        sum += term;
        std::memcpy(element, &sum, sizeof sum);
      } else {
        std::memcpy(element, from, static_cast<size_t>(bytes_of(shape.dtype)));
      }
    }
}

void check_stores(const TensorShape &shape, bool add) {
  const std::vector<Place> places = stored_places_of(shape);
  const std::vector<uint8_t> box = some_box(shape);
  Tensor tensor(shape);
  const size_t tensor_bytes = tensor.size_bytes();
  const std::vector<uint8_t> all_before = tensor.bytes();
  const std::vector<uint8_t> before(tensor.base(), tensor.base() + tensor_bytes);
  std::vector<uint8_t> expected;
  for (const Place &place : places) {
    Tensor after(shape);
    store_or_add(after, shape, box, place, add);
    expected.insert(expected.end(), after.base(), after.base() + tensor_bytes);
  }
  in_every_mode([&] {
    std::vector<uint8_t> tensors(expected.size());
    run(store_boxes, {1, kThreads, smem_bytes(shape)},
        {tensor.map(), places.data(), static_cast<int>(places.size()), shape.box_bytes(), add,
         box.data(), tensor.base(), before.data(), static_cast<int>(tensor_bytes), tensors.data()});
    CHECK(tensor.bytes() == all_before);
    if (tensors == expected) return;
    for (size_t i = 0; i < places.size(); i++) {
      CAPTURE(places[i].x, places[i].y, places[i].z, shape.dtype, shape.swizzle_128);
      REQUIRE(std::memcmp(&tensors[i * tensor_bytes], &expected[i * tensor_bytes], tensor_bytes) ==
              0);
    }
  });
}

}  // namespace

TEST_CASE("tma: a load copies every element of the box, and zeros outside the tensor") {
  for (const TensorShape &shape : kShapes) {
    const std::vector<Place> places = places_of(shape);
    Tensor tensor(shape);
    const size_t box_bytes = static_cast<size_t>(shape.box_bytes());
    std::vector<uint8_t> expected;
    for (const Place &place : places) {
      const std::vector<uint8_t> box = expected_box(tensor, shape, place.x, place.y, place.z);
      expected.insert(expected.end(), box.begin(), box.end());
    }
    in_every_mode([&] {
      std::vector<uint8_t> boxes(expected.size(), 0xEE);
      run(load_boxes, {1, kThreads, smem_bytes(shape)},
          {tensor.map(), places.data(), static_cast<int>(places.size()), shape.box_bytes(),
           boxes.data()});
      if (boxes == expected) return;
      for (size_t i = 0; i < places.size(); i++) {
        CAPTURE(places[i].x, places[i].y, places[i].z, shape.dtype, shape.swizzle_128);
        REQUIRE(std::memcmp(&boxes[i * box_bytes], &expected[i * box_bytes], box_bytes) == 0);
      }
    });
  }
}

TEST_CASE("tma: a store writes only the elements of the box that are in the tensor") {
  for (const TensorShape &shape : kShapes) {
    check_stores(shape, false);
    check_stores(shape.with_columns(shape.columns / shape.unit() * shape.unit()), false);
  }
}

TEST_CASE("tma: a reduction adds in fp32") {
  for (const TensorShape &shape : kShapes) {
    if (shape.dtype != MP_FP32) continue;
    check_stores(shape, true);
    check_stores(shape.with_columns(shape.columns / shape.unit() * shape.unit()), true);
  }
}

// ---------------------------------------------------------------- many blocks

namespace {

struct AddArgs {
  mp::TensorMap map;
};

constexpr int kAdditions = 20;  // per block

/// Every block adds its index + 1 to the same box, kAdditions times.
MP_KERNEL(32, 1) add_from_all_blocks(MP_PARAM(AddArgs) args) {
  constexpr int kElements = 32 * 8;
  float *const box = reinterpret_cast<float *>(aligned_smem());
  for (int i = thread_index(); i < kElements; i += 32)
    box[i] = static_cast<float>(block_index() + 1);
  async_proxy_fence();
  block_sync();
  if (thread_index() != 0) return;
  for (int i = 0; i < kAdditions; i++) tma_reduce_add(args.map, smem_address(box), 4, 1, 0);
  tma_store_commit();
  tma_store_wait_read<0>();
}

constexpr int kClusterSize = 4;

struct MulticastArgs {
  mp::TensorMap map;
  int issuer;
  uint32_t mask;
  int box_bytes;
  uint8_t *boxes;  ///< out, [rank]
};

/// One block loads a box into the blocks of the mask; each of them waits for its own mbarrier.
MP_KERNEL(kThreads, 1) load_into_many(MP_PARAM(MulticastArgs) args) {
  MP_SHARED(uint64_t, loaded, [3]);
  const SmemAddress bar = smem_address(&loaded[1]);
  uint8_t *const box = aligned_smem();
  const int rank = cluster_rank();
  const bool gets_box = (args.mask >> rank & 1) != 0;
  if (thread_index() == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
    if (gets_box) mbarrier_arrive_expect(bar, static_cast<uint32_t>(args.box_bytes));
  }
  cluster_sync();
  if (rank == args.issuer && thread_index() == 0)
    tma_load_multicast(smem_address(box), args.map, bar, 8, -2, 1, args.mask);
  if (gets_box) mbarrier_wait(bar, 0);
  for (int at = thread_index(); at < args.box_bytes; at += kThreads)
    args.boxes[rank * args.box_bytes + at] = gets_box ? box[at] : 0;
  cluster_sync();
}

}  // namespace

TEST_CASE("tma: concurrent reductions of many blocks lose no addend") {
  const TensorShape shape{MP_FP32, 40, 12, 1, 40, 40 * 12, 32, 8, true};
  constexpr int kBlocks = 100;
  in_every_mode([&] {
    Tensor tensor(shape), before(shape);
    run(add_from_all_blocks, {kBlocks, 32, smem_bytes(shape)}, {tensor.map()}, 4);
    int num_wrong = 0;
    for (int y = 0; y < shape.rows; y++)
      for (int x = 0; x < shape.columns; x++) {
        float sum, start;
        std::memcpy(&sum, tensor.element(x, y, 0), sizeof sum);
        std::memcpy(&start, before.element(x, y, 0), sizeof start);
        const bool in_box = x >= 4 && x < 4 + 32 && y >= 1 && y < 1 + 8;
        num_wrong += sum != start + (in_box ? kAdditions * kBlocks * (kBlocks + 1) / 2 : 0);
      }
    CHECK(num_wrong == 0);
  });
}

TEST_CASE("tma: a multicast uses the same address and mbarrier in all blocks of its mask") {
  for (const TensorShape &shape : {kShapes[0], kShapes[2]}) {
    Tensor tensor(shape);
    const std::vector<uint8_t> box = expected_box(tensor, shape, 8, -2, 1);
    in_every_mode([&] {
      for (int size : {1, 2, kClusterSize})
        for (uint32_t mask = 1; mask < 1u << size; mask++)
          for (int issuer = 0; issuer<size; issuer += size> 2 ? 3 : 1) {
            CAPTURE(size, mask, issuer);
            std::vector<uint8_t> boxes(size * box.size(), 0xEE), expected;
            for (int rank = 0; rank < size; rank++) {
              const std::vector<uint8_t> zeros(box.size());
              const std::vector<uint8_t> &mine = mask >> rank & 1 ? box : zeros;
              expected.insert(expected.end(), mine.begin(), mine.end());
            }
            run(load_into_many, {size, kThreads, smem_bytes(shape), size},
                {tensor.map(), issuer, mask, shape.box_bytes(), boxes.data()});
            CHECK(boxes == expected);
          }
    });
  }
}
