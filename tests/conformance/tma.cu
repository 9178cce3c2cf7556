// TMA: boxes loaded and stored inside a tensor, across its edges and far away; reductions in global
// memory; tensor maps with a replaced base.
#include "tma.h"

#include <climits>

#include "cases.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 64;

struct Place {
  int x, y, z;
};

const TensorShape kShapes[] = {
    {MP_FP16, {150, 21, 3}, {152, 152 * 22}, {64, 9}, true},
    {MP_BF16, {50, 21, 2}, {56, 56 * 21}, {64, 24}, true},  // the box is larger than a matrix
    {MP_FP16, {150, 21, 2}, {152, 152 * 21}, {40, 7}, false},
    {MP_FP32, {70, 21, 3}, {72, 72 * 22}, {32, 12}, true},
    {MP_FP32, {70, 21, 2}, {72, 72 * 21}, {52, 5}, false},
    {MP_FP16, {64, 10, 4}, {256, 64}, {64, 8}, true},  // adjacent matrices, like attention heads
    {MP_FP16, {300, 3, 1}, {304, 0}, {256, 1}, false},
};

/// Rounds `column` down to a multiple of 16 bytes, where a box must start.
int whole(const TensorShape &shape, int64_t column) {
  const int64_t unit = 16 / shape.element_bytes();
  return static_cast<int>(column - (column % unit + unit) % unit);
}

/// Returns positions inside, across each edge and corner, adjacent by one element or 16 bytes, and
/// far away.
std::vector<Place> places_of(const TensorShape &shape) {
  const auto along = [](int64_t extent, int box) {
    const int e = static_cast<int>(extent);
    return std::vector<int>{INT_MIN, -box, 1 - box, -1, 0, 2, e - box + 1, e - 1, e, INT_MAX};
  };
  std::vector<Place> places;
  for (const int z :
       {-1, 0, static_cast<int>(shape.extent[2]) - 1, static_cast<int>(shape.extent[2])})
    for (const int y : along(shape.extent[1], shape.box[1]))
      for (const int x : along(shape.extent[0], shape.box[0]))
        places.push_back({whole(shape, x), y, z});
  return places;
}

size_t smem_bytes(const TensorShape &shape) {
  return static_cast<size_t>(shape.box_bytes()) + kSwizzlePeriodBytes;
}

// ---------------------------------------------------------------- load

/// Appends a box as stored in shared memory: zero outside the tensor; with the swizzle, bits 4 to 6
/// of an address are XORed with bits 7 to 9 (PTX ISA, "Tensors").
void append_box(std::vector<unsigned char> &boxes, const TensorShape &shape,
                const std::vector<unsigned char> &tensor, const Place &place) {
  const auto element_bytes = static_cast<size_t>(shape.element_bytes());
  const size_t start = boxes.size();
  boxes.resize(start + static_cast<size_t>(shape.box_bytes()));
  for (int row = 0; row < shape.box[1]; row++)
    for (int column = 0; column < shape.box[0]; column++) {
      const int64_t x = int64_t{place.x} + column, y = int64_t{place.y} + row, z = place.z;
      if (x < 0 || x >= shape.extent[0] || y < 0 || y >= shape.extent[1] || z < 0 ||
          z >= shape.extent[2])
        continue;
      size_t at = static_cast<size_t>(row * shape.box[0] + column) * element_bytes;
      if (shape.swizzle_128) at ^= (at >> 7 & 7) << 4;
      const auto from = static_cast<size_t>(z * shape.stride[1] + y * shape.stride[0] + x);
      std::memcpy(&boxes[start + at], &tensor[from * element_bytes], element_bytes);
    }
}

struct LoadArgs {
  TensorMap map;
  const TensorMap *map_in_gmem;  ///< replaces `map` unless NULL
  const Place *places;
  int count, box_bytes;
  unsigned char *boxes;  ///< out, consecutive
};

template <int kUnused>
MP_KERNEL(kThreads, 1)
load_boxes(MP_PARAM(LoadArgs) args) {
  if constexpr (has_sm90()) {
    const SmemAddress bar = single_barrier();
    unsigned char *const box = aligned_smem();
    const bool in_gmem = args.map_in_gmem != nullptr;
    const TensorMap &map = in_gmem ? *args.map_in_gmem : args.map;
    if (thread_index() == 0) {
      if (in_gmem)
        tensor_map_acquire(args.map_in_gmem);
      else
        tma_prefetch(args.map);
    }
    for (int i = 0; i < args.count; i++) {
      if (thread_index() == 0) {
        const Place place = args.places[i];
        mbarrier_arrive_expect(bar, static_cast<uint32_t>(args.box_bytes));
        tma_load(smem_address(box), map, bar, place.x, place.y, place.z);
      }
      mbarrier_wait(bar, static_cast<uint32_t>(i % 2));
      copy_pieces(args.boxes + static_cast<int64_t>(i) * args.box_bytes, box, args.box_bytes,
                  kThreads);
      block_sync();
    }
  }
}

