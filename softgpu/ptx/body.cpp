// Parser for the statements of a kernel.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "softgpu/ptx/operand.h"
#include "softgpu/ptx/reader.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {
namespace {

constexpr int kMaxNestedCalls = 64;

class BodyReader {
 public:
  BodyReader(const Module &module, const Rewrite &rewrite, Body &body)
      : module_(module), rewrite_(rewrite), body_(body), scopes_(body) {}

  void read(const Entry &);

 private:
  void read_function(std::string_view text, uint32_t line);
  void leave_scope(const Reader &);
  bool read_label(Reader &);

  void read_directive(Reader &);
  void declare_registers(Reader &);
  std::string_view name_variable(Variable &);
  void declare_shared(const char *position, Variable);
  void declare_local(Variable, uint32_t least_alignment);
  void read_branch_table(Reader &);

  void read_instruction(Reader &);
  void read_instruction(std::string_view text, uint32_t line);
  void read_guard(Reader &, Statement &);
  void read_operands(Reader &, Statement &);
  void add_branch(const Statement &from, uint32_t label);
  uint32_t new_label();
  void place_label(uint32_t label);

  void read_call(Reader &, Statement);
  std::vector<std::string_view> read_arguments(Reader &);
  void expand_call(const Reader &, const Function &, const std::vector<std::string_view> &results,
                   const std::vector<std::string_view> &arguments);
  void end_with_return();

