// Tuning table: constants of the cost model by which mp_gemm selects kernels.
#pragma once

#include "kernels/gemm/plan.h"

namespace mp {

/// Returns the table in the file MP_GEMM_TUNING, or else the built-in one.  The first call reads
/// the file, and logs an invalid one.
const GemmTuning &gemm_tuning();

}  // namespace mp
