// Environment variables that change a policy.
#include "test_graph.h"
#include "tests/support/surroundings.h"

using namespace mptest;
using namespace mptest::autocast;

namespace {

/// A policy created under the variables that are set.
struct UnderEnvironment {
  explicit UnderEnvironment(mp_autocast_preset_t preset, uint32_t flags = 0,
                            mp_autocast_level_t level = MP_AUTOCAST_LEVEL_NORMAL) {
    mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
    config.preset = preset;
    config.flags = flags;
    config.level = level;
    mp_autocast_t created = nullptr;
    status = mp_autocast_create(&created, &config);
    policy = mp::autocast(created);
  }
  mp_op_class_t class_of(const char *op) const { return policy.class_of(op); }
  /// Low-precision nodes as "name:type ", in order.
  std::string low(const char *text) const {
    Graph graph = Graph::parse(text);
    const std::vector<uint8_t> dtype = policy.rewrite(nullptr, graph.view()).node_dtype;
    std::string names;
    for (size_t i = 0; i < dtype.size(); i++)
      if (dtype[i] != MP_FP32)
        names += graph.nodes[i].name + ":" + mp_dtype_name(static_cast<mp_dtype_t>(dtype[i])) + " ";
    return names;
  }

  mp::autocast policy;
  mp_status_t status;
};

constexpr const char *kThree = "a MatMul x\nb Tanh a\nc MatMul b";

void expect_refused(mp_autocast_preset_t preset, const std::vector<std::string> &words) {
  const UnderEnvironment made(preset);
  expect_status(made.status, MP_ERROR_INVALID_ARGUMENT);
  CHECK(made.policy.get() == nullptr);
  for (const std::string &word : words)
    CHECK_THAT(mp_last_error(), Catch::Matchers::ContainsSubstring(word));
}

}  // namespace

TEST_CASE("autocast: environment variables change a policy", "[autocast]") {
  CHECK(UnderEnvironment(MP_AUTOCAST_PRESET_DEFAULT).low(kThree) == "a:fp16 b:fp16 c:fp16 ");
  {
    const Environment e({{"MP_AUTOCAST", "bf16"}, {"MP_AUTOCAST_LEVEL", "infer_as_deny"}});
    CHECK(UnderEnvironment(MP_AUTOCAST_PRESET_DEFAULT).low(kThree) == "a:bf16 c:bf16 ");
    CHECK(
        UnderEnvironment(MP_AUTOCAST_PRESET_DEFAULT, MP_AUTOCAST_FLAG_NO_ENVIRONMENT).low(kThree) ==
        "a:fp16 b:fp16 c:fp16 ");
  }
  {
    const Environment e({{"MP_AUTOCAST_LEVEL", "NORMAL"}});  // overrides the configuration
    CHECK(UnderEnvironment(MP_AUTOCAST_PRESET_DEFAULT, 0, MP_AUTOCAST_LEVEL_INFER_AS_DENY)
              .low(kThree) == "a:fp16 b:fp16 c:fp16 ");
  }
  for (const auto &[word, is_ignored] : {std::pair{"1", true}, std::pair{"false", false}}) {
    const Environment e({{"MP_AUTOCAST_IGNORE_PERFORMANCE", word}});
    const UnderEnvironment made(MP_AUTOCAST_PRESET_DEFAULT,
                                is_ignored ? 0 : MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE);
    const UniqueContext host = mptools::make_context(MP_DEVICE_HOST);
    CHECK((made.policy.disabled_reason(host.get()) == nullptr) == is_ignored);
  }
  {
    const Environment e({{"MP_AUTOCAST_ALLOW_ADD", "Own, Tanh,,"},
                         {"MP_AUTOCAST_INFER_REMOVE", "Tanh,Relu"},
                         {"MP_AUTOCAST_DENY_ADD", "Mine"},
                         {"MP_AUTOCAST_CLEAR_REMOVE", "Reshape"},
                         {"MP_AUTOCAST", ""}});
    const UnderEnvironment made(MP_AUTOCAST_PRESET_TENSORFLOW);
    require_ok(made.status);
    CHECK(made.class_of("Own") == MP_OP_CLASS_ALLOW);
    CHECK(made.class_of("Tanh") == MP_OP_CLASS_ALLOW);
    CHECK(made.class_of("Mine") == MP_OP_CLASS_DENY);
    CHECK(made.class_of("Relu") == MP_OP_CLASS_CLEAR);  // listed elsewhere: not removed
    CHECK(made.class_of("Reshape") == MP_OP_CLASS_UNLISTED);
    made.policy.set_class({"Own"}, MP_OP_CLASS_DENY);
    CHECK(made.class_of("Own") == MP_OP_CLASS_DENY);
  }
}