  const Module &module_;
  const Rewrite &rewrite_;
  Body &body_;
  Scopes scopes_;
  std::string_view last_label_;          ///< may be the name of a branch table
  std::vector<uint32_t> return_labels_;  ///< return labels of the functions that are being expanded
  std::vector<uint64_t> local_bytes_;  ///< local memory in use at the start of each enclosing scope
  uint64_t num_local_bytes_ = 0;  ///< local memory in use; a scope releases its part at its end
  std::unordered_map<const char *, std::string_view> shared_;  ///< key: position of the declaration
  std::unordered_map<std::string, int> num_named_;
};

void BodyReader::read(const Entry &entry) {
  scopes_.enter_function();
  local_bytes_.push_back(0);
  read_function(entry.body, entry.line);
  end_with_return();
}

/// Parses a body in braces and leaves its scope, which the caller has entered.
void BodyReader::read_function(std::string_view text, uint32_t line) {
  Reader reader(module_.file, text, line);
  const size_t depth = scopes_.depth();
  reader.expect('{');
  while (scopes_.depth() >= depth) {
    const char next = reader.peek();
    if (next == '{') {
      reader.take('{');
      scopes_.enter();
      local_bytes_.push_back(num_local_bytes_);
    } else if (next == '}') {
      reader.take('}');
      leave_scope(reader);
    } else if (next == ';') {
      reader.take(';');
    } else if (next == '.') {
      read_directive(reader);
    } else if (!read_label(reader)) {
      read_instruction(reader);
    }
  }
}

void BodyReader::leave_scope(const Reader &reader) {
  const std::string_view missing = scopes_.leave();
  if (!missing.empty()) reader.fail("unknown label " + std::string(missing) + " before");
  num_local_bytes_ = local_bytes_.back();
  local_bytes_.pop_back();
}

/// Parses `$L__BB0_1:`.  Returns false if there is no label.
bool BodyReader::read_label(Reader &reader) {
  Reader ahead = reader;
  const std::string_view name = ahead.word();
  if (name.empty() || !ahead.take(':') || *ahead.position() == ':') return false;
  scopes_.declare_label(name);
  last_label_ = name;
  reader = ahead;
  return true;
}

// ---- Directives

void BodyReader::read_directive(Reader &reader) {
  const char *position = reader.position();
  const std::string_view word = reader.word();
  if (word == ".reg") {
    declare_registers(reader);
  } else if (word == ".shared") {
    declare_shared(position, read_variable(reader));
    reader.expect(';');
  } else if (word == ".local") {
    declare_local(read_variable(reader), 1);
    reader.expect(';');
  } else if (word == ".param") {
    declare_local(read_variable(reader), 8);
    reader.expect(';');
  } else if (word == ".branchtargets") {
    read_branch_table(reader);
  } else if (word == ".loc") {
    reader.skip_line();
  } else if (word == ".pragma" || word == ".callprototype") {
    reader.until(';');
  } else {
    reader.fail("an unknown directive " + std::string(word));
  }
}

/// Parses `.pred p, q;` or `.b32 %r<5>;`.
void BodyReader::declare_registers(Reader &reader) {
  const std::string_view type = reader.word();
  const int size = type == ".pred" ? 1 : type_size(type.substr(std::min<size_t>(1, type.size())));
  if (size == 0) reader.fail("registers of an unknown type " + std::string(type));
  const uint8_t width = type == ".pred" ? 1 : size == 8 ? 8 : 4;
  const Register kind{width, size == 2};
  do {
    const std::string_view name = reader.word();
    if (reader.take('<')) {
      scopes_.declare_registers(name, reader.number(), kind);
      reader.expect('>');
    } else {
      scopes_.declare_register(name, kind);
    }
  } while (reader.take(','));
  reader.expect(';');
}

/// Assigns a name to a variable that is unique in the body.
std::string_view BodyReader::name_variable(Variable &v) {
  const int number = num_named_[v.name]++;
  const std::string name = number == 0 ? v.name : v.name + "$" + std::to_string(number);
  const std::string_view unique = body_.storage.emplace_back(name);
  scopes_.declare_symbol(body_.storage.emplace_back(v.name), unique);
  v.name = name;
  return unique;
}

/// Declares a shared variable.  All calls of a function share it, identified by the position of its
/// declaration.
void BodyReader::declare_shared(const char *position, Variable v) {
  if (const auto known = shared_.find(position); known != shared_.end()) {
    scopes_.declare_symbol(body_.storage.emplace_back(v.name), known->second);
    return;
  }
  shared_[position] = name_variable(v);
  v.offset = align_up(body_.shared_bytes, v.alignment);
  body_.shared_bytes = v.offset + v.size;
  body_.shared.push_back(std::move(v));
}

void BodyReader::declare_local(Variable v, uint32_t least_alignment) {
  name_variable(v);
  v.offset = align_up(num_local_bytes_, std::max(v.alignment, least_alignment));
  num_local_bytes_ = v.offset + v.size;
  body_.local_bytes = std::max(body_.local_bytes, num_local_bytes_);
  body_.local.push_back(std::move(v));
}

/// Parses the text after `NAME: .branchtargets`.
void BodyReader::read_branch_table(Reader &reader) {
  const size_t index = body_.branch_tables.size();
  std::vector<uint32_t> &table = body_.branch_tables.emplace_back();
  do {
    scopes_.use_label({LabelUse::Kind::kTableEntry, reader.word(), index, table.size()});
    table.push_back(0);
  } while (reader.take(','));
  reader.expect(';');
  scopes_.declare_table(last_label_, static_cast<uint32_t>(index));
}

// ---- Instructions

void BodyReader::read_instruction(Reader &reader) {
  const uint32_t line = reader.line();
  std::string_view text = reader.until(';');
  if (rewrite_) {
    const std::optional<std::string> rewritten = rewrite_(on_one_line(text));
    if (rewritten && rewritten->empty()) return;
    if (rewritten) text = body_.storage.emplace_back(*rewritten);
  }
  read_instruction(text, line);
}

void BodyReader::read_instruction(std::string_view text, uint32_t line) {
  Reader reader(module_.file, text, line);
  Statement s;
  s.line = line;
  s.text = text;
  read_guard(reader, s);
  std::string_view opcode = reader.opcode();
  if (opcode.empty()) reader.fail("expected an instruction");
  s.opcode.reserve(static_cast<size_t>(std::ranges::count(opcode, '.')) + 1);
  for (size_t dot; (dot = opcode.find('.')) != opcode.npos; opcode.remove_prefix(dot + 1))
    s.opcode.push_back(opcode.substr(0, dot));
  s.opcode.push_back(opcode);

  if (s.opcode[0] == "call") {
    read_call(reader, std::move(s));
  } else if (s.opcode[0] == "ret" && !return_labels_.empty()) {
    add_branch(s, return_labels_.back());
  } else {
    read_operands(reader, s);
    body_.statements.push_back(std::move(s));
  }
}

/// Parses `@%p` or `@!%p`.
void BodyReader::read_guard(Reader &reader, Statement &s) {
  if (!reader.take('@')) return;
  s.guard_is_negated = reader.take('!');
  const Operand guard = OperandReader(reader, scopes_, body_).read_register();
  if (guard.width != 1) reader.fail("a guard that is not a predicate, before");
  s.guard = guard.reg;
}

void BodyReader::read_operands(Reader &reader, Statement &s) {
  const bool is_branch = s.opcode[0] == "bra", is_table_branch = s.opcode[0] == "brx";
  OperandReader operands(reader, scopes_, body_);
  if (reader.peek() == '\0') return;
  do {
    if (is_branch || (is_table_branch && s.operands.size() == 1)) {
      Operand label;
      label.kind = OperandKind::kLabel;
      label.name = reader.word();
      const auto kind = is_branch ? LabelUse::Kind::kBranch : LabelUse::Kind::kTableBranch;
      scopes_.use_label({kind, label.name, body_.statements.size(), s.operands.size()});
      s.operands.push_back(std::move(label));
    } else {
      s.operands.push_back(operands.read());
    }
  } while (reader.take(','));
  if (reader.peek() != '\0') reader.fail("text after the operands");
}

/// Adds a branch with the guard of another statement.
void BodyReader::add_branch(const Statement &from, uint32_t label) {
  Statement branch = from;
  branch.opcode = {"bra"};
  Operand &target = branch.operands.emplace_back();
  target.kind = OperandKind::kLabel;
  target.bits = label;
  body_.statements.push_back(std::move(branch));
}

uint32_t BodyReader::new_label() {
  body_.labels.push_back(0);
  return static_cast<uint32_t>(body_.labels.size() - 1);
}

void BodyReader::place_label(uint32_t label) {
  body_.labels[label] = static_cast<uint32_t>(body_.statements.size());
}

// ---- Calls: functions are inlined; their parameters become variables of the caller.

/// Parses `(retval0), name, (param0, param1)`; the call itself does not become a statement.
void BodyReader::read_call(Reader &reader, Statement call) {
  std::vector<std::string_view> results, arguments;
  if (reader.peek() == '(') {
    results = read_arguments(reader);
    reader.expect(',');
  }
  const std::string_view name = reader.word();
  if (reader.take(',')) arguments = read_arguments(reader);
  if (name == "vprintf") return;  // prints nothing
  if (name == "__assertfail") {
    call.opcode = {"trap"};
    body_.statements.push_back(std::move(call));
    return;
  }
  const auto function = module_.functions.find(name);
  if (function == module_.functions.end())
    reader.fail("a call of " + std::string(name) + ", which is not defined in this module, before");
  if (call.guard < 0) return expand_call(reader, function->second, results, arguments);
  const uint32_t behind = new_label();
  call.guard_is_negated = !call.guard_is_negated;
  add_branch(call, behind);
  expand_call(reader, function->second, results, arguments);
  place_label(behind);
}

/// Parses `(param0, param1)` and returns the unique names of the variables.
std::vector<std::string_view> BodyReader::read_arguments(Reader &reader) {
  std::vector<std::string_view> names;
  reader.expect('(');
  if (reader.take(')')) return names;
  do {
    const std::string_view name = reader.word();
    names.push_back(scopes_.find_symbol(name));
    if (names.back().empty()) reader.fail(std::string(name) + " is not a parameter, before");
  } while (reader.take(','));
  reader.expect(')');
  return names;
}

void BodyReader::expand_call(const Reader &reader, const Function &function,
                             const std::vector<std::string_view> &results,
                             const std::vector<std::string_view> &arguments) {
  if (results.size() != function.results.size() || arguments.size() != function.parameters.size())
    reader.fail("a call whose number of parameters differs from the function's, before");
  if (return_labels_.size() == kMaxNestedCalls) reader.fail("calls are nested too deep, before");
  scopes_.enter_function();
  local_bytes_.push_back(num_local_bytes_);
  for (size_t i = 0; i < results.size(); i++)
    scopes_.declare_symbol(function.results[i], results[i]);
  for (size_t i = 0; i < arguments.size(); i++)
    scopes_.declare_symbol(function.parameters[i], arguments[i]);
  return_labels_.push_back(new_label());
  read_function(function.body, function.line);
  place_label(return_labels_.back());
  return_labels_.pop_back();
}

/// Appends a return, so that a final label or branch has a next statement.
void BodyReader::end_with_return() {
  Statement end;
  end.opcode = {"ret"};
  end.text = "ret";
  end.line = body_.statements.empty() ? 0 : body_.statements.back().line;
  body_.statements.push_back(std::move(end));
}

}  // namespace

Body parse_body(const Module &module, const Entry &entry, const Rewrite &rewrite) {
  Body body;
  BodyReader(module, rewrite, body).read(entry);
  return body;
}

// ---- scopes

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
