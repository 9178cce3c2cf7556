// Pooling against its definition: loops over windows, gradients scattered from them.
//
// Maxima, sums of small integers and one division of these are exact in fp32, so they are compared
// to the last rounding, as are gradients if 1 / count is exact.  All others are within their
// running error.
#include "tests/support/grad_stats.h"
#include "tests/support/running_error.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr mp_pool_mode_t kModes[] = {MP_POOL_MAX, MP_POOL_AVG_INCLUDE_PAD, MP_POOL_AVG_EXCLUDE_PAD};

// ---------------------------------------------------------------------------- shapes

struct Pads {
  int32_t top = 0, bottom = 0, left = 0, right = 0;
};

mp_pool2d_desc_t make_desc(int32_t n, int32_t h, int32_t w, int32_t c, int32_t window_h,
                           int32_t window_w, int32_t stride_h, int32_t stride_w, Pads pads = {}) {
  mp_pool2d_desc_t d = mp_pool2d_desc_default(MP_POOL_MAX, n, h, w, c, window_h, window_w, MP_FP32);
  d.stride_h = stride_h;
  d.stride_w = stride_w;
  d.pad_top = pads.top;
  d.pad_bottom = pads.bottom;
  d.pad_left = pads.left;
  d.pad_right = pads.right;
  return d;
}

mp_pool2d_desc_t dilated(mp_pool2d_desc_t d, int32_t h, int32_t w) {
  d.dilation_h = h;
  d.dilation_w = w;
  return d;
}
mp_pool2d_desc_t rounded_up(mp_pool2d_desc_t d) {
  d.flags |= MP_POOL_FLAG_CEIL;
  return d;
}

/// Returns descriptors without type and mode.
std::vector<mp_pool2d_desc_t> shapes() {
  return {
      make_desc(2, 6, 8, 8, 2, 2, 2, 2),
      make_desc(2, 7, 9, 3, 2, 2, 2, 2),                 // the last row and column are unused
      make_desc(1, 7, 8, 16, 3, 3, 2, 2, {1, 1, 1, 1}),  // ResNet
      make_desc(2, 5, 6, 9, 3, 3, 1, 1, {1, 1, 1, 1}),   // overlapping windows
      make_desc(1, 9, 7, 17, 5, 3, 2, 1, {1, 3, 0, 2}),  // different padding on every side
      make_desc(1, 3, 4, 1, 5, 5, 1, 1, {2, 2, 2, 2}),   // larger than the image, one channel
      make_desc(2, 3, 3, 5, 7, 7, 4, 3, {4, 3, 6, 2}),
      make_desc(1, 13, 11, 4, 2, 3, 5, 4, {1, 0, 2, 0}),  // gaps between windows
      make_desc(3, 4, 4, 24, 4, 4, 1, 1),                 // the full image
      make_desc(2, 3, 5, 7, 1, 1, 1, 1),                  // identity
      make_desc(2, 5, 5, 6, 1, 1, 3, 2),                  // identity with a stride
      make_desc(1, 1, 40, 2, 1, 4, 1, 4),                 // one dimension
      // Gradient tiles: several along every dimension, with more windows than shared memory holds.
      make_desc(1, 11, 13, 70, 5, 5, 1, 1, {2, 2, 2, 2}),
      make_desc(2, 19, 10, 33, 3, 3, 2, 2, {1, 1, 1, 1}),
      make_desc(1, 5, 40, 136, 2, 9, 1, 1, {0, 1, 8, 8}),
      // More elements than an index has, or than 16 bits have.
      make_desc(1, 18, 17, 8, 16, 16, 1, 1),
      make_desc(1, 1, 5, 8, 1, 70000, 1, 1, {0, 0, 69990, 10}),
      // Dilated; rounded up; both.
      dilated(make_desc(2, 9, 8, 11, 3, 2, 1, 1), 2, 3),
      dilated(make_desc(1, 10, 11, 8, 3, 3, 2, 3, {2, 3, 4, 1}), 2, 3),
      dilated(make_desc(1, 12, 5, 3, 2, 3, 3, 1, {0, 0, 4, 4}), 7, 2),
      dilated(make_desc(1, 23, 20, 40, 3, 4, 1, 2, {1, 1, 3, 2}), 5, 4),
      rounded_up(make_desc(2, 7, 9, 3, 2, 2, 2, 2)),
      rounded_up(make_desc(1, 8, 7, 9, 3, 3, 2, 2, {1, 1, 1, 1})),
      rounded_up(make_desc(2, 5, 4, 8, 2, 3, 4, 3,
                           {1, 1, 2, 2})),            // the last window would start in the padding
      rounded_up(make_desc(1, 2, 3, 8, 3, 4, 2, 2)),  // window larger than the image
      rounded_up(make_desc(1, 20, 21, 35, 5, 4, 3, 3, {2, 1, 0, 3})),
      rounded_up(dilated(make_desc(2, 10, 9, 5, 2, 3, 3, 2, {2, 0, 1, 3}), 3, 2)),
  };
}

