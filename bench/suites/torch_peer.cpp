#include "torch_peer.h"

#include "support/json.h"

namespace mpbench {
namespace {

using mptools::Json;

/// Returns the answer; null if the script has ended.
Json ask(CoProcess &python, const std::string &line) {
  const Json answer = Json::parse(python.ask(line), nullptr, /*allow_exceptions=*/false);
  return answer.is_object() ? answer : Json();
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
  const Json answer = ask(python_, "prepare " + problem);
  absent_ = answer.is_null() || answer.value("absent", false);
  const std::string reason =
      answer.is_null() ? "PyTorch could not be timed" : answer.value("error", "");
  if (!reason.empty())
    report.add_note("No torch reference for " + (absent_ ? subject : label) + ": " + reason + ".");
  return reason.empty();
}

void TorchPeer::take_turn() {
  (void)python_.ask("turn");
}

std::optional<PeerResult> TorchPeer::result() {
  const Json answer = ask(python_, "result");
  if (!answer.contains("median_us")) return std::nullopt;
  PeerResult result{.name = answer.at("peer"),
                    .median_us = answer.at("median_us"),
                    .q1_us = answer.at("q1_us"),
                    .q3_us = answer.at("q3_us")};
  if (answer.contains("deterministic")) result.deterministic = answer["deterministic"].get<bool>();
  if (answer.contains("workspace_bytes"))
    result.workspace_bytes = answer["workspace_bytes"].get<int64_t>();
  return result;
}

}  // namespace mpbench
