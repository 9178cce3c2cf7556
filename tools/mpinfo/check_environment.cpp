// Checks the environment variables of the library: valid values, and misspelled names.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
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

bool is_word_of(const std::string &value, std::initializer_list<const char *> words) {
  return std::find(words.begin(), words.end(), value) != words.end();
}

/// Returns whether the library accepts a value of MP_HOST_THREADS.
bool is_thread_count(const std::string &value) {
  int64_t number = 0;
  const char *const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  return error == std::errc() && stop == end && number >= 1 && number <= 256;
}

/// The library creates the folder, with its parents, at the first write.
bool can_be_folder(const std::string &value) {
  std::error_code failed;
  fs::path there = fs::absolute(value, failed);
  while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
  return fs::is_directory(there, failed) && access(there.c_str(), W_OK | X_OK) == 0;
}

/// MP_GEMM_TUNING has a separate check; the library checks the other variables of autocast.
const struct Rule {
  std::string name;
  bool (*is_valid)(const std::string &value);
  const char *rule;
} kRules[] = {
    {"MP_LOG",
     [](auto &value) {
       return is_word_of(value, {"error", "warn", "info", "debug"});
     },
     "must be error, warn, info or debug; using the default"},
    {"MP_LOG_PLANS",
     [](auto &value) {
       return is_word_of(value, {"0", "1"});
     },
     "must be 0 or 1; using the default"},
    {"MP_HOST_THREADS", is_thread_count, "must be an integer from 1 to 256; using the default"},
    {"MP_AUTOCAST_LOG", can_be_folder, "must be a writable folder"},
};

Finding judge(const Variable &variable) {
  const std::string what = std::string(variable.name) + " = " + variable.value;
  for (const auto &[name, is_valid, rule] : kRules)
    if (name == variable.name && !is_valid(variable.value))
      return problem(what + ": " + rule, kCorrect);
  return ok(what);
}

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
std::optional<Finding> judge_autocast(std::vector<const Variable *> variables,
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
  const auto other = judge_autocast(set, wrong_ones);
  Findings findings;
  if (other) findings.push_back(*other);
  for (const Variable *const variable : set) {
    if (variable->name == std::string("MP_GEMM_TUNING")) continue;
    const auto refused = wrong_ones.find(variable->name);
    findings.push_back(refused != wrong_ones.end() ? refused->second : judge(*variable));
  }
  for (Finding &finding : find_misspelled(variables)) findings.push_back(std::move(finding));
  findings.push_back(
      ok(mptools::text("%zu variables are supported, %zu of them set (mpinfo lists them)",
                       variables.size(), set.size())));
  return findings;
}

}  // namespace mpinfo
