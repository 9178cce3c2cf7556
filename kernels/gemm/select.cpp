// Which GEMM kernel runs a problem: a table, what each row can run, and a prediction of its time.
//
// Pure functions of (problem, device).  The prediction models only what differs between the
// candidates: how full the last wave is, how much of a tile lies outside the matrix, and what a
// split of k costs.  The rates are data-sheet values; the efficiencies of tiles come from
// published WMMA kernels and have not been calibrated on a GPU of ours yet.
#include "kernels/gemm/select.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/gemm/tiles.h"

namespace mp {

namespace {

size_t static_smem(bool, bool) {
  return 0;
}

constexpr std::array kKernels = {
    GemmKernel{GemmTile::wmma_256x128, "wmma_256x128x32_s3", true, 256, 128, 32,
               WmmaTile256x128::smem_bytes, 1.0},
    GemmKernel{GemmTile::wmma_128x128, "wmma_128x128x32_s3", true, 128, 128, 32,
               WmmaTile128x128::smem_bytes, 0.95},
    GemmKernel{GemmTile::wmma_64x64, "wmma_64x64x32_s4", true, 64, 64, 32,
               WmmaTile64x64::smem_bytes, 0.6},
    GemmKernel{GemmTile::simt_128x128, "simt_128x128x16", false, 128, 128, 16, static_smem, 0.8},
    GemmKernel{GemmTile::simt_64x64, "simt_64x64x16", false, 64, 64, 16, static_smem, 0.6},
};

constexpr std::array kSplits = {1, 2, 4, 8, 16, 32};
constexpr int64_t kMinSliceElems = 128;

/// "wmma_128x128x32_s3", "wmma_128x128x32_s3_k2"...; one per kernel and split, built once.
const char *choice_name(const GemmKernel &kernel, size_t split_index) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const GemmKernel &row : kKernels)
      for (const int split : kSplits)
        all.push_back(split == 1 ? row.name : row.name + ("_k" + std::to_string(split)));
    return all;
  }();
  return names[static_cast<size_t>(&kernel - kKernels.data()) * kSplits.size() + split_index]
      .c_str();
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// NULL if the kernel can run the problem with that split, else why not.
const char *why_not(const GemmKernel &kernel, int split_k, const GemmProblem &p,
                    const Device &device) {
  if (kernel.tensor_core) {
    if (p.dtype_ab == MP_FP32) return "multiplies FP16 and BF16 only";
    if (p.dtype_ab == MP_BF16 && device.arch < 80) return "needs sm_80 for BF16";
    if (device.arch < 75) return "needs sm_75";
    const size_t smem = kernel.smem_bytes(p.op_a == MP_OP_N, p.op_b == MP_OP_T);
    if (static_cast<int64_t>(smem) > device.smem_per_block)
      return "needs more shared memory than the device has";
  }
  if (split_k > 1) {
    if (!kernel.tensor_core) return "does not split k";
    const int64_t slice = slice_elems(kernel, p.k, split_k);
    if (slice < kMinSliceElems || ceil_div(p.k, slice) != split_k)
      return "needs a longer k for this split";
  }
  return nullptr;
}

/// Multiply-adds per SM and microsecond at full rate.
double peak_per_sm_us(const GemmKernel &kernel, const Device &device) {
  constexpr double kClocksPerUs = 1500;
  if (!kernel.tensor_core) return 128 * kClocksPerUs;
  // mma.sync reaches about 62 % of wgmma's rate on sm_90 (arXiv:2402.13499, table 8).
  const double per_clock = device.arch >= 90 ? 0.62 * 2048 : device.arch >= 80 ? 1024 : 256;
  return per_clock * kClocksPerUs;
}

