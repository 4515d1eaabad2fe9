#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <string_view>

namespace {

/// Whether a test said "SKIPPED: " and why: it lacks something that not every machine has.
bool skipped = false;

struct SkipListener : doctest::IReporter {
  explicit SkipListener(const doctest::ContextOptions& /*unused*/) {}
  void log_message(const doctest::MessageData& message) override {
    const std::string_view text = message.m_string.c_str();
    skipped = skipped || text.starts_with("SKIPPED: ");
  }
  void report_query(const doctest::QueryData& /*unused*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*unused*/) override {}
  void test_case_start(const doctest::TestCaseData& /*unused*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*unused*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*unused*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*unused*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*unused*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*unused*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*unused*/) override {}
};

} // namespace

REGISTER_LISTENER("skips", 1, SkipListener);

/// Ends with 77 where something was skipped and all else passed, so that ctest shows it and no failure hides
/// behind it.
int main(int count, char** arguments) {
  doctest::Context context(count, arguments);
  const int result = context.run();
  return result == 0 && skipped ? 77 : result;
}