std::vector<unsigned char> load(const Device &device, const TensorShape &shape,
                                const TensorMap &map, const TensorMap *map_in_gmem,
                                const std::vector<Place> &places) {
  const Memory<Place> on_device(device, places);
  const size_t bytes = places.size() * static_cast<size_t>(shape.box_bytes());
  const Memory<unsigned char> boxes(device, bytes);
  run(device, "load_boxes", load_boxes<0>, {1, kThreads, smem_bytes(shape)},
      {map, map_in_gmem, on_device.data(), static_cast<int>(places.size()), shape.box_bytes(),
       boxes.data()});
  return boxes.download();
}

// ---------------------------------------------------------------- store

struct StoreArgs {
  TensorMap map;
  Place place;
  int box_bytes;
  bool add;
  const unsigned char *box;  ///< contents of shared memory
};

template <int kUnused>
MP_KERNEL(kThreads, 1)
store_box(MP_PARAM(StoreArgs) args) {
  if constexpr (has_sm90()) {
    unsigned char *const box = aligned_smem();
    copy_pieces(box, args.box, args.box_bytes, kThreads);
    async_proxy_fence();
    block_sync();
    if (thread_index() != 0) return;
    if (args.add)
      tma_reduce_add(args.map, smem_address(box), args.place.x, args.place.y, args.place.z);
    else
      tma_store(args.map, smem_address(box), args.place.x, args.place.y, args.place.z);
    tma_store_commit();
    tma_store_wait<0>();
  }
}

/// Stores into a tensor of whole 16-byte units, from its first element: TMA supports no other
/// tensors.
void add_stores(Output &output, const Device &device, TensorShape shape, Mistake mistake,
                bool add) {
  shape.extent[0] = whole(shape, shape.extent[0]);
  const auto elements = numbered_bytes(shape.tensor_bytes(), shape.element_bytes());
  const auto values =
      numbered_bytes(static_cast<size_t>(shape.box_bytes()), shape.element_bytes(), 5000);
  const Memory<unsigned char> box(device, values);
  const TensorShape mapped = mistake == Mistake::made ? with_other_swizzle(shape) : shape;
  const int rows = static_cast<int>(shape.extent[1]), columns = static_cast<int>(shape.extent[0]);
  const int last = static_cast<int>(shape.extent[2]) - 1;
  for (const Place place : {Place{0, 0, 0}, Place{whole(shape, 9), 1, last},
                            Place{whole(shape, columns - 7), rows - 3, last}, Place{columns, 0, 0},
                            Place{0, rows, 0}, Place{0, 0, last + 1}}) {
    const Memory<unsigned char> tensor(device, elements);
    run(device, "store_box", store_box<0>, {1, kThreads, smem_bytes(shape)},
        {tensor_map(mapped.spec(tensor.data())), place, shape.box_bytes(), add, box.data()});
    output.push_back({shape.name() + (add ? " added" : "") + " at x " + std::to_string(place.x) +
                          ", y " + std::to_string(place.y) + ", z " + std::to_string(place.z),
                      static_cast<size_t>(shape.element_bytes()),
                      static_cast<size_t>(shape.stride[0]), tensor.download()});
  }
}

// ---------------------------------------------------------------- replaced base

struct BaseArgs {
  TensorMap map;
  TensorMap *made;
  const void *base;
};

MP_KERNEL(kWarpSize, 1) replace_base(MP_PARAM(BaseArgs) args) {
  if (thread_index() != 0) return;
  tensor_map_copy_with_base(args.made, args.map, args.base);
  tensor_map_release();
}

// ---------------------------------------------------------------- replaced matrix

struct MatrixArgs {
  TensorMap map;
  TensorMap *made;
  TensorMapMatrix matrix;
};

MP_KERNEL(kWarpSize, 1) replace_matrix(MP_PARAM(MatrixArgs) args) {
  if (thread_index() != 0) return;
  tensor_map_copy_with_matrix(args.made, args.map, args.matrix);
  tensor_map_release();
}

}  // namespace

