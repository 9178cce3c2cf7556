#include "softgpu/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace softgpu {
namespace {

Completion read_landing(bool is_random) {
  const std::string_view text = text_of("SOFTGPU_COMPLETION");
  if (text.empty()) return is_random ? Completion::kRandom : Completion::kLate;
  if (text == "late") return Completion::kLate;
  if (text == "random") return Completion::kRandom;
  if (text == "early") return Completion::kEarly;
  refuse("SOFTGPU_COMPLETION", text, "late, random or early");
}

constexpr Architecture kArchitectures[] = {
    {75, 40, 1024, 16, 64 << 10, 0, "T4", 4 << 20, 1590'000, 5001'000, 256},
    {80, 108, 2048, 32, 164 << 10, 1024, "A100", 40 << 20, 1410'000, 1215'000, 5120},
    {89, 142, 1536, 24, 100 << 10, 1024, "L40S", 96 << 20, 2520'000, 9001'000, 384},
    {90, 132, 2048, 32, 228 << 10, 1024, "H200", 60 << 20, 1980'000, 3201'000, 6144},
    {100, 148, 2048, 32, 228 << 10, 1024, "B200", 126 << 20, 1980'000, 3750'000, 8192},
    {120, 170, 1536, 24, 100 << 10, 1024, "RTX_5090", 96 << 20, 2407'000, 14'001'000, 512},
};

const Architecture *find_architecture(int arch) {
  const auto *found = std::ranges::find(kArchitectures, arch, &Architecture::arch);
  return found == std::end(kArchitectures) ? nullptr : found;
}

Options read_options() {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  Options o;
  read_number("SOFTGPU_ARCH", 0, 999, &o.arch);
  const Architecture *const known = find_architecture(o.arch);
  if (!known) refuse("SOFTGPU_ARCH", text_of("SOFTGPU_ARCH"), "75, 80, 89, 90, 100 or 120");
  o.smem_per_block = static_cast<uint64_t>(known->smem_per_sm - known->reserved_smem);
  o.num_sms = known->num_sms;
  read_number("SOFTGPU_SMS", 1, 1024, &o.num_sms);
  read_number("SOFTGPU_DEVICES", 1, 64, &o.num_devices);
  read_number("SOFTGPU_SEED", 0, kAny, &o.seed);
  o.completion = read_landing(o.is_random());
  o.diverges = read_switch("SOFTGPU_DIVERGE");
  o.lags = read_switch("SOFTGPU_LAG");
  read_number("SOFTGPU_QUANTUM", 1, 1 << 30, &o.quantum);
  read_number("SOFTGPU_THREADS", 1, 1024, &o.num_threads);
  read_number("SOFTGPU_RESIDENT", 1, 1 << 20, &o.num_resident);
  read_number("SOFTGPU_LIMIT", 0, kAny, &o.max_instructions);
  o.counts_memory = !text_of("SOFTGPU_COUNT").empty();
  o.skips_products = read_switch("SOFTGPU_SKIP_PRODUCTS");
  o.checks_initialised = read_switch("SOFTGPU_INITCHECK");
  o.checks_races = read_switch("SOFTGPU_RACECHECK");
  o.checks_fences = read_switch("SOFTGPU_FENCECHECK");
  o.traces = read_switch("SOFTGPU_TRACE");
  o.aborts = read_switch("SOFTGPU_ABORT");
  o.edit = text_of("SOFTGPU_EDIT");
  return o;
}

}  // namespace

constinit std::atomic<const Options *> options_when_read = nullptr;

Options &options_for_tests() {
  // Never destroyed: the exit report uses it.
  static Options *const read = new Options(read_options());
  options_when_read.store(read, std::memory_order_release);
  return *read;
}

const Architecture &architecture() {
  return *find_architecture(options().arch);
}

// ---- environment variables

std::string_view text_of(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

void refuse(const char *name, std::string_view value, const std::string &what) {
  std::fprintf(stderr, "softgpu: %s=%.*s is not %s\n", name, static_cast<int>(value.size()),
               value.data(), what.c_str());
  std::_Exit(2);
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

uint64_t number_of(const char *name, uint64_t otherwise, uint64_t least, uint64_t largest) {
  const std::string_view text = text_of(name);
  if (text.empty()) return otherwise;
  const std::optional<uint64_t> number = parse_number(text);
  if (!number || *number < least || *number > largest)
    refuse(name, text, "a number from " + std::to_string(least) + " to " + std::to_string(largest));
  return *number;
}

bool read_switch(const char *name) {
  return number_of(name, 0, 0, 1) != 0;
}

}  // namespace softgpu
