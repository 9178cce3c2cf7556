// Constants of the predicted times (cost.h), and their text format.
//
// A table consists of lines of words; # begins a comment.  There are four kinds of lines, in any
// order; a later line replaces an earlier one:
//
//     CLASS KEY=NUMBER...               constants of a device class
//     CLASS KERNEL TILE_US K_US         constants of a kernel on it
//     CLASS KERNEL TILE_US K_US KEY=NUMBER...
//     fastest CALL KERNEL               kernel that was measured to be the fastest for a call
//
// CALL has 16 hexadecimal digits, a hash that mp_tuning_get_text writes (capi/tuned_call.h).
// CLASS is sm_75 (7.x), sm_80 (8.0), sm_89 (8.6 to 8.9), sm_90 (9.0), sm_100 (10.0 to 11.0), sm_120
// (12.0 and newer) or host.  Its keys:
//
//     launch_us           a launch, until the first tile starts
//     dram_us_per_mb      reading A, B, C and writing D once
//     l2_us_per_mb        operands that all tiles together read
//     partial_us_per_mb   partial sums of a split, written or read once; sums that exceed L2 cost
//                         dram_us_per_mb instead
//     tma_store_us        2^20 elements of D that an SM stores from a wgmma kernel by TMA,
//     direct_store_us     from registers,
//     staged_store_us     or through shared memory (wgmma_epilogue.h)
//     source_us_per_mb    C and aux that an SM reads or writes in an epilogue
//     op_us               2^20 operations of an SM for bias, activation and statistics; like
//                         tma_store_us, not fitted by mptune
//     cluster_sum_us      barriers of a cluster that adds slices of k; not fitted by mptune.  Bytes
//                         that an SM reads from other blocks cost source_us_per_mb.
//     copy_us_per_mb      aligned copies of A and B
//     scalar_load_us      2^20 elements that a wmma kernel loads one at a time because rows are not
//                         16-byte aligned; added to K_US
//     wgrad_stage_us      a stage of the producer threads of wgrad on wgmma,
//     wgrad_load_us       and each load of that stage; mptune fits neither
//     estimated           1: the constants come from data sheets and were not measured; mptune
//                         writes 0
//     measured_arch       architecture on which the constants were measured, such as 90; for
//                         other architectures of the class they are estimates.  0: measured on all
//
// KERNEL is a name without _c2, _k4, _p4 and _copied.  TILE_US is the time of an SM per tile,
// independent of k, and K_US the time per 1024 elements of k of one tile.  If several blocks share
// an SM, each counts its share.  For gemv, which has no tiles, TILE_US is the time of an SM per
// 2^20 elements of the matrix, and K_US the time that each vector adds.  Keys of a kernel:
//
//     start_us            first and last steps of a block, once per persistent block; for gemv,
//                         once per batch item
//     c2                  factor of K_US in clusters of two
//
// 1 MB is 10^6 bytes.  l2 and dram are lower bounds of a time; 0 means no such bound.
//
// A line replaces the corresponding line of the built-in table (tuning_builtin.inc); other lines
// are unchanged, so a file may contain a single class.  bench/tune measures a device and writes
// such a file; the library reads the file named by MP_GEMM_TUNING.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "kernels/gemm/select.h"

namespace mp {

enum class DeviceClass { sm_75, sm_80, sm_89, sm_90, sm_100, sm_120, host };
constexpr size_t kNumDeviceClasses = 7;
/// All classes, for messages.
constexpr const char *kDeviceClassList = "sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 or host";

const char *name_of(DeviceClass device_class);
DeviceClass class_of(const Device &device);

struct KernelTuning {
  double tile_us, k_us;
  double start_us = 0;
  double c2 = 1;
};

struct ClassTuning {
  double launch_us, dram_us_per_mb, l2_us_per_mb, partial_us_per_mb;
  double tma_store_us = 0, direct_store_us = 0, staged_store_us = 0, source_us_per_mb = 0,
         op_us = 0, cluster_sum_us = 0;
  double copy_us_per_mb = 0;
  double scalar_load_us = 0;
  double wgrad_stage_us = 0, wgrad_load_us = 0;
  double estimated = 0, measured_arch = 0;
  std::array<KernelTuning, kNumGemmTiles> kernels;

  const KernelTuning &of(const GemmKernel &kernel) const {
    return kernels[static_cast<size_t>(kernel.tile)];
  }
  KernelTuning &of(const GemmKernel &kernel) { return kernels[static_cast<size_t>(kernel.tile)]; }
};

struct GemmTuning {
  std::array<ClassTuning, kNumDeviceClasses> classes{};
  std::unordered_map<uint64_t, std::string> fastest;  ///< kernel by call

  const ClassTuning &of(DeviceClass device_class) const {
    return classes[static_cast<size_t>(device_class)];
  }
  ClassTuning &of(DeviceClass device_class) { return classes[static_cast<size_t>(device_class)]; }
};

}  // namespace mp
