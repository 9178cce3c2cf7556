// Command-line parser of this repository's programs, based on CLI11.  Options may be given in any
// order; the last one of a kind wins.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtypes.h"
#include "mpcore.h"
#include "program.h"

namespace mptools {

/// Parses an integer.  CLI11 itself reads 010 as 8 and accepts -1 for an unsigned integer.
/// @throws UsageError if `value` is not an integer of at least `least`
template <typename Integer>
Integer parse_integer(std::string_view option, std::string_view value, Integer least) {
  Integer number = 0;
  const char *const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc::result_out_of_range)
    throw UsageError(std::string(option) + " = " + std::string(value) + ": out of range");
  if (error != std::errc() || stop != end || number < least)
    throw UsageError(std::string(option) + " = " + std::string(value) +
                     ": must be an integer of at least " + std::to_string(least));
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

/// Words and their values.
template <typename Value>
using Words = std::vector<std::pair<std::string, Value>>;

/// Adds an option whose argument is one of `words`.
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

#define MPTOOLS_WORD(type, name, ...) {name, MP_##type},
inline const Words<mp_dtype_t> kDtypes = {MP_FLOAT_TYPES(MPTOOLS_WORD)};
#undef MPTOOLS_WORD

/// Adds --device, as mp_context_config.device.
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
      throw UsageError("--device = " + value + ": must be auto, host, cuda or cuda:N");
  };
  app.add_option_function<std::string>("--device", parse, "auto, host, cuda or cuda:N")
      ->type_name("WHERE")
      ->default_str("auto");
}

/// Quotes a word for the shell.
inline std::string quoted(const std::string &word) {
  if (!word.empty() && word.find_first_of(" \t;&|<>()$*?'\"\\`#~") == std::string::npos)
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

/// Returns the command line, which results quote.
inline std::string command_text(int argc, const char *const *argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) text += (i > 0 ? " " : "") + quoted(argv[i]);
  return text;
}

/// Command line of a program; the program adds its options.
class CommandLine : public CLI::App {
 public:
  /// @param description  printed by --help above the options
  /// @param notes        printed by --help below the options
  CommandLine(const std::string &name, const std::string &description, const std::string &notes)
      : CLI::App(description + '\n', name) {
    constexpr size_t kColumn = 24;
    get_formatter()->column_width(kColumn);
    set_help_flag("--help", "print this text");
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
