// Reads the shapes of sets, and selects those to measure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "bench/options.h"
#include "sets.h"
#include "shape_file.h"

namespace mpbench {

/// Number of shapes per kind with --quick.
constexpr size_t kQuickOfKind = 2;

// Operations that take the host target about 0.1 s on two cores.
constexpr double kMaxHostFlop = 1.6e9;
// Operations that take the software device about 10 s.
constexpr double kMaxCountedFlop = 1.5e11;

/// Keeps at most `count` items per kind, spread evenly.
template <typename Item>
void keep_spread(std::vector<Item> &items, size_t count) {
  std::map<std::string, size_t> available, seen;
  for (const Item &item : items) ++available[item.kind()];
  std::erase_if(items, [&](const Item &item) {
    const size_t of_kind = available[item.kind()];
    const size_t place = seen[item.kind()]++;
    return place > 0 && place * count / of_kind == (place - 1) * count / of_kind;
  });
}

/// Returns the items that --filter, --quick and --limit select.
/// @tparam Item  has label(), which --filter matches; kind(), of which --quick takes some; and
///               effort_flop(), the equivalent number of operations, by which --quick skips items
///               that are slow without a GPU
template <typename Item>
std::vector<Item> selected(std::vector<Item> items, const Options &options, bool on_host) {
  std::erase_if(items, [&](const Item &item) {
    return item.label().find(options.filter) == std::string::npos;
  });
  if (options.quick && (on_host || options.counted))
    std::erase_if(items, [&](const Item &item) {
      return item.effort_flop() > (on_host ? kMaxHostFlop : kMaxCountedFlop);
    });
  if (options.quick) keep_spread(items, kQuickOfKind);
  const auto limit = static_cast<size_t>(options.limit);
  if (limit > 0 && items.size() > limit) items.erase(items.begin() + options.limit, items.end());
  return items;
}

/// Returns the selected items of a suite, in the order of sets and files.
/// @tparam Item  also has of_line(line, set): the items of a line of a set's file, e.g. its passes
/// @throws std::runtime_error if a file is missing or malformed
template <typename Item>
std::vector<Item> read_sets(std::string_view suite, const Options &options, bool on_host) {
  std::vector<Item> all;
  for (const ShapeSet &set : sets_of(suite, options.set)) {
    const auto parse = [&](std::string_view line) { return Item::of_line(line, set); };
    for (const auto &items : read_shape_lines(options.home + "/shapes/" + set.file, parse))
      all.insert(all.end(), items.begin(), items.end());
  }
  return selected(std::move(all), options, on_host);
}

}  // namespace mpbench
