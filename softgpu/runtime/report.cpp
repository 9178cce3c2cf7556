// Report at process exit: violations, kernel counters, lines that never ran.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <ranges>

#include "softgpu/machine/faults.h"
#include "softgpu/options.h"
#include "softgpu/program/edit.h"
#include "softgpu/runtime/count_report.h"
#include "softgpu/runtime/errors.h"
#include "softgpu/runtime/modules.h"
#include "softgpu/runtime/settings.h"
#include "softgpu/runtime/work.h"

namespace softgpu::runtime {

namespace {

constexpr int kExitOfViolation = 99;
constexpr size_t kMaxStatement = 90;  ///< length of a statement in the list of lines that never ran

bool was_launched(const Program &program) {
  const std::lock_guard lock(program.totals->mutex);
  return program.totals->tally.num_launches != 0;
}

void write_counts(const std::string &file) {
  std::ofstream out(file);
  out << counts_of_process();
  if (!out) std::fprintf(stderr, "softgpu: %s cannot be written\n", file.c_str());
}

/// Writes "K kernel instructions executed launches" and, for each instruction that never ran, "L
/// line statement", separated by tabs.
void write_cover(std::ostream &out, const Program &program) {
  const std::lock_guard lock(program.totals->mutex);
  const std::vector<uint64_t> &executed = program.totals->tally.executed;
  const auto never = [&](size_t i) { return i >= executed.size() || executed[i] == 0; };
  // The last instruction is a return that the parser appends.
  const size_t num_code = program.code.size() - 1;
  const auto num_never = std::ranges::count_if(std::views::iota(size_t{0}, num_code), never);
  out << "K\t" << program.pretty_name << '\t' << num_code << '\t'
      << num_code - static_cast<size_t>(num_never) << '\t' << program.totals->tally.num_launches
      << '\n';
  for (size_t i = 0; i < num_code; i++)
    if (never(i))
      out << "L\t" << program.source[i].line << '\t'
          << program.source[i].text.substr(0, kMaxStatement) << '\n';
}

/// Appends to the file, because a test consists of many processes.
void write_cover(const std::string &file) {
  std::ofstream out(file, std::ios::app);
  for_each_kernel([&](const Kernel &kernel) {
    if (was_launched(*kernel.program)) write_cover(out, *kernel.program);
  });
  if (!out) std::fprintf(stderr, "softgpu: %s cannot be written\n", file.c_str());
}

/// Reports in its destructor.  As a static object constructed early, it is destroyed after the
/// program's static objects.
struct Reporter {
  ~Reporter() {
    if (!is_used() || is_forked_child()) return;
    scheduler().stop();
    report_injections();
    if (!options().edit.empty() && !was_edited())
      std::fprintf(stderr, "softgpu: SOFTGPU_EDIT=%s never happened\n", options().edit.c_str());
    if (!settings().count_file.empty()) write_counts(settings().count_file);
    if (!settings().cover_file.empty()) write_cover(settings().cover_file);
    const uint64_t count = num_violations();
    if (count == 0) return;
    std::fprintf(stderr, "softgpu: %llu violation%s\n", static_cast<unsigned long long>(count),
                 count == 1 ? "" : "s");
    std::fflush(nullptr);
    _exit(kExitOfViolation);
  }
} reporter;

}  // namespace

}  // namespace softgpu::runtime
