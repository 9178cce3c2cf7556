// Tests of support/progress.h: completed fraction and remaining time.
#include <string>

#include "support/progress.h"
#include "tests/support/catch.h"

using namespace mptools;

TEST_CASE("progress: remaining time is proportional to remaining cost", "[progress]") {
  WorkLeft work(100);
  CHECK(work.share() == 0);
  CHECK(!work.seconds_left());
  work.finish(20, 4);
  CHECK(work.share() == 0.2);
  CHECK(*work.seconds_left() == 16);
  // Lower cost than estimated.
  work.finish(60, 4);
  CHECK(work.share() == 0.8);
  CHECK(*work.seconds_left() == 2);
  work.finish(20, 2);
  CHECK(work.share() == 1);
  CHECK(*work.seconds_left() == 0);
}

TEST_CASE("progress: nothing is estimated from jobs without cost", "[progress]") {
  WorkLeft work(10);
  work.finish(0, 5);
  CHECK(!work.seconds_left());
  work.finish(11, 1);
  CHECK(work.share() == 1);
  CHECK(*work.seconds_left() == 0);
  CHECK(WorkLeft(0).share() == 1);
}

TEST_CASE("progress: percentage and time as text", "[progress]") {
  CHECK(bar_text(0) == '[' + std::string(32, '.') + "]   0 %");
  CHECK(bar_text(0.25) == "[########" + std::string(24, '.') + "]  25 %");
  CHECK(bar_text(0.999) == '[' + std::string(31, '#') + ".]  99 %");
  CHECK(bar_text(1) == '[' + std::string(32, '#') + "] 100 %");
  CHECK(left_text(0) == "0 s left");
  CHECK(left_text(99.4) == "99 s left");
  CHECK(left_text(99.6) == "2 min left");
  CHECK(left_text(5969) == "99 min left");
  CHECK(left_text(5970) == "1 h 40 min left");

  WorkLeft work(4);
  CHECK(progress_text(work, "a") == bar_text(0) + "  a");
  work.finish(1, 1);
  CHECK(progress_text(work, "b") == bar_text(0.25) + "  3 s left  b");
}
