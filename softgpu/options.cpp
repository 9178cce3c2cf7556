#include "softgpu/options.h"

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

/// Sets the opt-in maximum of dynamic shared memory (CUDA C++ Programming Guide, technical
/// specifications per compute capability) and the multiprocessors of a T4, A100, L40S, H200, B200
/// or RTX 5090.
void set_architecture(Options &o) {
  struct Architecture {
    int arch, smem_kib, num_sms;
  };
  for (const auto [arch, smem_kib, num_sms] : {Architecture{75, 64, 40},
                                               {80, 163, 108},
                                               {89, 99, 142},
                                               {90, 227, 132},
                                               {100, 227, 148},
                                               {120, 99, 170}}) {
    if (arch != o.arch) continue;
    o.smem_per_block = static_cast<uint64_t>(smem_kib) * 1024;
    o.num_sms = num_sms;
    return;
  }
  refuse("SOFTGPU_ARCH", text_of("SOFTGPU_ARCH"), "75, 80, 89, 90, 100 or 120");
}

Options read_options() {
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  Options o;
  read_number("SOFTGPU_ARCH", 0, 999, &o.arch);
  set_architecture(o);
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
