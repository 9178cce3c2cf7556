// Conversion of a test case to one line of key=value and back.  One list of fields,
// each_field(case, visit), which calls visit(key, field) for every field, serves both directions.
//
// Tests describe their cases by lines with alternatives.  "op=NN|TT" stands for a case with each
// value, "k/cd=8/fp16|9/fp32" for one with k=8 cd=fp16 and one with k=9 cd=fp32.  A line stands for
// all combinations of its words: "m=64 op=NN|TT k/cd=8/fp16|9/fp32" for four cases.  Fields that
// the line does not name have their defaults; a later word replaces an earlier one.  spelled_out()
// lists abbreviations.  Errors in a line throw std::invalid_argument with the word.
#pragma once

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "numeric.h"
#include "output_case.h"

namespace mptest {

/// Names of the enumerators 0, 1, 2, ... of each enumeration.
#define MPTEST_NAME(type, name, ...) , name
inline constexpr const char *kDtypeNames[] = {"none" MP_FLOAT_TYPES(MPTEST_NAME)};
#undef MPTEST_NAME
inline constexpr const char *kActivationNames[] = {
    "none",     "relu",  "gelu", "drelu", "dgelu",    "sigmoid",  "tanh",
    "dsigmoid", "dtanh", "silu", "dsilu", "gelu_erf", "dgelu_erf"};
inline constexpr const char *kFillNames[] = {"exact", "rounding", "real"};
inline constexpr const char *kPlantNames[] = {"none", "inf", "nan"};
inline constexpr const char *kPlaceNames[] = {"first", "middle", "last"};
inline constexpr const char *kConvOpNames[] = {"", "fprop", "dgrad", "wgrad"};

inline const auto &names(mp_dtype_t) {
  return kDtypeNames;
}
inline const auto &names(mp_activation_t) {
  return kActivationNames;
}
inline const auto &names(Fill) {
  return kFillNames;
}
inline const auto &names(Special) {
  return kPlantNames;
}
inline const auto &names(Place) {
  return kPlaceNames;
}
inline const auto &names(mp_conv_op_t) {
  return kConvOpNames;
}

inline constexpr const char *kRaggedNames[] = {"", "m", "k"};
inline const auto &names(mp_ragged_t) {
  return kRaggedNames;
}

template <typename T>
std::string to_text(const T &value) {
  if constexpr (std::is_enum_v<T>) {
    return names(value)[static_cast<int>(value)];
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[32];  // the shortest text with this value
    return {text, std::to_chars(text, std::end(text), value).ptr};
  } else {
    std::ostringstream text;
    text << value;
    return text.str();
  }
}

/// Elements are separated by commas.
template <typename T>
std::string to_text(const std::vector<T> &values) {
  std::string text;
  for (const T &value : values) text += (text.empty() ? "" : ",") + to_text(value);
  return text;
}

/// Returns the parts between separators, which may be empty.
inline std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

/// Returns whether the whole text is a value of the type.
template <typename T>
bool from_text(const std::string &text, T &value) {
  if (text.empty()) return false;
  if constexpr (std::is_enum_v<T>) {
    const auto &all = names(value);
    const auto found = std::find(std::begin(all), std::end(all), text);
    if (found == std::end(all)) return false;
    value = static_cast<T>(found - std::begin(all));
    return true;
  } else {
    std::istringstream in(text);
    return in >> value && in.peek() == std::istringstream::traits_type::eof();
  }
}

template <typename T>
bool from_text(const std::string &text, std::vector<T> &values) {
  values.clear();
  return std::ranges::all_of(split(text, ','), [&](const std::string &element) {
    return from_text(element, values.emplace_back());
  });
}

/// "key=value", or "key/key=value/value|value/value".
struct Word {
  std::string keys, values;
};

inline Word parse_word(const std::string &text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) throw std::invalid_argument("not key=value: " + text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// Text of the first `always` fields, and of all that differ from a default Case.
template <typename Case, typename EachField>
std::string to_line(const Case &c, size_t always, EachField each_field) {
  std::vector<std::string> defaults;
  const Case default_case;
  each_field(default_case,
             [&](const char *, const auto &value) { defaults.push_back(to_text(value)); });

  std::string line;
  size_t index = 0;
  each_field(c, [&](const char *key, const auto &value) {
    const std::string text = to_text(value);
    if (index < always || text != defaults[index]) {
      line += (line.empty() ? "" : " ") + std::string(key) + "=" + text;
    }
    ++index;
  });
  return line;
}

template <typename Case, typename EachField>
Case parse_line(const std::string &line, EachField each_field) {
  Case c;
  std::istringstream words(line);
  for (std::string text; words >> text;) {
    const Word word = parse_word(text);
    bool known = false;
    each_field(c, [&](const char *key, auto &value) {
      if (word.keys != key) return;
      if (!from_text(word.values, value))
        throw std::invalid_argument("not a value of the field: " + text);
      known = true;
    });
    if (!known) throw std::invalid_argument("not a field of the case: " + text);
  }
  return c;
}

/// Spells out sets of types and activations: "types=all", "types=each", "activation=forward".
inline std::string spelled_out(const std::string &word) {
  const auto pairs = [](const auto &all) {
    std::string text = "ab/cd=";
    for (const Types &types : all) text += to_text(types.ab) + '/' + to_text(types.cd) + '|';
    text.pop_back();
    return text;
  };
  const auto activations = [](const auto &all) {
    std::string text = "activation=";
    for (const mp_activation_t activation : all) text += to_text(activation) + '|';
    text.pop_back();
    return text;
  };
  std::vector<Types> all, each;
  for (const mp_dtype_t ab : kDtypes) {
    for (const mp_dtype_t cd : kDtypes) all.push_back({ab, cd});
    each.push_back({ab, ab == MP_FP16 ? ab : MP_FP32});
  }
  if (word == "types=all") return pairs(all);
  if (word == "types=each") return pairs(each);
  if (word == "activation=forward") return activations(kForwardActivations);
  if (word == "activation=backward") return activations(kBackwardActivations);
  return word;
}

/// Returns the lines without alternatives for which a line stands.
inline std::vector<std::string> expanded(const std::string &line) {
  std::vector<std::string> lines = {""};
  std::istringstream words(line);
  for (std::string text; words >> text;) {
    const Word word = parse_word(spelled_out(text));
    const std::vector<std::string> keys = split(word.keys, '/');
    std::vector<std::string> longer;
    for (const std::string &alternative : split(word.values, '|')) {
      const std::vector<std::string> values = split(alternative, '/');
      if (values.size() != keys.size())
        throw std::invalid_argument("not one value per key: " + text);
      std::string fields;
      for (size_t i = 0; i < keys.size(); ++i) fields += ' ' + keys[i] + '=' + values[i];
      for (const std::string &before : lines) longer.push_back(before + fields);
    }
    lines = std::move(longer);
  }
  return lines;
}

template <typename Case, typename EachField>
std::vector<Case> parse_lines(const std::string &line, EachField each_field) {
  std::vector<Case> cases;
  for (const std::string &one : expanded(line)) cases.push_back(parse_line<Case>(one, each_field));
  return cases;
}

/// The fields of OutputCase that describe the epilogue.
template <typename Case, typename Visit>
void each_epilogue_field(Case &c, Visit visit) {
  visit("activation", c.activation);
  visit("bias", c.bias);
  visit("scale", c.scale);
  visit("zero_scale", c.zero_scale);
  visit("aux", c.aux);
  visit("dbias", c.dbias);
  visit("amax", c.amax);
  visit("found_inf", c.found_inf);
}

}  // namespace mptest
