// GemmCase to one line of key=value and back: one list of fields serves both directions.
#include "gemm_case.h"

#include <iterator>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace mptest {

namespace {

/// Calls visit(key, field) for every field.
template <typename Case, typename Visit>
void each_field(Case &c, Visit visit) {
  visit("m", c.m);
  visit("n", c.n);
  visit("k", c.k);
  visit("op", c.op);
  visit("ab", c.ab);
  visit("cd", c.cd);
  visit("alpha", c.alpha);
  visit("beta", c.beta);
  visit("batch", c.batch);
  visit("shared_a", c.shared_a);
  visit("shared_b", c.shared_b);
  visit("pointers", c.pointers);
  visit("in_place", c.in_place);
  visit("pad", c.pad);
  visit("multiple", c.multiple);
  visit("offset", c.offset);
  visit("stray", c.stray);
  visit("fill", c.fill);
  visit("plant", c.plant);
  visit("place", c.place);
  visit("activation", c.activation);
  visit("bias", c.bias);
  visit("scale", c.scale);
  visit("aux", c.aux);
  visit("dbias", c.dbias);
  visit("amax", c.amax);
  visit("found_inf", c.found_inf);
  visit("seed", c.seed);
  visit("kernel", c.kernel);
}

/// Names of the enumerators 0, 1, 2, ... of each enumeration.
constexpr const char *kDtypes[] = {"none", "fp16", "bf16", "fp32"};
constexpr const char *kActivations[] = {"none", "relu", "gelu", "drelu", "dgelu"};
constexpr const char *kFills[] = {"exact", "rounding", "real"};
constexpr const char *kPlants[] = {"none", "inf", "nan"};
constexpr const char *kPlaces[] = {"first", "middle", "last"};

const auto &names(mp_dtype_t) {
  return kDtypes;
}
const auto &names(mp_activation_t) {
  return kActivations;
}
const auto &names(Fill) {
  return kFills;
}
const auto &names(Plant) {
  return kPlants;
}
const auto &names(Place) {
  return kPlaces;
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
    std::istringstream(text) >> value;
  }
}

}  // namespace

std::string to_string(const GemmCase &c) {
  std::vector<std::string> defaults;
  const GemmCase default_case;
  each_field(default_case,
             [&](const char *, const auto &value) { defaults.push_back(to_text(value)); });

  std::string line;
  size_t index = 0;
  each_field(c, [&](const char *key, const auto &value) {
    const std::string text = to_text(value);
    const bool is_shape = index < 6;  // m n k op ab cd are always told
    if (is_shape || text != defaults[index]) {
      line += (line.empty() ? "" : " ") + std::string(key) + "=" + text;
    }
    ++index;
  });
  return line;
}

GemmCase parse_gemm_case(const std::string &line) {
  GemmCase c;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    bool known = false;
    each_field(c, [&](const char *key, auto &value) {
      if (word.compare(0, equals, key) != 0) return;
      from_text(word.substr(equals + 1), value);
      known = true;
    });
    if (!known) throw std::invalid_argument("not a field of a GEMM case: " + word);
  }
  return c;
}

}  // namespace mptest
