#include "kernels/gemm/predict.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/workspace.h"

namespace mp {

namespace {

constexpr double kElemsPerGemvWave = 1 << 20;
constexpr double kElemsOfUs = 1 << 20;  // elements per scalar_load_us

/// Returns the elements of both operands that are loaded one by one, per element of k, without
/// those outside the matrices.  If all strides are aligned, the pointers are not.
int64_t scalar_elems(const GemmKernel &kernel, const GemmProblem &p) {
  const bool both = has_vector_rows(p);
  const auto elems = [&](const Operand &x, int64_t extent, int tile) {
    const bool one_by_one = both || (x.ld | x.stride) % 8 != 0;
    return one_by_one ? std::min(round_up(extent, 8), int64_t{tile}) : 0;
  };
  return elems(p.a, p.out.m, kernel.tile_m) + elems(p.b, p.out.n, kernel.tile_n);
}

/// Returns the number of matrices in memory: one per item, or one for all.
double matrices(const Operand &operand, double items) {
  return operand.stride == 0 && operand.items == nullptr ? 1 : items;
}

/// Returns the MB that L2 keeps between two passes: T4, A100, H100; no limit on the simulator.
double l2_capacity_mb(const Device &device) {
  constexpr double kCapacity[kNumDeviceClasses] = {4, 40, 50, HUGE_VAL};
  return kCapacity[static_cast<size_t>(class_of(device))];
}

}  // namespace

GemmLoad load_of(const GemmPlan &choice, const GemmProblem &problem, const Device &device) {
  const AlignedCopies copies = choice.reads_copies ? aligned_copies(problem) : AlignedCopies{};
  const GemmProblem read = with_copies(problem, copies, nullptr);
  return GemmCounter(*choice.kernel, choice.cluster, read, device, has_vector_rows(read), copies)
      .load(choice.split_k);
}

double main_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel) {
  const double multiply_us = tile_us(kernel, load.slice_k, load.is_clustered ? kernel.c2 : 1) +
                             load.slice_k * load.scalar_elems * device.scalar_load_us;
  const double producer_us =
      load.producer_stages * (device.wgrad_stage_us + load.producer_loads * device.wgrad_load_us);
  return std::max(multiply_us, producer_us);
}

SmTime sm_time(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel) {
  return sm_time(load.ping_pong, load.waves, load.epilogues, main_us(load, device, kernel),
                 epilogue_us(load.epilogue, device));
}

double predicted_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel) {
  const SmTime time = sm_time(load, device, kernel);
  const double sm_us = load.starts * kernel.start_us + time.mains * main_us(load, device, kernel) +
                       time.epilogues * epilogue_us(load.epilogue, device);
  const double data_us =
      std::max(load.l2_mb * device.l2_us_per_mb, load.dram_mb * device.dram_us_per_mb);
  return load.launches * device.launch_us + std::max(sm_us, data_us) +
         load.copied_mb * device.copy_us_per_mb + load.partial_mb * device.partial_us_per_mb +
         load.post_pass_mb * device.dram_us_per_mb;
}

