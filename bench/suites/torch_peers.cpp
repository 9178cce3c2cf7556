#include "torch_peers.h"

#include "support/json.h"

namespace mpbench {
namespace {

using mptools::Json;

/// Returns the answer; null if the script has ended.
Json ask(CoProcess &python, const std::string &line) {
  const Json answer = Json::parse(python.ask(line), nullptr, /*allow_exceptions=*/false);
  return answer.is_object() ? answer : Json();
}

}  // namespace

TorchPeers::TorchPeers(const Options &options, const Machine &machine, const std::string &script,
                       const std::vector<Arguments> &arguments) {
  if (machine.on_host() || !options.peers.torch) return;
  for (const Arguments &own : arguments) {
    Arguments command = {"python3", options.home + "/suites/" + script, "--device",
                         std::to_string(machine.cuda()->ordinal())};
    command.insert(command.end(), own.begin(), own.end());
    scripts_.emplace_back(command);
  }
}

std::function<void()> TorchPeers::prepare(const std::string &problem, const std::string &label,
                                          const std::string &subject, Report &report) {
  ready_.clear();
  scripts_.remove_if([&](CoProcess &python) {
    const Json answer = ask(python, "prepare " + problem);
    const bool is_absent = answer.is_null() || answer.value("absent", false);
    const std::string reason =
        answer.is_null() ? "PyTorch could not be timed" : answer.value("error", "");
    if (reason.empty())
      ready_.push_back(&python);
    else
      report.add_note("No torch reference for " + (is_absent ? subject : label) + ": " + reason +
                      ".");
    return is_absent;
  });
  if (ready_.empty()) return nullptr;
  return [this] {
    for (CoProcess *python : ready_) (void)python->ask("turn");
  };
}

std::vector<PeerResult> TorchPeers::results() {
  std::vector<PeerResult> results;
  for (CoProcess *python : ready_) {
    const Json answer = ask(*python, "result");
    if (!answer.contains("median_us")) continue;
    PeerResult &result = results.emplace_back();
    result.name = answer.at("peer");
    result.median_us = answer.at("median_us");
    result.q1_us = answer.at("q1_us");
    result.q3_us = answer.at("q3_us");
    if (answer.contains("deterministic"))
      result.deterministic = answer["deterministic"].get<bool>();
    if (answer.contains("workspace_bytes"))
      result.workspace_bytes = answer["workspace_bytes"].get<int64_t>();
  }
  return results;
}

}  // namespace mpbench
