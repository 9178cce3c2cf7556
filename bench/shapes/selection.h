// Which shapes of a list are measured.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "bench/options.h"

namespace mpbench {

/// Of each kind, with --quick.
constexpr size_t kQuickOfKind = 2;

// The host target takes about 0.1 s for as many operations on two cores.
constexpr double kMaxHostFlop = 1.6e9;
// The software device takes about 10 s.
constexpr double kMaxCountedFlop = 1.5e11;

/// At most `count` of each kind, spread over those of its kind.
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

/// What --filter, --quick and --limit ask for.
/// @tparam Item  has label(), in which --filter looks; kind(), of which --quick takes some; and
///               effort_flop(), operations that take as long, by which --quick knows what
///               is slow without a GPU
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

}  // namespace mpbench
