// Precision of every vertex, low (16-bit) or fp32, and the reason for it.
#pragma once

#include <vector>

#include "graph/rewrite/policy.h"
#include "graph/rewrite/vertices.h"

namespace mp::autocast {

/// Precision assignment of a graph.  Depends only on policy and graph.  Node numbers affect only
/// which of several causes is reported.
class PrecisionAssignment {
 public:
  /// @param graph  validated by the caller
  PrecisionAssignment(const Policy &policy, const mp_autocast_graph_t &graph);

  const Vertices &vertices() const { return vertices_; }
  bool uses_torch_rules() const { return policy_.uses_torch_rules(); }
  bool is_low(int32_t vertex) const { return has(vertex, kLow); }
  bool is_low_node(int32_t node) const { return is_low(vertices_.main_vertex(node)); }
  mp_autocast_reason_t reason(int32_t node) const;
  /// Returns the node that caused the precision, or -1.
  int32_t cause(int32_t node) const;
  /// Returns the earlier of the two nodes that made a node low by
  /// MP_AUTOCAST_REASON_BETWEEN_ALLOW, or -1.
  int32_t upstream(int32_t node) const;

 private:
  enum Bits : uint8_t {
    kLow = 1 << 0,
    kDenied = 1 << 1,
    kProcessable = 1 << 2,
    kAble = 1 << 3,
    kReadsVariable = 1 << 4,
    kInside = 1 << 5,  ///< in the set that a search may enter
    kSeen = 1 << 6     ///< visited by the search
  };
  enum Direction { kForward, kBackward, kBoth };

  void classify();
  void force_all();
  void apply_limits();
  void allow();
  void deny();
  void between_allow();
  void follow_allow();
  void clear_next_to_low();
  void propagate_forward();
  void revert_unsupported();
  void containers();
  void loops();
  void unify_clusters();
  void absorb_casts();

  template <class IsRoot, class MayEnter, class Enter>
  void search(Direction direction, const IsRoot &is_root, const MayEnter &may_enter,
              const Enter &enter);

  bool has(int32_t v, Bits bit) const { return (bits_[static_cast<size_t>(v)] & bit) != 0; }
  void set(int32_t v, Bits bit) { bits_[static_cast<size_t>(v)] |= bit; }
  void clear(int32_t v, Bits bit) { bits_[static_cast<size_t>(v)] &= static_cast<uint8_t>(~bit); }
  void clear_all(Bits bit);
  mp_op_class_t class_of(int32_t v) const {
    return static_cast<mp_op_class_t>(class_[static_cast<size_t>(v)]);
  }
  bool is(int32_t v, mp_op_class_t op_class) const { return class_of(v) == op_class; }
  bool can_be_low(int32_t v) const {
    return has(v, kProcessable) && has(v, kAble) && !has(v, kDenied);
  }
  /// Returns whether a vertex is an endpoint of the paths of between_allow().
  bool is_allow_root(int32_t v) const { return is(v, MP_OP_CLASS_ALLOW) && has(v, kLow); }
  void give_reason(int32_t v, mp_autocast_reason_t reason, int32_t cause);
  void make_low(int32_t v, mp_autocast_reason_t reason, int32_t cause);
  void make_fp32(int32_t v, mp_autocast_reason_t reason, int32_t cause);

  const Policy &policy_;
  const mp_autocast_graph_t &graph_;
  Vertices vertices_;
  std::vector<uint8_t> class_;
  std::vector<uint8_t> bits_;
  std::vector<uint8_t> reasons_;   ///< 0 if the class is the reason
  std::vector<int32_t> causes_;    ///< cause, as a node
  std::vector<int32_t> origin_;    ///< root of the latest search that reached the vertex
  std::vector<int32_t> upstream_;  ///< preceding ALLOW vertex
  std::vector<int32_t> queue_;
};

}  // namespace mp::autocast
