#include "report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "support/progress.h"

namespace mpbench {
namespace {

/// Of results/schema.json; grows when a reader of older files would misread newer ones.
constexpr int kSchema = 1;

void write_gpu_state(JsonWriter &json, const GpuState &state) {
  json.open('{');
  json.string("during", state.during);
  json.number("sm_mhz", state.sm_mhz);
  json.number("max_sm_mhz", state.max_sm_mhz);
  json.number("memory_mhz", state.memory_mhz);
  json.number("power_w", state.power_w);
  json.number("power_limit_w", state.power_limit_w);
  json.number("temperature_c", state.temperature_c);
  json.close('}');
}

void write_rate(JsonWriter &json, const MachineRate &rate) {
  json.open('{');
  json.string("name", rate.name);
  json.string("unit", rate.unit);
  if (rate.timing)
    json.number("rate", rate.rate());
  else
    json.null("rate");
  json.string("how", rate.how);
  if (rate.timing) write_gpu_load(json, rate.timing->gpu);
  json.close('}');
}

void write_library(JsonWriter &json, const UsedLibrary &library) {
  json.open('{');
  json.string("name", library.name);
  json.string("version", library.version);
  json.string("place", library.place);
  json.string("file", library.file);
  json.close('}');
}

}  // namespace

Report::Report(const Options &options, const Machine &machine)
    : options_(options), stderr_is_terminal_(isatty(STDERR_FILENO)) {
  json_.open('{');
  write_machine(machine);
  json_.open('[', "rows");
  print(machine.on_host() ? "Target: host.  These are times of the CPU that stands in for a GPU; "
                            "they are not GPU figures\nand say nothing about any GPU.\n"
                          : text("Target: cuda, %s.\n", machine.info().name));
  if (!machine.nvml_gap().empty())
    add_note("No clocks, power or temperature: " + machine.nvml_gap() + ".");
}

void Report::write_machine(const Machine &machine) {
  const mp_device_info_t &info = machine.info();
  json_.number("schema", kSchema);
  if (machine.on_host()) json_.string("sample", "host target: says nothing about a GPU");
  json_.string("device", info.name);
  json_.string("target", machine.on_host() ? "host" : "cuda");
  json_.number("arch", info.arch);
  json_.number("num_sms", info.num_sms);
  json_.number("l2_bytes", info.l2_bytes);
  json_.string("commit", mp_build_info());
  json_.string("command", options_.command);
  json_.string("date", mptools::utc_now());
  if (machine.on_host()) {
    json_.null("driver");
    json_.null("cuda");
    return;
  }
  const auto version = [](int number) { return text("%d.%d", number / 1000, number % 1000 / 10); };
  if (machine.nvml() != nullptr)
    json_.string("driver", machine.nvml()->driver_version());
  else
    json_.null("driver");
  json_.string("driver_cuda", version(machine.cuda()->driver_version()));
  json_.string("cuda", version(machine.cuda()->runtime_version()));
  add_library("CUDA runtime", version(machine.cuda()->runtime_version()),
              machine.cuda()->library());
  if (machine.nvml() != nullptr)
    add_library("NVML", machine.nvml()->driver_version(), machine.nvml()->library());
  add(machine.gpu_state("before the first measurement"));
}

void Report::set_peak(const Peak &peak) {
  peak_ = peak;
  print("GEMM peak:" + teraflops_text(peak.tflops) + " TFLOP/s (" + peak.from + ").\n");
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

std::string Report::whole_json(const std::vector<std::string> &notes) const {
  JsonWriter json = json_;
  json.close(']');
  if (peak_) {
    json.number("peak_tflops", peak_->tflops);
    json.string("peak_from", peak_->from);
  }
  json.open('[', "clocks");
  for (const GpuState &state : gpu_states_) write_gpu_state(json, state);
  json.close(']');
  json.open('[', "peaks");
  for (const MachineRate &rate : rates_) write_rate(json, rate);
  json.close(']');
  json.open('[', "peers");
  for (const UsedLibrary &library : libraries_) write_library(json, library);
  json.close(']');
  json.open('[', "notes");
  for (const std::string &note : notes) json.string({}, note);
  json.close(']');
  json.close('}');
  return json.finish();
}

void Report::save() const {
  namespace fs = std::filesystem;
  const fs::path path = options_.json;
  const bool is_file =
      !path.empty() && path != "-" && (fs::is_regular_file(path) || !fs::exists(path));
  if (!is_file) return;
  std::vector<std::string> notes = notes_;
  notes.push_back("This run was ended before it was done: rows are missing.");
  // Never half a file, whenever this program is ended.
  const fs::path part = path.string() + ".part";
  write_file(part, whole_json(notes));
  fs::rename(part, path);
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
