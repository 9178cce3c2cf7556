// Assignment of registers to slots: small kernels with known results, and simulation of random
// kernels.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "softgpu/program/flow.h"
#include "softgpu/program/registers.h"
#include "tests/support/catch.h"

using namespace softgpu;

namespace {

using Registers = std::vector<uint32_t>;

/// Builds a kernel statement by statement.
class FlowBuilder {
 public:
  Flow flow;

  /// Adds a statement with writes and reads that continues with the next statement.
  FlowBuilder &add(Registers writes, Registers reads) {
    for (uint32_t reg : writes) flow.accesses.push_back({reg, AccessKind::kWrite});
    for (uint32_t reg : reads) flow.accesses.push_back({reg, AccessKind::kRead});
    return finish({});
  }
  FlowBuilder &hold(Registers held) {
    for (uint32_t reg : held) flow.accesses.push_back({reg, AccessKind::kHold});
    return finish({});
  }
  FlowBuilder &copy(uint32_t to, uint32_t from) {
    flow.renames.emplace_back(to, from);
    return add({to}, {from});
  }
  FlowBuilder &wait() {
    finish({});
    last().is_wait = true;
    return *this;
  }
  /// Adds a branch to one of the targets; a guarded branch may also continue with the next
  /// statement.
  FlowBuilder &branch(std::vector<uint32_t> targets, std::optional<uint32_t> guard = {}) {
    if (guard) flow.accesses.push_back({*guard, AccessKind::kRead});
    finish(targets);
    last().is_guarded = guard.has_value();
    last().is_end = !guard;
    return *this;
  }
  /// Makes the last statement conditional for some lanes.
  FlowBuilder &guarded() {
    last().is_guarded = true;
    return *this;
  }
  FlowBuilder &end() { return branch({}); }

  std::vector<LiveRange> ranges(size_t num_registers) const {
    return live_ranges(flow, num_registers);
  }

 private:
  FlowStatement &last() { return flow.statements.back(); }
  FlowBuilder &finish(const std::vector<uint32_t> &targets) {
    flow.targets.insert(flow.targets.end(), targets.begin(), targets.end());
    flow.statements.push_back({});
    last().end_of_accesses = static_cast<uint32_t>(flow.accesses.size());
    last().end_of_targets = static_cast<uint32_t>(flow.targets.size());
    return *this;
  }
};

std::string text_of(const LiveRange &range) {
  if (range.is_empty()) return "none";
  return std::to_string(range.first) + "-" + std::to_string(range.last);
}

}  // namespace

TEST_CASE("live ranges of straight-line code", "[live_ranges]") {
  FlowBuilder f;
  f.add({0}, {}).add({1}, {0}).add({0}, {1}).add({}, {0}).add({2}, {}).end();
  const auto ranges = f.ranges(4);
  CHECK(text_of(ranges[0]) == "0-3");
  CHECK(text_of(ranges[1]) == "1-2");
  CHECK(text_of(ranges[2]) == "4-4");  // written but never read: needs a slot at the write
  CHECK(text_of(ranges[3]) == "none");
}

TEST_CASE("live ranges extend over loops", "[live_ranges]") {
  FlowBuilder f;
  f.add({0, 1, 4}, {})  // 0
      .add({2}, {0})    // 1: head of the loop
      .add({3}, {2})    // 2
      .branch({1}, 3)   // 3: branch back
      .add({}, {1})     // 4
      .end();
  const auto ranges = f.ranges(5);
  CHECK(text_of(ranges[0]) == "0-3");  // read again in the next iteration
  CHECK(text_of(ranges[1]) == "0-4");  // live through the loop
  CHECK(text_of(ranges[2]) == "1-2");  // written in each iteration
  CHECK(text_of(ranges[3]) == "2-3");
  CHECK(text_of(ranges[4]) == "0-0");
}

