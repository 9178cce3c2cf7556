#include "data.h"

#include "architectures.h"
#include "dataset.h"
#include "random.h"
#include "verses.h"

namespace mpdemo {

RankData::RankData(const Ranks &ranks, const Options &options)
    : ranks_(static_cast<size_t>(ranks.count())) {
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
  std::vector<mp_dtype_t> dtypes = options.mixed.dtypes;
  dtypes.push_back(MP_FP32);
  const int64_t batch = perceptron().batch;  // that of all networks that see images
  for (int rank = 0; rank < ranks.count(); ++rank) {
    const Samples train = share_of_rank(dataset.train, batch, rank, ranks.count());
    const Samples test = rank == 0 ? dataset.test : Samples();
    const auto upload = [&](const Samples &samples, mp_dtype_t dtype) {
      return make_batches(ranks.context(rank), samples, dtype, batch / ranks.count());
    };
    for (const mp_dtype_t dtype : dtypes)
      ranks_[static_cast<size_t>(rank)].try_emplace(
          dtype, DeviceData{upload(train, dtype), upload(test, dtype)});
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
  ranks_[0].try_emplace(MP_FP32, DeviceData{upload(verses.train), upload(verses.test)});
}

std::vector<const DeviceData *> RankData::in(mp_dtype_t dtype) const {
  std::vector<const DeviceData *> of_ranks;
  for (const auto &types : ranks_) {
    const auto found = types.find(dtype);
    of_ranks.push_back(found != types.end() ? &found->second : &types.at(MP_FP32));
  }
  return of_ranks;
}

}  // namespace mpdemo
