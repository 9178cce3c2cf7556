#include "softgpu/machine/global_memory.h"

#include <algorithm>
#include <cinttypes>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/tensor_map.h"
#include "softgpu/options.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

struct Entry {
  Allocation allocation;
  std::shared_ptr<WrittenBytes> written;  ///< null: initialization is not tracked
};

/// Entries sorted by address.  Inserting and erasing moves the pointers of later entries.
class Entries {
 public:
  void insert(std::shared_ptr<const Entry> entry) {
    const auto behind = behind_of(entry->allocation.begin);
    places_.insert(behind, {entry->allocation.begin, std::move(entry)});
  }
  void erase(uint64_t begin) {
    const auto behind = behind_of(begin);
    if (behind != places_.begin() && behind[-1].begin == begin) places_.erase(behind - 1);
  }

  size_t size() const { return places_.size(); }
  /// Returns the last entry that begins at or before the address, or null.
  const std::shared_ptr<const Entry> *before(uint64_t address) const {
    const auto behind = behind_of(address);
    return behind == places_.begin() ? nullptr : &behind[-1].entry;
  }
  /// Returns the first entry that begins after the address, or null.
  const Entry *after(uint64_t address) const {
    const auto behind = behind_of(address);
    return behind == places_.end() ? nullptr : behind->entry.get();
  }
  /// Returns the entry that begins at the address, or null.
  std::shared_ptr<const Entry> at(uint64_t begin) const {
    const auto *entry = before(begin);
    return entry != nullptr && (*entry)->allocation.begin == begin ? *entry : nullptr;
  }

 private:
  struct Place {
    uint64_t begin;
    std::shared_ptr<const Entry> entry;
  };
  std::vector<Place>::const_iterator behind_of(uint64_t address) const {
    return std::ranges::upper_bound(places_, address, {}, &Place::begin);
  }

  std::vector<Place> places_;
};

/// Allocations of the process.
class Registry {
 public:
  /// Never destroyed: modules of the host program register variables before main and free memory
  /// after main.
  static Registry &get() {
    static Registry &registry = *new Registry;
    return registry;
  }

  void add(const Allocation &a) {
    const bool watches = options().checks_initialised && a.kind == MemoryKind::kDevice;
    auto written = watches ? std::make_shared<WrittenBytes>(a.size) : nullptr;
    auto entry = std::make_shared<const Entry>(a, std::move(written));
    const std::lock_guard lock(mutex_);
    entries_.erase(a.begin);
    entries_.insert(std::move(entry));
    note_change(a.begin);
  }

  std::optional<Allocation> remove(uint64_t begin) {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<const Entry> entry = entries_.at(begin);
    if (!entry) return std::nullopt;
    entries_.erase(begin);
    removed_.push_front(entry->allocation);
    if (removed_.size() > kMaxRemoved) removed_.pop_back();
    note_change(begin);
    return entry->allocation;
  }

  const Entry *before(uint64_t address) {
    const std::shared_ptr<const Entry> *e = entries().before(address);
    return e == nullptr ? nullptr : e->get();
  }
  const Entry *find(uint64_t address) {
    const Entry *e = before(address);
    return e != nullptr && address - e->allocation.begin < e->allocation.size ? e : nullptr;
  }
  const Entry *after(uint64_t address) { return entries().after(address); }

  std::optional<Allocation> find_removed(uint64_t address) {
    const std::lock_guard lock(mutex_);
    for (const Allocation &a : removed_)
      if (address - a.begin < a.size) return a;
    return std::nullopt;
  }

 private:
  static constexpr size_t kMaxRemoved = 256, kMinChanges = 64;

  void note_change(uint64_t begin) {
    changes_.push_back(begin);
    // A thread that missed more changes than there are entries copies the entries.
    while (changes_.size() > entries_.size() + kMinChanges) changes_.pop_front();
    version_++;
  }

