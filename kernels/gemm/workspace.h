// Workspace of grouped products on Hopper.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/workspace_layout.h"

namespace mp {

/// Hopper: a table of products begins with a header, followed by the entries.
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// mp_gemm_grouped: products in the parameters of one launch that fills the table.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< in the kernel that fills a table

constexpr size_t wgmma_table_bytes(int64_t items) {
  return kWgmmaTableHeaderBytes + static_cast<size_t>(items) * kWgmmaItemBytes;
}

}  // namespace mp
