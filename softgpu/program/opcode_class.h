// Classes of opcodes, for totals of counters (README.md, Counts).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace softgpu {

/// Parts of an opcode such as "ld.global.v4.u32".
using Opcode = std::vector<std::string_view>;

/// Returns "ld.global.v4.u32" for "@%p1 ld.global.v4.u32 {...}, [...];".
std::string_view opcode_text(std::string_view statement);
Opcode opcode_parts(std::string_view opcode_text);

constexpr std::array<std::string_view, 21> kOpcodeClasses = {
    "wgmma",   "mma",   "fp32",     "fp16",    "fp64",       "special", "integer",
    "convert", "move",  "control",  "barrier", "exchange",   "global",  "shared",
    "local",   "param", "constant", "generic", "async_copy", "tma",     "other"};
/// Returns the class of an instruction.
std::string_view class_of(const Opcode &);

/// Returns the memory path of an instruction, or "": load, store, atomic, cp_async, tma_load,
/// tma_store, tma_reduce, ldmatrix, stmatrix, wmma_load or wmma_store.
std::string_view path_of(const Opcode &);

/// Returns the floating-point operations per warp: 2 M N K, or a quarter of that for a warp of a
/// warpgroup.
uint64_t tensor_flops(const Opcode &);

/// Returns whether the instruction arrives at, or waits for, a barrier of the block or cluster.
bool is_barrier(const Opcode &);
/// Returns whether the instruction is mbarrier.try_wait or mbarrier.test_wait.
bool is_mbarrier_wait(const Opcode &);

}  // namespace softgpu
