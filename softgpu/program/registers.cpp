#include "softgpu/program/registers.h"

#include <algorithm>
#include <array>

namespace softgpu {
namespace {

/// Slots of one width, numbered from 0.
struct RowPool {
  uint32_t num_rows = 0;
  std::vector<uint32_t> free;  ///< used in LIFO order: the last freed slot is in the cache

  uint32_t take() {
    if (free.empty()) return num_rows++;
    const uint32_t row = free.back();
    free.pop_back();
    return row;
  }
};

constexpr std::array<uint8_t, 3> kWidths = {8, 4, 1};
size_t pool_of(uint8_t width) {
  return width == 8 ? 0 : width == 4 ? 1 : 2;
}

std::vector<uint32_t> used_registers(const std::vector<LiveRange> &ranges) {
  std::vector<uint32_t> used;
  for (uint32_t reg = 0; reg < ranges.size(); reg++)
    if (!ranges[reg].is_empty()) used.push_back(reg);
  return used;
}

}  // namespace

/// Linear scan in code order.  The interference graph is an interval graph, so the number of slots
/// equals the maximum number of simultaneous live ranges.
RowAssignment assign_rows(const std::vector<LiveRange> &ranges,
                          const std::vector<ptx::Register> &registers, uint32_t begin) {
  std::vector<uint32_t> by_first = used_registers(ranges), by_last = by_first;
  std::ranges::stable_sort(by_first, {}, [&](uint32_t reg) { return ranges[reg].first; });
  std::ranges::stable_sort(by_last, {}, [&](uint32_t reg) { return ranges[reg].last; });

  std::array<RowPool, kWidths.size()> pools;
  RowAssignment assignment;
  assignment.rows.resize(registers.size());
  auto ended = by_last.begin();
  for (uint32_t reg : by_first) {
    for (; ranges[*ended].last < ranges[reg].first; ended++)
      pools[pool_of(registers[*ended].width)].free.push_back(assignment.rows[*ended]);
    assignment.rows[reg] = pools[pool_of(registers[reg].width)].take();
  }

  std::array<uint32_t, kWidths.size()> first_row;
  assignment.end = begin;
  for (size_t p = 0; p < kWidths.size(); p++) {
    first_row[p] = assignment.end;
    assignment.end += pools[p].num_rows * row_bytes(kWidths[p]);
  }
  for (uint32_t reg : by_first) {
    const uint8_t width = registers[reg].width;
    assignment.rows[reg] = first_row[pool_of(width)] + assignment.rows[reg] * row_bytes(width);
  }
  return assignment;
}

}  // namespace softgpu
