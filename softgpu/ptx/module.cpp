// Parser for the declarations of a module; bodies are skipped.  PTX ISA, chapter Directives.
#include <array>

#include "softgpu/ptx/operand.h"
#include "softgpu/ptx/reader.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {
namespace {

/// Parses `.target sm_90a, debug`.
void read_target(Reader &reader, Module &module) {
  const std::string_view name = reader.word();
  if (!name.starts_with("sm_")) reader.fail("an unknown target " + std::string(name));
  for (char c : name.substr(3)) {
    if (c >= '0' && c <= '9') module.target = module.target * 10 + (c - '0');
    if (c == 'a') module.is_arch_specific = true;
  }
  reader.skip_line();
}

using Extents = std::array<uint32_t, 3>;

/// Parses `384, 1, 1`; omitted values are 1.
Extents read_extents(Reader &reader) {
  Extents extents{reader.number(), 1, 1};
  for (size_t i = 1; i < extents.size() && reader.take(','); i++) extents[i] = reader.number();
  return extents;
}
uint32_t volume(const Extents &extents) {
  return extents[0] * extents[1] * extents[2];
}

/// Parses the directives between the parameters and the body.
void read_performance_directives(Reader &reader, Entry &entry) {
  while (reader.peek() == '.') {
    const std::string_view word = reader.word();
    if (word == ".maxntid") {
      entry.max_threads = volume(read_extents(reader));
    } else if (word == ".reqntid") {
      entry.required_block = read_extents(reader);
      entry.max_threads = volume(entry.required_block);
    } else if (word == ".minnctapersm") {
      entry.min_blocks = reader.number();
    } else if (word == ".maxnreg") {
      entry.max_registers = reader.number();
    } else if (word == ".reqnctapercluster") {
      entry.required_cluster = read_extents(reader);
    } else if (word == ".maxclusterrank") {
      entry.max_cluster = reader.number();
    } else if (word == ".explicitcluster") {
      entry.explicit_cluster = true;
    } else if (word == ".maxnctapersm") {
      reader.number();
    } else if (word == ".pragma") {
      reader.until(';');
    } else if (word != ".noreturn") {
      reader.fail("an unknown directive " + std::string(word) + " of a kernel");
    }
  }
}

void read_entry(Reader &reader, Module &module) {
  Entry entry;
  entry.name = reader.word();
  if (reader.peek() == '(') entry.parameters = read_parameters(reader);
  read_performance_directives(reader, entry);
  if (reader.take(';')) return;  // declaration only
  if (reader.peek() != '{') reader.fail("expected the body of " + entry.name);
  entry.line = reader.line();
  entry.body = reader.block();
  module.entries[entry.name] = std::move(entry);
}

std::vector<std::string> names_of(const std::vector<Variable> &variables) {
  std::vector<std::string> names;
  for (const Variable &v : variables) names.push_back(v.name);
  return names;
}

void read_function(Reader &reader, Module &module) {
  Function function;
  if (reader.peek() == '(') function.results = names_of(read_parameters(reader));
  const std::string name(reader.word());
  if (reader.peek() == '(') function.parameters = names_of(read_parameters(reader));
  while (reader.peek() == '.') reader.word();  // such as .noreturn
  if (reader.take(';')) return;                // declaration only
  if (reader.peek() != '{') reader.fail("expected the body of " + name);
  function.line = reader.line();
  function.body = reader.block();
  module.functions[name] = std::move(function);
}

/// Parses `.shared .align 4 .b8 name[16];`.
void read_variables(Reader &reader, std::vector<Variable> &variables, bool is_extern) {
  Variable v = read_variable(reader);
  v.is_extern |= is_extern;
  variables.push_back(std::move(v));
  reader.expect(';');
}

/// Returns whether a directive ends with its line.
bool is_line(std::string_view directive) {
  return directive == ".version" || directive == ".address_size" || directive == ".file" ||
         directive == ".loc";
}

void read_directive(Reader &reader, Module &module) {
  bool is_extern = false;
  std::string_view word = reader.word();
  while (word == ".visible" || word == ".extern" || word == ".weak" || word == ".common") {
    is_extern |= word == ".extern";
    word = reader.word();
  }
  if (word == ".entry") {
    read_entry(reader, module);
  } else if (word == ".func") {
    read_function(reader, module);
  } else if (word == ".global" || word == ".const") {
    read_variables(reader, module.globals, is_extern);
  } else if (word == ".shared") {
    read_variables(reader, module.shared, is_extern);
  } else if (word == ".target") {
    read_target(reader, module);
  } else if (is_line(word)) {
    reader.skip_line();
  } else if (word == ".section") {
    reader.until('{');
    reader.until('}');
  } else if (word == ".pragma" || word == ".alias") {
    reader.until(';');
  } else {
    reader.fail("an unknown directive " + std::string(word));
  }
}

}  // namespace

Module parse_module(std::string file, std::shared_ptr<const std::string> text) {
  Module module;
  module.file = std::move(file);
  module.text = std::move(text);
  // The text may include a terminating 0.
  const std::string_view all = *module.text;
  Reader reader(module.file, all.substr(0, all.find('\0')), 1);
  for (; reader.peek() != '\0'; reader.take(';')) read_directive(reader, module);
  return module;
}

}  // namespace softgpu::ptx
