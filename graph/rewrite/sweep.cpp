// Rules of torch.amp for a complete graph: one forward pass instead of steps 2 to 5 of
// assign_precision.cpp.
//
// ALLOW vertices are 16-bit, DENY vertices are not.  Every other vertex runs in the type of its
// inputs: 16-bit if all its floating-point inputs are.  This is the least fixed point, so a cycle
// is 16-bit only if all inputs from outside the cycle are.
#include <algorithm>

#include "graph/rewrite/assign_precision.h"

namespace mp::autocast {

void PrecisionAssignment::sweep() {
  const auto count = static_cast<size_t>(vertices_.count());
  std::vector<int32_t> fp32_inputs(count, 0);
  clear_all(kInside);  // here: has an input
  for (int32_t v = 0; v < vertices_.count(); v++) {
    const auto before = static_cast<int32_t>(vertices_.backward.of(v).size());
    fp32_inputs[static_cast<size_t>(v)] = before;
    if (before > 0) set(v, kInside);
  }
  for_each_input(graph_, [&](int32_t node, int32_t input, int32_t tensor) {
    const uint8_t dtype = graph_.tensor_dtype[tensor];
    if (dtype == MP_DTYPE_NONE) return;
    const bool is_counted = dtype == MP_FP32 && graph_.tensor_producer[tensor] >= 0;
    if (is_counted) return;
    const uint8_t slot = vertices_.slots.of_input(input);
    for (int32_t v = vertices_.of_node(node); v < vertices_.end_of_node(node); v++) {
      if (vertices_.slot(v) != slot) continue;
      set(v, kInside);
      if (dtype != policy_.config.dtype_low) fp32_inputs[static_cast<size_t>(v)]++;
    }
  });

  const auto is_given_low = [&](int32_t v) {
    const bool takes_what_it_gets =
        is(v, MP_OP_CLASS_CLEAR) || is(v, MP_OP_CLASS_PROMOTE) || is(v, MP_OP_CLASS_INFER);
    return takes_what_it_gets && can_be_low(v) && has(v, kInside) &&
           fp32_inputs[static_cast<size_t>(v)] == 0;
  };
  queue_.clear();
  for (int32_t v = 0; v < vertices_.count(); v++) {
    if (!has(v, kLow) && is_given_low(v)) make_low(v, MP_AUTOCAST_REASON_FOLLOWS_ALLOW, -1);
    if (has(v, kLow) && has(v, kAble)) queue_.push_back(v);
  }
  for (size_t next = 0; next < queue_.size(); next++) {
    const int32_t from = queue_[next];
    for (const int32_t to : vertices_.forward.of(from)) {
      fp32_inputs[static_cast<size_t>(to)]--;
      if (has(to, kLow) || !is_given_low(to)) continue;
      make_low(to, MP_AUTOCAST_REASON_FOLLOWS_ALLOW, vertices_.node(from));
      queue_.push_back(to);
    }
  }
}

}  // namespace mp::autocast
