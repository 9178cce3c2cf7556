// A text as sequences of different lengths, one per line: the King James Bible, whose 31,102 verses
// have 11 to 528 characters, or a file of the user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "batch.h"
#include "random.h"

namespace mpdemo {

/// Steps per window.  Longer verses continue in the next window.
constexpr int32_t kWindow = 64;

/// Symbols: every printable ASCII character, and the line end, which also precedes the first
/// character.
constexpr int32_t kSymbols = 96;
constexpr int32_t kLineEnd = 0;
char character_of(int32_t symbol);

struct Verses {
  std::string name;  ///< single line
  std::vector<std::string> train;
  std::vector<std::string> test;  ///< every fiftieth verse
};

/// @param file  empty: the Bible, from Debian's program `bible`.
/// @throws std::runtime_error with one sentence: the missing program and its package, or the error
/// in the text.
Verses load_verses(const std::filesystem::path &file);

void shuffle(Verses &verses, Random &random);

/// Groups of `sequences` verses with equal numbers of windows.  They start together, and only their
/// last window contains line ends.
Batches make_windows(mp_context_t context, const std::vector<std::string> &verses,
                     int64_t sequences);

/// Consecutive windows of all verses, which begin and end anywhere in a verse; only the last batch
/// has padding.
Batches make_stream(mp_context_t context, const std::vector<std::string> &verses,
                    int64_t sequences);

}  // namespace mpdemo
