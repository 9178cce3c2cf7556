// wgmma: issue, groups and waits.  PTX ISA, Asynchronous Warpgroup Level Matrix Instructions.
//
// A wgmma is one operation of the four warps of a warpgroup: it begins when all four have issued
// it, and its completion includes all its reads of shared memory.
#include "softgpu/isa/wgmma.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

/// Checks that the four warps pass the same descriptors to the same instructions.
void compare_with_warpgroup(Warp &warp, const Instruction &i, const WgmmaOperation &operation) {
  auto &warpgroups = warp.block->wgmma;
  const auto warpgroup = static_cast<size_t>(warp.index / 4);
  if (warpgroups.size() <= warpgroup) warpgroups.resize(warpgroup + 1);
  auto &issues = warpgroups[warpgroup].issues;
  auto &issue = issues[operation.sequence % issues.size()];
  const WgmmaSequence::Issue own{operation.sequence, operation.descriptor_a, operation.descriptor_b,
                                 &i};
  const bool is_first = issue.at == nullptr || issue.sequence < own.sequence;
  if (is_first)
    issue = own;
  else if (issue.sequence == own.sequence &&
           (issue.descriptor_a != own.descriptor_a || issue.descriptor_b != own.descriptor_b ||
            issue.at != own.at))
    fault(warp, i, -1, "the warps of a warpgroup pass different operands to wgmma");
}

/// Returns the index of the live accumulator with these registers, or -1.
int find_accumulator(Warp &warp, const Instruction &i, const RegisterSlot *rows, size_t num_rows) {
  const auto &accumulators = warp.wgmma.accumulators;
  for (size_t index = 0; warp.wgmma.num_live != 0 && index < accumulators.size(); index++) {
    const WgmmaAccumulator &x = accumulators[index];
    if (!x.is_live || std::find(x.rows.begin(), x.rows.end(), rows[0]) == x.rows.end()) continue;
    if (x.rows.size() != num_rows || !std::equal(x.rows.begin(), x.rows.end(), rows))
      fault(warp, i, -1, "a wgmma in flight uses some of these accumulators");
    return static_cast<int>(index);
  }
  return -1;
}

/// Reports accumulators that differ from the values that a wait has returned: without a
/// wgmma.fence, only wgmma may modify them.  Accumulators that the wgmma overwrites without reading
/// are ignored.
void check_unchanged(Warp &warp, const Instruction &i, const RegisterSlot *rows, size_t num_rows,
                     bool accumulates) {
  for (WgmmaAccumulator &x : warp.wgmma.accumulators) {
    if (!x.is_unfenced) continue;
    for (size_t r = 0; r < num_rows; r++) {
      const auto found = std::find(x.rows.begin(), x.rows.end(), rows[r]);
      if (found == x.rows.end()) continue;
      x.is_unfenced = false;
      const auto *values = &x.values[static_cast<size_t>(found - x.rows.begin()) * kWarpSize];
      if (accumulates && std::memcmp(values, warp.row<uint32_t>(rows[r]), kWarpSize * 4) != 0)
        return violation(warp, i, -1, "registers of a wgmma were changed without wgmma.fence");
    }
  }
}

/// Reports registers of A that differ from their values at the last wgmma.fence.
void check_a_is_fenced(Warp &warp, const Instruction &i, const RegisterSlot *a) {
  const auto &rows = warp.program->wgmma_a;
  if (warp.wgmma.fenced_a.empty()) return;  // no fence at all: reported by the caller
  for (size_t r = 0; r < 4; r++) {
    const auto at = static_cast<size_t>(std::find(rows.begin(), rows.end(), a[r]) - rows.begin());
    if (std::memcmp(&warp.wgmma.fenced_a[at * kWarpSize], warp.row<uint32_t>(a[r]),
                    kWarpSize * 4) != 0)
      return violation(warp, i, -1, "registers of A of wgmma were written without wgmma.fence");
  }
}

/// Moves the values of registers into an accumulator, unless the wgmma does not read them.
uint32_t take_accumulator(Warp &warp, const Instruction &i, const RegisterSlot *rows,
                          size_t num_rows, bool accumulates) {
  WgmmaState &state = warp.wgmma;
  check_unchanged(warp, i, rows, num_rows, accumulates);
  const auto free = std::find_if(state.accumulators.begin(), state.accumulators.end(),
                                 [](const auto &x) { return !x.is_live && !x.is_unfenced; });
  const auto index = static_cast<uint32_t>(free - state.accumulators.begin());
  if (free == state.accumulators.end()) state.accumulators.emplace_back();
  WgmmaAccumulator &accumulator = state.accumulators[index];
  accumulator.rows.assign(rows, rows + num_rows);
  accumulator.values.resize(num_rows * kWarpSize);
  for (size_t r = 0; r < num_rows; r++) {
    if (state.owns(rows[r]))
      fault(warp, i, -1, "a wgmma in flight uses some of these accumulators");
    uint32_t *row = warp.row<uint32_t>(rows[r]);
    if (accumulates) std::memcpy(&accumulator.values[r * kWarpSize], row, kWarpSize * 4);
    std::fill(row, row + kWarpSize, kInFlight);
  }
  for (size_t r = 0; r < num_rows; r++) state.set_owned(rows[r], true);
  accumulator.is_live = true;
  state.num_live++;
  return index;
}

