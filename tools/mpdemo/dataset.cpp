// Reads the idx files and uploads them.
//
// idx: two zero bytes, an element type (8 = unsigned byte), the number of dimensions, one
// big-endian 32-bit extent per dimension, then the elements.
#include "dataset.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace mpdemo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path &path, const std::string &why) {
  throw std::runtime_error(path.string() + " is damaged: " + why);
}

/// Returns the decompressed file, at most `most` bytes.  gzread() does not notice if the file ends
/// before its checksum.
std::vector<uint8_t> read_gzip(const fs::path &path, size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(
        path.string() +
        " is missing: install the Debian package dataset-fashion-mnist, or pass the folder of "
        "the four idx .gz files as --data");
  std::string packed{std::istreambuf_iterator(file), {}};
  std::vector<uint8_t> bytes(most);
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(most);
  constexpr int kGzip = 16;
  inflateInit2(&stream, MAX_WBITS + kGzip);
  const bool is_complete = inflate(&stream, Z_FINISH) == Z_STREAM_END || stream.avail_out == 0;
  const std::string error = stream.msg != nullptr ? stream.msg : "unexpected end of file";
  inflateEnd(&stream);
  if (!is_complete) fail(path, error);
  bytes.resize(most - stream.avail_out);
  return bytes;
}

/// Returns the elements of an idx file of unsigned bytes, which must have these extents.
std::vector<uint8_t> read_idx(const fs::path &path, const std::vector<int64_t> &extents) {
  const size_t header = 4 + 4 * extents.size();
  const auto numel = static_cast<size_t>(
      std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>()));
  std::vector<uint8_t> bytes = read_gzip(path, header + numel + 1);
  const auto word = [&](size_t at) {
    return int64_t{bytes[at]} << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
  };
  if (bytes.size() < header || word(0) != (8 << 8 | static_cast<int64_t>(extents.size())))
    throw std::runtime_error(path.string() + " is not an idx file of " +
                             std::to_string(extents.size()) + "-dimensional bytes");
  for (size_t i = 0; i < extents.size(); ++i)
    if (word(4 + 4 * i) != extents[i])
      throw std::runtime_error(path.string() + " has a dimension of " +
                               std::to_string(word(4 + 4 * i)) + " instead of " +
                               std::to_string(extents[i]));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<int64_t>(header));
  if (bytes.size() < numel) fail(path, "unexpected end of file");
  if (bytes.size() > numel) fail(path, "extra bytes after the last element");
  return bytes;
}

Samples read_samples(const fs::path &directory, const std::string &prefix, int64_t count) {
  Samples samples;
  samples.images = read_idx(directory / (prefix + "-images-idx3-ubyte.gz"), {count, kSide, kSide});
  const fs::path labels_path = directory / (prefix + "-labels-idx1-ubyte.gz");
  const std::vector<uint8_t> labels = read_idx(labels_path, {count});
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
