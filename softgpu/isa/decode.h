// Decoders for the chapters of the PTX ISA.  Each returns false for statements of other chapters.
#pragma once

#include "softgpu/isa/form.h"
#include "softgpu/program/decoder.h"

namespace softgpu {

// Arithmetic, by the type of the statement.
bool decode_integer(OpcodeCursor &);             // integer.cpp
bool decode_bits(OpcodeCursor &);                // bits.cpp
void decode_extended_precision(OpcodeCursor &);  // .cc, addc, subc, madc
bool decode_packed_integer(OpcodeCursor &);      // u16x2, s16x2
bool decode_float(OpcodeCursor &);               // float.cpp: f32, f64
bool decode_half(OpcodeCursor &);                // f16, bf16, f16x2, bf16x2
bool decode_compare(OpcodeCursor &);             // compare.cpp: setp, set
bool decode_select(OpcodeCursor &);              // selp
bool decode_predicate(OpcodeCursor &);           // and, or, xor, not, mov of .pred
bool decode_convert(OpcodeCursor &);             // convert.cpp: cvt
bool decode_address_space(OpcodeCursor &);       // move.cpp: cvta, isspacep

// Memory.
void decode_load(OpcodeCursor &);   // load_store.cpp: ld
void decode_store(OpcodeCursor &);  // st
void decode_atom(OpcodeCursor &);   // atomic.cpp
void decode_red(OpcodeCursor &);
bool decode_async_copy(OpcodeCursor &);  // async_copy.cpp: cp.async without the bulk variants

// Control.
bool decode_branch(Decoder &, Instruction &);   // barrier.cpp: bra, brx.idx, ret, exit, trap, brkpt
bool decode_barrier(Decoder &, Instruction &);  // bar, barrier
bool decode_grid_dependency(Decoder &, Instruction &);    // griddepcontrol
bool decode_set_max_registers(Decoder &, Instruction &);  // setmaxnreg
/// exchange.cpp: shfl, vote, match, redux, elect, bar.warp.sync
bool decode_exchange(Decoder &, Instruction &);

// Matrices.
bool decode_wmma(Decoder &, Instruction &);
bool decode_mma(Decoder &, Instruction &);
bool decode_matrix_rows(Decoder &, Instruction &);  // ldmatrix, stmatrix
bool decode_wgmma(Decoder &, Instruction &);

// Asynchronous operations.
bool decode_mbarrier(Decoder &, Instruction &);
bool decode_tensor_copy(Decoder &, Instruction &);      // tma.cpp: cp.async.bulk.tensor
bool decode_plain_copy(Decoder &, Instruction &);       // cp.async.bulk without a tensor
bool decode_bulk_group(Decoder &, Instruction &);       // bulk_copy.cpp: commit_group, wait_group
bool decode_tensor_map(Decoder &, Instruction &);       // tensor_map_edit.cpp: tensormap, its proxy
bool decode_proxy_fence(Decoder &, Instruction &);      // fence.proxy, mbarrier_init
bool decode_cluster_address(Decoder &, Instruction &);  // mapa, getctarank

}  // namespace softgpu
