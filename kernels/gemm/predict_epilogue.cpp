#include "kernels/gemm/predict_epilogue.h"

#include <algorithm>

#include "kernels/gemm/tuning.h"

namespace mp {

namespace {

constexpr double kMega = 1.0 / (1 << 20);  // units of 2^20, per element

// Instructions per element, counted in the machine code of sm_90a.  A reciprocal or an exponential
// occupies its unit for eight instructions.
constexpr double kConvert = 1, kBeta = 1, kBias = 2;
constexpr double kRelu = 2, kGelu = 16, kDrelu = 2, kDgelu = 24;
// Instructions per element, counted in the source.
constexpr double kSilu = 22, kDsilu = 24, kGeluErf = 45, kDgeluErf = 48;
constexpr double kMeasure = 2;
/// Loading 16 pairs from shared memory and adding their widened halves takes 80 instructions for 32
/// elements; addresses take 48.
constexpr double kSumColumns = 4;
/// Overhead of the general path: registers of a subtile are copied, and every option is tested.
constexpr double kGeneralPathOps = 2;
/// A staged store waits for the matrix that it loads: 600 clocks for 2048 elements, in which four
/// schedulers would issue 70 % of the time.
constexpr double kPatchLoad = 600. * 4 * 32 * 0.7 / 2048;

/// Returns the number of epilogue sources.
double num_sources(const Output &out) {
  return (out.beta != 0.0f ? 1 : 0) + (out.epilogue.aux != nullptr ? 1 : 0);
}

double activation_ops(mp_activation_t activation) {
  switch (activation) {
    case MP_ACT_RELU:
      return kRelu;
    case MP_ACT_GELU:
      return kGelu;
    case MP_ACT_DRELU:
      return kDrelu;
    case MP_ACT_DGELU:
      return kDgelu;
    case MP_ACT_SILU:
      return kSilu;
    case MP_ACT_DSILU:
      return kDsilu;
    case MP_ACT_GELU_ERF:
      return kGeluErf;
    case MP_ACT_DGELU_ERF:
      return kDgeluErf;
    default:
      return 0;
  }
}

double ops_per_elem(const Output &out) {
  const Epilogue &e = out.epilogue;
  return (out.beta != 0.0f ? kBeta : 0) + num_sources(out) * kConvert +
         (e.bias != nullptr ? kBias + kConvert : 0) + activation_ops(e.activation) +
         (e.amax != nullptr || e.found_inf != nullptr ? kMeasure : 0);
}

double num_loaded(const Output &out) {
  return (out.beta != 0.0f ? 1 : 0) + (reads_aux(out.epilogue.activation) ? 1 : 0);
}

/// Same condition as WgmmaTmaStore::is_fast_path().
bool is_fast_path(const Output &out) {
  const Epilogue &e = out.epilogue;
  // d.ld < n only in strided dgrad, whose columns are padded (StridePhasePlacement).
  const bool has_column_gaps = out.d.ld < out.n,
             has_whole_units = has_column_gaps || out.n % 8 == 0;
  return has_whole_units && num_sources(out) == 0 &&
         (e.activation == MP_ACT_NONE || e.activation == MP_ACT_RELU) && e.amax == nullptr &&
         e.found_inf == nullptr && e.dbias == nullptr;
}

/// Same condition as WgmmaDirectStore::can_store().
bool can_store_directly(const Output &out) {
  const auto aligned = [](const Operand &x) {
    return x.ld % 2 == 0 && reinterpret_cast<uintptr_t>(x.base) % (2 * sizeof(float)) == 0;
  };
  return out.n % 2 == 0 && aligned(out.d) && (out.beta == 0.0f || aligned(out.c));
}

}  // namespace

EpilogueCost count_epilogue(const Output &out, double elems) {
  EpilogueCost epilogue{};
  epilogue.source_mb = num_sources(out) * elems * elem_bytes(out.dtype) * kMb;
  epilogue.ops = ops_per_elem(out) * elems * kMega;
  return epilogue;
}

EpilogueCost epilogue_cost(const GemmKernel &kernel, const Output &out, StorePath path) {
  const double elems = static_cast<double>(std::min<int64_t>(kernel.tile_m, out.m)) *
                       static_cast<double>(std::min<int64_t>(kernel.tile_n, out.n));
  EpilogueCost epilogue = count_epilogue(out, elems);
  if (kernel.family != GemmFamily::wgmma) return epilogue;
  const bool by_tma = path == StorePath::tma;
  const bool is_direct = path == StorePath::direct && can_store_directly(out);
  double &leaving = by_tma      ? epilogue.tma_store_elems
                    : is_direct ? epilogue.direct_store_elems
                                : epilogue.staged_store_elems;
  leaving = elems * kMega;
  if (by_tma && out.epilogue.dbias != nullptr) epilogue.ops += kSumColumns * elems * kMega;
  if (by_tma && !is_fast_path(out)) epilogue.ops += kGeneralPathOps * elems * kMega;
  epilogue.ops += num_loaded(out) * kPatchLoad * epilogue.staged_store_elems;
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
  const double exposed = epilogue_us > main_us ? std::max(epilogues - 1, 0.0) / 2 : 0;
  return {mains - exposed, 1 + exposed};
}

double epilogue_mb(const Output &out) {
  return (1 + num_sources(out)) * static_cast<double>(out.m) * static_cast<double>(out.n) *
         out.batch_count * elem_bytes(out.dtype) * kMb;
}

DbiasPass count_dbias(const Output &out, const DbiasPlan &plan, const Device &device) {
  if (out.epilogue.dbias == nullptr) return {0, 0};
  const double parts = static_cast<double>(plan.partition.tiles * plan.partition.chunks);
  const double d_mb = static_cast<double>(out.m) * static_cast<double>(out.n) * out.batch_count *
                      elem_bytes(out.dtype) * kMb;
  const double subtile_mb = static_cast<double>(plan.partial_bytes) * kMb;
  const double read_mb = plan.in_epilogue ? subtile_mb : d_mb;
  return {plan.partition.chunks > 1 ? 2.0 : 1.0,
          subtile_mb + read_mb * std::max(device.num_sms / parts, 1.0)};
}

}  // namespace mp
