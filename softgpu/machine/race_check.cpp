#include "softgpu/machine/race_check.h"

#include "softgpu/machine/block.h"
#include "softgpu/machine/cluster.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

constexpr RaceKind kRead{false, false}, kWrite{true, false}, kStrongRead{false, true},
    kUpdate{true, true};
constexpr uint32_t kMbarrierBytes = 8;

/// Returns the lane, or -1 if there are several.
int only_lane(Lanes lanes) {
  return num_lanes(lanes) == 1 ? first_lane(lanes) : -1;
}

std::string name_byte(uint32_t address) {
  return format("byte %d of shared memory",
                static_cast<int>(address & kOffsetMask) - static_cast<int>(kReservedSmem));
}

const char *verb_of(const RaceAccess &access) {
  return access.writes ? (access.is_strong ? "updates" : "writes") : "reads";
}

}  // namespace

RaceCheck::RaceCheck(const Cluster &cluster, GlobalRaces &global, uint32_t first_cluster)
    : cluster_(cluster),
      global_(global),
      first_cluster_(first_cluster),
      warps_per_block_(static_cast<uint32_t>(cluster.grid->warps_per_block())),
      order_(static_cast<uint32_t>(cluster.blocks.size()) * warps_per_block_,
             first_cluster + static_cast<uint32_t>(cluster.index),
             global.ended_before(first_cluster)),
      has_waited_(cluster.blocks.size()) {
  for (const auto &block : cluster.blocks) shared_.of_block.emplace_back(block->smem.end());
}

uint32_t RaceCheck::index_of(const Warp &warp) const {
  return warp.block->rank * warps_per_block_ + static_cast<uint32_t>(warp.index);
}

RaceActorId RaceCheck::wgmma_of(const Warp &warp) const {
  return order_.id_of(RaceActor::kWgmma, index_of(warp) - static_cast<uint32_t>(warp.index % 4));
}

RaceAccess RaceCheck::access_of(const Warp &warp, const Instruction &i, Lanes lanes,
                                RaceKind kind) const {
  const uint32_t index = index_of(warp);
  return {lanes,
          order_.time_of(index),
          warp.program->index_of(i),
          order_.id_of(RaceActor::kThreads, index),
          kind.writes,
          kind.is_strong,
          kind.observes,
          order_.cluster()};
}

/// Returns an access of a bulk store, which waits for its group order.
RaceAccess RaceCheck::access_of_store(const BulkCopy &copy, RaceActor actor, RaceKind kind) const {
  RaceAccess now = access_of(*copy.warp, *copy.at, Lanes{1} << copy.lane, kind);
  now.actor = order_.id_of(actor, index_of(*copy.warp));
  now.time = copy.group + 1;
  return now;
}

/// Returns an access of a bulk load, which the phase of the block's mbarrier orders.
RaceAccess RaceCheck::access_of_load(const BulkCopy &copy, const Block &block, RaceKind kind) {
  const Mbarrier &mbarrier = mbarrier_at((copy.mbarrier & kOffsetMask) | block.rank << kRankShift);
  RaceAccess now = access_of(*copy.warp, *copy.at, 1, kind);
  now.actor = order_.id_of(RaceActor::kTma, mbarrier.index);
  now.time = mbarrier.num_phases + 1;
  return now;
}

// ---- accesses

template <class Address>
void RaceCheck::report(Warp &warp, const Instruction &i, int lane, Address address,
                       const RaceAccess &now, const RaceAccess &before) const {
  violation(warp, i, lane,
            "race: %s %s, which another %s, and nothing orders the two\n    the other: %s",
            verb_of(now), name_byte(address).c_str(), verb_of(before), describe(before).c_str());
}