/// Returns the values to the registers, which may have been renamed.
void give_back(Warp &warp, WgmmaAccumulator &accumulator) {
  for (size_t r = 0; r < accumulator.rows.size(); r++) {
    std::memcpy(warp.row<uint32_t>(accumulator.rows[r]), &accumulator.values[r * kWarpSize],
                kWarpSize * 4);
    warp.wgmma.set_owned(accumulator.rows[r], false);
  }
  accumulator.is_live = false;
  accumulator.is_unfenced = true;
  warp.wgmma.num_live--;
}

uint64_t descriptor(Warp &warp, const Instruction &i, RegisterSlot row) {
  const auto bits = uniform<uint64_t>(warp, i, kAllLanes, row, "the descriptor of wgmma");
  if (MatrixDescriptor::has_base_offset(bits))
    violation(warp, i, -1, "base offset in a descriptor is not supported");
  return bits;
}

Step issue(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!has_whole_warp(warp, i, lanes, "wgmma")) return Step::kRetry;
  if (static_cast<size_t>(warp.index / 4 * 4 + 4) > warp.block->warps.size())
    fault(warp, i, -1, "wgmma by fewer than the four warps of a warpgroup");
  const auto &o = i.as<Wgmma>();
  WgmmaState &state = warp.wgmma;
  if (!state.has_fenced) violation(warp, i, -1, "first wgmma without wgmma.fence");
  const Lanes accumulates = warp.predicate(o.accumulates);
  if (accumulates != 0 && accumulates != kAllLanes)
    fault(warp, i, 0, "the lanes of the warp differ in scale-d of wgmma");

  WgmmaOperation operation;
  operation.descriptor_b = descriptor(warp, i, o.descriptor_b);
  operation.descriptor_a =
      o.a_is_in_registers ? operation.descriptor_b : descriptor(warp, i, o.descriptor_a);
  operation.sequence = state.next_sequence++;
  operation.group = state.num_committed;
  operation.fenced = *std::min_element(warp.bulk.fenced.begin(), warp.bulk.fenced.end());
  operation.at = &i;
  operation.accumulates = accumulates != 0;
  if (RaceCheck *races = races_of(warp)) operation.issued = races->release(warp, kAllLanes);
  compare_with_warpgroup(warp, i, operation);
  if (o.a_is_in_registers) {
    const RegisterSlot *a = rows_at(warp, o.a_rows);
    check_a_is_fenced(warp, i, a);
    for (size_t r = 0; r < operation.a.size(); r++)
      std::memcpy(operation.a[r].data(), warp.row<uint32_t>(a[r]), sizeof operation.a[r]);
  }

  const RegisterSlot *rows = rows_at(warp, o.d);
  const int found = find_accumulator(warp, i, rows, o.num_registers());
  operation.accumulator =
      found >= 0 ? static_cast<uint32_t>(found)
                 : take_accumulator(warp, i, rows, o.num_registers(), operation.accumulates);
  state.operations.push_back(operation);
  check_wgmma(warp);
  if (options().completion == Completion::kEarly) perform_wgmma(warp, state.next_sequence);
  return Step::kNext;
}

Step fence(Warp &warp, const Instruction &, Lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  warp.wgmma.has_fenced = true;
  const auto &rows = warp.program->wgmma_a;
  warp.wgmma.fenced_a.resize(rows.size() * kWarpSize);
  for (size_t r = 0; r < rows.size(); r++)
    std::memcpy(&warp.wgmma.fenced_a[r * kWarpSize], warp.row<uint32_t>(rows[r]), kWarpSize * 4);
  for (WgmmaAccumulator &x : warp.wgmma.accumulators) x.is_unfenced = false;
  return Step::kNext;
}

Step commit_group(Warp &warp, const Instruction &, Lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  warp.wgmma.num_committed++;
  return Step::kNext;
}

