// See attention_plan.h.
#include "kernels/attention/attention_plan.h"

#include <algorithm>
#include <initializer_list>

#include "base/dtypes.h"

namespace mp {

namespace {

constexpr int64_t kUnit = 8;  // elements of 16 bytes

bool are_rows_aligned(const AttentionArgs &args, AttentionPass pass) {
  const mp_attention_desc_t &d = args.desc;
  const auto are_aligned = [](std::initializer_list<const void *> pointers) {
    return std::ranges::all_of(
        pointers, [](const void *p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
  };
  const auto is_aligned = [](const mp_attention_layout_t &l) {
    return l.row % kUnit == 0 && l.head % kUnit == 0;
  };
  return (is_packed(d) || (d.q.batch | d.k.batch | d.v.batch | d.o.batch) % kUnit == 0) &&
         is_aligned(d.q) && is_aligned(d.k) && is_aligned(d.v) && is_aligned(d.o) &&
         are_aligned({args.q, args.k, args.v, args.o}) &&
         (pass == AttentionPass::forward || are_aligned({args.d_o, args.dq, args.dk, args.dv}));
}

}  // namespace

const char *why_not(AttentionKernel kernel, const AttentionArgs &args, AttentionPass pass,
                    const Device &device) {
  if (kernel == AttentionKernel::plain) return nullptr;
  const mp_attention_desc_t &d = args.desc;
  if (const char *const why = why_no_tensor_cores(d.dtype, device.arch); why != nullptr) return why;
  if (d.head_dim % kUnit != 0 || d.head_dim_v % kUnit != 0)
    return "requires head_dim and head_dim_v that are multiples of 8";
  if (device.arch < 75) return "requires sm_75 or newer";
  if (device.arch < 80 && std::max(d.head_dim, d.head_dim_v) > 128)
    return "requires head_dim and head_dim_v up to 128 on devices before sm_80";
  if (!are_rows_aligned(args, pass)) return "requires 16-byte aligned rows";
  return nullptr;
}

std::array<AttentionKernel, kAttentionKernels> rank_attention_kernels(const AttentionArgs &args,
                                                                      AttentionPass pass,
                                                                      const Device &device) {
  using enum AttentionKernel;
  // On the CPU, the products of fragments take 2 to 8 times as long as the plain kernel.
  if (device.target == MP_TARGET_HOST || why_not(mma, args, pass, device) != nullptr)
    return {plain, mma};
  return {mma, plain};
}

MmaInstance mma_instance(const mp_attention_desc_t &d, const Device &device) {
  const int32_t dim = std::max(d.head_dim, d.head_dim_v);
  return {dim <= 64 ? 64 : dim <= 128 ? 128 : 256, device.arch < 80 && dim > 64};
}

std::vector<AttentionLaunch> attention_launches(const AttentionArgs &args, AttentionPass pass,
                                                const Device &device) {
  const mp_attention_desc_t &d = args.desc;
  const auto blocks = [&](int64_t length, int32_t heads, const AttentionTile &tile) {
    const int64_t tiles = (length + tile.rows - 1) / tile.rows;
    return std::max<int64_t>(tiles, is_packed(d) ? 1 : 0) * d.batch * heads;
  };
  const bool is_mma = args.kernel == AttentionKernel::mma;
  const MmaInstance instance = mma_instance(d, device);
  if (pass == AttentionPass::forward) {
    const AttentionTile tile = is_mma ? instance.forward() : kPlainTile;
    return {{is_mma ? "attention_forward_mma" : "attention_forward_plain",
             blocks(d.q_len, d.heads, tile), tile}};
  }
  const AttentionTile tile = is_mma ? instance.backward() : kPlainTile;
  std::vector<AttentionLaunch> launches = {
      {is_mma ? "attention_dq_mma" : "attention_dq_plain", blocks(d.q_len, d.heads, tile), tile},
      {is_mma ? "attention_dkv_mma" : "attention_dkv_plain", blocks(d.kv_len, d.kv_heads, tile),
       tile}};
  if (args.dsinks != nullptr) launches.push_back({"attention_dsink_plain", d.heads, {}});
  return launches;
}

}  // namespace mp
