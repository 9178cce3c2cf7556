// Autocast policy: operation lists, patterns of node names, and a level.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mpcore.h"

namespace mp::autocast {

// ---------------------------------------------------------------------------- node names

/// Returns whether a shell pattern (* ? [a-z] [!a-z]) is valid: false if a [ is not closed.
bool is_glob(std::string_view pattern);

/// Returns whether all of `text` matches; * also matches "/".  Takes time up to the product of the
/// lengths and allocates no memory.
bool glob_matches(std::string_view pattern, std::string_view text);

// ---------------------------------------------------------------------------- presets

/// Returns whether MP_AUTOCAST_LEVEL_FORCE_ALL skips an operation: constants, state and
/// cross-entropies.
bool is_never_forced(std::string_view op);

// ---------------------------------------------------------------------------- policies

/// Class of an operation.
struct OpClass {
  mp_op_class_t op_class;
  bool is_banned;
};

/// Class of a node, and whether a pattern determined it.
struct NodeClass {
  mp_op_class_t op_class;
  bool is_by_pattern;
};

class Policy {
 public:
  explicit Policy(const mp_autocast_config_t &config);

  /// Moves an operation to a class.
  void set_class(std::string_view op, mp_op_class_t op_class);
  /// Removes an operation from its list.
  void forget(std::string_view op);
  /// @param pattern  must satisfy is_glob()
  void set_nodes(std::string_view pattern, mp_op_class_t op_class);

  /// Returns nullopt if the operation is not listed.
  std::optional<OpClass> listed(std::string_view op) const;
  /// Returns the class of an operation, before at_level().
  mp_op_class_t class_of(std::string_view op) const;
  /// Returns the class of node i before at_level(): by pattern, else node_class, else operation.
  NodeClass class_of_node(const mp_autocast_graph_t &graph, uint32_t i) const;
  /// Returns the class after the level is applied.
  mp_op_class_t at_level(mp_op_class_t op_class) const;

  /// Returns whether one forward pass replaces propagation: for MP_AUTOCAST_PRESET_PYTORCH.
  bool uses_torch_rules() const { return config.preset == MP_AUTOCAST_PRESET_PYTORCH; }

  /// Returns "allow: Conv2D MatMul ...", one line per class, sorted.
  std::string lists_as_text() const;

  mp_autocast_config_t config;
  bool is_off = false;     ///< disabled by the environment
  std::string log_folder;  ///< empty: no log
  mutable std::atomic<bool> is_used = false;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Pattern {
    std::string text;
    mp_op_class_t op_class;
  };
  std::unordered_map<std::string, OpClass, Hash, std::equal_to<>> ops_;
  std::vector<Pattern> patterns_;
};

/// Returns "allow", "infer", ...
std::string_view class_name(mp_op_class_t op_class);

}  // namespace mp::autocast
