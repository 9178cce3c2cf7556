#include <cxxabi.h>

#include <cstdlib>

#include "softgpu/options.h"
#include "softgpu/program/edit.h"
#include "softgpu/program/kernel_decoder.h"
#include "softgpu/program/program.h"
#include "softgpu/program/symbols.h"

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

}  // namespace softgpu
