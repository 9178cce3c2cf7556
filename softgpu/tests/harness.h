// Runs a kernel given as PTX text and returns the outcome.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu::test {

/// Device memory: a vector that kernels may access during its lifetime.
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

constexpr uint64_t kDeviceAlignment = 256;

/// Buffer with the alignment of cudaMalloc, whose address is passed to a kernel as a number:
/// address().
template <class T>
class AlignedBuffer {
 public:
  explicit AlignedBuffer(const std::vector<T> &values)
      : buffer_(values.size() + kDeviceAlignment / sizeof(T)), size_(values.size()) {
    const uint64_t begin = buffer_.address();
    first_ = static_cast<size_t>((kDeviceAlignment - begin % kDeviceAlignment) % kDeviceAlignment /
                                 sizeof(T));
    for (size_t i = 0; i < values.size(); i++) (*this)[i] = values[i];
  }
  explicit AlignedBuffer(size_t size, T fill = T()) : AlignedBuffer(std::vector<T>(size, fill)) {}

  uint64_t address() const { return buffer_.address() + first_ * sizeof(T); }
  size_t size() const { return size_; }
  T &operator[](size_t i) { return buffer_[first_ + i]; }
  const T &operator[](size_t i) const { return buffer_[first_ + i]; }

 private:
  Buffer<T> buffer_;
  size_t size_, first_ = 0;
};

struct Shape {
  Dim3 blocks{1, 1, 1}, threads{32, 1, 1}, cluster{1, 1, 1};
  uint32_t dynamic_smem = 0;
  uint64_t id = 0;  ///< launch number, which is mixed with the seed; 0: next number
};

/// Result of a launch.
struct Outcome {
  std::string fault;                    ///< message, or ""
  std::vector<std::string> violations;  ///< messages
  bool is_clean() const { return fault.empty() && violations.empty(); }
};
/// Prints an outcome in Catch2 messages.
std::ostream &operator<<(std::ostream &, const Outcome &);

#define CHECK_CONTAINS(text, part) CHECK_THAT(text, Catch::Matchers::ContainsSubstring(part))

/// Returns the first violation, or "".
inline std::string first_violation(const Outcome &outcome) {
  return outcome.violations.empty() ? "" : outcome.violations[0];
}
/// Returns the violation if there is exactly one, otherwise "".
inline std::string only_violation(const Outcome &outcome) {
  return outcome.violations.size() == 1 ? outcome.violations[0] : "";
}

/// An executable kernel.
class Kernel {
 public:
  /// Compiles the first kernel of a module.  Throws ptx::Error.
  explicit Kernel(std::string module);

  const Program &program() const { return *program_; }
  /// Returns the index of the first statement that contains a text.
  size_t statement(const std::string &text) const;

  /// Launches with arguments in the order of the parameters: numbers of the parameter's size,
  /// structures, and buffers, which are passed by address.
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

constexpr uint32_t kNotStored = 0xABADCAFE;
/// Launches a kernel with one buffer of words, and returns the words: kNotStored if the kernel does
/// not store them.  Fails unless the outcome is clean.
std::vector<uint32_t> words_of(const Kernel &, size_t count, const Shape & = {});

/// Returns a module with one kernel `test`.
/// @param parameters  such as ".param .u64 out, .param .u32 n"
/// @param body        text without braces
/// @param module      text before the kernel, such as variables of the module
std::string module_text(const std::string &parameters, const std::string &body,
                        const std::string &module = "", const std::string &target = "sm_90a");

/// Returns a module whose kernel has one 64-bit address parameter per buffer.  The body finds them
/// in %p0, %p1, ... as global addresses, and %tid.x in %t (32 bits) and %T (64 bits).  It may use
/// the predicates %q and %g, the 32-bit registers %i, %n, %r, %x and %y, and %a and %o of 64 bits.
std::string body_text(size_t num_buffers, const std::string &body);

/// Returns "{%a0, %a1, %a2}".
inline std::string registers(const std::string &name, int count) {
  std::string text;
  for (int i = 0; i < count; i++) text += (i ? ", %" : "{%") + name + std::to_string(i);
  return text + "}";
}

/// Stores 32-bit registers NAME0, NAME1, ... to rows of a buffer, with one element per thread.
inline std::string store_registers(const std::string &name, int count, int buffer,
                                   int num_threads = 32) {
  const std::string address = "%to_" + name;
  std::string text = ".reg .b64 " + address + ";\nmad.wide.u32 " + address + ", %t, 4, %p" +
                     std::to_string(buffer) + ";\n";
  for (int i = 0; i < count; i++)
    text += "st.global.b32 [" + address + "+" + std::to_string(4 * num_threads * i) + "], %" +
            name + std::to_string(i) + ";\n";
  return text;
}

/// Changes options() during its lifetime: WithOptions with([](Options &o) { o.seed = 7; });
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
