#include "softgpu/ptx/scopes.h"

namespace softgpu::ptx {
namespace {

/// Splits a name such as "%r12" into prefix and number.  Returns false if it has no number, as in
/// "%r012".
bool split_number(std::string_view name, std::string_view &prefix, uint32_t &number) {
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') begin--;
  const size_t digits = name.size() - begin;
  if (digits == 0 || digits > 9 || (digits > 1 && name[begin] == '0')) return false;
  number = 0;
  for (char c : name.substr(begin)) number = 10 * number + static_cast<uint32_t>(c - '0');
  prefix = name.substr(0, begin);
  return true;
}

}  // namespace

void Scopes::resolve(const LabelUse &use, uint32_t index) {
  if (use.kind == LabelUse::Kind::kTableEntry) {
    body_->branch_tables[use.user][use.index] = index;
  } else {
    body_->statements[use.user].operands[use.index].bits = index;
  }
}

std::string_view Scopes::leave() {
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const LabelUse &use : scope.uses) {
    const auto &names = use.kind == LabelUse::Kind::kTableBranch ? scope.tables : scope.labels;
    if (const auto found = names.find(use.name); found != names.end()) {
      resolve(use, found->second);
    } else if (scope.parent >= 0) {
      scopes_[static_cast<size_t>(scope.parent)].uses.push_back(use);
    } else {
      return use.name;
    }
  }
  return {};
}

int Scopes::add_registers(uint32_t number, Register kind) {
  const size_t first = body_->registers.size();
  body_->registers.resize(first + number, kind);
  return static_cast<int>(first);
}

void Scopes::declare_register(std::string_view name, Register kind) {
  scopes_.back().registers[name] = add_registers(1, kind);
}

void Scopes::declare_registers(std::string_view prefix, uint32_t number, Register kind) {
  scopes_.back().ranges.push_back({prefix, number, add_registers(number, kind)});
}

int Scopes::find_register(std::string_view name) const {
  std::string_view prefix;
  uint32_t number = 0;
  const bool is_numbered = split_number(name, prefix, number);
  for (int i = current(); i >= 0; i = at(i).parent) {
    const Scope &scope = at(i);
    if (!scope.registers.empty()) {
      const auto found = scope.registers.find(name);
      if (found != scope.registers.end()) return found->second;
    }
    if (!is_numbered) continue;
    for (const Range &range : scope.ranges)
      if (range.prefix == prefix && number < range.number)
        return range.first + static_cast<int>(number);
  }
  return -1;
}

void Scopes::declare_symbol(std::string_view name, std::string_view unique) {
  scopes_.back().symbols[name] = unique;
}

std::string_view Scopes::find_symbol(std::string_view name) const {
  for (int i = current(); i >= 0; i = at(i).parent) {
    const auto found = at(i).symbols.find(name);
    if (found != at(i).symbols.end()) return found->second;
  }
  return {};
}

void Scopes::declare_label(std::string_view name) {
  scopes_.back().labels[name] = static_cast<uint32_t>(body_->labels.size());
  body_->labels.push_back(static_cast<uint32_t>(body_->statements.size()));
}

void Scopes::declare_table(std::string_view name, uint32_t index) {
  scopes_.back().labels.erase(name);
  scopes_.back().tables[name] = index;
}

}  // namespace softgpu::ptx
