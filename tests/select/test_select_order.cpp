// The order of predictions, compared with work counted from first principles: the instructions that
// a kernel issues on the busiest SM and the bytes that it moves, each divided by the documented
// peak.  If the work of two kernels differs by half, their predictions must not be in the opposite
// order; and no prediction may be faster than a peak.
//
// The counts share with predict.cpp how D is divided into tiles and k into slices, the store path,
// and the number of blocks per SM, but no formula for time and no constant of the tuning table.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "bench_problems.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/conv_problem.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Peak rates per SM and clock, except the last three.
struct Peak {
  double tensor;    ///< multiply-adds on tensor cores
  double fma;       ///< multiply-adds on CUDA cores
  double smem;      ///< bytes from shared memory
  double l2;        ///< bytes from L2
  double clock;     ///< clocks per microsecond
  double dram;      ///< bytes per microsecond, of the device
  double l2_bytes;  ///< size of L2
};

/// T4: data sheet (65 TFLOP/s, 320 GB/s), Jia et al. 2019 (L2).  A100: white paper.  L40S and
/// RTX 5090: data sheets; L2 as fast as that of the A100.  H200: data sheet; the clock of short
/// runs in bench/results; L2 as measured in arXiv:2402.13499.  B200: no faster per SM.
Peak peak_of(const mp::Device &device) {
  if (device.arch == 75) return {512, 64, 64, 20, 1200, 320e3, 4e6};
  if (device.arch == 80) return {1024, 64, 128, 47, 1380, 1935e3, 40e6};
  if (device.arch == 89) return {512, 128, 128, 20, 2520, 864e3, 96e6};
  if (device.arch == 120) return {256, 128, 128, 17, 2407, 1792e3, 96e6};
  return {2048, 128, 128, 34, 1980, 4800e3, 50e6};
}

constexpr double kLaunchUs = 4, kSlotsPerClock = 128;
constexpr double kL2OfSm = 64;  // bytes per clock, if L2 is not the limit

double peak_rate(const mp::GemmKernel &kernel, const mp::Device &device) {
  const bool has_tensor_cores = mp::uses_tma(kernel) || kernel.family == mp::GemmFamily::wmma;
  return has_tensor_cores ? peak_of(device).tensor : peak_of(device).fma;
}

/// Time of two units that the same warps use: most of the shorter work overlaps the longer one.
double together(double x, double y) {
  return std::max(x, y) + std::min(x, y) / 4;
}

/// Returns the multiply-adds per clock that a kernel of that class sustains.  WMMA on Hopper is
/// mma.sync, which reaches 65 % of wgmma (arXiv:2402.13499); sm_75 has no asynchronous copies.
/// CUDA cores: multiply-adds are two thirds of the instructions in large tiles and half in skinny
/// ones, which read more shared memory (nvdisasm); four instructions are issued per clock.
double rate_of(const mp::GemmKernel &kernel, const mp::Device &device) {
  const double peak = peak_rate(kernel, device);
  if (kernel.family == mp::GemmFamily::wgmma) return 0.9 * peak;
  if (kernel.family == mp::GemmFamily::wmma) return 0.9 * peak * (device.arch == 80 ? 1 : 0.65);
  const bool is_narrow = std::min(kernel.tile_m, kernel.tile_n) < 64;
  return 0.9 / together(1 / peak, 1 / (kSlotsPerClock * (is_narrow ? 0.45 : 0.68)));
}