template <class Memory, class Address>
void RaceCheck::touch_in(Memory &memory, Warp &warp, const Instruction &i, Lanes lanes,
                         const Address *addresses, uint32_t bytes, RaceAccess now) {
  const uint32_t index = index_of(warp);
  bool was_reported = false;
  // Lanes of one statement do not race: one of the writes to an address wins, and store_one_by_one
  // (isa/load_store.cpp) reports values that differ.  All lanes are therefore
  // compared with earlier accesses before any of them is added.
  for_each_value(addresses, lanes, [&](Address address, Lanes same) {
    now.lanes = same;
    const RaceAccess *race = memory.find_race(address, bytes, now, [&](const RaceAccess &x) {
      return order_.happened_before_all(x, index, same);
    });
    if (race == nullptr || was_reported) return;
    was_reported = true;
    const Lanes racing =
        lanes_where([&](int l) { return !order_.happened_before(*race, index, l); });
    report(warp, i, first_lane(same & racing), address, now, *race);
  });
  for_each_value(addresses, lanes, [&](Address address, Lanes same) {
    now.lanes = same;
    memory.add(address, bytes, now,
               [&](const RaceAccess &x) { return order_.happened_before_all(x, index, same); });
  });
}

template <class Memory, class Address, class Bytes>
void RaceCheck::copy_in(Memory &memory, Warp &warp, const Instruction &i, Lanes lanes,
                        const Address *addresses, Bytes &&bytes, RaceKind kind) {
  const uint32_t index = index_of(warp);
  RaceAccess now = access_of(warp, i, 0, kind);
  now.actor = order_.id_of(RaceActor::kCopies, index);
  now.component = order_.take_component(now.actor);
  for_each_lane(lanes, [&](int l) {
    now.lanes = Lanes{1} << l;
    now.time = order_.copy_group(index, l);
    const auto happened_before = [&](const RaceAccess &x) {
      return order_.happened_before(x, index, l);
    };
    if (const RaceAccess *race = memory.find_race(addresses[l], bytes(l), now, happened_before))
      report(warp, i, l, addresses[l], now, *race);
    memory.add(addresses[l], bytes(l), now, happened_before);
  });
}

template <class Memory, class Address>
void RaceCheck::touch_later(Memory &memory, Warp &warp, const Instruction &i, int lane,
                            Address address, uint64_t bytes, const RaceAccess &now,
                            const SharedClock &clock) {
  const auto happened_before = [&](const RaceAccess &x) { return order_.is_known(x, clock); };
  if (const RaceAccess *race = memory.find_race(address, bytes, now, happened_before))
    report(warp, i, lane, address, now, *race);
  memory.add(address, bytes, now, happened_before);
}

void RaceCheck::touch(Warp &warp, const Instruction &i, Lanes lanes, const uint32_t *addresses,
                      uint32_t bytes, RaceKind kind) {
  touch_in(shared_, warp, i, lanes, addresses, bytes, access_of(warp, i, 0, kind));
}

void RaceCheck::touch_together(Warp &warp, const Instruction &i, Lanes lanes, uint32_t address,
                               uint32_t bytes, RaceKind kind) {
  const RaceAccess now = access_of(warp, i, lanes, kind);
  const uint32_t index = index_of(warp);
  const auto happened_before = [&](const RaceAccess &x) {
    return order_.happened_before_all(x, index, lanes);
  };
  if (const RaceAccess *race = shared_.find_race(address, bytes, now, happened_before))
    report(warp, i, only_lane(lanes), address, now, *race);
  shared_.add(address, bytes, now, happened_before);
}

void RaceCheck::copy(Warp &warp, const Instruction &i, Lanes lanes, const uint32_t *addresses,
                     uint32_t bytes) {
  copy_in(
      shared_, warp, i, lanes, addresses, [&](int) { return bytes; }, kWrite);
}

void RaceCheck::read_wgmma(Warp &warp, const Instruction &i, const SharedClock &issued,
                           uint64_t sequence, uint32_t offset, uint32_t bytes) {
  RaceAccess now = access_of(warp, i, 1, kRead);
  now.actor = wgmma_of(warp);
  now.time = static_cast<uint32_t>(sequence + 1);
  touch_later(shared_, warp, i, -1, warp.block->rank << kRankShift | offset, bytes, now, issued);
}

