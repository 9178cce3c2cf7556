#include "doctor.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "facts.h"
#include "support/json.h"
#include "support/text.h"

namespace mpinfo {
namespace {

using mptools::Json;

/// The order matters: findings of earlier checks explain those of later ones.  GEMMs run after the
/// tuning check, because the table is read when the first kernel is selected.
constexpr std::pair<const char *, Check *> kChecks[] = {
    {"library", check_library},
    {"host", check_host},
    {"driver", check_driver},
    {"visible devices", check_visible_devices},
    {"devices", check_devices},
    {"tuning", check_tuning},
    {"products", check_products},
    {"environment", check_environment},
    {"CUDA settings", check_cuda_settings},
    {"optional", check_optional},
    {"warnings", check_warnings},
};

Findings look(Check *check, Machine &machine) {
  try {
    return check(machine);
  } catch (const std::exception &error) {
    return {problem(std::string("The check failed: ") + error.what(), kPleaseReport)};
  }
}

/// Findings in the form of the JSON report.
Json examine() {
  Machine machine;
  Json all = Json::array();
  for (const auto &[name, check] : kChecks)
    for (const Finding &finding : look(check, machine)) {
      Json &json = all.emplace_back(
          Json{{"check", name}, {"verdict", finding.verdict}, {"what", finding.what}});
      if (!finding.remedy.empty()) json["remedy"] = finding.remedy;
    }
  return all;
}

std::string text_of(const Json &finding) {
  std::string said = finding["what"];
  if (finding.contains("remedy")) said += ". " + finding["remedy"].get<std::string>();
  return mptools::text("%-7s  %-15s  ", finding["verdict"].get<std::string>().c_str(),
                       finding["check"].get<std::string>().c_str()) +
         mptools::one_line(said) + "\n";
}

std::string counted(ptrdiff_t count, const char *noun) {
  return (count > 0 ? std::to_string(count) : "no") + " " + noun + (count != 1 ? "s" : "");
}

}  // namespace

std::string page(const char *name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path pages = program.parent_path().parent_path() / "share/doc/mpcore/docs";
  return fs::exists(pages / name, ignored) ? pages / name : fs::path("docs") / name;
}

int run_doctor(bool json) {
  const Json findings = examine();
  const auto count_of = [&](const char *verdict) {
    return std::count_if(findings.begin(), findings.end(),
                         [&](const Json &finding) { return finding["verdict"] == verdict; });
  };
  const ptrdiff_t problems = count_of("problem"), notes = count_of("note");
  std::string report;
  for (const Json &finding : findings) report += text_of(finding);
  report += "\n" + counted(problems, "problem") + ", " + counted(notes, "note") + "\n";
  if (json)
    report = mptools::json_text(Json{{"version", loaded_version()},
                                     {"header_version", header_version()},
                                     {"build", mp_build_info()},
                                     {"problems", problems},
                                     {"notes", notes},
                                     {"findings", findings}});
  std::fputs(report.c_str(), stdout);
  return problems > 0 ? 1 : 0;
}

}  // namespace mpinfo
