#include "catalog.h"

#include <stdexcept>

namespace mptest {

Catalog all_calls() {
  Catalog all;
  for (const Catalog &section : {product_calls(), layer_calls(), step_calls(), graph_calls()})
    all.insert(all.end(), section.begin(), section.end());
  return all;
}

Catalog calls_named(std::initializer_list<std::string_view> names) {
  Catalog chosen;
  for (const std::string_view name : names) {
    const size_t before = chosen.size();
    for (const Entry &entry : name == "layers" ? layer_calls() : all_calls())
      if (name == "layers" || entry.name.starts_with(name)) chosen.push_back(entry);
    if (chosen.size() == before) throw std::invalid_argument("no calls " + std::string(name));
  }
  return chosen;
}

}  // namespace mptest