void RaceCheck::read_bulk(const BulkCopy &copy) {
  const RaceAccess now = access_of_store(copy, RaceActor::kBulk, kRead);
  touch_later(shared_, *copy.warp, *copy.at, copy.lane, copy.smem, copy.num_bytes, now,
              copy.issued);
}

void RaceCheck::land_bulk(const BulkCopy &copy, Block &block) {
  const uint32_t rank = block.rank << kRankShift;
  RaceAccess now = access_of_load(copy, block, kWrite);
  touch_later(shared_, *copy.warp, *copy.at, copy.lane, (copy.smem & kOffsetMask) | rank,
              copy.num_bytes, now, copy.issued);
  now.is_strong = true;  // access to the mbarrier, which must be initialized
  touch_later(shared_, *copy.warp, *copy.at, copy.lane, (copy.mbarrier & kOffsetMask) | rank,
              kMbarrierBytes, now, copy.issued);
}

// ---- accesses to global memory

void RaceCheck::touch_global(Warp &warp, const Instruction &i, Lanes lanes,
                             const uint64_t *addresses, uint32_t bytes, RaceKind kind) {
  const auto lock = lock_global();
  RaceAccess now = access_of(warp, i, 0, kind);
  now.component = order_.take_component(now.actor);
  touch_in(global_, warp, i, lanes, addresses, bytes, now);
}

void RaceCheck::read_global_copy(Warp &warp, const Instruction &i, Lanes lanes,
                                 const uint64_t *addresses, const uint32_t *bytes) {
  const auto lock = lock_global();
  copy_in(
      global_, warp, i, lanes, addresses, [&](int l) { return bytes[l]; }, kRead);
}

/// Also reports generic writes of the grid that happened before the issue, but without a proxy
/// fence in between.  The end of a grid includes that fence.
void RaceCheck::touch_global_later(const BulkCopy &copy, RaceAccess now, uint64_t address,
                                   uint64_t bytes) {
  const auto lock = lock_global();
  now.component = order_.take_component(now.actor);
  const SharedClock &fenced = copy.issued->proxy_fenced;
  RaceAccess any_write = now;
  any_write.writes = any_write.is_strong = false;
  const RaceAccess *unfenced =
      global_.find_race(address, bytes, any_write, [&](const RaceAccess &x) {
        return x.cluster < first_cluster_ || order_.actor_of(x.actor) != RaceActor::kThreads ||
               !order_.is_known(x, copy.issued) || order_.is_known(x, fenced);
      });
  if (unfenced != nullptr)
    violation(*copy.warp, *copy.at, copy.lane,
              "%s global memory without fence.proxy.async after a generic write"
              "\n    the write: %s",
              now.writes ? "a bulk store writes" : "a bulk load reads",
              describe(*unfenced).c_str());
  touch_later(global_, *copy.warp, *copy.at, copy.lane, address, bytes, now, copy.issued);
}

void RaceCheck::read_global_bulk(const BulkCopy &copy, const Block &block, uint64_t address,
                                 uint64_t bytes) {
  touch_global_later(copy, access_of_load(copy, block, kRead), address, bytes);
}

void RaceCheck::write_global_bulk(const BulkCopy &copy, uint64_t address, uint64_t bytes) {
  touch_global_later(copy, access_of_store(copy, RaceActor::kStores, kWrite), address, bytes);
}

// ---- messages

