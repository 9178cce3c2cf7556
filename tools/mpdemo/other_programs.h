// Programs that mpdemo starts: gnuplot and bible.
#pragma once

#include <filesystem>
#include <string>

namespace mpdemo {

/// Returns the path of a program in a folder of PATH; empty if there is none.  Only absolute
/// folders count, so that no file of the current folder is started by accident.
std::string find_program(const std::string &name);

/// Draws the pictures of a gnuplot script in its folder.
/// @return the exit code of gnuplot, or -1 if it cannot be started
int run_gnuplot(const std::filesystem::path &folder, const std::string &script);

/// Returns the output of Debian's command bible, one verse per line; empty if it cannot be started
/// or fails.
std::string text_of_bible();

}  // namespace mpdemo
