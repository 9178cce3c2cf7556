// Cost model of a tile's epilogue: store path, traffic of C and aux, instructions per element.
// Counts are computed here and priced with the constants of tuning.h.
#pragma once

#include "kernels/gemm/dbias.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/wgmma_store.h"

namespace mp {

struct ClassTuning;

constexpr double kMb = 1e-6;  ///< MB per byte
inline double elem_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Cost of an epilogue.  Elements and operations are in units of 2^20.
struct EpilogueCost {
  double tma_store_elems, direct_store_elems,
      staged_store_elems;  ///< wgmma: elements by store path
  double source_mb;        ///< C and aux, read or written
  double ops;              ///< instructions of the epilogue
};

/// Returns the cost for one tile; `path`: store path of a wgmma kernel.
EpilogueCost epilogue_cost(const GemmKernel &kernel, const Output &out, StorePath path);
/// Returns the cost of `elems` elements without their store path: the work of a split-k sum.
EpilogueCost count_epilogue(const Output &out, double elems);

/// Returns the predicted time.  TILE_US includes TMA stores if a device class has no tma_store_us.
double epilogue_us(const EpilogueCost &epilogue, const ClassTuning &device);

/// Numbers of main loops and epilogues in the time of an SM.
struct SmTime {
  double mains, epilogues;
};
/// Returns the time of an SM that runs `mains` main loops and `epilogues` epilogues.  Ping-pong:
/// two warpgroups alternate, so two tiles take as long as both main loops, or as one main loop and
/// its epilogue.  The last epilogue is not hidden.
SmTime sm_time(bool ping_pong, double mains, double epilogues, double main_us, double epilogue_us);

/// Returns the MB of C, aux and D that the epilogue of D reads and writes, each counted once.
double epilogue_mb(const Output &out);

/// Cost of the dbias pass.
struct DbiasPass {
  double launches;
  double mb;  ///< memory traffic, at the rate of all SMs
};
DbiasPass count_dbias(const Output &out, const DbiasPlan &plan, const Device &device);

}  // namespace mp
