// TMA: boxes loaded and stored inside a tensor, across its edges and far away; tensor maps with a
// replaced base or matrix.
#include "tma.h"

#include <climits>

#include "cases.h"

namespace mp::MP_TARGET {

namespace {

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

/// Appends the boxes that are loaded at `places` and those that `defined` and `elements` determine.
void add_loads(Output &output, const Device &device, const std::string &name,
               const TensorShape &defined, const std::vector<unsigned char> &elements,
               const TensorMap &map, const TensorMap *map_in_gmem,
               const std::vector<Place> &places) {
  const Memory<Place> on_device(device, places);
  const size_t bytes = places.size() * static_cast<size_t>(defined.box_bytes());
  const Memory<unsigned char> boxes(device, bytes);
  run(device, "load_boxes", load_boxes<0>, {1, kThreads, smem_bytes(defined)},
      {map, map_in_gmem, on_device.data(), static_cast<int>(places.size()), defined.box_bytes(),
       boxes.data()});
  std::vector<unsigned char> wanted;
  for (const Place &place : places) append_box(wanted, defined, elements, place);
  output.push_back(box_part(name, defined, boxes.download(), wanted));
}

// ---------------------------------------------------------------- store

/// Stores into a tensor of whole 16-byte units, from its first element: TMA supports no other
/// tensors.
void add_stores(Output &output, const Device &device, TensorShape shape, Mistake mistake) {
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
    run(device, "store_box", store_box<3>, {1, kThreads, smem_bytes(shape)},
        {tensor_map(mapped.spec(tensor.data())),
         {place.x, place.y, place.z},
         shape.box_bytes(),
         box.data()});
    std::vector<unsigned char> wanted = elements;
    const auto element_bytes = static_cast<size_t>(shape.element_bytes());
    for_each_element(shape, place, [&](size_t at, size_t element) {
      std::memcpy(&wanted[element * element_bytes], &values[at], element_bytes);
    });
    output.push_back({shape.name() + " at x " + std::to_string(place.x) + ", y " +
                          std::to_string(place.y) + ", z " + std::to_string(place.z),
                      element_bytes, static_cast<size_t>(shape.stride[0]), tensor.download(),
                      wanted});
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
    add_loads(output, device, shape.name(), shape, elements, tensor_map(mapped.spec(tensor.data())),
              nullptr, places_of(shape));
  }
  return output;
}

Output conform_tma_store(const Device &device, Mistake mistake) {
  Output output;
  for (const TensorShape &shape : kShapes) add_stores(output, device, shape, mistake);
  return output;
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
    const auto elements = numbered_bytes(size_t(rows) * size_t(matrix.stride[0]) * 2, 2, 3000);
    const Memory<unsigned char> second(device, elements);
    const Memory<TensorMap> made(device, 1);
    run(device, "replace_matrix", replace_matrix, {1, kWarpSize},
        {map,
         made.data(),
         {second.data(), columns, mistake == Mistake::made && rows > 1 ? rows - 1 : rows,
          matrix.stride[0] * 2}});
    const std::vector<Place> places = {
        {0, 0, 0}, {whole(shape, columns - 3), rows - 2, 0}, {-8, -1, 0}, {0, 0, 1}};
    add_loads(output, device, "matrix of " + std::to_string(columns), matrix, elements, map,
              made.data(), places);
  }
  return output;
}

/// One address in global memory holds one map after the other, like a reused workspace; each has
/// another base than the map that it is made from.  Injected bug: the second map is not written.
Output conform_tma_stored_maps(const Device &device, Mistake mistake) {
  const TensorShape &shape = kShapes[0];
  const Memory<TensorMap> gmem(device, 1);
  Output output;
  const std::vector<unsigned char> elements[] = {
      numbered_bytes(shape.tensor_bytes(), shape.element_bytes(), 1),
      numbered_bytes(shape.tensor_bytes(), shape.element_bytes(), 3000)};
  const Memory<unsigned char> even(device, elements[0]), odd(device, elements[1]);
  for (int turn = 0; turn < 6; turn++) {
    const void *const base = (turn % 2 == 0 ? even : odd).data();
    const TensorMap map = tensor_map(shape.spec((turn % 2 == 0 ? odd : even).data()));
    if (turn != 1 || mistake != Mistake::made)
      run(device, "replace_base", replace_base, {1, kWarpSize}, {map, gmem.data(), base});
    add_loads(output, device, "map " + std::to_string(turn), shape, elements[turn % 2], map,
              gmem.data(), {{0, 0, 0}, {72, 5, 1}, {-8, 18, 2}});
  }
  return output;
}

}  // namespace mp::MP_TARGET
