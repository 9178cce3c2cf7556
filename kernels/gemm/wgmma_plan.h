// What every launch of a wgmma kernel decides on the host: the tensor maps and how D is stored.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/tensor_map.h"

namespace mp::MP_TARGET {

/// Of the whole batch, for the boxes of that kernel.  k > 0.
TensorMap wgmma_map_a(const GemmProblem &, const GemmChoice &);
TensorMap wgmma_map_b(const GemmProblem &, const GemmChoice &);

/// A warp stores 16 rows at a time.
TensorMapSpec wgmma_spec_d(const GemmProblem &);

/// See wgmma_epilogue.h.  `d_fits_tma` matters for 16-bit D alone.
StorePath wgmma_store_path(const GemmProblem &, bool d_fits_tma);
bool wgmma_has_extras(const Epilogue &);

/// The kernel alone, for either type of operands.
void launch_wgmma_kernel(const GemmChoice &, const Device &, const WgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
