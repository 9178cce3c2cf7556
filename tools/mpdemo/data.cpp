#include "data.h"

#include "architectures.h"
#include "dataset.h"
#include "random.h"
#include "verses.h"

namespace mpdemo {

RankData::RankData(const Ranks &ranks, const Options &options) {
  if (options.net == Net::charlm)
    load_text(ranks, options);
  else
    load_images(ranks, options);
}

void RankData::load_images(const Ranks &ranks, const Options &options) {
  name_ = "Fashion-MNIST";
  Dataset dataset = load_fashion_mnist(options.data);
  Random random(options.seed);
  shuffle(dataset.train, random);
  const int64_t batch = perceptron().batch;  // the batch size of all image networks
  for (int rank = 0; rank < ranks.count(); ++rank) {
    const auto upload = [&](const Samples &samples) {
      return make_batches(ranks.context(rank), samples, batch / ranks.count());
    };
    const Samples train = share_of_rank(dataset.train, batch, rank, ranks.count());
    ranks_.push_back({upload(train), upload(rank == 0 ? dataset.test : Samples())});
  }
}

void RankData::load_text(const Ranks &ranks, const Options &options) {
  Verses verses = load_verses(options.text);
  name_ = verses.name;
  Random random(options.seed);
  shuffle(verses, random);
  const auto upload = [&](const std::vector<std::string> &some) {
    return make_windows(ranks.context(0), some, character_model().batch);
  };
  ranks_.push_back({upload(verses.train), upload(verses.test)});
}

}  // namespace mpdemo
