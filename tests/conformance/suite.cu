#include "suite.h"

#include "cases.h"

namespace mp::MP_TARGET {

mpconform::Suite conformance_suite() {
  mpconform::Suite suite{};
  suite.cases = {
      {"conversions", false, conform_conversions},
      {"math", false, conform_math},
      {"shuffles", false, conform_shuffles},
      {"reductions", false, conform_reductions},
      {"atomics", false, conform_atomics},
      {"early launches", false, conform_early_launches},
      {"sorts", false, conform_sorts},
      {"maxima", false, conform_maxima},
      {"async copies", false, conform_async_copies},
      {"vectors", false, conform_vectors},
      {"wmma", false, conform_wmma},
      {"mma", false, conform_mma},
      {"barriers", true, conform_barriers},
      {"tma load", true, conform_tma_load},
      {"tma store", true, conform_tma_store},
      {"tma base", true, conform_tma_base},
      {"tma matrix", true, conform_tma_matrix},
      {"tma stored maps", true, conform_tma_stored_maps},
      {"im2col", true, conform_im2col},
      {"overlapping pixels", true, conform_overlapping_pixels},
      {"im2col store", true, conform_im2col_store},
      {"multicast", true, conform_multicast},
      {"wgmma", true, conform_wgmma},
      {"stmatrix", true, conform_stmatrix},
  };
  suite.why_no_device = why_no_device();
  if (suite.why_no_device.empty()) suite.device = describe(current_device());
  return suite;
}

}  // namespace mp::MP_TARGET
