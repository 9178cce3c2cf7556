// The command lines of this repository's programs: CLI11, with words and whole numbers as all of them
// take them.  Options come in any order; the last of a kind wins.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpcore.h"
#include "program.h"

namespace mptools {

/// @throws UsageError if `value` is not a whole number of at least `least`.  (CLI11's own numbers take 010
///         for 8 and -1 for an unsigned one.)
template <typename Integer>
Integer parse_integer(std::string_view option, std::string_view value, Integer least) {
  Integer number = 0;
  const char *const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc::result_out_of_range)
    throw UsageError(std::string(option) + " = " + std::string(value) + " is out of range");
  if (error != std::errc() || stop != end || number < least)
    throw UsageError(std::string(option) + " = " + std::string(value) +
                     " must be an integer of at least " + std::to_string(least));
  return number;
}

template <typename Target, typename Integer>
CLI::Option *add_integer(CLI::App &app, const std::string &name, Target &number, Integer least,
                         const std::string &description) {
  return app
      .add_option_function<std::string>(
          name,
          [&number, name, least](const std::string &value) {
            number = parse_integer(name, value, least);
          },
          description)
      ->type_name("N");
}

/// Words and what they mean.
template <typename Value>
using Words = std::vector<std::pair<std::string, Value>>;

/// One of `words`.
template <typename Target, typename Value>
CLI::Option *add_choice(CLI::App &app, const std::string &name, Target &choice,
                        const Words<Value> &words, const std::string &description) {
  return app
      .add_option_function<std::string>(
          name,
          [&choice, words](const std::string &word) {
            choice = std::find_if(words.begin(), words.end(), [&](const auto &known) {
                       return known.first == word;
                     })->second;
          },
          description)
      ->check(CLI::IsMember(words).description(""));
}

inline const Words<mp_dtype_t> kDtypes = {{mp_dtype_name(MP_FP16), MP_FP16},
                                          {mp_dtype_name(MP_BF16), MP_BF16},
                                          {mp_dtype_name(MP_FP32), MP_FP32}};

/// --device, as mp_context_config.device.
inline void add_device(CLI::App &app, int32_t &device) {
  const auto parse = [&device](const std::string &value) {
    constexpr std::string_view kCudaOrdinal = "cuda:";
    if (value == "auto")
      device = MP_DEVICE_AUTO;
    else if (value == "host")
      device = MP_DEVICE_HOST;
    else if (value == "cuda")
      device = MP_DEVICE_CURRENT;
    else if (value.starts_with(kCudaOrdinal))
      device = parse_integer<int32_t>("--device cuda:N",
                                      std::string_view(value).substr(kCudaOrdinal.size()), 0);
    else
      throw UsageError("--device = " + value + " must be auto, host, cuda or cuda:N");
  };
  app.add_option_function<std::string>("--device", parse, "auto, host, cuda or cuda:N")
      ->type_name("WHERE")
      ->default_str("auto");
}

/// A word as a shell reads it again.
inline std::string quoted(const std::string &word) {
  if (!word.empty() && word.find_first_of(" \t;&|<>()$*?'\"\\`#~") == std::string::npos)
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// The command that runs the program again, for results to name it.
inline std::string command_text(int argc, const char *const *argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) text += (i > 0 ? " " : "") + quoted(argv[i]);
  return text;
}

/// A program's command line; its options are added to it.
class CommandLine : public CLI::App {
 public:
  /// @param description  above the options in the text of --help
  /// @param notes        below them
  CommandLine(const std::string &name, const std::string &description, const std::string &notes)
      : CLI::App(description + '\n', name) {
    constexpr size_t kColumn = 24;
    get_formatter()->column_width(kColumn);
    set_help_flag("--help", "this text");
    option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    footer(notes);
  }

  /// @throws UsageError, HelpRequest
  void parse(int argc, const char *const *argv) {
    try {
      CLI::App::parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
      throw HelpRequest{help("", CLI::AppFormatMode::All)};
    } catch (const CLI::ParseError &error) {
      throw UsageError(std::string(error.what()) + "; " + get_name() + " --help lists the options");
    }
  }
};

}  // namespace mptools
