#include "softgpu/tests/runtime_case.h"

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/support/catch.h"

namespace softgpu::test {

namespace {

/// Returns a kernel whose body has 4 times the thread index in %rd9.
std::string entry(const std::string &name, const std::string &parameters, const std::string &body) {
  return ".visible .entry " + name + "(" + parameters + ")\n{\n" + R"(
.reg .b32 %r<9>;
.reg .b64 %rd<10>;
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.s32 %r3, %r0, %r1, %r2;
mul.wide.u32 %rd9, %r3, 4;
)" + body +
         "ret;\n}\n";
}

CaseResult read_result(pid_t child, int from) {
  CaseResult result;
  std::array<char, 4096> buffer;
  for (ssize_t count; (count = read(from, buffer.data(), buffer.size())) > 0;)
    result.output.append(buffer.data(), static_cast<size_t>(count));
  close(from);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

[[noreturn]] void become_case(const std::string &name, const Environment &environment, int to) {
  dup2(to, STDOUT_FILENO);
  dup2(to, STDERR_FILENO);
  for (const auto &[variable, value] : environment) setenv(variable.c_str(), value.c_str(), 1);
  execl("/proc/self/exe", "softgpu_tests", name.c_str(), nullptr);
  _exit(127);
}

Environment with_seed(int seed) {
  return {{"SOFTGPU_SEED", std::to_string(seed)}};
}

constexpr int kSeeds = 8;

}  // namespace

std::ostream &operator<<(std::ostream &out, const CaseResult &result) {
  return out << "exit code " << result.exit_code << '\n' << result.output;
}

CaseResult run_case(const std::string &name, const Environment &environment) {
  std::array<int, 2> ends;
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) become_case(name, environment, ends[1]);
  close(ends[1]);
  return read_result(child, ends[0]);
}

void passes(const std::string &name, const Environment &environment) {
  const CaseResult result = run_case(name, environment);
  for (const auto &[variable, value] : environment) UNSCOPED_INFO(variable << '=' << value);
  INFO(name << ": " << result);
  CHECK(result.passed());
}

void passes_in_every_order(const std::string &name) {
  for (int seed = 0; seed <= kSeeds; seed++) passes(name, with_seed(seed));
  passes(name, {{"SOFTGPU_SYNC", "1"}});
}

void passes_on_every_architecture(const std::string &name, Environment environment) {
  environment.emplace_back("SOFTGPU_ARCH", "");
  for (const char *arch : {"75", "80", "89", "90", "100", "120"}) {
    environment.back().second = arch;
    passes(name, environment);
  }
}

void is_noticed(const std::string &name) {
  // One thread: the order of several host threads is not deterministic.  A long delay: on a loaded
  // machine, work would otherwise begin between two calls.
  const CaseResult result = run_case(name, {{"SOFTGPU_THREADS", "1"}, kLongDelay});
  INFO(name << ": " << result);
  CHECK(result.exit_code == 1);
  bool is_noticed = false;
  for (int seed = 1; seed <= kSeeds; seed++)
    is_noticed |= run_case(name, with_seed(seed)).exit_code == 1;
  CHECK(is_noticed);
}

void is_reported(const std::string &name, const std::string &text, const Environment &environment) {
  const CaseResult result = run_case(name, environment);
  INFO(name << ": " << result);
  CHECK(result.exit_code == 99);
  CHECK(result.says(text));
  CHECK(!result.says("FAILED"));  // printed by Catch2 if a check of the case fails
}

std::string kernels_text(const std::string &target) {
  return ".version 7.8\n.target " + target + "\n.address_size 64\n" +
         ".global .align 4 .u32 table[4] = {10, 11, 12, 13};\n" +
         entry("set", ".param .u64 p, .param .u32 value", R"(
ld.param.u64 %rd0, [p];
ld.param.u32 %r4, [value];
add.s64 %rd1, %rd0, %rd9;
st.global.u32 [%rd1], %r4;
)") +
         entry("increment", ".param .u64 p",
               R"(
ld.param.u64 %rd0, [p];
add.s64 %rd1, %rd0, %rd9;
ld.global.u32 %r4, [%rd1];
add.s32 %r5, %r4, 1;
st.global.u32 [%rd1], %r5;
)") +
         entry("copy", ".param .u64 to, .param .u64 from",
               R"(
ld.param.u64 %rd0, [to];
ld.param.u64 %rd1, [from];
add.s64 %rd2, %rd0, %rd9;
add.s64 %rd3, %rd1, %rd9;
ld.global.u32 %r4, [%rd3];
st.global.u32 [%rd2], %r4;
)") +
         entry("read_table", ".param .u64 p",
               R"(
ld.param.u64 %rd0, [p];
add.s64 %rd1, %rd0, %rd9;
and.b32 %r4, %r3, 3;
mul.wide.u32 %rd2, %r4, 4;
mov.u64 %rd3, table;
add.s64 %rd4, %rd3, %rd2;
ld.global.u32 %r5, [%rd4];
st.global.u32 [%rd1], %r5;
)");
}

cudaLibrary_t load_library(const std::string &text) {
  cudaLibrary_t library = nullptr;
  REQUIRE(cudaLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          cudaSuccess);
  return library;
}

cudaKernel_t kernel_of(cudaLibrary_t library, const char *name) {
  cudaKernel_t kernel = nullptr;
  REQUIRE(cudaLibraryGetKernel(&kernel, library, name) == cudaSuccess);
  return kernel;
}

Kernels::Kernels() : library_(load_library(kernels_text())) {
  for (const char *name : {"set", "increment", "copy", "read_table"})
    handles_[name] = kernel_of(library_, name);
}

Kernels::~Kernels() {
  cudaLibraryUnload(library_);
}

const void *Kernels::operator[](const char *name) const {
  return handles_.at(name);
}

void *allocate(size_t bytes) {
  void *memory = nullptr;
  REQUIRE(cudaMalloc(&memory, bytes) == cudaSuccess);
  return memory;
}

uint32_t *device_words() {
  void *const memory = allocate(kBytes);
  const std::vector<uint32_t> old(kCount, kOld);
  REQUIRE(cudaMemcpy(memory, old.data(), kBytes, cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return static_cast<uint32_t *>(memory);
}

uint32_t *pinned_words() {
  void *memory = nullptr;
  REQUIRE(cudaMallocHost(&memory, kBytes) == cudaSuccess);
  std::fill_n(static_cast<uint32_t *>(memory), kCount, kOld);
  return static_cast<uint32_t *>(memory);
}

void require_words(const uint32_t *on_device, uint32_t value) {
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  std::vector<uint32_t> words(kCount);
  REQUIRE(cudaMemcpy(words.data(), on_device, kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  REQUIRE(words == std::vector<uint32_t>(kCount, value));
}

cudaStream_t make_stream(unsigned flags) {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

cudaEvent_t make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, flags) == cudaSuccess);
  return event;
}

cudaStream_t begin_capture(cudaStreamCaptureMode mode, unsigned flags) {
  const cudaStream_t stream = make_stream(flags);
  REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
  return stream;
}

cudaGraph_t end_capture(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(graph != nullptr);
  return graph;
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  return exec;
}

}  // namespace softgpu::test
