// Test kernels that copy a box of a tensor, and the expected contents of the box.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "softgpu/machine/tensor_map.h"
#include "softgpu/tests/harness.h"

namespace softgpu::test {

/// Tensor in global memory with distinguishable bytes, and its map.
struct Tensor {
  TensorMap map;
  AlignedBuffer<uint8_t> memory;

  /// @param pitch  additional bytes per dimension
  Tensor(ElementType type, const std::vector<uint64_t> &sizes, uint64_t pitch = 16);

  /// Returns the byte offset of an element, or -1 outside the tensor.
  int64_t place(const std::array<int64_t, 5> &index) const;
};

/// Tensor map in global memory.
class MapInMemory {
 public:
  explicit MapInMemory(const TensorMap &);
  uint64_t address() const { return memory_.address(); }
  TensorMap read() const;

 private:
  AlignedBuffer<uint8_t> memory_;
};

struct Place {
  std::array<int32_t, 5> coordinates{};
  std::array<uint16_t, 3> offsets{};
};

/// Calls f(byte offset of the element in the tensor or -1, byte offset in shared memory) for each
/// element of the box in order, according to tiled and im2col mode of the PTX ISA.
template <class F>
void for_each_element(const Tensor &, const Place &, F &&);

/// Prologue of kernels with parameters map, Place and output:
///
///     %map, %c0 to %c4, %o0 to %o2, %out  registers
///     tile, %s                            tile_bytes bytes of shared memory, 1024-byte aligned
///     bar, %b                             mbarrier that thread 0 (%one) has initialized
std::string tma_module(uint32_t tile_bytes, const std::string &body);
/// Returns "[%map, {%c0, %c1}]".
std::string tensor_operand(int rank);
/// Thread 0 loads the box, and all threads wait for it.
std::string load_box(const TensorMap &);
/// All threads copy the tile to %out.
std::string store_tile(uint32_t tile_bytes);
/// All threads copy %out to the tile.
std::string fill_tile(uint32_t tile_bytes);

/// Arguments of tma_module's kernels.
struct TmaArguments {
  uint64_t map;
  std::array<int32_t, 5> coordinates;
  std::array<uint16_t, 3> offsets;
};
Outcome launch(const Kernel &, const Shape &, uint64_t map, const Place &, uint64_t out);

// ---- templates

inline uint32_t swizzled_place(const TensorMap &map, uint32_t byte) {
  const uint32_t span = 16u << static_cast<int>(map.swizzle);
  return byte ^ (byte / 128 % 8 & (span / 16 - 1)) * 16;
}

template <class F>
void for_each_tiled_element(const Tensor &tensor, const Place &place, F &&f) {
  const TensorMap &map = tensor.map;
  uint32_t byte = 0;
  for (int64_t i4 = 0; i4 < map.box[4]; i4++)
    for (int64_t i3 = 0; i3 < map.box[3]; i3++)
      for (int64_t i2 = 0; i2 < map.box[2]; i2++)
        for (int64_t i1 = 0; i1 < map.box[1]; i1++)
          for (int64_t i0 = 0; i0 < map.box[0]; i0++) {
            const auto &c = place.coordinates;
            f(tensor.place({c[0] + i0, c[1] + i1, c[2] + i2, c[3] + i3, c[4] + i4}),
              swizzled_place(map, byte));
            byte += map.element_bytes();
          }
}

/// Pixels are all positions of the bounding boxes of all images, in order, starting at the
/// coordinates.
template <class F>
void for_each_im2col_element(const Tensor &tensor, const Place &place, F &&f) {
  const TensorMap &map = tensor.map;
  const size_t num_spatial = map.rank - 2u;
  std::vector<std::array<int64_t, 5>> positions;  // dimensions 1 and up; beyond the last image
  std::array<std::vector<int64_t>, 3> steps;
  for (size_t d = 0; d < 3; d++) {
    if (d >= num_spatial) {
      steps[d] = {0};
      continue;
    }
    const int64_t last = static_cast<int64_t>(map.sizes[d + 1]) - 1 + map.upper[d];
    for (int64_t p = map.lower[d]; p <= last; p += map.element_strides[d + 1])
      steps[d].push_back(p);
  }
  const auto num_images = static_cast<int64_t>(map.sizes[map.rank - 1u]);
  for (int64_t n = 0; n < num_images + 4; n++)
    for (const int64_t p2 : steps[2])
      for (const int64_t p1 : steps[1])
        for (const int64_t p0 : steps[0]) {
          std::array<int64_t, 5> position{0, p0, p1, p2, 0};
          position[num_spatial + 1] = n;
          positions.push_back(position);
        }
  size_t first = 0;
  const auto is_first = [&](const std::array<int64_t, 5> &position) {
    for (size_t d = 1; d < map.rank; d++)
      if (position[d] != place.coordinates[d]) return false;
    return true;
  };
  while (!is_first(positions.at(first))) first++;
  uint32_t byte = 0;
  for (uint32_t pixel = 0; pixel < map.pixels; pixel++)
    for (int64_t channel = 0; channel < map.channels; channel++) {
      std::array<int64_t, 5> index = positions.at(first + pixel);
      index[0] = place.coordinates[0] + channel;
      for (size_t d = 1; d <= num_spatial; d++) index[d] += place.offsets[d - 1];
      f(tensor.place(index), swizzled_place(map, byte));
      byte += map.element_bytes();
    }
}

template <class F>
void for_each_element(const Tensor &tensor, const Place &place, F &&f) {
  if (tensor.map.is_im2col)
    for_each_im2col_element(tensor, place, f);
  else
    for_each_tiled_element(tensor, place, f);
}

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

inline Tensor::Tensor(ElementType type, const std::vector<uint64_t> &sizes, uint64_t pitch)
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

inline int64_t Tensor::place(const std::array<int64_t, 5> &index) const {
  uint64_t byte = 0;
  for (size_t d = 0; d < 5; d++) {
    if (index[d] < 0 || index[d] >= static_cast<int64_t>(map.sizes[d])) return -1;
    byte += static_cast<uint64_t>(index[d]) * (d == 0 ? size_of(map.type) : map.strides[d - 1]);
  }
  return static_cast<int64_t>(byte);
}

/// Extra space, because a test reads a map from the middle of this one.
inline MapInMemory::MapInMemory(const TensorMap &map) : memory_(2 * 128) {
  const auto packed = pack(map);
  for (size_t i = 0; i < packed.size(); i++) memory_[i] = static_cast<uint8_t>(packed[i]);
}

inline TensorMap MapInMemory::read() const {
  return *unpack(reinterpret_cast<const std::byte *>(&memory_[0]));
}

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

inline std::string tensor_operand(int rank) {
  std::string text = "[%map, {%c0";
  for (int i = 1; i < rank; i++) text += ", %c" + std::to_string(i);
  return text + "}]";
}

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

inline std::string store_tile(uint32_t num_bytes) {
  return ".reg .b32 %word;\n" +
         for_each_word("store_tile", num_bytes,
                       "ld.shared.u32 %word, [%v];\nst.global.u32 [%g], %word;\n");
}

inline std::string fill_tile(uint32_t num_bytes) {
  return ".reg .b32 %filled;\n" +
         for_each_word("fill_tile", num_bytes,
                       "ld.global.u32 %filled, [%g];\nst.shared.u32 [%v], %filled;\n");
}

inline Outcome launch(const Kernel &kernel, const Shape &shape, uint64_t map, const Place &place,
                      uint64_t out) {
  struct {
    TmaArguments arguments;
  } bytes{{map, place.coordinates, place.offsets}};
  static_assert(sizeof bytes == 40);
  return kernel(shape, bytes, out);
}

}  // namespace softgpu::test
