// The table of GEMM kernels.  See kernels.h for the functions that capi calls.
#pragma once

#include "kernels/kernels.h"

namespace mp {

enum class GemmTile { wmma_256x128, wmma_128x128, wmma_64x64, simt_128x128, simt_64x64 };

struct GemmKernel {
  GemmTile tile;
  const char *name;
  bool tensor_core;
  int tile_m, tile_n, tile_k;
  size_t (*smem_bytes)(bool a_by_k, bool b_by_k);
  /// Share of the device's peak that a full grid of such tiles keeps.
  double efficiency;
};

/// Elements of k per slice: whole k-tiles, so that only the last slice has a residue.
int64_t slice_elems(const GemmKernel &kernel, int64_t k, int split_k);

}  // namespace mp
