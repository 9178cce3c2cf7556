// One planned fault: the n-th request of the library to its environment fails.
//
// The program defines malloc and related functions, mmap and pthread_create, which intercept those
// of the library; its callbacks use the same counter.  Requests count only between arm() and
// disarm(), which surround a call of the library.
#pragma once

#include <cstdint>

namespace mptest::faults {

/// Kind of request.
enum class Source { kNone, kMemory, kAllocator, kComm, kThreads };

struct Fault {
  Source source = Source::kNone;
  int64_t at = 0;         ///< index of the request that fails, from 1
  bool persists = false;  ///< all later requests of the call fail too
};

/// Plans a fault and resets the counters.
void plan(const Fault &fault);
const Fault &planned_fault();
void arm();
/// Stops counting; cancels the planned fault if it has struck.
void disarm();

/// Pauses counting during its lifetime, for use in callbacks.
class Paused {
 public:
  Paused();
  ~Paused();
  Paused(const Paused &) = delete;
  Paused &operator=(const Paused &) = delete;
};

/// Returns whether this request fails; called once per request.
bool is_refused(Source source);
/// True if a request has failed since plan().
bool has_struck();
/// Number of requests of the planned kind since plan().
int64_t num_requests();

/// Blocks and mappings of the process, from all callers.
int64_t num_live();

}  // namespace mptest::faults
