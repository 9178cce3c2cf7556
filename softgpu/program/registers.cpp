#include "softgpu/program/registers.h"

#include <algorithm>
#include <array>
#include <bit>

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

// ---- live ranges

namespace {

/// Statements [begin, end): only the first is a branch target, only the last branches.
struct BasicBlock {
  uint32_t begin, end;
};

/// Matrix of bits.
class BitMatrix {
 public:
  BitMatrix(size_t rows, size_t columns) : words_((columns + 63) / 64), bits_(rows * words_) {}
  uint64_t *row(size_t i) { return bits_.data() + i * words_; }
  void set(size_t i, size_t column) { row(i)[column / 64] |= uint64_t{1} << column % 64; }
  size_t words() const { return words_; }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

template <class F>
void for_each_bit(uint64_t word, size_t base, F &&f) {
  for (; word != 0; word &= word - 1) f(base + static_cast<size_t>(std::countr_zero(word)));
}

class Liveness {
 public:
  Liveness(const Flow &flow, size_t num_registers)
      : flow_(flow), ranges_(num_registers), held_(held_registers()) {}

  std::vector<LiveRange> find() {
    include_accesses();
    make_blocks();
    find_exposed();
    find_live_in();
    include_live();
    return std::move(ranges_);
  }

 private:
  std::vector<uint32_t> held_registers() const;
  void include_accesses();
  void make_blocks();
  void find_exposed();
  void find_live_in();
  void include_live();

  template <class F>
  void for_each_read(uint32_t statement, F &&f) const;
  template <class F>
  void for_each_kill(uint32_t statement, F &&f) const;
  template <class F>
  void for_each_successor(size_t block, F &&f) const;
  void live_out(size_t block, std::vector<uint64_t> &set);

  void include(uint32_t reg, uint32_t statement) {
    ranges_[reg].first = std::min(ranges_[reg].first, statement);
    ranges_[reg].last = std::max(ranges_[reg].last, statement);
  }
  uint32_t begin_of_accesses(uint32_t s) const {
    return s == 0 ? 0 : flow_.statements[s - 1].end_of_accesses;
  }
  uint32_t begin_of_targets(uint32_t s) const {
    return s == 0 ? 0 : flow_.statements[s - 1].end_of_targets;
  }

