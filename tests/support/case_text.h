// Conversion of a test case to one line of key=value and back.  One list of fields,
// each_field(case, visit), which calls visit(key, field) for every field, serves both directions.
#pragma once

#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "output_case.h"

namespace mptest {

/// Names of the enumerators 0, 1, 2, ... of each enumeration.
inline constexpr const char *kDtypeNames[] = {"none", "fp16", "bf16", "fp32"};
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

template <typename T>
void from_text(const std::string &text, T &value) {
  if constexpr (std::is_enum_v<T>) {
    const auto &all = names(value);
    for (size_t i = 0; i < std::size(all); ++i) {
      if (text != all[i]) continue;
      value = static_cast<T>(i);
      return;
    }
    throw std::invalid_argument("no such value: " + text);
  } else {
    std::istringstream in(text);
    if (!(in >> value)) throw std::invalid_argument("not a value: " + text);
  }
}

template <typename T>
void from_text(const std::string &text, std::vector<T> &values) {
  std::istringstream in(text);
  for (std::string element; std::getline(in, element, ',');)
    from_text(element, values.emplace_back());
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
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    bool known = false;
    each_field(c, [&](const char *key, auto &value) {
      if (word.compare(0, equals, key) != 0) return;
      from_text(word.substr(equals + 1), value);
      known = true;
    });
    if (!known) throw std::invalid_argument("not a field of the case: " + word);
  }
  return c;
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
