// Tests of objects that threads share or pass to each other.
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "gang.h"
#include "tests/autocast/known_graphs.h"
#include "tests/autocast/test_graph.h"
#include "tests/soak/programs.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Returns the complete output of a rewrite.
Bytes rewrite(mp_autocast_t policy, mp_context_t context, const mp_autocast_graph_t &graph) {
  const size_t nodes = graph.num_nodes, tensors = graph.num_tensors;
  std::vector<uint8_t> tensor_dtype(tensors), node_dtype(nodes), why(nodes);
  std::vector<int32_t> because(nodes);
  std::vector<mp_autocast_cast_t> casts(tensors);
  auto result = initialized<mp_autocast_result_t>();
  result.tensor_dtype = tensor_dtype.data();
  result.node_dtype = node_dtype.data();
  result.node_reason = why.data();
  result.node_cause = because.data();
  result.casts = casts.data();
  mptools::check(mp_autocast_rewrite(policy, context, &graph, &result));
  Bytes all;
  for (const std::vector<uint8_t> *part : {&tensor_dtype, &node_dtype, &why})
    all.insert(all.end(), part->begin(), part->end());
  for (const mp_autocast_format_t form :
       {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT}) {
    size_t bytes = 0;
    mptools::check(mp_autocast_explain(policy, &graph, &result, form, nullptr, &bytes));
    std::string text(bytes, '\0');
    mptools::check(mp_autocast_explain(policy, &graph, &result, form, text.data(), &bytes));
    all.insert(all.end(), text.begin(), text.end());
  }
  if (result.disabled_reason != nullptr)
    all.insert(all.end(), result.disabled_reason,
               result.disabled_reason + strlen(result.disabled_reason));
  for (const char *const op : {"MatMul", "Softmax", "Relu"})
    all.push_back(static_cast<uint8_t>(mp_autocast_get_class(policy, op)));
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
    const Bytes wanted = rewrite(make()->get(), device, view);
    const auto shared = make();
    std::vector<Bytes> results(kThreads);
    std::vector<mp_status_t> too_late(kThreads, MP_SUCCESS);
    together(kThreads, [&](int thread) {
      for (int round = 0; round < 10; ++round)
        results[static_cast<size_t>(thread)] = rewrite(shared->get(), device, view);
      const char *const op = "Sqrt";
      too_late[static_cast<size_t>(thread)] =
          mp_autocast_set_class(shared->get(), &op, 1, MP_OP_CLASS_DENY);
    });
    CHECK(results == std::vector<Bytes>(kThreads, wanted));
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
