// Arguments of attention, selection of its kernel, and its launches.
//
// The selection depends on type, head dimensions, alignment and device, not on lengths or the
// number of sequences: otherwise the bits of a sequence would depend on others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "mpcore/attention.h"

namespace mp {

/// Implementation of both passes.  Only `plain` supports every type, shape and alignment.
enum class AttentionKernel {
  plain,
  mma  ///< tensor cores through mma.sync
};

/// Arguments of both passes; each reads only some of the tensors.  In the descriptor, strides,
/// scale and head_dim_v have no default values.
struct AttentionArgs : mp_attention_tensors_t {
  mp_attention_desc_t desc;
  int32_t drop_threshold;  ///< T: bytes below it drop their score; 0: no dropout
  float *row_dots;         ///< workspace of the backward pass: D, in the layout of lse
  AttentionKernel kernel;
};

MP_HD bool is_packed(const mp_attention_desc_t &desc) {
  return desc.q_rows > 0;
}

/// Returns the number of elements of lse.
inline int64_t attention_lse_elems(const mp_attention_desc_t &desc) {
  return int64_t{desc.heads} * (is_packed(desc) ? desc.q_rows : desc.batch * desc.q_len);
}

constexpr int32_t kAttentionKernels = 2;
constexpr const char *kAttentionKernelNames[kAttentionKernels] = {"attention_plain",
                                                                  "attention_mma"};

enum class AttentionPass { forward, backward };

/// Returns the reason why a kernel cannot run a pass, as a clause, or NULL.
const char *why_not(AttentionKernel, const AttentionArgs &, AttentionPass, const Device &);

/// Returns all kernels, best first; kernels that cannot run the pass come last.
std::array<AttentionKernel, kAttentionKernels> rank_attention_kernels(const AttentionArgs &,
                                                                      AttentionPass,
                                                                      const Device &);

// ---------------------------------------------------------------------------- launches

/// Tile of a block: rows of its outputs, and columns that it visits at a time.
struct AttentionTile {
  int32_t rows, columns;
  int64_t smem_bytes;  ///< shared memory of the operands
};

constexpr AttentionTile kPlainTile = {32, 128, 40064};

/// Instance of the kernels on tensor cores, for head dimensions up to `dim`: 64, 128 or 256.
struct MmaInstance {
  int32_t dim;
  bool is_small;  ///< variant with half of the shared memory, for sm_75

  constexpr AttentionTile forward() const {
    const int32_t rows = dim == 256 || is_small ? 64 : 128, columns = 64;
    return {rows, columns, bytes_of(rows + 2 * columns)};  // q; k and v
  }
  constexpr AttentionTile backward() const {
    const int32_t rows = dim == 64 ? 128 : 64, columns = 32;
    return {rows, columns, bytes_of(2 * rows + 2 * columns * backward_stages())};
  }
  constexpr int32_t backward_stages() const { return dim == 256 || is_small ? 1 : 2; }

 private:
  constexpr int64_t bytes_of(int32_t rows) const { return int64_t{2} * rows * dim; }
};

MmaInstance mma_instance(const mp_attention_desc_t &, const Device &);

struct AttentionLaunch {
  const char *name;
  int64_t blocks;
  AttentionTile tile;  ///< columns = 0: the kernel has no tiles
};

/// Returns the launches of a pass with args.kernel.
std::vector<AttentionLaunch> attention_launches(const AttentionArgs &, AttentionPass,
                                                const Device &);

}  // namespace mp