/// Waits until at most the given number of latest groups is pending.
Step wait_group(Warp &warp, const Instruction &i, Lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  WgmmaState &state = warp.wgmma;
  auto &operations = state.operations;
  const uint32_t num_pending = i.as<uint32_t>();
  const auto end = std::find_if(operations.begin(), operations.end(), [&](const auto &x) {
    return uint64_t{x.group} + num_pending >= state.num_committed;
  });
  if (end != operations.begin()) {
    const auto last = end - 1;
    perform_wgmma(warp, last->sequence + 1);
    if (!last->is_done) return Step::kRetry;  // another warp of the warpgroup has not issued it
    if (RaceCheck *races = races_of(warp)) races->wait_for_wgmma(warp, last->sequence + 1);
  }
  operations.erase(operations.begin(), end);

  for (uint32_t index = 0; index < state.accumulators.size(); index++) {
    const bool is_used = std::any_of(operations.begin(), operations.end(),
                                     [&](const auto &x) { return x.accumulator == index; });
    if (state.accumulators[index].is_live && !is_used) give_back(warp, state.accumulators[index]);
  }
  return Step::kNext;
}

int num_columns_of(Decoder &d) {
  const std::string shape(d.part(4));
  int columns = 0, end = 0;
  if (std::sscanf(shape.c_str(), "m64n%dk16%n", &columns, &end) != 1 ||
      static_cast<size_t>(end) != shape.size() || columns < 8 || columns > 256 || columns % 8 != 0)
    d.unknown("shape of wgmma");
  return columns;
}

/// wgmma.mma_async.sync.aligned.SHAPE.f32.TYPE.TYPE
///     d, a, b, scale-d, scale-a, scale-b{, trans-a}, trans-b
void decode_issue(Decoder &d, Instruction &i) {
  const auto &operands = d.operands();
  if (d.statement().opcode.size() != 8 || d.part(5) != "f32" || d.part(6) != d.part(7) ||
      (d.part(6) != "f16" && d.part(6) != "bf16"))
    d.unknown("type of wgmma");
  auto &o = i.make<Wgmma>();
  o.num_columns = static_cast<uint16_t>(num_columns_of(d));
  o.is_bf16 = d.part(6) == "bf16";
  o.a_is_in_registers = operands.size() == 7;
  if (operands.size() < 7 || operands.size() > 8 ||
      o.a_is_in_registers != (operands[1].kind == ptx::OperandKind::kVector))
    d.unknown("number of operands of wgmma");

  // Accumulators are updated in place: the same registers are read and written.
  read_rows(d, operands[0]);
  const auto accumulators = write_rows(d, operands[0]);
  for (const auto &x : registers_of(operands[0])) d.hold(x);
  if (accumulators.size() != o.num_registers()) d.unknown("number of registers of wgmma");
  o.d = d.list(accumulators);
  if (o.a_is_in_registers) {
    const auto a = read_rows(d, operands[1]);
    for (const auto &x : registers_of(operands[1])) d.hold(x);
    if (a.size() != 4) d.unknown("number of registers of A");
    o.a_rows = d.list(a);
    d.program().wgmma_a.insert(d.program().wgmma_a.end(), a.begin(), a.end());
  } else {
    o.descriptor_a = d.read(operands[1], 8);
  }
  o.descriptor_b = d.read(operands[2], 8);
  o.accumulates = d.read(operands[3], 1);
  for (size_t k = 4; k < operands.size(); k++) {
    const int64_t x = constant_of(d, operands[k]);
    if (k < 6 ? x != 1 && x != -1 : x != 0 && x != 1) d.unknown("constant of wgmma");
  }
  const bool negates_a = constant_of(d, operands[4]) < 0,
             negates_b = constant_of(d, operands[5]) < 0;
  o.negates = negates_a != negates_b;
  o.a_is_mn_major = !o.a_is_in_registers && constant_of(d, operands[6]) != 0;
  o.b_is_mn_major = constant_of(d, operands.back()) != 0;
  i.execute = issue;
}

void decode_wait(Decoder &d, Instruction &i) {
  need_form(d, "wait_group sync aligned", 1);
  i.make<uint32_t>() = static_cast<uint32_t>(constant_of(d, d.operands()[0]));
  i.execute = wait_group;
  d.release_held();
}

}  // namespace

void move_accumulator(Warp &warp, RegisterSlot to, RegisterSlot from) {
  WgmmaState &state = warp.wgmma;
  if (to == from || !state.owns(from)) return;
  for (WgmmaAccumulator &x : state.accumulators) {
    const auto found = std::find(x.rows.begin(), x.rows.end(), from);
    if (!x.is_live || found == x.rows.end()) continue;
    *found = to;
    state.set_owned(from, false);
    state.set_owned(to, true);
    return;
  }
}

void decode_wgmma(Decoder &d, Instruction &i) {
  const std::string_view what = d.part(1);
  if (d.part(2) != "sync" || d.part(3) != "aligned") d.unknown("form of wgmma");
  if (what == "mma_async") return decode_issue(d, i);
  if (what == "wait_group") return decode_wait(d, i);
  need_form(d, "fence|commit_group sync aligned", 0);
  i.execute = what == "fence" ? fence : commit_group;
}

}  // namespace softgpu
