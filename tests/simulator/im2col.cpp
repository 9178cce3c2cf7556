// im2col loads in the simulator: results against the definition of a convolution, and reports of
// violations.
#include "im2col_images.h"
#include "tma.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kThreads = 64;

/// Views the images as a matrix of pixels by channels, for Tensor and place_in_box.
TensorShape shape_of(const Images &c) {
  return {c.dtype,
          c.pixel_stride,
          c.images * c.h.extent * c.w.extent,
          1,
          c.pixel_stride,
          c.images * c.image_stride(),
          c.box_channels,
          c.box_pixels,
          c.swizzle_128};
}

/// Load of channel c and tap (r, s) at filter position `place`, in the order of outputs (n, p, q).
struct Load {
  int place, c, s, r;
};

Im2colCoord instruction(const Images &images, const Load &load) {
  const int q = load.place % images.w.places(), rest = load.place / images.w.places();
  const int p = rest % images.h.places(), n = rest / images.h.places();
  return {load.c,
          q * images.w.stride - images.w.pad_lo,
          p * images.h.stride - images.h.pad_lo,
          n,
          load.s * images.w.dilation,
          load.r * images.h.dilation};
}

/// Rows of the im2col matrix: x[n][p stride - pad + r dilation][q ...][c], zero outside the image.
std::vector<uint8_t> expected_rows(Tensor &tensor, const Images &images, const Load &load) {
  const TensorShape shape = shape_of(images);
  std::vector<uint8_t> rows(static_cast<size_t>(shape_of(images).box_bytes()), 0);
  for (int row = 0; row < images.box_pixels; row++) {
    const int place = load.place + row;
    if (place >= images.places()) break;
    const Im2colCoord at = instruction(images, {place, load.c, load.s, load.r});
    const int w = at.w + at.w_offset, h = at.h + at.h_offset;
    if (w < 0 || w >= images.w.extent || h < 0 || h >= images.h.extent) continue;
    for (int i = 0; i < images.box_channels; i++) {
      if (load.c + i < 0 || load.c + i >= images.channels) continue;
      const int64_t pixel = (at.n * images.h.extent + h) * images.w.extent + w;
      std::memcpy(&rows[static_cast<size_t>(place_in_box(shape, i, row))],
                  tensor.element(load.c + i, pixel, 0), static_cast<size_t>(bytes_of(shape.dtype)));
    }
  }
  return rows;
}

/// Returns loads of every tap from the first position of each box, its neighbors, and past the end.
std::vector<Load> loads_of(const Images &images) {
  std::vector<int> places;
  for (int place = 0; place < images.places(); place += images.box_pixels)
    for (int near : {place, place + 1, place + images.w.places() - 1})
      if (near < images.places()) places.push_back(near);
  places.push_back(images.places() - 1);
  places.push_back(images.places());  // the first position past the last image
  places.push_back(images.places() + images.w.places() + 1);
  std::vector<Load> loads;
  for (int place : places)
    for (int c = 0; c < images.channels; c += images.box_channels)
      for (int r = 0; r < images.h.filter; r++)
        for (int s = 0; s < images.w.filter; s++) loads.push_back({place, c, s, r});
  loads.push_back({0, -8, 0, 0});
  loads.push_back({0, images.channels, 0, 0});
  return loads;
}

struct LoadArgs {
  mp::TensorMap map;
  const Im2colCoord *places;
  int count, box_bytes;
  uint8_t *boxes;  ///< out, contiguous
};

MP_KERNEL(kThreads, 1) load_im2col(MP_PARAM(LoadArgs) args) {
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
      mbarrier_arrive_expect(bar, static_cast<uint32_t>(args.box_bytes));
      tma_load_im2col(smem_address(box), args.map, bar, args.places[i]);
    }
    mbarrier_wait(bar, static_cast<uint32_t>(i % 2));
    uint8_t *const to = args.boxes + static_cast<size_t>(i) * static_cast<size_t>(args.box_bytes);
    for (int at = thread_index(); at < args.box_bytes; at += kThreads) to[at] = box[at];
    block_sync();
  }
}

