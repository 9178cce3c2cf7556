#include "facts.h"

#include <algorithm>
#include <sstream>

#include "support/json.h"
#include "support/text.h"

namespace mpinfo {
namespace {

using mptools::Json;
using mptools::text;

const char *target_name(mp_target_t target) {
  return target == MP_TARGET_CUDA ? "cuda" : "host";
}

std::string text_of(const Place &device) {
  if (!device.context)
    return text("  %-8s  not available: %s\n", device.flag.c_str(), device.why_not.c_str());
  const mp_device_info_t &info = device.info;
  return text("  %-8s  %s: sm_%d, %d SMs, %lld KiB of shared memory per block, %lld KiB of L2\n",
              device.flag.c_str(), info.name, info.arch, info.num_sms,
              static_cast<long long>(info.smem_per_block / 1024),
              static_cast<long long>(info.l2_bytes / 1024));
}

std::string text_of(const Variable &variable) {
  return text("  %-15s  %s\n  %-15s  %s\n", variable.name,
              variable.value != nullptr ? mp::escaped(variable.value).c_str() : "(not set)", "",
              variable.meaning);
}

/// Kernels that cannot run, grouped by reason in order of first appearance.
std::string text_of_rejected(const std::vector<Kernel> &kernels, bool all) {
  constexpr size_t kFew = 3;
  std::vector<std::string> reasons;
  for (const Kernel &kernel : kernels) {
    const bool is_new = std::find(reasons.begin(), reasons.end(), kernel.why_not) == reasons.end();
    if (!kernel.why_not.empty() && is_new) reasons.push_back(kernel.why_not);
  }
  if (reasons.empty()) return "";
  std::string result = "\n  unsupported\n";
  for (const std::string &reason : reasons) {
    std::vector<std::string> names;
    for (const Kernel &kernel : kernels)
      if (kernel.why_not == reason) names.push_back(kernel.name);
    result += text("    %s: %zu\n     ", reason.c_str(), names.size());
    const size_t shown = all ? names.size() : std::min(names.size(), kFew);
    for (size_t i = 0; i < shown; i++) result += " " + names[i];
    result += shown < names.size() ? " ...\n" : "\n";
  }
  return result;
}

std::string text_of(const Problem &problem, bool all) {
  constexpr size_t kFirst = 10;
  if (!problem.plan.empty()) return problem.title + "\n\n" + problem.plan;
  std::string result = problem.title + "\n\n  predicted us  workspace bytes  kernel\n";
  size_t runnable = 0;
  for (const Kernel &kernel : problem.kernels) {
    if (!kernel.why_not.empty()) continue;
    if (all || runnable < kFirst)
      result += text("  %12.2f  %15zu  %s%s\n", kernel.predicted_us, kernel.workspace_bytes,
                     kernel.name.c_str(), runnable == 0 ? "  <- selected" : "");
    runnable++;
  }
  if (!all && runnable > kFirst) result += text("  and %zu slower kernels\n", runnable - kFirst);
  return result + text_of_rejected(problem.kernels, all);
}

Json json_of(const Place &device) {
  if (!device.context) return {{"device", device.flag}, {"reason", device.why_not}};
  const mp_device_info_t &info = device.info;
  return {{"device", device.flag},
          {"name", info.name},
          {"target", target_name(info.target)},
          {"arch", info.arch},
          {"num_sms", info.num_sms},
          {"smem_per_block", info.smem_per_block},
          {"l2_bytes", info.l2_bytes}};
}

Json json_of(const Variable &variable) {
  return {{"name", variable.name},
          {"value", variable.value != nullptr ? Json(variable.value) : Json()},
          {"meaning", variable.meaning}};
}

Json json_of(const Kernel &kernel) {
  if (!kernel.why_not.empty()) return {{"name", kernel.name}, {"reason", kernel.why_not}};
  return {{"name", kernel.name},
          {"predicted_us", kernel.predicted_us},
          {"workspace_bytes", kernel.workspace_bytes}};
}

Json json_of(const Problem &problem);

template <class Item>
Json array_of(const std::vector<Item> &items) {
  Json array = Json::array();
  for (const Item &item : items) array.push_back(json_of(item));
  return array;
}

Json json_of(const Problem &problem) {
  if (problem.plan.empty())
    return {{"problem", problem.title}, {"kernels", array_of(problem.kernels)}};
  Json lines = Json::array();
  std::istringstream text(problem.plan);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return {{"problem", problem.title}, {"plan", lines}};
}

}  // namespace

std::string header_version() {
  return text("%d.%d.%d", MP_VERSION_MAJOR, MP_VERSION_MINOR, MP_VERSION_PATCH);
}

std::string loaded_version() {
  const uint32_t v = mp_version();
  return text("%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

std::string as_text(const Report &report, bool all) {
  std::string result;
  if (report.problems.empty()) {
    result = std::string(mp_build_info()) + "\n";
    if (mp_version() != MP_VERSION) result += "mpinfo was compiled for " + header_version() + "\n";
    result += "\nDevices (--device)\n";
    for (const Place &device : report.devices) result += text_of(device);
    result += "\nEnvironment\n";
    for (const Variable &variable : report.variables) result += text_of(variable);
  } else {
    result = "On " + report.device_name + "; times are predicted, not measured.\n";
  }
  for (const Problem &problem : report.problems) result += "\n" + text_of(problem, all);
  if (!report.warnings.empty()) result += "\nWarnings\n";
  for (const std::string &warning : report.warnings) result += "  " + warning + "\n";
  return result;
}

std::string as_json(const Report &report) {
  Json json{{"version", loaded_version()},
            {"header_version", header_version()},
            {"build", mp_build_info()}};
  if (report.problems.empty()) {
    json["devices"] = array_of(report.devices);
    json["environment"] = array_of(report.variables);
  } else {
    json["device"] = report.device_name;
    json["problems"] = array_of(report.problems);
  }
  json["warnings"] = report.warnings;
  return mptools::json_text(json);
}

}  // namespace mpinfo
