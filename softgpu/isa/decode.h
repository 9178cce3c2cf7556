// Decoders for the chapters of the PTX ISA.
#pragma once

#include "softgpu/isa/form.h"
#include "softgpu/program/decoder.h"

namespace softgpu {

// Arithmetic, by the type of the statement.  Each returns false for other opcodes.
bool decode_integer(OpcodeCursor &);             // integer.cpp
bool decode_bits(OpcodeCursor &);                // bits.cpp
void decode_extended_precision(OpcodeCursor &);  // .cc, addc, subc, madc
bool decode_packed_integer(OpcodeCursor &);      // u16x2, s16x2
bool decode_float(OpcodeCursor &);               // float.cpp: f32, f64
bool decode_half(OpcodeCursor &);                // f16, bf16, f16x2, bf16x2
bool decode_predicate(OpcodeCursor &);           // compare.cpp: and, or, xor, not, mov of .pred

void decode_set(OpcodeCursor &);  // compare.cpp
void decode_setp(OpcodeCursor &);
void decode_selp(OpcodeCursor &);
void decode_cvt(OpcodeCursor &);  // convert.cpp
void decode_mov(OpcodeCursor &);  // move.cpp
void decode_cvta(OpcodeCursor &);
void decode_isspacep(OpcodeCursor &);

// Memory.
void decode_access(OpcodeCursor &);      // load_store.cpp: ld, st
void decode_atomic(OpcodeCursor &);      // atomic.cpp: atom, red
void decode_async_copy(OpcodeCursor &);  // async_copy.cpp: cp.async without the bulk variants

// Control.
void decode_branch(Decoder &, Instruction &);           // barrier.cpp: bra, ret, exit, trap, brkpt
void decode_indexed_branch(Decoder &, Instruction &);   // brx.idx
void decode_barrier(Decoder &, Instruction &);          // bar, barrier
void decode_grid_dependency(Decoder &, Instruction &);  // griddepcontrol
void decode_set_max_registers(Decoder &, Instruction &);  // setmaxnreg

// Exchange between lanes: exchange.cpp.
void decode_shuffle(Decoder &, Instruction &);
void decode_vote(Decoder &, Instruction &);
void decode_match(Decoder &, Instruction &);
void decode_reduce(Decoder &, Instruction &);
void decode_elect(Decoder &, Instruction &);
void decode_warp_barrier(Decoder &, Instruction &);  // bar.warp
void decode_active_mask(Decoder &, Instruction &);

// Matrices.
void decode_mma(Decoder &, Instruction &);
void decode_wmma(Decoder &, Instruction &);
void decode_matrix_rows(Decoder &, Instruction &);  // ldmatrix, stmatrix
void decode_wgmma(Decoder &, Instruction &);

// Asynchronous operations.
void decode_mbarrier(Decoder &, Instruction &);
void decode_cluster_address(Decoder &, Instruction &);  // mbarrier.cpp: mapa, getctarank
void decode_tensor_copy(Decoder &, Instruction &);      // tma.cpp: cp.async.bulk.tensor
void decode_plain_copy(Decoder &, Instruction &);       // cp.async.bulk without a tensor
void decode_bulk_group(Decoder &, Instruction &);       // bulk_copy.cpp: commit_group, wait_group
void decode_tensor_map(Decoder &, Instruction &);       // tensor_map_edit.cpp: tensormap
void decode_map_prefetch(Decoder &, Instruction &);     // prefetch.tensormap
void decode_proxy_fence(Decoder &, Instruction &);      // fence.proxy, fence.mbarrier_init

}  // namespace softgpu
