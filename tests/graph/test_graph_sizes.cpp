// Sizes of graphs: smaller batches in the memory of the full batch, a compile time independent of
// the batch, and sums that exceed 64 bits.
#include <set>

#include "tests/graph/described.h"
#include "tests/support/log_lines.h"

using namespace mptest;

namespace {

int32_t perceptron(Described &g, int32_t x, const std::vector<int64_t> &widths) {
  for (size_t i = 1; i < widths.size(); ++i)
    x = g.node("Linear", "fc",
               {x, g.parameter("w", {widths[i - 1], widths[i]}), g.parameter("b", {widths[i]})});
  return x;
}

}  // namespace

TEST_CASE("graph: a smaller batch fits into the planned workspace", "[graph]") {
  constexpr int64_t kBatch = 128;
  CountedContext counted;
  const LogLines warnings(MP_LOG_WARN);
  Described g(counted.get());
  const int32_t x = g.input("x", MP_FP32, {kBatch, 784});
  g.xent(perceptron(g, x, {784, 256, 128, 10}), std::vector<int32_t>(kBatch, 1));
  g.compile();
  const int64_t count = counted.count, workspace = g.memory().workspace;
  g.feed(x, Floats32(kBatch * 784, 0.5f));
  for (int64_t batch = kBatch; batch > 0; --batch) require_ok(mp_graph_set_batch(g.handle, batch));
  if (on_host()) {
    CHECK(counted.count == count);
    CHECK(g.memory().workspace == workspace);
  }
  for (const int64_t batch : {16, 3, 65}) {
    require_ok(mp_graph_set_batch(g.handle, batch));
    g.step();
  }
  CHECK(warnings.all().empty());
}

TEST_CASE("graph: set_batch allocates workspace for a batch that was not planned", "[graph]") {
  // Only the full batch of the planned batches fits the shape [17 -1].
  constexpr int64_t kBatch = 85, kOther = 17;
  CountedContext counted(2);
  // The smaller product needs workspace because two SMs of the host target divide its k.
  auto device = initialized<mp_device_info_t>();
  require_ok(mp_context_get_info(counted.get(), &device));
  const bool splits = on_host() && device.num_sms == 2;
  Described g(counted.get());
  const int32_t x = g.input("x", MP_FP32, {kBatch, 1024});
  g.output(g.node("Tanh", "tanh", {g.node("Reshape", "flat", {x}, {{"extent", {17, -1}}})}));
  const int32_t y = perceptron(g, x, {1024, 64});
  g.output(y);
  g.compile();
  Random random(1);
  Floats32 weights = random_values(random, 1024 * 64, 1.0);
  g.write(g.parameters[0], weights);
  g.feed(x, random_values(random, kBatch * 1024, 1.0));
  const int64_t count = counted.count, planned = g.memory().workspace;
  g.forward();
  const std::vector<double> whole = g.read(y);

  counted.fails_at = count;
  const mp_status_t refused = mp_graph_set_batch(g.handle, kOther);
  if (splits) CHECK(refused == MP_ERROR_OUT_OF_MEMORY);
  if (refused == MP_ERROR_OUT_OF_MEMORY) {
    CHECK(g.info(x).extent[0] == kBatch);
    g.forward();
    CHECK(g.read(y) == whole);
  }
  counted.fails_at = -1;
  const LogLines warnings(MP_LOG_WARN);
  require_ok(mp_graph_set_batch(g.handle, kOther));
  if (splits) CHECK(g.memory().workspace > planned);
  g.forward();
  const std::vector<double> part = g.read(y);
  for (size_t i = 0; i < part.size(); ++i) CHECK(part[i] == Approx(whole[i]).margin(1e-3));
  const int64_t known = counted.count;
  for (const int64_t batch : {kBatch, kOther}) require_ok(mp_graph_set_batch(g.handle, batch));
  CHECK(counted.count == known);
  CHECK(warnings.all().empty());
}

TEST_CASE("graph: the number of calls of a compile does not depend on the batch", "[graph]") {
  CountedContext counted;
  counted.limit = 1 << 20;  // fails the allocation of the compiled graph
  const auto calls = [&](int64_t batch) {
    Described g(counted.get());
    const int32_t x = g.input("x", MP_FP32, {batch, 2, 1});
    int32_t y =
        g.node("LSTM", "lstm", {x, g.parameter("w_ih", {4, 1}), g.parameter("w_hh", {4, 1})});
    y = g.node("BatchNorm", "bn",
               {y, g.parameter("gamma", {1}), g.parameter("beta", {1}), g.state("mean", {1}),
                g.state("variance", {1})});
    g.xent(perceptron(g, g.node("Dropout", "drop", {y}), {1, 3}), {});
    const LogLines lines(MP_LOG_DEBUG);
    const mp_status_t status = mp_graph_compile(g.handle);
    CHECK(status == MP_ERROR_OUT_OF_MEMORY);
    return std::ssize(lines.all());
  };
  const int64_t few = calls(int64_t{1} << 18);
  CHECK(few > 100);
  CHECK(calls(int64_t{1} << 20) == few);
  CHECK(calls((int64_t{1} << 28) + 1) == few);
}

TEST_CASE("graph: numbers of bytes and elements beyond 64 bits are rejected", "[graph]") {
  constexpr int64_t kHuge = int64_t{1} << 48;
  const auto is_refused = [](const Described &g) {
    expect_status(mp_graph_compile(g.handle), MP_ERROR_INVALID_ARGUMENT);
    CHECK(has(mp_last_error(), "size of all tensors in bytes exceeds 2^63 - 1"));
  };
  SECTION("states whose sum is 2^64 + 256") {
    Described g;
    g.state("first", {1 << 16});
    g.state("second", {64});
    for (int i = 0; i < 16383; ++i) g.state("huge", {kHuge});
    g.state("rest", {kHuge - (1 << 16)});
    const int32_t x = g.input("x", MP_FP32, {1, 1});
    g.output(g.node("Relu", "relu", {x}));
    is_refused(g);
  }
  SECTION("activations") {
    Described g;
    const int32_t x = g.input("x", MP_FP32, {kHuge});
    for (int i = 0; i < 8192; ++i) g.output(g.node("Tanh", "tanh", {x}));
    is_refused(g);
  }
  SECTION("elements of a node") {
    Described g;
    const int32_t indices = g.input("indices", MP_DTYPE_NONE, {4, kHuge / 256});
    const int32_t table = g.state("table", {9, 1 << 24});
    int32_t y = -1;
    const int32_t inputs[] = {table, indices};
    expect_status(mp_graph_add_node(g.handle, "Embedding", "words", inputs, 2, nullptr, 0, &y, 1),
                  MP_ERROR_INVALID_ARGUMENT);
    CHECK(has(mp_last_error(), "words has shape [4 1099511627776 16777216]: number"));
  }
}
