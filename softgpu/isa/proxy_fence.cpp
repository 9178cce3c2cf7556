// fence.proxy and fence.mbarrier_init: PTX ISA, membar / fence.
#include "softgpu/isa/async.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

struct AsyncFence {
  bool is_of_shared, is_of_global;
};

Step fence_async(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<AsyncFence>();
  RaceCheck *const races = races_of(warp);
  if (o.is_of_global && races != nullptr) races->fence_proxy(warp, lanes);
  if (!o.is_of_shared) return Step::kNext;
  const uint32_t now = warp.block->smem.fence();
  for_each_lane(lanes, [&](int lane) { warp.bulk.fenced[static_cast<size_t>(lane)] = now; });
  warp.block->unfenced_mbarriers.fence(warp.first_thread(), lanes);
  return Step::kNext;
}

/// Releases initializations to the cluster, including threads that learn of them through relaxed
/// operations.
Step fence_initialisation(Warp &warp, const Instruction &, Lanes lanes) {
  warp.block->unfenced_mbarriers.fence(warp.first_thread(), lanes);
  if (RaceCheck *races = races_of(warp)) races->fence(warp, lanes);
  return Step::kNext;
}

/// No operation: execution is sequentially consistent.
Step nothing(Warp &, const Instruction &, Lanes) {
  return Step::kNext;
}

/// fence.proxy.alias, .async{.SPACE} and .async::generic.{acquire|release}.RESTRICTION.cluster
void check_kind(const Decoder &d) {
  const std::string_view kind = d.part(2);
  if (kind == "alias") return need_parts(d, {"proxy", "alias"});
  if (kind == "async") {
    allow_parts(d, {"proxy", "async", "global", "shared::cta", "shared::cluster"});
    if (d.statement().opcode.size() > 4) d.unknown("spaces of a fence");
    return;
  }
  if (kind != "async::generic") d.unknown("kind of a proxy fence");
  if (d.has("acquire"))
    need_parts(d, {"proxy", kind, "acquire", "sync_restrict::shared::cluster", "cluster"});
  else
    need_parts(d, {"proxy", kind, "release", "sync_restrict::shared::cta", "cluster"});
}

}  // namespace

bool decode_proxy_fence(Decoder &d, Instruction &i) {
  if (d.opcode() != "fence") return false;
  if (d.part(1) == "mbarrier_init") {
    need_parts(d, {"mbarrier_init", "release", "cluster"});
    need_operands(d, 0, 0);
    i.execute = fence_initialisation;
    return true;
  }
  // Fences of the tensormap proxy are in tensor_map_edit.cpp.
  if (d.part(1) != "proxy") return false;
  check_kind(d);
  need_operands(d, 0, 0);
  const bool has_space = d.statement().opcode.size() > 3 || d.part(2) != "async";
  i.make<AsyncFence>() = {!d.has("global"), !has_space || d.has("global")};
  i.execute = d.has("alias") ? nothing : fence_async;
  return true;
}

}  // namespace softgpu
