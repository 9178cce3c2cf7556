#include "host/wgmma.h"

#include <algorithm>
#include <cstring>

#include "host/async_proxy.h"
#include "host/shared_memory.h"

namespace mp::host::engine {

namespace {

// ---------------------------------------------------------------- fragments

/// Calls move(register, tile element) for each register pair of a thread of the warpgroup.
template <class Move>
void for_each_pair(int thread, int n, const Move &move) {
  const int lane = thread % kWarpSize;
  const int row = thread / kWarpSize * 16 + lane / 4, col = lane % 4 * 2;
  for (int j = 0; j < n / 8; j++)
    for (int h = 0; h < 2; h++) move(4 * j + 2 * h, (row + 8 * h) * n + 8 * j + col);
}

void hand_over(int thread, float *d, AccumulatorTile &tile, int n) {
  for_each_pair(thread, n,
                [&](int i, int e) { std::memcpy(tile.d + e, d + i, 2 * sizeof(float)); });
}

void take_back(int thread, float *d, const AccumulatorTile &tile, int n) {
  for_each_pair(thread, n,
                [&](int i, int e) { std::memcpy(d + i, tile.d + e, 2 * sizeof(float)); });
}

bool is_untouched(const float *d, int n) {
  const unsigned char *const bytes = reinterpret_cast<const unsigned char *>(d);
  return bytes[0] == kNanPattern &&
         std::memcmp(bytes, bytes + 1, static_cast<size_t>(n) / 2 * sizeof(float) - 1) == 0;
}

AccumulatorTile *free_tile(const Block &block) {
  std::vector<std::unique_ptr<AccumulatorTile>> &tiles = block.warpgroups->tiles;
  for (const auto &tile : tiles)
    if (tile->num_bound == 0) return tile.get();
  tiles.push_back(std::make_unique<AccumulatorTile>());
  return tiles.back().get();
}

// ---------------------------------------------------------------- operands

bool holds(uint32_t begin, uint32_t end) {
  const SharedMemory &smem = *current->block->smem;
  return smem.holds(smem.begin() + begin, end - begin);
}

/// Reports a violation if the descriptor does not match a canonical layout.
void check_layout(char name, uint64_t descriptor, const WgmmaLayout &layout, int num_mn,
                  source_location where) {
  constexpr uint64_t kFields = 0xC000'3FFF'3FFF'3FFF;
  if ((descriptor >> 49 & 7) != 0)
    violation(where, "passes a descriptor of %c whose base offset is not 0 to wgmma", name);
  if ((descriptor & ~kFields) != 0)
    violation(where, "passes a descriptor of %c to wgmma that sets bits outside its fields", name);
  if (layout.swizzle_mask == 0) return;
  const uint32_t atom_bytes = layout.atom_bytes(), past_atom = layout.start % atom_bytes;
  const uint32_t row_read = layout.is_mn_major ? layout.row_bytes : kWgmmaK * 2;
  if (past_atom + row_read > layout.row_bytes)
    violation(where, "starts %c at smem address 0x%x, %u bytes past a multiple of %u, in wgmma",
              name, layout.start, past_atom, atom_bytes);
  const auto check_distance = [&](uint32_t bytes, const char *along) {
    if (bytes % atom_bytes != 0)
      violation(where,
                "places the atoms of %c %u bytes apart along %s, not a multiple of %u, in wgmma",
                name, bytes, along, atom_bytes);
  };
  const bool has_one_atom = num_mn / 8 <= static_cast<int>(layout.matrices_per_row);
  if (!has_one_atom) check_distance(layout.mn_bytes, name == 'A' ? "m" : "n");
  if (layout.is_mn_major) check_distance(layout.k_bytes, "k");
}

/// Reports a violation unless the operand is entirely in shared variables.
void check_place(char name, const WgmmaLayout &layout, int num_mn, source_location where) {
  // Fast path: most operands are in one variable.
  const uint32_t atom_bytes = layout.atom_bytes();
  const int i = num_mn / 8 - 1;
  const uint32_t last = std::max({layout.matrix(i, 1), layout.matrix(0, 1), layout.matrix(i, 0)});
  if (holds(layout.start / atom_bytes * atom_bytes, last / atom_bytes * atom_bytes + atom_bytes))
    return;
  layout.for_each_unit(num_mn, [&](uint32_t unit) {
    if (!holds(unit, unit + kWgmmaUnitBytes))
      violation(where, "reads %c at smem address 0x%x, outside all shared variables, in wgmma",
                name, unit);
  });
}

/// Checks for missing fences: wgmma reads through the async proxy, like TMA.
void check_fenced(char name, const WgmmaLayout &layout, int num_mn, source_location where) {
  const GenericWrites &writes = current->block->async_proxy->writes;
  layout.for_each_unit(num_mn, [&](uint32_t unit) {
    const int thread = writes.find(unit, kWgmmaUnitBytes).thread;
    if (thread >= 0)
      violation(where, "reads %c in wgmma, which thread %d wrote without async_proxy_fence", name,
                thread);
  });
}

void check_operand(char name, uint64_t descriptor, const WgmmaLayout &layout, int num_mn,
                   source_location where) {
  check_layout(name, descriptor, layout, num_mn, where);
  check_place(name, layout, num_mn, where);
  if (mode().strict) check_fenced(name, layout, num_mn, where);
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

/// Completes the issue of an operation; called for the last of the 128 threads.
void complete(const Block &block, Warpgroup &group, int64_t number) {
  wake_all(block, group);
  if (mode().strict && !defer_copy()) perform_until(group, number + 1);
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
    block_in_warpgroup(thread, group, waits_in, where, {&group, describe_operation});
  }
}

// ---------------------------------------------------------------- issue

/// Begins an operation.  The first thread that issues it determines its operands.
void begin(const Thread &thread, Warpgroup &group, const WgmmaOperands &operands,
           const WgmmaBinding *binding, source_location where) {
  check_warpgroup_complete(thread, "wgmma", where);
  check_operand('A', operands.a_desc, operands.a(), kWgmmaM, where);
  check_operand('B', operands.b_desc, operands.b(), operands.n, where);
  WgmmaOperation &operation = group.operation(group.begun++);
  operation.operands = operands;
  operation.tile = binding != nullptr ? binding->tile : free_tile(*thread.block);
  operation.group = group.threads[index_in_warpgroup(thread)].group;
  operation.arrived = 0;
  operation.binds = binding == nullptr;
  operation.is_performed = false;
  operation.at = where;
}

void check_same_operands(const WgmmaOperation &operation, const WgmmaOperands &operands,
                         const WgmmaBinding *binding, int64_t group, source_location where) {
  if (!same_line(operation.at, where))
    violation(where, "calls a different wgmma than its warpgroup, which is at %s",
              file_and_line(operation.at).text);
  if (operation.operands != operands)
    violation(where, "disagrees with its warpgroup on an operand of wgmma");
  if (operation.group != group)
    violation(where, "disagrees with its warpgroup on the commits before wgmma");
  if (operation.binds != (binding == nullptr) || (binding && binding->tile != operation.tile))
    violation(where, "disagrees with its warpgroup on which accumulators of wgmma are in flight");
}

/// Moves d to the tile of the warpgroup.
WgmmaBinding &bind_registers(int thread, WgmmaThread &me, float *d, const WgmmaOperation &operation,
                             source_location where) {
  if (!me.is_fenced)
    violation(where, "lacks a wgmma_fence between other uses of the accumulators and wgmma");
  const int n = operation.operands.n;
  if (operation.operands.accumulate) hand_over(thread, d, *operation.tile, n);
  std::memset(d, kNanPattern, static_cast<size_t>(n) / 2 * sizeof *d);
  operation.tile->num_bound++;
  return me.bound.emplace_back(WgmmaBinding{d, operation.tile, n, 0, where});
}

WgmmaBinding *find(WgmmaThread &me, const float *d) {
  for (WgmmaBinding &binding : me.bound)
    if (binding.d == d) return &binding;
  return nullptr;
}

void unbind_registers(int thread, WgmmaBinding &binding, source_location where) {
  if (!is_untouched(binding.d, binding.n))
    violation(where, "wrote to the accumulators of the wgmma at %s while it was in flight",
              file_and_line(binding.at).text);
  take_back(thread, binding.d, *binding.tile, binding.n);
  binding.tile->num_bound--;
}

}  // namespace

// ---------------------------------------------------------------- interface

void wgmma_issue(Thread &thread, const WgmmaOperands &operands, float *d, source_location where) {
  Warpgroup &group = warpgroup_of(thread, "wgmma", where);
  const int index = index_in_warpgroup(thread);
  WgmmaThread &me = group.threads[index];
  if (me.issued - group.performed == Warpgroup::kSlots)
    settle(thread, group, group.performed + 1, "wgmma", where);
  WgmmaBinding *binding = find(me, d);
  if (binding != nullptr && binding->n != operands.n)
    violation(where, "uses accumulators of a different shape than the wgmma at %s",
              file_and_line(binding->at).text);
  if (me.issued == group.begun)
    begin(thread, group, operands, binding, where);
  else
    check_same_operands(group.operation(me.issued), operands, binding, me.group, where);
  WgmmaOperation &operation = group.operation(me.issued++);
  if (binding == nullptr) binding = &bind_registers(index, me, d, operation, where);
  binding->group = me.group;
  binding->at = where;
  if (++operation.arrived == kWarpgroupThreads) complete(*thread.block, group, me.issued - 1);
}

void wgmma_fence(const Thread &thread, source_location where) {
  warpgroup_of(thread, "wgmma_fence", where).threads[index_in_warpgroup(thread)].is_fenced = true;
}

void wgmma_commit(const Thread &thread, source_location where) {
  warpgroup_of(thread, "wgmma_commit", where).threads[index_in_warpgroup(thread)].group++;
}

void wgmma_wait(Thread &thread, int pending_groups, source_location where) {
  Warpgroup &group = warpgroup_of(thread, "wgmma_wait", where);
  const int index = index_in_warpgroup(thread);
  WgmmaThread &me = group.threads[index];
  const int64_t retired = me.group - pending_groups;  // groups below this number
  int64_t end = group.performed;
  while (end < me.issued && group.operation(end).group < retired) end++;
  settle(thread, group, end, "wgmma_wait", where);
  const auto is_retired = [&](WgmmaBinding &binding) {
    if (binding.group >= retired) return false;
    unbind_registers(index, binding, where);
    return true;
  };
  if (std::erase_if(me.bound, is_retired) > 0) me.is_fenced = false;
}

}  // namespace mp::host::engine