TEST_CASE("a register of the previous iteration is live through the loop", "[live_ranges]") {
  FlowBuilder f;
  f.add({0}, {}).add({}, {1}).add({1}, {0}).branch({1}, 0).end();
  CHECK(text_of(f.ranges(2)[1]) == "0-3");  // read before it is written: live from the entry
}

TEST_CASE("a guarded definition keeps the previous value live", "[live_ranges]") {
  FlowBuilder f;
  f.add({0, 1, 2}, {}).add({1}, {}).guarded().add({2}, {}).add({}, {1, 2}).end();
  const auto ranges = f.ranges(3);
  CHECK(text_of(ranges[1]) == "0-3");
  FlowBuilder g;
  g.add({0}, {}).branch({3}, 0).add({1}, {}).guarded().add({}, {1}).end();
  CHECK(text_of(g.ranges(2)[1]) == "0-3");
}

TEST_CASE("a live range covers both arms of a diamond", "[live_ranges]") {
  FlowBuilder f;
  f.add({0}, {})       // 0
      .branch({4}, 0)  // 1
      .add({1}, {})    // 2
      .branch({6})     // 3
      .add({1}, {})    // 4
      .add({2}, {2})   // 5
      .add({}, {1})    // 6
      .end();
  const auto ranges = f.ranges(3);
  CHECK(text_of(ranges[1]) == "2-6");
  CHECK(text_of(ranges[2]) == "0-5");
}

TEST_CASE("a branch table reaches all its targets", "[live_ranges]") {
  FlowBuilder f;
  f.add({0, 1, 2}, {}).branch({2, 4}).add({}, {1}).end().add({}, {2}).end();
  const auto ranges = f.ranges(3);
  CHECK(text_of(ranges[1]) == "0-2");
  CHECK(text_of(ranges[2]) == "0-4");
}

TEST_CASE("registers of pending operations are live until the wait", "[live_ranges]") {
  FlowBuilder f;
  f.add({0, 1}, {})  // 0
      .hold({0})     // 1
      .copy(2, 0)    // 2: register 2 becomes the accumulator
      .add({0}, {})  // 3
      .add({}, {0})  // 4
      .wait()        // 5
      .add({}, {1})  // 6
      .end();
  const auto ranges = f.ranges(3);
  CHECK(ranges[2].last == 5);
  CHECK(ranges[0].last == 5);  // may be the pending register
  CHECK(text_of(ranges[1]) == "0-6");
  FlowBuilder g;
  g.add({0}, {}).hold({0}).add({1}, {}).add({}, {1}).end();
  CHECK(text_of(g.ranges(2)[0]) == "0-1");  // without a wait
}

TEST_CASE("register slots are shared, aligned and minimal", "[live_ranges]") {
  FlowBuilder f;
  constexpr uint32_t kChain = 100;  // register i is written from register i - 1
  f.add({0}, {});
  for (uint32_t i = 1; i < kChain; i++) f.add({i}, {i - 1});
  f.end();
  for (uint8_t width : {1, 4, 8}) {
    const std::vector<ptx::Register> registers(kChain, ptx::Register{width});
    const auto assignment = assign_rows(f.ranges(kChain), registers, 128);
    CHECK(assignment.end == 128 + 2 * row_bytes(width));
  }
  // A result does not take the slot of an operand that dies in the same statement.
  const auto rows = assign_rows(f.ranges(kChain), {kChain, ptx::Register{4}}, 0).rows;
  for (uint32_t i = 1; i < kChain; i++) CHECK(rows[i] != rows[i - 1]);

  FlowBuilder mixed;
  mixed.add({0, 1, 2, 3, 4, 5}, {}).add({}, {0, 1, 2, 3, 4, 5}).end();
  const std::vector<ptx::Register> widths{{1}, {4}, {8}, {1}, {4}, {8}};
  const auto assignment = assign_rows(mixed.ranges(6), widths, 64);
  CHECK(assignment.end == 64 + 2 * (256 + 128 + 4));
  for (uint32_t reg : {1, 2, 4, 5}) CHECK(assignment.rows[reg] % 64 == 0);
  for (uint32_t reg : {0, 3}) CHECK(assignment.rows[reg] % 4 == 0);
}

