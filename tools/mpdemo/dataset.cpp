// Reads the idx files and uploads them.
//
// idx: two zero bytes, an element type (8 = unsigned byte), the number of dimensions, one
// big-endian 32-bit extent per dimension, then the elements.
#include "dataset.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace mpdemo {
namespace {

namespace fs = std::filesystem;

struct GzipCloser {
  void operator()(gzFile_s *file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, GzipCloser>;

/// A gzip file that is read sequentially.
class GzipReader {
 public:
  explicit GzipReader(const fs::path &path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_)
      throw std::runtime_error(
          path.string() +
          " is missing: install the Debian package dataset-fashion-mnist, or pass the folder of "
          "the four idx .gz files as --data");
  }

  void read(void *bytes, size_t count) {
    const int got = gzread(file_.get(), bytes, static_cast<unsigned>(count));
    int code = Z_OK;
    if (got < 0) fail(gzerror(file_.get(), &code));
    if (static_cast<size_t>(got) != count) fail("unexpected end of file");
    checksum_ = crc32_z(checksum_, static_cast<const Bytef *>(bytes), count);
    size_ += static_cast<uint32_t>(count);
  }

  /// zlib also checks checksum and length, but not if the file ends before them.
  void require_end() {
    char more;
    if (gzread(file_.get(), &more, 1) > 0) fail("extra bytes after the last element");
    std::ifstream file(path_, std::ios::binary);
    std::array<uint8_t, 8> stored{};
    file.seekg(-static_cast<std::streamoff>(stored.size()), std::ios::end);
    file.read(reinterpret_cast<char *>(stored.data()), stored.size());
    const auto word = [&](size_t at) {
      return stored[at] | stored[at + 1] << 8 | stored[at + 2] << 16 |
             static_cast<uint32_t>(stored[at + 3]) << 24;
    };
    if (!file || word(0) != checksum_ || word(4) != size_) fail("checksum or length mismatch");
  }

 private:
  [[noreturn]] void fail(const std::string &why) const {
    throw std::runtime_error(path_.string() + " is damaged: " + why);
  }

  const fs::path &path_;
  GzipFile file_;
  uLong checksum_ = 0;
  uint32_t size_ = 0;
};

/// Returns the elements of an idx file of unsigned bytes, which must have these extents.
std::vector<uint8_t> read_idx(const fs::path &path, std::span<const int64_t> extents) {
  GzipReader file(path);
  std::array<uint8_t, 4> magic;
  file.read(magic.data(), magic.size());
  if (magic != std::array<uint8_t, 4>{0, 0, 8, static_cast<uint8_t>(extents.size())})
    throw std::runtime_error(path.string() + " is not an idx file of " +
                             std::to_string(extents.size()) + "-dimensional bytes");
  int64_t numel = 1;
  for (const int64_t expected : extents) {
    std::array<uint8_t, 4> b;
    file.read(b.data(), b.size());
    const int64_t extent = int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    if (extent != expected)
      throw std::runtime_error(path.string() + " has a dimension of " + std::to_string(extent) +
                               " instead of " + std::to_string(expected));
    numel *= extent;
  }
  std::vector<uint8_t> elements(static_cast<size_t>(numel));
  file.read(elements.data(), elements.size());
  file.require_end();
  return elements;
}

Samples read_samples(const fs::path &directory, const std::string &prefix, int64_t count) {
  Samples samples;
  samples.images = read_idx(directory / (prefix + "-images-idx3-ubyte.gz"),
                            std::array<int64_t, 3>{count, kSide, kSide});
  const fs::path labels_path = directory / (prefix + "-labels-idx1-ubyte.gz");
  const std::vector<uint8_t> labels = read_idx(labels_path, std::array<int64_t, 1>{count});
  const uint8_t largest = *std::max_element(labels.begin(), labels.end());
  if (largest >= kClasses)
    throw std::runtime_error(labels_path.string() + " is damaged: label " +
                             std::to_string(largest) + " is outside [0, " +
                             std::to_string(kClasses) + ")");
  samples.labels.assign(labels.begin(), labels.end());
  return samples;
}

/// Standardized values of the 256 pixel values: zero mean and unit deviation over the training
/// images.
std::array<float, 256> standardised_pixels() {
  constexpr float kMean = 0.2860f;
  constexpr float kDeviation = 0.3530f;
  std::array<float, 256> table;
  for (int pixel = 0; pixel < 256; ++pixel)
    table[static_cast<size_t>(pixel)] = (static_cast<float>(pixel) / 255.0f - kMean) / kDeviation;
  return table;
}

}  // namespace

Dataset load_fashion_mnist(const fs::path &directory) {
  return {read_samples(directory, "train", 60000), read_samples(directory, "t10k", 10000)};
}

void shuffle(Samples &samples, Random &random) {
  random.shuffle(samples.count(), [&](int64_t i, int64_t j) {
    if (i == j) return;
    std::swap(samples.labels[static_cast<size_t>(i)], samples.labels[static_cast<size_t>(j)]);
    const auto image = samples.images.begin() + i * kPixels;
    std::swap_ranges(image, image + kPixels, samples.images.begin() + j * kPixels);
  });
}

Samples share_of_rank(const Samples &samples, int64_t batch_rows, int rank, int ranks) {
  Samples share;
  for (int64_t batch = 0; batch < samples.count(); batch += batch_rows) {
    const int64_t rows = std::min(batch_rows, samples.count() - batch) / ranks;
    const int64_t first = batch + rank * rows;
    const auto images = samples.images.begin() + first * kPixels;
    share.images.insert(share.images.end(), images, images + rows * kPixels);
    const auto labels = samples.labels.begin() + first;
    share.labels.insert(share.labels.end(), labels, labels + rows);
  }
  return share;
}

Batches make_batches(mp_context_t context, const Samples &samples, int64_t batch_rows) {
  const int64_t count = samples.count();
  Batches batches;
  batches.memory.push_back(make_buffer(context, count * kPixels, MP_FP32));
  batches.memory.emplace_back(context, count * static_cast<int64_t>(sizeof(int32_t)));
  float *const images = batches.memory[0].as<float>();
  int32_t *const labels = batches.memory[1].as<int32_t>();

  const std::array<float, 256> standardised = standardised_pixels();
  constexpr int64_t kRowsAtATime = 4096;
  std::vector<float> host(kRowsAtATime * kPixels);
  for (int64_t row = 0; row < count; row += kRowsAtATime) {
    const int64_t numel = std::min(kRowsAtATime, count - row) * kPixels;
    const auto pixels = samples.images.begin() + row * kPixels;
    std::transform(pixels, pixels + numel, host.begin(),
                   [&](uint8_t pixel) { return standardised[pixel]; });
    check(mp_memcpy(context, images + row * kPixels, host.data(),
                    static_cast<size_t>(numel) * sizeof(float), kStream));
  }
  check(mp_memcpy(context, labels, samples.labels.data(),
                  static_cast<size_t>(batches.memory[1].bytes()), kStream));
  check(mp_stream_sync(context, kStream));

  for (int64_t first = 0; first < count; first += batch_rows) {
    const int64_t rows = std::min(batch_rows, count - first);
    batches.series.push_back({{images + first * kPixels, labels + first, rows, rows}});
  }
  return batches;
}

}  // namespace mpdemo
