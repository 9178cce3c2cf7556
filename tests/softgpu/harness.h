// Runs a kernel that is given as PTX text, and says what became of it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/softgpu/machine/block.h"
#include "tools/softgpu/machine/global_memory.h"
#include "tools/softgpu/options.h"
#include "tools/softgpu/program/program.h"

namespace softgpu::test {

/// Memory of the device: a vector that kernels may touch for as long as it lives.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::vector<T> values) : values_(std::move(values)) { add(); }
  explicit Buffer(size_t size, T fill = T()) : values_(size, fill) { add(); }
  ~Buffer() { remove_allocation(address()); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  uint64_t address() const { return reinterpret_cast<uint64_t>(values_.data()); }
  size_t size() const { return values_.size(); }
  T &operator[](size_t i) { return values_[i]; }
  const T &operator[](size_t i) const { return values_[i]; }
  std::vector<T> &values() { return values_; }

 private:
  void add() {
    add_allocation(
        {address(), values_.size() * sizeof(T), MemoryKind::kDevice, 0, "a test buffer"});
  }
  std::vector<T> values_;
};

struct Shape {
  Dim3 blocks{1, 1, 1}, threads{32, 1, 1}, cluster{1, 1, 1};
  uint32_t dynamic_smem = 0;
  uint64_t id = 0;  ///< of the launch, with which a seed is mixed; 0: the next number
};

/// What became of a launch.
struct Outcome {
  std::string fault;                    ///< the message, "" if there was none
  std::vector<std::string> violations;  ///< their messages
  bool is_clean() const { return fault.empty() && violations.empty(); }
};
/// For messages of Catch.
std::ostream &operator<<(std::ostream &, const Outcome &);

/// A kernel that can be launched.
class Kernel {
 public:
  /// The first kernel of a module that is given as text; throws ptx::Error.
  explicit Kernel(std::string module);

  const Program &program() const { return *program_; }

  /// Arguments in the order of the parameters: numbers of the parameter's size, structures, and
  /// buffers, of which the address is passed.
  template <class... Arguments>
  Outcome operator()(const Shape &shape, const Arguments &...arguments) const {
    std::vector<std::string> bytes{bytes_of(arguments)...};
    return launch(shape, bytes);
  }

 private:
  template <class T>
  static std::string bytes_of(const Buffer<T> &buffer) {
    return bytes_of(buffer.address());
  }
  template <class T>
  static std::string bytes_of(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {reinterpret_cast<const char *>(&value), sizeof(T)};
  }
  Outcome launch(const Shape &, const std::vector<std::string> &arguments) const;

  std::unique_ptr<Program> program_;
};

/// The text of a module with one kernel `test`.  `parameters`: ".param .u64 out, .param .u32 n";
/// the body without braces; `module`: what stands before the kernel, such as variables of the
/// module.
std::string module_text(const std::string &parameters, const std::string &body,
                        const std::string &module = "", const std::string &target = "sm_90a");

/// The shortest way: a kernel whose parameters are 64-bit addresses named p0, p1, ... as many as
/// there are buffers.  The body finds them in the registers %p0, %p1, ... as global addresses, and
/// %tid.x in %t (its 32 bits) and %T (64 bits).  Other registers are declared by the body.
std::string body_text(size_t num_buffers, const std::string &body);

/// Changes options() while it lives: WithOptions with([](Options &o) { o.seed = 7; });
class WithOptions {
 public:
  template <class F>
  explicit WithOptions(F &&change) : before_(options()) {
    change(options_for_tests());
  }
  ~WithOptions() { options_for_tests() = before_; }
  WithOptions(const WithOptions &) = delete;
  WithOptions &operator=(const WithOptions &) = delete;

 private:
  Options before_;
};

}  // namespace softgpu::test