GemmCounter::GemmCounter(const GemmKernel &kernel, int cluster, const GemmProblem &problem,
                         const Device &device, bool vectorised, const AlignedCopies &copies,
                         const PatchOperands *patches)
    : kernel_(kernel),
      k_(problem.k),
      num_sms_(std::max(device.num_sms, 1)),
      l2_mb_(l2_capacity_mb(device)),
      shares_sms_(kernel.blocks_per_sm > 1 && device.target != MP_TARGET_HOST),
      is_producer_bound_(kernel.family == GemmFamily::wgmma && patches != nullptr &&
                         patches->is_wgrad),
      common_{} {
  const TileCounts counts = tile_counts(kernel, cluster, problem.out.m, problem.out.n);
  const double items = problem.out.batch_count;
  tiles_ = static_cast<double>(counts.m) * static_cast<double>(counts.n) * items;
  at_a_time_ = std::floor(num_sms_ / cluster) * cluster;

  const double m = static_cast<double>(problem.out.m), n = static_cast<double>(problem.out.n),
               k = static_cast<double>(problem.k);
  const double ab_bytes = elem_bytes(problem.dtype_ab);
  double reads_of_a = static_cast<double>(counts.n), reads_of_b = static_cast<double>(counts.m);
  (kernel.cluster_along_m ? reads_of_b : reads_of_a) /= cluster;
  d_mb_ = items * m * n * sizeof(float) * kMb;
  epilogue_mb_ = epilogue_mb(problem.out);
  share_ = count_epilogue(problem.out, items * m * n / num_sms_);

  // Arrays of pointers need two more launches, to fill the table of tensor maps and for misaligned
  // items.  If several blocks fill the table, a third one clears it first.
  const bool has_table = kernel.family == GemmFamily::wgmma && problem.out.d.items != nullptr;
  common_.launches = !has_table ? 1 : problem.out.batch_count <= kWgmmaItemsPerBlock ? 3 : 4;
  common_.launches += copies.launches();
  common_.starts = 1;
  common_.copied_mb = copies.mb();
  common_.is_clustered = cluster > 1;
  if (kernel.family == GemmFamily::wmma && !vectorised)
    common_.scalar_elems =
        static_cast<double>(scalar_elems(kernel, problem)) * kElemsPerK / kElemsOfUs;
  common_.l2_mb = items * k * (reads_of_a * m + reads_of_b * n) * ab_bytes * kMb;
  const double matrices_mb =
      (matrices(problem.a, items) * m + matrices(problem.b, items) * n) * k * ab_bytes * kMb;
  constexpr double kBlock = 64;  // rows or columns per load
  common_.producer_loads = kernel.tile_m / kBlock + kernel.tile_n / kBlock / cluster;
  common_.dram_mb = (patches != nullptr ? patches->memory_mb : matrices_mb) + epilogue_mb_;
  const StorePath path = wgmma_store_path(problem.out);
  common_.epilogue = epilogue_cost(kernel, problem.out, path);
  common_.ping_pong = kernel.ping_pong && device.target != MP_TARGET_HOST;
  const auto dbias = [&](bool fuses_dbias) {
    return count_dbias(problem.out, plan_dbias(problem.out, fuses_dbias, 0, SIZE_MAX), device);
  };
  dbias_ = dbias(kernel.family == GemmFamily::wgmma && path == StorePath::tma);
  split_dbias_ = dbias(false);
  slice_epilogue_ = epilogue_cost(kernel, wgmma_slices(problem.out), StorePath::direct);
  if (kernel.family == GemmFamily::gemv) count_gemv(problem);
}

void GemmCounter::count_gemv(const GemmProblem &p) {
  // Same division as in gemv.cu: vectors are padded to 1, 4, 8 or 16.  The matrix is divided into
  // tiles of at least kMinTile rows or columns, larger if there are enough of them for all SMs.
  constexpr double kMinTile = 16;
  const int64_t count = std::min(p.out.m, p.out.n);
  const double extent = static_cast<double>(std::max(p.out.m, p.out.n));
  const double elems = extent * static_cast<double>(p.k) * p.out.batch_count;
  const double sms = std::min(num_sms_, std::ceil(extent / kMinTile) * p.out.batch_count);
  common_.waves = elems / sms / kElemsPerGemvWave;
  common_.slice_k = count == 1 ? 1 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
  common_.starts = std::ceil(p.out.batch_count / num_sms_);  // a block computes one batch item
  common_.l2_mb = 0;                                         // the vectors are small
  common_.epilogue = share_;
  common_.epilogues = 1;
}

GemmLoad GemmCounter::load(int split_k) const {
  GemmLoad load = common_;
  const DbiasPass &dbias = split_k > 1 ? split_dbias_ : dbias_;
  load.launches += dbias.launches;
  load.post_pass_mb = dbias.mb;
  if (kernel_.family == GemmFamily::gemv) return load;
  load.waves = std::ceil(tiles_ * split_k / at_a_time_);
  if (shares_sms_) {
    const double left =
        load.waves - kernel_.blocks_per_sm * std::floor(load.waves / kernel_.blocks_per_sm);
    if (left > 0) load.waves += std::max(kernel_.single_block_slowdown - left, 0.0);
  }
  load.slice_k = static_cast<double>(slice_elems(kernel_, k_, split_k)) / kElemsPerK;
  if (is_producer_bound_) load.producer_stages = load.slice_k * kElemsPerK / kernel_.tile_k;
  load.epilogues = load.waves;
  if (split_k > 1) add_split(load, split_k);
  return load;
}

void GemmCounter::add_split(GemmLoad &load, int split_k) const {
  // A separate pass reads the partial sums and performs the complete epilogue.
  load.launches++;
  const double partial_mb = 2 * d_mb_ * split_k;
  load.dram_mb -= epilogue_mb_;
  load.post_pass_mb += epilogue_mb_;
  (partial_mb / 2 <= l2_mb_ ? load.partial_mb : load.post_pass_mb) += partial_mb;
  if (kernel_.family != GemmFamily::wgmma) {
    load.epilogue = share_;
    load.epilogues = 1;
    return;
  }
  // wgmma: distributed over the tiles, in addition to the stores of their slices.
  load.epilogue = slice_epilogue_;
  load.epilogue.ops += share_.ops / load.epilogues;
  load.epilogue.source_mb += share_.source_mb / load.epilogues;
}

}  // namespace mp
