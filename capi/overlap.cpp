// See overlap.h.
#include "capi/overlap.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace mp {

namespace {

/// Run of bytes, repeated at up to two levels, the larger pitch first.  Levels without gaps are
/// merged into the run.
struct Lattice {
  int64_t run;
  std::array<Region::Level, 2> levels;

  explicit Lattice(const Region &region) : run(region.run), levels{region.items, region.rows} {
    for (Region::Level &level : levels)
      if (level.pitch == 0 || level.count == 1) level = {};
    if (levels[0].pitch < levels[1].pitch) std::swap(levels[0], levels[1]);
    absorb(levels[1]);
    if (levels[1].count == 1) absorb(levels[0]);
    if (levels[0].count == 1) std::swap(levels[0], levels[1]);
  }

  /// Makes the levels of both comparable, if `other` has a single level with a smaller pitch.
  void match(Lattice &other) {
    const Region::Level single = other.levels[0];
    if (single.count == 1 || other.levels[1].count > 1 || levels[0].pitch <= single.pitch) return;
    if (levels[1].pitch == single.pitch && levels[0].pitch == levels[1].count * levels[1].pitch)
      levels = {{{levels[0].count * levels[1].count, levels[1].pitch}, {}}};  // rows of one matrix
    else
      std::swap(other.levels[0], other.levels[1]);
  }

  /// Returns the extent, in bytes, of the levels from `depth` on.
  int64_t extent(size_t depth) const {
    int64_t bytes = run;
    for (size_t i = depth; i < levels.size(); i++) bytes += (levels[i].count - 1) * levels[i].pitch;
    return bytes;
  }

 private:
  void absorb(Region::Level &level) {
    if (level.count == 1 || level.pitch > run) return;
    run += (level.count - 1) * level.pitch;
    level = {};
  }
};

/// Returns whether a and b, without their first `depth` levels, overlap; b begins `offset` bytes
/// after a.
bool overlap(const Lattice &a, const Lattice &b, int64_t offset, size_t depth) {
  if (offset >= a.extent(depth) || offset <= -b.extent(depth)) return false;
  if (depth == a.levels.size()) return true;
  const Region::Level &of_a = a.levels[depth], &of_b = b.levels[depth];
  const int64_t pitch = std::max(of_a.pitch, of_b.pitch);
  if (pitch == 0) return true;  // neither has a gap
  const bool agree = of_a.count == 1 || of_b.count == 1 || of_a.pitch == of_b.pitch;
  if (!agree || std::max(a.extent(depth + 1), b.extent(depth + 1)) > pitch) return true;
  // Row j of b begins in row `first` + j of a, or in the gap after it, and may end in the next row.
  const int64_t first = offset / pitch - (offset % pitch < 0 ? 1 : 0);
  const auto rows_meet = [&](int64_t shift) {
    return shift < of_a.count && shift > -of_b.count &&
           overlap(a, b, offset - shift * pitch, depth + 1);
  };
  return rows_meet(first) || rows_meet(first + 1);
}

}  // namespace

void require_no_shared_byte(const Region &written, const Region &other) {
  if (written.extent() == 0 || other.extent() == 0) return;
  Lattice a(written), b(other);
  a.match(b);
  b.match(a);
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(other.data) -
                                           reinterpret_cast<uintptr_t>(written.data));
  MP_REQUIRE(!overlap(a, b, offset, 0), MP_ERROR_INVALID_ARGUMENT, written.name, " = ",
             written.data, " overlaps ", other.name, " = ", other.data);
}

// ---------------------------------------------------------------------------- all tensors

namespace {

bool is_written(const TensorRow &row) {
  return row.access >= kMayWrite;
}

void require_address(const TensorRow &row) {
  const Region &region = row.region;
  if (row.access == kReads || row.access == kWrites)
    require_device(region.data, region.name, region.alignment);
  else
    require_aligned(region.data, region.name, region.alignment);
}

/// Returns whether a written tensor begins at a tensor that it may replace.
bool is_in_place(const TensorRow &written, const Region &other) {
  return written.region.data == other.data &&
         std::ranges::any_of(written.in_place, [&](const char *name) {
           return name != nullptr && std::strcmp(name, other.name) == 0;
         });
}

}  // namespace

void require_tensors(std::initializer_list<TensorRow> rows, const mp_grad_stats_t &stats,
                     const StatsNames &names) {
  for (const TensorRow &row : rows)
    if (row.region.extent() > 0) require_address(row);
  require_stats(stats, names);
  for (const TensorRow &written : rows) {
    if (!is_written(written)) continue;
    for (const TensorRow &other : rows) {
      const bool is_pair_of_a_later_row = is_written(other) && &other >= &written;
      if (!is_pair_of_a_later_row && !is_in_place(written, other.region))
        require_apart(written.region, other.region);
    }
  }
  for (const Region &statistic : stats_regions(stats, names))
    for (const TensorRow &row : rows) require_apart(statistic, row.region);
}

}  // namespace mp
