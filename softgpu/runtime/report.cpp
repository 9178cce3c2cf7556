// Reports at process exit: violations, and kernel counters as JSON (README.md, Counts).
#include <unistd.h>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "softgpu/counts.h"
#include "softgpu/machine/faults.h"
#include "softgpu/options.h"
#include "softgpu/program/edit.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/runtime/device.h"
#include "softgpu/runtime/modules.h"
#include "softgpu/runtime/work.h"

namespace softgpu::runtime {

namespace {

using Json = nlohmann::ordered_json;

void add_to(Json &sum, uint64_t value) {
  sum = sum.get<uint64_t>() + value;
}

/// Returns an object with all names set to 0.
Json zeros(std::initializer_list<const char *> names) {
  Json object = Json::object();
  for (const char *name : names) object[name] = uint64_t{0};
  return object;
}

Json no_totals() {
  Json totals = zeros({"launches", "blocks", "issue_slots"});
  Json &classes = totals["classes"] = Json::object();
  for (const std::string_view name : kOpcodeClasses) classes[std::string(name)] = uint64_t{0};
  classes["predicated_off"] = uint64_t{0};
  totals["tensor"] = zeros({"instructions", "flops"});
  totals["global"] = Json::object();
  totals["shared"] = Json::object();
  totals["waits"] = zeros({"barriers", "mbarrier_waits", "mbarrier_incomplete",
                           "tensor_map_acquires", "bulk_waits", "bulk_waits_for_all"});
  return totals;
}

/// Adds the traffic of an instruction to global memory, shared memory or both.
void add_paths(Json &totals, const Opcode &opcode, const AccessCount &access) {
  const std::string path(path_of(opcode));
  const auto add = [&](const char *space, std::initializer_list<const char *> names,
                       std::initializer_list<uint64_t> values) {
    Json &sums = totals[space];
    if (!sums.contains(path)) sums[path] = zeros(names);
    auto value = values.begin();
    for (const char *name : names) add_to(sums[path][name], *value++);
  };
  if (access.global_bytes != 0)
    add("global", {"requests", "bytes", "sectors", "least_sectors"},
        {access.requests, access.global_bytes, access.sectors, access.least_sectors});
  if (access.shared_bytes != 0)
    add("shared", {"requests", "bytes", "wavefronts", "least_wavefronts"},
        {access.requests, access.shared_bytes, access.wavefronts, access.least_wavefronts});
}

void add_instruction(Json &totals, std::string_view statement, uint64_t executed,
                     const AccessCount &access) {
  const Opcode opcode = opcode_parts(opcode_text(statement));
  add_to(totals["classes"][std::string(class_of(opcode))], executed);
  if (const uint64_t flops = tensor_flops(opcode)) {
    add_to(totals["tensor"]["instructions"], executed);
    add_to(totals["tensor"]["flops"], executed * flops);
  }
  if (is_barrier(opcode)) add_to(totals["waits"]["barriers"], executed);
  if (is_mbarrier_wait(opcode)) {
    add_to(totals["waits"]["mbarrier_waits"], executed);
    add_to(totals["waits"]["mbarrier_incomplete"], access.incomplete);
  }
  if (is_tensor_map_acquire(opcode)) add_to(totals["waits"]["tensor_map_acquires"], executed);
  if (is_bulk_wait(opcode)) {
    add_to(totals["waits"]["bulk_waits"], executed);
    if (waits_for_all(statement)) add_to(totals["waits"]["bulk_waits_for_all"], executed);
  }
  add_paths(totals, opcode, access);
}

Json totals_of(const Program &program, const KernelCounters &tally) {
  Json totals = no_totals();
  totals["launches"] = tally.num_launches;
  totals["blocks"] = tally.num_blocks;
  totals["issue_slots"] = tally.num_instructions;
  uint64_t num_executed = 0;
  for (size_t i = 0; i < tally.executed.size(); i++) {
    if (tally.executed[i] == 0) continue;
    num_executed += tally.executed[i];
    add_instruction(totals, program.source[i].text, tally.executed[i], tally.accesses[i]);
  }
  totals["classes"]["predicated_off"] = tally.num_instructions - num_executed;
  return totals;
}

/// Adds the numbers of `more`, which may have keys that `sum` lacks.
void add_all(Json &sum, const Json &more) {
  for (const auto &[name, value] : more.items()) {
    if (value.is_object())
      add_all(sum.contains(name) ? sum[name] : sum[name] = Json::object(), value);
    else if (sum.contains(name))
      add_to(sum[name], value.get<uint64_t>());
    else
      sum[name] = value;
  }
}

Json lines_of(const Program &program, const KernelCounters &tally) {
  Json lines = Json::array();
  for (size_t i = 0; i < tally.executed.size(); i++) {
    if (tally.executed[i] == 0) continue;
    Json line{{"line", program.source[i].line},
              {"opcode", std::string(opcode_text(program.source[i].text))},
              {"executed", tally.executed[i]}};
    for (const AccessField &field : kAccessFields)
      if (const uint64_t value = tally.accesses[i].*field.value) line[field.name] = value;
    lines.push_back(line);
  }
  return lines;
}

/// Selects the counters of a kernel that a report contains.
using TakeTally = KernelCounters (*)(Totals &);

std::string report(TakeTally take, bool has_lines) {
  Json all = no_totals(), kernels = Json::array();
  for_each_kernel([&](const Kernel &kernel) {
    const Program &program = *kernel.program;
    const std::lock_guard lock(program.totals->mutex);
    const KernelCounters tally = take(*program.totals);
    if (tally.num_launches == 0) return;
    const Json totals = totals_of(program, tally);
    add_all(all, totals);
    Json one{{"name", program.name}, {"pretty_name", program.pretty_name}, {"file", program.file}};
    one.update(totals);
    if (has_lines) {
      one["host_seconds"] = program.totals->seconds;
      one["counts"] = lines_of(program, tally);
    }
    kernels.push_back(one);
  });
  const Json whole{
      {"counted", true}, {"arch", options().arch}, {"total", all}, {"kernels", kernels}};
  return whole.dump(1) + '\n';
}

}  // namespace

std::string counts_of_process() {
  return report([](Totals &totals) { return totals.tally; }, true);
}

// ---- report at the end of the process

namespace {

constexpr int kExitOfViolation = 99;

void write_counts(const std::string &file) {
  std::ofstream out(file);
  out << counts_of_process();
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
      std::fprintf(stderr, "softgpu: SOFTGPU_EDIT=%s was never applied\n", options().edit.c_str());
    if (!settings().count_file.empty()) write_counts(settings().count_file);
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

using namespace softgpu;
using namespace softgpu::runtime;

const char *softgpu_take_counts() {
  static std::string text;
  if (!options().counts_memory) return nullptr;
  for (int device = 0; device < options().num_devices; device++)
    scheduler().wait_for_device(device);
  text = report(
      [](Totals &totals) {
        KernelCounters fresh = totals.tally;
        fresh.add(totals.taken, ~uint64_t{0});
        totals.taken = totals.tally;
        return fresh;
      },
      false);
  return text.c_str();
}