  /// Returns this host thread's copy of the entries.  Comparing the version detects changes without
  /// locking.
  const Entries &entries() {
    struct Copy {
      uint64_t version = 0;
      Entries entries;
    };
    thread_local Copy copy;
    if (copy.version != version_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      update(copy.entries, version_ - copy.version);
      copy.version = version_;
    }
    return copy.entries;
  }

  /// Applies the last `num_missed` changes to a copy.
  void update(Entries &copy, uint64_t num_missed) {
    if (num_missed > changes_.size()) {
      copy = entries_;
      return;
    }
    for (size_t i = changes_.size() - num_missed; i < changes_.size(); i++) {
      copy.erase(changes_[i]);
      if (auto now = entries_.at(changes_[i])) copy.insert(std::move(now));
    }
  }

  std::mutex mutex_;
  Entries entries_;
  /// Start addresses of the entries that were added or removed last.
  std::deque<uint64_t> changes_;
  std::deque<Allocation> removed_;    ///< removed last
  std::atomic<uint64_t> version_{1};  ///< number of changes
};

/// Describes the allocations nearest to an address, for a message.
std::string describe_neighbour(uint64_t address) {
  constexpr uint64_t kNear = 1 << 20;
  const Entry *before = Registry::get().before(address), *after = Registry::get().after(address);
  const uint64_t behind =
      before ? address - before->allocation.begin - before->allocation.size : kNear;
  const uint64_t ahead = after ? after->allocation.begin - address : kNear;
  if (behind <= ahead && behind < kNear)
    return format("%" PRIu64 " bytes after the end of %s of %" PRIu64 " bytes", behind,
                  before->allocation.name.c_str(), before->allocation.size);
  if (ahead < kNear)
    return format("%" PRIu64 " bytes before %s of %" PRIu64 " bytes", ahead,
                  after->allocation.name.c_str(), after->allocation.size);
  return "no allocation nearby";
}

/// Describes freed memory at an address, for a message.
std::string describe_past(uint64_t address) {
  const std::optional<Allocation> a = Registry::get().find_removed(address);
  if (!a) return "";
  return format("; %s of %" PRIu64 " bytes at this address was freed", a->name.c_str(), a->size);
}

std::string describe_place(const Entry *entry, uint64_t address) {
  if (entry == nullptr) return describe_neighbour(address) + describe_past(address);
  const Allocation &a = entry->allocation;
  return format("across the end of %s of %" PRIu64 " bytes, at %" PRIu64, a.name.c_str(), a.size,
                address - a.begin);
}

/// Returns whether the initialization of these bytes is tracked.
bool watches(const Entry *entry, uint64_t address, uint64_t bytes) {
  return entry != nullptr && entry->written && entry->allocation.holds(address, bytes);
}

}  // namespace

void add_allocation(const Allocation &a) {
  Registry::get().add(a);
}

std::optional<Allocation> remove_allocation(uint64_t begin) {
  const std::optional<Allocation> removed = Registry::get().remove(begin);
  if (removed) ChangedMaps::get().forget(removed->begin, removed->size);
  return removed;
}

std::optional<Allocation> find_allocation(uint64_t address) {
  const Entry *e = Registry::get().find(address);
  return e == nullptr ? std::nullopt : std::optional(e->allocation);
}

std::string name_byte(uint64_t address) {
  const std::optional<Allocation> a = find_allocation(address);
  return format("byte %" PRIu64 " of %s", a ? address - a->begin : address,
                a ? a->name.c_str() : "global memory");
}

void note_written(uint64_t address, uint64_t bytes) {
  if (!options().checks_initialised) return;
  const Entry *e = Registry::get().find(address);
  if (!watches(e, address, bytes)) return;
  e->written->set(address - e->allocation.begin, bytes);
}

