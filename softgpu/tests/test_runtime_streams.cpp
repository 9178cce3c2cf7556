// Ordering by streams and events, and absence of any other order.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <set>
#include <thread>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// Work in one stream, and a second stream that uses its result.
struct TwoStreams {
  Kernels kernels;
  uint32_t *made = device_words(), *used = device_words();
  cudaStream_t first, second;

  explicit TwoStreams(unsigned flags = cudaStreamNonBlocking)
      : first(make_stream(flags)), second(make_stream(flags)) {}
  void make(cudaStream_t stream) { REQUIRE(kernels.set(made, kNew, stream) == cudaSuccess); }
  void use(cudaStream_t stream) { REQUIRE(kernels.copy(used, made, stream) == cudaSuccess); }
  void require_used() { require_words(used, kNew); }
};

struct PinnedResult {
  Kernels kernels;
  uint32_t *result = pinned_words();
  cudaStream_t stream = make_stream();

  PinnedResult() {
    uint32_t *const words = device_words();
    REQUIRE(kernels.set(words, kNew, stream) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(result, words, kBytes, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  }
};

}  // namespace

// ---- correct programs

PASSES_IN_EVERY_ORDER("a result after cudaStreamSynchronize") {
  const PinnedResult r;
  REQUIRE(cudaStreamSynchronize(r.stream) == cudaSuccess);
  REQUIRE(r.result[0] == kNew);
}

PASSES_IN_EVERY_ORDER("a result after cudaEventSynchronize") {
  const PinnedResult r;
  const cudaEvent_t event = make_event();
  REQUIRE(cudaEventRecord(event, r.stream) == cudaSuccess);
  REQUIRE(cudaEventSynchronize(event) == cudaSuccess);
  REQUIRE(r.result[0] == kNew);
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);
}

