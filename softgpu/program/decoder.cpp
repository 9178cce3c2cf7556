#include "softgpu/program/decoder.h"

#include <utility>

#include "softgpu/ptx/reader.h"

namespace softgpu {

std::string_view Decoder::part(size_t i) const {
  return i < statement_->opcode.size() ? statement_->opcode[i] : std::string_view();
}

bool Decoder::has(std::string_view modifier) const {
  for (std::string_view part : statement_->opcode)
    if (part == modifier) return true;
  return false;
}

RegisterSlot Decoder::read_predicate(const ptx::Operand &x, bool *is_negated) {
  ptx::Operand plain = x;
  *is_negated = std::exchange(plain.is_negated, false);
  return read(plain, 1);
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