// ---- Random kernels: a lane must find in each slot the last value of the register.

namespace {

class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : random_(seed) {
    num_registers_ = below(12) + 2;
    const uint32_t size = below(40) + 4;
    const bool has_holds = below(2) == 0;
    for (uint32_t s = 0; s + 1 < size; s++) add_statement(size, has_holds);
    kernel_.end();
    for (uint32_t reg = 0; reg < num_registers_; reg++)
      registers_.push_back({below(2) == 0 ? uint8_t{4} : uint8_t{8}});
  }

  const Flow &flow() const { return kernel_.flow; }
  const std::vector<ptx::Register> &registers() const { return registers_; }

  /// Statements that a lane executes or skips.
  struct Step {
    uint32_t statement;
    bool executes;
  };
  std::vector<Step> walk() {
    std::vector<Step> steps;
    for (uint32_t s = 0; steps.size() < 120;) {
      const FlowStatement &statement = flow().statements[s];
      const uint32_t begin = s == 0 ? 0 : flow().statements[s - 1].end_of_targets,
                     num_targets = statement.end_of_targets - begin;
      const bool executes = !statement.is_guarded || below(2) == 0;
      steps.push_back({s, executes});
      if (executes && num_targets != 0) {
        s = flow().targets[begin + below(num_targets)];
      } else if (executes && statement.is_end) {
        break;
      } else {
        s++;
      }
    }
    return steps;
  }

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

 private:
  Registers some(uint32_t most) {
    std::set<uint32_t> registers;
    for (uint32_t n = below(most + 1); n > 0; n--) registers.insert(below(num_registers_));
    return {registers.begin(), registers.end()};
  }
  void add_statement(uint32_t size, bool has_holds) {
    switch (below(has_holds ? 12 : 8)) {
      case 0:
        kernel_.branch({below(size)}, below(num_registers_));
        break;
      case 1:
        kernel_.branch({below(size), below(size)});
        break;
      case 2:
        kernel_.add(some(2), some(2)).guarded();
        break;
      case 8:
        kernel_.hold(some(2));
        break;
      case 9:
        kernel_.copy(below(num_registers_), below(num_registers_));
        break;
      case 10:
        kernel_.wait();
        break;
      default:
        kernel_.add(some(2), some(2));
    }
  }

  std::mt19937_64 random_;
  uint32_t num_registers_;
  FlowBuilder kernel_;
  std::vector<ptx::Register> registers_;
};

/// Lane that walks through a kernel and tracks the contents of registers and slots.
class Lane {
 public:
  Lane(RandomKernel &kernel, const std::vector<RegisterSlot> &rows) : kernel_(kernel), rows_(rows) {
    for (uint32_t reg = 0; reg < rows.size(); reg++) values_.push_back(memory_[rows[reg]]);
  }

  /// Runs until the kernel accesses a pending register, which is invalid.  Returns the statement at
  /// which a register has a wrong value.
  std::optional<uint32_t> go() {
    steps_ = kernel_.walk();
    for (size_t i = 0; i < steps_.size(); i++) {
      land(i);
      if (!steps_[i].executes) continue;
      const uint32_t s = steps_[i].statement;
      if (!execute(s, i)) break;
      if (differs_) return s;
    }
    return std::nullopt;
  }

 private:
  struct Flight {
    uint32_t reg;
    size_t lands_before;  ///< latest step
  };

  void set(uint32_t reg, uint64_t value) { values_[reg] = memory_[rows_[reg]] = value; }
  bool is_in_flight(uint32_t reg) const {
    return std::ranges::count(flights_, reg, &Flight::reg) != 0;
  }
  void check(uint32_t reg) { differs_ |= memory_[rows_[reg]] != values_[reg]; }

