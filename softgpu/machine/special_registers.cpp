#include "softgpu/program/special_registers.h"

#include <utility>

#include "softgpu/machine/block.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

using Entry = std::pair<std::string_view, SpecialValue>;

const Grid &grid_of(const Warp &w) {
  return *w.block->grid;
}

uint32_t thread_in_block(const Warp &w, uint32_t lane) {
  return static_cast<uint32_t>(w.first_thread()) + lane;
}

template <size_t kAxis>
uint64_t tid(const Warp &w, uint32_t lane) {
  const Dim3 &n = grid_of(w).num_threads;
  const uint32_t thread = thread_in_block(w, lane);
  if constexpr (kAxis == 0) return thread % n[0];
  if constexpr (kAxis == 1) return thread / n[0] % n[1];
  return thread / n[0] / n[1];
}

/// Component of a three-dimensional register.
template <size_t kAxis>
SpecialValue along_axis(std::string_view name) {
  static constexpr Entry kEntries[] = {
      {"%tid", tid<kAxis>},
      {"%ntid", [](const Warp &w, uint32_t) -> uint64_t { return grid_of(w).num_threads[kAxis]; }},
      {"%ctaid", [](const Warp &w, uint32_t) -> uint64_t { return w.block->id[kAxis]; }},
      {"%nctaid", [](const Warp &w, uint32_t) -> uint64_t { return grid_of(w).num_blocks[kAxis]; }},
      {"%cluster_ctaid",
       [](const Warp &w, uint32_t) -> uint64_t { return w.block->in_cluster[kAxis]; }},
      {"%cluster_nctaid",
       [](const Warp &w, uint32_t) -> uint64_t { return grid_of(w).cluster[kAxis]; }},
      {"%clusterid",
       [](const Warp &w, uint32_t) -> uint64_t {
         return w.block->id[kAxis] / grid_of(w).cluster[kAxis];
       }},
      {"%nclusterid",
       [](const Warp &w, uint32_t) -> uint64_t {
         return grid_of(w).num_blocks[kAxis] / grid_of(w).cluster[kAxis];
       }},
  };
  for (const Entry &entry : kEntries)
    if (entry.first == name) return entry.second;
  return nullptr;
}

/// Returns the multiprocessor of the block; blocks are assigned round robin.
uint64_t smid(const Warp &w, uint32_t) {
  const uint64_t block = w.block->cluster->index * grid_of(w).blocks_per_cluster() + w.block->rank;
  return block % static_cast<uint64_t>(options().num_sms);
}

constexpr Entry kScalars[] = {
    {"%laneid", [](const Warp &, uint32_t lane) -> uint64_t { return lane; }},
    {"%warpid", [](const Warp &w, uint32_t) -> uint64_t { return static_cast<uint64_t>(w.index); }},
    {"%nwarpid", [](const Warp &, uint32_t) -> uint64_t { return 64; }},
    {"%smid", smid},
    {"%nsmid",
     [](const Warp &, uint32_t) -> uint64_t { return static_cast<uint64_t>(options().num_sms); }},
    {"%gridid", [](const Warp &w, uint32_t) -> uint64_t { return grid_of(w).id; }},
    {"%cluster_ctarank", [](const Warp &w, uint32_t) -> uint64_t { return w.block->rank; }},
    {"%cluster_nctarank",
     [](const Warp &w, uint32_t) -> uint64_t { return grid_of(w).blocks_per_cluster(); }},
    {"%is_explicit_cluster",
     [](const Warp &w, uint32_t) -> uint64_t {
       return w.program->explicit_cluster || grid_of(w).blocks_per_cluster() > 1;
     }},
    {"%lanemask_eq", [](const Warp &, uint32_t lane) -> uint64_t { return 1u << lane; }},
    {"%lanemask_lt", [](const Warp &, uint32_t lane) -> uint64_t { return (1u << lane) - 1; }},
    {"%lanemask_le", [](const Warp &, uint32_t lane) -> uint64_t { return (2u << lane) - 1; }},
    {"%lanemask_ge", [](const Warp &, uint32_t lane) -> uint64_t { return kAllLanes << lane; }},
    {"%lanemask_gt",
     [](const Warp &, uint32_t lane) -> uint64_t { return kAllLanes << lane << 1; }},
    {"%dynamic_smem_size",
     [](const Warp &w, uint32_t) -> uint64_t { return grid_of(w).dynamic_smem; }},
    {"%total_smem_size", [](const Warp &w, uint32_t) -> uint64_t { return w.block->smem.size(); }},
    {"%aggr_smem_size", [](const Warp &w, uint32_t) -> uint64_t { return w.block->smem.end(); }},
};

}  // namespace

SpecialValue special_register(std::string_view name) {
  if (name.ends_with(".x")) return along_axis<0>(name.substr(0, name.size() - 2));
  if (name.ends_with(".y")) return along_axis<1>(name.substr(0, name.size() - 2));
  if (name.ends_with(".z")) return along_axis<2>(name.substr(0, name.size() - 2));
  for (const Entry &entry : kScalars)
    if (entry.first == name) return entry.second;
  return nullptr;
}

}  // namespace softgpu
