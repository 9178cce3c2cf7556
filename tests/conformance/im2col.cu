// im2col TMA: the pixels of every tap of convolutions with padding, strides, dilation and a tail of
// channels, over rows and images; into one block and into several.
#include "cases.h"
#include "tests/conv_axis.h"
#include "tma.h"

namespace mp::MP_TARGET {

namespace {

using mptest::Axis;

constexpr int kThreads = 64;

struct Images {
  mp_dtype_t dtype;
  int channels, images;
  Axis w, h;
  int pixel_stride;
  int box_channels, box_pixels;
  bool swizzle_128;

  int64_t row_stride() const { return int64_t{w.extent} * pixel_stride; }
  int64_t image_stride() const { return h.extent * row_stride(); }
  int places() const { return images * h.places() * w.places(); }
  /// The pixels as one matrix.
  TensorShape shape() const {
    return {dtype,
            {pixel_stride, int64_t{images} * h.extent * w.extent, 1},
            {pixel_stride, 0},
            {box_channels, box_pixels},
            swizzle_128};
  }
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
  /// Of output pixel number `place`, in the order n, p, q.
  Im2colPlace at(int place, int c, int r, int s) const {
    const int q = place % w.places(), p = place / w.places() % h.places();
    return {c,
            q * w.stride - w.pad_lo,
            p * h.stride - h.pad_lo,
            place / w.places() / h.places(),
            s * w.dilation,
            r * h.dilation};
  }
};

const Images kCases[] = {
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

/// Every tap from the first place of every tile, from its neighbour, from the last place and beyond.
std::vector<Im2colPlace> loads_of(const Images &images) {
  std::vector<int> places;
  for (int place = 0; place < images.places(); place += images.box_pixels)
    for (const int near : {place, place + 1, place + images.w.places() - 1})
      if (near < images.places()) places.push_back(near);
  places.push_back(images.places() - 1);
  places.push_back(images.places());  // the first image that is not there
  std::vector<Im2colPlace> loads;
  for (const int place : places)
    for (int c = 0; c < images.channels; c += images.box_channels)
      for (int r = 0; r < images.h.filter; r++)
        for (int s = 0; s < images.w.filter; s++) loads.push_back(images.at(place, c, r, s));
  loads.push_back(images.at(0, -8, 0, 0));
  loads.push_back(images.at(0, images.channels, 0, 0));
  return loads;
}

struct LoadArgs {
  TensorMap map;
  const Im2colPlace *places;
  int count, box_bytes;
  unsigned char *boxes;  ///< out, one after the other
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
        Im2colPlace at = args.places[i];
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

struct MulticastArgs {
  TensorMap tiled, im2col;
  Im2colPlace at;
  int box_bytes;
  uint32_t mask;
  int issuer;
  unsigned char *boxes;  ///< out, [cluster size][2]
  int other_rank;        ///< XORed with the rank of a box
};

/// A box of either kind into the blocks of the mask.
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

}  // namespace

Output conform_im2col(const Device &device, Mistake mistake) {
  Output output;
  for (const Images &images : kCases) {
    const TensorShape shape = images.shape();
    const Memory<unsigned char> tensor(device,
                                       numbered_bytes(shape.tensor_bytes(), shape.element_bytes()));
    const std::vector<Im2colPlace> loads = loads_of(images);
    const Memory<Im2colPlace> places(device, loads);
    const Memory<unsigned char> boxes(device,
                                      loads.size() * static_cast<size_t>(shape.box_bytes()));
    run(device, "load_pixels", load_pixels<0>,
        {1, kThreads, static_cast<size_t>(shape.box_bytes()) + kSwizzlePeriodBytes},
        {im2col_map(images.spec(tensor.data())), places.data(), static_cast<int>(loads.size()),
         shape.box_bytes(), boxes.data(), mistake == Mistake::made});
    output.push_back(box_part("case " + std::to_string(&images - kCases) + ", " + shape.name(),
                              shape, boxes.download()));
  }
  return output;
}

Output conform_multicast(const Device &device, Mistake mistake) {
  Output output;
  const Images &images = kCases[0];
  const TensorShape shape = images.shape();
  const Memory<unsigned char> tensor(device,
                                     numbered_bytes(shape.tensor_bytes(), shape.element_bytes()));
  for (const int size : {1, 2, 4})
    for (uint32_t mask = 1; mask < 1u << size; mask++) {
      const Memory<unsigned char> boxes(device, 2 * static_cast<size_t>(size * shape.box_bytes()));
      const size_t stride = ceil_div(shape.box_bytes(), kSwizzlePeriodBytes) * kSwizzlePeriodBytes;
      run(device, "load_into_many", load_into_many<0>,
          {size, kThreads, 2 * stride + kSwizzlePeriodBytes, size},
          {tensor_map(shape.spec(tensor.data())), im2col_map(images.spec(tensor.data())),
           images.at(30, 0, 1, 2), shape.box_bytes(), mask, static_cast<int>(mask) % size,
           boxes.data(), mistake == Mistake::made && size > 1 ? 1 : 0});
      output.push_back(
          box_part("cluster of " + std::to_string(size) + ", mask " + std::to_string(mask), shape,
                   boxes.download()));
    }
  return output;
}

}  // namespace mp::MP_TARGET
