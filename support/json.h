// JSON of the programs: nlohmann's, in the order in which it was made.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mptools {

using Json = nlohmann::ordered_json;

/// Of a file.  Numbers that are not finite are null; bytes that are not UTF-8 (a command line may have
/// any) are replaced.
inline std::string json_text(const Json &json) {
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mptools
