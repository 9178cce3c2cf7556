// The lists of operations that the presets start from.
#pragma once

#include <span>
#include <string_view>

#include "mpcore.h"

namespace mp::autocast {

/// A row of op_lists.inc: an operation, and one letter for each preset.
struct ListedOp {
  std::string_view name;
  std::string_view letters;

  bool is_listed(mp_autocast_preset_t preset) const { return letters[preset] != '.'; }
  /// Must not be used at all where a host executes as it goes.  In a graph it is denied.
  bool is_banned(mp_autocast_preset_t preset) const { return letters[preset] == 'X'; }
  mp_autocast_class_t op_class(mp_autocast_preset_t preset) const;
};

/// All of them, in order of their names.
std::span<const ListedOp> listed_ops();

/// Constants, state and cross-entropies, which MP_AUTOCAST_FORCE_ALL leaves alone.
bool is_never_forced(std::string_view op);

}  // namespace mp::autocast
