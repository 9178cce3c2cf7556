// Programmatic dependent launch: kernels that begin before the previous kernel in the stream has
// ended.
#include <string>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// Returns a kernel in which each thread stores from[distant index] + 1 to `to`, with statements
/// before and after it.
std::string turn(const std::string &name, const std::string &before, const std::string &behind) {
  return ".visible .entry " + name + "(.param .u64 to, .param .u64 from)\n{\n" + R"(
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
)" + before +
         R"(
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r0, 5;
add.s32 %r2, %r2, %r1;
add.s32 %r3, %r2, 128;
and.b32 %r3, %r3, 255;
ld.param.u64 %rd0, [to];
ld.param.u64 %rd1, [from];
mul.wide.u32 %rd2, %r2, 4;
mul.wide.u32 %rd3, %r3, 4;
add.s64 %rd4, %rd0, %rd2;
add.s64 %rd5, %rd1, %rd3;
ld.global.u32 %r4, [%rd5];
add.s32 %r4, %r4, 1;
st.global.u32 [%rd4], %r4;
)" + behind +
         "ret;\n}\n";
}

constexpr char kAllow[] = "griddepcontrol.launch_dependents;\n", kWait[] = "griddepcontrol.wait;\n";

/// Behavior of a kernel towards the previous and the next kernel.
enum Kind { kWaits, kHasty, kSilent, kAllowsAtTheEnd, kFaults };
constexpr const char *kNames[] = {"waits", "hasty", "silent", "late", "faults"};

cudaLibrary_t load_kernels() {
  return load_library(turn("waits", std::string(kAllow).append(kWait), "") +
                          turn("hasty", kAllow, "") + turn("silent", kWait, "") +
                          turn("late", kWait, kAllow) + turn("faults", kWait, "trap;\n"),
                      "sm_90");
}

/// Four buffers of words, all kOld, and kernels that read one and write another.
class Turns {
 public:
  Turns() {
    for (uint32_t *&words : buffers) words = device_words();
  }

  cudaError_t operator()(Kind kind, uint32_t *to, uint32_t *from, bool is_early = true) const {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = is_early;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kCount / 32);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void *arguments[] = {&to, &from};
    return cudaLaunchKernelExC(&config, kernel_of(library_, kNames[kind]), arguments);
  }

  /// Launches kernels: each kind, the buffer that it writes and the one that it reads.
  struct Launch {
    Kind kind;
    uint32_t *to, *from;
  };
  void run(std::initializer_list<Launch> launches) const {
    for (const auto &[kind, to, from] : launches) CHECK((*this)(kind, to, from) == cudaSuccess);
  }

  uint32_t *buffers[4];
  uint32_t *&a = buffers[0], *&b = buffers[1], *&c = buffers[2], *&d = buffers[3];
  cudaStream_t stream = make_stream();

 private:
  const cudaLibrary_t library_ = load_kernels();
};

/// Runs two kernels; c is kOld + 2 if the second one reads the result of the first one.
void run_two(Kind first, Kind second, bool is_early = true) {
  const Turns turn;
  CHECK(turn(first, turn.b, turn.a) == cudaSuccess);
  CHECK(turn(second, turn.c, turn.b, is_early) == cudaSuccess);
  require_words(turn.c, kOld + 2);
}

/// Returns whether a race between two kernels `waits` is reported.
bool kernels_that_wait_race(const CaseResult &result) {
  const std::string other = "the other: kernel waits,";
  const std::string &output = result.output;
  for (size_t at = output.find(other); at != std::string::npos; at = output.find(other, at + 1)) {
    const size_t line = output.find('\n', at);
    if (line != std::string::npos && output.substr(line + 1).starts_with("    kernel waits,"))
      return true;
  }
  return false;
}

