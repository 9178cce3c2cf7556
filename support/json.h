// JSON of the programs: nlohmann's, in insertion order.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mptools {

using Json = nlohmann::ordered_json;

/// Returns the text of a JSON file: one line per member of the outer object and per element of its
/// arrays of objects, so that a diff of two files shows rows.  Numbers that are not finite are
/// null; bytes that are not UTF-8 (possible in a command line) are replaced.
inline std::string json_text(const Json &json) {
  const auto compact = [](const Json &value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  if (!json.is_object()) return compact(json) + '\n';
  std::string text = "{";
  for (const auto &[name, value] : json.items()) {
    text += (text.size() > 1 ? ",\n  " : "\n  ") + compact(name) + ": ";
    if (!value.is_array() || value.empty() || !value.front().is_object()) {
      text += compact(value);
      continue;
    }
    text += '[';
    for (const Json &element : value)
      text += (text.back() == '[' ? "\n    " : ",\n    ") + compact(element);
    text += "\n  ]";
  }
  return text + "\n}\n";
}

}  // namespace mptools
