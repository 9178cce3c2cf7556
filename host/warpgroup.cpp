// Warpgroups: participation of their threads, and setmaxnreg.
#include "host/wgmma.h"

#include <algorithm>
#include <utility>

namespace mp::host::engine {

namespace {

constexpr int kRegistersPerBlock = 64 * 1024;
constexpr int kMaxRegisters = 256;  ///< per thread

/// Returns the registers per thread at launch, for one block per SM.
int registers_at_launch(int num_threads) {
  return std::min(kRegistersPerBlock / num_threads / 8 * 8, kMaxRegisters);
}

const char *name_of(RegisterChange change) {
  return change == RegisterChange::claim ? "registers_claim" : "registers_release";
}

void finish_change(const Block &block, Warpgroup &group) {
  RegisterState &registers = group.registers;
  registers.per_thread = registers.wanted;
  registers.arrived = 0;
  std::fill(std::begin(registers.has_arrived), std::end(registers.has_arrived), false);
  registers.changes_done++;
  wake_all(block, group);
}

/// Executes register changes that full warpgroups have requested, as far as registers are free.
void do_changes(const Block &block) {
  Warpgroups &warpgroups = *block.warpgroups;
  bool has_done_one;
  do {
    has_done_one = false;
    for (Warpgroup &group : warpgroups.all) {
      const RegisterState &registers = group.registers;
      const int claimed = (registers.wanted - registers.per_thread) * kWarpgroupThreads;
      if (registers.arrived < kWarpgroupThreads || claimed > warpgroups.free_registers) continue;
      warpgroups.free_registers -= claimed;
      finish_change(block, group);
      has_done_one = true;
    }
  } while (has_done_one);
}

void begin_change(const Thread &thread, RegisterState &registers, RegisterChange change, int wanted,
                  source_location where) {
  check_warpgroup_complete(thread, name_of(change), where);
  const bool is_claim = change == RegisterChange::claim;
  if (is_claim ? wanted < registers.per_thread : wanted > registers.per_thread)
    violation(where, "has %d registers and requests %d in %s", registers.per_thread, wanted,
              name_of(change));
  registers.change = change;
  registers.wanted = wanted;
  registers.at = where;
}

Text describe_claim(const void *object) {
  const RegisterState &registers = static_cast<const Warpgroup *>(object)->registers;
  if (registers.arrived < kWarpgroupThreads)
    return words("where %d of 128 threads have arrived", registers.arrived);
  return words("to go from %d to %d, more than the block has released", registers.per_thread,
               registers.wanted);
}

}  // namespace

void Warpgroups::begin_block() {
  all.clear();
  for (const auto &tile : tiles) tile->num_bound = 0;
  free_registers = 0;
}

Warpgroup &begin_warpgroups(const Thread &thread, const char *primitive, source_location where) {
  const Block &block = *thread.block;
  std::vector<Warpgroup> &all = block.warpgroups->all;
  all.resize(static_cast<size_t>(block.num_threads / kWarpgroupThreads));
  for (Warpgroup &group : all) group.registers.per_thread = registers_at_launch(block.num_threads);
  const size_t index = static_cast<size_t>(thread.index / kWarpgroupThreads);
  if (index >= all.size())
    violation(where, "calls %s outside a full warpgroup of 128 threads", primitive);
  return all[index];
}

void check_warpgroup_complete(const Thread &thread, const char *primitive, source_location where) {
  const int warp = thread.warp->index / kWarpsPerWarpgroup * kWarpsPerWarpgroup;
  for (int w = 0; w < kWarpsPerWarpgroup; w++)
    if (thread.block->warps[warp + w].alive != ~0u)
      violation(where, "calls %s after threads of its warpgroup have returned", primitive);
}

void check_warpgroup_left(const Thread &thread) {
  std::vector<Warpgroup> &all = thread.block->warpgroups->all;
  const size_t index = static_cast<size_t>(thread.index / kWarpgroupThreads);
  if (index >= all.size()) return;
  Warpgroup &group = all[index];
  const WgmmaThread &left = group.threads[index_in_warpgroup(thread)];
  if (left.issued < group.begun)
    violation(group.operation(left.issued).at,
              "returned while its warpgroup waits for it in wgmma");
  if (!left.bound.empty())
    violation(left.bound.front().at, "returned without a wgmma_wait for the wgmma in flight");
  const RegisterState &registers = group.registers;
  if (registers.arrived > 0 && !registers.has_arrived[index_in_warpgroup(thread)])
    violation(registers.at, "returned while its warpgroup waits for it in %s",
              name_of(registers.change));
}

void block_in_warpgroup(Thread &me, Warpgroup &group, const char *waits_in, source_location where,
                        const WaitsFor &waits_for) {
  group.waiting[index_in_warpgroup(me) / kWarpSize] |= 1u << me.lane;
  block_until_woken(me, waits_in, where, waits_for);
}

void wake_all(const Block &block, Warpgroup &group) {
  const auto index = &group - block.warpgroups->all.data();
  Warp *const warps = block.warps + index * kWarpsPerWarpgroup;
  for (int w = 0; w < kWarpsPerWarpgroup; w++)
    if (group.waiting[w] != 0) wake(warps[w], std::exchange(group.waiting[w], 0u));
}

void change_registers(Thread &me, RegisterChange change, int wanted, source_location where) {
  Warpgroup &group = warpgroup_of(me, name_of(change), where);
  RegisterState &registers = group.registers;
  bool &has_arrived = registers.has_arrived[index_in_warpgroup(me)];
  if (registers.arrived == 0)
    begin_change(me, registers, change, wanted, where);
  else if (has_arrived || !same_line(registers.at, where))
    violation(where, "calls %s, but its warpgroup is in %s at %s", name_of(change),
              name_of(registers.change), file_and_line(registers.at).text);
  has_arrived = true;
  const int64_t before = registers.changes_done;
  if (++registers.arrived == kWarpgroupThreads) do_changes(*me.block);
  while (change == RegisterChange::claim && registers.changes_done == before)
    block_in_warpgroup(me, group, name_of(change), where, {&group, describe_claim});
}

}  // namespace mp::host::engine
