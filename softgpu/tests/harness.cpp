#include "softgpu/tests/harness.h"

#include <cstdlib>
#include <stdexcept>

#include "softgpu/machine/faults.h"
#include "softgpu/ptx/syntax.h"
#include "tests/support/catch.h"
#include "tests/support/tally.h"

namespace softgpu::test {
namespace {

/// Collects violations during its lifetime.
class Listener {
 public:
  Listener() { listen_to_violations(&Listener::add, this); }
  ~Listener() { listen_to_violations(nullptr, nullptr); }
  std::vector<std::string> messages;

 private:
  static void add(void *listener, const std::string &message) {
    static_cast<Listener *>(listener)->messages.push_back(message);
  }
};

/// Allocates the variables of a module for the lifetime of the process.
uint64_t address_of_global(void *context, const std::string &name) {
  const auto &module = *static_cast<const ptx::Module *>(context);
  for (const ptx::Variable &variable : module.globals) {
    if (variable.name != name) continue;
    auto *bytes = static_cast<std::byte *>(
        // Owned by its allocation record.
        std::aligned_alloc(256, (variable.size + 255) / 256 * 256));
    std::memset(bytes, 0, variable.size);
    std::memcpy(bytes, variable.initial.data(), variable.initial.size());
    const auto address = reinterpret_cast<uint64_t>(bytes);
    add_allocation({address, variable.size, MemoryKind::kVariable, 0, name});
    return address;
  }
  throw std::logic_error("the module has no variable " + name);
}

/// Stores the arguments as kernel parameters.
void set_parameters(Grid &grid, const std::vector<std::string> &arguments) {
  const Program &program = *grid.program;
  if (arguments.size() != program.parameters.size())
    throw std::logic_error("the kernel has another number of parameters");
  grid.allocate_parameters(program.parameter_bytes);
  for (size_t i = 0; i < arguments.size(); i++) {
    const Program::Parameter &parameter = program.parameters[i];
    if (arguments[i].size() != parameter.size)
      throw std::logic_error("argument " + std::to_string(i) +
                             " has another size than the parameter");
    std::memcpy(grid.parameters + parameter.offset, arguments[i].data(), arguments[i].size());
  }
}

}  // namespace

std::ostream &operator<<(std::ostream &stream, const Outcome &outcome) {
  if (outcome.is_clean()) return stream << "clean";
  if (!outcome.fault.empty()) stream << "fault: " << outcome.fault << "\n";
  for (const std::string &violation : outcome.violations)
    stream << "violation: " << violation << "\n";
  return stream;
}

Kernel::Kernel(std::string module) {
  const ptx::Module parsed =
      ptx::parse_module("test.ptx", std::make_shared<const std::string>(std::move(module)));
  if (parsed.entries.empty()) throw std::logic_error("the module has no kernel");
  program_ = compile(parsed, parsed.entries.begin()->second, address_of_global,
                     const_cast<ptx::Module *>(&parsed));
}

size_t Kernel::statement(const std::string &text) const {
  for (size_t i = 0; i < program_->source.size(); i++)
    if (program_->source[i].text.find(text) != std::string::npos) return i;
  throw std::logic_error("no statement has " + text);
}

Outcome Kernel::launch(const Shape &shape, const std::vector<std::string> &arguments) const {
  static uint64_t num_launches = 0;
  Grid grid;
  grid.program = program_.get();
  grid.num_blocks = shape.blocks;
  grid.num_threads = shape.threads;
  grid.cluster = shape.cluster;
  grid.dynamic_smem = shape.dynamic_smem;
  grid.id = shape.id != 0 ? shape.id : ++num_launches;
  set_parameters(grid, arguments);

  Listener listener;
  Outcome outcome;
  try {
    run_grid(grid);
  } catch (const Fault &fault) {
    outcome.fault = fault.what();
  }
  outcome.violations = listener.messages;
  return outcome;
}

std::vector<uint32_t> words_of(const Kernel &kernel, size_t count, const Shape &shape) {
  Buffer<uint32_t> words(count, kNotStored);
  const Outcome outcome = kernel(shape, words);
  INFO(outcome);
  REQUIRE(outcome.is_clean());
  return words.values();
}

std::string module_text(const std::string &parameters, const std::string &body,
                        const std::string &module, const std::string &target) {
  return ".version 8.3\n.target " + target + "\n.address_size 64\n" + module +
         "\n.visible .entry test(" + parameters + ")\n{\n" + body + "\n}\n";
}

std::string body_text(size_t num_buffers, const std::string &body) {
  std::string parameters,
      begin =
          ".reg .pred %q, %g; .reg .b32 %t, %i, %n, %r, %x, %y; .reg .b64 %T, %a, %o;\n"
          "mov.u32 %t, %tid.x;\ncvt.u64.u32 %T, %t;\n";
  for (size_t i = 0; i < num_buffers; i++) {
    const std::string n = std::to_string(i);
    parameters += (i ? ", " : "") + (".param .u64 p" + n);
    begin += ".reg .b64 %p" + n + ";\nld.param.u64 %p" + n + ", [p" + n + "];\n";
    begin += "cvta.to.global.u64 %p" + n + ", %p" + n + ";\n";
  }
  return module_text(parameters, begin + body);
}

}  // namespace softgpu::test

int main(int argc, char **argv) {
  return mptest::run_tests(argc, argv);
}
