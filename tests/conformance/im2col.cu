// im2col TMA: the pixels of every filter tap, with padding, strides, dilation and partial channel
// blocks, across rows and images; pixels that overlap; into one block and by multicast.  Stores of
// every second pixel.
#include <span>

#include "cases.h"
#include "tma.h"

namespace mp::MP_TARGET {

namespace {

/// One axis of a convolution, as im2col TMA describes it.
struct Axis {
  int extent, filter, stride, dilation, pad_lo, pad_hi;

  /// The number of places of the filter.
  int places() const {
    return (extent + pad_lo + pad_hi - dilation * (filter - 1) - 1) / stride + 1;
  }
  // The corners of the bounding box: cuTensorMapEncodeIm2col, pixelBoxLowerCorner and -UpperCorner.
  int lower() const { return -pad_lo; }
  int upper() const { return pad_hi - dilation * (filter - 1); }
};

struct Images {
  mp_dtype_t dtype;
  int channels, images;
  Axis w, h;
  int pixel_stride;  ///< elements
  int box_channels, box_pixels;
  bool swizzle_128;

  /// Elements; the last pixel of a row may overlap with none of the next row.
  int row_stride() const {
    return w.extent * pixel_stride + (channels > pixel_stride ? channels - pixel_stride : 0);
  }
  int image_stride() const { return h.extent * row_stride(); }
  int places() const { return images * h.places() * w.places(); }
  Im2colSpec spec(const void *base) const {
    return {base,
            dtype,
            {channels, w.extent, h.extent, images},
            {pixel_stride, row_stride(), image_stride()},
            {w.lower(), h.lower()},
            {w.upper(), h.upper()},
            {w.stride, h.stride},
            box_channels,
            box_pixels,
            swizzle_128};
  }
};

constexpr Images kImages[] = {
    // 3 x 3, padded; the tile spans rows and images.
    {MP_FP16, 64, 3, {7, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}, 64, 64, 24, true},
    // The whole batch is smaller than the tile; a tail of channels; padding between pixels.
    {MP_BF16, 72, 2, {3, 1, 1, 1, 0, 0}, {2, 1, 1, 1, 0, 0}, 80, 64, 32, true},
    // Strides that leave a rest, unequal padding.
    {MP_FP16, 40, 2, {11, 3, 2, 1, 0, 2}, {10, 4, 3, 1, 2, 1}, 40, 64, 16, true},
    // Dilation, one axis of one tap; filter larger than the image.
    {MP_FP16, 8, 2, {4, 5, 1, 3, 7, 6}, {9, 1, 4, 1, 0, 0}, 8, 8, 20, false},
    {MP_FP32, 36, 1, {6, 2, 8, 2, 9, 5}, {6, 3, 1, 2, 2, 2}, 36, 32, 40, true},
    // One image of one pixel; without the swizzle.
    {MP_FP16, 16, 1, {1, 3, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1}, 16, 256, 3, false},
    // A line, as 1-D convolutions are; more padding than image.
    {MP_BF16, 136, 2, {5, 3, 2, 4, 20, 17}, {1, 1, 1, 1, 0, 0}, 136, 64, 64, true},
};

/// Pixels that overlap: windows of 3 taps of 16 elements each, a tap apart, and 7 of 8, two apart.
constexpr Images kOverlappingImages[] = {
    {MP_FP16, 48, 3, {7, 1, 1, 1, 0, 0}, {9, 3, 2, 2, 0, 0}, 16, 64, 24, true},
    {MP_BF16, 56, 2, {5, 1, 1, 1, 0, 0}, {6, 2, 1, 1, 0, 0}, 8, 64, 32, true},
    {MP_FP32, 40, 2, {9, 1, 2, 1, 0, 0}, {4, 2, 1, 1, 0, 0}, 8, 32, 40, true},
};

/// Returns the shape of all images as one matrix.
TensorShape shape_of(const Images &images) {
  return {images.dtype,
          {images.pixel_stride,
           int64_t{images.images} * images.image_stride() / images.pixel_stride, 1},
          {images.pixel_stride, 0},
          {images.box_channels, images.box_pixels},
          images.swizzle_128};
}

/// A load of channels from c on and of tap r, s, from output pixel `place` in n, p, q order on.
struct Load {
  int place, c, r, s;
};

Im2colCoord coordinates(const Images &images, const Load &load) {
  const int q = load.place % images.w.places(),
            p = load.place / images.w.places() % images.h.places();
  return {load.c,
          q * images.w.stride - images.w.pad_lo,
          p * images.h.stride - images.h.pad_lo,
          load.place / images.w.places() / images.h.places(),
          load.s * images.w.dilation,
          load.r * images.h.dilation};
}

/// Appends rows of the im2col matrix as stored in shared memory: zero outside the images.
void append_rows(std::vector<unsigned char> &boxes, const Images &images, const Load &load,
                 const std::vector<unsigned char> &tensor) {
  const TensorShape shape = shape_of(images);
  const auto element_bytes = static_cast<size_t>(shape.element_bytes());
  const size_t start = boxes.size();
  boxes.resize(start + static_cast<size_t>(shape.box_bytes()));
  for (int row = 0; row < images.box_pixels; row++) {
    const Im2colCoord at = coordinates(images, {load.place + row, load.c, load.r, load.s});
    const int w = at.w + at.w_offset, h = at.h + at.h_offset;
    if (w < 0 || w >= images.w.extent || h < 0 || h >= images.h.extent || at.n >= images.images)
      continue;
    const int pixel =
        at.n * images.image_stride() + h * images.row_stride() + w * images.pixel_stride;
    for (int column = 0; column < images.box_channels; column++) {
      const int c = load.c + column;
      if (c < 0 || c >= images.channels) continue;
      const auto element = static_cast<size_t>(pixel + c);
      std::memcpy(&boxes[start + place_in_box(shape, row, column)],
                  &tensor[element * element_bytes], element_bytes);
    }
  }
}

/// Returns loads of every tap at the first pixel of every tile, its neighbor, the last pixel and
/// past it.
std::vector<Load> loads_of(const Images &images) {
  std::vector<int> places;
  for (int place = 0; place < images.places(); place += images.box_pixels)
    for (const int near : {place, place + 1, place + images.w.places() - 1})
      if (near < images.places()) places.push_back(near);
  places.push_back(images.places() - 1);
  places.push_back(images.places());  // pixel of an image past the last
  std::vector<Load> loads;
  for (const int place : places)
    for (int c = 0; c < images.channels; c += images.box_channels)
      for (int r = 0; r < images.h.filter; r++)
        for (int s = 0; s < images.w.filter; s++) loads.push_back({place, c, r, s});
  loads.push_back({0, -8, 0, 0});
  loads.push_back({0, images.channels, 0, 0});
  return loads;
}

struct LoadArgs {
  TensorMap map;
  const Im2colCoord *places;
  int count, box_bytes;
  unsigned char *boxes;  ///< out, consecutive
  bool exchange_taps;
};

template <int kUnused>
MP_KERNEL(kThreads, 1)
load_pixels(MP_PARAM(LoadArgs) args) {
  if constexpr (has_sm90()) {
    const SmemAddress bar = single_barrier();
    unsigned char *const box = aligned_smem();
    for (int i = 0; i < args.count; i++) {
      if (thread_index() == 0) {
        Im2colCoord at = args.places[i];
        if (args.exchange_taps) at = {at.c, at.w, at.h, at.n, at.h_offset, at.w_offset};
        mbarrier_arrive_expect(bar, static_cast<uint32_t>(args.box_bytes));
        tma_load_im2col(smem_address(box), args.map, bar, at);
      }
      mbarrier_wait(bar, static_cast<uint32_t>(i % 2));
      copy_pieces(args.boxes + static_cast<int64_t>(i) * args.box_bytes, box, args.box_bytes,
                  kThreads);
      block_sync();
    }
  }
}

/// The pixels of images of 7 x 5 at even columns and rows, in a pixel box that has `beyond` more
/// columns and rows.
Im2colSpec even_pixels(int32_t beyond) {
  constexpr int32_t kChannels = 72, kRow = 7 * kChannels;
  return {nullptr,
          MP_FP16,
          {kChannels, 4, 3, 2},
          {2 * kChannels, 2 * kRow, 5 * kRow},
          {0, 0},
          {beyond, beyond},
          {1, 1},
          64,
          16,
          /*swizzle_128=*/true};
}

struct MulticastArgs {
  TensorMap tiled, im2col;
  Im2colCoord at;
  int box_bytes;
  uint32_t mask;
  int issuer;
  unsigned char *boxes;  ///< out, [cluster size][2]
  int other_rank;        ///< XORed with the rank of a box
};

/// Loads boxes of both kinds into the blocks of the mask.
template <int kUnused>
MP_KERNEL(kThreads, 1)
load_into_many(MP_PARAM(MulticastArgs) args) {
  if constexpr (has_sm90()) {
    const SmemAddress bar = single_barrier();
    unsigned char *const boxes = aligned_smem();
    const int rank = cluster_rank(),
              stride = ceil_div(args.box_bytes, kSwizzlePeriodBytes) * kSwizzlePeriodBytes;
    const bool is_meant = (args.mask >> rank & 1) != 0;
    if (thread_index() == 0 && is_meant)
      mbarrier_arrive_expect(bar, static_cast<uint32_t>(2 * args.box_bytes));
    cluster_sync();
    if (rank == args.issuer && thread_index() == 0) {
      tma_load_multicast(smem_address(boxes), args.tiled, bar, 8, -2, 0, args.mask);
      tma_load_im2col_multicast(smem_address(boxes + stride), args.im2col, bar, args.at, args.mask);
    }
    if (is_meant) {
      mbarrier_wait(bar, 0);
      for (int box = 0; box < 2; box++)
        copy_pieces(
            args.boxes + static_cast<int64_t>((rank ^ args.other_rank) * 2 + box) * args.box_bytes,
            boxes + box * stride, args.box_bytes, kThreads);
    }
    cluster_sync();
  }
}

Output conform_images(const Device &device, Mistake mistake, std::span<const Images> all) {
  Output output;
  for (const Images &images : all) {
    const TensorShape shape = shape_of(images);
    const auto elements = numbered_bytes(shape.tensor_bytes(), shape.element_bytes());
    const Memory<unsigned char> tensor(device, elements);
    const std::vector<Load> loads = loads_of(images);
    std::vector<Im2colCoord> starts;
    std::vector<unsigned char> wanted;
    for (const Load &load : loads) {
      starts.push_back(coordinates(images, load));
      append_rows(wanted, images, load, elements);
    }
    const Memory<Im2colCoord> places(device, starts);
    const Memory<unsigned char> boxes(device,
                                      loads.size() * static_cast<size_t>(shape.box_bytes()));
    run(device, "load_pixels", load_pixels<0>,
        {1, kThreads, static_cast<size_t>(shape.box_bytes()) + kSwizzlePeriodBytes},
        {im2col_map(images.spec(tensor.data())), places.data(), static_cast<int>(loads.size()),
         shape.box_bytes(), boxes.data(), mistake == Mistake::made});
    output.push_back(box_part("case " + std::to_string(&images - all.data()) + ", " + shape.name(),
                              shape, boxes.download(), wanted));
  }
  return output;
}

}  // namespace

Output conform_im2col(const Device &device, Mistake mistake) {
  return conform_images(device, mistake, kImages);
}

Output conform_overlapping_pixels(const Device &device, Mistake mistake) {
  return conform_images(device, mistake, kOverlappingImages);
}

/// Injected bug: a map without its swizzle.
Output conform_im2col_store(const Device &device, Mistake mistake) {
  Output output;
  for (const int32_t beyond : {0, 1}) {
    Im2colSpec spec = even_pixels(beyond);
    const TensorShape box{spec.dtype, {}, {}, {spec.channels, spec.pixels}, true};
    const auto elements = numbered_bytes(static_cast<size_t>(2 * spec.stride[2]) * 2, 2);
    const auto values = numbered_bytes(static_cast<size_t>(box.box_bytes()), 2, 5000);
    const Memory<unsigned char> from(device, values);
    spec.swizzle_128 = mistake != Mistake::made;
    const int columns = static_cast<int>(spec.extent[1]) + beyond;
    const int rows = static_cast<int>(spec.extent[2]) + beyond;
    // At the start and in the middle of a row, in the last image, and past it.
    for (const int place : {0, 5, rows * columns, 2 * rows * columns - 2, 2 * rows * columns})
      for (const int c : {0, 64, 72}) {
        const Memory<unsigned char> tensor(device, elements);
        spec.base = tensor.data();
        const auto column = [&](int i) { return i % columns; };
        const auto row = [&](int i) { return i / columns % rows; };
        const auto image = [&](int i) { return i / columns / rows; };
        run(device, "store_box", store_box<4>,
            {1, kThreads, static_cast<size_t>(box.box_bytes()) + kSwizzlePeriodBytes},
            {im2col_map(spec),
             {c, column(place), row(place), image(place)},
             box.box_bytes(),
             from.data()});
        std::vector<unsigned char> wanted = elements;
        for (int i = 0; i < spec.pixels; i++) {
          const int w = column(place + i), h = row(place + i), n = image(place + i);
          if (w >= spec.extent[1] || h >= spec.extent[2] || n >= spec.extent[3]) continue;
          for (int j = 0; j < spec.channels && c + j < spec.extent[0]; j++) {
            const int64_t element =
                w * spec.stride[0] + h * spec.stride[1] + n * spec.stride[2] + c + j;
            std::memcpy(&wanted[static_cast<size_t>(2 * element)], &values[place_in_box(box, i, j)],
                        2);
          }
        }
        output.push_back({"pixel " + std::to_string(place) + ", channel " + std::to_string(c) +
                              ", " + std::to_string(beyond) + " beyond",
                          2, 72, tensor.download(), wanted});
      }
  }
  return output;
}

Output conform_multicast(const Device &device, Mistake mistake) {
  Output output;
  const Images &images = kImages[0];
  const TensorShape shape = shape_of(images);
  const auto elements = numbered_bytes(shape.tensor_bytes(), shape.element_bytes());
  const Memory<unsigned char> tensor(device, elements);
  constexpr Load kLoad{30, 0, 1, 2};
  for (const int size : {1, 2, 4})
    for (uint32_t mask = 1; mask < 1u << size; mask++) {
      const Memory<unsigned char> boxes(device, 2 * static_cast<size_t>(size * shape.box_bytes()));
      const size_t stride = ceil_div(shape.box_bytes(), kSwizzlePeriodBytes) * kSwizzlePeriodBytes;
      run(device, "load_into_many", load_into_many<0>,
          {size, kThreads, 2 * stride + kSwizzlePeriodBytes, size},
          {tensor_map(shape.spec(tensor.data())), im2col_map(images.spec(tensor.data())),
           coordinates(images, kLoad), shape.box_bytes(), mask, static_cast<int>(mask) % size,
           boxes.data(), mistake == Mistake::made && size > 1 ? 1 : 0});
      std::vector<unsigned char> wanted;
      for (int rank = 0; rank < size; rank++)
        if (mask >> rank & 1) {
          append_box(wanted, shape, elements, {8, -2, 0});
          append_rows(wanted, images, kLoad, elements);
        } else {
          wanted.resize(wanted.size() + 2 * static_cast<size_t>(shape.box_bytes()),
                        mpconform::kUntouched);
        }
      output.push_back(
          box_part("cluster of " + std::to_string(size) + ", mask " + std::to_string(mask), shape,
                   boxes.download(), wanted));
    }
  return output;
}

}  // namespace mp::MP_TARGET
