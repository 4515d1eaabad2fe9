#pragma once
/// The example programs as a script runs them, and small tasks to give them.

#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace programs {

/// Runs one of the built example programs to its end.
inline mtmc::ProcessResult run(const std::string& program, std::vector<std::string> arguments,
                               std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), std::string(MTMC_EXAMPLES) + '/' + program);
  mtmc::ProcessOptions options;
  options.arguments = std::move(arguments);
  options.extra_environment = std::move(environment);
  options.deadline = std::chrono::minutes(4);
  return mtmc::run_process(options);
}

/// A column sum that walks down each column, fast to judge.
inline constexpr const char* columns_kernel = R"cpp(void columns(const float* in, float* out, int M, int N) {
  for (int j = 0; j < N; ++j) {
    out[j] = 0.0f;
    for (int i = 0; i < M; ++i) out[j] += in[i * N + j];
  }
}
//@ launch columns(in, out, M, N)
)cpp";

/// Its task file, whose kernel stands beside it as `<name>.cpp`.
inline nlohmann::json columns_task(const std::string& name) {
  return {{"name", name},
          {"language", "cpp"},
          {"source", name + ".cpp"},
          {"arguments", {{{"name", "in"}, {"shape", {"M", "N"}}}, {{"name", "out"}, {"shape", {"N"}}}}},
          {"sizes", {{{"M", 512}, {"N", 512}}, {{"M", 7}, {"N", 13}, {"weight", 0}}}}};
}

/// A folder of task files.
class Tasks {
public:
  /// Adds a task with its kernel; answers the path of the task file.
  std::string add(const std::string& name, const nlohmann::json& task,
                  const std::string& kernel = columns_kernel) {
    mtmc::write_file_atomic(path(name + ".cpp"), kernel);
    return add_text(name + ".json", task.dump());
  }
  /// Adds any file; answers its path.
  std::string add_text(const std::string& name, const std::string& text) {
    mtmc::write_file_atomic(path(name), text);
    return path(name);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path() + '/' + name; }
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

private:
  mtmc::TemporaryFolder folder_;
};

/// A text as doctest can search it.
inline doctest::String shown(const std::string& text) { return text.c_str(); }

/// The lines of a text, each read as JSON.
inline std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    lines.push_back(nlohmann::json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

} // namespace programs
