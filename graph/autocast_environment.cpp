// Environment variables that modify a policy, and the files of MP_AUTOCAST_LOG.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/environment.h"
#include "base/files.h"
#include "graph/autocast_object.h"

namespace mp {

namespace {

using autocast::Policy;

constexpr std::string_view kTensorFlow = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_";

/// Environment variable; an empty value means unset.
struct Variable {
  explicit Variable(std::string_view prefix, std::string_view rest = "")
      : name(std::string(prefix).append(rest)), value(environment_value(name.c_str())) {}
  bool is_set() const { return !value.empty(); }

  std::string name;
  std::string value;
};

[[noreturn]] void fail_on(const Variable &variable, std::string_view known) {
  fail(MP_ERROR_INVALID_ARGUMENT, variable.name, " = ", truncated(variable.value), ": must be ",
       known);
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
  }
  return items;
}

// ---------------------------------------------------------------------------- lists

struct ListVariables {
  mp_op_class_t op_class;
  const char *add, *remove;
};

constexpr ListVariables kOurs[] = {
    {MP_OP_CLASS_ALLOW, "MP_AUTOCAST_ALLOW_ADD", "MP_AUTOCAST_ALLOW_REMOVE"},
    {MP_OP_CLASS_INFER, "MP_AUTOCAST_INFER_ADD", "MP_AUTOCAST_INFER_REMOVE"},
    {MP_OP_CLASS_DENY, "MP_AUTOCAST_DENY_ADD", "MP_AUTOCAST_DENY_REMOVE"},
    {MP_OP_CLASS_CLEAR, "MP_AUTOCAST_CLEAR_ADD", "MP_AUTOCAST_CLEAR_REMOVE"},
};

/// Names after the prefix kTensorFlow.  The last three are former names of the lists.
constexpr ListVariables kTheirs[] = {
    {MP_OP_CLASS_ALLOW, "ALLOWLIST_ADD", "ALLOWLIST_REMOVE"},
    {MP_OP_CLASS_INFER, "INFERLIST_ADD", "INFERLIST_REMOVE"},
    {MP_OP_CLASS_DENY, "DENYLIST_ADD", "DENYLIST_REMOVE"},
    {MP_OP_CLASS_CLEAR, "CLEARLIST_ADD", "CLEARLIST_REMOVE"},
    {MP_OP_CLASS_ALLOW, "WHITELIST_ADD", "WHITELIST_REMOVE"},
    {MP_OP_CLASS_INFER, "GRAYLIST_ADD", "GRAYLIST_REMOVE"},
    {MP_OP_CLASS_DENY, "BLACKLIST_ADD", "BLACKLIST_REMOVE"},
};

void remove_listed(Policy &policy, const Variable &variable, mp_op_class_t op_class) {
  for (const std::string &op : split(variable.value)) {
    const auto known = policy.listed(op);
    if (known.has_value() && known->op_class == op_class) policy.forget(op);
  }
}

void add_listed(Policy &policy, const Variable &variable, mp_op_class_t op_class) {
  for (const std::string &op : split(variable.value)) {
    const auto known = policy.listed(op);
    MP_REQUIRE(!known.has_value() || known->op_class == op_class, MP_ERROR_INVALID_ARGUMENT,
               variable.name, " = ", truncated(variable.value), ": ", truncated(op),
               " is already on the ", autocast::class_name(known->op_class),
               " list; remove it there first");
    policy.set_class(op, op_class);
  }
}

/// Reads all lists; removals come before additions.
void read_lists(Policy &policy, bool reads_tensorflow) {
  const auto for_each_list = [&](const char *ListVariables::*name, const auto &apply) {
    if (reads_tensorflow)
      for (const ListVariables &list : kTheirs)
        apply(policy, Variable(kTensorFlow, list.*name), list.op_class);
    for (const ListVariables &list : kOurs) apply(policy, Variable(list.*name), list.op_class);
  };
  for_each_list(&ListVariables::remove, remove_listed);
  for_each_list(&ListVariables::add, add_listed);
}

// ---------------------------------------------------------------------------- other variables

struct LevelName {
  std::string_view word;
  mp_autocast_level_t level;
};

void read_level(Policy &policy, const Variable &variable, const std::vector<LevelName> &levels) {
  if (!variable.is_set()) return;
  std::string known;
  for (const LevelName &level : levels) {
    if (equals_ignore_case(variable.value, level.word)) {
      policy.config.level = level.level;
      return;
    }
    const char *const separator = known.empty() ? "" : &level == &levels.back() ? " or " : ", ";
    known += separator + std::string(level.word);
  }
  fail_on(variable, known);
}

void read_ignore_performance(Policy &policy, const Variable &variable) {
  if (!variable.is_set()) return;
  const auto is_any_of = [&](std::string_view a, std::string_view b) {
    return equals_ignore_case(variable.value, a) || equals_ignore_case(variable.value, b);
  };
  if (is_any_of("1", "true"))
    policy.config.flags |= MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
  else if (is_any_of("0", "false"))
    policy.config.flags &= ~static_cast<uint32_t>(MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE);
  else
    fail_on(variable, "0 or 1");
}

void read_folder(Policy &policy, const Variable &variable) {
  if (variable.is_set()) policy.log_folder = variable.value;
}

void read_switch(Policy &policy) {
  const Variable variable("MP_AUTOCAST");
  if (!variable.is_set()) return;
  policy.is_off = equals_ignore_case(variable.value, "off");
  const auto *const low = std::ranges::find_if(kFloatTypes, [&](const FloatType &type) {
    return type.bytes == 2 && equals_ignore_case(variable.value, type.name);
  });
  if (low != std::end(kFloatTypes))
    policy.config.dtype_low = low->dtype;
  else if (!policy.is_off)
    fail_on(variable, "off, " MP_HALF_TYPE_NAMES);
}

}  // namespace

