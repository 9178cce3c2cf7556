#include "graph/rewrite/policy.h"

#include <cstddef>
#include <optional>

namespace mp::autocast {

namespace {

constexpr size_t kNone = std::string_view::npos;

/// Returns the position of the ] for the [ at `start`.  An initial ] is a member of the set.
size_t end_of_set(std::string_view pattern, size_t start) {
  size_t first = start + 1;
  if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) first++;
  return pattern.find(']', first + 1);
}

/// @param set  text between [ and ]
bool set_has(std::string_view set, char c) {
  const bool is_inverted = set.front() == '!' || set.front() == '^';
  if (is_inverted) set.remove_prefix(1);
  const auto code = [](char of) { return static_cast<unsigned char>(of); };
  bool found = false;
  for (size_t i = 0; i < set.size(); i++) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    const char last = is_range ? set[i + 2] : set[i];
    found |= code(set[i]) <= code(c) && code(c) <= code(last);
    if (is_range) i += 2;
  }
  return found != is_inverted;
}

/// Matches one character with the pattern at `p`, which is not *.  Returns the next position in the
/// pattern, or nullopt if `c` does not match.
std::optional<size_t> match_one(std::string_view pattern, size_t p, char c) {
  if (p == pattern.size()) return std::nullopt;
  if (pattern[p] == '[') {
    const size_t end = end_of_set(pattern, p);
    if (!set_has(pattern.substr(p + 1, end - p - 1), c)) return std::nullopt;
    return end + 1;
  }
  if (pattern[p] != '?' && pattern[p] != c) return std::nullopt;
  return p + 1;
}

}  // namespace

bool is_glob(std::string_view pattern) {
  for (size_t p = 0; p < pattern.size(); p++) {
    if (pattern[p] != '[') continue;
    p = end_of_set(pattern, p);
    if (p == kNone) return false;
  }
  return true;
}

// Backtracks to the last * only: it can absorb any text that an earlier * left over.
bool glob_matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t star = kNone;  // after the last * so far
  size_t resume = 0;    // end of the text that it matches
  for (size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = t;
    } else if (const auto next = match_one(pattern, p, text[t])) {
      p = *next;
      t++;
    } else if (star != kNone) {
      p = star;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

}  // namespace mp::autocast