struct Outputs {
  int64_t p, q;
};

/// Counts windows that end within the padding; with rounding up, also windows that exceed it by
/// less than a stride and start before the end of the image.
int64_t count_windows(int64_t size, int64_t before, int64_t behind, int64_t extent, int64_t stride,
                      bool is_ceil) {
  int64_t count = 0;
  while (count * stride + extent <= before + size + behind ||
         (is_ceil && count * stride + extent < before + size + behind + stride &&
          count * stride < before + size))
    ++count;
  return count;
}

Outputs outputs_of(const mp_pool2d_desc_t &d) {
  const bool is_ceil = (d.flags & MP_POOL_FLAG_CEIL) != 0;
  return {count_windows(d.h, d.pad_top, d.pad_bottom, int64_t{d.dilation_h} * (d.window_h - 1) + 1,
                        d.stride_h, is_ceil),
          count_windows(d.w, d.pad_left, d.pad_right, int64_t{d.dilation_w} * (d.window_w - 1) + 1,
                        d.stride_w, is_ceil)};
}

// ---------------------------------------------------------------------------- oracle

/// Indices of the elements of x in one window and channel, in row order; number of pixels of the
/// window in the padded image.
struct Window {
  std::vector<size_t> places;
  std::vector<int64_t> taps;  ///< position of each in the window, in row order
  int64_t padded = 0;
};

Window window_of(const mp_pool2d_desc_t &d, int64_t n, int64_t p, int64_t q, int64_t c) {
  Window window;
  for (int64_t r = 0; r < d.window_h; ++r) {
    for (int64_t s = 0; s < d.window_w; ++s) {
      const int64_t i = p * d.stride_h - d.pad_top + r * d.dilation_h;
      const int64_t j = q * d.stride_w - d.pad_left + s * d.dilation_w;
      window.padded += i < d.h + d.pad_bottom && j < d.w + d.pad_right;
      if (i < 0 || i >= d.h || j < 0 || j >= d.w) continue;
      window.places.push_back(static_cast<size_t>(((n * d.h + i) * d.w + j) * d.c + c));
      window.taps.push_back(r * d.window_w + s);
    }
  }
  return window;
}

/// Calls visit(index in y, window).
template <typename Visit>
void each_window(const mp_pool2d_desc_t &d, Visit visit) {
  const Outputs outputs = outputs_of(d);
  size_t y = 0;
  for (int64_t n = 0; n < d.n; ++n)
    for (int64_t p = 0; p < outputs.p; ++p)
      for (int64_t q = 0; q < outputs.q; ++q)
        for (int64_t c = 0; c < d.c; ++c) visit(y++, window_of(d, n, p, q, c));
}

size_t largest(const std::vector<double> &x, const std::vector<size_t> &places) {
  for (const size_t place : places)
    if (std::isnan(x[place])) return place;
  size_t best = places.front();
  for (const size_t place : places)
    if (x[place] > x[best]) best = place;
  return best;
}

double count_of(const mp_pool2d_desc_t &d, const Window &window) {
  return d.mode == MP_POOL_AVG_INCLUDE_PAD ? static_cast<double>(window.padded)
                                           : static_cast<double>(window.places.size());
}

std::vector<Bounded> forward(const mp_pool2d_desc_t &d, const std::vector<double> &x) {
  std::vector<Bounded> y;
  each_window(d, [&](size_t, const Window &window) {
    if (d.mode == MP_POOL_MAX) {
      y.push_back(x[largest(x, window.places)]);
      return;
    }
    BoundedSum sum;
    for (const size_t place : window.places) sum.add(x[place]);
    y.push_back(sum.total() / count_of(d, window));
  });
  return y;
}

