#include "torch_peer.h"

#include <cstdlib>

namespace mpbench {
namespace {

/// Returns the value of `key` in a line of flat JSON, without quotes; the script writes no escapes.
std::string field(const std::string &line, const std::string &key) {
  const std::string label = '"' + key + "\": ";
  const size_t found = line.find(label);
  if (found == std::string::npos) return {};
  const size_t begin = found + label.size();
  if (line[begin] == '"') return line.substr(begin + 1, line.find('"', begin + 1) - begin - 1);
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

double number(const std::string &line, const std::string &key) {
  return std::strtod(field(line, key).c_str(), nullptr);
}

std::vector<std::string> command_of(const std::string &home, const std::string &script, int ordinal,
                                    const std::vector<std::string> &arguments) {
  std::vector<std::string> command = {"python3", home + "/suites/" + script, "--device",
                                      std::to_string(ordinal)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

TorchPeer::TorchPeer(const std::string &home, const std::string &script, int ordinal,
                     const std::vector<std::string> &arguments)
    : python_(command_of(home, script, ordinal, arguments)) {}

bool TorchPeer::prepare(const std::string &problem, const std::string &label,
                        const std::string &subject, Report &report) {
  const std::string answer = python_.ask("prepare " + problem);
  absent_ = answer.empty() || field(answer, "absent") == "true";
  const std::string reason = answer.empty() ? "PyTorch could not be timed" : field(answer, "error");
  if (!reason.empty())
    report.add_note("No torch reference for " + (absent_ ? subject : label) + ": " + reason + ".");
  return reason.empty();
}

void TorchPeer::take_turn() {
  (void)python_.ask("turn");
}

std::optional<PeerResult> TorchPeer::result() {
  const std::string answer = python_.ask("result");
  if (number(answer, "median_us") <= 0.0) return std::nullopt;
  PeerResult result{.name = field(answer, "peer"),
                    .median_us = number(answer, "median_us"),
                    .q1_us = number(answer, "q1_us"),
                    .q3_us = number(answer, "q3_us")};
  if (const std::string known = field(answer, "deterministic"); !known.empty())
    result.deterministic = known == "true";
  if (!field(answer, "workspace_bytes").empty())
    result.workspace_bytes = static_cast<int64_t>(number(answer, "workspace_bytes"));
  return result;
}

}  // namespace mpbench
