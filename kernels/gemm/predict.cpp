#include "kernels/gemm/predict.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/workspace.h"

namespace mp {

namespace {

constexpr double kMb = 1e-6;  // of a byte
constexpr double kElemsPerGemvWave = 1 << 20;

double elem_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Matrices in memory: one for each item, or one for all.
double copies(const Operand &operand, double items) {
  return operand.stride == 0 && operand.items == nullptr ? 1 : items;
}

}  // namespace

double predicted_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel) {
  const double slowdown =
      (load.is_paired ? kernel.c2 : 1) * (load.is_unaligned ? device.unaligned : 1);
  const double sm_us = kernel.start_us + load.waves * tile_us(kernel, load.slice_k, slowdown);
  const double data_us =
      std::max(load.l2_mb * device.l2_us_per_mb, load.dram_mb * device.dram_us_per_mb);
  return load.launches * device.launch_us + std::max(sm_us, data_us) +
         load.partial_mb * device.partial_us_per_mb + load.sum_mb * device.sum_us_per_mb;
}

GemmCounter::GemmCounter(const GemmKernel &kernel, int cluster, const GemmProblem &problem,
                         const Device &device, bool vectorised)
    : kernel_(kernel),
      k_(problem.k),
      num_sms_(std::max(device.num_sms, 1)),
      shares_sms_(kernel.blocks_per_sm > 1 && device.target != MP_TARGET_HOST),
      common_{} {
  const TileCounts counts = tile_counts(kernel, cluster, problem.out.m, problem.out.n);
  const double items = problem.out.batch_count;
  tiles_ = static_cast<double>(counts.m) * static_cast<double>(counts.n) * items;
  at_a_time_ = std::floor(num_sms_ / cluster) * cluster;

  const double m = static_cast<double>(problem.out.m), n = static_cast<double>(problem.out.n),
               k = static_cast<double>(problem.k);
  const double ab_bytes = elem_bytes(problem.dtype_ab), cd_bytes = elem_bytes(problem.out.dtype);
  const double d_passes = problem.out.beta != 0 ? 2 : 1;
  double reads_of_a = static_cast<double>(counts.n), reads_of_b = static_cast<double>(counts.m);
  (kernel.pairs_in_m ? reads_of_b : reads_of_a) /= cluster;
  d_mb_ = items * m * n * sizeof(float) * kMb;

  // Items that are pointers: the table of tensor maps is filled, by several blocks after it was cleared, and
  // behind the kernel follows the one for misaligned items.
  const bool has_table = kernel.family == GemmFamily::wgmma && problem.out.d.items != nullptr;
  common_.launches = !has_table ? 1 : problem.out.batch_count <= kWgmmaItemsPerBlock ? 3 : 4;
  common_.is_paired = cluster > 1;
  common_.is_unaligned = kernel.family == GemmFamily::wmma && !vectorised;
  common_.l2_mb = items * k * (reads_of_a * m + reads_of_b * n) * ab_bytes * kMb;
  common_.dram_mb = ((copies(problem.a, items) * m + copies(problem.b, items) * n) * k * ab_bytes +
                     d_passes * items * m * n * cd_bytes) *
                    kMb;
  if (kernel.family == GemmFamily::gemv) count_gemv(problem);
}

void GemmCounter::count_gemv(const GemmProblem &p) {
  // As gemv.cu cuts it: the vectors padded to 1, 4, 8 or 16, the matrix in tiles of at least so many
  // rows or columns, more where it has enough of them for all SMs.
  constexpr double kMinTile = 16;
  const int64_t count = std::min(p.out.m, p.out.n);
  const double extent = static_cast<double>(std::max(p.out.m, p.out.n));
  const double elems = extent * static_cast<double>(p.k) * p.out.batch_count;
  const double sms = std::min(num_sms_, std::ceil(extent / kMinTile) * p.out.batch_count);
  common_.waves = elems / sms / kElemsPerGemvWave;
  common_.slice_k = count == 1 ? 1 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
  common_.l2_mb = 0;  // the vectors are small
}

GemmLoad GemmCounter::load(int split_k) const {
  if (kernel_.family == GemmFamily::gemv) return common_;
  GemmLoad load = common_;
  load.waves = std::ceil(tiles_ * split_k / at_a_time_);
  if (shares_sms_) {
    const double left =
        load.waves - kernel_.blocks_per_sm * std::floor(load.waves / kernel_.blocks_per_sm);
    if (left > 0) load.waves += std::max(kernel_.lone_blocks - left, 0.0);
  }
  load.slice_k = static_cast<double>(slice_elems(kernel_, k_, split_k)) / kElemsPerK;
  if (split_k > 1) add_split(load, split_k);
  return load;
}

void GemmCounter::add_split(GemmLoad &load, int split_k) const {
  load.launches++;
  if (kernel_.family == GemmFamily::wgmma) {
    // The tickets are cleared first.  The last block of a tile reads what the others wrote.
    const double tile_mb = sizeof(float) * kernel_.tile_m * kernel_.tile_n * kMb;
    load.partial_mb = tiles_ * split_k * tile_mb;
    load.sum_mb = std::ceil(tiles_ / num_sms_) * split_k * tile_mb;
  } else {
    // A pass of its own reads them.
    load.partial_mb = 2 * d_mb_ * split_k;
  }
}

}  // namespace mp
