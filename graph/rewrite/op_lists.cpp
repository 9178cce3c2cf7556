#include "graph/rewrite/policy.h"

#include <algorithm>

namespace mp::autocast {

namespace {

constexpr ListedOp kOps[] = {
#include "graph/rewrite/op_lists.inc"
};

constexpr bool are_in_order() {
  for (size_t i = 1; i < std::size(kOps); i++)
    if (!(kOps[i - 1].name < kOps[i].name)) return false;
  return true;
}

constexpr bool have_known_letters() {
  return std::all_of(std::begin(kOps), std::end(kOps), [](const ListedOp &op) {
    return op.letters.size() == 5 &&
           op.letters.find_first_not_of("AIDCPX.") == std::string_view::npos;
  });
}

static_assert(are_in_order(), "op_lists.inc is sorted, and names every operation once");
static_assert(have_known_letters());

constexpr std::string_view kNeverForced[] = {
    "Const",
    "Constant",
    "NegativeLogLikelihoodLoss",
    "ReadVariableOp",
    "SoftmaxCrossEntropyLoss",
    "SoftmaxCrossEntropyWithLogits",
    "SoftmaxXent",
    "SparseSoftmaxCrossEntropyWithLogits",
    "VarHandleOp",
    "Variable",
    "VariableV2",
    "cross_entropy",
    "cross_entropy_loss",
    "nll_loss",
};
static_assert(std::is_sorted(std::begin(kNeverForced), std::end(kNeverForced)));

}  // namespace

mp_op_class_t ListedOp::op_class(mp_autocast_preset_t preset) const {
  switch (letter(preset)) {
    case 'A':
      return MP_OP_CLASS_ALLOW;
    case 'I':
      return MP_OP_CLASS_INFER;
    case 'C':
      return MP_OP_CLASS_CLEAR;
    case 'P':
      return MP_OP_CLASS_PROMOTE;
    case 'D':
    case 'X':
      return MP_OP_CLASS_DENY;
    default:
      return MP_OP_CLASS_UNLISTED;
  }
}

std::span<const ListedOp> listed_ops() {
  return kOps;
}

bool is_never_forced(std::string_view op) {
  return std::binary_search(std::begin(kNeverForced), std::end(kNeverForced), op);
}

}  // namespace mp::autocast
