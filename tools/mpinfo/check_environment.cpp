// Checks the environment variables of the library: valid values, and misspelled names.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doctor.h"
#include "facts.h"
#include "support/text.h"

namespace mpinfo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kCorrect = "Correct or unset it.";

/// None if the value is valid.
using Opinion = std::optional<Finding>;

Finding wrong(const std::string &name, const std::string &value, const std::string &why) {
  return problem(name + " = " + value + ": " + why, kCorrect);
}

/// Returns whether the library accepts a text as a number.
bool is_integer(const std::string &text, int64_t least, int64_t most) {
  int64_t number = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number >= least && number <= most;
}

// ---------------------------------------------------------------------------- one variable each

Opinion judge_log(const std::string &value) {
  for (const char *const level : {"error", "warn", "info", "debug"})
    if (value == level) return std::nullopt;
  return wrong("MP_LOG", value, "must be error, warn, info or debug; using the default");
}

Opinion judge_log_plans(const std::string &value) {
  if (value == "0" || value == "1") return std::nullopt;
  return wrong("MP_LOG_PLANS", value, "must be 0 or 1; using the default");
}

Opinion judge_threads(const std::string &value) {
  if (is_integer(value, 1, 256)) return std::nullopt;
  return wrong("MP_HOST_THREADS", value, "must be an integer from 1 to 256; using the default");
}

/// The library creates the folder, with its parents, at the first write.
Opinion judge_autocast_log(const std::string &value) {
  std::error_code failed;
  fs::path there = fs::absolute(value, failed);
  while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  if (fs::is_directory(there, failed) && access(there.c_str(), W_OK | X_OK) == 0)
    return std::nullopt;
  return wrong("MP_AUTOCAST_LOG", value, "must be a writable folder");
}

/// MP_GEMM_TUNING has a separate check; the library checks the other variables of autocast.
const std::map<std::string, Opinion (*)(const std::string &)> kJudges = {
    {"MP_LOG", judge_log},
    {"MP_LOG_PLANS", judge_log_plans},
    {"MP_HOST_THREADS", judge_threads},
    {"MP_AUTOCAST_LOG", judge_autocast_log}};

// ---------------------------------------------------------------------------- autocast

/// Unsets a variable during its lifetime.
class Unset {
 public:
  explicit Unset(std::string name) : name_(std::move(name)), value_(std::getenv(name_.c_str())) {
    unsetenv(name_.c_str());
  }
  ~Unset() { setenv(name_.c_str(), value_.c_str(), 1); }
  Unset(const Unset &) = delete;
  Unset &operator=(const Unset &) = delete;

 private:
  std::string name_, value_;
};

/// Checks MP_AUTOCAST_* by creating a policy.  The error message names the first invalid variable;
/// without it, the next one.
/// @param found  findings by name of the invalid variable
/// @return a failure that names none of them
Opinion judge_autocast(std::vector<const Variable *> variables,
                       std::map<std::string, Finding> &found) {
  std::vector<std::unique_ptr<Unset>> taken;
  for (;;) {
    const mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
    mp_autocast_t policy = nullptr;
    if (mp_autocast_create(&policy, &config) == MP_SUCCESS) {
      mp_autocast_destroy(policy);
      return std::nullopt;
    }
    const std::string why = mp_last_error();
    const auto named = std::find_if(variables.begin(), variables.end(), [&](const Variable *one) {
      return why.find(std::string(": ") + one->name + " = ") != std::string::npos;
    });
    if (named == variables.end()) return problem(why, kPleaseReport);
    found[(*named)->name] = problem(why, kCorrect);
    taken.push_back(std::make_unique<Unset>((*named)->name));
    variables.erase(named);
  }
}

// ---------------------------------------------------------------------------- misspelled names

/// Number of letters to insert, remove, replace or swap with the next one that converts a word to
/// the other (the "optimal string alignment" distance).
size_t edit_distance(const std::string &a, const std::string &b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); i++)
    for (size_t j = 0; j <= b.size(); j++) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::string upper_case(std::string word) {
  for (char &c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

/// Variable with the most similar name; NULL if none is similar.  Other software has variables
/// MP_... too, so a short name may differ in one letter only.
const Variable *nearest(const std::vector<Variable> &variables, const std::string &name) {
  constexpr size_t kShort = 9;
  const Variable *best = nullptr;
  size_t least = 0;
  for (const Variable &variable : variables) {
    const std::string known = variable.name;
    const size_t distance = edit_distance(upper_case(name), known);
    if (distance > (known.size() <= kShort ? 1 : 2) || (best != nullptr && distance >= least))
      continue;
    best = &variable;
    least = distance;
  }
  return best;
}

Findings find_misspelled(const std::vector<Variable> &variables) {
  Findings findings;
  for (char **entry = environ; *entry != nullptr; entry++) {
    const std::string line = *entry, name = line.substr(0, line.find('='));
    const bool is_known = std::any_of(variables.begin(), variables.end(),
                                      [&](const Variable &one) { return name == one.name; });
    if (is_known || !name.starts_with("MP_")) continue;
    if (const Variable *const meant = nearest(variables, name))
      findings.push_back(problem(name + " is set, but is not a variable of the library",
                                 std::string("Did you mean ") + meant->name + "?"));
  }
  return findings;
}

}  // namespace

Findings check_environment(Machine &) {
  const std::vector<Variable> variables = environment();
  std::vector<const Variable *> set;
  for (const Variable &variable : variables)
    if (variable.value != nullptr && *variable.value != '\0') set.push_back(&variable);

  std::map<std::string, Finding> wrong_ones;
  const Opinion other = judge_autocast(set, wrong_ones);
  Findings findings;
  if (other) findings.push_back(*other);
  for (const Variable *const variable : set) {
    const std::string name = variable->name;
    if (name == "MP_GEMM_TUNING") continue;
    const auto judge = kJudges.find(name);
    const Opinion opinion = judge != kJudges.end() ? judge->second(variable->value) : std::nullopt;
    const auto refused = wrong_ones.find(name);
    findings.push_back(refused != wrong_ones.end() ? refused->second
                       : opinion                   ? *opinion
                                                   : ok(name + " = " + variable->value));
  }
  for (Finding &finding : find_misspelled(variables)) findings.push_back(std::move(finding));
  findings.push_back(
      ok(mptools::text("%zu variables are supported, %zu of them set (mpinfo lists them)",
                       variables.size(), set.size())));
  return findings;
}

}  // namespace mpinfo