std::vector<Bounded> backward(const mp_pool2d_desc_t &d, const std::vector<double> &x,
                              const std::vector<double> &dy) {
  std::vector<BoundedSum> sums(x.size());
  each_window(d, [&](size_t y, const Window &window) {
    if (d.mode == MP_POOL_MAX) {
      sums[largest(x, window.places)].add(dy[y]);
      return;
    }
    const Bounded share = Bounded(1.0) / count_of(d, window);
    for (const size_t place : window.places) sums[place].add(Bounded(dy[y]) * share);
  });
  std::vector<Bounded> dx;
  for (const BoundedSum &sum : sums) dx.push_back(sum.total());
  return dx;
}

// ---------------------------------------------------------------------------- calls

int64_t elems_of_x(const mp_pool2d_desc_t &d) {
  return int64_t{d.n} * d.h * d.w * d.c;
}
int64_t elems_of_y(const mp_pool2d_desc_t &d) {
  const Outputs outputs = outputs_of(d);
  return d.n * outputs.p * outputs.q * d.c;
}

bool can_have_index(const mp_pool2d_desc_t &d) {
  return d.mode == MP_POOL_MAX && d.window_h * d.window_w <= 255;
}

/// Returns the position in its window of the maximum of each output.
std::vector<uint8_t> positions(const mp_pool2d_desc_t &d, const std::vector<double> &x) {
  std::vector<uint8_t> index;
  each_window(d, [&](size_t, const Window &window) {
    const size_t best = largest(x, window.places);
    const auto at = std::ranges::find(window.places, best) - window.places.begin();
    index.push_back(static_cast<uint8_t>(window.taps[static_cast<size_t>(at)]));
  });
  return index;
}

/// Runs the forward pass; a maximum also with its index, and with the same result.
std::vector<double> run_forward(const mp_pool2d_desc_t &d, const std::vector<double> &x,
                                int64_t offset = 0) {
  const DeviceArray x_device(d.dtype, x, offset);
  const DeviceArray y(d.dtype, elems_of_y(d), offset);
  require_ok(mp_pool2d_forward(context(), &d, x_device.data(), y.data(), nullptr, kStream));
  if (!can_have_index(d)) return y.download();
  const DeviceArray with_index(d.dtype, elems_of_y(d), offset);
  const DeviceBuffer<uint8_t> index(elems_of_y(d), offset);
  require_ok(
      mp_pool2d_forward(context(), &d, x_device.data(), with_index.data(), index.data(), kStream));
  CHECK(with_index.download_bits() == y.download_bits());
  CHECK(index.download() == positions(d, x));
  CHECK(index.guard_damage() == "");
  return y.download();
}

/// Runs the backward pass; averages do not receive x.  A maximum also receives the index instead,
/// with the same result.
std::vector<double> run_backward(const mp_pool2d_desc_t &d, const std::vector<double> &x,
                                 const std::vector<double> &dy, int64_t offset = 0) {
  const DeviceArray x_device(d.dtype, x, offset);
  const DeviceArray dy_device(d.dtype, dy, offset);
  const auto run = [&](const DeviceArray &dx, const void *given, const uint8_t *index) {
    const GradStats stats;
    require_ok(mp_pool2d_backward(context(), &d, given, index, dy_device.data(), dx.data(),
                                  stats.get(), kStream));
    stats.check(dx.download());
  };
  const DeviceArray dx(d.dtype, elems_of_x(d), offset);
  run(dx, d.mode == MP_POOL_MAX ? x_device.data() : nullptr, nullptr);
  if (!can_have_index(d)) return dx.download();
  const DeviceArray y(d.dtype, elems_of_y(d), offset), with_index(d.dtype, elems_of_x(d), offset);
  const DeviceBuffer<uint8_t> index(elems_of_y(d), offset);
  require_ok(mp_pool2d_forward(context(), &d, x_device.data(), y.data(), index.data(), kStream));
  run(with_index, nullptr, index.data());
  CHECK(with_index.download_bits() == dx.download_bits());
  return dx.download();
}

bool is_power_of_two(double count) {
  int exponent = 0;
  return std::frexp(count, &exponent) == 0.5;
}

/// Calls check(descriptor) for all types and modes.
template <class Check>
void check_all(const std::vector<mp_pool2d_desc_t> &all, const Check &check) {
  for (mp_pool2d_desc_t d : all)
    for (const mp_dtype_t dtype : kDtypes)
      for (const mp_pool_mode_t mode : kModes) {
        d.dtype = dtype;
        d.mode = mode;
        CAPTURE(d.n, d.h, d.w, d.c, d.window_h, d.window_w, d.dilation_h, d.flags,
                mp_dtype_name(dtype), mode);
        check(d);
      }
}

