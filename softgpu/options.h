// Configuration of the device, from environment variables (README.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace softgpu {

/// Returns the value of a variable, or "" if it is not set.
std::string_view text_of(const char *name);
/// Ends the process: the value, or a part of it, is not `what`.
[[noreturn]] void refuse(const char *name, std::string_view value, const std::string &what);
/// Parses a decimal number; nullopt if the text is not a number of at most 64 bits.
std::optional<uint64_t> parse_number(std::string_view text);
/// Returns the number in a variable, or `otherwise` if it is not set.
uint64_t number_of(const char *name, uint64_t otherwise, uint64_t least, uint64_t largest);
/// Overwrites `*value` if the variable is set.
template <class T>
void read_number(const char *name, uint64_t least, uint64_t largest, T *value) {
  *value = static_cast<T>(number_of(name, static_cast<uint64_t>(*value), least, largest));
}
/// Returns a variable that must be 0 or 1; 0 if it is not set.
bool read_switch(const char *name);

/// A GPU of an architecture.  Sources: CUDA C++ Programming Guide, "Compute Capabilities"; data
/// sheets.
struct Architecture {
  int arch, num_sms;
  int threads_per_sm, blocks_per_sm;
  int smem_per_sm, reserved_smem;  ///< bytes; the reserved part is per block
  const char *name;
  int l2_bytes, clock_khz, memory_clock_khz, memory_bus_bits;
};
constexpr int kRegistersPerSm = 65536;

/// Time at which asynchronous work (cp.async, TMA, wgmma) takes effect.
enum class Completion { kLate, kRandom, kEarly };

struct Options {
  int arch = 90;                     ///< SOFTGPU_ARCH; 90 includes the features of sm_90a
  int num_sms = 132;                 ///< SOFTGPU_SMS; default: those of a GPU of the architecture
  int num_devices = 1;               ///< SOFTGPU_DEVICES
  uint64_t smem_per_block = 232448;  ///< maximum dynamic shared memory of the architecture
  /// SOFTGPU_SEED: 0 runs blocks and warps in order, other values in a random order.
  uint64_t seed = 0;
  /// SOFTGPU_COMPLETION=late|random|early; random with a seed.
  Completion completion = Completion::kLate;
  bool diverges = false;  ///< SOFTGPU_DIVERGE=1: any group of a diverged warp may run first
  bool lags = false;      ///< SOFTGPU_LAG=1: many warps pause for long while others run far ahead
  /// SOFTGPU_QUANTUM: instructions per turn of a warp.  0: 200, or random with a seed.
  int quantum = 0;
  int num_threads = 0;  ///< SOFTGPU_THREADS; 0: one per processor, or one with a seed
  /// SOFTGPU_RESIDENT: clusters that a thread interleaves.  0: 2, or 4 with a seed.
  int num_resident = 0;
  uint64_t max_instructions = 0;  ///< SOFTGPU_LIMIT: warp-instructions per launch; 0: no limit
  bool counts_memory = false;     ///< SOFTGPU_COUNT=file or 1: also counts sectors and wavefronts
  bool skips_products = false;    ///< SOFTGPU_SKIP_PRODUCTS=1: matrix instructions compute nothing
  bool checks_initialised = false;  ///< SOFTGPU_INITCHECK=1: reports reads of uninitialized memory
  bool checks_races = false;        ///< SOFTGPU_RACECHECK=1: reports races
  /// SOFTGPU_FENCECHECK=1: reports missing fences after mbarrier.init that hardware tolerates.
  bool checks_fences = false;
  bool traces = false;  ///< SOFTGPU_TRACE=1: prints launches and tensor maps to stderr
  bool aborts = false;  ///< SOFTGPU_ABORT=1: calls abort() at the first fault, for a debugger
  std::string edit;     ///< SOFTGPU_EDIT: see program/edit.h

  bool is_random() const { return seed != 0; }
};

/// Returns the GPU of the architecture in options().
const Architecture &architecture();

/// Returns the options, which may be modified while no grid runs.  The first call reads the
/// environment; an invalid value ends the process with an error message.
Options &options_for_tests();

extern std::atomic<const Options *> options_when_read;  ///< null until the options are read

/// Returns the options.  Fast, because every instruction may call it.
inline const Options &options() {
  const Options *known = options_when_read.load(std::memory_order_acquire);
  return known ? *known : options_for_tests();
}

}  // namespace softgpu
