// Checks the constants of kernel selection: the built-in ones, or those of MP_GEMM_TUNING.
#define MP_ENABLE_EXPERIMENTAL
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "doctor.h"

namespace mpinfo {
namespace {

constexpr const char *kVariable = "MP_GEMM_TUNING";

/// First word of the table lines for such a device (docs/log.md, "The tuning table").
std::string class_of(const mp_device_info_t &info) {
  if (info.target == MP_TARGET_HOST) return "host";
  for (const auto &[oldest, name] :
       {std::pair{120, "sm_120"}, {100, "sm_100"}, {90, "sm_90"}, {86, "sm_89"}, {80, "sm_80"}})
    if (info.arch >= oldest) return name;
  return "sm_75";
}

/// Returns whether a line of the file begins with this word.
bool has_lines_of(const std::string &path, const std::string &first_word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string word;
    if (std::istringstream(line) >> word && word == first_word) return true;
  }
  return false;
}

/// Queries a kernel: the table is read when the first kernel is selected.
/// @throws std::runtime_error with the library's error message
bool is_estimated(const Place &place) {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  mptools::check(mp_gemm_kernel_info(place.context.get(), &desc, 0, &info));
  return info.is_estimated != 0;
}

/// @param table  file whose constants are used; empty = none or unreadable
Finding constants_of(const Place &place, bool estimated, const std::string &table) {
  const std::string device_class = class_of(place.info), of = place.flag + ": ";
  const bool is_in_table = !table.empty() && has_lines_of(table, device_class);
  // A file of measured kernels needs no constants.
  if (!table.empty() && !is_in_table && !has_lines_of(table, "fastest"))
    return note(
        of + kVariable + " has no line for " + device_class + "; using the built-in constants",
        "Run make tune to measure this device.");
  if (estimated)
    return note(of + "the tuning constants of " + device_class +
                    " are estimates, not measured on this architecture",
                "Run make tune to measure this device and write a table for MP_GEMM_TUNING.");
  return ok(of + "the tuning constants of " + device_class + " were measured" +
            (is_in_table ? " (from the table)" : ""));
}

}  // namespace

Findings check_tuning(Machine &machine) {
  Findings findings;
  std::vector<std::pair<const Place *, bool>> estimated;
  for (const Place *const place : machine.usable()) {
    try {
      estimated.emplace_back(place, is_estimated(*place));
    } catch (const std::exception &error) {
      findings.push_back(
          problem(place->flag + ": kernel selection fails: " + error.what(), kPleaseReport));
    }
  }
  const char *const path = std::getenv(kVariable);
  std::string table;
  const auto said = machine.log.take(kVariable);
  if (said && said->level == MP_LOG_WARN) {
    findings.push_back(
        problem(said->message, "Run make tune to write a table; see " + page("log.md") + "."));
  } else if (said && path != nullptr) {
    findings.push_back(ok(said->message));
    table = path;
  }
  for (const auto &[place, is_one] : estimated)
    findings.push_back(constants_of(*place, is_one, table));
  return findings;
}

}  // namespace mpinfo
