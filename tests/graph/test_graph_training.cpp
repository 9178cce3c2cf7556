// Training of a graph is bitwise equal to the same network of single calls, in each type, with
// skipped steps and several batch sizes.
#include <numeric>

#include "tests/graph/hand_written.h"

using namespace mptest;

namespace {

constexpr int kSteps = 12;

/// @param numel  elements of a row of x
void check_equal_training(Trained &graph, Trained &by_hand, mp_dtype_t dtype, int64_t rows,
                          int64_t numel, int64_t classes) {
  const ScalerHandle scaler = dtype == MP_FP16 ? make_high_scaler() : nullptr;
  const ScalerHandle other = dtype == MP_FP16 ? make_high_scaler() : nullptr;
  Random random(3);
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step, mp_dtype_name(dtype));
    const int64_t batch =
        step % 3 == 2 ? rows / 2 + 1 : rows;  // the last batch of an epoch is smaller
    const DeviceBuffer<float> x(random_values(random, batch * numel, 1.0));
    std::vector<int32_t> all(static_cast<size_t>(batch));
    for (int32_t &label : all) label = static_cast<int32_t>(random.integer(0, classes - 1));
    const DeviceBuffer<int32_t> labels(all);
    graph.forward_and_backward(batch, x.data(), labels.data(), scaler.get());
    by_hand.forward_and_backward(batch, x.data(), labels.data(), other.get());
    REQUIRE(graph.logits(batch) == by_hand.logits(batch));
    graph.update(scaler.get());
    by_hand.update(other.get());
    REQUIRE(graph.masters() == by_hand.masters());
  }
  if (scaler == nullptr) return;
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  require_ok(mp_scaler_get_state_sync(scaler.get(), &state, kStream));
  CHECK(state.skipped > 0);
  CHECK(state.skipped < kSteps);
}

}  // namespace

TEST_CASE("graph: a convnet trains to the weights of single calls", "[graph][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const auto graph = convnet_as_graph(dtype), by_hand = convnet_by_hand(dtype);
    const std::vector<float> initial = graph->masters();
    check_equal_training(*graph, *by_hand, dtype, Convnet::rows, Convnet::side * Convnet::side,
                         Convnet::classes);
    CHECK(graph->masters() != initial);
  }
}