Output conform_tma_load(const Device &device, Mistake mistake) {
  Output output;
  for (const TensorShape &shape : kShapes) {
    const TensorShape mapped = mistake == Mistake::made ? with_other_swizzle(shape) : shape;
    const auto elements = numbered_bytes(shape.tensor_bytes(), shape.element_bytes());
    const Memory<unsigned char> tensor(device, elements);
    const std::vector<Place> places = places_of(shape);
    const auto boxes = load(device, shape, tensor_map(mapped.spec(tensor.data())), nullptr, places);
    std::vector<unsigned char> defined;
    for (const Place &place : places) append_box(defined, shape, elements, place);
    require_defined(device, mistake, shape.name(), boxes, defined);
    output.push_back(box_part(shape.name(), shape, boxes));
  }
  return output;
}

Output conform_tma_store(const Device &device, Mistake mistake) {
  Output output;
  for (const TensorShape &shape : kShapes) {
    add_stores(output, device, shape, mistake, false);
    if (shape.dtype == MP_FP32) add_stores(output, device, shape, mistake, true);
  }
  return output;
}

/// Injected bug: the base is not replaced.
Output conform_tma_base(const Device &device, Mistake mistake) {
  const TensorShape &shape = kShapes[0];
  const Memory<unsigned char> first(device,
                                    numbered_bytes(shape.tensor_bytes(), shape.element_bytes()));
  const Memory<unsigned char> second(
      device, numbered_bytes(shape.tensor_bytes(), shape.element_bytes(), 3000));
  const TensorMap map = tensor_map(shape.spec(first.data()));
  const Memory<TensorMap> made(device, 1);
  run(device, "replace_base", replace_base, {1, kWarpSize},
      {map, made.data(), mistake == Mistake::made ? first.data() : second.data()});
  const auto boxes = load(device, shape, map, made.data(), {{0, 0, 0}, {72, 5, 1}, {-8, 18, 2}});
  return {box_part(shape.name(), shape, boxes)};
}

/// A map modified for a matrix with other columns, rows and stride equals the one that the host
/// encodes.  Injected bug: one row is missing.
Output conform_tma_matrix(const Device &device, Mistake mistake) {
  const TensorShape &shape = kShapes[0];
  const Memory<unsigned char> first(device,
                                    numbered_bytes(shape.tensor_bytes(), shape.element_bytes()));
  const TensorMap map = tensor_map(shape.spec(first.data()));
  Output output;
  for (const auto &[columns, rows] : {std::pair{72, 9}, {1, 1}, {200, 40}}) {
    TensorShape matrix = shape;
    matrix.extent[0] = columns;
    matrix.extent[1] = rows;
    matrix.extent[2] = 1;
    matrix.stride[0] = matrix.stride[1] = (columns + 15) / 8 * 8;
    const Memory<unsigned char> second(
        device, numbered_bytes(size_t(rows) * size_t(matrix.stride[0]) * 2, 2, 3000));
    const Memory<TensorMap> made(device, 1);
    run(device, "replace_matrix", replace_matrix, {1, kWarpSize},
        {map,
         made.data(),
         {second.data(), columns, mistake == Mistake::made && rows > 1 ? rows - 1 : rows,
          matrix.stride[0] * 2}});
    const std::vector<Place> places = {
        {0, 0, 0}, {whole(shape, columns - 3), rows - 2, 0}, {-8, -1, 0}, {0, 0, 1}};
    const auto boxes = load(device, shape, map, made.data(), places);
    std::vector<unsigned char> defined;
    for (const Place &place : places) append_box(defined, matrix, second.download(), place);
    require_defined(device, mistake, "matrix of " + std::to_string(columns), boxes, defined);
    output.push_back(box_part("matrix of " + std::to_string(columns), shape, boxes));
  }
  return output;
}

/// One address in global memory holds one map after the other, like a reused workspace.  Injected
/// bug: the second map is not written.
Output conform_tma_stored_maps(const Device &device, Mistake mistake) {
  const TensorShape &shape = kShapes[0];
  const Memory<TensorMap> gmem(device, 1);
  const auto numbers = [&](int first) {
    return numbered_bytes(shape.tensor_bytes(), shape.element_bytes(), first);
  };
  const Memory<unsigned char> even(device, numbers(1)), odd(device, numbers(3000));
  Output output;
  for (int turn = 0; turn < 6; turn++) {
    const void *const base = (turn % 2 == 0 ? even : odd).data();
    const TensorMap map = tensor_map(shape.spec(base));
    if (turn != 1 || mistake != Mistake::made)
      run(device, "replace_base", replace_base, {1, kWarpSize}, {map, gmem.data(), base});
    output.push_back(
        box_part("map " + std::to_string(turn), shape,
                 load(device, shape, map, gmem.data(), {{0, 0, 0}, {72, 5, 1}, {-8, 18, 2}})));
  }
  return output;
}

}  // namespace mp::MP_TARGET
