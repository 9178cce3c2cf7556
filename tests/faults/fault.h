// One planned fault: what the library asks its environment for is refused at the n-th time.
//
// The program defines malloc and its kin, mmap and pthread_create itself, so that those of the library
// come here; the callbacks that it hands to the library ask here as well.  Requests count only between
// arm() and disarm(), which stand around a call of the library.
#pragma once

#include <cstdint>

namespace mptest::faults {

/// Whom the library asks.
enum class Source { kNone, kMemory, kAllocator, kComm, kThreads };

struct Fault {
  Source source = Source::kNone;
  int64_t at = 0;         ///< the number of the request that is refused, from 1
  bool persists = false;  ///< so are all that follow, until the call has returned
};

/// Counts from the beginning.
void plan(const Fault &fault);
const Fault &planned_fault();
void arm();
/// From here on nothing is refused if something has been.
void disarm();

/// While one lives, nothing is counted: for callbacks.
class Paused {
 public:
  Paused();
  ~Paused();
  Paused(const Paused &) = delete;
  Paused &operator=(const Paused &) = delete;
};

/// Whether this request is refused; to be asked once for each.
bool is_refused(Source source);
/// Whether any has been since plan().
bool has_struck();
/// Of the planned source, since plan().
int64_t num_requests();

/// Blocks and mappings that the process holds, whoever made them.
int64_t num_live();

}  // namespace mptest::faults
