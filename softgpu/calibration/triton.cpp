// Runs the kernels that triton_kernels.py compiled; the first argument is the folder with their
// PTX.
#include <cuda_fp16.h>
#include <cmath>
#include <fstream>
#include <sstream>

#include "reference.h"
#include "report.h"

namespace calibration {
namespace {

class Kernel {
 public:
  Kernel(const std::string &folder, const std::string &name) : file_(folder + "/" + name) {
    std::ifstream ptx(file_ + ".ptx"), launch(file_ + ".launch");
    std::string entry;
    if (!(launch >> entry >> num_warps_ >> shared_bytes_ >> scratch_bytes_)) {
      std::printf("stopped: no %s.launch\n", file_.c_str());
      std::exit(1);
    }
    text_ << ptx.rdbuf();
    cudaLibrary_t library;
    check(cudaLibraryLoadData(&library, text_.str().c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                              0),
          "cudaLibraryLoadData");
    check(cudaLibraryGetKernel(&kernel_, library, entry.c_str()), "cudaLibraryGetKernel");
    check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_),
          "cudaFuncSetAttribute");
  }

  /// Appends the arguments that Triton adds to those of the source: scratch memory of the grid and
  /// of its profiler.
  template <class... Arguments>
  void operator()(dim3 grid, Arguments... arguments) const {
    const OnDevice<char> scratch(size_t(grid.x) * grid.y * size_t(scratch_bytes_));
    char *of_grid = scratch.get(), *of_profiler = nullptr;
    void *pointers[] = {&arguments..., &of_grid, &of_profiler};
    check(cudaLaunchKernel(kernel_, grid, dim3(32 * num_warps_), pointers, size_t(shared_bytes_),
                           nullptr),
          "cudaLaunchKernel");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

 private:
  std::string file_;
  std::stringstream text_;
  cudaKernel_t kernel_;
  int num_warps_, shared_bytes_, scratch_bytes_;
};

unsigned num_tiles(int size, int tile) {
  return unsigned((size + tile - 1) / tile);
}

/// Runs a matmul.
/// @param has_maps  B is transposed, and the grid has one row of blocks per row of tiles
void check_matmul(Report &report, const std::string &folder, const std::string &file, GemmSize tile,
                  GemmSize size, bool has_maps) {
  const std::string name = "Triton " + file;
  if (!report.wants(name)) return;
  const auto [m, n, k] = size;
  const auto a = small_integers<__half>(size_t(m) * k, 1);
  const auto b = small_integers<__half>(size_t(k) * n, 2);
  const OnDevice<__half> on_device_a(a), on_device_b(b);
  const OnDevice<float> c(size_t(m) * n);
  const Kernel kernel(folder, file);
  const unsigned tiles_m = num_tiles(m, tile.m), tiles_n = num_tiles(n, tile.n);
  if (has_maps)
    kernel({tiles_m, tiles_n}, on_device_a.get(), on_device_b.get(), c.get(), m, n, k);
  else
    kernel({tiles_m * tiles_n}, on_device_a.get(), on_device_b.get(), c.get(), m, n, k, k, n, n);
  report.compare(
      name, c.read(),
      product(size, a.data(), row_major(k), b.data(), has_maps ? column_major(k) : row_major(n)));
}

constexpr int kHeadSize = 64;

/// Returns one row of a head: the softmax weights of the keys, times the values.
std::vector<double> attend(const __half *q, const __half *k, const __half *v, int num_keys) {
  std::vector<double> weights(num_keys), row(kHeadSize);
  double sum = 0;
  for (int j = 0; j < num_keys; j++) {
    double dot = 0;
    for (int d = 0; d < kHeadSize; d++) dot += double(q[d]) * double(k[j * kHeadSize + d]);
    sum += weights[j] = std::exp(dot / std::sqrt(kHeadSize));
  }
  for (int j = 0; j < num_keys; j++)
    for (int d = 0; d < kHeadSize; d++) row[d] += weights[j] / sum * double(v[j * kHeadSize + d]);
  return row;
}

/// Checks a mean: with keys of zeros all weights are equal, and for a power of two of keys the mean
/// is exact, and so is the result.
void check_mean(Report &report, const Kernel &kernel) {
  const std::string name = "Triton attention, the mean of 128 values";
  if (!report.wants(name)) return;
  constexpr int kRows = 128;
  const auto values = small_integers<__half>(kRows * kHeadSize, 3);
  const OnDevice<__half> q(small_integers<__half>(values.size(), 1)), v(values);
  const OnDevice<__half> k(std::vector<__half>(values.size(), __half(0.0f)));
  const OnDevice<float> o(values.size());
  kernel({1, 1}, q.get(), k.get(), v.get(), o.get(), kRows, 1.0f);
  std::vector<float> want(values.size());
  for (size_t i = 0; i < want.size(); i++)
    for (int row = 0; row < kRows; row++)
      want[i] += float(values[row * kHeadSize + i % kHeadSize]) / kRows;
  report.compare(name, o.read(), want);
}

void check_attention(Report &report, const Kernel &kernel) {
  constexpr int kRows = 200, kHeads = 2;
  const std::string name = "Triton attention, 2 heads of 200 rows";
  if (!report.wants(name)) return;
  const size_t head = kRows * kHeadSize;
  std::vector<__half> inputs[3];
  std::minstd_rand random(4);
  for (auto &input : inputs)
    for (size_t i = 0; i < kHeads * head; i++)
      input.push_back(__half(float(random() % 1024) / 1024 - 0.5f));
  const OnDevice<__half> q(inputs[0]), k(inputs[1]), v(inputs[2]);
  const OnDevice<float> o(kHeads * head);
  constexpr float kLog2E = 1.44269504f;
  kernel({num_tiles(kRows, 128), kHeads}, q.get(), k.get(), v.get(), o.get(), kRows,
         kLog2E / std::sqrt(float(kHeadSize)));

  // Weights are rounded to fp16, with a relative error of 2^-11, and then multiplied by values of
  // at most 1/2: an error of at most 2^-12 of the sum of the weights, by which the result is
  // divided.  All other errors are far smaller.
  constexpr double kBound = 1.0 / 4096;
  const std::vector<float> got = o.read();
  double worst = 0;
  for (size_t row = 0; row < kHeads * kRows; row++) {
    const size_t start = row / kRows * head;
    const auto want =
        attend(&inputs[0][row * kHeadSize], &inputs[1][start], &inputs[2][start], kRows);
    for (int d = 0; d < kHeadSize; d++) {
      const double difference = std::fabs(got[row * kHeadSize + d] - want[d]);
      if (!(difference <= worst)) worst = difference;
    }
  }
  report.say(name, worst <= kBound ? "" : "differs by " + std::to_string(worst));
}

}  // namespace
}  // namespace calibration

int main(int argc, char **argv) {
  using namespace calibration;
  if (argc < 2) return std::printf("triton FOLDER [TEXT]\n"), 2;
  const std::string folder = argv[1];
  Report report(argc - 1, argv + 1);
  check_matmul(report, folder, "matmul_128", {128, 128, 64}, {200, 272, 208}, false);
  check_matmul(report, folder, "matmul_64", {64, 64, 32}, {200, 136, 104}, false);
  check_matmul(report, folder, "matmul_64_sm80", {64, 64, 32}, {200, 144, 112}, false);
  check_matmul(report, folder, "matmul_maps", {128, 64, 64}, {200, 144, 208}, true);
  const Kernel attention(folder, "attention");
  check_mean(report, attention);
  check_attention(report, attention);
  return report.finish();
}
