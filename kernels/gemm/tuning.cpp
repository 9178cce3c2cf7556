#include "kernels/gemm/tuning.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "base/lifetime.h"
#include "kernels/gemm/plan_text.h"

namespace mp {

namespace {

constexpr const char *kBuiltinText =
#include "kernels/gemm/tuning_builtin.inc"
    ;

constexpr std::array kClassNames = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120", "host"};
static_assert(kClassNames.size() == kNumDeviceClasses);

template <class Constants>
struct Key {
  const char *name;
  double Constants::*field;
};
constexpr Key<ClassTuning> kClassKeys[] = {{"launch_us", &ClassTuning::launch_us},
                                           {"dram_us_per_mb", &ClassTuning::dram_us_per_mb},
                                           {"l2_us_per_mb", &ClassTuning::l2_us_per_mb},
                                           {"partial_us_per_mb", &ClassTuning::partial_us_per_mb},
                                           {"tma_store_us", &ClassTuning::tma_store_us},
                                           {"direct_store_us", &ClassTuning::direct_store_us},
                                           {"staged_store_us", &ClassTuning::staged_store_us},
                                           {"source_us_per_mb", &ClassTuning::source_us_per_mb},
                                           {"op_us", &ClassTuning::op_us},
                                           {"cluster_sum_us", &ClassTuning::cluster_sum_us},
                                           {"copy_us_per_mb", &ClassTuning::copy_us_per_mb},
                                           {"scalar_load_us", &ClassTuning::scalar_load_us},
                                           {"wgrad_stage_us", &ClassTuning::wgrad_stage_us},
                                           {"wgrad_load_us", &ClassTuning::wgrad_load_us},
                                           {"estimated", &ClassTuning::estimated},
                                           {"measured_arch", &ClassTuning::measured_arch}};
constexpr Key<KernelTuning> kKernelKeys[] = {{"start_us", &KernelTuning::start_us},
                                             {"c2", &KernelTuning::c2}};

// ---------------------------------------------------------------------------- reading

/// Thrown inside this file; what() is one clause.
struct SyntaxError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns a word in quotes.  NUL, which would end what(), is spelled out.
std::string quoted(std::string_view word) {
  std::string text = "\"";
  for (const char c : word) {
    if (c == '\0')
      text += "\\u0000";
    else
      text += c;
  }
  return text + '"';
}

/// Returns the words of a line up to a #.
std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kSpaces = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(kSpaces)));
    line.remove_prefix(words.back().size());
  }
}

double parse_number(std::string_view word) {
  constexpr double kMax = 1e9;  // keeps every predicted time finite
  double number = -1;
  const char *const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= 0 && number <= kMax))
    throw SyntaxError(quoted(word) + " must be a number from 0 to 1e9");
  return number;
}

DeviceClass parse_class(std::string_view word) {
  for (size_t i = 0; i < kNumDeviceClasses; i++)
    if (word == kClassNames[i]) return static_cast<DeviceClass>(i);
  throw SyntaxError("class " + quoted(word) + " must be " + kDeviceClassList);
}

const GemmKernel &parse_kernel(std::string_view word) {
  for (const GemmKernel &kernel : gemm_kernels())
    if (word == kernel.name) return kernel;
  throw SyntaxError("unknown kernel " + quoted(word));
}

/// Executes the assignment KEY=NUMBER in `word`.
template <class Constants, size_t kKeys>
void set_key(Constants &constants, const Key<Constants> (&keys)[kKeys], const char *owner,
             std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) throw SyntaxError(quoted(word) + " must be KEY=NUMBER");
  const std::string_view name = word.substr(0, equals);
  const double number = parse_number(word.substr(equals + 1));
  const auto key = std::ranges::find(keys, name, &Key<Constants>::name);
  if (key == std::end(keys)) throw SyntaxError("unknown key " + quoted(name) + " of " + owner);
  constants.*key->field = number;
}

KernelTuning parse_kernel_tuning(std::span<const std::string_view> words) {
  if (words.size() < 2) throw SyntaxError("a kernel requires TILE_US and K_US");
  KernelTuning tuning{.tile_us = parse_number(words[0]), .k_us = parse_number(words[1])};
  for (const std::string_view word : words.subspan(2))
    set_key(tuning, kKernelKeys, "a kernel", word);
  return tuning;
}