  static constexpr uint32_t kNone = ~0u;
  const Flow &flow_;
  std::vector<LiveRange> ranges_;
  std::vector<uint32_t> held_;
  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> block_at_;  ///< index: first statement of the block
  // Exposed registers: those that are read outside the block that wrote them.  Only these are
  // tracked in sets, because most registers are not exposed.
  std::vector<uint32_t> exposed_;  ///< exposed registers
  std::vector<uint32_t> number_;   ///< index in exposed_ of each register
  std::vector<std::pair<uint32_t, uint32_t>>
      block_reads_;  ///< registers that a block reads before it writes them
  BitMatrix live_in_{0, 0};
};

/// Returns the registers that may belong to a pending wgmma: its operands, and all registers
/// connected to them by copies, because a copy of a pending accumulator takes it over
/// (move_accumulator).  Every wait counts as a read of all of them, so that each keeps its slot
/// from a wgmma to any wait for it.
std::vector<uint32_t> Liveness::held_registers() const {
  std::vector<bool> is_held(ranges_.size());
  for (const Access &access : flow_.accesses)
    if (access.kind == AccessKind::kHold) is_held[access.reg] = true;
  for (bool changes = true; changes;) {
    changes = false;
    for (const auto &[to, from] : flow_.renames)
      if (is_held[to] != is_held[from]) is_held[to] = is_held[from] = changes = true;
  }
  std::vector<uint32_t> held;
  for (uint32_t reg = 0; reg < is_held.size(); reg++)
    if (is_held[reg]) held.push_back(reg);
  return held;
}

template <class F>
void Liveness::for_each_read(uint32_t statement, F &&f) const {
  for (uint32_t a = begin_of_accesses(statement); a < flow_.statements[statement].end_of_accesses;
       a++)
    if (flow_.accesses[a].kind != AccessKind::kWrite) f(flow_.accesses[a].reg);
  if (flow_.statements[statement].is_wait)
    for (uint32_t reg : held_) f(reg);
}

/// Calls f for registers whose previous value is dead after the statement.
template <class F>
void Liveness::for_each_kill(uint32_t statement, F &&f) const {
  if (flow_.statements[statement].is_guarded) return;
  for (uint32_t a = begin_of_accesses(statement); a < flow_.statements[statement].end_of_accesses;
       a++)
    if (flow_.accesses[a].kind == AccessKind::kWrite) f(flow_.accesses[a].reg);
}

void Liveness::include_accesses() {
  for (uint32_t s = 0; s < flow_.statements.size(); s++) {
    for (uint32_t a = begin_of_accesses(s); a < flow_.statements[s].end_of_accesses; a++)
      include(flow_.accesses[a].reg, s);
    for_each_read(s, [&](uint32_t reg) { include(reg, s); });
  }
}

void Liveness::make_blocks() {
  const auto num_statements = static_cast<uint32_t>(flow_.statements.size());
  std::vector<bool> begins(num_statements + 1);
  begins[0] = true;
  for (uint32_t target : flow_.targets) begins[target] = true;
  for (uint32_t s = 0; s < num_statements; s++)
    if (flow_.statements[s].is_end || begin_of_targets(s) != flow_.statements[s].end_of_targets)
      begins[s + 1] = true;
  block_at_.assign(num_statements, kNone);
  for (uint32_t s = 0; s < num_statements; s++) {
    if (begins[s]) {
      block_at_[s] = static_cast<uint32_t>(blocks_.size());
      blocks_.push_back({s, s});
    }
    blocks_.back().end = s + 1;
  }
}

template <class F>
void Liveness::for_each_successor(size_t block, F &&f) const {
  const uint32_t last = blocks_[block].end - 1;
  const FlowStatement &statement = flow_.statements[last];
  for (uint32_t t = begin_of_targets(last); t < statement.end_of_targets; t++)
    f(block_at_[flow_.targets[t]]);
  if (!statement.is_end && blocks_[block].end < flow_.statements.size()) f(block + 1);
}

void Liveness::find_exposed() {
  std::vector<uint32_t> read_in(ranges_.size(), kNone), killed_in(ranges_.size(), kNone);
  number_.assign(ranges_.size(), kNone);
  for (uint32_t b = 0; b < blocks_.size(); b++)
    for (uint32_t s = blocks_[b].begin; s < blocks_[b].end; s++) {
      for_each_read(s, [&](uint32_t reg) {
        if (killed_in[reg] == b || read_in[reg] == b) return;
        read_in[reg] = b;
        block_reads_.emplace_back(b, reg);
        if (number_[reg] != kNone) return;
        number_[reg] = static_cast<uint32_t>(exposed_.size());
        exposed_.push_back(reg);
      });
      for_each_kill(s, [&](uint32_t reg) { killed_in[reg] = b; });
    }
}

void Liveness::live_out(size_t block, std::vector<uint64_t> &set) {
  std::fill(set.begin(), set.end(), 0);
  for_each_successor(block, [&](size_t next) {
    const uint64_t *in = live_in_.row(next);
    for (size_t w = 0; w < set.size(); w++) set[w] |= in[w];
  });
}

/// Computes live-in sets to the fixed point: registers that a block reads first, or that later
/// blocks need and the block does not write.
void Liveness::find_live_in() {
  BitMatrix killed(blocks_.size(), exposed_.size());
  live_in_ = BitMatrix(blocks_.size(), exposed_.size());
  for (const auto &[block, reg] : block_reads_) live_in_.set(block, number_[reg]);
  for (size_t b = 0; b < blocks_.size(); b++)
    for (uint32_t s = blocks_[b].begin; s < blocks_[b].end; s++)
      for_each_kill(s, [&](uint32_t reg) {
        if (number_[reg] != kNone) killed.set(b, number_[reg]);
      });

  std::vector<uint64_t> out(live_in_.words());
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t b = blocks_.size(); b-- > 0;) {
      live_out(b, out);
      uint64_t *in = live_in_.row(b);
      const uint64_t *kills = killed.row(b);
      uint64_t added = 0;
      for (size_t w = 0; w < out.size(); w++) {
        const uint64_t needed = in[w] | (out[w] & ~kills[w]);
        added |= needed ^ in[w];
        in[w] = needed;
      }
      changes |= added != 0;
    }
  }
}

/// Extends the ranges to block boundaries: in code order, the first block at whose start a register
/// is live, and the last at whose end it is live.
void Liveness::include_live() {
  std::vector<uint64_t> seen(live_in_.words()), out(live_in_.words());
  const auto include_new = [&](const uint64_t *set, uint32_t statement) {
    for (size_t w = 0; w < seen.size(); w++) {
      for_each_bit(set[w] & ~seen[w], 64 * w, [&](size_t i) { include(exposed_[i], statement); });
      seen[w] |= set[w];
    }
  };
  for (size_t w = 0; w < seen.size(); w++)
    for_each_bit(live_in_.row(0)[w], 64 * w,
                 [&](size_t i) { ranges_[exposed_[i]].is_read_first = true; });
  for (size_t b = 0; b < blocks_.size(); b++) include_new(live_in_.row(b), blocks_[b].begin);
  std::fill(seen.begin(), seen.end(), 0);
  for (size_t b = blocks_.size(); b-- > 0;) {
    live_out(b, out);
    include_new(out.data(), blocks_[b].end - 1);
  }
}

}  // namespace

std::vector<LiveRange> live_ranges(const Flow &flow, size_t num_registers) {
  if (flow.statements.empty()) return std::vector<LiveRange>(num_registers);
  return Liveness(flow, num_registers).find();
}

}  // namespace softgpu
