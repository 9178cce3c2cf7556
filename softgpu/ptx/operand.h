// Operands: PTX ISA, chapter Instruction Operands.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/reader.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {

// Name lookup in a body: registers, labels, variables.  A block in braces is a scope that sees the
// enclosing scopes and hides their names.  A called function does not see the names of its caller.

/// Use of a label before its declaration.
struct LabelUse {
  enum class Kind {
    kBranch,       ///< operand of a statement: label
    kTableBranch,  ///< operand of a statement: name of a branch table
    kTableEntry,   ///< entry of a branch table: label
  };
  Kind kind;
  std::string_view name;
  size_t user, index;  ///< statement and operand, or table and entry
};

class Scopes {
 public:
  explicit Scopes(Body &body) : body_(&body) {}

  void enter() { scopes_.push_back(Scope{current()}); }
  void enter_function() { scopes_.push_back(Scope{-1}); }
  /// Leaves the innermost scope and resolves the uses of its labels.  Returns the name of an
  /// undeclared label, or "".
  std::string_view leave();
  size_t depth() const { return scopes_.size(); }

  /// Declares `name`, or name0, name1 and so on.
  void declare_register(std::string_view name, Register kind);
  void declare_registers(std::string_view prefix, uint32_t number, Register kind);
  /// Returns the index in Body::registers, or -1.
  int find_register(std::string_view name) const;

  void declare_symbol(std::string_view name, std::string_view unique);
  /// Returns the unique name of a variable of the body, or "".
  std::string_view find_symbol(std::string_view name) const;

  /// Declares a label of the next statement.
  void declare_label(std::string_view name);
  /// Declares a label that precedes a branch table.
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
    std::unordered_map<std::string_view, uint32_t> labels{};  ///< values: indices in Body::labels
    /// values: indices in Body::branch_tables
    std::unordered_map<std::string_view, uint32_t> tables{};
    std::vector<LabelUse> uses{};
  };

  int current() const { return static_cast<int>(scopes_.size()) - 1; }
  const Scope &at(int scope) const { return scopes_[static_cast<size_t>(scope)]; }
  void resolve(const LabelUse &, uint32_t index);
  int add_registers(uint32_t number, Register kind);

  Body *body_;
  std::vector<Scope> scopes_;
};

/// Parses a signed number into a kImmediate.  Returns false, without consuming text, if there is
/// none.
bool read_constant(Reader &, Operand &);

/// Parses `.param .align 8 .b8 name[24]` or `.global .u32 name = 5`, up to the separator.
Variable read_variable(Reader &);

/// Parses `(.param .b32 a, .param .b32 b)`.
std::vector<Variable> read_parameters(Reader &);

class OperandReader {
 public:
  OperandReader(Reader &reader, const Scopes &scopes, const Body &body)
      : reader_(reader), scopes_(scopes), body_(body) {}

  Operand read();
  /// Returns the operand for `%p`.  Fails if the name is not a register.
  Operand read_register();

 private:
  Operand read_one();
  Operand read_address();
  Operand read_named();
  int64_t read_offset();
  void set_register(Operand &, int reg) const;

  Reader &reader_;
  const Scopes &scopes_;
  const Body &body_;
};

}  // namespace softgpu::ptx