PASSES_IN_EVERY_ORDER("a result after cudaDeviceSynchronize") {
  const PinnedResult r;
  REQUIRE(cudaStreamDestroy(r.stream) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(r.result[0] == kNew);
}

PASSES_IN_EVERY_ORDER("a result after cudaStreamQuery succeeds") {
  const PinnedResult r;
  cudaError_t error = cudaErrorNotReady;
  while ((error = cudaStreamQuery(r.stream)) == cudaErrorNotReady) std::this_thread::yield();
  REQUIRE(error == cudaSuccess);
  REQUIRE(r.result[0] == kNew);
}

PASSES_IN_EVERY_ORDER("a result that the host polls without a call") {
  const PinnedResult r;
  const std::atomic_ref<uint32_t> word(r.result[kCount - 1]);
  while (word != kNew) std::this_thread::yield();
}

PASSES_IN_EVERY_ORDER("an event between two streams") {
  TwoStreams s;
  const cudaEvent_t event = make_event(cudaEventDisableTiming);
  s.make(s.first);
  REQUIRE(cudaEventRecord(event, s.first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(s.second, event, 0) == cudaSuccess);
  s.use(s.second);
  s.require_used();
}

PASSES_IN_EVERY_ORDER("a wait uses the last record of an event") {
  TwoStreams s;
  const cudaEvent_t event = make_event();
  s.make(s.first);
  REQUIRE(cudaEventRecord(event, s.first) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(s.second, event, 0) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, s.second) == cudaSuccess);  // the stream does not wait for itself
  REQUIRE(cudaEventDestroy(event) == cudaSuccess);           // not needed any more
  s.use(s.second);
  s.require_used();
}

PASSES_IN_EVERY_ORDER("the legacy stream and blocking streams wait for each other") {
  TwoStreams s(cudaStreamDefault);
  s.make(s.first);
  s.use(nullptr);
  REQUIRE(s.kernels.copy(s.made, s.used, s.second) == cudaSuccess);
  require_words(s.made, kNew);
}

PASSES_IN_EVERY_ORDER("the stream of a thread waits for the legacy stream") {
  TwoStreams s;
  s.make(cudaStreamLegacy);
  s.use(cudaStreamPerThread);
  std::thread([&] { s.require_used(); }).join();
}

PASSES_IN_EVERY_ORDER("waiting for the legacy stream includes blocking streams") {
  const Kernels kernels;
  const cudaStream_t stream = make_stream(cudaStreamDefault);
  uint32_t *const words = pinned_words();
  REQUIRE(kernels.set(words, kNew, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  REQUIRE(words[0] == kNew);
}

PASSES_IN_EVERY_ORDER("host functions run in the order of the stream") {
  const Kernels kernels;
  const cudaStream_t stream = make_stream();
  struct Seen {
    uint32_t *words;
    uint32_t value;
    cudaError_t call;
  } seen{pinned_words(), 0, cudaSuccess};
  REQUIRE(kernels.set(seen.words, kNew, stream) == cudaSuccess);
  REQUIRE(cudaLaunchHostFunc(
              stream,
              [](void *p) {
                Seen &s = *static_cast<Seen *>(p);
                s.value = s.words[0];
                s.call = cudaDeviceSynchronize();
              },
              &seen) == cudaSuccess);
  REQUIRE(kernels.set(seen.words, kOld, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(seen.value == kNew);
  REQUIRE(seen.call == cudaErrorNotPermitted);
  REQUIRE(seen.words[0] == kOld);
}

PASSES_IN_EVERY_ORDER("pageable memory is copied before the call returns") {
  uint32_t *const words = device_words();
  const cudaStream_t stream = make_stream();
  std::vector<uint32_t> source(kCount, kNew);
  REQUIRE(cudaMemcpyAsync(words, source.data(), kBytes, cudaMemcpyHostToDevice, stream) ==
          cudaSuccess);
  std::fill(source.begin(), source.end(), kOld);
  std::vector<uint32_t> result(kCount);
  REQUIRE(cudaMemcpyAsync(result.data(), words, kBytes, cudaMemcpyDeviceToHost, stream) ==
          cudaSuccess);
  REQUIRE(result == std::vector<uint32_t>(kCount, kNew));
}

PASSES_IN_EVERY_ORDER("cudaFreeAsync frees memory in stream order") {
  const Kernels kernels;
  const cudaStream_t stream = make_stream();
  void *memory = nullptr;
  uint32_t *const result = device_words();
  REQUIRE(cudaMallocAsync(&memory, kBytes, stream) == cudaSuccess);
  REQUIRE(kernels.set(memory, kNew, stream) == cudaSuccess);
  REQUIRE(kernels.copy(result, memory, stream) == cudaSuccess);
  REQUIRE(cudaFreeAsync(memory, stream) == cudaSuccess);
  require_words(result, kNew);
}

// ---- incorrect programs

IS_NOTICED("a result without synchronization") {
  const PinnedResult r;
  CHECK(r.result[0] == kNew);
  cudaDeviceSynchronize();
}

IS_NOTICED("pinned memory modified before its copy") {
  uint32_t *const words = device_words(), *const source = pinned_words();
  const cudaStream_t stream = make_stream();
  cudaMemcpyAsync(words, source, kBytes, cudaMemcpyHostToDevice, stream);
  std::fill_n(source, kCount, kNew);
  cudaStreamSynchronize(stream);
  CHECK(*words == kOld);
}

IS_NOTICED("two streams without an event") {
  TwoStreams s;
  s.make(s.first);
  s.use(s.second);
  cudaDeviceSynchronize();
  CHECK(*s.used == kNew);
}

IS_NOTICED("the legacy stream and a non-blocking stream") {
  TwoStreams s;
  s.make(s.first);
  s.use(nullptr);
  cudaDeviceSynchronize();
  CHECK(*s.used == kNew);
}

IS_NOTICED("an event recorded too early") {
  TwoStreams s;
  const cudaEvent_t event = make_event();
  cudaEventRecord(event, s.first);
  s.make(s.first);
  cudaStreamWaitEvent(s.second, event, 0);
  s.use(s.second);
  cudaDeviceSynchronize();
  CHECK(*s.used == kNew);
}

// The host pauses between calls, for varying times.
TEST_CASE("case: the order of four streams", "[.]") {
  const Kernels kernels;
  std::random_device random;
  uint32_t *const count = device_words();
  std::vector<cudaStream_t> streams(4);
  for (cudaStream_t &stream : streams) stream = make_stream();
  std::vector<uint32_t *> seen;
  for (int i = 0; i < 12; i++) seen.push_back(device_words());
  for (size_t i = 0; i < seen.size(); i++) {
    const cudaStream_t stream = streams[i % streams.size()];
    REQUIRE(kernels.copy(seen[i], count, stream) == cudaSuccess);
    REQUIRE(kernels.increment(count, stream) == cudaSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 15));
    cudaStreamQuery(streams[0]);
  }
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::string order = "seen:";
  for (const uint32_t *words : seen) order += " " + std::to_string(*words);
  std::puts(order.c_str());
}

// ---- results of calls

PASSES("properties of streams and events") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -2) == cudaSuccess);
  unsigned flags = 0;
  int priority = 0, device = -1;
  REQUIRE(cudaStreamGetFlags(stream, &flags) == cudaSuccess);
  REQUIRE(cudaStreamGetPriority(stream, &priority) == cudaSuccess);
  REQUIRE(cudaStreamGetDevice(stream, &device) == cudaSuccess);
  CHECK(flags == cudaStreamNonBlocking);
  CHECK(priority == -2);
  CHECK(device == 0);

  const cudaEvent_t start = make_event(), end = make_event(),
                    untimed = make_event(cudaEventDisableTiming);
  float time = -1;
  CHECK(cudaEventQuery(start) == cudaSuccess);  // never recorded
  CHECK(cudaEventElapsedTime(&time, start, end) == cudaErrorInvalidResourceHandle);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(kernels.set(words, kNew, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(untimed, stream) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  REQUIRE(cudaEventElapsedTime(&time, start, end) == cudaSuccess);
  CHECK(time > 0);
  CHECK(cudaEventElapsedTime(&time, start, untimed) == cudaErrorInvalidResourceHandle);

  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(kernels.set(words, kNew, stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamCreateWithFlags(&stream, 16) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("runtime: a seed determines the order of streams", "[runtime]") {
  const auto order_with = [](int seed) {
    const CaseResult result =
        run_case("case: the order of four streams", {{"SOFTGPU_SEED", std::to_string(seed)}});
    INFO(result);
    CHECK(result.passed());
    const size_t begin = result.output.find("seen:");
    REQUIRE(begin != std::string::npos);
    return result.output.substr(begin, result.output.find('\n', begin) - begin);
  };
  std::set<std::string> orders;
  for (int seed = 1; seed <= 4; seed++) {
    const std::string order = order_with(seed);
    CHECK(order_with(seed) == order);
    orders.insert(order);
  }
  CHECK(orders.size() >= 3);
}

TEST_CASE("runtime: SOFTGPU_SYNC runs the work in the call", "[runtime]") {
  const Environment synchronous{{"SOFTGPU_SYNC", "1"}};
  CHECK(run_case("case: a result without synchronization", synchronous).passed());
  CHECK(run_case("case: two streams without an event", synchronous).passed());
}