  /// Completes operations, which write their registers at any time up to the wait.
  void land(size_t step) {
    for (Flight &flight : flights_)
      if (flight.lands_before == step) set(flight.reg, ++last_value_);
  }

  /// Executes a statement.  Returns false if it is invalid at this point.
  bool execute(uint32_t s, size_t step) {
    const Flow &flow = kernel_.flow();
    const uint32_t begin = s == 0 ? 0 : flow.statements[s - 1].end_of_accesses;
    const std::vector<Access> accesses(flow.accesses.begin() + begin,
                                       flow.accesses.begin() + flow.statements[s].end_of_accesses);
    if (flow.statements[s].is_wait) {
      for (const Flight &flight : flights_) check(flight.reg);
      flights_.clear();
    }
    if (const auto copy = copy_in_flight(accesses)) {
      std::ranges::find(flights_, copy->second, &Flight::reg)->reg = copy->first;
      set(copy->first, memory_[rows_[copy->second]]);
      return true;
    }
    for (const Access &access : accesses)
      if (is_in_flight(access.reg)) return false;
    for (const Access &access : accesses)
      if (access.kind != AccessKind::kWrite) check(access.reg);
    for (const Access &access : accesses)
      if (access.kind == AccessKind::kWrite) set(access.reg, ++last_value_);
    for (const Access &access : accesses)
      if (access.kind == AccessKind::kHold) start(access.reg, step);
    return true;
  }

  /// Returns destination and source if the statement copies a pending register to one that is not.
  std::optional<std::pair<uint32_t, uint32_t>> copy_in_flight(
      const std::vector<Access> &accesses) const {
    if (accesses.size() != 2) return {};
    const std::pair<uint32_t, uint32_t> pair{accesses[0].reg, accesses[1].reg};
    const auto &renames = kernel_.flow().renames;
    const bool is_copy = std::ranges::count(renames, pair) != 0 &&
                         accesses[0].kind == AccessKind::kWrite &&
                         accesses[1].kind == AccessKind::kRead;
    if (!is_copy || !is_in_flight(pair.second) || is_in_flight(pair.first)) return {};
    return pair;
  }

  /// Starts an operation, but only if the path has a wait.
  void start(uint32_t reg, size_t step) {
    for (size_t i = step + 1; i < steps_.size(); i++)
      if (steps_[i].executes && kernel_.flow().statements[steps_[i].statement].is_wait) {
        flights_.push_back({reg, step + 1 + kernel_.below(static_cast<uint32_t>(i - step))});
        return;
      }
  }

  RandomKernel &kernel_;
  const std::vector<RegisterSlot> &rows_;
  std::map<RegisterSlot, uint64_t> memory_;
  std::vector<uint64_t> values_;
  std::vector<RandomKernel::Step> steps_;
  std::vector<Flight> flights_;
  uint64_t last_value_ = 0;
  bool differs_ = false;
};

}  // namespace

TEST_CASE("random kernels keep all live registers", "[live_ranges]") {
  size_t num_shared = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    RandomKernel kernel(seed);
    const size_t num_registers = kernel.registers().size();
    const auto ranges = live_ranges(kernel.flow(), num_registers);
    std::vector<RegisterSlot> rows = assign_rows(ranges, kernel.registers(), 0).rows;
    // Registers that are never live have no slot; they must not appear to share the first one.
    for (uint32_t reg = 0; reg < num_registers; reg++)
      if (ranges[reg].is_empty()) rows[reg] = 1u << 20 | reg;
    num_shared += num_registers - std::set<RegisterSlot>(rows.begin(), rows.end()).size();
    for (int walk = 0; walk < 20; walk++) {
      const auto wrong = Lane(kernel, rows).go();
      INFO("kernel " << seed << ", statement " << wrong.value_or(0));
      REQUIRE_FALSE(wrong);
    }
  }
  CHECK(num_shared > 1000);  // otherwise the test is not significant
}