std::string RaceCheck::describe(const RaceAccess &access) const {
  const auto lock = global_.lock();
  uint32_t cluster = access.cluster;
  const Grid &grid = global_.grid_of(&cluster);
  // The cluster may have ended.
  const auto warps_per_block = static_cast<uint32_t>(grid.warps_per_block());
  const RaceOrder order(grid.blocks_per_cluster() * warps_per_block, 0, nullptr);
  const uint32_t index = order.index_of(access.actor);
  const Instruction &at = grid.program->code[access.statement];
  Block block;
  Warp warp;
  block.grid = &grid;
  block.id = block_id(grid, cluster, index / warps_per_block);
  warp.block = &block;
  warp.program = grid.program;
  warp.index = static_cast<int>(index % warps_per_block);
  const int lane = only_lane(access.lanes);
  switch (order.actor_of(access.actor)) {
    case RaceActor::kWgmma:
    case RaceActor::kTma: {
      const SourceLine &source = grid.program->source[access.statement];
      return format("the asynchronous %s:%u: %s", grid.program->file.c_str(), source.line,
                    source.text.c_str());
    }
    case RaceActor::kCopies:
    case RaceActor::kBulk:
    case RaceActor::kStores:
      return "a copy in flight of " + location(warp, at, lane);
    default:
      return location(warp, at, lane);
  }
}

// ---- barriers

/// Returns the clock that an operation releases; for a relaxed operation, the clock of a previous
/// fence.
SharedClock RaceCheck::released_by(Warp &warp, int lane, bool releases) {
  return releases ? release(warp, Lanes{1} << lane) : order_.fenced(index_of(warp), lane);
}

/// Acquires a clock; for a relaxed operation, defers this to the next fence.
void RaceCheck::acquire(Warp &warp, Lanes lanes, const SharedClock &clock, bool acquires) {
  if (acquires) return order_.acquire(index_of(warp), lanes, clock);
  for_each_lane(lanes, [&](int l) { order_.acquire_at_fence(index_of(warp), l, clock); });
}

void RaceCheck::arrive(const NamedBarrier &barrier, Warp &warp, Lanes lanes) {
  barriers_[&barrier].join(*release(warp, lanes));
}

void RaceCheck::complete(const NamedBarrier &barrier) {
  const SharedClock arrived = share(barriers_[&barrier]);
  for (const NamedBarrier::Arrival &arrival : barrier.arrivals)
    if (arrival.waits) order_.acquire(index_of(*arrival.warp), arrival.lanes, arrived);
  barriers_.erase(&barrier);
}

void RaceCheck::arrive_at_cluster(Warp &warp, bool releases) {
  if (releases) return cluster_arrived_.join(*release(warp, warp.alive));
  for_each_lane(warp.alive, [&](int l) {
    const SharedClock fenced = released_by(warp, l, false);
    if (fenced) cluster_arrived_.join(*fenced);
  });
}

void RaceCheck::wait_for_cluster(Warp &warp) {
  order_.acquire(index_of(warp), warp.alive, cluster_completed_);
}

// ---- mbarriers

RaceCheck::Mbarrier &RaceCheck::mbarrier_at(uint32_t address) {
  const auto [at, is_new] = mbarriers_.try_emplace(address);
  if (is_new) at->second.index = static_cast<uint32_t>(mbarriers_.size() - 1);
  return at->second;
}

void RaceCheck::init_mbarrier(Warp &warp, const Instruction &i, int lane, uint32_t address) {
  touch_together(warp, i, Lanes{1} << lane, address, kMbarrierBytes, kWrite);
  Mbarrier &mbarrier = mbarrier_at(address);
  mbarrier.arrived = RaceClock();
  mbarrier.completed = nullptr;
}

void RaceCheck::use_mbarrier(Warp &warp, const Instruction &i, int lane, uint32_t address,
                             bool releases) {
  touch_together(warp, i, Lanes{1} << lane, address, kMbarrierBytes, kUpdate);
  const SharedClock clock = released_by(warp, lane, releases);
  if (clock) mbarrier_at(address).arrived.join(*clock);
}

