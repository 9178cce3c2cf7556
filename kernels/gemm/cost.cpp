#include "kernels/gemm/cost.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>

#include "base/workspace_layout.h"
#include "kernels/gemm/plan_text.h"
#include "kernels/gemm/select.h"

namespace mp {

namespace {

constexpr double kMega = 1.0 / (1 << 20);  // of an element

// Instructions per element, as counted in the machine code of sm_90a; a reciprocal and an
// exponential occupy their unit for eight of them each.
constexpr double kConvert = 1, kBeta = 1, kBias = 2;
constexpr double kMeasure = 2;
/// Column sums of a subtile: 80 instructions for 32 elements to load 16 pairs, widen and add them,
/// and 48 for addresses.
constexpr double kSumColumns = 4;
/// General path of a TMA store: copies of registers, and tests for every part of the epilogue.
constexpr double kGeneralPathOps = 2;
/// A staged store waits for the matrix that it loads: 600 clocks for 2048 elements, in which four
/// schedulers would issue 70 % of the time.
constexpr double kStagedLoad = 600. * 4 * 32 * 0.7 / 2048;

/// Returns the number of matrices of the size of D that the epilogue reads or writes besides D.
double num_sources(const OutputShape &out) {
  return (out.reads_c ? 1 : 0) + (out.epilogue.has_aux ? 1 : 0);
}

double activation_ops(mp_activation_t activation) {
  switch (activation) {
    // Counted in the machine code.
    case MP_ACT_RELU:
    case MP_ACT_DRELU:
      return 2;
    case MP_ACT_GELU:
      return 16;
    case MP_ACT_DGELU:
      return 24;
    // Counted in the source.
    case MP_ACT_SILU:
      return 22;
    case MP_ACT_DSILU:
      return 24;
    case MP_ACT_GELU_ERF:
      return 45;
    case MP_ACT_DGELU_ERF:
      return 48;
    default:
      return 0;
  }
}

double ops_per_elem(const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  return (out.reads_c ? kBeta : 0) + num_sources(out) * kConvert +
         (e.has_bias ? kBias + kConvert : 0) + activation_ops(e.activation) +
         (e.has_amax || e.has_found_inf ? kMeasure : 0);
}

double num_loaded(const OutputShape &out) {
  return (out.reads_c ? 1 : 0) + (reads_aux(out.epilogue.activation) ? 1 : 0);
}

/// Work of `elems` elements without their stores: also the share of an SM in the sum after a split.
EpilogueCost count_epilogue(const OutputShape &out, double elems) {
  EpilogueCost epilogue{};
  epilogue.source_mb = num_sources(out) * elems * float_type(out.dtype).bytes * kMb;
  epilogue.ops = ops_per_elem(out) * elems * kMega;
  return epilogue;
}

/// C, aux and D in memory, once.
double epilogue_mb(const OutputShape &out) {
  return (1 + num_sources(out)) * static_cast<double>(out.m) * static_cast<double>(out.n) *
         out.batch_count * float_type(out.dtype).bytes * kMb;
}

constexpr double kElemsPerGemvWave = 1 << 20;
constexpr double kElemsOfUs = 1 << 20;  // that scalar_load_us is of

/// Elements of A and B that a tile loads one by one for each element of k, without those outside of
/// the matrices.  If all rows would be aligned, the pointers are not.
int64_t scalar_elems(const GemmKernel &kernel, const GemmShape &s) {
  const bool both = has_vector_rows(s);
  const auto elems = [&](const MatrixLayout &x, int64_t extent, int tile) {
    const bool one_by_one = both || (x.ld | x.stride) % 8 != 0;
    return one_by_one ? std::min(align_up(extent, 8), int64_t{tile}) : 0;
  };
  return elems(s.a, s.out.m, kernel.tile_m) + elems(s.b, s.out.n, kernel.tile_n);
}

/// Returns the number of matrices in memory: one for each item, or one for all.
double num_matrices(const MatrixLayout &x, const OutputShape &out) {
  return x.stride == 0 && out.items != ItemAccess::pointers ? 1 : out.batch_count;
}

/// MB that L2 keeps between two passes: T4, A100, L40S, H100, B200, RTX 5090.  The simulator has
/// one level of memory.
double l2_capacity_mb(const Device &device) {
  constexpr double kCapacity[kNumDeviceClasses] = {4, 40, 96, 50, 126, 96, HUGE_VAL};
  return kCapacity[static_cast<size_t>(class_of(device))];
}

}  // namespace

double main_us(const PlanCost &cost, const ClassTuning &device, const KernelTuning &kernel) {
  const double multiply_us = tile_us(kernel, cost.slice_k, cost.is_clustered ? kernel.c2 : 1) +
                             cost.slice_k * cost.scalar_elems * device.scalar_load_us;
  const double producer_us =
      cost.producer_stages * (device.wgrad_stage_us + cost.producer_loads * device.wgrad_load_us);
  return std::max(multiply_us, producer_us);
}

SmTime sm_time(const PlanCost &cost, const ClassTuning &device, const KernelTuning &kernel) {
  return sm_time(cost.ping_pong, cost.waves, cost.epilogues, main_us(cost, device, kernel),
                 epilogue_us(cost.epilogue, device));
}

double predicted_us(const PlanCost &cost, const ClassTuning &device, const KernelTuning &kernel) {
  const double main = main_us(cost, device, kernel), epilogue = epilogue_us(cost.epilogue, device);
  const SmTime time = sm_time(cost.ping_pong, cost.waves, cost.epilogues, main, epilogue);
  const double sm_us = cost.starts * kernel.start_us + time.mains * main +
                       time.epilogues * epilogue + cost.cluster_sums * device.cluster_sum_us;
  const double data_us =
      std::max(cost.l2_mb * device.l2_us_per_mb, cost.dram_mb * device.dram_us_per_mb);
  return cost.launches * device.launch_us + std::max(sm_us, data_us) +
         cost.copied_mb * device.copy_us_per_mb + cost.partial_mb * device.partial_us_per_mb +
         cost.post_pass_mb * device.dram_us_per_mb;
}

std::vector<CostPart> cost_parts(const GemmPlan &plan, const Device &device,
                                 const GemmTuning &tuning) {
  if (plan.kernel == nullptr) return {};
  const PlanCost &cost = plan.cost;
  const ClassTuning &prices = tuning.of(class_of(device));
  const KernelTuning &kernel = prices.of(*plan.kernel);
  const SmTime time = sm_time(cost, prices, kernel);
  return {{"launches", cost.launches * prices.launch_us},
          {"tiles: block starts", cost.starts * kernel.start_us},
          {"tiles: main loops", time.mains * main_us(cost, prices, kernel)},
          {"tiles: epilogues", time.epilogues * epilogue_us(cost.epilogue, prices)},
          {"tiles: sums in clusters", cost.cluster_sums * prices.cluster_sum_us},
          {"traffic: L2", cost.l2_mb * prices.l2_us_per_mb},
          {"traffic: DRAM", cost.dram_mb * prices.dram_us_per_mb},
          {"copies of A and B", cost.copied_mb * prices.copy_us_per_mb},
          {"partial sums", cost.partial_mb * prices.partial_us_per_mb},
          {"passes over D", cost.post_pass_mb * prices.dram_us_per_mb}};
}

const char *store_path_name(const GemmPlan &plan) {
  if (plan.kernel == nullptr || plan.kernel->family != GemmFamily::wgmma) return "general";
  constexpr const char *kNames[] = {"tma", "direct", "staged"};
  return kNames[static_cast<int>(plan.store)];
}

std::string cluster_text(const GemmPlan &plan) {
  if (plan.parts > 1) return std::to_string(plan.parts) + " blocks, which split k";
  if (plan.multicast > 1) return std::to_string(plan.multicast) + " blocks, which share an operand";
  return "none";
}

const char *name_of(const GemmKernel *kernel) {
  return kernel != nullptr ? kernel->name : "none";
}

EpilogueCost epilogue_cost(const GemmKernel &kernel, const OutputShape &out, StorePath path) {
  const double elems = static_cast<double>(std::min<int64_t>(kernel.tile_m, out.m)) *
                       static_cast<double>(std::min<int64_t>(kernel.tile_n, out.n));
  EpilogueCost epilogue = count_epilogue(out, elems);
  if (kernel.family != GemmFamily::wgmma) return epilogue;
  const bool by_tma = path == StorePath::tma;
  const bool is_direct = path == StorePath::direct && can_store_directly(out);
  double &stored = by_tma      ? epilogue.tma_store_elems
                   : is_direct ? epilogue.direct_store_elems
                               : epilogue.staged_store_elems;
  stored = elems * kMega;
  if (by_tma && out.epilogue.has_dbias) epilogue.ops += kSumColumns * elems * kMega;
  if (by_tma && !is_fast_store(out)) epilogue.ops += kGeneralPathOps * elems * kMega;
  epilogue.ops += num_loaded(out) * kStagedLoad * epilogue.staged_store_elems;
  return epilogue;
}

double epilogue_us(const EpilogueCost &epilogue, const ClassTuning &device) {
  return epilogue.tma_store_elems * device.tma_store_us +
         epilogue.direct_store_elems * device.direct_store_us +
         epilogue.staged_store_elems * device.staged_store_us +
         epilogue.source_mb * device.source_us_per_mb + epilogue.ops * device.op_us;
}

SmTime sm_time(bool ping_pong, double mains, double epilogues, double main_us, double epilogue_us) {
  if (!ping_pong) return {mains, epilogues};
  const double exposed = epilogue_us > main_us ? std::max(mains - 1, 0.0) / 2 : 0;
  return {mains - exposed, 1 + exposed + (epilogues - mains) / 2};
}

DbiasPass count_dbias(const OutputShape &out, const DbiasPlan &plan, const Device &device) {
  if (!out.epilogue.has_dbias) return {0, 0};
  const double parts = static_cast<double>(plan.partition.tiles * plan.partition.chunks);
  const double d_mb = static_cast<double>(out.m) * static_cast<double>(out.n) * out.batch_count *
                      float_type(out.dtype).bytes * kMb;
  const double subtile_mb = static_cast<double>(plan.partial_bytes) * kMb;
  const double read_mb = plan.in_epilogue ? subtile_mb : d_mb;
  return {plan.partition.chunks > 1 ? 2.0 : 1.0,
          subtile_mb + read_mb * std::max(device.num_sms / parts, 1.0)};
}

CostCounter::CostCounter(const GemmKernel &kernel, int cluster, const SelectionInput &input)
    : kernel_(kernel),
      input_(input),
      num_sms_(std::max(input.device.num_sms, 1)),
      l2_mb_(l2_capacity_mb(input.device)),
      is_host_(input.device.target == MP_TARGET_HOST),
      shares_sms_(kernel.blocks_per_sm > 1 && !is_host_),
      is_producer_bound_(kernel.family == GemmFamily::wgmma && input.conv != nullptr &&
                         input.conv->is_wgrad),
      common_{} {
  const GemmShape &shape = input.shape;
  const OutputShape &out = shape.out;
  const ConvTraits *const conv = input.conv;
  const TileCounts counts = tile_counts(kernel, cluster, out.m, out.n);
  const double items = out.batch_count;
  const double with_main = items - (conv != nullptr ? static_cast<double>(conv->empty_items) : 0);
  tiles_ = static_cast<double>(counts.m) * static_cast<double>(counts.n) * items;
  mains_ = static_cast<double>(counts.m) * static_cast<double>(counts.n) * with_main;
  at_a_time_ = std::floor(num_sms_ / cluster) * cluster;

  const double m = static_cast<double>(out.m), n = static_cast<double>(out.n),
               k = static_cast<double>(shape.k);
  const double ab_bytes = float_type(shape.dtype_ab).bytes;
  double reads_of_a = static_cast<double>(counts.n), reads_of_b = static_cast<double>(counts.m);
  (kernel.cluster_along_m ? reads_of_b : reads_of_a) /= cluster;
  d_mb_ = items * m * n * sizeof(float) * kMb;
  epilogue_mb_ = epilogue_mb(out);
  share_ = count_epilogue(out, items * m * n / num_sms_);

  // Items behind pointers: one launch fills the table of tensor maps, another first clears its flag
  // if the table takes several blocks, and the fallback for misaligned items follows the kernel.
  const bool has_table = kernel.family == GemmFamily::wgmma && out.items == ItemAccess::pointers;
  common_.launches = !has_table ? 1 : out.batch_count <= kWgmmaItemsPerBlock ? 3 : 4;
  common_.launches += input.copies.launches();
  common_.starts = 1;
  common_.copied_mb = input.copies.mb();
  common_.is_clustered = cluster > 1;
  if (kernel.family == GemmFamily::wmma && !input.vectorized)
    common_.scalar_elems =
        static_cast<double>(scalar_elems(kernel, shape)) * kElemsPerK / kElemsOfUs;
  common_.l2_mb = with_main * k * (reads_of_a * m + reads_of_b * n) * ab_bytes * kMb;
  const double matrices_mb =
      (num_matrices(shape.a, out) * m + num_matrices(shape.b, out) * n) * k * ab_bytes * kMb;
  constexpr double kBlock = 64;  // rows or columns of one load
  common_.producer_loads = kernel.tile_m / kBlock + kernel.tile_n / kBlock / cluster;
  common_.dram_mb = (conv != nullptr ? conv->memory_mb : matrices_mb) + epilogue_mb_;
  common_.epilogue = epilogue_cost(kernel, out, input.store);
  common_.ping_pong = kernel.ping_pong && !is_host_;
  const auto dbias = [&](bool is_fused) {
    if (!out.epilogue.has_dbias) return DbiasPass{};
    return count_dbias(out, plan_dbias(out, is_fused, 0, SIZE_MAX), input.device);
  };
  dbias_ = dbias(input.can_fuse_dbias(kernel));
  split_dbias_ = dbias(false);
  slice_epilogue_ = epilogue_cost(kernel, split_k_output(out), StorePath::direct);
  staged_epilogue_ = epilogue_cost(kernel, out, StorePath::staged);
  staged_slice_ = epilogue_cost(kernel, split_k_output(out), StorePath::staged);
  sums_mb_ =
      std::min<double>(kernel.tile_m, m) * std::min<double>(kernel.tile_n, n) * sizeof(float) * kMb;
  if (kernel.family == GemmFamily::gemv) count_gemv(shape);
}

void CostCounter::count_gemv(const GemmShape &p) {
  // gemv.cu pads the vectors to 1, 4, 8 or 16 and divides the matrix into tiles of at least
  // kMinTile rows or columns, larger if there are enough for all SMs.
  constexpr double kMinTile = 16;
  const int64_t count = std::min(p.out.m, p.out.n);
  const double extent = static_cast<double>(std::max(p.out.m, p.out.n));
  const double elems = extent * static_cast<double>(p.k) * p.out.batch_count;
  const double sms = std::min(num_sms_, std::ceil(extent / kMinTile) * p.out.batch_count);
  common_.waves = elems / sms / kElemsPerGemvWave;
  common_.slice_k = count == 1 ? 1 : count <= 4 ? 4 : count <= 8 ? 8 : 16;
  common_.starts = std::ceil(p.out.batch_count / num_sms_);  // a block has one product
  common_.l2_mb = 0;                                         // the vectors are small
  common_.epilogue = share_;
  common_.epilogues = 1;
}

double CostCounter::waves(double tiles, double at_a_time) const {
  const double waves = std::ceil(tiles / at_a_time), blocks = kernel_.blocks_per_sm;
  if (!shares_sms_) return waves;
  const double left = waves - blocks * std::floor(waves / blocks);
  return left == 0 ? waves : waves + std::max(kernel_.single_block_slowdown - left, 0.0);
}

PlanCost CostCounter::count(int split_k, int parts) const {
  PlanCost cost = common_;
  const DbiasPass &dbias = split_k > 1 ? split_dbias_ : dbias_;
  cost.launches += dbias.launches;
  cost.post_pass_mb = dbias.mb;
  if (kernel_.family == GemmFamily::gemv) return cost;
  const bool is_thin = kernel_.family == GemmFamily::thin;
  const double at_a_time =
      is_thin && shares_sms_ ? std::max(std::floor(num_sms_ / parts), 1.0) * parts : at_a_time_;
  cost.waves = waves(mains_ * split_k, at_a_time);
  cost.slice_k = static_cast<double>(k_per_slice(kernel_, input_.shape.k, split_k)) / kElemsPerK;
  if (is_producer_bound_) cost.producer_stages = cost.slice_k * kElemsPerK / kernel_.tile_k;
  cost.epilogues = waves(tiles_ * split_k, at_a_time);
  if (is_thin) {
    // The blocks of a cluster share the epilogue of a tile.
    cost.epilogue = share_;
    cost.epilogues = 1;
  } else if (parts > 1) {
    add_cluster_sums(cost, split_k / parts, parts);
  } else if (split_k > 1) {
    add_partials(cost, split_k, slice_epilogue_);
  }
  return cost;
}

void CostCounter::add_cluster_sums(PlanCost &cost, int num_partials, int parts) const {
  const auto waves_of = [&](double tiles) {
    const double waves = std::ceil(tiles * num_partials / clusters_at_a_time(input_.device, parts));
    return is_host_ ? waves * parts : waves;
  };
  cost.waves = waves_of(mains_);
  cost.starts = cost.epilogues = cost.cluster_sums = waves_of(tiles_);
  cost.ping_pong = false;
  // The blocks share the epilogue of a tile, and each reads its share from all of them.
  EpilogueCost epilogue = num_partials > 1 ? staged_slice_ : staged_epilogue_;
  epilogue.staged_store_elems /= parts;
  epilogue.ops /= parts;
  epilogue.source_mb = epilogue.source_mb / parts + sums_mb_;
  cost.epilogue = epilogue;
  if (num_partials > 1) add_partials(cost, num_partials, epilogue);
}

void CostCounter::add_partials(PlanCost &cost, int num_partials,
                               const EpilogueCost &epilogue) const {
  // A second kernel reads the partial sums and runs the whole epilogue.
  cost.launches++;
  const double partial_mb = 2 * d_mb_ * num_partials;
  cost.dram_mb -= epilogue_mb_;
  cost.post_pass_mb += epilogue_mb_;
  (partial_mb / 2 <= l2_mb_ ? cost.partial_mb : cost.post_pass_mb) += partial_mb;
  if (kernel_.family != GemmFamily::wgmma) {
    cost.epilogue = share_;
    cost.epilogues = 1;
    return;
  }
  // The share of each tile, which also stores its partial sums.
  cost.epilogue = epilogue;
  cost.epilogue.ops += share_.ops / cost.epilogues;
  cost.epilogue.source_mb += share_.source_mb / cost.epilogues;
}

// ---------------------------------------------------------------------------- reasons

namespace {

constexpr double kMatters = 1.2;

double dbias_us(const OutputShape &out, const DbiasPlan &plan, const Device &device,
                const ClassTuning &tuning) {
  const DbiasPass pass = count_dbias(out, plan, device);
  return pass.launches * tuning.launch_us + pass.mb * tuning.dram_us_per_mb;
}

struct Length {
  const char *name;
  int64_t elems;
};
/// Returns the first length that is not a multiple of 8, or "".
std::string first_unaligned(std::initializer_list<Length> lengths) {
  for (const auto &[name, elems] : lengths)
    if (elems % 8 != 0)
      return std::string(name) + " = " + std::to_string(elems) + " is not a multiple of 8";
  return "";
}

/// Returns the first property that aligned_for_tma_store would change.
std::string why_no_tma_store(const OutputShape &out) {
  const std::string why = first_unaligned({{"ld_d", out.d.ld},
                                           {"stride_d", out.d.stride},
                                           {"ld_c", out.c.ld},
                                           {"stride_c", out.c.stride},
                                           {"ld_aux", out.epilogue.aux.ld}});
  return !why.empty() ? why : "C, D or aux is not 16-byte aligned";
}

}  // namespace

std::string why_slow_dtype(mp_dtype_t dtype, const Device &device) {
  if (dtype == MP_FP16 || device.arch >= float_type(dtype).tensor_core_arch) return "";
  return "sm_" + std::to_string(device.arch) + " has Tensor Cores for FP16, but not for " +
         float_type(dtype).title;
}

std::string slow_path_reason(const GemmShape &shape, const Device &device) {
  if (!is_half(shape.dtype_ab)) return "";
  if (const std::string why = why_slow_dtype(shape.dtype_ab, device); !why.empty()) return why;
  if (!is_aligned(shape)) return "A or B is not 16-byte aligned";
  return first_unaligned({{"ld_a", shape.a.ld},
                          {"ld_b", shape.b.ld},
                          {"stride_a", shape.a.stride},
                          {"stride_b", shape.b.stride}});
}

GemmShape without_slow_path(const GemmShape &shape, const Device &device) {
  GemmShape better = shape;
  if (!why_slow_dtype(shape.dtype_ab, device).empty()) better.dtype_ab = MP_FP16;
  for (MatrixLayout *const x : {&better.a, &better.b})
    *x = {.ld = align_up(x->ld, 8), .stride = align_up(x->stride, 8)};
  return better;
}

std::string if_slower(const std::string &reason, double us, double faster_us) {
  if (reason.empty() || faster_us == 0 || us < kMatters * faster_us) return "";
  char times[64];
  std::snprintf(times, sizeof times, " (%.3g us predicted, %.3g us otherwise)", us, faster_us);
  return reason + times;
}

std::string lost_time_reason(const OutputShape &out, const GemmPlan &plan,
                             const PlanRequest &request) {
  if (plan.mapped_us > 0 && plan.predicted_us >= kMatters * plan.mapped_us)
    return if_slower(why_no_tma_store(out), plan.predicted_us, plan.mapped_us);
  if (plan.best_us == 0 || request.workspace_bytes >= plan.best_workspace_bytes) return "";
  double us = plan.predicted_us;
  if (plan.dbias) {  // predictions contain the fastest dbias
    const ClassTuning &tuning = request.tuning.of(class_of(request.device));
    const DbiasPlan best = plan_dbias(out, plan.can_fuse_dbias, plan.workspace.bytes, SIZE_MAX);
    us += dbias_us(out, *plan.dbias, request.device, tuning) -
          dbias_us(out, best, request.device, tuning);
  }
  if (us < kMatters * plan.best_us) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "predicted time is %.3g us with workspace_bytes = %zu, but %.3g us with %zu bytes",
                us, request.workspace_bytes, plan.best_us, plan.best_workspace_bytes);
  return text;
}

}  // namespace mp
