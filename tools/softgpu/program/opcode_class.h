// What kind of instruction an opcode is, for totals of what was counted (README.md, Counts).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace softgpu {

/// The parts of "ld.global.v4.u32".
using Opcode = std::vector<std::string_view>;

/// "ld.global.v4.u32" of "@%p1 ld.global.v4.u32 {...}, [...];"
std::string_view opcode_text(std::string_view statement);
Opcode opcode_parts(std::string_view opcode_text);

constexpr std::array<std::string_view, 21> kOpcodeClasses = {
    "wgmma",   "mma",   "fp32",     "fp16",    "fp64",       "special", "integer",
    "convert", "move",  "control",  "barrier", "exchange",   "global",  "shared",
    "local",   "param", "constant", "generic", "async_copy", "tma",     "other"};
/// The one of them that an instruction is of.
std::string_view class_of(const Opcode &);

/// The way that an instruction takes to memory, "" if it takes none: load, store, atomic, cp_async, tma_load, tma_store,
/// tma_reduce, ldmatrix, stmatrix, wmma_load or wmma_store.
std::string_view path_of(const Opcode &);

/// What a warp asks of the tensor cores: 2 M N K operations; a warp of a warpgroup, a quarter of that.
uint64_t tensor_flops(const Opcode &);

/// Arrival of a warp at a barrier of its block or cluster, or a wait there.
bool is_barrier(const Opcode &);
/// mbarrier.try_wait and mbarrier.test_wait.
bool is_mbarrier_wait(const Opcode &);

}  // namespace softgpu