double bytes_of(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Work of one variant on one problem.
class Work {
 public:
  /// @param with_main  share of the tiles with a main loop
  Work(const mp::GemmProblem &p, const mp::GemmVariant &variant, bool reads_copies,
       const mp::Device &device, double with_main = 1)
      : p_(p),
        variant_(variant),
        reads_copies_(reads_copies),
        kernel_(*variant.kernel),
        peak_(peak_of(device)),
        device_(device),
        with_main_(with_main) {}

  double us() const {
    if (kernel_.family == mp::GemmFamily::gemv) return kLaunchUs + std::max(gemv_us(), dram_us());
    return launches() * kLaunchUs + std::max(sm_us(), dram_us()) + partial_us() + copies_us();
  }

  /// Returns a lower bound for every kernel of its class.
  double least_us() const {
    const double macs = double(p_.out.m) * double(p_.out.n) * double(p_.k) * p_.out.batch_count;
    return macs / peak_rate(kernel_, device_) / device_.num_sms / peak_.clock;
  }

 private:
  /// Extent of a tile of D.
  double rows() const { return double(std::min<int64_t>(kernel_.tile_m, p_.out.m)); }
  double cols() const { return double(std::min<int64_t>(kernel_.tile_n, p_.out.n)); }

  double blocks() const {
    const mp::TileCounts tiles = tile_counts(kernel_, variant_.multicast, p_.out.m, p_.out.n);
    return double(tiles.m) * double(tiles.n) * p_.out.batch_count * variant_.split_k;
  }
  double launches() const { return variant_.split_k > 1 ? 2 : 1; }
  double waves(double share = 1) const {
    return std::ceil(blocks() * share /
                     (device_.num_sms / variant_.multicast * variant_.multicast));
  }

  /// A single block has too few warps to keep its schedulers busy.
  double idle() const {
    if (kernel_.family == mp::GemmFamily::wgmma) return 1;
    const double on_sm = std::min<double>(waves(with_main_), kernel_.blocks_per_sm);
    return std::max(1.0, kernel_.single_block_slowdown / on_sm);
  }

  double sm_us() const {
    const double k = double(mp::k_per_slice(kernel_, p_.k, variant_.split_k));
    const double macs = double(kernel_.tile_m) * kernel_.tile_n * k;
    double main = macs / rate_of(kernel_, device_);
    if (kernel_.family == mp::GemmFamily::wmma)
      main += scalar_elems() * k * kSlotsOfElement / kSlotsPerClock;
    const double reads = smem_bytes_per_k() * k / peak_.smem;
    // wgmma reads shared memory asynchronously.
    main = kernel_.family == mp::GemmFamily::wgmma ? std::max(main, reads) : together(main, reads);
    const double operands = (rows() / (kernel_.cluster_along_m ? 1 : variant_.multicast) +
                             cols() / (kernel_.cluster_along_m ? variant_.multicast : 1)) *
                            k * bytes_of(p_.dtype_ab);
    const double out = epilogues() * epilogue_clocks() / waves();  // per slice
    const double tile = kernel_.ping_pong ? std::max(main, (main + out) / 2) : main + out;
    const double mains = waves(with_main_), others = waves() - mains;
    const double tiles = mains * tile + others * (kernel_.ping_pong ? out / 2 : out);
    const double from_l2 = std::max(mains * operands / kL2OfSm,
                                    blocks() * with_main_ * operands / device_.num_sms / peak_.l2);
    // Non-persistent blocks start with two memory latencies (same source), which other blocks on
    // the SM hide.
    constexpr double kLatency = 479;
    const double fill = kernel_.family == mp::GemmFamily::wgmma
                            ? 2 * kLatency
                            : 2 * kLatency * waves() / kernel_.blocks_per_sm;
    return (fill + std::max(idle() * tiles, from_l2)) / peak_.clock;
  }

  /// Code for sm_80: 54 instructions load eight elements one at a time (nvdisasm).  Adjacent lanes
  /// access addresses 16 bytes apart, so each access uses L1 and banks as much as a 16-byte access.
  static constexpr double kSlotsOfElement = 7, kBytesOfElement = 2 * 16;

  /// Bytes per k that tensor cores read, once per warp (warpgroup) that uses them, and the copies
  /// into shared memory.
  double smem_bytes_per_k() const {
    const double m = kernel_.tile_m, n = kernel_.tile_n;
    const auto bytes = [&](double own_m, double own_n) {
      return 2 * (m * n / (own_m * own_n) * (own_m + own_n) + m + n);
    };
    if (kernel_.family == mp::GemmFamily::wgmma) return bytes(64, n);
    if (kernel_.family != mp::GemmFamily::wmma) return 0;
    return (kernel_.tile_m == 64 ? bytes(32, 32) : bytes(64, 64)) +
           scalar_elems() * kBytesOfElement;
  }

  /// Elements per k that are loaded one at a time.
  double scalar_elems() const {
    if (reads_copies_) return 0;
    const auto count = [](const mp::Operand &x, int64_t extent, int tile) {
      return (x.ld | x.stride) % 8 == 0 ? 0 : double(std::min<int64_t>(extent, tile));
    };
    return count(p_.a, p_.out.m, kernel_.tile_m) + count(p_.b, p_.out.n, kernel_.tile_n);
  }

  /// Epilogues on the busiest SM; with split-k, only wgmma has any.
  double epilogues() const {
    if (variant_.split_k == 1) return waves();
    if (kernel_.family != mp::GemmFamily::wgmma) return 0;
    return std::ceil(blocks() / variant_.split_k / device_.num_sms);
  }

  double epilogue_clocks() const {
    const double elems = rows() * cols();
    const bool is_staged = kernel_.family == mp::GemmFamily::wgmma &&
                           mp::wgmma_store_path(shape(p_).out) == mp::StorePath::staged;
    constexpr double kGeluSlots =
        24;  // two special-function instructions, at an eighth of the rate, and others
    const double slots =
        (is_staged ? 40 : 4) + (p_.out.epilogue.activation == MP_ACT_GELU ? kGeluSlots : 0);
    return elems *
           std::max(slots / kSlotsPerClock, matrices_of_d() * bytes_of(p_.out.dtype) / peak_.l2);
  }

  double dram_us() const {
    const double items = p_.out.batch_count, m = double(p_.out.m), n = double(p_.out.n);
    const auto times = [&](const mp::Operand &x) {
      return x.stride == 0 && x.items == nullptr ? 1 : items;
    };
    const double ab = (times(p_.a) * m + times(p_.b) * n) * double(p_.k) * bytes_of(p_.dtype_ab);
    return (ab + cd_bytes()) / peak_.dram;
  }
  /// Number of matrices D, C and aux.
  double matrices_of_d() const {
    return 1 + (p_.out.beta != 0 ? 1 : 0) + (p_.out.epilogue.aux != nullptr ? 1 : 0);
  }
  double cd_bytes() const {
    return matrices_of_d() * double(p_.out.m) * double(p_.out.n) * p_.out.batch_count *
           bytes_of(p_.out.dtype);
  }

  /// Partial sums are written and read, by the last block of each tile if there is no separate
  /// pass.
  double partial_us() const {
    if (variant_.split_k == 1) return 0;
    const double tile = double(kernel_.tile_m) * kernel_.tile_n * sizeof(float);
    if (kernel_.family != mp::GemmFamily::wgmma) {
      const double bytes = variant_.split_k * sizeof(float) * double(p_.out.m) * double(p_.out.n) *
                           p_.out.batch_count;
      const double rate =
          bytes < peak_.l2_bytes ? peak_.l2 * peak_.clock * device_.num_sms : peak_.dram;
      return 2 * bytes / rate + cd_bytes() / peak_.dram;
    }
    const double tiles = blocks() / variant_.split_k;
    return (waves() + std::ceil(tiles / device_.num_sms) * variant_.split_k) * tile / peak_.l2 /
           peak_.clock;
  }

  /// Copies of unaligned operands: each takes a launch that reads and writes the operand.
  double copies_us() const {
    if (!reads_copies_) return 0;
    const auto us = [&](const mp::Operand &x, int64_t extent) {
      if ((x.ld | x.stride) % 8 == 0) return 0.0;
      const double items = x.stride == 0 ? 1 : p_.out.batch_count;
      return kLaunchUs +
             2 * items * double(extent) * double(p_.k) * bytes_of(p_.dtype_ab) / peak_.dram;
    };
    return us(p_.a, p_.out.m) + us(p_.b, p_.out.n);
  }

  double gemv_us() const {
    const int64_t count = std::min(p_.out.m, p_.out.n);
    const double vectors = count == 1 ? 1 : count <= 4 ? 4 : count <= 8 ? 8 : 16;  // padded
    const double elems = double(std::max(p_.out.m, p_.out.n)) * double(p_.k) * p_.out.batch_count;
    const double sms = std::min<double>(
        device_.num_sms, std::ceil(double(std::max(p_.out.m, p_.out.n)) / 16) * p_.out.batch_count);
    constexpr double kLoads = 3;  // clocks of an SM per element, in addition to the products
    return elems * (kLoads / 64 + vectors / (0.8 * peak_.fma)) / sms / peak_.clock;
  }

  const mp::GemmProblem &p_;
  const mp::GemmVariant &variant_;
  const bool reads_copies_;
  const mp::GemmKernel &kernel_;
  const Peak peak_;
  const mp::Device &device_;
  const double with_main_;
};

// ---------------------------------------------------------------------------- problems

std::vector<mp::GemmProblem> all_problems() {
  std::vector<mp::GemmProblem> problems;
  const auto add = [&](const char *path, mpbench::Shape (*parse)(std::string_view)) {
    add_bench_gemms(path, parse, problems);
  };
  add("llm_gemm_shapes.csv", mpbench::parse_llm);
  add("transformer_gemm_shapes.csv", mpbench::parse_llm);
  // Problems with 16-bit outputs also with a heavy epilogue.
  for (size_t i = 0, plain = problems.size(); i < plain; i++) {
    if (problems[i].out.dtype == MP_FP32) continue;
    static char somewhere[16];
    mp::GemmProblem p = problems[i];
    p.out.epilogue.activation = MP_ACT_GELU;
    p.out.epilogue.aux = somewhere;
    p.out.epilogue.ld_aux = p.out.d.ld;
    problems.push_back(p);
  }
  add("deepbench_gemm_train.csv", mpbench::parse_deepbench);
  add("deepbench_gemm_infer.csv", mpbench::parse_deepbench);
  return problems;
}

/// Returns the GEMM of the family's kernels, with the largest stride phase of a dgrad for all of
/// them.
mp::GemmProblem largest_product_of(const mp::ConvProblem &p, mp::ConvFamily family) {
  if (family == mp::ConvFamily::im2col) return mp::im2col_gemm(p);
  if (family == mp::ConvFamily::gemm) return mp::pointwise_gemm(p);
  const mp::ProductShape shape = mp::product_shape(p);
  mp::GemmProblem gemm = mp::operands_of(p);
  gemm.out.m = shape.m;
  gemm.out.n = shape.n;
  gemm.k = shape.k;
  gemm.out.batch_count = static_cast<int32_t>(shape.count);
  return gemm;
}

/// Returns the share of the stride phases of a dgrad that have taps.
double reached_share(const mp::ConvProblem &p) {
  if (p.op != MP_CONV_DGRAD) return 1;
  const mp::DgradDirection h = mp::dgrad_h(p.shape), w = mp::dgrad_w(p.shape);
  return double(h.reached) / h.phases * w.reached / w.phases;
}

/// Each tap of a dgrad belongs to one stride phase, so the mean length of all sums is used.
mp::GemmProblem product_of(const mp::ConvProblem &p, mp::ConvFamily family) {
  mp::GemmProblem gemm = largest_product_of(p, family);
  if (p.op != MP_CONV_DGRAD || family == mp::ConvFamily::gemm) return gemm;
  const mp::DgradDirection h = mp::dgrad_h(p.shape), w = mp::dgrad_w(p.shape);
  const int64_t largest = int64_t{h.reached} * w.reached * h.taps * w.taps;
  gemm.k = (gemm.k * p.shape.r * p.shape.s + largest - 1) / largest;
  return gemm;
}

/// Returns convolutions whose channels are multiples of 8.
std::vector<mp::ConvProblem> all_convolutions() {
  std::vector<mp::ConvProblem> problems;
  for (const char *const path : {"resnet50.csv", "deepbench_conv_train.csv"})
    for (const mp::ConvProblem &p : bench_convolutions(path, MP_FP16))
      if (p.shape.c % 8 == 0 && p.shape.k % 8 == 0) problems.push_back(p);
  return problems;
}

// ---------------------------------------------------------------------------- order of predictions

struct Candidate {
  const char *name;
  double predicted_us, work_us;
};

struct Tally {
  int64_t pairs = 0;
  std::vector<std::string> offenders;
};

/// Checks `ranked`, sorted by prediction: no kernel may have much more work than a later one,
/// unless their predictions differ by at most 5 %.
void check_order(const std::string &problem, const std::vector<Candidate> &ranked, Tally &tally) {
  constexpr double kDiffers = 1.5, kSame = 1.05;
  for (size_t i = 0; i < ranked.size(); i++) {
    for (size_t j = i + 1; j < ranked.size(); j++) {
      const Candidate &first = ranked[i], &second = ranked[j];
      const double more = std::max(first.work_us, second.work_us);
      if (more < kDiffers * std::min(first.work_us, second.work_us)) continue;
      tally.pairs++;
      if (first.work_us < second.work_us || second.predicted_us < kSame * first.predicted_us)
        continue;
      std::ostringstream line;
      line << problem << ": " << first.name << " is predicted at " << first.predicted_us
           << " us before " << second.name << " at " << second.predicted_us << ", work "
           << first.work_us << " and " << second.work_us;
      tally.offenders.push_back(line.str());
    }
  }
}

std::string name_of(const mp::GemmProblem &p, const mp::Device &device) {
  std::ostringstream name;
  name << "sm_" << device.arch << ' ' << p.out.m << 'x' << p.out.n << 'x' << p.k << ' '
       << mp_dtype_name(p.dtype_ab) << " to " << mp_dtype_name(p.out.dtype)
       << (p.out.epilogue.aux != nullptr ? " with GELU and aux" : "");
  return name.str();
}

/// Measured constants, also if scaled to another device, include effects that counts do not, such
/// as stalls of WMMA on Hopper or bank conflicts.
std::vector<mp::Device> devices_without_measurements() {
  std::vector<mp::Device> devices;
  for (const mp::Device &device : {t4(), a100(), h200()})
    if (is_estimated(mp::builtin_gemm_tuning(), device)) devices.push_back(device);
  return devices;
}

Tally tally_of(const mp::GemmTuning &tuning) {
  Tally tally;
  for (const mp::Device &device : devices_without_measurements())
    for (const mp::GemmProblem &p : all_problems()) {
      std::vector<Candidate> ranked;
      for (const Ranked &choice : ranking(p, device, kAligned, tuning))
        ranked.push_back({choice.name, choice.predicted_us,
                          Work(p, *choice.variant, choice.reads_copies, device).us()});
      check_order(name_of(p, device), ranked, tally);
    }
  return tally;
}

Tally tally_of_convolutions(const mp::GemmTuning &tuning) {
  Tally tally;
  for (const mp::Device &device : devices_without_measurements())
    for (const mp::ConvProblem &p : all_convolutions()) {
      std::vector<Candidate> ranked;
      for (const mp::RankedConv &choice : mp::rank_conv(p, {device, tuning})) {
        if (choice.family == mp::ConvFamily::depthwise) continue;
        const mp::GemmProblem gemm = product_of(p, choice.family);
        const Work work(gemm, *choice.variant, choice.reads_copies, device, reached_share(p));
        ranked.push_back({choice.name, choice.predicted_us, work.us()});
      }
      check_order("conv " + std::to_string(p.op) + ' ' +
                      name_of(product_of(p, mp::ConvFamily::implicit), device),
                  ranked, tally);
    }
  return tally;
}

void expect_none(const Tally &tally) {
  constexpr size_t kShown = 20;
  CHECK(tally.pairs > 100000);
  for (size_t i = 0; i < std::min(tally.offenders.size(), kShown); i++)
    UNSCOPED_INFO(tally.offenders[i]);
  CHECK(tally.offenders.empty());
}

/// Counts predictions shorter than their multiply-adds at the peak rate.
int64_t impossible_predictions(const mp::GemmTuning &tuning) {
  int64_t count = 0;
  for (const mp::Device &device : {t4(), a100(), l40s(), h200(), b200(), rtx_5090()})
    for (const mp::GemmProblem &p : all_problems())
      for (const Ranked &choice : ranking(p, device, kAligned, tuning))
        count +=
            choice.predicted_us < Work(p, *choice.variant, choice.reads_copies, device).least_us();
  return count;
}

}  // namespace

