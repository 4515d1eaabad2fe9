// The JSON form of the nouns.
#include <mtmc/core/json.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/task/validate_task.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

/// What is read is written and read again as the same.
template <class Noun> void check(const nlohmann::json& document) {
  accepts([&] {
    const auto written = mtmc::to_document(mtmc::from_document<Noun>(document)).dump();
    const auto again =
        mtmc::to_document(mtmc::from_document<Noun>(mtmc::parse_json(written, "written"))).dump();
    require(written == again, "a noun's JSON form is read as the same noun");
  });
}

} // namespace

void nouns(std::string_view input) {
  nlohmann::json document;
  if (!accepts([&] { document = mtmc::parse_json(input, "fuzzed"); })) return;
  try {
    (void)document.dump();
  } catch (const nlohmann::json::type_error&) {
    require(false, "a document's text is UTF-8");
  }
  check<mtmc::Task>(document);
  check<mtmc::Device>(document);
  check<mtmc::Structure>(document);
  check<mtmc::LaunchPlan>(document);
  check<mtmc::Evaluation>(document);
  check<mtmc::Step>(document);
  check<mtmc::CodingRequest>(document);
  check<mtmc::Profile>(document);
}

} // namespace mtmc_fuzz
