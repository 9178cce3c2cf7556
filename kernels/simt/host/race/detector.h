// Data races in shared memory, by happens-before.
//
// An agent is a thread of the block, or the asynchronous copies of one.  An access is stamped with
// its agent and the agent's clock; a later access that conflicts with it is ordered after it if
// the thread knows that clock by then.  Threads learn clocks where they synchronise: block_sync
// joins the block, warp_sync the warp, copy_async_wait tells a thread of its own copies.  Shuffles
// order no memory, nor do the WMMA functions, whose accesses count as those of the lane that holds
// the element on this machine.  Not looked at: gmem, and the bytes within one 2-byte element.
//
// Only joins spread knowledge, and they take all living lanes of a warp, so there is one vector
// clock per warp; a thread knows more than it only about itself and its copies.
//
// Source: Flanagan & Freund, FastTrack, PLDI 2009; their epochs, with every concurrent reader kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/host/engine.h"

namespace mp::host::engine::race {

enum class Access { read, write };

class Detector {
 public:
  void begin_block(const Block &);
  void join(const Warp *warps, size_t num_warps);
  void access(const void *address, size_t bytes, Access, const void *code);
  void copy_started(const void *smem, size_t bytes, const void *code);
  void copies_landed(int64_t groups);

  bool covers(const void *address) const { return offset_of(address) < arena_bytes_; }

 private:
  struct Event {
    uint32_t agent;
    uint32_t clock;  ///< 0: none
    const void *code;
  };
  struct Reader {
    Event event;
    uint32_t next;
  };
  struct Granule {
    Event write;
    uint32_t readers;  ///< since that write; index into readers_, 0 ends the list
  };

  uint32_t copies_of(uint32_t thread) const { return num_threads_ + thread; }
  uint32_t *known_to(uint32_t warp) { return &known_[warp * num_agents_]; }
  bool knows(const Thread &, const Event &) const;
  void check_range(const void *address, size_t bytes, const Event &now, Access);
  void check(size_t granule, const Event &now, Access);
  void add_reader(Granule &, const Event &);
  void forget_readers(Granule &);
  size_t offset_of(const void *address) const {
    return static_cast<size_t>(static_cast<const std::byte *>(address) - arena_);
  }
  std::string actor(const Event &) const;
  [[noreturn]] void report(size_t granule, const Event &now, Access what, const Event &before,
                           Access what_before) const;

  const std::byte *arena_ = nullptr;
  size_t arena_bytes_ = 0;
  uint32_t num_threads_ = 0;
  uint32_t num_agents_ = 0;
  std::vector<uint32_t> clock_;   ///< of each thread
  std::vector<uint32_t> landed_;  ///< copy groups that each thread knows to have landed
  std::vector<uint32_t> known_;   ///< [warp][agent]
  std::vector<uint32_t> joined_;
  std::vector<Granule> granules_;
  size_t granules_used_ = 0;
  std::vector<Reader> readers_;
  uint32_t free_readers_ = 0;
};

/// Of the OS thread's engine; NULL before its first block.
extern constinit thread_local Detector *detector;

}  // namespace mp::host::engine::race
