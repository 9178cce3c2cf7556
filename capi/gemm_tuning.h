// The constants by which mp_gemm chooses its kernels.
#pragma once

#include "kernels/gemm/problem.h"

namespace mp {

/// The table that MP_GEMM_TUNING names, else the built-in one.  Read when it is first asked for; a
/// file that is no table is logged then, once.
const GemmTuning &gemm_tuning();

}  // namespace mp
