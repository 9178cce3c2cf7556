#include <cstring>

#include "softgpu/isa/async_checks.h"
#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/async_copy.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/worker.h"

namespace softgpu {
namespace {

constexpr uint32_t kChunk = 16, kMaxRowBytes = 256 * 8;

uint32_t offset_of(const BulkCopy &copy) {
  return copy.smem & kOffsetMask;
}

/// Returns the mbarrier of a destination block of a load.
uint32_t mbarrier_of(const BulkCopy &copy, const Block &block) {
  return (copy.mbarrier & kOffsetMask) | block.rank << kRankShift;
}

/// Calls f(Block) for the destination blocks of a load.
template <class F>
void for_each_target(const Cluster &cluster, const BulkCopy &copy, F &&f) {
  for (uint32_t rank = 0; rank < cluster.blocks.size(); rank++)
    if (copy.multicast >> rank & 1) f(*cluster.blocks[rank]);
}

/// Copies the bytes of a box row to swizzled shared memory, in vectors of 16 bytes.
void scatter(SharedMemory &smem, uint32_t offset, const std::byte *row, uint32_t bytes,
             Swizzle swizzle) {
  for (uint32_t i = 0; i < bytes; i += kChunk)
    std::memcpy(smem.at(swizzled(offset + i, swizzle)), row + i, kChunk);
}
void gather(std::byte *row, SharedMemory &smem, uint32_t offset, uint32_t bytes, Swizzle swizzle) {
  for (uint32_t i = 0; i < bytes; i += kChunk)
    std::memcpy(row + i, smem.at(swizzled(offset + i, swizzle)), kChunk);
}

/// Counts and checks the global memory accesses of a copy.
void watch_box(const BulkCopy &copy, Access access) {
  uint64_t bytes = 0;
  std::vector<MemoryRun> runs;
  for_each_row(copy.map, copy.place, [&](const BoxRow &row) {
    bytes += row.bytes;
    if (watches_memory() && row.bytes != 0) runs.push_back({row.address, row.bytes});
  });
  count_bytes(*copy.warp, *copy.at, bytes);
  if (watches_memory()) watch_bulk_global(*copy.warp, *copy.at, runs, access);
}

/// Loads the box into the shared memory of a block.
void read_box(const BulkCopy &copy, Block &block) {
  const uint32_t row_bytes = copy.map.row_bytes();
  for_each_row(copy.map, copy.place, [&](const BoxRow &row) {
    const uint32_t offset = offset_of(copy) + row.at;
    const std::byte *from = nullptr;
    if (row.bytes != 0)
      from = global_at(*copy.warp, *copy.at, copy.lane, row.address, row.bytes, false);
    if (row.bytes == row_bytes)
      return scatter(block.smem, offset, from, row_bytes, copy.map.swizzle);
    std::byte padded[kMaxRowBytes];
    std::memset(padded, 0, row_bytes);
    if (row.bytes != 0) std::memcpy(padded + row.skipped, from, row.bytes);
    scatter(block.smem, offset, padded, row_bytes, copy.map.swizzle);
  });
}

void land_load(Cluster &cluster, const BulkCopy &copy) {
  Block *first = nullptr;
  const uint32_t offset = offset_of(copy);
  watch_box(copy, Access::kRead);
  for_each_target(cluster, copy, [&](Block &block) {
    if (block.num_running == 0)
      violation(*copy.warp, *copy.at, copy.lane, "a bulk copy writes to a block that has exited");
    if (first == nullptr)
      read_box(copy, block);
    else
      std::memcpy(block.smem.at(offset), first->smem.at(offset), copy.num_bytes);
    if (first == nullptr) first = &block;
    watch_bulk_shared(*copy.warp, *copy.at, block, offset, copy.num_bytes, Access::kWrite);
    if (cluster.races) {
      for_each_row(copy.map, copy.place, [&](const BoxRow &row) {
        cluster.races->read_global_bulk(copy, block, row.address, row.bytes);
      });
      cluster.races->land_bulk(copy, block);
    }
    complete_transaction(*copy.warp, *copy.at, copy.lane, mbarrier_of(copy, block), copy.num_bytes);
  });
}

/// Checks that the source of a store is visible to the async proxy: at the issue, and again at the
/// read, for writes in between.
void check_source(const BulkCopy &copy) {
  check_proxy(*copy.warp, *copy.at, *copy.block, offset_of(copy), copy.num_bytes, copy.fenced,
              "a bulk store");
}

/// Reads the source of a store, after which its shared memory may be reused.
void read_shared(BulkCopy &copy) {
  const uint32_t offset = offset_of(copy), row_bytes = copy.map.row_bytes();
  check_source(copy);
  watch_bulk_shared(*copy.warp, *copy.at, *copy.block, offset, copy.num_bytes, Access::kRead);
  if (RaceCheck *races = races_of(*copy.warp)) races->read_bulk(copy);
  copy.data.resize(copy.num_bytes);
  for (uint32_t at = 0; at < copy.num_bytes; at += row_bytes)
    gather(&copy.data[at], copy.block->smem, offset + at, row_bytes, copy.map.swizzle);
  copy.has_read = true;
}

void write_box(const BulkCopy &copy) {
  watch_box(copy, Access::kWrite);
  for_each_row(copy.map, copy.place, [&](const BoxRow &row) {
    if (row.bytes == 0) return;
    std::byte *to = global_at(*copy.warp, *copy.at, copy.lane, row.address, row.bytes, true);
    if (RaceCheck *races = races_of(*copy.warp))
      races->write_global_bulk(copy, row.address, row.bytes);
    std::memcpy(to, &copy.data[row.at + row.skipped], row.bytes);
  });
}

void take_off(Cluster &cluster, size_t index) {
  cluster.copies.erase(cluster.copies.begin() + static_cast<ptrdiff_t>(index));
}

/// Returns the next load to complete.  Stores are executed by the waits for them.
size_t next_load(Cluster &cluster) {
  const auto &copies = cluster.copies;
  if (options().completion == Completion::kRandom) {
    const size_t any = random_below(cluster, copies.size());
    if (copies[any].kind == BulkKind::kLoad) return any;
  }
  size_t i = 0;
  while (i < copies.size() && copies[i].kind != BulkKind::kLoad) i++;
  return i;
}

/// Advances a random copy: a store may read now and write later.
bool advance_any(Cluster &cluster) {
  const size_t any = random_below(cluster, cluster.copies.size());
  const BulkCopy &copy = cluster.copies[any];
  const bool fully = copy.kind == BulkKind::kLoad || random_below(cluster, 2) != 0;
  if (!fully && copy.has_read) return false;
  land_bulk_copy(cluster, any, fully);
  return true;
}

}  // namespace

void issue_bulk_copy(Warp &warp, const Instruction &i, int lane, BulkCopy copy) {
  copy.block = warp.block;
  copy.warp = &warp;
  copy.at = &i;
  copy.lane = lane;
  Cluster &cluster = *warp.block->cluster;
  const bool is_load = copy.kind == BulkKind::kLoad;
  if (is_load) {
    for_each_target(cluster, copy, [&](Block &block) {
      const uint32_t offset = offset_of(copy), rank = block.smem.rank() << kRankShift;
      smem_in_cluster(warp, i, lane, offset | rank, copy.num_bytes);
      check_mbarrier_visible(warp, i, lane, mbarrier_of(copy, block), MbarrierUser::kBulkCopy);
      if (options().completion != Completion::kEarly) block.smem.poison(offset, copy.num_bytes);
      block.smem.forget_writes(offset, copy.num_bytes);
    });
  } else {
    shared_at(warp, i, lane, copy.smem, copy.num_bytes);
    copy.group = warp.bulk.num_committed[static_cast<size_t>(lane)];
    copy.fenced = warp.bulk.fenced[static_cast<size_t>(lane)];
    check_source(copy);
  }
  if (cluster.races) copy.issued = cluster.races->release(warp, Lanes{1} << lane);
  cluster.copies.push_back(std::move(copy));
  if (options().completion == Completion::kEarly)
    land_bulk_copy(cluster, cluster.copies.size() - 1, is_load);
}

void land_bulk_copy(Cluster &cluster, size_t index, bool fully) {
  BulkCopy &copy = cluster.copies[index];
  if (copy.kind == BulkKind::kLoad) {
    land_load(cluster, copy);
    return take_off(cluster, index);
  }
  if (!copy.has_read) read_shared(copy);
  if (!fully) return;
  write_box(copy);
  take_off(cluster, index);
}

void finish_bulk_copies(Warp &warp) {
  Cluster &cluster = *warp.block->cluster;
  for (size_t i = 0; i < cluster.copies.size();) {
    const BulkCopy &copy = cluster.copies[i];
    if (copy.warp != &warp || copy.kind == BulkKind::kLoad) {
      i++;
      continue;
    }
    if (!copy.has_read)
      violation(warp, *copy.at, copy.lane, "exits before its bulk store has read shared memory");
    land_bulk_copy(cluster, i, true);
  }
}

bool advance_bulk_copies(Cluster &cluster, bool may_choose) {
  if (cluster.copies.empty()) return false;
  if (may_choose) return advance_any(cluster);
  size_t next = next_load(cluster);
  if (next == cluster.copies.size()) {
    if (cluster.num_running != 0) return false;
    next = 0;
  }
  land_bulk_copy(cluster, next, true);
  return true;
}

// ---- groups

namespace {

struct WaitGroup {
  uint32_t num_pending;
  bool until_read;  ///< .read: waits only until shared memory has been read
};

Step commit_group(Warp &warp, const Instruction &, Lanes lanes) {
  for_each_lane(lanes, [&](int lane) { warp.bulk.num_committed[static_cast<size_t>(lane)]++; });
  return Step::kNext;
}

/// Executes the copies that it waits for.
Step wait_group(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<WaitGroup>();
  Cluster &cluster = *warp.block->cluster;
  for (size_t index = 0; index < cluster.copies.size();) {
    const BulkCopy &copy = cluster.copies[index];
    const bool is_own =
        copy.kind != BulkKind::kLoad && copy.warp == &warp && (lanes >> copy.lane & 1) != 0;
    const uint32_t num_committed = warp.bulk.num_committed[static_cast<size_t>(copy.lane)];
    if (!is_own || uint64_t{copy.group} + o.num_pending >= num_committed) {
      index++;
      continue;
    }
    land_bulk_copy(cluster, index, !o.until_read);
    if (o.until_read) index++;  // otherwise the copy has been removed
  }
  if (cluster.races) cluster.races->wait_for_bulk(warp, lanes, o.num_pending, o.until_read);
  return Step::kNext;
}

}  // namespace

void decode_bulk_group(Decoder &d, Instruction &i) {
  const bool commits = d.part(3) == "commit_group";
  need_form(d, commits ? "async bulk commit_group" : "async bulk wait_group read?",
            commits ? 0 : 1);
  i.execute = commits ? commit_group : wait_group;
  if (!commits)
    i.make<WaitGroup>() = {static_cast<uint32_t>(constant_of(d, d.operands()[0])), d.has("read")};
}

}  // namespace softgpu
