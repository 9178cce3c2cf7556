// What the names in a body stand for: registers, labels, variables.  A block in braces is a scope,
// which sees those around it, and hides their names behind its own; a function that is called sees
// none of its caller.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/softgpu/ptx/syntax.h"

namespace softgpu::ptx {

/// A place where a label was named before it was known what it is.
struct LabelUse {
  enum class Kind {
    kBranch,       ///< operand of a statement: a label
    kTableBranch,  ///< operand of a statement: the name of a table
    kTableEntry,   ///< entry of a table: a label
  };
  Kind kind;
  std::string_view name;
  size_t user, index;  ///< the statement, or the table, and its operand or entry
};

class Scopes {
 public:
  explicit Scopes(Body &body) : body_(&body) {}

  void enter() { scopes_.push_back(Scope{current()}); }
  void enter_function() { scopes_.push_back(Scope{-1}); }
  /// Leaves the innermost scope; its labels are put in where they are used.  Returns the name of a
  /// label that there is not, "" if there are all.
  std::string_view leave();
  size_t depth() const { return scopes_.size(); }

  /// Declares `name`, or name0, name1 and so on.
  void declare_register(std::string_view name, Register kind);
  void declare_registers(std::string_view prefix, uint32_t number, Register kind);
  /// Index in Body::registers, -1: no register.
  int find_register(std::string_view name) const;

  void declare_symbol(std::string_view name, std::string_view unique);
  /// The unique name of a variable of the body, "" if it is none.
  std::string_view find_symbol(std::string_view name) const;

  /// A label of the next statement.
  void declare_label(std::string_view name);
  /// A label that stands in front of a table.
  void declare_table(std::string_view name, uint32_t index);
  void use_label(const LabelUse &use) { scopes_.back().uses.push_back(use); }

 private:
  struct Range {
    std::string_view prefix;
    uint32_t number;
    int first;
  };
  struct Scope {
    int parent;
    std::vector<Range> ranges{};
    std::unordered_map<std::string_view, int> registers{};
    std::unordered_map<std::string_view, std::string_view> symbols{};
    std::unordered_map<std::string_view, uint32_t> labels{};  ///< in Body::labels
    std::unordered_map<std::string_view, uint32_t> tables{};  ///< in Body::branch_tables
    std::vector<LabelUse> uses{};
  };

  int current() const { return static_cast<int>(scopes_.size()) - 1; }
  const Scope &at(int scope) const { return scopes_[static_cast<size_t>(scope)]; }
  void resolve(const LabelUse &, uint32_t index);
  int add_registers(uint32_t number, Register kind);

  Body *body_;
  std::vector<Scope> scopes_;
};

}  // namespace softgpu::ptx
