// mpbench startup: time from dlopen to the first result, in a new process each time.
#include <link.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "bench/peers/command.h"
#include "bench/rows/rows.h"
#include "suite.h"

namespace mpbench {
namespace {

constexpr int kProcesses = 10;
/// Number of values that suites/first_result.c prints, in this order.
constexpr size_t kPrinted = 5;
constexpr struct {
  const char *name, *what;
} kPhases[kPrinted + 1] = {{"load", "dlopen"},
                           {"context", "mp_context_create"},
                           {"memory", "mp_malloc, mp_memcpy of operands"},
                           {"first", "mp_gemm, mp_stream_sync"},
                           {"total", "all of these: to the first result"},
                           {"second", "the same GEMM again"}};
using Phases = std::array<double, std::size(kPhases)>;  // us

/// Path of the library found by the loader.
std::string library_path() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *found) {
        const std::string name = info->dlpi_name;
        if (name.find("/libmpcore.so") == std::string::npos) return 0;
        *static_cast<std::string *>(found) = name;
        return 1;
      },
      &path);
  if (path.empty()) throw std::runtime_error("the file of libmpcore.so could not be determined");
  return path;
}

std::string quoted(const std::string &word) {
  return '\'' + word + '\'';
}

Phases parse_phases(const std::string &line) {
  std::array<double, kPrinted> us{};
  if (std::sscanf(line.c_str(), "%lf %lf %lf %lf %lf", &us[0], &us[1], &us[2], &us[3], &us[4]) !=
      static_cast<int>(kPrinted))
    throw std::runtime_error("mpbench_first_result (in the folder of mpbench) failed");
  return {us[0], us[1], us[2], us[3], us[0] + us[1] + us[2] + us[3], us[4]};
}

struct StartupItem {
  int64_t edge;

  std::string label() const { return "dlopen to the first result"; }
  std::string kind() const { return label(); }
  double effort_flop() const { return 0; }
};

class StartupBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const StartupItem &item) const {
    const std::string library = library_path();
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const int device = machine_.on_host() ? MP_DEVICE_HOST : machine_.cuda()->ordinal();
    const std::string command = quoted(folder / "mpbench_first_result") + ' ' + quoted(library) +
                                text(" %d %lld", device, static_cast<long long>(item.edge));
    parse_phases(output_of(command));  // loads the files into the page cache
    std::vector<Phases> runs;
    for (int process = 0; process < kProcesses; ++process)
      runs.push_back(parse_phases(output_of(command)));

    for (size_t phase = 0; phase < std::size(kPhases); ++phase) {
      std::vector<double> samples_us;
      for (const Phases &run : runs) samples_us.push_back(run[phase]);
      report_.add(
          StartupRow{.phase = kPhases[phase].name,
                     .what = kPhases[phase].what,
                     .edge = item.edge,
                     .library_bytes = static_cast<int64_t>(std::filesystem::file_size(library)),
                     .timing = timing_of(std::move(samples_us), /*calls_per_batch=*/1)});
    }
  }
};

}  // namespace

Suite startup_suite(const Options &options, const Machine &machine, Report &report) {
  const bool on_host = machine.on_host();
  const auto cost_us = [on_host](const StartupItem &) { return on_host ? 5e5 : 5e6; };
  return make_suite<StartupBench>(
      "startup", selected<StartupItem>({{.edge = on_host ? 64 : 1024}}, options, on_host), cost_us,
      options, machine, report);
}

}  // namespace mpbench