void parse_fastest(std::span<const std::string_view> words, GemmTuning &tuning) {
  constexpr size_t kDigits = 16;
  if (words.size() != 2) throw SyntaxError("fastest requires CALL and KERNEL");
  uint64_t call = 0;
  const char *const end = words[0].data() + words[0].size();
  const auto [stop, error] = std::from_chars(words[0].data(), end, call, 16);
  if (words[0].size() != kDigits || error != std::errc() || stop != end)
    throw SyntaxError("call " + quoted(words[0]) + " must have 16 hexadecimal digits");
  tuning.fastest[call] = words[1];
}

void parse_line(std::string_view line, GemmTuning &tuning) {
  const std::vector<std::string_view> words = split_words(line);
  if (words.empty()) return;
  if (words[0] == "fastest") return parse_fastest(std::span(words).subspan(1), tuning);
  ClassTuning &device = tuning.of(parse_class(words[0]));
  const std::span<const std::string_view> rest = std::span(words).subspan(1);
  if (rest.empty()) throw SyntaxError("a class requires a kernel or KEY=NUMBER");
  if (rest[0].find('=') == std::string_view::npos) {
    device.of(parse_kernel(rest[0])) = parse_kernel_tuning(rest.subspan(1));
  } else {
    for (const std::string_view word : rest) set_key(device, kClassKeys, "a class", word);
  }
}

/// Parses a table; throws SyntaxError with the number of the line.
void parse_text(std::string_view text, GemmTuning &tuning) {
  for (int number = 1; !text.empty(); number++) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    try {
      parse_line(line, tuning);
    } catch (const SyntaxError &error) {
      throw SyntaxError("line " + std::to_string(number) + ": " + error.what());
    }
  }
}

// ---------------------------------------------------------------------------- writing

/// Returns the shortest digits that read back as the same value.
std::string digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

const char *name_of(DeviceClass device_class) {
  return kClassNames[static_cast<size_t>(device_class)];
}

DeviceClass class_of(const Device &device) {
  if (device.target == MP_TARGET_HOST) return DeviceClass::host;
  if (device.arch >= 120) return DeviceClass::sm_120;
  if (device.arch >= 100) return DeviceClass::sm_100;
  if (device.arch >= 90) return DeviceClass::sm_90;
  if (device.arch >= 86) return DeviceClass::sm_89;
  return device.arch >= 80 ? DeviceClass::sm_80 : DeviceClass::sm_75;
}

bool is_estimated(const GemmTuning &tuning, const Device &device) {
  const ClassTuning &constants = tuning.of(class_of(device));
  const double measured_arch = constants.measured_arch;
  return constants.estimated != 0 || (measured_arch != 0 && measured_arch != device.arch);
}

const GemmTuning &builtin_gemm_tuning() {
  return lazy_init([] {
    GemmTuning t;
    parse_text(kBuiltinText, t);
    return t;
  });
}

std::shared_ptr<const GemmTuning> parse_gemm_tuning(std::string_view text, std::string *why) {
  const auto tuning = std::make_shared<GemmTuning>(builtin_gemm_tuning());
  try {
    parse_text(text, *tuning);
  } catch (const SyntaxError &error) {
    *why = error.what();
    return nullptr;
  }
  return tuning;
}

const char *fastest_kernel(const GemmTuning &tuning, uint64_t call) {
  const auto found = tuning.fastest.find(call);
  return found != tuning.fastest.end() ? found->second.c_str() : nullptr;
}

std::string tuning_text(const GemmTuning &tuning, DeviceClass device_class,
                        std::span<const GemmKernel *const> kernels) {
  const ClassTuning &device = tuning.of(device_class);
  const std::string name = name_of(device_class);
  std::string text = name;
  for (const auto &key : kClassKeys) text += ' ' + (key.name + ('=' + digits(device.*key.field)));
  text += '\n';
  for (const GemmKernel *kernel : kernels) {
    const KernelTuning &k = device.of(*kernel);
    text += name + ' ' + kernel->name + ' ' + digits(k.tile_us) + ' ' + digits(k.k_us);
    if (k.start_us != 0) text += " start_us=" + digits(k.start_us);
    if (k.c2 != 1) text += " c2=" + digits(k.c2);
    text += '\n';
  }
  return text;
}

}  // namespace mp
