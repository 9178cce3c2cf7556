#include "sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "verses.h"

namespace mpdemo {
namespace {

/// Sharpens the distribution: likely characters are sampled more often, with fewer misspellings.
constexpr double kTemperature = 0.7;

int32_t draw(const std::vector<float> &logits, Random &random) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  double sum = 0;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<double>(logit - most) / kTemperature));
    sum += shares.back();
  }
  double left = random.uniform01() * sum;
  for (size_t symbol = 0; symbol < shares.size(); ++symbol)
    if ((left -= shares[symbol]) < 0) return static_cast<int32_t>(symbol);
  return kLineEnd;  // reached only if the network predicts NaN
}

}  // namespace

std::string write_text(mp_context_t context, Network &network, int64_t steps, int64_t characters,
                       Random random) {
  const Buffer input(context, steps * static_cast<int64_t>(sizeof(int32_t)));
  Batch batch = {input.data(), nullptr, 1, 0};
  std::vector<int32_t> read = {kLineEnd};
  std::string text;
  while (static_cast<int64_t>(text.size()) < characters) {
    check(mp_memcpy(context, input.data(), read.data(), read.size() * sizeof read[0], kStream));
    network.forward(batch, MP_GRAPH_MODE_INFERENCE);
    const auto last = static_cast<int64_t>(read.size()) - 1;
    const int32_t symbol = draw(network.logits_sync(last), random);
    text += character_of(symbol);
    if (last + 1 == steps) read.erase(read.begin());
    read.push_back(symbol);
    batch.continues = true;
  }
  return text;
}

}  // namespace mpdemo
