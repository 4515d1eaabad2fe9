// XML of examples.
#include <mtmc/coder/example_library.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

void examples(std::string_view input) {
  mtmc::ExampleLibrary library;
  if (!accepts([&] { library.add_text(input, "fuzzed"); })) {
    require(library.all().empty(), "on an error nothing is added");
    return;
  }
  for (const auto& example : library.all()) {
    const auto found = library.find(example.optimization, example.language, library.all().size());
    require(!found.empty(), "an example is found by its type and language");
    require(example.before != example.after, "an example changes something");
    const bool judged = accepts([&] { (void)mtmc::task_text(example); });
    require(judged == !example.task.empty(), "an example's task has a text");
    mtmc::ExampleLibrary copy;
    copy.add(example);
    require(copy.all().front() == example, "what was read may be added");
  }
}

} // namespace mtmc_fuzz
