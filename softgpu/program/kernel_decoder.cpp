#include "softgpu/program/kernel_decoder.h"

#include <bit>
#include <stdexcept>
#include <utility>

#include "softgpu/ptx/reader.h"

namespace softgpu {
namespace {

/// Returns whether execution never continues with the next statement.
bool ends_path(const ptx::Statement &s) {
  const std::string_view opcode = s.opcode[0];
  return s.guard < 0 && (opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit");
}

bool is_plain_copy(const ptx::Statement &s) {
  return s.opcode[0] == "mov" && s.operands.size() == 2 &&
         s.operands[0].kind == ptx::OperandKind::kRegister && s.operands[0].width == 4 &&
         s.operands[1].kind == ptx::OperandKind::kRegister && s.operands[1].width == 4;
}

/// Returns whether a statement is TMA or wgmma.
bool is_of_async_proxy(const ptx::Statement &s) {
  if (s.opcode[0] == "wgmma") return true;
  if (s.opcode[0] != "cp" || s.opcode.size() < 4) return false;
  return (s.opcode[1] == "async" && s.opcode[2] == "bulk") ||
         (s.opcode[1] == "reduce" && s.opcode[2] == "async" && s.opcode[3] == "bulk");
}

constexpr uint32_t kUnrealRow = 1u << 30;

}  // namespace

KernelDecoder::KernelDecoder(const ptx::Body &body, Symbols &symbols, Program &program)
    : body_(body), symbols_(symbols), program_(program), registers_(body.registers) {
  for_messages_ = &program;
  for (uint8_t width : {8, 4, 1, 1}) registers_.push_back({width});
  for (uint32_t reg = 0; reg < registers_.size(); reg++) rows_.push_back(kUnrealRow + 256 * reg);
}

// ---- Passes

Flow KernelDecoder::find_flow() {
  flow_.statements.resize(body_.statements.size());
  for (const ptx::Statement &s : body_.statements) {
    Instruction unreal;
    decode_statement(s, unreal);
    note_statement(s);
  }
  return std::move(flow_);
}

/// Adds the information that does not depend on decoding; decoding has recorded accesses and
/// targets.
void KernelDecoder::note_statement(const ptx::Statement &s) {
  FlowStatement &noted = flow_.statements[static_cast<size_t>(&s - body_.statements.data())];
  noted.end_of_accesses = static_cast<uint32_t>(flow_.accesses.size());
  noted.end_of_targets = static_cast<uint32_t>(flow_.targets.size());
  noted.is_guarded = s.guard >= 0;
  noted.is_end = ends_path(s);
  if (is_plain_copy(s)) flow_.renames.emplace_back(s.operands[0].reg, s.operands[1].reg);
  program_.uses_async_proxy |= is_of_async_proxy(s);
}

void KernelDecoder::place_rows(const Flow &flow) {
  symbols_.finish();
  program_.constant_bytes = constants_.place();
  program_.constants = constants_.constants();
  for (ConstantRow &c : program_.constants)
    if (c.kind == ConstantKind::kShared) c.value = symbols_.shared_value(c.value);
  program_.specials = constants_.specials();

  const uint32_t begin = (program_.constant_bytes + 63) / 64 * 64;
  const auto ranges = live_ranges(flow, registers_.size());
  RowAssignment assignment = assign_rows(ranges, registers_, begin);
  rows_ = std::move(assignment.rows);
  for (size_t reg = 0; reg < ranges.size(); reg++)
    if (ranges[reg].is_read_first)
      program_.read_first.emplace_back(rows_[reg], row_bytes(registers_[reg].width));
  program_.register_bytes = (assignment.end + 63) / 64 * 64;
}

void KernelDecoder::decode() {
  is_first_pass_ = false;
  program_.lists.clear();
  program_.wgmma_a.clear();
  program_.branch_targets.clear();
  program_.code.resize(body_.statements.size());
  program_.source.reserve(body_.statements.size());
  for (size_t i = 0; i < body_.statements.size(); i++) {
    const ptx::Statement &s = body_.statements[i];
    decode_statement(s, program_.code[i]);
    program_.source.push_back({s.line, ptx::on_one_line(s.text)});
  }
}

void KernelDecoder::decode_statement(const ptx::Statement &s, Instruction &i) {
  statement_ = &s;
  if (s.guard >= 0) {
    i.has_guard = true;
    i.guard_is_negated = s.guard_is_negated;
    i.guard = access(static_cast<uint32_t>(s.guard), AccessKind::kRead);
  }
  try {
    softgpu::decode(*this, i);
  } catch (const std::out_of_range &) {  // thrown by operands().at()
    unknown("an operand is missing");
  }
}

// ---- Operands

RegisterSlot KernelDecoder::access(uint32_t reg, AccessKind kind) {
  if (is_first_pass_) flow_.accesses.push_back({reg, kind});
  return rows_[reg];
}

RegisterSlot KernelDecoder::own(OwnRegister which, AccessKind kind) {
  return access(static_cast<uint32_t>(body_.registers.size()) + which, kind);
}

RegisterSlot KernelDecoder::read(const ptx::Operand &x, int width) {
  const auto bytes = static_cast<uint8_t>(width);
  if (x.is_negated) unknown("a negated operand");
  if (x.second) unknown("a pair of operands");
  switch (x.kind) {
    case ptx::OperandKind::kRegister:
      if (x.width != width) unknown("an operand of a different width");
      return access(static_cast<uint32_t>(x.reg), AccessKind::kRead);
    case ptx::OperandKind::kImmediate:
      return constants_.constant(bytes, ConstantKind::kValue, immediate(x, width));
    case ptx::OperandKind::kSpecial:
      if (special_register(x.name) == nullptr) unknown("unknown register " + std::string(x.name));
      return constants_.special(bytes, x.name);
    case ptx::OperandKind::kSymbol:
      return symbol(x, x.offset, width);
    default:
      unknown("an invalid operand");
  }
}

uint64_t KernelDecoder::immediate(const ptx::Operand &x, int width) const {
  if (width == 1) return x.bits != 0;
  if (x.is_float && !x.is_double && width == 8) unknown("a 32-bit number instead of a 64-bit one");
  if (width == 8) return x.bits;
  if (x.is_double)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(x.bits)));
  return static_cast<uint32_t>(x.bits);
}

