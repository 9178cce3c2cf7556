#include "doctor.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "checks.h"

namespace mpinfo {
namespace {

struct Check {
  const char *name;
  Findings (*look)(Machine &machine);
};

/// The order matters: findings of earlier checks explain those of later ones.  GEMMs run after the
/// tuning check, because the table is read when the first kernel is selected.
constexpr Check kChecks[] = {
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

Findings look(const Check &check, Machine &machine) {
  Findings findings;
  try {
    findings = check.look(machine);
  } catch (const std::exception &error) {
    findings = {problem(std::string("The check failed: ") + error.what(),
                        "Please report it with the complete output of mpinfo doctor.")};
  }
  for (Finding &finding : findings) finding.check = check.name;
  return findings;
}

}  // namespace

std::string page(const char *name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path pages = program.parent_path().parent_path() / "share/doc/mpcore/docs";
  return fs::exists(pages / name, ignored) ? pages / name : fs::path("docs") / name;
}

std::vector<Finding> examine() {
  Machine machine;
  Findings findings;
  for (const Check &check : kChecks)
    for (Finding &finding : look(check, machine)) findings.push_back(std::move(finding));
  return findings;
}

int run_doctor(bool json) {
  const std::vector<Finding> findings = examine();
  std::fputs((json ? as_json(findings) : as_text(findings)).c_str(), stdout);
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding &finding) { return finding.verdict == Verdict::problem; });
}

}  // namespace mpinfo
