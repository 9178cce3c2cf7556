// Faults and violations: messages and their locations.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "softgpu/program/instruction.h"

namespace softgpu {

/// Class of the error that the host program receives; kAccess includes all faults without a class.
enum class FaultKind : uint8_t { kAccess, kMisaligned, kTrap, kEndless };

/// Error that stops the device: the host program receives a sticky error, as after an illegal
/// access on hardware.
struct Fault : std::runtime_error {
  explicit Fault(const std::string &text, FaultKind the_kind = FaultKind::kAccess)
      : std::runtime_error(text), kind(the_kind) {}
  FaultKind kind;
};

/// printf to a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *text, ...);

/// Returns "kernel K, block 3, thread 17, FILE.ptx:120: the statement".
/// @param lane  -1 for the complete warp
std::string location(Warp &, const Instruction &, int lane);

/// Throws a Fault with a message and the location.
[[noreturn, gnu::format(printf, 4, 5)]] void fault(Warp &, const Instruction &, int lane,
                                                   const char *text, ...);
[[noreturn, gnu::format(printf, 5, 6)]] void fault(FaultKind, Warp &, const Instruction &, int lane,
                                                   const char *text, ...);
/// Throws a Fault without a location.
[[noreturn]] void fault(const std::string &text, FaultKind = FaultKind::kAccess);

/// Counts and prints a violation: undefined behavior that hardware does not report and after which
/// the device can continue.  The process then exits with code 99.
[[gnu::format(printf, 4, 5)]] void violation(Warp &, const Instruction &, int lane,
                                             const char *text, ...);
/// Reports a violation without a location.
void violation(const std::string &text);

/// Passes the messages of all violations to a function instead of printing the first ones per
/// location; null restores printing.  For tests.
using ViolationListener = void (*)(void *context, const std::string &message);
void listen_to_violations(ViolationListener, void *context);

/// Returns the number of violations and faults.
uint64_t num_violations();

}  // namespace softgpu
