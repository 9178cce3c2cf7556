// Tests of objects that threads share or pass to each other.
#include <condition_variable>
#include <mutex>

#include "gang.h"
#include "tests/autocast/known_graphs.h"
#include "tests/autocast/test_graph.h"
#include "tests/soak/programs.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Returns types and reasons of a rewrite, its reports, and some classes.
std::string rewrite(const mp::autocast &policy, mp_context_t context,
                    const mp_autocast_graph_t &graph) {
  const mp::autocast_result result = policy.rewrite(context, graph);
  std::string all;
  for (const auto *part : {&result.tensor_dtype, &result.node_dtype, &result.node_reason})
    all.append(part->begin(), part->end());
  for (const mp_autocast_format_t form :
       {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT})
    all += policy.explain(graph, result, form);
  for (const char *const op : {"MatMul", "Softmax", "Relu"})
    all += std::to_string(policy.class_of(op));
  return all;
}

}  // namespace

TEST_CASE("threads: a shared autocast policy gives equal results from its first use",
          "[threads][autocast]") {
  autocast::Graph graph = autocast::Graph::parse(autocast::kDenyChain);
  const mp_autocast_graph_t &view = graph.view();
  for (const mp_context_t device : {mp_context_t{nullptr}, context()}) {
    mp_autocast_config_t config = mp_autocast_config_default(MP_BF16);
    config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
    const auto make = [&] {
      auto policy = std::make_unique<autocast::Policy>(config);
      policy->set_class("Sqrt", MP_OP_CLASS_ALLOW);
      return policy;
    };
    const std::string wanted = rewrite(*make(), device, view);
    const auto shared = make();
    std::vector<std::string> results(kThreads);
    std::vector<mp_status_t> too_late(kThreads, MP_SUCCESS);
    together(kThreads, [&](int thread) {
      for (int round = 0; round < 10; ++round)
        results[static_cast<size_t>(thread)] = rewrite(*shared, device, view);
      const char *const op = "Sqrt";
      too_late[static_cast<size_t>(thread)] =
          mp_autocast_set_class(shared->get(), &op, 1, MP_OP_CLASS_DENY);
    });
    CHECK(results == std::vector<std::string>(kThreads, wanted));
    CHECK(too_late == std::vector<mp_status_t>(kThreads, MP_ERROR_INVALID_ARGUMENT));
  }
}

TEST_CASE("threads: objects can be passed between threads", "[threads]") {
  constexpr int64_t kSteps = 96;
  const SoakProgram soak = std::move(soak_programs().at(1));
  Training alone(soak.program);
  for (int64_t n = 1; n <= kSteps; ++n) alone.step(n, fault_of(1, n));
  Training handed_on(soak.program);
  std::mutex mutex;
  std::condition_variable is_done;
  int64_t done = 0;
  std::vector<int64_t> steps_of(kThreads);
  together(kThreads, [&](int thread) {
    std::unique_lock lock(mutex);
    while (steps_of[static_cast<size_t>(thread)] < kSteps / kThreads) {
      is_done.wait(lock, [&] { return done % kThreads == thread; });
      handed_on.step(done + 1, fault_of(1, done + 1));
      ++done;
      ++steps_of[static_cast<size_t>(thread)];
      is_done.notify_all();
    }
  });
  CHECK(done == kSteps);
  CHECK(handed_on.checkpoint() == alone.checkpoint());
}