/// Checks both passes with integers that have many ties.
void check_exact(const mp_pool2d_desc_t &d, int64_t offset = 0) {
  CAPTURE(mp_dtype_name(d.dtype), d.mode, offset);
  const std::vector<double> x = random_integers(elems_of_x(d), 3, 1);
  const std::vector<double> dy = random_integers(elems_of_y(d), 9, 2);
  CHECK(count_different(forward(d, x), run_forward(d, x, offset), d.dtype) == 0);
  const std::vector<double> dx = run_backward(d, x, dy, offset);
  bool shares_are_exact = true;
  each_window(d, [&](size_t, const Window &window) {
    shares_are_exact &= d.mode == MP_POOL_MAX || is_power_of_two(count_of(d, window));
  });
  CHECK((shares_are_exact ? count_different(backward(d, x, dy), dx, d.dtype)
                          : count_outside(backward(d, x, dy), dx, d.dtype)) == 0);
}

}  // namespace

// ---------------------------------------------------------------------------- shapes and types

TEST_CASE("pool: all modes, types and shapes are exact", "[layers][pool][short]") {
  check_all(shapes(), [](const mp_pool2d_desc_t &d) { check_exact(d); });
}

TEST_CASE("pool: positions that exceed shared memory are exact", "[layers][pool][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    auto d = make_desc(1, 33, 34, dtype == MP_FP32 ? 4 : 8, 15, 15, 1, 1, {7, 7, 7, 7});
    d.dtype = dtype;
    check_exact(d);
  }
}

TEST_CASE("pool: unaligned tensors", "[layers][pool][short]") {
  const auto of_channels = [](int32_t c) {
    return make_desc(2, 6, 5, c, 3, 2, 2, 1, {1, 1, 0, 1});
  };
  check_all({of_channels(8), of_channels(11)}, [](const mp_pool2d_desc_t &d) {
    for (const int64_t offset : {1, 4}) check_exact(d, offset);
  });
}

TEST_CASE("pool: reals are within their error bound", "[layers][pool][short]") {
  check_all(shapes(), [](const mp_pool2d_desc_t &d) {
    const std::vector<double> x = random_reals(d.dtype, elems_of_x(d), -2.0, 3.0, 3);
    const std::vector<double> dy = random_reals(d.dtype, elems_of_y(d), -3.0, 2.0, 4);
    CHECK(count_outside(forward(d, x), run_forward(d, x), d.dtype) == 0);
    CHECK(count_outside(backward(d, x, dy), run_backward(d, x, dy), d.dtype) == 0);
  });
}

TEST_CASE("pool: more pixels than concurrent threads", "[layers][pool]") {
  mp_pool2d_desc_t d = make_desc(9, 57, 61, 8, 3, 3, 2, 2, {1, 1, 1, 1});
  d.dtype = MP_FP16;
  for (const mp_pool_mode_t mode : kModes) {
    d.mode = mode;
    check_exact(d);
  }
}

TEST_CASE("pool: results have the same bits in repeated calls", "[layers][pool][short]") {
  mp_pool2d_desc_t d = make_desc(1, 9, 9, 5, 3, 3, 1, 1, {1, 1, 1, 1});
  for (const mp_pool_mode_t mode : kModes) {
    d.mode = mode;
    const std::vector<double> x = random_reals(MP_FP32, elems_of_x(d), -1.0, 1.0, 5);
    const std::vector<double> dy = random_reals(MP_FP32, elems_of_y(d), -1.0, 1.0, 6);
    CHECK(run_forward(d, x) == run_forward(d, x));
    CHECK(run_backward(d, x, dy) == run_backward(d, x, dy));
  }
}

