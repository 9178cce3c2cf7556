#include "torch_adamw.h"

#include <cstdlib>
#include <sstream>

#include "command.h"

namespace mpbench {
namespace {

/// What follows `"key": ` in a line of flat JSON, without quotes; the script writes no escapes.
std::string field(const std::string &line, const std::string &key) {
  const std::string label = '"' + key + "\": ";
  const size_t found = line.find(label);
  if (found == std::string::npos) return {};
  const size_t begin = line.find_first_not_of('"', found + label.size());
  const size_t end = line.find_first_of("\",}", begin);
  return line.substr(begin, end - begin);
}

double number(const std::string &line, const std::string &key) {
  return std::strtod(field(line, key).c_str(), nullptr);
}

}  // namespace

TorchResults time_torch_adamw(const std::string &home, int ordinal,
                              const std::vector<Layout> &layouts) {
  std::string command =
      "python3 '" + home + "/peers/torch_adamw.py' --device " + std::to_string(ordinal);
  for (const Layout &layout : layouts) command += ' ' + layout.command_line_text();

  TorchResults results;
  std::istringstream lines(output_of(command));
  for (std::string line; std::getline(lines, line);) {
    const auto parameters = static_cast<int64_t>(number(line, "parameters"));
    results[{field(line, "layout"), parameters}] = {.name = "torch " + field(line, "torch"),
                                                    .median_us = number(line, "median_us"),
                                                    .q1_us = number(line, "q1_us"),
                                                    .q3_us = number(line, "q3_us"),
                                                    .agrees = {}};
  }
  return results;
}

}  // namespace mpbench
