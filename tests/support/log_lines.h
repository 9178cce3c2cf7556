// Lines that the library logs during the lifetime of an object.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "testing.h"

namespace mptest {

class LogLines {
 public:
  /// @param level  of the least severe lines
  explicit LogLines(mp_log_level_t level) { listen(level); }
  ~LogLines() { quiet_log(); }
  LogLines(const LogLines &) = delete;
  LogLines &operator=(const LogLines &) = delete;

  void listen(mp_log_level_t level) {
    const auto keep = [](mp_log_level_t, const char *line, void *user) {
      static_cast<std::vector<std::string> *>(user)->push_back(line);
    };
    mp_set_log_callback(keep, &lines_, level);
  }
  const std::vector<std::string> &all() const { return lines_; }
  /// Returns the lines that begin with `start`.
  std::vector<std::string> starting_with(std::string_view start) const {
    std::vector<std::string> some;
    std::ranges::copy_if(lines_, std::back_inserter(some),
                         [&](const std::string &line) { return line.starts_with(start); });
    return some;
  }
  int64_t count_with(std::string_view part) const {
    return std::ranges::count_if(
        lines_, [&](const std::string &line) { return line.find(part) != std::string::npos; });
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace mptest