void RaceCheck::complete_mbarrier(uint32_t address) {
  Mbarrier &mbarrier = mbarrier_at(address);
  mbarrier.num_phases++;
  order_.add_to(mbarrier.arrived, order_.id_of(RaceActor::kTma, mbarrier.index),
                mbarrier.num_phases);
  mbarrier.completed = share(mbarrier.arrived);
}

void RaceCheck::wait_for_mbarriers(Warp &warp, const Instruction &i, Lanes lanes,
                                   const uint32_t *addresses, bool acquires) {
  touch(warp, i, lanes, addresses, kMbarrierBytes, kStrongRead);
  for_each_value(addresses, lanes, [&](uint32_t address, Lanes same) {
    acquire(warp, same, mbarrier_at(address).completed, acquires);
  });
}

// ---- waits for asynchronous operations

void RaceCheck::wait_for_bulk(Warp &warp, Lanes lanes, uint32_t num_pending, bool until_read) {
  for_each_lane(lanes, [&](int l) {
    const uint32_t num_groups = warp.bulk.num_committed[static_cast<size_t>(l)];
    if (num_groups > num_pending)
      order_.wait_for_bulk(index_of(warp), l, num_groups - num_pending, until_read);
  });
}

void RaceCheck::wait_for_wgmma(Warp &warp, uint64_t num_done) {
  order_.learn(index_of(warp), kAllLanes, wgmma_of(warp), static_cast<uint32_t>(num_done));
}

void RaceCheck::wait_for_grid(Warp &warp, Lanes lanes) {
  RaceClock clock;
  clock.ended = global_.wait_for_previous(first_cluster_);
  order_.acquire(index_of(warp), lanes, share(clock));
  has_waited_[warp.block->rank] = true;
}

void RaceCheck::allow_dependents(const Block &block) {
  global_.allow_dependents(first_cluster_, has_waited_[block.rank]);
}

// ---- fences and flags

bool RaceCheck::is_global(uint64_t address) const {
  return address >> 32 != 0 && (address & kWindowMask) != kSharedWindow;
}

std::unique_lock<std::recursive_mutex> RaceCheck::lock_flags(Lanes lanes,
                                                             const uint64_t *addresses) {
  const bool any = (lanes & lanes_where([&](int l) { return is_global(addresses[l]); })) != 0;
  return any ? lock_global() : std::unique_lock<std::recursive_mutex>();
}

SharedClock RaceCheck::exported(const SharedClock &clock) {
  if (!clock) return nullptr;
  if (clock != to_export_) {
    to_export_ = clock;
    exported_ = share(clock->exported_by(order_.cluster()));
  }
  return exported_;
}

void RaceCheck::release_flags(Warp &warp, Lanes lanes, const uint64_t *addresses, bool is_update,
                              bool releases) {
  const auto lock = lock_flags(lanes, addresses);
  for_each_lane(lanes, [&](int l) {
    const bool is_of_global = is_global(addresses[l]);
    auto &flags = is_of_global ? global_.flags : flags_;
    SharedClock released = released_by(warp, l, releases);
    if (is_of_global) released = exported(released);
    // An update extends the release sequence of previous values: PTX ISA, Release Pattern.
    const auto flag = flags.find(addresses[l]);
    if (flag != flags.end())
      flag->second = is_update ? join(flag->second, released) : released;
    else if (released)
      flags[addresses[l]] = released;
  });
}

void RaceCheck::acquire_flags(Warp &warp, Lanes lanes, const uint64_t *addresses, bool acquires) {
  const auto lock = lock_flags(lanes, addresses);
  for_each_lane(lanes, [&](int l) {
    const bool is_of_global = is_global(addresses[l]);
    const auto &flags = is_of_global ? global_.flags : flags_;
    const auto flag = flags.find(addresses[l]);
    if (flag == flags.end() || !flag->second) return;
    const SharedClock clock =
        is_of_global ? share(flag->second->imported_by(order_.cluster())) : flag->second;
    acquire(warp, Lanes{1} << l, clock, acquires);
  });
}

}  // namespace softgpu
