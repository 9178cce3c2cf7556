// Operation lists of the presets.
#pragma once

#include <span>
#include <string_view>

#include "mpcore.h"

namespace mp::autocast {

/// Row of op_lists.inc: an operation, with one letter per preset.
struct ListedOp {
  std::string_view name;
  std::string_view letters;

  /// @param preset  1 for the first letter
  char letter(mp_autocast_preset_t preset) const {
    return letters[preset - MP_AUTOCAST_PRESET_DEFAULT];
  }
  bool is_listed(mp_autocast_preset_t preset) const { return letter(preset) != '.'; }
  /// Returns whether an operation must not be used in eager mode.  In a graph it is denied.
  bool is_banned(mp_autocast_preset_t preset) const { return letter(preset) == 'X'; }
  mp_op_class_t op_class(mp_autocast_preset_t preset) const;
};

/// Returns all rows, sorted by name.
std::span<const ListedOp> listed_ops();

/// Returns whether MP_AUTOCAST_LEVEL_FORCE_ALL skips an operation: constants, state and
/// cross-entropies.
bool is_never_forced(std::string_view op);

}  // namespace mp::autocast