void read_autocast_environment(Policy &policy) {
  const mp_autocast_preset_t preset = policy.config.preset;
  const bool reads_tensorflow =
      preset == MP_AUTOCAST_PRESET_TENSORFLOW || preset == MP_AUTOCAST_PRESET_TENSORFLOW_BF16;
  if (reads_tensorflow) {
    read_level(policy, Variable(kTensorFlow, "LEVEL"),
               {{"UNSAFE_FORCE_ALL", MP_AUTOCAST_LEVEL_FORCE_ALL},
                {"TREAT_INFER_AS_DENY", MP_AUTOCAST_LEVEL_INFER_AS_DENY},
                {"TENSOR_CORES_ONLY", MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY}});
    read_ignore_performance(policy, Variable(kTensorFlow, "IGNORE_PERFORMANCE"));
    read_folder(policy, Variable(kTensorFlow, "LOG_PATH"));
  }
  read_switch(policy);
  read_level(policy, Variable("MP_AUTOCAST_LEVEL"),
             {{"normal", MP_AUTOCAST_LEVEL_NORMAL},
              {"infer_as_deny", MP_AUTOCAST_LEVEL_INFER_AS_DENY},
              {"tensor_cores_only", MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY},
              {"force_all", MP_AUTOCAST_LEVEL_FORCE_ALL}});
  read_ignore_performance(policy, Variable("MP_AUTOCAST_IGNORE_PERFORMANCE"));
  read_folder(policy, Variable("MP_AUTOCAST_LOG"));
  read_lists(policy, reads_tensorflow);
}

// ---------------------------------------------------------------------------- log

// A write error is only logged: the rewrite itself does not need the files.
void log_rewrite(const autocast::Policy &policy, const autocast::Rewritten &rewritten) {
  if (policy.log_folder.empty()) return;
  static std::atomic<uint32_t> num_rewrites = 0;
  const std::filesystem::path folder = policy.log_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string stem =
      "autocast-" + std::to_string(::getpid()) + "-" + std::to_string(++num_rewrites);
  const autocast::Rewritten before(policy, rewritten.graph, "before the rewrite");
  const auto write = [&](const char *name, const std::string &text) {
    return replace_file((folder / (stem + name)).string(), text) == 0;
  };
  const bool is_written = write("-lists.txt", policy.lists_as_text()) &&
                          write("-before.dot", report(before, MP_AUTOCAST_FORMAT_DOT)) &&
                          write("-after.dot", report(rewritten, MP_AUTOCAST_FORMAT_DOT)) &&
                          write("-report.txt", report(rewritten, MP_AUTOCAST_FORMAT_TEXT));
  if (!is_written)
    log(MP_LOG_WARN, "mp_autocast_rewrite: MP_AUTOCAST_LOG = ", policy.log_folder,
        ": cannot write to this folder");
}

}  // namespace mp
