// What it takes an SM to bring a finished tile to D: the way it leaves, what stands beside D, and what the epilogue
// computes of every element.  Counted here, priced with the constants of tuning.h.
#pragma once

#include "kernels/gemm/dbias.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/wgmma_store.h"

namespace mp {

struct ClassTuning;

constexpr double kMb = 1e-6;  ///< of a byte
inline double elem_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Elements and operations in units of 2^20.
struct EpilogueCost {
  double tma_store_elems, direct_store_elems,
      staged_store_elems;  ///< of wgmma kernels, by their way (wgmma_store.h)
  double source_mb;        ///< C and aux, read or written
  double ops;              ///< instructions of the epilogue
};

/// Of one tile; `path`: of a wgmma kernel.
EpilogueCost epilogue_cost(const GemmKernel &kernel, const Output &out, StorePath path);
/// Of so many elements without their way to D: what the sum behind a split has to do.
EpilogueCost count_epilogue(const Output &out, double elems);

/// Of a class without a constant for subtiles, TILE_US has them in it.
double epilogue_us(const EpilogueCost &epilogue, const ClassTuning &device);

/// How often the products of a tile and its epilogue count in the time of an SM.
struct SmTime {
  double mains, epilogues;
};
/// Time of an SM that runs `mains` main loops and `epilogues` epilogues.  Ping-pong: two warpgroups
/// alternate, so two tiles take as long as both main loops, or as one main loop and its epilogue.
/// The last epilogue is not hidden.
SmTime sm_time(bool ping_pong, double mains, double epilogues, double main_us, double epilogue_us);

/// C, aux and D in memory: what the epilogue of all of D reads and writes, once.
double epilogue_mb(const Output &out);

/// What the pass for dbias adds.
struct DbiasPass {
  double launches;
  double mb;  ///< at the rate of all SMs
};
DbiasPass count_dbias(const Output &out, const DbiasPlan &plan, const Device &device);

}  // namespace mp
