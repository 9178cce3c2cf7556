#include "softgpu/isa/async_checks.h"

#include <cstring>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/worker.h"

namespace softgpu {
namespace {

/// Contents of the opaque 64 bits, from bit 63 down: initialization mark, phase, expected arrivals
/// of a phase, pending arrivals, and the signed tx-count.
struct Mbarrier {
  static constexpr uint32_t kMaxCount =
      (1 << 20) - 1;  ///< PTX ISA, Contents of the mbarrier object
  static constexpr int kPhaseBit = 62, kExpectedBit = 42, kPendingBit = 22;
  static constexpr uint64_t kMark = uint64_t{1} << 63, kTxMask = (1 << 22) - 1;

  uint32_t phase, expected, pending;
  int32_t tx_count;

  static bool is_one(uint64_t bits) { return (bits & kMark) != 0; }
  static uint32_t phase_of(uint64_t bits) { return static_cast<uint32_t>(bits >> kPhaseBit & 1); }

  static Mbarrier unpack(uint64_t bits) {
    const auto tx = static_cast<int32_t>(bits & kTxMask);
    return {phase_of(bits), static_cast<uint32_t>(bits >> kExpectedBit & kMaxCount),
            static_cast<uint32_t>(bits >> kPendingBit & kMaxCount),
            tx - ((tx & 1 << 21) != 0 ? 1 << 22 : 0)};
  }
  uint64_t pack() const {
    return kMark | uint64_t{phase} << kPhaseBit | uint64_t{expected} << kExpectedBit |
           uint64_t{pending} << kPendingBit | (static_cast<uint64_t>(tx_count) & kTxMask);
  }
};

uint64_t load(const std::byte *from) {
  uint64_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

std::byte *place_of(Warp &warp, const Instruction &i, int lane, uint32_t address, bool in_cluster) {
  if (address % 8 != 0) fault(warp, i, lane, "misaligned mbarrier at %#x", address);
  return in_cluster ? smem_in_cluster(warp, i, lane, address, 8).bytes
                    : shared_at(warp, i, lane, address, 8);
}

/// Records an initialization, which a fence must follow.  Does nothing in clusters of one block
/// without SOFTGPU_FENCECHECK: Triton's kernels, which are correct on hardware, have no fence
/// before TMA there.
void note_initialised(Warp &warp, int lane, uint32_t address) {
  Block &block = *warp.block;
  if (block.cluster->blocks.size() > 1 || options().checks_fences)
    block.unfenced_mbarriers.initialise(address & kOffsetMask, warp.thread_of(lane),
                                        block.smem.time());
}

Mbarrier read(Warp &warp, const Instruction &i, int lane, const std::byte *from) {
  const uint64_t bits = load(from);
  if (!Mbarrier::is_one(bits)) fault(warp, i, lane, "uses an mbarrier that is not initialized");
  return Mbarrier::unpack(bits);
}

/// Stores the new state.  A phase without pending arrivals and transactions is complete, and the
/// next one begins.
void write(Warp &warp, const Instruction &i, int lane, uint32_t address, std::byte *to,
           Mbarrier m) {
  constexpr auto kMaxTx = static_cast<int32_t>(Mbarrier::kMaxCount);
  if (m.tx_count > kMaxTx || m.tx_count < -kMaxTx)
    fault(warp, i, lane, "the tx-count of an mbarrier is %d", m.tx_count);
  if (m.pending == 0 && m.tx_count == 0) {
    m.phase ^= 1;
    m.pending = m.expected;
    if (RaceCheck *races = races_of(warp)) races->complete_mbarrier(address);
  }
  warp.block->cluster->num_mbarrier_changes++;
  const uint64_t bits = m.pack();
  std::memcpy(to, &bits, sizeof bits);
}

struct Init {
  AddressOperand address;
  RegisterSlot count;
};

/// Executes f lane by lane, because several lanes may access the same word.
template <class F>
void for_each_mbarrier(Warp &warp, const Instruction &i, Lanes lanes, const AddressOperand &address,
                       bool in_cluster, F &&f) {
  uint32_t addresses[kWarpSize];  // the result may overwrite the address register
  for_each_lane(lanes, [&](int lane) { addresses[lane] = shared_address_of(warp, address, lane); });
  for_each_lane(lanes, [&](int lane) {
    f(lane, addresses[lane], place_of(warp, i, lane, addresses[lane], in_cluster));
  });
}

Step init(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Init>();
  for_each_mbarrier(
      warp, i, lanes, o.address, false, [&](int lane, uint32_t address, std::byte *to) {
        const uint32_t count = warp.row<uint32_t>(o.count)[lane];
        if (count < 1 || count > Mbarrier::kMaxCount)
          fault(warp, i, lane, "mbarrier of %u arrivals", count);
        if (Mbarrier::is_one(load(to)))
          violation(warp, i, lane, "initializes an mbarrier again, without mbarrier.inval");
        const uint64_t bits = Mbarrier{0, count, count, 0}.pack();
        std::memcpy(to, &bits, sizeof bits);
        note_initialised(warp, lane, address);
        if (RaceCheck *races = races_of(warp)) races->init_mbarrier(warp, i, lane, address);
        watch_bulk_shared(warp, i, *warp.block, address & kOffsetMask, 8, Access::kWrite);
      });
  return Step::kNext;
}

/// Invalidates an mbarrier, so that its memory may be reused.
Step invalidate(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &operand = i.as<AddressOperand>();
  for_each_mbarrier(warp, i, lanes, operand, false, [&](int lane, uint32_t address, std::byte *to) {
    read(warp, i, lane, to);
    warp.block->unfenced_mbarriers.forget(address & kOffsetMask);
    if (RaceCheck *races = races_of(warp)) races->init_mbarrier(warp, i, lane, address);
    std::memset(to, 0x7F, 8);
  });
  return Step::kNext;
}

/// mbarrier.arrive, with or without expect_tx, or expect_tx alone.
struct Arrive {
  AddressOperand address;
  RegisterSlot count;  ///< tx-count if `expects`, otherwise the number of arrivals
  RegisterSlot state;  ///< receives the previous value
  bool arrives, expects, has_count, has_state;
  bool drops;  ///< removes the thread from later phases
  bool in_cluster;
  bool is_relaxed;
};

Step arrive(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Arrive>();
  uint64_t states[kWarpSize];
  for_each_mbarrier(
      warp, i, lanes, o.address, o.in_cluster, [&](int lane, uint32_t address, std::byte *at) {
        check_mbarrier_visible(warp, i, lane, address, MbarrierUser::kThread);
        states[lane] = load(at);
        Mbarrier m = read(warp, i, lane, at);
        const uint32_t count = o.has_count ? warp.row<uint32_t>(o.count)[lane] : 1;
        if (o.expects) m.tx_count += static_cast<int32_t>(count);
        const uint32_t n = !o.arrives ? 0 : o.expects ? 1 : count;
        if ((o.arrives && n < 1) || n > m.pending)
          fault(warp, i, lane, "%u arrivals at an mbarrier whose phase waits for %u more", n,
                m.pending);
        m.pending -= n;
        if (o.drops) m.expected -= n;
        if (RaceCheck *races = races_of(warp))
          races->use_mbarrier(warp, i, lane, address, o.arrives && !o.is_relaxed);
        write(warp, i, lane, address, at, m);
      });
  if (o.has_state)
    for_each_lane(lanes, [&](int lane) { warp.row<uint64_t>(o.state)[lane] = states[lane]; });
  return Step::kNext;
}

struct Wait {
  AddressOperand address;
  RegisterSlot phase;  ///< parity, or the state that arrive returned
  RegisterSlot done;
  bool has_parity;
  bool may_block;  ///< try_wait
  bool is_relaxed;
};

/// Returns whether a try_wait returns false for an incomplete phase, because PTX limits its time.
/// This happens at random with a seed, and if no other progress is possible: the warp itself may
/// have to complete the phase.
bool gives_up(Warp &warp, const Instruction &i, bool is_first_try) {
  if (is_first_try && options().is_random() && may_give_up(warp))
    warp.gives_up = random_below(warp, 4) == 0;
  if (!warp.gives_up) return false;
  warp.gives_up = false;
  warp.gave_up_at = warp.block->cluster->num_mbarrier_changes;
  // A retried wait counts once.
  warp.tally->executed[warp.program->index_of(i)]--;
  warp.tally->num_instructions--;
  return true;
}

Step wait(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Wait>();
  Lanes done = 0;
  uint32_t mbarriers[kWarpSize];
  for_each_mbarrier(
      warp, i, lanes, o.address, false, [&](int lane, uint32_t address, const std::byte *at) {
        const uint32_t phase = o.has_parity ? warp.row<uint32_t>(o.phase)[lane]
                                            : Mbarrier::phase_of(warp.row<uint64_t>(o.phase)[lane]);
        if (phase > 1) fault(warp, i, lane, "parity %u of an mbarrier", phase);
        if (read(warp, i, lane, at).phase == phase) return;
        done |= Lanes{1} << lane;
        mbarriers[lane] = address;
      });
  const bool is_first_try = warp.blocked_at != &i;
  warp.blocked_at = done == 0 && o.may_block ? &i : nullptr;
  if (done == 0 && is_first_try) warp.tally->accesses[warp.program->index_of(i)].incomplete++;
  if (warp.blocked_at && !gives_up(warp, i, is_first_try)) return Step::kRetry;
  if (RaceCheck *races = races_of(warp))
    races->wait_for_mbarriers(warp, i, done, mbarriers, !o.is_relaxed);
  warp.set_predicate(o.done, lanes, done);
  return Step::kNext;
}

// ---- mapa, getctarank

struct Operands {
  RegisterSlot to, address, rank;
};

/// Sets the rank in the high bits of a 32-bit shared address, or of the lower half of a generic
/// address.
template <class T>
Step map_address(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Operands>();
  const size_t num_blocks = warp.block->cluster->blocks.size();
  for_each_lane(lanes, [&](int lane) {
    const uint32_t rank = warp.row<uint32_t>(o.rank)[lane];
    if (rank >= num_blocks)
      fault(warp, i, lane, "mapa of rank %u in a cluster of %zu blocks", rank, num_blocks);
    const T address = warp.row<T>(o.address)[lane];
    warp.row<T>(o.to)[lane] = (address & ~(T{0xFF} << kRankShift)) | T{rank} << kRankShift;
  });
  return Step::kNext;
}

template <class T>
Step get_rank(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Operands>();
  const T *address = warp.row<T>(o.address);
  set_lanes(warp.row<uint32_t>(o.to), lanes,
            [&](int lane) { return static_cast<uint32_t>(address[lane]) >> kRankShift; });
  return Step::kNext;
}

// ---- decoding

void decode_init(Decoder &d, Instruction &i) {
  need_form(d, "init shared|shared::cta? b64", 2);
  i.make<Init>() = {decode_address(d, d.operands()[0]), d.read(d.operands()[1], 4)};
  i.execute = init;
}

void decode_invalidate(Decoder &d, Instruction &i) {
  need_form(d, "inval shared|shared::cta? b64", 1);
  i.make<AddressOperand>() = decode_address(d, d.operands()[0]);
  i.execute = invalidate;
}

/// Decodes mbarrier.arrive{_drop}{.expect_tx} {state|_,} [address]{, tx-count | count}, and
/// mbarrier.expect_tx [address], tx-count.
void decode_arrive(Decoder &d, Instruction &i) {
  const bool arrives = d.part(1) != "expect_tx";
  const auto &operands = d.operands();
  const bool has_result =
      arrives && !operands.empty() && operands[0].kind != ptx::OperandKind::kAddress;
  const size_t at = has_result ? 1 : 0;
  need_form(d,
            arrives ? "arrive|arrive_drop expect_tx? release|relaxed? cta|cluster? "
                      "shared|shared::cta|shared::cluster? b64"
                    : "expect_tx relaxed? cta|cluster? shared|shared::cta|shared::cluster? b64",
            at + (d.has("expect_tx") ? 2 : 1), at + 2);
  auto &o = i.make<Arrive>();
  o.drops = d.part(1) == "arrive_drop";
  o.arrives = arrives;
  o.expects = d.has("expect_tx");
  o.in_cluster = d.has("shared::cluster");
  o.is_relaxed = d.has("relaxed");
  o.address = decode_address(d, operands[at]);
  o.has_count = operands.size() > at + 1;
  if (o.has_count) o.count = d.read(operands[at + 1], 4);
  o.has_state = has_result && operands[0].kind == ptx::OperandKind::kRegister;
  if (o.has_state) o.state = d.write(operands[0], 8);
  i.execute = arrive;
}

/// Decodes mbarrier.{try,test}_wait{.parity} done, [address], phase{, time}; the time is ignored.
void decode_wait(Decoder &d, Instruction &i, bool may_block) {
  need_form(d, "try_wait|test_wait parity? acquire|relaxed? cta|cluster? shared|shared::cta? b64",
            3, may_block ? 4 : 3);
  auto &o = i.make<Wait>();
  o.has_parity = d.has("parity");
  o.may_block = may_block;
  o.is_relaxed = d.has("relaxed");
  o.address = decode_address(d, d.operands()[1]);
  o.phase = d.read(d.operands()[2], o.has_parity ? 4 : 8);
  if (d.operands().size() == 4) d.read(d.operands()[3], 4);
  o.done = d.write(d.operands()[0], 1);
  i.is_collective = true;
  i.execute = wait;
}

}  // namespace

void check_mbarrier_visible(Warp &warp, const Instruction &i, int lane, uint32_t mbarrier,
                            MbarrierUser user) {
  const uint32_t rank = mbarrier >> kRankShift;
  if (rank == warp.block->rank) {
    // Other threads see it after a barrier, as they do other generic writes.
    if (user != MbarrierUser::kBulkCopy || !options().checks_fences) return;
    const int thread = warp.block->unfenced_mbarriers.unfenced_thread_of_own(
        mbarrier & kOffsetMask, warp.bulk.fenced[static_cast<size_t>(lane)]);
    if (thread >= 0)
      violation(warp, i, lane,
                "signals an mbarrier through the async proxy, which thread %d has initialized "
                "without a subsequent fence.mbarrier_init or fence.proxy.async",
                thread);
    return;
  }
  const int thread = warp.block->cluster->blocks[rank]->unfenced_mbarriers.unfenced_thread(
      mbarrier & kOffsetMask, user);
  if (thread >= 0)
    violation(warp, i, lane,
              "signals an mbarrier of block %u of the cluster, whose thread %d has initialized it "
              "without a subsequent fence.mbarrier_init",
              rank, thread);
}

void complete_transaction(Warp &warp, const Instruction &i, int lane, uint32_t mbarrier,
                          uint32_t bytes) {
  std::byte *at = place_of(warp, i, lane, mbarrier, true);
  Mbarrier m = read(warp, i, lane, at);
  m.tx_count -= static_cast<int32_t>(bytes);
  write(warp, i, lane, mbarrier, at, m);
}

void decode_mbarrier(Decoder &d, Instruction &i) {
  const std::string_view what = d.part(1);
  if (what == "init") return decode_init(d, i);
  if (what == "inval") return decode_invalidate(d, i);
  const bool may_block = what == "try_wait";
  if (may_block || what == "test_wait") return decode_wait(d, i, may_block);
  decode_arrive(d, i);
}

void decode_cluster_address(Decoder &d, Instruction &i) {
  const bool maps = d.opcode() == "mapa";
  need_form(d, "shared::cluster? u32|u64", maps ? 3 : 2);
  const bool is_wide = d.type() == "u64";
  const int width = is_wide ? 8 : 4;
  auto &o = i.make<Operands>();
  o.address = d.read(d.operands()[1], width);
  if (maps) {
    o.rank = d.read(d.operands()[2], 4);
    o.to = d.write(d.operands()[0], width);
    i.execute = is_wide ? map_address<uint64_t> : map_address<uint32_t>;
  } else {
    o.to = d.write(d.operands()[0], 4);
    i.execute = is_wide ? get_rank<uint64_t> : get_rank<uint32_t>;
  }
}

}  // namespace softgpu
