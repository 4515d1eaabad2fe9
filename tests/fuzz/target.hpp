#pragma once
/// What a fuzzer feeds with bytes, and what it promises about them.

#include <mtmc/core/error.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtmc_fuzz {

/// A promise of the library that an input breaks. It ends a fuzzer as a crash does.
class BrokenPromise : public std::logic_error {
public:
  using std::logic_error::logic_error;
};

/// Throws `BrokenPromise` with these words unless it holds.
inline void require(bool holds, const char* promise) {
  if (!holds) throw BrokenPromise(promise);
}

/// Whether the library takes what `read` reads: false where it throws `mtmc::Error`, its answer to bad input.
/// All else that is thrown gets out.
template <class Read> bool accepts(Read&& read) {
  try {
    read();
    return true;
  } catch (const mtmc::Error& error) {
    require(!error.id().empty() && !error.message().empty(), "an error has an id and says what happened");
    return false;
  }
}

/// Cuts what stands before the first `=====` line off `rest`; all of it where there is none. So one input can
/// be several texts, such as a kernel and an answer.
[[nodiscard]] inline std::string_view take_part(std::string_view& rest) {
  constexpr std::string_view line = "\n=====\n";
  const auto end = rest.find(line);
  const auto part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + line.size());
  return part;
}

/// One kind of input from strangers.
struct Target {
  /// Also the folder of its corpus.
  std::string_view name;
  void (*run)(std::string_view input);
  /// Longer inputs, in bytes, are passed over: they take time and show nothing new.
  std::size_t max_bytes;
};

/// All of them, in the order of their names.
[[nodiscard]] std::span<const Target> targets();

/// Gives a target an input, unless that is too long.
inline void run(const Target& target, std::string_view input) {
  if (input.size() <= target.max_bytes) target.run(input);
}

// Each is defined in the file of its name.
void answer(std::string_view input);
void compiler_output(std::string_view input);
void elf(std::string_view input);
void examples(std::string_view input);
void expression(std::string_view input);
void http(std::string_view input);
void journal(std::string_view input);
void kernel(std::string_view input);
void launch_lines(std::string_view input);
void nouns(std::string_view input);
void npy(std::string_view input);
void ptx(std::string_view input);
void python(std::string_view input);
void recorded_plan(std::string_view input);
void scoring(std::string_view input);
void task(std::string_view input);
void tokens(std::string_view input);
void worker(std::string_view input);

} // namespace mtmc_fuzz
