#include "softgpu/program/constants.h"

#include "softgpu/program/registers.h"

namespace softgpu {

RegisterSlot Constants::constant(uint8_t width, ConstantKind kind, uint64_t value) {
  return constants_.try_emplace({value, kind, width}, 0).first->second;
}

RegisterSlot Constants::special(uint8_t width, std::string_view name) {
  for (const Special &s : specials_)
    if (s.width == width && s.name == name) return s.row;
  specials_.push_back({width, std::string(name), 0});
  return 0;
}

uint32_t Constants::place() {
  uint32_t end = 0;
  for (uint8_t width : {8, 4, 1}) {
    const auto place_one = [&](uint8_t of, RegisterSlot &row) {
      if (of != width) return;
      row = end;
      end += row_bytes(width);
    };
    for (auto &[key, row] : constants_) place_one(key.width, row);
    for (Special &s : specials_) place_one(s.width, s.row);
  }
  return end;
}

std::vector<ConstantRow> Constants::constants() const {
  std::vector<ConstantRow> rows;
  for (const auto &[key, row] : constants_) rows.push_back({row, key.width, key.kind, key.value});
  return rows;
}

std::vector<SpecialRow> Constants::specials() const {
  std::vector<SpecialRow> rows;
  for (const Special &s : specials_) rows.push_back({s.row, s.width, s.name});
  return rows;
}

}  // namespace softgpu