LaunchShape launch_shape(const Images &images, int blocks = 1) {
  return {blocks, kThreads, static_cast<size_t>(shape_of(images).box_bytes()) + kSwizzlePeriodBytes,
          blocks};
}

template <class Body>
MP_KERNEL(kThreads, 1)
call(MP_PARAM(Body) body) {
  body();
}

}  // namespace

TEST_CASE("im2col: a load copies rows of the im2col matrix, zero outside the images") {
  for (const Images &images : kImages) {
    Tensor tensor(shape_of(images));
    REQUIRE(mp::why_no_tensor_map(images.spec(tensor.base())) == nullptr);
    const std::vector<Load> loads = loads_of(images);
    std::vector<Im2colCoord> places;
    std::vector<uint8_t> expected;
    for (const Load &load : loads) {
      places.push_back(instruction(images, load));
      const std::vector<uint8_t> rows = expected_rows(tensor, images, load);
      expected.insert(expected.end(), rows.begin(), rows.end());
    }
    CHECK(std::count(expected.begin(), expected.end(), 0) <
          static_cast<int64_t>(expected.size()));  // some expected bytes are not zero
    const LoadArgs args{im2col_map(images.spec(tensor.base())), places.data(),
                        static_cast<int>(places.size()), shape_of(images).box_bytes(), nullptr};
    in_every_mode([&] {
      std::vector<uint8_t> boxes(expected.size(), 0xEE);
      LoadArgs with_boxes = args;
      with_boxes.boxes = boxes.data();
      run(load_im2col, launch_shape(images), with_boxes);
      if (boxes == expected) return;
      const size_t box_bytes = static_cast<size_t>(shape_of(images).box_bytes());
      for (size_t i = 0; i < loads.size(); i++) {
        CAPTURE(images.channels, images.w.extent, loads[i].place, loads[i].c, loads[i].r,
                loads[i].s);
        REQUIRE(std::memcmp(&boxes[i * box_bytes], &expected[i * box_bytes], box_bytes) == 0);
      }
    });
  }
}

namespace {

struct MulticastArgs {
  mp::TensorMap map;
  Im2colCoord at;
  uint32_t mask;
  int box_bytes;
  uint8_t *boxes;  ///< out, [cluster size]
};

MP_KERNEL(kThreads, 1) load_into_many(MP_PARAM(MulticastArgs) args) {
  MP_SHARED(uint64_t, loaded, [1]);
  const SmemAddress bar = smem_address(loaded);
  uint8_t *const box = aligned_smem();
  const bool mine = (args.mask >> cluster_rank() & 1) != 0;
  if (thread_index() == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
    if (mine) mbarrier_arrive_expect(bar, static_cast<uint32_t>(args.box_bytes));
  }
  cluster_sync();
  if (thread_index() == 0 && cluster_rank() == cluster_size() - 1)
    tma_load_im2col_multicast(smem_address(box), args.map, bar, args.at, args.mask);
  if (mine) {
    mbarrier_wait(bar, 0);
    for (int at = thread_index(); at < args.box_bytes; at += kThreads)
      args.boxes[cluster_rank() * args.box_bytes + at] = box[at];
  }
  cluster_sync();
}

}  // namespace

TEST_CASE("im2col: a multicast writes only to the blocks of its mask") {
  const Images &images = kImages[0];
  Tensor tensor(shape_of(images));
  const Load load{30, 0, 2, 1};
  const std::vector<uint8_t> rows = expected_rows(tensor, images, load);
  const std::vector<uint8_t> nothing(rows.size(), 0xEE);
  in_every_mode([&] {
    constexpr int kBlocks = 2;
    for (uint32_t mask = 1; mask < 4; mask++) {
      std::vector<uint8_t> boxes(kBlocks * rows.size(), 0xEE), expected;
      for (int rank = 0; rank < kBlocks; rank++) {
        const std::vector<uint8_t> &mine = mask >> rank & 1 ? rows : nothing;
        expected.insert(expected.end(), mine.begin(), mine.end());
      }
      run(load_into_many, launch_shape(images, kBlocks),
          {im2col_map(images.spec(tensor.base())), instruction(images, load), mask,
           shape_of(images).box_bytes(), boxes.data()});
      CHECK(boxes == expected);
    }
  });
}

