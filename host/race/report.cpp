// Reports of the race detector: threads or operations, location in shared memory, and code.
#include <dlfcn.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "host/race/detector.h"
#include "host/shared_memory.h"

namespace mp::host::engine::race {

namespace {

const char *verb(Access access) {
  return access == Access::read ? "read" : "write";
}

/// Returns a text like "libmpcore.so+0x1234", for addr2line.
std::string code_address(const void *code) {
  Dl_info info;
  if (dladdr(code, &info) == 0) return "an unknown location";
  const char *const slash = std::strrchr(info.dli_fname, '/');
  char offset[24];
  // A return address is after the call; subtracting 1 gives the line of the call.
  std::snprintf(offset, sizeof offset, "+0x%zx",
                static_cast<size_t>(static_cast<const char *>(code) - 1 -
                                    static_cast<const char *>(info.dli_fbase)));
  return (slash != nullptr ? slash + 1 : info.dli_fname) + std::string(offset);
}

/// Text without heap memory: violation() abandons its stack.
struct Report {
  char text[560];
  explicit Report(const std::string &from) { std::snprintf(text, sizeof text, "%s", from.c_str()); }
};

}  // namespace

std::string Detector::thread_name(uint32_t thread) const {
  const Warp &warp = cluster_->warps[thread / kWarpSize];
  std::string name = "thread " + std::to_string(warp.lanes[thread % kWarpSize].index);
  if (cluster_->size > 1) name += " of block " + std::to_string(warp.block->index);
  return name;
}

std::string Detector::mbarrier_name(uint32_t id) const {
  for (int b = 0; b < cluster_->size; b++)
    for (const Mbarrier &bar : cluster_->blocks[b].barriers->mbarriers) {
      if (bar.id != static_cast<int>(id)) continue;
      const std::string name = bar.block->smem->locate(bar.block->smem->at(bar.offset)).text;
      if (bar.block == current->block) return name;
      return name + " of block " + std::to_string(bar.block->index);
    }
  return "";
}

/// Names the thread or operation of an epoch; prefers lanes other than the running thread.
std::string Detector::actor(const Epoch &epoch) const {
  switch (epoch.agent) {
    case Agent::copies:
      return "cp.async of " + thread_name(epoch.index);
    case Agent::stores:
      return "a TMA store of " + thread_name(epoch.index);
    case Agent::multiplies:
      return "wgmma of the warpgroup of " + thread_name(epoch.index * kWarpSize);
    case Agent::loads:
      return "the TMA load on mbarrier " + mbarrier_name(epoch.index);
    case Agent::warp:
      break;
  }
  const bool is_own_warp = epoch.index == static_cast<uint32_t>(current->warp->slot);
  const uint32_t others = is_own_warp ? epoch.lanes & ~(1u << current->lane) : epoch.lanes;
  const int lane = std::countr_zero(others != 0 ? others : epoch.lanes);
  return thread_name(epoch.index * kWarpSize + static_cast<uint32_t>(lane));
}

std::string Detector::place(const Arena &arena, const Granule &granule) const {
  const Block &block = cluster_->blocks[&arena - arenas_.data()];
  const size_t index = static_cast<size_t>(&granule - arena.granules.data());
  const std::string place = block.smem->locate(arena.begin + index * kGranuleBytes).text;
  if (&block == current->block) return place;
  return place + " of block " + std::to_string(block.index);
}

void Detector::report_race(const Arena &arena, const Granule &granule, const Operation &operation,
                           const Epoch &before, Access access_before) const {
  const Report report("has a race in shared " + place(arena, granule) + ": " +
                      verb(operation.access) + " by " + actor(operation.epoch) + " (" +
                      code_address(operation.epoch.code) + ") races with " + verb(access_before) +
                      " by " + actor(before) + " (" + code_address(before.code) + ")");
  violation({}, "%s", report.text);
}

void Detector::report_unfenced(const Arena &arena, const Granule &granule,
                               const Operation &operation) const {
  const Report report("lacks an async_proxy_fence on shared " + place(arena, granule) +
                      ": read by " + actor(operation.epoch) + " (" +
                      code_address(operation.epoch.code) + ") may not see the write by " +
                      actor(granule.write) + " (" + code_address(granule.write.code) + ")");
  violation({}, "%s", report.text);
}

void Detector::early_access(const void *address, Access access, const void *code) {
  // The search and the report use strings and maps, whose code may be instrumented.
  current->may_use_gmem = true;
  if (is_gmem(address)) {
    const Report report(std::string(verb(access)) + "s gmem (" + code_address(code) +
                        ") before wait_for_previous_kernel");
    violation({}, "%s", report.text);
  }
  current->may_use_gmem = false;
}

void Detector::report_initialization(const Mbarrier &bar, const Epoch &initialized) const {
  const Report report("has a race in mbarrier " + mbarrier_name(static_cast<uint32_t>(bar.id)) +
                      ": its use races with mbarrier_init by " + actor(initialized));
  violation({}, "%s", report.text);
}

}  // namespace mp::host::engine::race
