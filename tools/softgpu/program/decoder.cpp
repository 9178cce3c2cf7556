#include "tools/softgpu/program/decoder.h"

#include "tools/softgpu/ptx/reader.h"

namespace softgpu {

std::string_view Decoder::part(size_t i) const {
  return i < statement_->opcode.size() ? statement_->opcode[i] : std::string_view();
}

bool Decoder::has(std::string_view modifier) const {
  for (std::string_view part : statement_->opcode)
    if (part == modifier) return true;
  return false;
}

void Decoder::unknown(const std::string &what) const {
  ptx::fail_at(for_messages_->file, statement_->line,
               what + " in kernel " + for_messages_->pretty_name, statement_->text);
}

}  // namespace softgpu
