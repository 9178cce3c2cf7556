// Common parts of the calibration programs: device arrays, small integers, and the output format
// that softgpu/calibrate reads.
//
//   PROGRAM [TEXT]    only the cases whose names contain TEXT
#pragma once

#include <cuda_runtime_api.h>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace calibration {

/// Ends the program after a runtime error; its remaining cases count as missing.
inline void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  std::printf("stopped: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

/// An array on the device.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T> &values) : OnDevice(values.size()) {
    check(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  /// Allocates uninitialized memory.
  explicit OnDevice(size_t size) : size_(size) {
    void *data = nullptr;
    if (size > 0) check(cudaMalloc(&data, size * sizeof(T)), "cudaMalloc");
    data_ = static_cast<T *>(data);
  }
  OnDevice(OnDevice &&other) noexcept
      : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;
  ~OnDevice() { cudaFree(data_); }

  T *get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return values;
  }

 private:
  size_t size_;
  T *data_ = nullptr;
};

/// Returns integers from -2 to 2, for which sums of products are exact in fp32, and up to 512 terms
/// in fp16.
template <class T>
std::vector<T> small_integers(size_t size, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<T> values(size);
  for (T &value : values) value = T(float(int(random() / 1000 % 5) - 2));
  return values;
}

/// Cases of a program, each reported on one line.
class Report {
 public:
  Report(int argc, char **argv) : only_(argc > 1 ? argv[1] : "") {}

  bool wants(const std::string &name) const { return name.find(only_) != std::string::npos; }

  /// @param trouble  description of a wrong result, or ""
  void say(const std::string &name, const std::string &trouble) {
    if (trouble.empty())
      std::printf("right: %s\n", name.c_str());
    else
      std::printf("WRONG: %s: %s\n", name.c_str(), trouble.c_str());
    std::fflush(stdout);
    (trouble.empty() ? passed_ : failed_)++;
  }

  /// Compares bits, ignoring the sign of zero.
  template <class T, class Want>
  void compare(const std::string &name, const std::vector<T> &got, const std::vector<Want> &want) {
    using std::to_string;
    if (got.size() != want.size())
      return say(name, to_string(got.size()) + " values for " + to_string(want.size()));
    size_t num_wrong = 0, first = 0;
    for (size_t i = got.size(); i-- > 0;)
      if (!(got[i] == T(want[i]))) num_wrong++, first = i;
    if (num_wrong == 0) return say(name, "");
    say(name, to_string(num_wrong) + " of " + to_string(want.size()) + " differ, the first is [" +
                  to_string(first) + "]: " + to_string(double(got[first])) + " for " +
                  to_string(double(want[first])));
  }

  /// Prints the totals.  Returns the exit code for main.
  int finish() const {
    std::printf("%d passed, %d failed\n", passed_, failed_);
    return failed_ > 0;
  }

 private:
  std::string only_;
  int passed_ = 0, failed_ = 0;
};

}  // namespace calibration