void run_captured(Kind second) {
  const Turns turn;
  REQUIRE(cudaStreamBeginCapture(turn.stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(turn(kWaits, turn.b, turn.a) == cudaSuccess);
  CHECK(turn(second, turn.c, turn.b) == cudaSuccess);
  CHECK(turn(kWaits, turn.a, turn.c) == cudaSuccess);
  const cudaGraphExec_t exec = instantiate(end_capture(turn.stream));
  REQUIRE(cudaGraphLaunch(exec, turn.stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, turn.stream) == cudaSuccess);
  require_words(turn.c, kOld + 5);
}

}  // namespace

PASSES_IN_EVERY_ORDER("early kernels that wait") {
  const Turns turn;
  constexpr uint32_t kTurns = 10;
  for (uint32_t i = 0; i < kTurns; i++)
    CHECK(turn(kWaits, i % 2 ? turn.a : turn.b, i % 2 ? turn.b : turn.a) == cudaSuccess);
  require_words(turn.a, kOld + kTurns);
}

IS_NOTICED("an early kernel that reads without waiting") {
  run_two(kWaits, kHasty);
}

IS_NOTICED("an early kernel that writes without waiting") {
  const Turns turn;
  turn.run({{kWaits, turn.b, turn.a}, {kHasty, turn.a, turn.c}});
  require_words(turn.b, kOld + 1);
}

PASSES_IN_EVERY_ORDER("a kernel after one that never allows dependents") {
  run_two(kSilent, kHasty);
}

PASSES_IN_EVERY_ORDER("a kernel after one that allows dependents at its end") {
  run_two(kAllowsAtTheEnd, kHasty);
}

PASSES_IN_EVERY_ORDER("a kernel launched without the early-launch attribute") {
  run_two(kWaits, kHasty, false);
}

IS_NOTICED("a kernel without wait between two that wait") {
  const Turns turn;
  constexpr uint32_t kTurns = 8;
  for (uint32_t i = 0; i < kTurns; i++) {
    CHECK(turn(kWaits, turn.b, i % 2 ? turn.c : turn.a) == cudaSuccess);
    CHECK(turn(kHasty, turn.d, turn.d) == cudaSuccess);
    CHECK(turn(kWaits, i % 2 ? turn.a : turn.c, turn.b) == cudaSuccess);
  }
  require_words(turn.a, kOld + 2 * kTurns);
}

TEST_CASE("case: a kernel that reads data from before a kernel without wait", "[.]") {
  const Turns turn;
  turn.run({{kWaits, turn.b, turn.a}, {kHasty, turn.d, turn.c}, {kWaits, turn.a, turn.b}});
  CHECK(cudaStreamSynchronize(turn.stream) == cudaSuccess);
}

TEST_CASE("case: a kernel that reads data from before a kernel that waits", "[.]") {
  const Turns turn;
  turn.run({{kWaits, turn.b, turn.a}, {kWaits, turn.d, turn.c}, {kWaits, turn.a, turn.b}});
  require_words(turn.a, kOld + 2);
}

TEST_CASE("case: an early kernel after two that wait before they allow it", "[.]") {
  // The last kernel begins after the end of the first one.
  const Turns turn;
  turn.run({{kAllowsAtTheEnd, turn.b, turn.a},
            {kAllowsAtTheEnd, turn.d, turn.c},
            {kHasty, turn.a, turn.b}});
  require_words(turn.a, kOld + 2);
}

PASSES_IN_EVERY_ORDER("a graph of early kernels that wait") {
  run_captured(kWaits);
}

IS_NOTICED("a graph of early kernels with one that does not wait") {
  run_captured(kHasty);
}

IS_REPORTED("an early kernel that faults", "trap") {
  const Turns turn;
  turn.run({{kWaits, turn.b, turn.a}, {kFaults, turn.c, turn.b}, {kWaits, turn.a, turn.c}});
  CHECK(cudaStreamSynchronize(turn.stream) == cudaErrorLaunchFailure);
}

TEST_CASE("early kernels: results do not depend on the number of threads", "[runtime]") {
  for (const char *threads : {"1", "2", "3"}) {
    const Environment with{{"SOFTGPU_THREADS", threads}, kLongDelay};
    passes("case: early kernels that wait", with);
    CHECK(run_case("case: an early kernel that reads without waiting", with).exit_code == 1);
    CHECK(run_case("case: an early kernel that writes without waiting", with).exit_code == 1);
  }
}

TEST_CASE("early kernels: accesses without a wait race with the previous kernel",
          "[runtime][race]") {
  const Environment with{{"SOFTGPU_RACECHECK", "1"}};
  passes("case: early kernels that wait", with);
  passes("case: a graph of early kernels that wait", with);
  passes("case: a kernel launched without the early-launch attribute", with);
  for (const char *name : {"case: an early kernel that reads without waiting",
                           "case: an early kernel that writes without waiting"}) {
    const CaseResult result = run_case(name, with);
    INFO(result);
    CHECK(result.exit_code == 99);
    CHECK(result.says("race: "));
  }
}

TEST_CASE("early kernels: a wait orders earlier kernels only if the previous kernel has waited",
          "[runtime][race]") {
  const Environment with{{"SOFTGPU_RACECHECK", "1"}};
  is_reported("case: a kernel that reads data from before a kernel without wait", "race: ", with);
  passes("case: a kernel that reads data from before a kernel that waits", with);
  passes("case: an early kernel after two that wait before they allow it", with);

  for (int seed = 0; seed <= 4; seed++) {
    const CaseResult repeated =
        run_case("case: a kernel without wait between two that wait",
                 {{"SOFTGPU_RACECHECK", "1"}, {"SOFTGPU_SEED", std::to_string(seed)}});
    INFO("seed " << seed << ": " << repeated);
    CHECK(kernels_that_wait_race(repeated));
  }
}