TEST_CASE("order: predictions agree with counted work for the shapes of the bench") {
  expect_none(tally_of(mp::builtin_gemm_tuning()));
}

TEST_CASE("order: convolution predictions agree with counted work") {
  expect_none(tally_of_convolutions(mp::builtin_gemm_tuning()));
}

TEST_CASE("order: no prediction is faster than the peak of its units") {
  CHECK(impossible_predictions(mp::builtin_gemm_tuning()) == 0);
}

TEST_CASE("order injected: tables with injected bugs are detected") {
  // Constants of two kernels exchanged, a digit lost, a cost multiplied by ten.
  for (const char *const lines :
       {"sm_80 wmma_128x128x32_s3 0.5 5.9\nsm_80 wmma_64x64x32_s4 1.4 14.5",
        "sm_75 simt_128x16x16 0.6 84\nsm_75 simt_64x64x16 1.2 54",
        "sm_80 wmma_256x128x32_s3 2.5 2.8", "sm_80 dram_us_per_mb=6", "sm_75 scalar_load_us=44",
        "sm_80 scalar_load_us=1900", "sm_75 copy_us_per_mb=74"}) {
    CAPTURE(lines);
    CHECK(!tally_of(tuning_with(lines)).offenders.empty());
  }
  // A table in which an SM of an A100 would have 128 fp32 units.
  CHECK(impossible_predictions(tuning_with("sm_80 simt_128x128x16 3 136")) > 0);
}
