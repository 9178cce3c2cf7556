// Exchange between the lanes of a warp: shfl.sync, vote.sync, match.sync, redux.sync, elect.sync,
// bar.warp.sync, activemask.  PTX ISA, Data Movement Instructions (shfl), and Parallel
// Synchronization and Communication Instructions.
#include <algorithm>
#include <cstring>
#include <functional>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/block.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/warp.h"

namespace softgpu {
namespace {

// ---- member masks

/// Returns the lanes that specify the same member mask as the first of `lanes`.  Faults if one of
/// them is not a member.
Lanes lanes_of_one_set(Warp &warp, const Instruction &instruction, Lanes lanes,
                       const uint32_t *members) {
  const Lanes set = members[first_lane(lanes)];
  const Lanes same = lanes & lanes_where([&](int lane) { return members[lane] == set; });
  if ((same & ~set) != 0) {
    fault(warp, instruction, first_lane(same & ~set), "the lane is not in its member mask %08x",
          set);
  }
  return same;
}

/// Separates waiting lanes, which specify other members, from lanes that can continue.
Step split_off(Warp &warp, Lanes waiting) {
  LaneGroup &group = warp.group();
  const uint32_t pc = group.pc++;
  group.lanes &= ~waiting;
  warp.groups.push_back({pc, waiting, false});
  return Step::kJump;
}

/// Calls f(lanes) for each member mask whose lanes have all arrived.  Exited members are ignored.
template <class F>
Step exchange(Warp &warp, const Instruction &instruction, Lanes lanes, RegisterSlot row, F &&f) {
  const uint32_t *members = warp.row<uint32_t>(row);
  Lanes waiting = 0;
  for (Lanes rest = lanes; rest != 0;) {
    const Lanes same = lanes_of_one_set(warp, instruction, rest, members);
    const bool all_here = same == (members[first_lane(same)] & warp.alive);
    if (all_here) {
      f(same);
    } else {
      waiting |= same;
    }
    rest &= ~same;
  }
  if (waiting == 0) return Step::kNext;
  return waiting == lanes ? Step::kRetry : split_off(warp, waiting);
}

// ---- shfl

enum class ShuffleMode { kUp, kDown, kButterfly, kIndex };

struct Exchange {
  RegisterSlot to, from, members, predicate;  ///< predicate: second destination
  bool has_predicate;
};
struct Shuffle : Exchange {
  RegisterSlot index, clamp;
};

struct Source {
  int lane;
  bool is_inside;  ///< source lane is within the segment
};
/// Source: pseudocode of shfl.sync in the PTX ISA.
template <ShuffleMode kMode>
inline Source source_of(int lane, uint32_t index, uint32_t clamp) {
  const int b = index & 31, c = clamp & 31, segment = clamp >> 8 & 31;
  const int last = (lane & segment) | (c & ~segment), first = lane & segment;
  const int source = kMode == ShuffleMode::kUp          ? lane - b
                     : kMode == ShuffleMode::kDown      ? lane + b
                     : kMode == ShuffleMode::kButterfly ? lane ^ b
                                                        : first | (b & ~segment);
  const bool is_inside = kMode == ShuffleMode::kUp ? source >= last : source <= last;
  return {is_inside ? source : lane, is_inside};
}

template <ShuffleMode kMode>
Step shuffle(Warp &warp, const Instruction &instruction, Lanes group_lanes) {
  const auto &o = instruction.as<Shuffle>();
  return exchange(warp, instruction, group_lanes, o.members, [&](Lanes lanes) {
    const uint32_t *index = warp.row<uint32_t>(o.index), *clamp = warp.row<uint32_t>(o.clamp);
    uint32_t values[kWarpSize];
    int sources[kWarpSize];
    // The destination may be the same register.
    std::memcpy(values, warp.row<uint32_t>(o.from), sizeof values);
    set_lanes(sources, kAllLanes,
              [&](int lane) { return source_of<kMode>(lane, index[lane], clamp[lane]).lane; });
    const Lanes inside = lanes_where(
        [&](int lane) { return source_of<kMode>(lane, index[lane], clamp[lane]).is_inside; });
    if (lanes != kAllLanes) {
      const Lanes lost =
          lanes & lanes_where([&](int lane) { return (lanes >> sources[lane] & 1) == 0; });
      for_each_lane(lost, [&](int lane) {
        violation(warp, instruction, lane, "shfl reads lane %d, which does not participate",
                  sources[lane]);
      });
    }
    set_lanes(warp.row<uint32_t>(o.to), lanes, [&](int lane) { return values[sources[lane]]; });
    if (o.has_predicate) warp.set_predicate(o.predicate, lanes, inside);
  });
}

// ---- vote

enum class VoteMode : uint8_t { kAll, kAny, kUniform, kBallot };

struct Vote {
  RegisterSlot to, members;
  PredicateOperand predicate;
  VoteMode mode;
};

Step vote(Warp &warp, const Instruction &instruction, Lanes group_lanes) {
  const auto &o = instruction.as<Vote>();
  return exchange(warp, instruction, group_lanes, o.members, [&](Lanes lanes) {
    const Lanes p = lanes & warp.predicate(o.predicate);
    if (o.mode == VoteMode::kBallot) {
      set_lanes(warp.row<uint32_t>(o.to), lanes, [&](int) { return p; });
      return;
    }
    const bool is_true = o.mode == VoteMode::kAll   ? p == lanes
                         : o.mode == VoteMode::kAny ? p != 0
                                                    : p == 0 || p == lanes;
    warp.set_predicate(o.to, lanes, is_true ? kAllLanes : 0);
  });
}

// ---- match

template <class T, bool kAll>
Step match(Warp &warp, const Instruction &instruction, Lanes group_lanes) {
  const auto &o = instruction.as<Exchange>();
  return exchange(warp, instruction, group_lanes, o.members, [&](Lanes lanes) {
    T values[kWarpSize];
    // The destination may be the same register.
    std::memcpy(values, warp.row<T>(o.from), sizeof values);
    uint32_t *to = warp.row<uint32_t>(o.to);
    Lanes all_same = 0;
    for (Lanes rest = lanes; rest != 0;) {
      const T value = values[first_lane(rest)];
      const Lanes same = lanes & lanes_where([&](int lane) { return values[lane] == value; });
      if (same == lanes) all_same = lanes;
      set_lanes(to, same, [&](int) { return !kAll || same == lanes ? same : 0; });
      rest &= ~same;
    }
    if (o.has_predicate) warp.set_predicate(o.predicate, lanes, all_same);
  });
}

// ---- redux

template <class T, auto kOp>
Step reduce(Warp &warp, const Instruction &instruction, Lanes group_lanes) {
  const auto &o = instruction.as<Exchange>();
  return exchange(warp, instruction, group_lanes, o.members, [&](Lanes lanes) {
    const T *values = warp.row<T>(o.from);
    T result = values[first_lane(lanes)];
    for_each_lane(lanes & (lanes - 1), [&](int lane) { result = kOp(result, values[lane]); });
    set_lanes(warp.row<T>(o.to), lanes, [&](int) { return result; });
  });
}

// ---- elect, bar.warp.sync, activemask

Step elect(Warp &warp, const Instruction &instruction, Lanes group_lanes) {
  const auto &o = instruction.as<Exchange>();
  return exchange(warp, instruction, group_lanes, o.members, [&](Lanes lanes) {
    const int leader = first_lane(lanes);
    set_lanes(warp.row<int32_t>(o.to), lanes, [&](int) { return leader; });
    warp.set_predicate(o.predicate, lanes, Lanes{1} << leader);
  });
}

Step warp_barrier(Warp &warp, const Instruction &instruction, Lanes group_lanes) {
  const RegisterSlot members = instruction.as<RegisterSlot>();
  return exchange(warp, instruction, group_lanes, members, [&](Lanes lanes) {
    if (RaceCheck *races = races_of(warp)) races->join_lanes(warp, lanes);
  });
}

Step active_mask(Warp &warp, const Instruction &instruction, Lanes lanes) {
  set_lanes(warp.row<uint32_t>(instruction.as<RegisterSlot>()), lanes, [&](int) { return lanes; });
  return Step::kNext;
}

// ---- decoding

template <class T, size_t n>
T choose(const Decoder &d, const std::pair<std::string_view, T> (&choices)[n]) {
  for (const auto &[name, choice] : choices)
    if (d.has(name)) return choice;
  d.unknown("operation");
}

}  // namespace

void decode_shuffle(Decoder &d, Instruction &instruction) {
  need_form(d, "sync up|down|bfly|idx b32", 5);
  auto &o = instruction.make<Shuffle>();
  instruction.execute = choose<Handler>(d, {{"up", shuffle<ShuffleMode::kUp>},
                                            {"down", shuffle<ShuffleMode::kDown>},
                                            {"bfly", shuffle<ShuffleMode::kButterfly>},
                                            {"idx", shuffle<ShuffleMode::kIndex>}});
  o.to = d.write_pair(d.operands()[0], 4, &o.has_predicate, &o.predicate);
  read_each(d, 1, {&o.from, &o.index, &o.clamp, &o.members});
}

/// The manual specifies vote.sync.MODE; CUB uses vote.MODE.sync, which ptxas also accepts.
void decode_vote(Decoder &d, Instruction &instruction) {
  const bool is_ballot = d.has("ballot");
  need_form(d, is_ballot ? "sync ballot b32" : "sync all|any|uni pred", 3);
  auto &o = instruction.make<Vote>();
  instruction.execute = vote;
  o.mode = choose<VoteMode>(d, {{"all", VoteMode::kAll},
                                {"any", VoteMode::kAny},
                                {"uni", VoteMode::kUniform},
                                {"ballot", VoteMode::kBallot}});
  o.to = d.write(d.operands()[0], is_ballot ? 4 : 1);
  o.predicate = d.read_predicate(d.operands()[1]);
  read_each(d, 2, {&o.members});
}

void decode_match(Decoder &d, Instruction &instruction) {
  need_form(d, "sync all|any b32|b64", 3);
  const bool all = d.has("all"), is_wide = d.type() == "b64";
  auto &o = instruction.make<Exchange>();
  instruction.execute = is_wide ? (all ? match<uint64_t, true> : match<uint64_t, false>)
                                : (all ? match<uint32_t, true> : match<uint32_t, false>);
  o.to = d.write_pair(d.operands()[0], 4, &o.has_predicate, &o.predicate);
  if (o.has_predicate && !all) d.unknown("predicate of match.any");
  o.from = d.read(d.operands()[1], is_wide ? 8 : 4);
  read_each(d, 2, {&o.members});
}

void decode_reduce(Decoder &d, Instruction &instruction) {
  constexpr auto kMin = [](auto a, auto b) { return std::min(a, b); };
  constexpr auto kMax = [](auto a, auto b) { return std::max(a, b); };
  const bool is_signed = d.type() == "s32";
  need_form(d, "sync add|and|or|xor|min|max u32|s32|b32", 3);
  auto &o = instruction.make<Exchange>();
  instruction.execute =
      choose<Handler>(d, {{"add", reduce<uint32_t, std::plus<>{}>},
                          {"and", reduce<uint32_t, std::bit_and<>{}>},
                          {"or", reduce<uint32_t, std::bit_or<>{}>},
                          {"xor", reduce<uint32_t, std::bit_xor<>{}>},
                          {"min", is_signed ? reduce<int32_t, kMin> : reduce<uint32_t, kMin>},
                          {"max", is_signed ? reduce<int32_t, kMax> : reduce<uint32_t, kMax>}});
  o.to = d.write(d.operands()[0], 4);
  read_each(d, 1, {&o.from, &o.members});
}

void decode_elect(Decoder &d, Instruction &instruction) {
  need_form(d, "sync", 2);
  auto &o = instruction.make<Exchange>();
  instruction.execute = elect;
  o.to = d.write_pair(d.operands()[0], 4, &o.has_predicate, &o.predicate);
  if (!o.has_predicate) d.unknown("elect.sync without a predicate");
  read_each(d, 1, {&o.members});
}

void decode_warp_barrier(Decoder &d, Instruction &instruction) {
  need_form(d, "warp sync", 1);
  read_each(d, 0, {&instruction.make<RegisterSlot>()});
  instruction.execute = warp_barrier;
}

void decode_active_mask(Decoder &d, Instruction &instruction) {
  need_form(d, "b32", 1);
  instruction.execute = active_mask;
  instruction.make<RegisterSlot>() = d.write(d.operands()[0], 4);
}

}  // namespace softgpu