double predict_us(const GemmKernel &kernel, int split_k, const GemmProblem &p, const Device &device,
                  bool aligned) {
  constexpr double kEdgeElems = 96;  // filling the pipeline and the epilogue, as k
  constexpr double kLaunchUs = 3;
  constexpr double kBytesPerUs = 2.0e6;   // partial sums, mostly in L2
  constexpr double kUnalignedFactor = 3;  // element-wise copies into smem
  const int64_t tiles = ceil_div(p.m, kernel.tile_m) * ceil_div(p.n, kernel.tile_n);
  const double blocks = static_cast<double>(tiles) * static_cast<double>(p.batch_count) * split_k;
  const double waves = std::max(1.0, std::ceil(blocks / device.num_sms));
  const double slice = static_cast<double>(slice_elems(kernel, p.k, split_k));
  const double work = static_cast<double>(kernel.tile_m) * kernel.tile_n * (slice + kEdgeElems);
  const double rate = peak_per_sm_us(kernel, device) * kernel.efficiency;
  double us =
      kLaunchUs + waves * work / rate * (aligned || !kernel.tensor_core ? 1 : kUnalignedFactor);
  if (split_k > 1) {
    const double elems = static_cast<double>(p.m) * static_cast<double>(p.n) *
                         static_cast<double>(p.batch_count) * split_k;
    us += kLaunchUs + 2 * sizeof(float) * elems / kBytesPerUs;
  }
  return us;
}

/// Every row of A and B starts 16-byte aligned if the first does.
bool has_vector_rows(const GemmProblem &p) {
  return (p.a.ld | p.b.ld | p.a.stride | p.b.stride) % 8 == 0;
}

GemmChoice choice_of(const GemmKernel &kernel, size_t split_index, const GemmProblem &p,
                     const Device &device, bool aligned) {
  const int split_k = kSplits[split_index];
  const size_t partial_sums = sizeof(float) * static_cast<size_t>(split_k) *
                              static_cast<size_t>(p.batch_count) * static_cast<size_t>(p.m) *
                              static_cast<size_t>(p.n);
  return {&kernel, split_k, split_k > 1 ? partial_sums : 0,
          predict_us(kernel, split_k, p, device, aligned), choice_name(kernel, split_index)};
}

}  // namespace

int64_t slice_elems(const GemmKernel &kernel, int64_t k, int split_k) {
  return ceil_div(ceil_div(k, split_k), kernel.tile_k) * kernel.tile_k;
}

int rank_gemm(const GemmProblem &problem, const Device &device, bool aligned, GemmChoice *choices,
              int capacity) {
  // On the stack: this runs in every mp_gemm.
  std::array<GemmChoice, kKernels.size() * kSplits.size()> all;
  auto end = all.begin();
  const bool vectorised = aligned && has_vector_rows(problem);
  for (const GemmKernel &kernel : kKernels)
    for (size_t s = 0; s < kSplits.size(); s++)
      if (why_not(kernel, kSplits[s], problem, device) == nullptr)
        *end++ = choice_of(kernel, s, problem, device, vectorised);
  // Among equals the earlier row wins: the larger tile, and the smaller split.
  std::sort(all.begin(), end, [](const GemmChoice &x, const GemmChoice &y) {
    return std::tie(x.predicted_us, x.kernel, x.split_k) <
           std::tie(y.predicted_us, y.kernel, y.split_k);
  });
  const int count = static_cast<int>(end - all.begin());
  std::copy_n(all.begin(), std::min(count, capacity), choices);
  return count;
}

bool find_gemm(const GemmProblem &problem, const Device &device, bool aligned, const char *name,
               GemmChoice *choice, const char **why) {
  *why = nullptr;
  for (const GemmKernel &kernel : kKernels) {
    for (size_t s = 0; s < kSplits.size(); s++) {
      if (std::strcmp(choice_name(kernel, s), name) != 0) continue;
      *why = why_not(kernel, kSplits[s], problem, device);
      if (*why != nullptr) return false;
      *choice = choice_of(kernel, s, problem, device, aligned && has_vector_rows(problem));
      return true;
    }
  }
  return false;
}

std::string slow_path_reason(const GemmProblem &problem, bool aligned) {
  if (problem.dtype_ab == MP_FP32 || (aligned && has_vector_rows(problem))) return "";
  if (!aligned) return "A or B is not 16-byte aligned";
  const auto reason = [](const char *name, int64_t value) {
    return std::string(name) + " = " + std::to_string(value) + " is not a multiple of 8";
  };
  if (problem.a.ld % 8 != 0) return reason("lda", problem.a.ld);
  if (problem.b.ld % 8 != 0) return reason("ldb", problem.b.ld);
  if (problem.a.stride % 8 != 0) return reason("stride_a", problem.a.stride);
  return reason("stride_b", problem.b.stride);
}

}  // namespace mp
