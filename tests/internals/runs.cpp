// Distribution of a contiguous segment over threads in vectors (kernels/tensors/runs.h): every
// element is visited once for any length, alignment and number of vectors in flight.
#include <numeric>

#include "kernels/tensors/runs.h"
#include "testing.h"
#include "tests/support/numeric.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr int kWarps = 2, kThreads = kWarps * kWarpSize;
constexpr int kStride = kThreads * kVec;
constexpr int kGuard = 64;
constexpr float kUntouched = -7.0f;

struct Segment {
  mp_dtype_t dtype;
  const void *in;
  void *out;
  int32_t *visits;   ///< [element], number of visits
  int32_t *threads;  ///< [element], visiting thread
  int32_t *order;    ///< [element], index of the vector in its thread
  int32_t *wrong;    ///< [thread], non-zero values loaded outside the segment
  int begin, count;
  bool is_aligned;
};

/// Computes out = 2 in.
template <int kRuns>
void double_all(const Segment &s) {
  int number = 0;
  for_each_vector<kThreads, kRuns>(s.begin, s.count, s.is_aligned, [&](auto runs) {
    float x[runs.kRuns][kVec];
    load_vectors(x, runs, s.dtype, s.in);
    for (int run = 0; run < runs.kRuns; run++) {
      for (int i = 0; i < kVec; i++) {
        if (!runs.has(run, i)) {
          s.wrong[thread_index()] += x[run][i] != 0.0f;
          continue;
        }
        const int64_t element = runs.at(run, i);
        s.visits[element]++;
        s.threads[element] = thread_index();
        s.order[element] = number;
        x[run][i] *= 2.0f;
      }
      number += runs.has(run, 0);
    }
    store_vectors(runs, s.dtype, s.out, x);
  });
}

template <int kRuns>
void check(mp_dtype_t dtype, int begin, int count, int misalignment) {
  INFO(mp_dtype_name(dtype) << ", " << count << " elements from " << begin << ", " << kRuns
                            << " in flight, misaligned by " << misalignment);
  const int size = misalignment + begin + count + kGuard;
  std::vector<int32_t> visits(static_cast<size_t>(size)), threads = visits, order = visits;
  std::vector<int32_t> loaded_wrong(kThreads);
  const auto bytes = static_cast<size_t>(size) * mp_dtype_size(dtype);
  std::vector<Pack<float, 4>> in(bytes / 16 + 1), out = in;
  const auto at = [&](std::vector<Pack<float, 4>> &memory) {
    return reinterpret_cast<char *>(memory.data()) +
           static_cast<size_t>(misalignment) * mp_dtype_size(dtype);
  };
  const int usable = size - misalignment;
  for (int i = 0; i < usable; i++) {
    const float inside[1] = {static_cast<float>(i % 251)}, outside[1] = {kUntouched};
    store_vector(dtype, at(in), i, inside, 1);
    store_vector(dtype, at(out), i, outside, 1);
  }
  const Segment segment{dtype,
                        at(in),
                        at(out),
                        visits.data(),
                        threads.data(),
                        order.data(),
                        loaded_wrong.data(),
                        begin,
                        count,
                        misalignment == 0};
  mp::Device device{};
  device.num_sms = engine::max_workers();
  launch("double_all", double_all<kRuns>, device, {1, kThreads}, nullptr, segment);

  int wrong = std::accumulate(loaded_wrong.begin(), loaded_wrong.end(), 0);
  for (int i = 0; i < usable; i++) {
    const bool inside = i >= begin && i < begin + count;
    float value[1];
    load_vector(value, dtype, at(out), i, 1);
    const int lane = (i - begin) / kQuad % kWarpSize, span = (i - begin) / kWarpSpan;
    wrong += visits[static_cast<size_t>(i)] != inside;
    wrong += value[0] != (inside ? 2.0f * static_cast<float>(i % 251) : kUntouched);
    if (!inside) continue;
    wrong += threads[static_cast<size_t>(i)] != span % kWarps * kWarpSize + lane;
    wrong += order[static_cast<size_t>(i)] != span / kWarps;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("runs: every element is visited once, by the same thread in the same order") {
  const int lengths[] = {0, 1, 4, 5, 127, 129, kWarpSpan - 1, kWarpSpan, 4 * kStride};
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int misalignment : {0, 1, 4}) {
      for (const int length : lengths) check<4>(dtype, 0, length, misalignment);
      for (int batches = 1; batches <= 4; batches++) {
        for (const int beside : {-129, -128, -5, -1, 1, 8, 131}) {
          check<1>(dtype, 0, batches * kStride + beside, misalignment);
          check<2>(dtype, 64, batches * kStride + beside, misalignment);
          check<4>(dtype, 64, batches * kStride + beside, misalignment);
        }
      }
    }
  }
}
