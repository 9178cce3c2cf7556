#include "softgpu/runtime/ptx_files.h"

#include <lz4.h>
#include <zstd.h>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "softgpu/runtime/device.h"

namespace softgpu::runtime {
namespace {

/// The .target directive follows a comment of a few lines.
constexpr size_t kHeadBytes = 4096;

std::string read_file(const std::string &path, size_t most = std::string::npos) {
  std::ifstream file(path, std::ios::binary);
  if (most == std::string::npos) {
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
  }
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

/// Parses ".target sm_90a".
std::optional<Target> target_in(std::string_view text) {
  constexpr std::string_view kDirective = ".target sm_";
  const size_t at = text.find(kDirective);
  if (at == std::string_view::npos) return std::nullopt;
  Target target;
  size_t i = at + kDirective.size();
  for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); i++)
    target.arch = 10 * target.arch + (text[i] - '0');
  target.is_specific = i < text.size() && text[i] == 'a';
  return target;
}

/// Returns the names after .entry.
std::vector<std::string> entries_in(std::string_view text) {
  constexpr std::string_view kDirective = ".entry ";
  std::vector<std::string> names;
  for (size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at)) {
    at += kDirective.size();
    const size_t end = text.find_first_of("( \t\r\n", at);
    if (end == std::string_view::npos) break;
    names.emplace_back(text.substr(at, end - at));
  }
  return names;
}

std::string key(const Target &target, const std::string &name) {
  return std::to_string(target.arch) + (target.is_specific ? "a " : " ") + name;
}

}  // namespace

void PtxFiles::list_files() {
  if (is_listed_) return;
  is_listed_ = true;
  namespace fs = std::filesystem;
  std::set<std::string> paths;  // sorted, for an order that does not depend on the file system
  for (const std::string &folder : settings().ptx_folders) {
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error))
      if (at->path().extension() == ".ptx" && at->is_regular_file())
        paths.insert(at->path().string());
  }
  for (const std::string &path : paths)
    if (const std::optional<Target> target = target_in(read_file(path, kHeadBytes)))
      files_.push_back({path, *target});
}

void PtxFiles::index(const Target &target) {
  if (std::ranges::find(indexed_, target) != indexed_.end()) return;
  indexed_.push_back(target);
  for (size_t i = 0; i < files_.size(); i++) {
    if (files_[i].target != target) continue;
    for (const std::string &name : entries_in(read_file(files_[i].path)))
      entries_.emplace(key(target, name), i);
  }
}

Module *PtxFiles::module_of(File &file) {
  if (file.is_read) return file.module;
  file.is_read = true;
  return file.module =
             add_module(file.path, std::make_shared<const std::string>(read_file(file.path)));
}

std::vector<Target> PtxFiles::targets() {
  list_files();
  std::vector<Target> all;
  for (const File &file : files_)
    if (std::ranges::find(all, file.target) == all.end()) all.push_back(file.target);
  return all;
}

Module *PtxFiles::find_entry(const Target &target, const std::string &name) {
  list_files();
  index(target);
  const auto found = entries_.find(key(target, name));
  return found == entries_.end() ? nullptr : module_of(files_[found->second]);
}

Module *PtxFiles::find_global(const Target &target, const std::string &name) {
  list_files();
  for (File &file : files_) {
    if (file.target != target || read_file(file.path).find(name) == std::string::npos) continue;
    Module *const module = module_of(file);
    if (module && module->has_global(name)) return module;
  }
  return nullptr;
}

// ---- fat binaries

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
  const char *const begin = reinterpret_cast<const char *>(data);
  if (compression == 0) return {begin, strnlen(begin, size)};
  std::string text(unpacked_size, '\0');
  const size_t got =
      compression & kZstd
          ? ZSTD_decompress(text.data(), text.size(), data, size)
          : static_cast<size_t>(LZ4_decompress_safe(begin, text.data(), static_cast<int>(size),
                                                    static_cast<int>(text.size())));
  if (got != text.size()) throw ptx::Error("PTX of a fat binary that cannot be decompressed");
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

Module *FatImage::module() {
  if (parsed) return *parsed;
  parsed = nullptr;
  try {
    const std::string name = "fat binary, sm_" + std::to_string(target.arch);
    parsed = add_module(name, std::make_shared<const std::string>(text()));
  } catch (const ptx::Error &error) {
    std::fprintf(stderr, "softgpu: %s\n", error.what());
  }
  return *parsed;
}

std::vector<FatImage> images_of(const void *fat_binary) {
  const auto *const begin = static_cast<const std::byte *>(fat_binary);
  const auto header = read<Header>(begin);
  if (header.magic != kMagic) {
    std::fprintf(stderr, "softgpu: a fat binary of an unknown format is ignored\n");
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
    images.push_back({{static_cast<int>(entry.arch), (entry.flags & kArchSpecific) != 0},
                      data,
                      compression ? entry.packed_bytes : entry.bytes,
                      entry.unpacked_bytes,
                      compression});
  }
  return images;
}

}  // namespace softgpu::runtime
