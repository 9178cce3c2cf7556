#include "softgpu/runtime/fat_binary.h"

#include <lz4.h>
#include <zstd.h>

#include <cstdio>
#include <cstring>

namespace softgpu::runtime {

namespace {

// The layout is undocumented; it was inferred from the output of nvcc 13 for each --compress-mode.

struct Header {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  ///< size of the entries that follow
};
static_assert(sizeof(Header) == 16);
constexpr uint32_t kMagic = 0xBA55ED50;

struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;         ///< size of the padded data that follows
  uint32_t packed_bytes;  ///< 0: not compressed
  uint32_t options_offset;
  uint16_t minor, major;
  uint32_t arch;
  uint32_t reserved[2];
  uint64_t flags;
  uint64_t reserved2;
  uint64_t unpacked_bytes;
};
static_assert(sizeof(EntryHeader) == 64);
constexpr uint16_t kPtx = 1;
constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;
constexpr uint64_t kArchSpecific = 0x100000;

template <class T>
T read(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::string FatImage::text() const {
  if (compression_ == 0) {
    const char *const begin = reinterpret_cast<const char *>(data_);
    return {begin, strnlen(begin, size_)};
  }
  std::string text(unpacked_size_, '\0');
  size_t got = 0;
  if (compression_ & kZstd) {
    got = ZSTD_decompress(text.data(), text.size(), data_, size_);
  } else {
    got = static_cast<size_t>(LZ4_decompress_safe(reinterpret_cast<const char *>(data_),
                                                  text.data(), static_cast<int>(size_),
                                                  static_cast<int>(text.size())));
  }
  if (got != text.size()) throw ptx::Error("PTX of a fat binary that cannot be decompressed");
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

Module *FatImage::module() {
  if (is_read_) return module_;
  is_read_ = true;
  try {
    const std::string name = "fat binary, sm_" + std::to_string(target_.arch);
    module_ = add_module(name, std::make_shared<const std::string>(text()));
  } catch (const ptx::Error &error) {
    std::fprintf(stderr, "softgpu: %s\n", error.what());
  }
  return module_;
}

std::vector<FatImage> images_of(const void *fat_binary) {
  const auto *const begin = static_cast<const std::byte *>(fat_binary);
  const auto header = read<Header>(begin);
  if (header.magic != kMagic) {
    std::fprintf(stderr, "softgpu: a fat binary of an unknown form is passed over\n");
    return {};
  }
  std::vector<FatImage> images;
  const std::byte *const end = begin + header.header_bytes + header.bytes;
  for (const std::byte *at = begin + header.header_bytes; at < end;) {
    const auto entry = read<EntryHeader>(at);
    const std::byte *const data = at + entry.header_bytes;
    at = data + entry.bytes;
    if (entry.kind != kPtx) continue;
    const uint64_t compression = entry.flags & (kLz4 | kZstd);
    images.emplace_back(Target{static_cast<int>(entry.arch), (entry.flags & kArchSpecific) != 0},
                        data, compression ? entry.packed_bytes : entry.bytes, entry.unpacked_bytes,
                        compression);
  }
  return images;
}

}  // namespace softgpu::runtime
