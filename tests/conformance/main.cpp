// Conformance of the simulator: every primitive of kernels/simt/ separately, GPU against simulator.
//
// With MP_TEST_DEVICE=cuda, each case runs on the GPU and in the simulator, from one source, and
// all outputs of the kernels must be equal bit for bit.  Otherwise the modes of the simulator are
// compared with each other, and each case also runs with an injected bug, which must change its
// output: a case that cannot fail proves nothing about a GPU either.  The tests in tests/simulator
// compare the simulator with the hardware documentation.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "host/engine.h"
#include "suite.h"

namespace {

using namespace mpconform;
namespace engine = mp::host::engine;

constexpr uint64_t kSeeds = 3;

constexpr char kUsage[] =
    "conformance [--list | --help | CASE...]\n"
    "\n"
    "With MP_TEST_DEVICE=cuda: compares the output of each primitive on the GPU with that in the\n"
    "simulator.  Without: compares the modes of the simulator with each other, and checks that an\n"
    "injected bug changes the output.  No CASE means all of them; the last line is \"N passed, N\n"
    "failed[, N skipped]\".\n"
    "\n"
    "Exit code: 0 all passed or were skipped, 1 one failed, 2 wrong arguments.\n";

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
};

bool wants_cuda() {
  const char *const name = std::getenv("MP_TEST_DEVICE");
  return name != nullptr && std::strcmp(name, "cuda") == 0;
}

/// Returns an empty string, or a description of the first difference.
std::string check_on_host(const Case &one, const mp::Device &host) {
  engine::set_mode(engine::Mode::plain());
  const Output plain = one.run(host, Mistake::none);
  if (differences(plain, one.run(host, Mistake::made)).empty())
    return "an injected mistake makes no difference";
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    engine::set_mode(engine::Mode::strict_with(seed));
    const std::string found = differences(plain, one.run(host, Mistake::none));
    if (!found.empty()) return "strict mode, seed " + std::to_string(seed) + ": " + found;
  }
  return "";
}

std::string check_on_cuda(const Case &on_host, const Case &on_cuda, mp::Device host,
                          const mp::Device &cuda) {
  host.arch = std::min(host.arch, cuda.arch);  // older architectures have fewer types
  engine::set_mode(engine::Mode::plain());
  const Output wanted = on_host.run(host, Mistake::none);
  const Output got = on_cuda.run(cuda, Mistake::none);
  return differences(wanted, got);
}

class Program {
 public:
  Program() : host_(mp::host::conformance_suite()) {
    if (!wants_cuda()) return;
#if MP_HAVE_CUDA
    cuda_ = mp::cuda::conformance_suite();
#else
    cuda_.why_no_device = "this build has no cuda target";
#endif
    if (!cuda_.why_no_device.empty()) throw std::runtime_error(cuda_.why_no_device);
    std::printf("device: %s, arch %d\n", cuda_.device.name, cuda_.device.arch);
  }

  bool has(const char *name) const {
    return std::any_of(host_.cases.begin(), host_.cases.end(),
                       [&](const Case &one) { return std::strcmp(one.name, name) == 0; });
  }
  void list() const {
    for (const Case &one : host_.cases) std::printf("%s\n", one.name);
  }
  void run(size_t index, Tally &tally) const {
    const Case &one = host_.cases[index];
    if (wants_cuda() && one.needs_sm90 && !cuda_.device.has_wgmma) {
      std::printf("skipped: %s: needs code for sm_90a, on a device of sm_%d\n", one.name,
                  cuda_.device.arch);
      tally.skipped++;
      return;
    }
    std::string wrong;
    try {
      wrong = wants_cuda() ? check_on_cuda(one, cuda_.cases[index], host_.device, cuda_.device)
                           : check_on_host(one, host_.device);
    } catch (const std::exception &error) {
      wrong = error.what();
    }
    (wrong.empty() ? tally.passed : tally.failed)++;
    if (!wrong.empty()) std::printf("FAILED: %s: %s\n", one.name, wrong.c_str());
    std::fflush(stdout);
  }
  const std::vector<Case> &cases() const {
    return host_.cases;
  }

 private:
  Suite host_, cuda_{};
};

bool is_asked_for(const Case &one, int argc, char **argv) {
  if (argc == 1) return true;
  return std::any_of(argv + 1, argv + argc,
                     [&](const char *name) { return std::strcmp(one.name, name) == 0; });
}

int run(int argc, char **argv) {
  const Program program;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    program.list();
    return 0;
  }
  for (int i = 1; i < argc; i++) {
    if (program.has(argv[i])) continue;
    std::fprintf(stderr, "conformance: there is no case \"%s\"; --list shows them.\n", argv[i]);
    return 2;
  }
  Tally tally;
  for (size_t i = 0; i < program.cases().size(); i++)
    if (is_asked_for(program.cases()[i], argc, argv)) program.run(i, tally);
  std::printf("%d passed, %d failed", tally.passed, tally.failed);
  if (tally.skipped > 0) std::printf(", %d skipped", tally.skipped);
  std::printf("\n");
  return tally.failed > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::printf("no device: %s\n0 passed, 1 failed\n", error.what());
    return 1;
  }
}
