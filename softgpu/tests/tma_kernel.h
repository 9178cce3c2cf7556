// Test kernels that copy a box of a tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "softgpu/machine/tensor_map.h"
#include "softgpu/tests/harness.h"

namespace softgpu::test {

inline uint64_t round_up(uint64_t x) {
  return (x + 15) / 16 * 16;
}

/// Returns the strides of dimensions 1 and up, followed by the size of the tensor in bytes.
inline std::vector<uint64_t> strides_of(ElementType type, const std::vector<uint64_t> &sizes,
                                        uint64_t pitch) {
  std::vector<uint64_t> strides;
  uint64_t bytes = size_of(type);
  for (const uint64_t size : sizes) {
    bytes = round_up(bytes * size) + pitch;
    strides.push_back(bytes);
  }
  return strides;
}

/// Tensor in global memory with distinguishable bytes, and its map.
struct Tensor {
  TensorMap map;
  AlignedBuffer<uint8_t> memory;

  /// @param pitch  additional bytes per dimension
  Tensor(ElementType type, const std::vector<uint64_t> &sizes, uint64_t pitch = 16)
      : memory(strides_of(type, sizes, pitch).back()) {
    for (size_t i = 0; i < memory.size(); i++)
      memory[i] = static_cast<uint8_t>(1 + (i * 7 + i / 251) % 255);
    const auto strides = strides_of(type, sizes, pitch);
    map.type = type;
    map.rank = static_cast<uint8_t>(sizes.size());
    map.base = memory.address();
    for (size_t d = 0; d < sizes.size(); d++) map.sizes[d] = sizes[d];
    for (size_t d = 0; d + 1 < sizes.size(); d++) map.strides[d] = strides[d];
  }
};

/// Tensor map in global memory.
class MapInMemory {
 public:
  explicit MapInMemory(const TensorMap &map) {
    const auto packed = pack(map);
    for (size_t i = 0; i < packed.size(); i++) memory_[i] = static_cast<uint8_t>(packed[i]);
  }
  uint64_t address() const { return memory_.address(); }
  TensorMap read() const { return *unpack(reinterpret_cast<const std::byte *>(&memory_[0])); }

 private:
  /// Extra space, because a test reads a map from the middle of this one.
  AlignedBuffer<uint8_t> memory_{2 * 128};
};

struct Place {
  std::array<int32_t, 5> coordinates{};
  std::array<uint16_t, 3> offsets{};
};

/// Returns the FNV-1a hash of bytes, continued from another one.
constexpr uint32_t kHashStart = 2166136261;
inline uint32_t hash_of(const AlignedBuffer<uint8_t> &bytes, uint32_t hash = kHashStart) {
  for (size_t i = 0; i < bytes.size(); i++) hash = (hash ^ bytes[i]) * 16777619;
  return hash;
}

/// Prologue of kernels with parameters map, Place and output:
///
///     %map, %c0 to %c4, %o0 to %o2, %out  registers
///     tile, %s                            tile_bytes bytes of shared memory, 1024-byte aligned
///     bar, %b                             mbarrier that thread 0 (%one) has initialized
inline std::string tma_module(uint32_t tile_bytes, const std::string &body) {
  std::string text = ".shared .align 1024 .b8 tile[" + std::to_string(tile_bytes) + R"(];
    .shared .align 8 .b64 bar;
    .reg .b64 %map, %out, %at, %g;
    .reg .b32 %t, %s, %b, %i, %v, %c<5>;
    .reg .b16 %o<3>, %mask;
    .reg .pred %one, %q;
    mov.u32 %t, %tid.x;
    mov.u32 %s, tile;
    mov.u32 %b, bar;
    ld.param.u64 %out, [out];
    ld.param.u64 %map, [arguments];
  )";
  for (int i = 0; i < 5; i++)
    text += "ld.param.b32 %c" + std::to_string(i) + ", [arguments+" + std::to_string(8 + 4 * i) +
            "];\n";
  for (int i = 0; i < 3; i++)
    text += "ld.param.u16 %o" + std::to_string(i) + ", [arguments+" + std::to_string(28 + 2 * i) +
            "];\n";
  text +=
      "setp.eq.u32 %one, %t, 0;\n@%one mbarrier.init.shared::cta.b64 [%b], 1;\n"
      "fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
  return module_text(".param .align 8 .b8 arguments[40], .param .u64 out", text + body + "ret;");
}

/// Returns "[%map, {%c0, %c1}]".
inline std::string tensor_operand(int rank) {
  std::string text = "[%map, {%c0";
  for (int i = 1; i < rank; i++) text += ", %c" + std::to_string(i);
  return text + "}]";
}

/// Thread 0 loads the box, and all threads wait for it.
inline std::string load_box(const TensorMap &map) {
  const std::string bytes = std::to_string(map.box_bytes());
  std::string offsets;
  for (int i = 0; map.is_im2col && i < map.rank - 2; i++)
    offsets += (i ? ", %o" : ", {%o") + std::to_string(i);
  return "@%one mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], " + bytes +
         ";\n@%one cp.async.bulk.tensor." + std::to_string(map.rank) + "d.shared::cluster.global." +
         (map.is_im2col ? "im2col" : "tile") + ".mbarrier::complete_tx::bytes [%s], " +
         tensor_operand(map.rank) + ", [%b]" + offsets + (map.is_im2col ? "};\n" : ";\n") +
         "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0;\n@!%q bra wait;\n";
}

inline std::string for_each_word(const std::string &label, uint32_t num_bytes,
                                 const std::string &body) {
  return "mov.u32 %i, %t;\n" + label + ":\nsetp.ge.u32 %q, %i, " + std::to_string(num_bytes / 4) +
         ";\n@%q bra end_" + label +
         ";\nmad.wide.u32 %g, %i, 4, %out;\nmad.lo.u32 %v, %i, 4, %s;\n" + body +
         "add.u32 %i, %i, 32;\nbra " + label + ";\nend_" + label + ":\n";
}

/// All threads copy the tile to %out.
inline std::string store_tile(uint32_t num_bytes) {
  return ".reg .b32 %word;\n" +
         for_each_word("store_tile", num_bytes,
                       "ld.shared.u32 %word, [%v];\nst.global.u32 [%g], %word;\n");
}

/// All threads copy %out to the tile.
inline std::string fill_tile(uint32_t num_bytes) {
  return ".reg .b32 %filled;\n" +
         for_each_word("fill_tile", num_bytes,
                       "ld.global.u32 %filled, [%g];\nst.shared.u32 [%v], %filled;\n");
}

/// Launches a kernel of tma_module.
inline Outcome launch(const Kernel &kernel, const Shape &shape, uint64_t map, const Place &place,
                      uint64_t out) {
  const struct {
    uint64_t map;
    Place place;
  } arguments{map, place};
  static_assert(sizeof arguments == 40);
  return kernel(shape, arguments, out);
}

/// Runs a body of tma_module in one warp.
inline Outcome run_tma(const TensorMap &map, uint32_t tile_bytes, const std::string &body,
                       const Place &place = {}, uint64_t out = 0) {
  const MapInMemory in_memory(map);
  return launch(Kernel(tma_module(tile_bytes, body)), Shape{}, in_memory.address(), place, out);
}

}  // namespace softgpu::test
