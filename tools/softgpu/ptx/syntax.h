// The text of a PTX module as a tree: what is declared, and the statements of a kernel with their
// operands.  PTX ISA, chapters Syntax and State Spaces, Types and Variables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu::ptx {

/// A text that is no PTX, or PTX that this device does not know: says file, line and statement.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Bytes of a fundamental type ("u32", "f16x2"), 0 if it is none; a predicate has none.
int type_size(std::string_view type);

enum class OperandKind {
  kRegister,
  kSpecial,  ///< a name with % that is no register of the kernel
  kImmediate,
  kSymbol,
  kAddress,
  kVector,
  kLabel,
  kDiscard
};

// Names and texts of statements are views: of the module's text, or of Body::storage.

struct Operand {
  OperandKind kind = OperandKind::kDiscard;
  uint8_t width = 0;      ///< of the register, as Register::width
  bool is_half = false;   ///< as Register::is_half
  bool is_float = false;  ///< written as 0f... (32 bits), 0d... or with a decimal point (64 bits)
  bool is_double = false;
  bool is_negated = false;  ///< !%p
  int reg = -1;  ///< kRegister, or the base of an address: index in Body::registers; -1: none
  std::string_view
      name;  ///< kSpecial ("%tid.x"), kSymbol, kLabel, or a symbol that is the base of an address
  uint64_t bits = 0;   ///< kImmediate; kLabel: index in Body::labels or Body::branch_tables
  int64_t offset = 0;  ///< behind the base of an address or a symbol
  std::vector<Operand>
      items;  ///< of a vector; or what follows the base in an address, as coordinates do
  std::shared_ptr<const Operand> second;  ///< %r|%p
};

struct Statement {
  std::vector<std::string_view> opcode;  ///< "ld", "global", "v4", "u32"
  std::vector<Operand> operands;
  int guard = -1;  ///< register of @%p
  bool guard_is_negated = false;
  uint32_t line = 0;      ///< in the file
  std::string_view text;  ///< as it is in the file, for messages
};

/// A register's width in bytes: 1 for a predicate, 4 for up to 32 bits, 8.
struct Register {
  uint8_t width;
  bool is_half = false;  ///< declared with 16 bits: what extends a value by its sign stops there
};

struct Variable {
  std::string name, type;
  uint64_t size = 0;
  uint32_t alignment = 1;
  bool is_extern = false;
  /// Of one in a body: in the local memory of a thread, in the shared memory of a block.
  uint64_t offset = 0;
  std::vector<std::byte> initial;  ///< as far as it is given; the rest is 0
};

/// The first multiple of an alignment that is not below an offset.
constexpr uint64_t align_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// The body of a kernel, functions that it calls expanded in it.
struct Body {
  std::vector<Register> registers;
  std::vector<Statement> statements;
  std::vector<uint32_t> labels;                      ///< index of the statement behind each label
  std::vector<std::vector<uint32_t>> branch_tables;  ///< of brx.idx: indices in `labels`
  std::vector<Variable> shared,
      local;  ///< declared in the body, unique names; parameters of calls are local
  uint64_t shared_bytes = 0, local_bytes = 0;
  std::deque<std::string> storage;  ///< texts that are not the module's
};

/// What the directives of a kernel demand of its launches; 0: not said.
struct LaunchBounds {
  uint32_t max_threads = 0, min_blocks = 0,
           max_registers = 0;                ///< .maxntid or .reqntid, .minnctapersm, .maxnreg
  uint32_t max_cluster = 0;                  ///< .maxclusterrank
  std::array<uint32_t, 3> required_block{},  ///< .reqntid
      required_cluster{};                    ///< .reqnctapercluster
  bool explicit_cluster = false;
};

struct Entry : LaunchBounds {
  std::string name;  ///< mangled
  std::vector<Variable> parameters;
  std::string_view body;  ///< its text, braces included
  uint32_t line = 0;      ///< of the brace
};

struct Function {
  std::vector<std::string> results, parameters;
  std::string_view body;
  uint32_t line = 0;
};

struct Module {
  std::string file;  ///< for messages
  std::shared_ptr<const std::string> text;
  int target = 0;                 ///< 90 of sm_90a
  bool is_arch_specific = false;  ///< sm_90a
  std::map<std::string, Entry, std::less<>> entries;
  std::map<std::string, Function, std::less<>> functions;
  std::vector<Variable> globals;  ///< .global and .const
  std::vector<Variable> shared;   ///< module scope
};

/// Indexes a module; bodies are read when they are asked for.
Module parse_module(std::string file, std::shared_ptr<const std::string> text);

/// Is shown each instruction, on one line, before it is read: returns what is to be read in its
/// place, "" for nothing.
using Rewrite = std::function<std::optional<std::string>(const std::string &statement)>;

/// Reads the body of a kernel.
Body parse_body(const Module &, const Entry &, const Rewrite & = nullptr);

}  // namespace softgpu::ptx
