// Reason and causing node of every node's type.
#include "known_graphs.h"
#include "test_graph.h"

using namespace mptest;
using namespace mptest::autocast;

namespace {

struct Reason {
  const char *node;
  mp_autocast_reason_t why;
  const char *because;  ///< nullptr: none
};

void check_reasons(const Policy &policy, Graph graph, std::initializer_list<Reason> reasons) {
  const Result result = rewrite(policy, graph);
  CHECK(reasons.size() == graph.nodes.size());
  for (const Reason &reason : reasons) {
    CAPTURE(reason.node);
    const auto node = static_cast<size_t>(graph.find_node(reason.node));
    CHECK(static_cast<int>(result.node_reason[node]) == reason.why);
    CHECK(result.node_cause[node] ==
          (reason.because != nullptr ? graph.find_node(reason.because) : -1));
  }
}

}  // namespace

TEST_CASE("autocast: every node has its reason and cause", "[autocast]") {
  const Policy policy(MP_AUTOCAST_PRESET_TENSORFLOW);
  check_reasons(policy, Graph::parse(kDenyChain),
                {{"input", MP_AUTOCAST_REASON_UNLISTED, nullptr},
                 {"deny", MP_AUTOCAST_REASON_DENY_LIST, nullptr},
                 {"infer1", MP_AUTOCAST_REASON_DENY_UPSTREAM, "deny"},
                 {"clear1", MP_AUTOCAST_REASON_DENY_UPSTREAM, "deny"},
                 {"infer2", MP_AUTOCAST_REASON_DENY_UPSTREAM, "deny"},
                 {"clear2", MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, "allow"},
                 {"allow", MP_AUTOCAST_REASON_ALLOW_LIST, nullptr},
                 {"fetch", MP_AUTOCAST_REASON_KEPT, nullptr}});
  check_reasons(policy, Graph::parse(kTwoProducts),
                {{"input", MP_AUTOCAST_REASON_UNLISTED, nullptr},
                 {"clr1", MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, "allow0"},
                 {"allow0", MP_AUTOCAST_REASON_ALLOW_LIST, nullptr},
                 {"clr2", MP_AUTOCAST_REASON_BETWEEN_ALLOW, "allow1"},
                 {"infer1", MP_AUTOCAST_REASON_BETWEEN_ALLOW, "allow1"},
                 {"clr3", MP_AUTOCAST_REASON_BETWEEN_ALLOW, "allow1"},
                 {"allow1", MP_AUTOCAST_REASON_ALLOW_LIST, nullptr},
                 {"clr4", MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, "allow1"},
                 {"fetch", MP_AUTOCAST_REASON_KEPT, nullptr}});
  check_reasons(policy, Graph::parse(R"(
integer i
a MatMul x x
b Tanh a
elsewhere MatMul b b !other_device
none MatMul a a !no_low
count Shape i >none
cast Cast i !cast =@1
c MatMul cast cast
list TensorListReserve >none
write TensorListSetItem list a >none
list2 TensorListReserve >none
write2 TensorListSetItem list2 b >none
unknown Anything list2
container list write
container list2 write2 unknown
back NextIteration a !back_edge
merge Merge b back
loop merge back)"),
                {{"a", MP_AUTOCAST_REASON_ALLOW_LIST, nullptr},
                 {"b", MP_AUTOCAST_REASON_NO_ALLOW_NEARBY, nullptr},
                 {"elsewhere", MP_AUTOCAST_REASON_OTHER_DEVICE, nullptr},
                 {"none", MP_AUTOCAST_REASON_NO_KERNEL, nullptr},
                 {"count", MP_AUTOCAST_REASON_NOT_FLOAT, nullptr},
                 {"cast", MP_AUTOCAST_REASON_CAST_ABSORBED, "c"},
                 {"c", MP_AUTOCAST_REASON_ALLOW_LIST, nullptr},
                 {"list", MP_AUTOCAST_REASON_CLUSTER_LOW, "write"},
                 {"write", MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, "a"},
                 {"list2", MP_AUTOCAST_REASON_NOT_FLOAT, nullptr},
                 {"write2", MP_AUTOCAST_REASON_NO_ALLOW_NEARBY, nullptr},
                 {"unknown", MP_AUTOCAST_REASON_UNLISTED, nullptr},
                 {"back", MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, "a"},
                 {"merge", MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, "a"}});

  mp_autocast_config_t config = mp_autocast_config_default(MP_BF16);
  config.amax_limit = 10.0f;
  config.depth_limit = 10;
  const Policy careful(config);
  careful.set_nodes("own/*", MP_OP_CLASS_ALLOW);
  check_reasons(careful, Graph::parse(R"(
own/a Anything x
b Tanh own/a
c MatMul b b ^11
d MatMul c c ~11
e MatMul d d ^10 ~10
f MatMul e e ~11
list TensorListReserve >none
write TensorListSetItem list e >none
kept TensorListGetItem list !keep_fp32
container list write kept)"),
                {{"own/a", MP_AUTOCAST_REASON_PATTERN, nullptr},
                 {"b", MP_AUTOCAST_REASON_FOLLOWS_ALLOW, "own/a"},
                 {"c", MP_AUTOCAST_REASON_RANGE, nullptr},
                 {"d", MP_AUTOCAST_REASON_RANGE, nullptr},
                 {"e", MP_AUTOCAST_REASON_ALLOW_LIST, nullptr},
                 {"f", MP_AUTOCAST_REASON_DEPTH, nullptr},
                 {"list", MP_AUTOCAST_REASON_NOT_FLOAT, nullptr},
                 {"write", MP_AUTOCAST_REASON_CLUSTER_FP32, "kept"},
                 {"kept", MP_AUTOCAST_REASON_KEPT, nullptr}});
}