TEST_CASE("pool: output sizes equal torch's with ceil_mode and dilation", "[layers][pool][short]") {
  // torch.nn.functional.max_pool2d(x, 3, stride=2, padding=1, dilation=2, ceil_mode=...) of 10 x 11
  // pixels gives 4 x 5 and 5 x 5; with 2, stride=2, padding=0 and no dilation 5 x 5 and 5 x 6.
  const auto size = [](const mp_pool2d_desc_t &d) {
    int32_t p = 0, q = 0;
    require_ok(mp_pool2d_get_output_size(&d, &p, &q));
    return std::pair(p, q);
  };
  const mp_pool2d_desc_t wide = dilated(make_desc(1, 10, 11, 1, 3, 3, 2, 2, {1, 1, 1, 1}), 2, 2);
  CHECK(size(wide) == std::pair(4, 5));
  CHECK(size(rounded_up(wide)) == std::pair(5, 5));
  const mp_pool2d_desc_t narrow = make_desc(1, 10, 11, 1, 2, 2, 2, 2);
  CHECK(size(narrow) == std::pair(5, 5));
  CHECK(size(rounded_up(narrow)) == std::pair(5, 6));
  // The third window of 2 would start in the padding after 3 pixels: torch omits it.
  CHECK(size(rounded_up(make_desc(1, 3, 3, 1, 2, 2, 2, 2, {1, 1, 1, 1}))) == std::pair(2, 2));
  std::vector<mp_pool2d_desc_t> all = shapes();
  all.push_back(make_desc(1, 2, 8, 1, 5, 2, 3, 3, {1, 1, 0, 0}));
  for (const mp_pool2d_desc_t &d : all) {
    const Outputs outputs = outputs_of(d);
    CHECK(size(d) == std::pair(static_cast<int32_t>(outputs.p), static_cast<int32_t>(outputs.q)));
  }
  mp_pool2d_desc_t zero = narrow;
  zero.dilation_h = zero.dilation_w = 0;  // value set by callers of the first version
  CHECK(size(zero) == size(narrow));
}

// ---------------------------------------------------------------------------- edges

TEST_CASE("pool: the first of equal maxima gets the gradient", "[layers][pool][short]") {
  const mp_pool2d_desc_t d = make_desc(1, 2, 2, 1, 2, 2, 1, 1);
  CHECK(run_backward(d, {1.0, 5.0, 5.0, 5.0}, {7.0}) == std::vector<double>{0.0, 7.0, 0.0, 0.0});
  CHECK(run_backward(d, {-0.0, 0.0, 0.0, -1.0}, {7.0}) == std::vector<double>{7.0, 0.0, 0.0, 0.0});
  CHECK(run_backward(d, {-kInfinity, -kInfinity, -kInfinity, -kInfinity}, {7.0}) ==
        std::vector<double>{7.0, 0.0, 0.0, 0.0});
}

TEST_CASE("pool: NaN and infinities reach only the pixels of their windows",
          "[layers][pool][short]") {
  check_all(shapes(), [](const mp_pool2d_desc_t &d) {
    std::vector<double> x = random_integers(elems_of_x(d), 3, 7);
    const double special[] = {kNaN, kInfinity, -kInfinity, -kNaN, -0.0, -0.0};
    for (size_t i = 0; i < x.size(); i += 5) x[i] = special[i / 5 % 6];
    CHECK(count_outside(forward(d, x), run_forward(d, x), d.dtype) == 0);
    std::vector<double> dy = random_integers(elems_of_y(d), 9, 8);
    for (size_t i = 3; i < dy.size(); i += 10) dy[i] = special[i / 10 % 2];
    CHECK(count_outside(backward(d, x, dy), run_backward(d, x, dy), d.dtype) == 0);
  });
}

TEST_CASE("pool: means of large numbers do not overflow", "[layers][pool][short]") {
  mp_pool2d_desc_t d = make_desc(1, 4, 4, 8, 4, 4, 4, 4);
  d.dtype = MP_FP16;
  d.mode = MP_POOL_AVG_INCLUDE_PAD;
  const std::vector<double> x(static_cast<size_t>(elems_of_x(d)), 65504.0);
  CHECK(run_forward(d, x) == std::vector<double>(8, 65504.0));
}

TEST_CASE("pool: a window larger than the padded image has no outputs", "[layers][pool][short]") {
  for (mp_pool2d_desc_t d : {make_desc(2, 3, 8, 5, 5, 2, 1, 1, {0, 1, 0, 0}),
                             make_desc(2, 8, 3, 5, 2, 6, 1, 1, {0, 0, 1, 1})}) {
    for (const mp_pool_mode_t mode : kModes) {
      d.mode = mode;
      const DeviceArray dx(MP_FP32, elems_of_x(d));
      require_ok(mp_pool2d_forward(context(), &d, nullptr, nullptr, nullptr, kStream));
      require_ok(mp_pool2d_backward(context(), &d, nullptr, nullptr, nullptr, dx.data(), nullptr,
                                    kStream));
      CHECK(dx.download() == std::vector<double>(static_cast<size_t>(elems_of_x(d)), 0.0));
    }
  }
}
