// Conformance of both targets: every primitive of kernels/simt/ separately, against its definition.
//
// A case runs on one device: the host target, or with MP_TEST_DEVICE=cuda a GPU or the software
// device.  All outputs must equal the definition, which a case computes in plain loops, bit for
// bit; math.cu compares with recorded digests instead.  On the host target each case also runs with
// an injected bug, which must change its output: a case that cannot fail proves nothing about a GPU
// either.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "suite.h"

namespace {

using namespace mpconform;

constexpr char kUsage[] =
    "conformance [--list | --help | CASE...]\n"
    "\n"
    "Compares the output of each primitive with its definition, on the host target or, with\n"
    "MP_TEST_DEVICE=cuda, on a GPU.  On the host target, an injected bug must also change the\n"
    "output.  No CASE means all of them; the last line is \"N passed, N failed[, N skipped]\".\n"
    "\n"
    "Exit code: 0 all passed or were skipped, 1 one failed, 2 wrong arguments.\n";

struct Tally {
  int passed = 0, failed = 0, skipped = 0;
};

Suite suite_of_test_device() {
  const char *const name = std::getenv("MP_TEST_DEVICE");
  if (name == nullptr || std::strcmp(name, "cuda") != 0) return mp::host::conformance_suite();
#if MP_HAVE_CUDA
  Suite suite = mp::cuda::conformance_suite();
  if (!suite.why_no_device.empty()) throw std::runtime_error(suite.why_no_device);
  std::printf("device: %s, arch %d\n", suite.device.name, suite.device.arch);
  return suite;
#else
  throw std::runtime_error("this build has no cuda target");
#endif
}

/// Returns an empty string, or a description of the first difference.
std::string check(const Case &one, const mp::Device &device) {
  if (const std::string found = differences(one.run(device, Mistake::none)); !found.empty())
    return found;
  if (device.target == MP_TARGET_HOST && differences(one.run(device, Mistake::made)).empty())
    return "an injected mistake makes no difference";
  return "";
}

void run(const Case &one, const mp::Device &device, Tally &tally) {
  if (one.needs_sm90 && !device.has_wgmma) {
    std::printf("skipped: %s: needs code for sm_90a, on a device of sm_%d\n", one.name,
                device.arch);
    tally.skipped++;
    return;
  }
  std::string wrong;
  try {
    wrong = check(one, device);
  } catch (const std::exception &error) {
    wrong = error.what();
  }
  (wrong.empty() ? tally.passed : tally.failed)++;
  if (!wrong.empty()) std::printf("FAILED: %s: %s\n", one.name, wrong.c_str());
  std::fflush(stdout);
}

int run(int argc, char **argv) {
  const Suite suite = suite_of_test_device();
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Case &one : suite.cases) std::printf("%s\n", one.name);
    return 0;
  }
  const auto is_named = [](const Case &one, const char *name) {
    return std::strcmp(one.name, name) == 0;
  };
  for (int i = 1; i < argc; i++) {
    if (std::any_of(suite.cases.begin(), suite.cases.end(),
                    [&](const Case &one) { return is_named(one, argv[i]); }))
      continue;
    std::fprintf(stderr, "conformance: there is no case \"%s\"; --list shows them.\n", argv[i]);
    return 2;
  }
  Tally tally;
  for (const Case &one : suite.cases)
    if (argc == 1 ||
        std::any_of(argv + 1, argv + argc, [&](const char *name) { return is_named(one, name); }))
      run(one, suite.device, tally);
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
