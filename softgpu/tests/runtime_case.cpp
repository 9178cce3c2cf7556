#include "softgpu/tests/runtime_case.h"

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/support/catch.h"

namespace softgpu::test {

namespace {

/// Returns the kernels of class Kernels.
std::string kernels() {
  return ".global .align 4 .u32 table[4] = {10, 11, 12, 13};\n" +
         kernel_entry("set", {"p"}, "ld.param.u32 %r, [value];\nst.global.u32 [%p], %r;\n",
                      ", .param .u32 value") +
         kernel_entry("increment", {"p"},
                      "ld.global.u32 %r, [%p];\nadd.u32 %r, %r, 1;\nst.global.u32 [%p], %r;\n") +
         kernel_entry("copy", {"to", "from"},
                      "ld.global.u32 %r, [%from];\nst.global.u32 [%to], %r;\n") +
         kernel_entry("read_table", {"p"}, R"(
           and.b32 %r, %i, 3;
           mov.u64 %a, table;
           mad.wide.u32 %a, %r, 4, %a;
           ld.global.u32 %r, [%a];
           st.global.u32 [%p], %r;
         )");
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

std::string kernel_entry(const std::string &name, const std::vector<std::string> &pointers,
                         const std::string &body, const std::string &parameters) {
  std::string declared, text =
                            ".reg .b32 %i, %r, %t;\n.reg .b64 %a;\nmov.u32 %t, %tid.x;\n"
                            "mov.u32 %r, %ntid.x;\nmov.u32 %i, %ctaid.x;\n"
                            "mad.lo.u32 %i, %i, %r, %t;\n";
  for (const std::string &p : pointers) {
    declared += (declared.empty() ? "" : ", ") + (".param .u64 " + p);
    text += ".reg .b64 %" + p + ";\nld.param.u64 %" + p + ", [" + p + "];\nmad.wide.u32 %" + p +
            ", %i, 4, %" + p + ";\n";
  }
  return ".visible .entry " + name + "(" + declared + parameters + ")\n{\n" + text + body +
         "ret;\n}\n";
}

std::string module_of(const std::string &text, const std::string &target) {
  return ".version 7.8\n.target " + target + "\n.address_size 64\n" + text;
}

std::string kernels_text(const std::string &target) {
  return module_of(kernels(), target);
}

cudaLibrary_t load_library(const std::string &text, const std::string &target) {
  cudaLibrary_t library = nullptr;
  REQUIRE(cudaLibraryLoadData(&library, module_of(text, target).c_str(), nullptr, nullptr, 0,
                              nullptr, nullptr, 0) == cudaSuccess);
  return library;
}

cudaKernel_t kernel_of(cudaLibrary_t library, const char *name) {
  cudaKernel_t kernel = nullptr;
  REQUIRE(cudaLibraryGetKernel(&kernel, library, name) == cudaSuccess);
  return kernel;
}

Kernels::Kernels() : library_(load_library(kernels())) {
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
