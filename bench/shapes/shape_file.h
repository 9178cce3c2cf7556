// Files of shapes: comments start with # and extend to the end of a line, the first other line is a
// heading, fields are separated by commas.  A line is a shape, or one for each combination of the
// numbers of its lists: "1/2,3,4/5" is "1,3,4", "1,3,5", "2,3,4", "2,3,5".
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sets.h"

namespace mpbench {

/// Splits the first `count` comma-separated fields from the rest of the line.
inline std::vector<std::string_view> split_line(std::string_view line, size_t count) {
  std::vector<std::string_view> fields;
  while (fields.size() < count) {
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) break;
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields.push_back(line);
  return fields;
}

/// Largest extent of a shape; the bytes of two such extents fit in 64 bits.
constexpr int64_t kMaxExtent = 1'000'000'000;

/// @throws std::runtime_error unless the field is an integer from `least` to `most`
inline int64_t parse_field(std::string_view field, int64_t least = 1, int64_t most = kMaxExtent) {
  int64_t number = least;
  const char *const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most)
    throw std::runtime_error(std::string("\"").append(field) + "\" is not an integer from " +
                             std::to_string(least) + " to " + std::to_string(most));
  return number;
}

/// @throws std::runtime_error if the bytes of a tensor of these extents exceed 64 bits
inline void require_countable(std::initializer_list<int64_t> extents) {
  double elems = 1;
  for (const int64_t extent : extents) elems *= static_cast<double>(extent);
  if (elems > static_cast<double>(kMaxExtent) * static_cast<double>(kMaxExtent))
    throw std::runtime_error("the shape has more than 1e18 elements");
}

/// Returns the combinations of the lists of a line, the last list changing fastest.
inline std::vector<std::string> combinations(const std::string &line) {
  for (size_t begin = 0, end; begin < line.size(); begin = end + 1) {
    end = std::min(line.find(',', begin), line.size());
    const std::string field = line.substr(begin, end - begin);
    if (field.find('/') == std::string::npos) continue;
    if (field.find_first_not_of("0123456789/") != std::string::npos) continue;
    std::vector<std::string> lines;
    std::istringstream list(field);
    for (std::string number; std::getline(list, number, '/');)
      for (const std::string &rest : combinations(line.substr(end)))
        lines.push_back(line.substr(0, begin) + number + rest);
    return lines;
  }
  return {line};
}

/// `parse` converts a line to a shape, or throws an error message.
/// @throws std::runtime_error if the file is missing or malformed.
template <typename Parse>
auto read_shape_lines(const std::string &path, Parse parse) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path +
                             "; run from the root of the repository or pass --home DIR");
  std::vector<decltype(parse(std::string_view()))> shapes;
  std::string line;
  bool is_past_heading = false;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(' ') + 1);
    if (line.empty()) continue;
    try {
      if (is_past_heading)
        for (const std::string &one : combinations(line)) shapes.push_back(parse(one));
    } catch (const std::exception &error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
    is_past_heading = true;
  }
  return shapes;
}

/// Returns "set name comment", without empty parts.
inline std::string shape_label(const std::string &set, const std::string &name,
                               const std::string &comment) {
  return set + ' ' + name + (comment.empty() ? "" : ' ' + comment);
}

}  // namespace mpbench
