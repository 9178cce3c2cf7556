// Clusters: addresses in distributed shared memory, and cluster_sync.
#include <utility>

#include "host/barriers.h"
#include "host/race.h"
#include "host/shared_memory.h"
#include "kernels/simt/sm90_barrier.h"

namespace mp::host {

namespace engine {

namespace {

constexpr int kRankShift = 24;
constexpr SmemAddress kOffsetMask = (1u << kRankShift) - 1;

Text describe_sync(const void *object) {
  const Cluster &cluster = *static_cast<const Cluster *>(object);
  return words("where %d of %d threads have arrived", cluster.at_sync, cluster.alive);
}

}  // namespace

bool is_mapped(SmemAddress address) {
  return address >> kRankShift != 0;
}
uint32_t offset_in_arena(SmemAddress address) {
  return address & kOffsetMask;
}

Block &block_of(SmemAddress address, const char *primitive, source_location where) {
  Block &own = *current->block;
  const int rank = is_mapped(address) ? static_cast<int>(address >> kRankShift) - 1 : own.rank;
  if (rank >= own.cluster->size)
    violation(where, "passes an address in block %d of its cluster of %d to %s", rank,
              own.cluster->size, primitive);
  Block &block = own.cluster->blocks[rank];
  if (block.alive == 0)
    violation(where, "uses shared memory of block %lld, which has returned, in %s",
              static_cast<long long>(block.index), primitive);
  return block;
}

std::byte *smem_at(SmemAddress address, size_t bytes, const char *primitive,
                   source_location where) {
  return smem_at(block_of(address, primitive, where), address, bytes, primitive, where);
}

std::byte *smem_at(const Block &block, SmemAddress address, size_t bytes, const char *primitive,
                   source_location where) {
  const SharedMemory &smem = *block.smem;
  std::byte *const memory = smem.at(offset_in_arena(address));
  if (smem.holds(memory, bytes)) return memory;
  if (!smem.holds(memory, 1))
    violation(where, "passes an address outside all shared variables to %s", primitive);
  violation(where, "passes %zu bytes at shared %s to %s, which run past the end of the variable",
            bytes, smem.locate(memory).text, primitive);
}

void release_cluster_barrier(Cluster &cluster) {
  race::join(cluster.warps, static_cast<size_t>(cluster.num_warps));
  cluster.at_sync = 0;
  for (int w = 0; w < cluster.num_warps; w++)
    if (cluster.sync_waiting[w] != 0)
      wake(cluster.warps[w], std::exchange(cluster.sync_waiting[w], 0u));
}

}  // namespace engine

using namespace engine;

SmemAddress smem_address(const void *smem, source_location where) {
  const size_t offset =
      static_cast<size_t>(static_cast<const std::byte *>(smem) - current->block->smem->begin());
  if (offset >= SharedMemory::capacity())
    violation(where, "passes an address to smem_address that is not in its block's shared memory");
  return static_cast<SmemAddress>(offset);
}

SmemAddress in_block(SmemAddress own, int rank, source_location where) {
  const int size = current->block->cluster->size;
  if (own >> kRankShift != 0)
    violation(where, "passes an address to in_block that is already mapped to a block");
  if (rank < 0 || rank >= size)
    violation(where, "maps an address to block %d of its cluster of %d in in_block", rank, size);
  return own | static_cast<SmemAddress>(rank + 1) << kRankShift;
}

void cluster_sync(source_location where) {
  Thread &me = *current;
  Cluster &cluster = *me.block->cluster;
  const int slot = me.warp->slot;
  if (cluster.sync_waiting[slot] == 0)
    cluster.sync_at[slot] = where;
  else if (!same_line(cluster.sync_at[slot], where))
    violation(where, "calls a different cluster_sync than its warp, which is at %s",
              file_and_line(cluster.sync_at[slot]).text);
  cluster.at_sync++;
  if (cluster.at_sync == cluster.alive) {
    release_cluster_barrier(cluster);
    return;
  }
  cluster.sync_waiting[slot] |= 1u << me.lane;
  block_until_woken(me, "cluster_sync", where, {&cluster, describe_sync});
}

}  // namespace mp::host
