#include "softgpu/program/symbols.h"

#include <algorithm>

namespace softgpu {
namespace {

uint32_t align_up(uint64_t offset, uint32_t alignment) {
  return static_cast<uint32_t>(ptx::align_up(offset, alignment));
}

}  // namespace

Symbols::Symbols(const ptx::Module &module, const ptx::Entry &entry, const ptx::Body &body,
                 GlobalAddress global_address, void *context, Program &program)
    : module_(module), global_address_(global_address), context_(context), program_(program) {
  add_parameters(entry);
  for (const ptx::Variable &v : body.shared) symbols_[v.name] = {ConstantKind::kShared, v.offset};
  for (const ptx::Variable &v : body.local) symbols_[v.name] = {ConstantKind::kLocal, v.offset};
  program_.static_smem = static_cast<uint32_t>(body.shared_bytes);
  program_.local_bytes = align_up(body.local_bytes, 16);
}

void Symbols::add_parameters(const ptx::Entry &entry) {
  uint32_t end = 0;
  for (const ptx::Variable &v : entry.parameters) {
    const uint32_t offset = align_up(end, v.alignment), size = static_cast<uint32_t>(v.size);
    program_.parameters.push_back({offset, size});
    symbols_[v.name] = {ConstantKind::kParameter, offset};
    end = offset + size;
  }
  program_.parameter_bytes = end;
}

std::optional<Symbol> Symbols::find(std::string_view name) {
  if (const auto known = symbols_.find(name); known != symbols_.end()) return known->second;
  for (const ptx::Variable &v : module_.shared)
    if (v.name == name) return symbols_[v.name] = add_shared(v);
  for (const ptx::Variable &v : module_.globals)
    if (v.name == name)
      return symbols_[v.name] = {ConstantKind::kValue, global_address_(context_, v.name)};
  return std::nullopt;
}

Symbol Symbols::add_shared(const ptx::Variable &v) {
  if (v.is_extern) {
    program_.has_dynamic_smem = true;
    dynamic_alignment_ = std::max(dynamic_alignment_, v.alignment);
    return {ConstantKind::kShared, kDynamic};
  }
  const uint32_t offset = align_up(program_.static_smem, v.alignment);
  program_.static_smem = offset + static_cast<uint32_t>(v.size);
  return {ConstantKind::kShared, offset};
}

bool Symbols::is_local(std::string_view name) const {
  const auto known = symbols_.find(name);
  return known != symbols_.end() && known->second.kind == ConstantKind::kLocal;
}

void Symbols::finish() {
  program_.dynamic_smem_offset = align_up(program_.static_smem, dynamic_alignment_);
}

uint64_t Symbols::shared_value(uint64_t value) const {
  return value < kDynamic / 2 ? value : value - kDynamic + program_.dynamic_smem_offset;
}

}  // namespace softgpu
