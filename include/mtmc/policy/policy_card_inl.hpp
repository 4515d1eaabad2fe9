#pragma once
/// Definitions of policy/policy_card.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_text.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/policy/policy_template.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/text.hpp>

#include <cmath>
#include <exception>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

inline void visit_fields(JsonFields& visit, PolicyCard& card) {
  const PolicyCard absent;
  visit.optional("name", card.name);
  visit.optional("model", card.model);
  visit.optional("adapter", card.adapter);
  visit.required("template", card.prompt_template);
  visit.optional("separator", card.separator, absent.separator);
  visit.required("normalization", card.normalization);
  visit.optional("temperature", card.temperature, absent.temperature);
  visit.optional("method", card.method);
  visit.optional("region_names", card.region_names, absent.region_names);
  visit.optional("chat_template_hash", card.chat_template_hash);
  visit.optional("history", card.history, absent.history);
  visit.optional("line_numbers", card.line_numbers, absent.line_numbers);
  JsonText training{card.training};
  visit.optional("training", training);
  visit.no_others();
}

[[noreturn]] inline void refuse_card(const std::string& field, const std::string& what,
                                     const std::string& remedy) {
  throw Error(error_id::policy_card, what, remedy, "field \"" + field + '"');
}

[[nodiscard]] inline Json policy_card_json(const PolicyCard& card) {
  Json out;
  write_value(out, card);
  out["schema"] = json_schema_version;
  return out;
}

} // namespace detail

MTMC_INLINE PolicyCard paper_policy_card() {
  PolicyCard card;
  card.name = "paper";
  card.normalization = ScoreNormalization::sum;
  return card;
}

MTMC_INLINE void check_policy_card(const PolicyCard& card) {
  using detail::refuse_card;
  const auto& prompt = card.prompt_template;
  if (trim(prompt).empty()) refuse_card("template", "the prompt is empty", "Write a prompt");
  if (const auto unknown = detail::find_unknown_placeholder(prompt); !unknown.empty())
    refuse_card("template", "there is no placeholder {" + unknown + '}',
                "Use {observation}, {task}, {device}, {kernel}, {regions}, {history}, {actions} or {legend}; "
                "write braces as {{ and }}");
  if (trim(prompt.substr(prompt.size() - 1)).empty())
    refuse_card("template", "the prompt ends with a blank or a line end",
                "Move it to the beginning of \"separator\"");
  if (card.region_names != RegionNames::text && !detail::has_placeholder(prompt, "actions") &&
      !detail::has_placeholder(prompt, "legend"))
    refuse_card("template", "regions have numbers, but the prompt shows no legend",
                "Add {actions} or {legend}, or set \"region_names\" to \"text\"");
  if (!(card.temperature > 0) || !std::isfinite(card.temperature))
    refuse_card("temperature", "the temperature is not above 0", "Use 1");
  if (card.history < 0) refuse_card("history", "the number of steps is negative", "Use 0 to show none");
  if (!card.training.empty() && detail::parse_text(card.training, false).is_discarded())
    refuse_card("training", "the facts of the training are not JSON", "Put JSON text there");
}

MTMC_INLINE PolicyCard read_policy_card(std::string_view json, const std::string& place) {
  try {
    auto document = parse_json(json, {});
    check_schema(document, {});
    if (document.is_object()) document.erase("schema");
    PolicyCard card;
    detail::read_value(document, card, std::string());
    check_policy_card(card);
    return card;
  } catch (const Error& error) {
    throw Error(error_id::policy_card, error.message(), error.remedy(), error.place()).within(place);
  }
}

MTMC_INLINE PolicyCard load_policy_card(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const std::exception& failure) {
    throw Error(error_id::policy_card, std::string("the policy card cannot be read: ") + failure.what(),
                "Name a readable file", path);
  }
  return read_policy_card(text, path);
}

MTMC_INLINE std::string write_policy_card(const PolicyCard& card) {
  check_policy_card(card);
  return detail::policy_card_json(card).dump(2, ' ', false, detail::Json::error_handler_t::replace) + '\n';
}

MTMC_INLINE std::string policy_card_hash(const PolicyCard& card) {
  return sha256_hex(
      detail::policy_card_json(card).dump(-1, ' ', false, detail::Json::error_handler_t::replace));
}

} // namespace mtmc
