// Data races in shared memory, by happens-before.
//
// Accesses that conflict must be ordered by a synchronisation: block_sync joins the block,
// warp_sync the warp, copy_async_wait tells a thread of its own copies.  Shuffles order no memory,
// nor do the WMMA functions, whose accesses count as those of the lane that holds the element on
// this machine.  Not looked at: gmem, and the bytes within one 2-byte element.
//
// An agent is a warp, or the asynchronous copies of one thread.  Each has a clock, which stamps its
// accesses; each warp has a vector of the clocks that it knows.  That is exact, because every join
// takes whole warps (lanes that have returned count as arrived): between two joins the lanes of a
// warp differ only in knowing their own accesses and copies.
//
// Source: Flanagan & Freund, FastTrack, PLDI 2009; their epochs, with every concurrent reader kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
    uint32_t lanes;  ///< of the warp; none for a copy
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

  uint32_t copies_of(uint32_t thread) const { return num_warps_ + thread; }
  uint32_t *known_to(uint32_t warp) { return &known_[warp * num_agents_]; }
  bool is_ordered(const Event &before) const;
  void check_range(const void *address, size_t bytes, const Event &now, Access);
  void check(size_t granule, const Event &now, Access);
  void add_reader(Granule &, const Event &);
  void forget_readers(Granule &);
  size_t offset_of(const void *address) const {
    return static_cast<size_t>(static_cast<const std::byte *>(address) - arena_);
  }
  std::string actor(const Event &) const;
  std::string describe(size_t granule, const Event &now, Access what, const Event &before,
                       Access what_before) const;
  [[noreturn]] void report(size_t granule, const Event &now, Access what, const Event &before,
                           Access what_before) const;

  const std::byte *arena_ = nullptr;
  size_t arena_bytes_ = 0;
  uint32_t num_warps_ = 0;
  uint32_t num_agents_ = 0;
  std::vector<uint32_t> clock_;   ///< of each warp
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
