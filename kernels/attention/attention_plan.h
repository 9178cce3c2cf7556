// Selection of the kernel of an attention.
//
// It depends on type, head dimensions, alignment and device, not on lengths or the number of
// sequences: otherwise the bits of a sequence would depend on others.
#pragma once

#include <array>
#include <cstdint>

#include "base/device_info.h"
#include "kernels/attention/attention_args.h"

namespace mp {

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

}  // namespace mp
