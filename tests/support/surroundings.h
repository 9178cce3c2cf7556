// Temporary folders and environment variables of a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"

namespace mptest {

/// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() { REQUIRE(mkdtemp(name_) != nullptr); }
  ~Folder() { std::filesystem::remove_all(name_); }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  std::string path() const { return name_; }
  std::string operator/(const std::string &file) const { return path() + "/" + file; }
  /// Writes a file and returns its path.
  std::string file(const std::string &name, const std::string &text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  char name_[32] = "/tmp/mptest_XXXXXX";
};

/// Sets environment variables, and restores them at the end of its lifetime.
class Environment {
 public:
  explicit Environment(std::initializer_list<std::pair<const char *, std::string>> variables) {
    for (const auto &[name, value] : variables) {
      const char *const before = std::getenv(name);
      before_.emplace_back(name,
                           before != nullptr ? std::optional<std::string>(before) : std::nullopt);
      setenv(name, value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto &[name, before] : before_)
      if (before)
        setenv(name, before->c_str(), 1);
      else
        unsetenv(name);
  }
  Environment(const Environment &) = delete;
  Environment &operator=(const Environment &) = delete;

 private:
  std::vector<std::pair<const char *, std::optional<std::string>>> before_;
};

}  // namespace mptest
