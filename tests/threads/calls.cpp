#include "calls.h"

#include <stdexcept>

namespace mptest {

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  add_products(calls);
  add_layers(calls);
  add_objects(calls);
  return calls;
}

Bytes run_call(const std::vector<Call> &calls, size_t index, mp_context_t context) {
  const Call &call = calls.at(index);
  try {
    return call.run(context);
  } catch (const std::exception &error) {
    throw std::runtime_error(call.name + ": " + error.what());
  }
}

std::vector<Bytes> results_alone(const std::vector<Call> &calls, mp_context_t context) {
  std::vector<Bytes> results;
  for (size_t i = 0; i < calls.size(); ++i) results.push_back(run_call(calls, i, context));
  return results;
}

std::string difference(const std::vector<Call> &calls, const std::vector<Bytes> &results,
                       const std::vector<Bytes> &wanted) {
  for (size_t i = 0; i < calls.size(); ++i)
    if (results.at(i) != wanted.at(i)) return calls[i].name;
  return "";
}

}  // namespace mptest
