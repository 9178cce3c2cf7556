// The cases of one target, one declaration for each; suite.cu puts them into a table.
#pragma once

#include "harness.h"

namespace mp::MP_TARGET {

Output conform_conversions(const Device &, Mistake);
Output conform_math(const Device &, Mistake);
Output conform_shuffles(const Device &, Mistake);
Output conform_reductions(const Device &, Mistake);
Output conform_atomics(const Device &, Mistake);
Output conform_early_launches(const Device &, Mistake);
Output conform_sorts(const Device &, Mistake);
Output conform_maxima(const Device &, Mistake);
Output conform_async_copies(const Device &, Mistake);
Output conform_vectors(const Device &, Mistake);
Output conform_wmma(const Device &, Mistake);
Output conform_mma(const Device &, Mistake);
Output conform_barriers(const Device &, Mistake);
Output conform_tma_load(const Device &, Mistake);
Output conform_tma_store(const Device &, Mistake);
Output conform_tma_base(const Device &, Mistake);
Output conform_tma_matrix(const Device &, Mistake);
Output conform_tma_stored_maps(const Device &, Mistake);
Output conform_im2col(const Device &, Mistake);
Output conform_overlapping_pixels(const Device &, Mistake);
Output conform_im2col_store(const Device &, Mistake);
Output conform_multicast(const Device &, Mistake);
Output conform_wgmma(const Device &, Mistake);
Output conform_stmatrix(const Device &, Mistake);

}  // namespace mp::MP_TARGET
