// Softmax cross-entropy of rows that one block processes: elements before and after 16-byte
// vectors, several vectors per thread, and rows that exceed shared memory.
#include <thread>

#include "tests/layers/xent_case.h"

using namespace mptest;

namespace {

constexpr int64_t kShortest = 1025;  // classes of the shortest row that a block processes

int64_t elements_of_16_bytes(mp_dtype_t dtype) {
  return static_cast<int64_t>(16 / mp_dtype_size(dtype));
}

/// Returns positions at the boundaries of vectors and threads in a row of `classes`.
std::vector<int64_t> corners(int64_t classes) {
  return {0,   1,           6,           7,           8,           9,          511,
          512, classes / 2, classes - 9, classes - 8, classes - 2, classes - 1};
}

}  // namespace

TEST_CASE("xent long: all types and lengths", "[xent]") {
  uint64_t seed = 1000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {1025, 1031, 4096, 8192, 8193, 32000})
      check(random_case(dtype, 2, classes, 8.0, ++seed));
  }
}

TEST_CASE("xent long: a smaller launch of another thread keeps the limit of shared memory",
          "[xent]") {
  // CUDA's shared-memory limit of a kernel is the same for all threads.
  const XentCase large = random_case(MP_FP32, 2, 32000, 8.0, 1150);
  const XentCase small = random_case(MP_FP32, 2, 16000, 8.0, 1151);
  check(large);
  std::thread([&] { check(small); }).join();
  check(large);
}

TEST_CASE("xent long: any alignment of logits and gradient", "[xent][short]") {
  uint64_t seed = 1200;
  for (const mp_dtype_t dtype : kDtypes) {
    for (int64_t offset = 0; offset < elements_of_16_bytes(dtype); ++offset) {
      XentCase c = random_case(dtype, 3, kShortest, 6.0, ++seed);
      c.offset = offset;
      c.loss_scale = 1024.0f;
      check(c);  // rows of 1025 have different alignments
      c.padding = elements_of_16_bytes(dtype) - 1;
      c.gradient_offset = 1;
      c.gradient_padding = 2;
      check(c);
      c.in_place = true;
      check(c);
      c.forward_only = true;
      check(c);
    }
  }
}

TEST_CASE("xent long: every class is included at any position", "[xent]") {
  constexpr int64_t kClasses = 1100;
  std::vector<double> logits(kClasses, -kInfinity);
  logits[0] = 1.5;
  for (int64_t other = 1; other < kClasses; ++other) {
    logits[static_cast<size_t>(other)] = 1.5;
    XentCase c = row_case(other % 2 == 0 ? MP_BF16 : MP_FP16, logits, 0);
    c.offset = other % 8;
    const XentResult got = run(c);
    logits[static_cast<size_t>(other)] = -kInfinity;
    CAPTURE(other);
    CHECK(within(log(Bounded(2.0)), got.row_loss[0]));
    CHECK(got.dlogits.at(0, 0, 0) == -0.5);
    CHECK(got.dlogits.at(0, 0, other) == 0.5);
  }
}

TEST_CASE("xent long: logits that rise and fall by orders of magnitude", "[xent][short]") {
  // The running maximum increases many times, increases after masked classes, or never increases.
  constexpr int64_t kClasses = 20000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double slope : {0.005, -0.005, 3.0, -3.0}) {
      std::vector<double> logits;
      for (int64_t j = 0; j < kClasses; ++j) {
        const double logit = slope * static_cast<double>(j);
        logits.push_back(j % 3000 < 1500 ? -kInfinity : round_to(dtype, logit));
      }
      CAPTURE(mp_dtype_name(dtype), slope);
      check(row_case(dtype, logits, 1500));
      check(row_case(dtype, logits, static_cast<int32_t>(kClasses - 1)));
      check(row_case(dtype, logits, 0));  // masked
    }
  }
}

TEST_CASE("xent long: the first of equal largest logits is the prediction", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t first : corners(kShortest)) {
      std::vector<double> logits(kShortest, -2.0);
      for (const int64_t j : corners(kShortest))
        if (j >= first) logits[static_cast<size_t>(j)] = j % 2 == 0 ? 0.0 : -0.0;
      for (const int64_t label : corners(kShortest)) {
        XentCase c = row_case(dtype, logits, static_cast<int32_t>(label));
        c.offset = 3;
        CAPTURE(mp_dtype_name(dtype), first, label);
        CHECK(run(c).correct == (label == first));
      }
    }
  }
}
