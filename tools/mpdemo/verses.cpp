// Reads lines, and splits them into windows.
#include "verses.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "other_programs.h"

namespace mpdemo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeldOut = 50;
constexpr char kFirstCharacter = ' ';
constexpr char kLastCharacter = '~';
static_assert(kLastCharacter - kFirstCharacter + 2 == kSymbols);

constexpr int32_t kNoLabel = -100;  // ignored by mp_softmax_xent

int32_t symbol_of(char character) {
  return character - kFirstCharacter + 1;
}

std::string read_bible() {
  // Each line begins with its book, chapter and verse.
  std::istringstream lines(text_of_bible());
  std::string verses;
  for (std::string label, verse; lines >> label && std::getline(lines >> std::ws, verse);)
    verses += verse + '\n';
  if (verses.empty())
    throw std::runtime_error(
        "the command `bible` prints no text: install the Debian package bible-kjv, "
        "or pass a text file with one sequence per line as --text");
  return verses;
}

std::string read_file(const fs::path &file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  if (!stream)
    throw std::runtime_error(file.string() + " cannot be read; omit --text to use the Bible");
  return content.str();
}

void check_printable(const std::string &line, int64_t number, const std::string &name) {
  const auto is_printable = [](char c) { return c >= kFirstCharacter && c <= kLastCharacter; };
  if (std::all_of(line.begin(), line.end(), is_printable)) return;
  throw std::runtime_error(name + ", line " + std::to_string(number) +
                           ": contains a character that is not printable ASCII");
}

int64_t windows_of(const std::string &verse) {
  return static_cast<int64_t>(verse.size()) / kWindow + 1;  // includes the line end
}

/// All windows, stored one after the other.
struct HostWindows {
  std::vector<int32_t> inputs, labels;
  std::vector<int32_t> lengths;  ///< empty: every step is used
};

/// Adds the window of a few verses that starts at their character `first`.
/// @return the number of rows with a label.
int64_t add_window(HostWindows &windows, const std::vector<std::string> &verses, int64_t sequences,
                   int64_t first) {
  const size_t row0 = windows.inputs.size();
  windows.inputs.resize(row0 + static_cast<size_t>(sequences * kWindow), kLineEnd);
  windows.labels.resize(windows.inputs.size(), kNoLabel);
  int64_t counted = 0;
  const size_t lengths0 = windows.lengths.size();
  windows.lengths.resize(lengths0 + static_cast<size_t>(sequences), 0);
  for (size_t n = 0; n < verses.size(); ++n) {
    const std::string &verse = verses[n];
    const int64_t left = static_cast<int64_t>(verse.size()) + 1 - first;
    const int64_t steps = std::min<int64_t>(kWindow, left);
    for (int64_t step = 0; step < steps; ++step) {
      const size_t place = static_cast<size_t>(first + step);
      const size_t row = row0 + n * kWindow + static_cast<size_t>(step);
      windows.inputs[row] = place == 0 ? kLineEnd : symbol_of(verse[place - 1]);
      windows.labels[row] = place == verse.size() ? kLineEnd : symbol_of(verse[place]);
    }
    windows.lengths[lengths0 + n] = static_cast<int32_t>(steps);
    counted += steps;
  }
  return counted;
}

/// Up to `sequences` verses with `windows` windows each, in file order.
using Group = std::pair<int64_t, std::vector<std::string>>;

std::vector<Group> groups_of(const std::vector<std::string> &verses, int64_t sequences) {
  std::map<int64_t, std::vector<std::string>> open;
  std::vector<Group> groups;
  for (const std::string &verse : verses) {
    std::vector<std::string> &group = open[windows_of(verse)];
    group.push_back(verse);
    if (static_cast<int64_t>(group.size()) < sequences) continue;
    groups.emplace_back(windows_of(verse), std::exchange(group, {}));
  }
  for (auto &[windows, group] : open)
    if (!group.empty()) groups.emplace_back(windows, std::move(group));
  return groups;
}

Buffer upload(mp_context_t context, const std::vector<int32_t> &values) {
  Buffer buffer(context, static_cast<int64_t>(values.size() * sizeof(int32_t)));
  check(mp_memcpy(context, buffer.data(), values.data(), values.size() * sizeof(int32_t), kStream));
  check(mp_stream_sync(context, kStream));
  return buffer;
}

/// Uploads the windows of all batches, and sets their addresses.
void upload(mp_context_t context, const HostWindows &host, Batches &batches) {
  for (const std::vector<int32_t> *values : {&host.inputs, &host.labels, &host.lengths})
    batches.memory.push_back(upload(context, *values));
  int64_t row = 0;
  for (std::vector<Batch> &series : batches.series) {
    for (Batch &batch : series) {
      batch.x = batches.memory[0].as<int32_t>() + row;
      batch.labels = batches.memory[1].as<int32_t>() + row;
      if (!host.lengths.empty()) batch.lengths = batches.memory[2].as<int32_t>() + row / kWindow;
      row += batch.size * kWindow;
    }
  }
}

}  // namespace

char character_of(int32_t symbol) {
  return symbol == kLineEnd ? '\n' : static_cast<char>(kFirstCharacter + symbol - 1);
}

Verses load_verses(const fs::path &file) {
  Verses verses;
  verses.name = file.empty() ? "King James Bible" : file.string();
  std::istringstream lines(file.empty() ? read_bible() : read_file(file));
  int64_t number = 0;
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    check_printable(line, ++number, verses.name);
    if (line.empty()) continue;
    (count++ % kHeldOut == 0 ? verses.test : verses.train).push_back(line);
  }
  if (count < 2) throw std::runtime_error(verses.name + " has fewer than two lines");
  return verses;
}

void shuffle(Verses &verses, Random &random) {
  random.shuffle(static_cast<int64_t>(verses.train.size()), [&](int64_t i, int64_t j) {
    std::swap(verses.train[static_cast<size_t>(i)], verses.train[static_cast<size_t>(j)]);
  });
}

Batches make_windows(mp_context_t context, const std::vector<std::string> &verses,
                     int64_t sequences) {
  HostWindows host;
  Batches batches;
  for (const auto &[windows, group] : groups_of(verses, sequences)) {
    std::vector<Batch> &series = batches.series.emplace_back();
    for (int64_t window = 0; window < windows; ++window)
      series.push_back({nullptr, nullptr, sequences,
                        add_window(host, group, sequences, window * kWindow), nullptr, window > 0});
  }
  upload(context, host, batches);
  return batches;
}

Batches make_stream(mp_context_t context, const std::vector<std::string> &verses,
                    int64_t sequences) {
  HostWindows host;
  for (const std::string &verse : verses) {
    std::transform(verse.begin(), verse.end(), std::back_inserter(host.labels), symbol_of);
    host.labels.push_back(kLineEnd);
  }
  Batches batches;
  const auto rows = static_cast<size_t>(sequences * kWindow);
  for (size_t first = 0; first < host.labels.size(); first += rows) {
    const size_t counted = std::min(rows, host.labels.size() - first);
    batches.series.push_back({{nullptr, nullptr, sequences, static_cast<int64_t>(counted)}});
  }
  host.inputs = host.labels;
  host.inputs.insert(host.inputs.begin(), kLineEnd);
  host.inputs.resize(batches.series.size() * rows, kLineEnd);
  host.labels.resize(host.inputs.size(), kNoLabel);
  upload(context, host, batches);
  return batches;
}

}  // namespace mpdemo