// ---------------------------------------------------------------- violations

namespace {

/// Line that a report must name.
int noted_line = 0;

struct Fixture {
  const Images images = kImages[2];
  Tensor tensor{shape_of(images)};
  const mp::TensorMap map = im2col_map(images.spec(tensor.base()));
  const mp::TensorMap tiled = tensor.map();

  /// Checks in every mode that the report has the text and the noted line.
  template <class Body>
  void check_violation(const Body &body, const std::string &text) const {
    in_every_mode([&] {
      const std::string diagnostic = outcome(call<Body>, launch_shape(images), body);
      CAPTURE(diagnostic, text, noted_line);
      CHECK(diagnostic.find(text) != std::string::npos);
      CHECK(diagnostic.find("im2col.cpp:" + std::to_string(noted_line)) != std::string::npos);
    });
  }
};

SmemAddress initialized_barrier() {
  MP_SHARED(uint64_t, loaded, [1]);
  const SmemAddress bar = smem_address(loaded);
  if (thread_index() == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
  }
  block_sync();
  return bar;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "im2col: an invalid filter position or offset is reported") {
  const mp::TensorMap m = map;
  const auto load_at = [m](const Im2colCoord &at) {
    return [m, at] {
      const SmemAddress bar = initialized_barrier();
      if (thread_index() != 0) return;
      noted_line = __LINE__, tma_load_im2col(smem_address(aligned_smem()), m, bar, at);
    };
  };
  // Valid columns are 0 to 10 in steps of 2, valid rows -2 to 7 in steps of 3.
  check_violation(load_at({0, -2, -2, 0, 0, 0}),
                  "passes column -2 to tma_load_im2col, outside "
                  "the pixel box [0, 11)");
  check_violation(load_at({0, 12, -2, 0, 0, 0}), "passes column 12");
  check_violation(load_at({0, 0, -5, 0, 0, 0}), "passes row -5");
  check_violation(load_at({0, 0, 10, 0, 0, 0}), "outside the pixel box [-2, 8)");
  check_violation(load_at({0, 3, -2, 0, 0, 0}),
                  "passes column 3 to tma_load_im2col, not a multiple "
                  "of the step 2 from 0");
  check_violation(load_at({0, 0, 0, 0, 0, 0}), "passes row 0 to tma_load_im2col, not a multiple");
  check_violation(load_at({0, 0, -2, 0, -1, 0}), "passes the column offset -1");
  check_violation(load_at({0, 0, -2, 0, 256, 0}), "passes the column offset 256");
  check_violation(load_at({0, 0, -2, 0, 0, 256}),
                  "passes the row offset 256 to tma_load_im2col, "
                  "outside [0, 255]");
}

TEST_CASE_METHOD(Fixture,
                 "im2col: a first channel that is not a multiple of 16 bytes is reported") {
  const mp::TensorMap m = map;
  const uint32_t bytes = static_cast<uint32_t>(shape_of(images).box_bytes());
  const auto load_from = [m, bytes](int channel, bool multicast) {
    return [=] {
      const Im2colCoord at{channel, 0, -2, 0, 0, 0};
      const SmemAddress bar = initialized_barrier(), to = smem_address(aligned_smem());
      if (thread_index() == 0) {
        mbarrier_arrive_expect(bar, bytes);
        if (multicast)
          noted_line = __LINE__, tma_load_im2col_multicast(to, m, bar, at, 1);
        else
          noted_line = __LINE__, tma_load_im2col(to, m, bar, at);
      }
      mbarrier_wait(bar, 0);
    };
  };
  for (const bool multicast : {false, true}) {
    const std::string rest =
        std::string(multicast ? " to tma_load_im2col_multicast" : " to tma_load_im2col") +
        ", which is not a multiple of 16 bytes";
    for (const int channel : {1, 4, 7, 9, -1, -4, images.channels + 4})
      check_violation(load_from(channel, multicast), std::to_string(channel) + rest);
    for (const int channel : {0, 8, -8, images.channels})
      in_every_mode([&] {
        const auto body = load_from(channel, multicast);
        CHECK(outcome(call<decltype(body)>, launch_shape(images), body) == "");
      });
  }
}

TEST_CASE_METHOD(Fixture, "im2col: an invalid tensor map, box address or mask is reported") {
  const mp::TensorMap m = map, other = tiled;
  const Im2colCoord origin{0, 0, -2, 0, 0, 0};
  const auto in_one_thread = [](const auto &body) {
    return [body] {
      const SmemAddress bar = initialized_barrier();
      if (thread_index() == 0) body(smem_address(aligned_smem()), bar);
    };
  };
  check_violation(in_one_thread([=](SmemAddress box, SmemAddress bar) {
                    noted_line = __LINE__, tma_load_im2col(box, other, bar, origin);
                  }),
                  "passes a tiled map to tma_load_im2col, which requires an im2col map");
  check_violation(in_one_thread([=](SmemAddress box, SmemAddress bar) {
                    noted_line = __LINE__, tma_load(box, m, bar, 0, 0, 0);
                  }),
                  "passes an im2col map to tma_load");
  check_violation(in_one_thread([=](SmemAddress box, SmemAddress) {
                    noted_line = __LINE__, tma_store(m, box, 0, 0, 0);
                  }),
                  "passes an im2col map to tma_store");
  check_violation(in_one_thread([=](SmemAddress box, SmemAddress bar) {
                    noted_line = __LINE__, tma_load_im2col(box + 512, m, bar, origin);
                  }),
                  "to tma_load_im2col that is not 1024-byte aligned");
  check_violation(in_one_thread([=](SmemAddress box, SmemAddress bar) {
                    noted_line = __LINE__, tma_load_im2col_multicast(box, m, bar, origin, 2);
                  }),
                  "passes the mask 0x2 to tma_load_im2col_multicast in a cluster of 1 blocks");
  alignas(128) mp::TensorMap made;
  const auto copy = [=, to = &made, base = tensor.base()](SmemAddress, SmemAddress) {
    noted_line = __LINE__, tensor_map_copy_with_base(to, m, base);
  };
  check_violation(in_one_thread(copy), "passes an im2col map to tensor_map_copy_with_base");
}

TEST_CASE_METHOD(Fixture, "im2col: the mbarrier counts the bytes of pixels outside the images") {
  const mp::TensorMap m = map;
  const uint32_t bytes = static_cast<uint32_t>(shape_of(images).box_bytes());
  const auto load_expecting = [=, beyond = images.images](uint32_t expected) {
    return [=] {
      const SmemAddress bar = initialized_barrier();
      if (thread_index() == 0) {
        mbarrier_arrive_expect(bar, expected);
        const Im2colCoord at{0, 0, -2, beyond, 0, 0};
        if (expected < bytes) noted_line = __LINE__ + 1;
        tma_load_im2col(smem_address(aligned_smem()), m, bar, at);
      }
      if (expected > bytes) noted_line = __LINE__ + 1;
      mbarrier_wait(bar, 0);
    };
  };
  check_violation(load_expecting(bytes - 16), "16 bytes more");
  check_violation(load_expecting(bytes + 16), "16 bytes");
  in_every_mode([&] {
    const auto body = load_expecting(bytes);
    CHECK(outcome(call<decltype(body)>, launch_shape(images), body) == "");
  });
}
