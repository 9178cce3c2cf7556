#include "report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "support/progress.h"

namespace mpbench {
namespace {

/// Version of results/schema.json; incremented if a reader of older files would misread newer ones.
constexpr int kSchema = 1;

Json json_of(const GpuState &state) {
  return {{"during", state.during},
          {"sm_mhz", state.sm_mhz},
          {"max_sm_mhz", state.max_sm_mhz},
          {"memory_mhz", state.memory_mhz},
          {"power_w", state.power_w},
          {"power_limit_w", state.power_limit_w},
          {"temperature_c", state.temperature_c}};
}

Json json_of(const MachineRate &rate) {
  Json json{{"name", rate.name}, {"unit", rate.unit}, {"rate", nullptr}, {"how", rate.how}};
  if (!rate.timing) return json;
  json["rate"] = rate.rate();
  json.update(json_of(gpu_load_fields(rate.timing->gpu)));
  return json;
}

Json json_of(const UsedLibrary &library) {
  return {{"name", library.name},
          {"version", library.version},
          {"place", library.place},
          {"file", library.file}};
}

template <typename Item>
Json array_of(const std::vector<Item> &items) {
  Json array = Json::array();
  for (const Item &item : items) array.push_back(json_of(item));
  return array;
}

}  // namespace

Report::Report(const Options &options, const Machine &machine)
    : options_(options), stderr_is_terminal_(isatty(STDERR_FILENO)) {
  describe(machine);
  print(machine.on_host() ? "Target: host.  These are times of the CPU; they do not predict the "
                            "speed of a GPU.\n"
                          : text("Target: cuda, %s.\n", machine.info().name));
  if (machine.has_estimated_costs())
    print(text("The tuning constants of sm_%d are estimates, not measured by mptune.\n",
               machine.info().arch));
  if (machine.is_counted())
    print("Software device: instructions and memory traffic are counted, not timed.\n");
  else if (!machine.nvml_gap().empty())
    add_note("No clocks, power or temperature: " + machine.nvml_gap() + ".");
}

void Report::describe(const Machine &machine) {
  const mp_device_info_t &info = machine.info();
  machine_["schema"] = kSchema;
  if (machine.on_host()) machine_["sample"] = "host target: does not predict the speed of a GPU";
  if (machine.is_counted()) machine_["counted"] = true;
  machine_.update({{"device", info.name},
                   {"target", machine.on_host() ? "host" : "cuda"},
                   {"arch", info.arch},
                   {"num_sms", info.num_sms},
                   {"l2_bytes", info.l2_bytes},
                   {"estimated_costs", machine.has_estimated_costs()},
                   {"commit", mp_build_info()},
                   {"command", options_.command},
                   {"date", mptools::utc_now()},
                   {"driver", nullptr},
                   {"cuda", nullptr}});
  if (machine.on_host()) return;
  const auto version = [](int number) { return text("%d.%d", number / 1000, number % 1000 / 10); };
  if (machine.nvml() != nullptr) machine_["driver"] = machine.nvml()->driver_version();
  machine_["driver_cuda"] = version(machine.cuda()->driver_version());
  machine_["cuda"] = version(machine.cuda()->runtime_version());
  add_library("CUDA runtime", version(machine.cuda()->runtime_version()),
              machine.cuda()->library());
  if (machine.nvml() != nullptr)
    add_library("NVML", machine.nvml()->driver_version(), machine.nvml()->library());
  add(machine.gpu_state("before the first measurement"));
}

void Report::set_peak(const Peak &peak) {
  peak_ = peak;
  print(text("GEMM peak:%8.*f TFLOP/s (", rate_digits(peak.tflops), peak.tflops) + peak.from +
        ").\n");
}

void Report::add(const Fields &row) {
  print_heading(heading_of(row));
  print(line_of(row));
  rows_.push_back(json_of(row));
}

void Report::add(const std::optional<GpuState> &state) {
  if (state) gpu_states_.push_back(*state);
}

void Report::add(const MachineRate &rate) {
  rates_.push_back(rate);
  const std::string figure = rate.timing ? text("%.1f %s, ", rate.rate(), rate.unit.c_str()) : "";
  print("Peak, " + rate.name + ": " + figure + rate.how + ".\n");
}

void Report::add_library(const char *name, const std::string &version,
                         const DynamicLibrary &library) {
  const auto is_known = [&](const UsedLibrary &known) { return known.name == name; };
  if (std::any_of(libraries_.begin(), libraries_.end(), is_known)) return;
  libraries_.push_back(
      {.name = name, .version = version, .place = library.place(), .file = library.file()});
}

void Report::add_note(const std::string &sentence) {
  notes_.push_back(sentence);
  print(sentence + '\n');
}

void Report::add_failure(const std::string &sentence) {
  has_failed_ = true;
  add_note(sentence);
}

bool Report::add_agreement(const std::string &peer, const std::string &problem,
                           const std::string &difference) {
  if (difference.empty()) return true;
  add_failure("mpcore and " + peer + " differ for " + problem + ": " + difference + ".");
  return false;
}

std::string Report::whole_json(const std::vector<std::string> &notes) const {
  Json json = machine_;
  json["rows"] = rows_;
  if (peak_) {
    json["peak_tflops"] = peak_->tflops;
    json["peak_from"] = peak_->from;
  }
  json["clocks"] = array_of(gpu_states_);
  json["peaks"] = array_of(rates_);
  json["peers"] = array_of(libraries_);
  json["notes"] = notes;
  return mptools::json_text(json);
}

void Report::save() const {
  namespace fs = std::filesystem;
  const fs::path path = options_.json;
  const bool is_file =
      !path.empty() && path != "-" && (fs::is_regular_file(path) || !fs::exists(path));
  if (!is_file) return;
  std::vector<std::string> notes = notes_;
  notes.push_back("This run was interrupted: rows are missing.");
  write_file(path, whole_json(notes));
}

void Report::finish() const {
  if (options_.json == "-")
    std::fputs(whole_json(notes_).c_str(), stdout);
  else if (!options_.json.empty())
    write_file(options_.json, whole_json(notes_));
}

void Report::print(const std::string &line) const {
  if (stderr_is_terminal_) std::fputs(mptools::kClearLine, stderr);
  std::fputs(line.c_str(), options_.json == "-" ? stderr : stdout);
  std::fflush(stdout);
}

void Report::print_heading(const std::string &heading) {
  if (heading != last_heading_) print(heading);
  last_heading_ = heading;
}

}  // namespace mpbench
