// Tests of headers shared by the library and its programs: escaping, and files.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/escape.h"
#include "base/files.h"
#include "tests/support/surroundings.h"
#include "tests/support/testing.h"

namespace fs = std::filesystem;
using mptest::Folder;

namespace {

std::vector<std::string> files_in(const Folder &folder) {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string content(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("escape: UTF-8 characters are kept unless they are controls", "[tools]") {
  int64_t num_escaped = 0;
  for (uint32_t code = 0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    std::string text;
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += static_cast<char>(0xc0 | code >> 6);
      tail(0);
    } else if (code < 0x10000) {
      text += static_cast<char>(0xe0 | code >> 12);
      tail(6), tail(0);
    } else {
      text += static_cast<char>(0xf0 | code >> 18);
      tail(12), tail(6), tail(0);
    }
    const std::string line = mp::escaped(text);
    const bool stays = line == text;
    num_escaped += stays ? 0 : 1;
    if (!stays && line != mptest::format("\\u%04x", code)) FAIL("code " << code << ": " << line);
  }
  CHECK(num_escaped == 32 + 33 + 7 + 4);  // C0; DEL and C1; separators and overrides; isolates
}

TEST_CASE("escape: each byte that is not UTF-8 becomes U+FFFD", "[tools]") {
  const std::string bad = "\xef\xbf\xbd";
  for (const auto &[text, num_bad] : {std::pair<std::string, int>{"\x80", 1},
                                      {"\xc3", 1},
                                      {"\xc0\x8a", 2},
                                      {"\xe0\x80\x8a", 3},
                                      {"\xed\xa0\x80", 3},
                                      {"\xf4\x90\x80\x80", 4},
                                      {"\xf8", 1},
                                      {"\xff\xfe", 2},
                                      {"\xe2\x82", 2}}) {
    std::string wanted = "a";
    for (int i = 0; i < num_bad; i++) wanted += bad;
    CHECK(mp::escaped("a" + text + "b") == wanted + "b");
  }
  CHECK(mp::json_string("\"\\\n\xff") == "\"\\\"\\\\\\u000a" + bad + "\"");
}

TEST_CASE("files: a replaced file keeps its mode", "[tools]") {
  const Folder folder;
  const std::string path = folder / "a";
  CHECK(mp::replace_file(path, "first") == 0);
  CHECK(content(path) == "first");
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  CHECK(mp::replace_file(path, std::string(1 << 20, 'x')) == 0);
  CHECK(content(path) == std::string(1 << 20, 'x'));
  CHECK((fs::status(path).permissions() & fs::perms::all) == static_cast<fs::perms>(0640));
  CHECK(files_in(folder) == std::vector<std::string>{"a"});
}

TEST_CASE("files: a file that cannot be replaced is reported", "[tools]") {
  const Folder folder;
  fs::create_directory(folder / "b");
  CHECK(mp::replace_file(folder / "none/a", "x") == ENOENT);
  CHECK(mp::replace_file(folder / "b", "x") == EISDIR);
  CHECK(files_in(folder) == std::vector<std::string>{"b"});
}

TEST_CASE("files: devices are written to, not replaced", "[tools]") {
  CHECK(mp::replace_file("/dev/null", "x") == 0);
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(mp::replace_file("/dev/full", "x") == ENOSPC);
  const int out = mp::open_stream("/dev/stdout");
  REQUIRE(out >= 0);
  close(out);
  // /dev/shm is writable by all users, so a link there is replaced like any other.
  const fs::path link = "/dev/shm/mpcore-test-link-" + std::to_string(getpid());
  const Folder folder;
  std::ofstream(folder / "target") << "old";
  fs::create_symlink(folder / "target", link);
  CHECK(mp::replace_file(link, "new") == 0);
  CHECK(!fs::is_symlink(link));
  fs::remove(link);
  CHECK(fs::file_size(folder / "target") == 3);
}

TEST_CASE("files: only regular files are opened, and a pipe does not block", "[tools]") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string &path : {folder / "pipe", std::string("/dev/zero"), std::string("/tmp")}) {
    errno = 0;
    CHECK(mp::open_regular_file(path.c_str()) == -1);
    CHECK(errno == EINVAL);
  }
  std::ofstream(folder / "file") << "x";
  const int file = mp::open_regular_file((folder / "file").c_str());
  CHECK(file >= 0);
  close(file);
}