RegisterSlot KernelDecoder::symbol(const ptx::Operand &x, int64_t offset, int width) {
  const std::optional<Symbol> symbol = symbols_.find(x.name);
  if (!symbol) unknown("unknown variable " + std::string(x.name));
  return constants_.constant(static_cast<uint8_t>(width), symbol->kind,
                             symbol->value + static_cast<uint64_t>(offset));
}

RegisterSlot KernelDecoder::write(const ptx::Operand &x, int width) {
  if (x.is_negated || x.second) unknown("a destination that is negated or a pair");
  if (x.kind == ptx::OperandKind::kDiscard)
    return own(width == 8   ? kDiscarded8
               : width == 4 ? kDiscarded4
                            : kDiscarded1,
               AccessKind::kWrite);
  if (x.kind != ptx::OperandKind::kRegister) unknown("a destination that is not a register");
  if (x.width != width) unknown("a destination of a different width");
  return access(static_cast<uint32_t>(x.reg), AccessKind::kWrite);
}

Address KernelDecoder::address(const ptx::Operand &x) {
  if (x.kind != ptx::OperandKind::kAddress) unknown("an operand that is not an address");
  if (!x.items.empty()) unknown("an address with coordinates");
  if (x.reg >= 0) {
    if (x.width == 1) unknown("an address in a predicate");
    return {x.offset, access(static_cast<uint32_t>(x.reg), AccessKind::kRead), x.width};
  }
  if (x.name.empty()) return {x.offset, constants_.constant(8, ConstantKind::kValue, 0), 8};
  return {x.offset, symbol(x, 0, 8), 8};
}

void KernelDecoder::hold(const ptx::Operand &x) {
  for (const ptx::Operand &item : x.items) hold(item);
  if (x.reg >= 0) access(static_cast<uint32_t>(x.reg), AccessKind::kHold);
}

void KernelDecoder::release_held() {
  if (!is_first_pass_) return;
  flow_.statements[static_cast<size_t>(statement_ - body_.statements.data())].is_wait = true;
}

uint32_t KernelDecoder::list(const std::vector<RegisterSlot> &rows) {
  const auto begin = static_cast<uint32_t>(program_.lists.size());
  program_.lists.insert(program_.lists.end(), rows.begin(), rows.end());
  return begin;
}

/// Counts as a read and a write, because the direction is unknown here.
RegisterSlot KernelDecoder::carry() {
  own(kCarry, AccessKind::kRead);
  return own(kCarry, AccessKind::kWrite);
}

// ---- Branches

uint32_t KernelDecoder::target(uint64_t label) {
  const uint32_t statement = body_.labels[label];
  if (is_first_pass_) flow_.targets.push_back(statement);
  return statement;
}

uint32_t KernelDecoder::label(const ptx::Operand &x) {
  if (x.kind != ptx::OperandKind::kLabel) unknown("an operand that is not a label");
  return target(x.bits);
}

uint32_t KernelDecoder::branch_table(const ptx::Operand &x, uint32_t *size) {
  if (x.kind != ptx::OperandKind::kLabel || x.bits >= body_.branch_tables.size())
    unknown("an operand that is not a table of labels");
  const auto begin = static_cast<uint32_t>(program_.branch_targets.size());
  for (uint32_t label : body_.branch_tables[x.bits])
    program_.branch_targets.push_back(target(label));
  *size = static_cast<uint32_t>(program_.branch_targets.size()) - begin;
  return begin;
}

RegisterSlot Constants::constant(uint8_t width, ConstantKind kind, uint64_t value) {
  return constants_.try_emplace({value, kind, width}, 0).first->second;
}

RegisterSlot Constants::special(uint8_t width, std::string_view name) {
  for (const SpecialRow &s : specials_)
    if (s.width == width && s.name == name) return s.row;
  specials_.push_back({0, width, std::string(name)});
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
    for (SpecialRow &s : specials_) place_one(s.width, s.row);
  }
  return end;
}

std::vector<ConstantRow> Constants::constants() const {
  std::vector<ConstantRow> rows;
  for (const auto &[key, row] : constants_) rows.push_back({row, key.width, key.kind, key.value});
  return rows;
}

std::string_view Decoder::part(size_t i) const {
  return i < statement_->opcode.size() ? statement_->opcode[i] : std::string_view();
}

bool Decoder::has(std::string_view modifier) const {
  for (std::string_view part : statement_->opcode)
    if (part == modifier) return true;
  return false;
}

PredicateOperand Decoder::read_predicate(const ptx::Operand &x) {
  ptx::Operand plain = x;
  plain.is_negated = false;
  return {read(plain, 1), x.is_negated};
}

RegisterSlot Decoder::write_pair(const ptx::Operand &x, int width, bool *has_second,
                                 RegisterSlot *second) {
  ptx::Operand first = x;
  *has_second = x.second != nullptr;
  if (*has_second) *second = write(*std::exchange(first.second, nullptr), 1);
  return write(first, width);
}

void Decoder::unknown(const std::string &what) const {
  ptx::fail_at(for_messages_->file, statement_->line,
               what + " in kernel " + for_messages_->pretty_name, statement_->text);
}

}  // namespace softgpu