TEST_CASE("autocast: TensorFlow's environment variables change a policy", "[autocast]") {
  const Environment e({{"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_WHITELIST_ADD", "Own"},
                       {"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_DENYLIST_ADD", "Mine"},
                       {"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_GRAYLIST_REMOVE", "Tanh"},
                       {"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL", "TREAT_INFER_AS_DENY"},
                       {"TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_IGNORE_PERFORMANCE", "1"}});
  const UnderEnvironment made(MP_AUTOCAST_PRESET_TENSORFLOW);
  require_ok(made.status);
  CHECK(made.class_of("Own") == MP_OP_CLASS_ALLOW);
  CHECK(made.class_of("Mine") == MP_OP_CLASS_DENY);
  CHECK(made.class_of("Tanh") == MP_OP_CLASS_UNLISTED);
  CHECK(made.low("a MatMul x\nb Log a\nc MatMul b") == "a:fp16 c:fp16 ");
  CHECK(made.policy.disabled_reason(context()) == nullptr);
  const Environment ours({{"MP_AUTOCAST_LEVEL", "normal"}});  // read after TensorFlow's
  CHECK(UnderEnvironment(MP_AUTOCAST_PRESET_TENSORFLOW).low("a MatMul x\nb Log a\nc MatMul b") ==
        "a:fp16 b:fp16 c:fp16 ");
  CHECK(UnderEnvironment(MP_AUTOCAST_PRESET_DEFAULT).class_of("Own") == MP_OP_CLASS_UNLISTED);
}

TEST_CASE("autocast: invalid environment variables are rejected", "[autocast]") {
  const auto refused = [](const char *name, const char *value, std::vector<std::string> words) {
    const Environment e({{name, value}});
    words.emplace_back(name);
    expect_refused(MP_AUTOCAST_PRESET_TENSORFLOW, words);
  };
  refused("MP_AUTOCAST", "fp8", {"fp8", "off, " MP_HALF_TYPE_NAMES});
  refused("MP_AUTOCAST_LEVEL", "fast", {"fast", "tensor_cores_only"});
  refused("MP_AUTOCAST_IGNORE_PERFORMANCE", "maybe", {"maybe", "0 or 1"});
  refused("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL", "normal", {"normal", "UNSAFE_FORCE_ALL"});
  refused("MP_AUTOCAST_ALLOW_ADD", "Tanh", {"Tanh", "infer"});
  refused("TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_CLEARLIST_ADD", "Exp", {"Exp", "deny"});
  const Environment e({{"MP_AUTOCAST_ALLOW_ADD", "Own"}, {"MP_AUTOCAST_DENY_ADD", "Own"}});
  expect_refused(MP_AUTOCAST_PRESET_DEFAULT, {"MP_AUTOCAST_DENY_ADD", "Own", "allow"});
}

TEST_CASE("autocast: MP_AUTOCAST=off changes nothing", "[autocast]") {
  const Environment e({{"MP_AUTOCAST", "OFF"}});
  const UnderEnvironment made(MP_AUTOCAST_PRESET_PYTORCH, MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE);
  require_ok(made.status);
  CHECK(made.low(kThree).empty());
  const char *const why = made.policy.disabled_reason();
  REQUIRE(why != nullptr);
  CHECK_THAT(why, Catch::Matchers::ContainsSubstring("MP_AUTOCAST"));
  const uint8_t inputs[] = {MP_FP32, MP_FP16};
  uint8_t cast_to[] = {9, 9};
  for (const char *op : {"mm", "softmax", "binary_cross_entropy"}) {
    CHECK(made.policy.op(op, inputs, 2, cast_to) == MP_FP32);
    CHECK(cast_to[0] == MP_DTYPE_NONE);
    CHECK(cast_to[1] == MP_DTYPE_NONE);
  }
}
