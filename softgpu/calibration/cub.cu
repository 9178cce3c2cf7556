// Device-wide algorithms of CUB, compared with the host.
#include <algorithm>
#include <cub/cub.cuh>
#include <functional>
#include <numeric>

#include "report.h"

namespace calibration {
namespace {

/// Calls an algorithm of CUB twice: for the size of its temporary storage, and to run it.
template <class Algorithm, class... Arguments>
void run(Algorithm algorithm, Arguments... arguments) {
  size_t bytes = 0;
  check(algorithm(nullptr, bytes, arguments...), "size of scratch memory");
  const OnDevice<char> scratch(bytes);
  check(algorithm(scratch.get(), bytes, arguments...), "CUB");
}
#define CUB_ALGORITHM(name) \
  [](void *scratch, size_t &bytes, auto... rest) { return cub::name(scratch, bytes, rest...); }

struct IsOdd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};

/// Inputs of one length.
struct Inputs {
  explicit Inputs(int n) {
    std::mt19937 random(2);
    for (int i = 0; i < n; i++) {
      ints.push_back(int(random() % 100'000) - 50'000);
      floats.push_back(float(ints.back() % 64));
      doubles.push_back(double(ints.back()) / 8);
      words.push_back(uint64_t(random()) << 32 | random());
      runs.push_back(ints.back() / 20'000);
    }
  }

  std::vector<int> ints, runs;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<uint64_t> words;
};

/// Checks an algorithm with one input and one output, which `expect` makes from the input.
template <class T, class Algorithm, class Expect>
void check_one(Report &report, const std::string &name, std::vector<T> values, Algorithm algorithm,
               Expect &&expect) {
  if (!report.wants(name)) return;
  const int n = int(values.size());
  const OnDevice<T> from(values);
  expect(values);
  const OnDevice<T> to(values.size());
  run(algorithm, from.get(), to.get(), n);
  report.compare(name, to.read(), values);
}

template <class T>
void check_sum(Report &report, const std::string &name, const std::vector<T> &in) {
  check_one(report, name, in, CUB_ALGORITHM(DeviceReduce::Sum),
            [](auto &x) { x = {std::accumulate(x.begin(), x.end(), T(0))}; });
}

void check_reductions(Report &report, const std::string &length, const Inputs &in) {
  check_sum(report, "sum of int, " + length, in.ints);
  check_sum(report, "sum of float, " + length, in.floats);
  check_sum(report, "sum of double, " + length, in.doubles);
  check_one(report, "maximum of float, " + length, in.floats, CUB_ALGORITHM(DeviceReduce::Max),
            [](auto &x) { x = {*std::max_element(x.begin(), x.end())}; });
}

void check_scans(Report &report, const std::string &length, const Inputs &in) {
  check_one(report, "exclusive sums of int, " + length, in.ints,
            CUB_ALGORITHM(DeviceScan::ExclusiveSum),
            [](auto &x) { std::exclusive_scan(x.begin(), x.end(), x.begin(), 0); });
  check_one(report, "inclusive sums of double, " + length, in.doubles,
            CUB_ALGORITHM(DeviceScan::InclusiveSum),
            [](auto &x) { std::inclusive_scan(x.begin(), x.end(), x.begin()); });
}

void check_sort_pairs(Report &report, const std::string &name, const std::vector<float> &keys) {
  if (!report.wants(name)) return;
  const int n = int(keys.size());
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  const OnDevice<float> from(keys), to(n);
  const OnDevice<int> values(places), sorted(n);
  run(CUB_ALGORITHM(DeviceRadixSort::SortPairs), from.get(), to.get(), values.get(), sorted.get(),
      n);
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  report.compare(name, sorted.read(), places);
}

void check_sorts(Report &report, const std::string &length, const Inputs &in) {
  check_one(report, "sort int, " + length, in.ints, CUB_ALGORITHM(DeviceRadixSort::SortKeys),
            [](auto &x) { std::sort(x.begin(), x.end()); });
  check_one(report, "sort uint64_t downwards, " + length, in.words,
            CUB_ALGORITHM(DeviceRadixSort::SortKeysDescending),
            [](auto &x) { std::sort(x.begin(), x.end(), std::greater<>()); });
  check_sort_pairs(report, "sort pairs by float, " + length, in.floats);
}

/// Compares the selected elements and their number.
void compare_selected(Report &report, const std::string &name, std::vector<int> got, int num_got,
                      const std::vector<int> &want) {
  got.resize(std::clamp(num_got, 0, int(got.size())));
  report.compare(name, got, want);
}

void check_selections(Report &report, const std::string &length, const Inputs &in) {
  const int n = int(in.ints.size());
  if (const std::string name = "select odd ones, " + length; report.wants(name)) {
    std::vector<int> want;
    std::copy_if(in.ints.begin(), in.ints.end(), std::back_inserter(want), IsOdd());
    const OnDevice<int> from(in.ints), to{std::vector<int>(n)}, count(1);
    run(CUB_ALGORITHM(DeviceSelect::If), from.get(), to.get(), count.get(), n, IsOdd());
    compare_selected(report, name, to.read(), count.read()[0], want);
  }
  if (const std::string name = "select first ones, " + length; report.wants(name)) {
    std::vector<int> want = in.runs;
    want.erase(std::unique(want.begin(), want.end()), want.end());
    const OnDevice<int> from(in.runs), to{std::vector<int>(n)}, count(1);
    run(CUB_ALGORITHM(DeviceSelect::Unique), from.get(), to.get(), count.get(), n);
    compare_selected(report, name, to.read(), count.read()[0], want);
  }
}

void check_histogram(Report &report, const std::string &name, const std::vector<float> &in) {
  if (!report.wants(name)) return;
  constexpr int kBins = 16;
  constexpr float kTop = 64;
  std::vector<int> want(kBins);
  for (const float x : in)
    if (x >= 0 && x < kTop) want[size_t(x * kBins / kTop)]++;
  const OnDevice<float> from(in);
  const OnDevice<int> bins(kBins);
  run(CUB_ALGORITHM(DeviceHistogram::HistogramEven), from.get(), bins.get(), kBins + 1, 0.0f, kTop,
      int(in.size()));
  report.compare(name, bins.read(), want);
}

}  // namespace
}  // namespace calibration

int main(int argc, char **argv) {
  using namespace calibration;
  Report report(argc, argv);
  for (const int n : {1, 33, 5'003, 20'011}) {  // one lane, one warp plus one, one block, several
    const Inputs in(n);
    const std::string length = std::to_string(n);
    check_reductions(report, length, in);
    check_scans(report, length, in);
    check_sorts(report, length, in);
    check_selections(report, length, in);
    check_histogram(report, "histogram, " + length, in.floats);
  }
  return report.finish();
}
