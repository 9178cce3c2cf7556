// What is wrong with a program, and where.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tools/softgpu/program/instruction.h"

namespace softgpu {

/// What the host program is told of a fault; kAccess is everything that has no code of its own here.
enum class FaultKind : uint8_t { kAccess, kMisaligned, kTrap, kEndless };

/// Stops the device: the host program finds a sticky error, as after an illegal access on hardware.
struct Fault : std::runtime_error {
  explicit Fault(const std::string &text, FaultKind the_kind = FaultKind::kAccess)
      : std::runtime_error(text), kind(the_kind) {}
  FaultKind kind;
};

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *text, ...);

/// "kernel K, block 3, thread 17, FILE.ptx:120: the statement"; lane < 0: of the whole warp.
std::string location(Warp &, const Instruction &, int lane);

/// Throws a Fault with text and location.
[[noreturn, gnu::format(printf, 4, 5)]] void fault(Warp &, const Instruction &, int lane,
                                                   const char *text, ...);
[[noreturn, gnu::format(printf, 5, 6)]] void fault(FaultKind, Warp &, const Instruction &, int lane,
                                                   const char *text, ...);
/// The same where there is no instruction.
[[noreturn]] void fault(const std::string &text, FaultKind = FaultKind::kAccess);

/// Counts and prints something that is wrong though the device can go on: undefined behaviour that
/// hardware does not report.  The process ends with code 99.
[[gnu::format(printf, 4, 5)]] void violation(Warp &, const Instruction &, int lane,
                                             const char *text, ...);
/// The same where there is no instruction.
void violation(const std::string &text);

/// Hands the messages of all violations to a function, instead of printing the first at each place;
/// null: prints again.  For tests.
using ViolationListener = void (*)(void *context, const std::string &message);
void listen_to_violations(ViolationListener, void *context);

/// How many there were so far, faults included.
uint64_t num_violations();

}  // namespace softgpu
