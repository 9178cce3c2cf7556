// Hopper (sm_90a) extensions of simt.h.
#pragma once

#include "kernels/simt/sm90_barrier.h"
#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/sm90_wgmma.h"
