#include "data.h"

#include "dataset.h"
#include "random.h"
#include "verses.h"

namespace mpdemo {

Data load_data(const Ranks &ranks, const Options &options, const Architecture &architecture) {
  Random random(options.seed);
  const int64_t batch = architecture.batch;
  if (architecture.reads_text()) {
    Verses verses = load_verses(options.text);
    shuffle(verses, random);
    const auto upload = [&](const std::vector<std::string> &some) {
      return (architecture.context > 1 ? make_stream : make_windows)(ranks.context(0), some, batch);
    };
    Data data = {verses.name, {}};
    data.ranks.push_back({upload(verses.train), upload(verses.test)});
    return data;
  }
  Dataset dataset = load_fashion_mnist(options.data);
  shuffle(dataset.train, random);
  Data data = {"Fashion-MNIST", {}};
  for (int rank = 0; rank < ranks.count(); ++rank) {
    const auto upload = [&](const Samples &samples) {
      return make_batches(ranks.context(rank), samples, batch / ranks.count());
    };
    const Samples train = share_of_rank(dataset.train, batch, rank, ranks.count());
    data.ranks.push_back({upload(train), upload(rank == 0 ? dataset.test : Samples())});
  }
  return data;
}

}  // namespace mpdemo
