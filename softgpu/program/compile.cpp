#include <cxxabi.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "softgpu/options.h"
#include "softgpu/program/edit.h"
#include "softgpu/program/kernel_decoder.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

/// Source: CUDA C++ Programming Guide, technical specifications per compute capability.
constexpr uint64_t kMaxLocalBytes = 512 * 1024;

void erase_all(std::string &text, std::string_view part) {
  for (size_t at; (at = text.find(part)) != text.npos;) text.erase(at, part.size());
}

/// Returns the demangled name without common namespaces.
std::string pretty_name(const std::string &mangled) {
  int status = 0;
  char *demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = demangled != nullptr ? demangled : mangled;
  std::free(demangled);
  erase_all(name, "(anonymous namespace)::");
  erase_all(name, "mp::cuda::");
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

std::unique_ptr<Program> make_program(const ptx::Module &module, const ptx::Entry &entry) {
  auto program = std::make_unique<Program>();
  program->name = entry.name;
  program->pretty_name = pretty_name(entry.name);
  program->file = module.file;
  static_cast<ptx::LaunchBounds &>(*program) = entry;
  return program;
}

}  // namespace

std::unique_ptr<Program> compile(const ptx::Module &module, const ptx::Entry &entry,
                                 GlobalAddress global_address, void *context) {
  std::unique_ptr<Program> program = make_program(module, entry);
  const ptx::Body body =
      ptx::parse_body(module, entry, make_edit(options().edit, program->pretty_name));
  if (body.local_bytes > kMaxLocalBytes)
    throw ptx::Error(program->pretty_name + " has " + std::to_string(body.local_bytes) +
                     " bytes of local memory per thread, which exceeds " +
                     std::to_string(kMaxLocalBytes));
  Symbols symbols(module, entry, body, global_address, context, *program);
  KernelDecoder decoder(body, symbols, *program);
  decoder.place_rows(decoder.find_flow());
  decoder.decode();
  return program;
}

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

// ---- mutations

namespace {

std::atomic<bool> has_edited = false;

struct Edit {
  std::string what, by;  ///< replaced text and replacement; a dropped instruction has none
  bool drops = false;
  bool is_single = false;
  uint64_t number = 0;  ///< index of the instruction, if only one is edited
  std::string kernel;
};

[[noreturn]] void refuse(const std::string &text) {
  throw ptx::Error("SOFTGPU_EDIT=" + text +
                   " must be 'drop TEXT' or 'swap A=>B', optionally with ' @N' and ' in KERNEL'");
}

/// Removes ` in KERNEL` and ` @N` from the end.
void take_places(std::string &text, Edit &edit) {
  if (const size_t in = text.rfind(" in "); in != text.npos) {
    edit.kernel = text.substr(in + 4);
    text.resize(in);
  }
  const size_t at = text.rfind(" @");
  if (at == text.npos) return;
  const char *begin = text.data() + at + 2, *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, edit.number);
  if (error != std::errc() || stop != end) return;  // a guard, not an index
  edit.is_single = true;
  text.resize(at);
}

Edit parse(const std::string &text) {
  Edit edit;
  std::string rest = text;
  take_places(rest, edit);
  edit.drops = rest.starts_with("drop ");
  if (!edit.drops && !rest.starts_with("swap ")) refuse(text);
  edit.what = rest.substr(5);
  if (!edit.drops) {
    const size_t arrow = edit.what.find("=>");
    if (arrow == edit.what.npos) refuse(text);
    edit.by = edit.what.substr(arrow + 2);
    edit.what.resize(arrow);
  }
  if (edit.what.empty()) refuse(text);
  return edit;
}

/// Applies an edit to one kernel.
class Editor {
 public:
  Editor(Edit edit, std::string kernel) : edit_(std::move(edit)), kernel_(std::move(kernel)) {}

  std::optional<std::string> operator()(const std::string &statement) {
    const size_t at = statement.find(edit_.what);
    if (at == statement.npos) return std::nullopt;
    const uint64_t number = num_found_++;
    if (edit_.is_single && number != edit_.number) return std::nullopt;
    std::string changed;
    if (!edit_.drops) changed = std::string(statement).replace(at, edit_.what.size(), edit_.by);
    has_edited = true;
    if (num_changed_++ == 0) print(statement, changed);
    return changed;
  }

 private:
  void print(const std::string &statement, const std::string &changed) const {
    std::fprintf(stderr, "softgpu: edit: %s: %s %s%s\n", kernel_.c_str(),
                 edit_.drops ? "dropped" : "swapped", statement.c_str(),
                 edit_.drops ? "" : ("; now " + changed).c_str());
  }

  Edit edit_;
  std::string kernel_;
  uint64_t num_found_ = 0, num_changed_ = 0;
};

}  // namespace

bool was_edited() {
  return has_edited;
}

ptx::Rewrite make_edit(const std::string &text, const std::string &kernel) {
  if (text.empty()) return nullptr;
  Edit edit = parse(text);
  if (kernel.find(edit.kernel) == kernel.npos) return nullptr;
  return Editor(std::move(edit), kernel);
}

}  // namespace softgpu
