// Syntax tree of a PTX module: its declarations, and the statements of a kernel with their
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

/// Invalid or unsupported PTX; the message names file, line and statement.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns the bytes of a fundamental type ("u32", "f16x2"); 0 for predicates and unknown types.
int type_size(std::string_view type);

enum class OperandKind {
  kRegister,
  kSpecial,  ///< name with % other than a register of the kernel
  kImmediate,
  kSymbol,
  kAddress,
  kVector,
  kLabel,
  kDiscard
};

// Names and texts of statements are views of the module's text or of Body::storage.

struct Operand {
  OperandKind kind = OperandKind::kDiscard;
  uint8_t width = 0;      ///< register width, as in Register::width
  bool is_half = false;   ///< as in Register::is_half
  bool is_float = false;  ///< written as 0f... (32 bits), 0d..., or with a decimal point (64 bits)
  bool is_double = false;
  bool is_negated = false;  ///< !%p
  int reg = -1;             ///< kRegister or base of an address: index in Body::registers; -1: none
  /// kSpecial ("%tid.x"), kSymbol, kLabel, or the symbol that is the base of an address.
  std::string_view name;
  uint64_t bits = 0;   ///< kImmediate; kLabel: index in Body::labels or Body::branch_tables
  int64_t offset = 0;  ///< offset from the base of an address or a symbol
  /// Elements of a vector; in an address, the operands after the base, such as coordinates.
  std::vector<Operand> items;
  std::shared_ptr<const Operand> second;  ///< %r|%p
};

struct Statement {
  std::vector<std::string_view> opcode;  ///< "ld", "global", "v4", "u32"
  std::vector<Operand> operands;
  int guard = -1;  ///< predicate register of @%p
  bool guard_is_negated = false;
  uint32_t line = 0;      ///< line in the file
  std::string_view text;  ///< original text, for messages
};

/// Register with its width in bytes: 1 for a predicate, 4 for up to 32 bits, 8 for 64 bits.
struct Register {
  uint8_t width;
  bool is_half = false;  ///< declared with 16 bits, to which sign extension is limited
};

struct Variable {
  std::string name, type;
  uint64_t size = 0;
  uint32_t alignment = 1;
  bool is_extern = false;
  /// Offset of a variable of a body, in the local memory of a thread or the shared memory of a
  /// block.
  uint64_t offset = 0;
  std::vector<std::byte> initial;  ///< explicit values; the rest is 0
};

/// Rounds an offset up to a multiple of an alignment.
constexpr uint64_t align_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// Body of a kernel, with called functions inlined.
struct Body {
  std::vector<Register> registers;
  std::vector<Statement> statements;
  std::vector<uint32_t> labels;                      ///< statement index of each label
  std::vector<std::vector<uint32_t>> branch_tables;  ///< tables of brx.idx: indices in `labels`
  /// Variables of the body, with unique names; parameters of calls are local.
  std::vector<Variable> shared, local;
  uint64_t shared_bytes = 0, local_bytes = 0;
  std::deque<std::string> storage;  ///< texts that are not part of the module's text
};

/// Limits that the directives of a kernel set for its launches; 0: not specified.
struct LaunchBounds {
  /// .maxntid or .reqntid, .minnctapersm, .maxnreg
  uint32_t max_threads = 0, min_blocks = 0, max_registers = 0;
  uint32_t max_cluster = 0;                  ///< .maxclusterrank
  std::array<uint32_t, 3> required_block{},  ///< .reqntid
      required_cluster{};                    ///< .reqnctapercluster
  bool explicit_cluster = false;
};

struct Entry : LaunchBounds {
  std::string name;  ///< mangled
  std::vector<Variable> parameters;
  std::string_view body;  ///< text of the body, including its braces
  uint32_t line = 0;      ///< line of the opening brace
};

struct Function {
  std::vector<std::string> results, parameters;
  std::string_view body;
  uint32_t line = 0;
};

struct Module {
  std::string file;  ///< for messages
  std::shared_ptr<const std::string> text;
  int target = 0;                 ///< 90 for sm_90a
  bool is_arch_specific = false;  ///< true for sm_90a
  std::map<std::string, Entry, std::less<>> entries;
  std::map<std::string, Function, std::less<>> functions;
  std::vector<Variable> globals;  ///< .global and .const
  std::vector<Variable> shared;   ///< module scope
};

/// Parses the declarations of a module; bodies are parsed on demand.
Module parse_module(std::string file, std::shared_ptr<const std::string> text);

/// Called with the text of each instruction, on one line, before it is parsed.  Returns the
/// replacement ("" removes the instruction) or nullopt.
using Rewrite = std::function<std::optional<std::string>(const std::string &statement)>;

/// Parses the body of a kernel.
Body parse_body(const Module &, const Entry &, const Rewrite & = nullptr);

}  // namespace softgpu::ptx
