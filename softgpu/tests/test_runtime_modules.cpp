// Sources of PTX: fat binaries, compressed or not, and files.
#include <lz4.h>
#include <unistd.h>
#include <zstd.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

// Functions that nvcc's stubs call and the runtime defines.
extern "C" {
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFunction(void **binary, const char *function, char *, const char *name, int,
                            uint3 *, uint3 *, dim3 *, dim3 *, int *);
void __cudaRegisterVar(void **binary, char *variable, char *, const char *name, int, size_t, int,
                       int);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t smem, CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *smem, void *stream);
}

using namespace softgpu::test;

namespace {

enum class Packing { kNone, kLz4, kZstd };

std::string compressed(const std::string &text, Packing packing) {
  if (packing == Packing::kNone) return text;
  std::string packed(2 * text.size() + 1024, '\0');
  if (packing == Packing::kZstd) {
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  } else {
    packed.resize(static_cast<size_t>(LZ4_compress_default(text.data(), packed.data(),
                                                           static_cast<int>(text.size()),
                                                           static_cast<int>(packed.size()))));
  }
  return packed;
}

template <class T>
void append(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

/// Returns a fat binary entry as written by nvcc 13.
std::string entry(uint16_t kind, uint32_t arch, bool is_specific, const std::string &text,
                  Packing packing) {
  std::string packed = compressed(text, packing);
  const size_t packed_bytes = packed.size();
  packed.resize((packed.size() + 8) / 8 * 8);
  const uint64_t flags = 0x11 | (is_specific ? 0x100000 : 0) |
                         (packing == Packing::kLz4    ? 0x2000
                          : packing == Packing::kZstd ? 0x8000
                                                      : 0);
  std::string bytes;
  append<uint16_t>(bytes, kind);
  append<uint16_t>(bytes, 0x101);
  append<uint32_t>(bytes, 80);  // size of this header
  append<uint64_t>(bytes, packed.size());
  append<uint32_t>(bytes, packing == Packing::kNone ? 0 : static_cast<uint32_t>(packed_bytes));
  append<uint32_t>(bytes, 64);
  append<uint32_t>(bytes, 9 << 16);
  append<uint32_t>(bytes, arch);
  append<uint64_t>(bytes, 0);
  append<uint64_t>(bytes, flags);
  append<uint64_t>(bytes, 0);
  append<uint64_t>(bytes, packing == Packing::kNone ? 0 : text.size());
  bytes.resize(80);
  return bytes + packed;
}

struct Wrapper {
  int magic = 0x466243b1, version = 1;
  const void *data;
  void *more = nullptr;
};

/// Registers a fat binary like a program at its start; never unregistered.
void **register_binary(const std::vector<std::string> &entries) {
  std::string all;
  for (const std::string &e : entries) all += e;
  auto *const binary = new std::string;
  append<uint32_t>(*binary, 0xBA55ED50);
  append<uint16_t>(*binary, 1);
  append<uint16_t>(*binary, 16);
  append<uint64_t>(*binary, all.size());
  *binary += all;
  auto *const wrapper = new Wrapper;
  wrapper->data = binary->data();
  return __cudaRegisterFatBinary(wrapper);
}

/// Host functions of kernels; only their addresses are used.
const char which_stub = 0, set_stub = 0;
char table_stub = 0;

void register_function(void **binary, const char *stub, const char *name) {
  __cudaRegisterFunction(binary, stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr,
                         nullptr);
}

/// Returns a module with a kernel `which` that stores a number.
std::string which_text(const std::string &target, int number) {
  return module_of(
      kernel_entry("which", {"p"}, "st.global.u32 [%p], " + std::to_string(number) + ";\n"),
      target);
}

/// Returns the number that the kernel `which` stores.
uint32_t run_which() {
  uint32_t *words = device_words();
  void *arguments[] = {&words};
  uint32_t number = 0;
  REQUIRE(cudaLaunchKernel(&which_stub, dim3(1), dim3(1), arguments, 0, nullptr) == cudaSuccess);
  REQUIRE(cudaMemcpy(&number, words, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  return number;
}

/// Folder with PTX files, removed after the test.
struct PtxFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("softgpu_ptx_" + std::to_string(getpid()));

  PtxFolder() {
    std::filesystem::create_directories(path / "deep" / "which.ptx");
    write("which.compute_75.ptx", which_text("sm_75", 75));
    write("which.compute_80.ptx", which_text("sm_80", 80));
    write("which.compute_90a.ptx", which_text("sm_90a", 900));
    write("other.compute_80.ptx", kernels_text("sm_80"));
    write("none.ptx", "no PTX");
  }
  ~PtxFolder() { std::filesystem::remove_all(path); }
  void write(const std::string &name, const std::string &text) const {
    std::ofstream(path / "deep" / "which.ptx" / name) << text;
  }
};

PASSES_IN_EVERY_ORDER("kernels of a fat binary") {
  for (const Packing packing : {Packing::kNone, Packing::kLz4, Packing::kZstd}) {
    void **const binary = register_binary({entry(2, 90, false, "machine code", Packing::kNone),
                                           entry(1, 75, false, kernels_text("sm_75"), packing)});
    register_function(binary, &set_stub, "set");
    __cudaRegisterVar(binary, &table_stub, nullptr, "table", 0, 16, 0, 0);
    uint32_t *words = device_words();
    uint32_t value = kNew, table[4] = {};
    void *arguments[] = {&words, &value};
    REQUIRE(cudaLaunchKernel(&set_stub, dim3(kCount / 32), dim3(32), arguments, 0, nullptr) ==
            cudaSuccess);
    require_words(words, kNew);
    REQUIRE(cudaMemcpyFromSymbol(table, &table_stub, 16, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(table[3] == 13);
    CHECK(cudaMemcpyFromSymbol(table, &table_stub, 16, 4, cudaMemcpyDeviceToHost) ==
          cudaErrorInvalidValue);
    size_t bytes = 0;
    CHECK(cudaGetSymbolSize(&bytes, &table_stub) == cudaSuccess);
    CHECK(bytes == 16);
  }
}

PASSES_ON_EVERY_ARCHITECTURE("the highest matching architecture is selected") {
  register_function(register_binary({entry(1, 75, false, which_text("sm_75", 1), Packing::kZstd),
                                     entry(1, 80, false, which_text("sm_80", 2), Packing::kZstd),
                                     entry(1, 90, false, which_text("sm_90", 4), Packing::kLz4),
                                     entry(1, 90, true, which_text("sm_90a", 3), Packing::kZstd)}),
                    &which_stub, "which");
  const int arch = std::stoi(getenv("SOFTGPU_ARCH"));
  CHECK(run_which() == (arch == 90 ? 3 : arch > 90 ? 4 : arch >= 80 ? 2 : 1));
}

TEST_CASE("case: PTX from files", "[.]") {
  void **const binary = register_binary({entry(2, 80, false, "machine code", Packing::kNone)});
  register_function(binary, &which_stub, "which");
  register_function(binary, &set_stub, "set");
  __cudaRegisterVar(binary, &table_stub, nullptr, "table", 0, 16, 0, 0);
  const std::string arch = getenv("SOFTGPU_ARCH");
  CHECK(run_which() == (arch == "75" ? 75 : arch == "90" ? 900 : 80));
  cudaFuncAttributes attributes{};
  const cudaError_t expected = arch == "75" ? cudaErrorNoKernelImageForDevice : cudaSuccess;
  CHECK(cudaFuncGetAttributes(&attributes, &set_stub) == expected);
  void *address = nullptr;
  CHECK(cudaGetSymbolAddress(&address, &table_stub) == expected);
}

TEST_CASE("case: no matching PTX", "[.]") {
  register_function(register_binary({entry(1, 90, true, which_text("sm_90a", 3), Packing::kNone)}),
                    &which_stub, "which");
  CHECK(cudaLaunchKernel(&which_stub, dim3(1), dim3(1), nullptr, 0, nullptr) ==
        cudaErrorNoKernelImageForDevice);
}

PASSES_IN_EVERY_ORDER("launches by <<<>>>") {
  CHECK(__cudaPushCallConfiguration(dim3(1, 2, 3), dim3(4), 5, cudaStreamPerThread) == 0);
  dim3 grid, block;
  size_t smem = 0;
  cudaStream_t stream = nullptr;
  CHECK(__cudaPopCallConfiguration(&grid, &block, &smem, &stream) == cudaSuccess);
  CHECK(grid.z == 3);
  CHECK(block.x == 4);
  CHECK(smem == 5);
  CHECK(stream == cudaStreamPerThread);
  CHECK(__cudaPopCallConfiguration(&grid, &block, &smem, &stream) == cudaErrorMissingConfiguration);
}

TEST_CASE("runtime: PTX files are searched in SOFTGPU_PTX", "[runtime]") {
  const PtxFolder folder;
  passes_on_every_architecture("case: PTX from files",
                               {{"SOFTGPU_PTX", "/absent:" + folder.path.string()}});
}

TEST_CASE("runtime: a kernel without PTX cannot be launched", "[runtime]") {
  const CaseResult result = run_case("case: no matching PTX", {{"SOFTGPU_ARCH", "80"}});
  INFO(result);
  CHECK(result.passed());
  CHECK(result.says("no PTX of which fits sm_80"));
}

// ---- environment variables, and files written at process exit

TEST_CASE("case: a kernel runs", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  REQUIRE(kernels.set(words, kNew) == cudaSuccess);
  require_words(words, kNew);
}

TEST_CASE("runtime: an invalid setting ends the process", "[runtime]") {
  const Environment wrong = {
      {"SOFTGPU_SEED", "18446744073709551616"},
      {"SOFTGPU_SEED", "-1"},
      {"SOFTGPU_SEED", "1 "},
      {"SOFTGPU_SYNC", "2"},
      {"SOFTGPU_SYNC", "yes"},
      {"SOFTGPU_DELAY", "99999999999999"},
      {"SOFTGPU_MEMORY", "0"},
      {"SOFTGPU_MEMORY", "99999999999999999"},
      {"SOFTGPU_FAIL", "cudaMallok:1"},
      {"SOFTGPU_FAIL", "malloc:1"},
      {"SOFTGPU_FAIL", "cudaMalloc=1:2"},
  };
  for (const auto &[name, value] : wrong) {
    const CaseResult result = run_case("case: a kernel runs", {{name, value}});
    INFO(name << "=" << value << ": " << result);
    CHECK(result.exit_code == 2);
    CHECK(result.says(name + "=" + value + " is not "));
  }
}

TEST_CASE("runtime: a setting without effect is reported", "[runtime]") {
  const auto says = [](const std::string &name, const std::string &value) {
    const CaseResult result = run_case("case: a kernel runs", {{name, value}});
    INFO(result);
    CHECK(result.passed());
    return result.says(name + "=" + value + " was never applied");
  };
  CHECK(says("SOFTGPU_FAIL", "launch:2"));
  CHECK(says("SOFTGPU_FAIL", "cudaHostRegister:1"));
  CHECK(says("SOFTGPU_EDIT", "drop frobnicate"));
  CHECK(says("SOFTGPU_EDIT", "drop st.global @7 in set"));
  const CaseResult edited =
      run_case("case: a kernel runs", {{"SOFTGPU_EDIT", "swap mad.lo.u32=>mad.lo.s32"}});
  CHECK(edited.passed());
  CHECK(!edited.says("was never applied"));
  const CaseResult failed = run_case("case: a kernel runs", {{"SOFTGPU_FAIL", "cudaMalloc:1"}});
  CHECK(!failed.passed());
  CHECK(!failed.says("was never applied"));
}

std::string file_text(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("case: three launches", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  for (int i = 0; i < 3; i++) REQUIRE(kernels.increment(words) == cudaSuccess);
  require_words(words, kOld + 3);
}

TEST_CASE("runtime: SOFTGPU_COUNT writes the counters of kernels", "[runtime]") {
  const TemporaryFile file;
  REQUIRE(run_case("case: three launches", {{"SOFTGPU_COUNT", file.path}}).passed());
  const nlohmann::json counts = nlohmann::json::parse(file_text(file.path));
  CHECK(counts["counted"] == true);
  REQUIRE(counts["kernels"].size() == 1);
  const nlohmann::json &kernel = counts["kernels"][0];
  CHECK(kernel["name"] == "increment");
  CHECK(kernel["launches"] == 3);
  CHECK(kernel["blocks"] == 3 * kCount / 32);
  bool has_load = false;
  for (const nlohmann::json &i : kernel["counts"]) {
    if (i["opcode"] != "ld.global.u32") continue;
    has_load = true;
    CHECK(i["executed"] == 3 * kCount / 32);
    CHECK(i["bytes"] == 3 * kCount * 4);
    CHECK(i["sectors"] == 3 * kCount * 4 / 32);
  }
  CHECK(has_load);
}

}  // namespace
