// A text as sequences of unequal lengths, one a line: the King James Bible, whose 31,102 verses have 11 to
// 528 characters, or a file of the user's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "batch.h"
#include "random.h"

namespace mpdemo {

/// Steps of a window.  Longer verses go on in the next one.
constexpr int32_t kWindow = 64;

/// A symbol for every printable character of ASCII, and one for where a line ends, which also stands before
/// the first character.
constexpr int32_t kSymbols = 96;
constexpr int32_t kLineEnd = 0;
char character_of(int32_t symbol);

struct Verses {
  std::string name;  ///< one line
  std::vector<std::string> train;
  std::vector<std::string> test;  ///< every fiftieth
};

/// @param file  empty: the Bible, as Debian's program `bible` prints it.
/// @throws std::runtime_error with one sentence: what is missing and which package has it, or what is
///         wrong with the text.
Verses load_verses(const std::filesystem::path &file);

void shuffle(Verses &verses, Random &random);

/// Verses of as many windows as each other, `sequences` at a time.  They start together, and only their
/// last window has ends within it.
Batches make_windows(mp_context_t context, const std::vector<std::string> &verses,
                     int64_t sequences);

}  // namespace mpdemo