void note_copied(uint64_t to, uint64_t from, uint64_t bytes) {
  if (!options().checks_initialised) return;
  const Entry *source = Registry::get().find(from), *target = Registry::get().find(to);
  if (!watches(source, from, bytes)) return note_written(to, bytes);
  if (!watches(target, to, bytes)) return;
  target->written->copy(to - target->allocation.begin, *source->written,
                        from - source->allocation.begin, bytes);
}

UnwrittenBytes find_unwritten(uint64_t address, uint64_t bytes) {
  if (!options().checks_initialised) return {};
  const Entry *e = Registry::get().find(address);
  if (!watches(e, address, bytes)) return {};
  UnwrittenBytes found = e->written->find_unwritten(address - e->allocation.begin, bytes);
  found.first += e->allocation.begin;
  return found;
}

std::byte *global_at(Warp &warp, const Instruction &i, int lane, uint64_t address, uint32_t bytes,
                     bool is_write) {
  std::byte *const place = reinterpret_cast<std::byte *>(address);
  TouchedRange &touched = warp.tally->touched[warp.program->index_of(i)];
  if (address - touched.begin <= touched.size && bytes <= touched.size - (address - touched.begin))
    return place;

  const char *const verb = is_write ? "write" : "read";
  const Grid &grid = *warp.block->grid;
  const uint64_t parameter = address - reinterpret_cast<uint64_t>(grid.parameters);
  if (parameter <= warp.program->parameter_bytes &&
      bytes <= warp.program->parameter_bytes - parameter) {
    if (is_write) fault(warp, i, lane, "writes a parameter of the kernel");
    return place;
  }
  if ((address & kWindowMask) == kSharedWindow || (address & kWindowMask) == kLocalWindow)
    fault(warp, i, lane, "%s of global memory at a generic address of %s memory, %#" PRIx64, verb,
          (address & kWindowMask) == kSharedWindow ? "shared" : "local", address);
  const Entry *e = Registry::get().find(address);
  if (e == nullptr || !e->allocation.holds(address, bytes))
    fault(warp, i, lane, "out of bounds: %s of %u bytes at %#" PRIx64 ", %s", verb, bytes, address,
          describe_place(e, address).c_str());
  const Allocation &a = e->allocation;
  if (a.kind != MemoryKind::kMappedHost && !may_reach(grid.device, a.device))
    fault(warp, i, lane, "%s at %#" PRIx64 ", in %s of device %d, by a kernel on device %d", verb,
          address, a.name.c_str(), a.device, grid.device);
  touched = {a.begin, a.size};
  return place;
}

std::byte *shared_at(Warp &warp, const Instruction &i, int lane, uint32_t address, uint32_t bytes) {
  SharedMemory &smem = warp.block->smem;
  const uint32_t offset = address - (smem.rank() << kRankShift);
  if (smem.holds(offset, bytes)) return smem.at(offset);
  if (address >> kRankShift != smem.rank())
    fault(warp, i, lane, "access to shared::cta memory at %#x, which is not in its own block",
          address);
  return smem_in_cluster(warp, i, lane, address, bytes).bytes;
}

SmemPlace smem_in_cluster(Warp &warp, const Instruction &i, int lane, uint32_t address,
                          uint32_t bytes) {
  const uint32_t rank = address >> kRankShift, offset = address & kOffsetMask;
  const auto &blocks = warp.block->cluster->blocks;
  if (rank >= blocks.size())
    fault(warp, i, lane, "shared address %#x is in no block of the cluster", address);
  Block &block = *blocks[rank];
  if (!block.smem.holds(offset, bytes))
    fault(warp, i, lane, "out of bounds of shared memory: %u bytes at %d of %u", bytes,
          static_cast<int>(offset) - static_cast<int>(kReservedSmem), block.smem.size());
  if (block.num_running == 0 && &block != warp.block)
    violation(warp, i, lane, "accesses the shared memory of a block that has exited");
  return {&block, offset, block.smem.at(offset)};
}

}  // namespace softgpu
