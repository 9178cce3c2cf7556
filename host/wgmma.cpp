#include "host/wgmma.h"

#include <algorithm>
#include <cstring>

#include "host/shared_memory.h"

namespace mp::host::engine {

namespace {

// ---------------------------------------------------------------- warpgroups

/// Returns the warpgroup of the running thread.
Warpgroup &warpgroup_of(const Thread &thread, source_location where) {
  std::vector<Warpgroup> &all = thread.block->warpgroups->all;
  if (all.empty()) all.resize(static_cast<size_t>(thread.block->num_threads / kWarpgroupThreads));
  const size_t index = static_cast<size_t>(thread.index / kWarpgroupThreads);
  if (index >= all.size()) violation(where, "calls wgmma outside a full warpgroup of 128 threads");
  return all[index];
}

int index_in_warpgroup(const Thread &thread) {
  return thread.index % kWarpgroupThreads;
}

// ---------------------------------------------------------------- fragments

/// Calls move(register, tile element) for each register pair of a thread of the warpgroup.
template <class Move>
void for_each_pair(int thread, int n, const Move &move) {
  const int lane = thread % kWarpSize;
  const int row = thread / kWarpSize * 16 + lane / 4, col = lane % 4 * 2;
  for (int j = 0; j < n / 8; j++)
    for (int h = 0; h < 2; h++) move(4 * j + 2 * h, (row + 8 * h) * n + 8 * j + col);
}

AccumulatorTile *free_tile(const Block &block) {
  std::vector<std::unique_ptr<AccumulatorTile>> &tiles = block.warpgroups->tiles;
  for (const auto &tile : tiles)
    if (tile->num_bound == 0) return tile.get();
  tiles.push_back(std::make_unique<AccumulatorTile>());
  return tiles.back().get();
}

// ---------------------------------------------------------------- operands

/// Reports a violation unless the operand is entirely in one shared variable.
void check_place(char name, const WgmmaLayout &layout, int num_mn, source_location where) {
  constexpr uint32_t kAtomBytes = WgmmaLayout::kAtomBytes;
  const int i = num_mn / 8 - 1;
  const uint32_t last = std::max({layout.matrix(i, 1), layout.matrix(0, 1), layout.matrix(i, 0)});
  const uint32_t begin = layout.start / kAtomBytes * kAtomBytes;
  const uint32_t end = last / kAtomBytes * kAtomBytes + kAtomBytes;
  const SharedMemory &smem = *current->block->smem;
  if (!smem.holds(smem.begin() + begin, end - begin))
    violation(where,
              "reads %c at smem addresses 0x%x to 0x%x, not in one shared variable, in wgmma", name,
              begin, end - 1);
}

// ---------------------------------------------------------------- execution

/// Executes operation `first` and the following operations below `end` that accumulate into the
/// same tile, at most kWgmmaMaxTerms in all.
void perform_batch(Warpgroup &group, int64_t first, int64_t end) {
  AccumulatorTile &tile = *group.operation(first).tile;
  const WgmmaOperands *terms[kWgmmaMaxTerms];
  int num_terms = 0;
  for (int64_t i = first; i < end && num_terms < kWgmmaMaxTerms; i++) {
    WgmmaOperation &operation = group.operation(i);
    if (operation.tile != &tile) continue;
    if (i > first && !operation.operands.accumulate) break;
    operation.is_performed = true;
    terms[num_terms++] = &operation.operands;
  }
  const Block &block = *current->block;
  wgmma_multiply(tile.d, terms, num_terms, block.smem->begin(), block.warpgroups->scratch);
}

void perform_until(Warpgroup &group, int64_t end) {
  for (int64_t i = group.performed; i < end; i++)
    if (!group.operation(i).is_performed) perform_batch(group, i, end);
  group.performed = end;
}

/// Describes the first operation that some threads have not issued, for deadlock reports.
Text describe_operation(const void *object) {
  const Warpgroup &group = *static_cast<const Warpgroup *>(object);
  for (int64_t i = group.performed; i < group.begun; i++) {
    const WgmmaOperation &operation = group.operations[i % Warpgroup::kSlots];
    if (operation.arrived < kWarpgroupThreads)
      return words("for the wgmma at %s, which %d of 128 threads have issued",
                   file_and_line(operation.at).text, operation.arrived);
  }
  return {};
}

/// Waits until all operations below `end` are executed.  The running thread must have issued them.
void settle(Thread &thread, Warpgroup &group, int64_t end, const char *waits_in,
            source_location where) {
  while (group.performed < end) {
    if (group.operation(end - 1).arrived == kWarpgroupThreads) return perform_until(group, end);
    group.waiting[index_in_warpgroup(thread) / kWarpSize] |= 1u << thread.lane;
    block_until_woken(thread, waits_in, where, {&group, describe_operation});
  }
}

// ---------------------------------------------------------------- issue

/// Begins an operation.  The first thread that issues it determines its operands.
void begin(const Thread &thread, Warpgroup &group, const WgmmaOperands &operands,
           const WgmmaBinding *binding, source_location where) {
  check_place('A', operands.a(), kWgmmaM, where);
  check_place('B', operands.b(), operands.n, where);
  WgmmaOperation &operation = group.operation(group.begun++);
  operation.operands = operands;
  operation.tile = binding != nullptr ? binding->tile : free_tile(*thread.block);
  operation.group = group.threads[index_in_warpgroup(thread)].group;
  operation.arrived = 0;
  operation.is_performed = false;
  operation.at = where;
}

/// Moves d to the tile of the warpgroup.
WgmmaBinding &bind_registers(int thread, WgmmaThread &me, float *d,
                             const WgmmaOperation &operation) {
  const int n = operation.operands.n;
  if (operation.operands.accumulate)
    for_each_pair(thread, n, [&](int i, int e) {
      std::memcpy(operation.tile->d + e, d + i, 2 * sizeof(float));
    });
  operation.tile->num_bound++;
  return me.bound.emplace_back(WgmmaBinding{d, operation.tile, n, 0});
}

WgmmaBinding *find(WgmmaThread &me, const float *d) {
  for (WgmmaBinding &binding : me.bound)
    if (binding.d == d) return &binding;
  return nullptr;
}

void unbind_registers(int thread, const WgmmaBinding &binding) {
  for_each_pair(thread, binding.n, [&](int i, int e) {
    std::memcpy(binding.d + i, binding.tile->d + e, 2 * sizeof(float));
  });
  binding.tile->num_bound--;
}

}  // namespace

// ---------------------------------------------------------------- interface

void wgmma_issue(Thread &thread, const WgmmaOperands &operands, float *d, source_location where) {
  Warpgroup &group = warpgroup_of(thread, where);
  const int index = index_in_warpgroup(thread);
  WgmmaThread &me = group.threads[index];
  if (me.issued - group.performed == Warpgroup::kSlots)
    settle(thread, group, group.performed + 1, "wgmma", where);
  WgmmaBinding *binding = find(me, d);
  if (me.issued == group.begun) begin(thread, group, operands, binding, where);
  WgmmaOperation &operation = group.operation(me.issued++);
  if (binding == nullptr) binding = &bind_registers(index, me, d, operation);
  binding->group = me.group;
  if (++operation.arrived < kWarpgroupThreads) return;
  Warp *const first_warp = &thread.block->warps[(thread.index - index) / kWarpSize];
  wake_waiting(first_warp, kWarpsPerWarpgroup, group.waiting);
}

void wgmma_commit(const Thread &thread) {
  warpgroup_of(thread, source_location::current()).threads[index_in_warpgroup(thread)].group++;
}

void wgmma_wait(Thread &thread, int pending_groups, source_location where) {
  Warpgroup &group = warpgroup_of(thread, where);
  const int index = index_in_warpgroup(thread);
  WgmmaThread &me = group.threads[index];
  const int64_t retired = me.group - pending_groups;  // groups below this number
  int64_t end = group.performed;
  while (end < me.issued && group.operation(end).group < retired) end++;
  settle(thread, group, end, "wgmma_wait", where);
  std::erase_if(me.bound, [&](const WgmmaBinding &binding) {
    if (binding.group >= retired) return false;
    unbind_registers(index, binding);
    return true;
  });
}

}  // namespace mp::host::engine
