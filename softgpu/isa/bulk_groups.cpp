// cp.async.bulk.commit_group and wait_group, with separate groups per thread: PTX ISA, Asynchronous
// Copy, bulk async-groups.
#include "softgpu/isa/async.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
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

bool decode_bulk_group(Decoder &d, Instruction &i) {
  if (d.opcode() != "cp" || d.part(1) != "async" || d.part(2) != "bulk") return false;
  if (d.part(3) == "commit_group") {
    need_parts(d, {"async", "bulk", "commit_group"});
    need_operands(d, 0, 0);
    i.execute = commit_group;
    return true;
  }
  if (d.part(3) != "wait_group") return false;
  allow_parts(d, {"async", "bulk", "wait_group", "read"});
  need_operands(d, 1, 1);
  i.make<WaitGroup>() = {static_cast<uint32_t>(constant_of(d, d.operands()[0])), d.has("read")};
  i.execute = wait_group;
  return true;
}

}  // namespace softgpu
