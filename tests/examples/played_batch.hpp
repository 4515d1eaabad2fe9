#pragma once
/// The service that answers a batch, and the model behind it, played by a script: for every task of
/// programs::columns_task a faster kernel at once, and then all that goes wrong with batches.

#include <mtmc/support/file_io.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace played {

/// The column sum row by row: several times faster.
inline const std::string columns_rows =
    R"cpp(void columns(const float* in, float* out, int M, int N) {
  for (int j = 0; j < N; ++j) out[j] = 0.0f;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) out[j] += in[i * N + j];
}
//@ launch columns(in, out, M, N)
)cpp";
/// Column by column again, and each one twice: correct, and slower by far.
inline const std::string columns_slow =
    R"cpp(void columns(const float* in, float* out, int M, int N) {
  for (int j = 0; j < N; ++j)
    for (int again = 0; again < 2; ++again) {
      float sum = 0.0f;
      for (int i = 0; i < M; ++i) sum += in[i * N + j];
      out[j] = sum;
    }
}
//@ launch columns(in, out, M, N)
)cpp";
inline const std::string columns_wrong =
    R"cpp(void columns(const float* in, float* out, int M, int N) {
  for (int j = 0; j < N; ++j) out[j] = in[j] + static_cast<float>(M);
}
//@ launch columns(in, out, M, N)
)cpp";
inline const std::string columns_not_declared =
    R"cpp(void columns(const float* in, float* out, int M, int N) {
  for (int j = 0; j < N; j += TILE) out[j] = in[M];
}
//@ launch columns(in, out, M, N)
)cpp";

/// A request as it stands in a file of a batch.
struct BatchRequest {
  std::string id;
  std::string file;
  nlohmann::json body;
};

/// The complete lines of all files of requests.
inline std::vector<BatchRequest> batch_requests(const std::string& folder) {
  std::vector<BatchRequest> requests;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("requests-")) names.insert(entry.path().string());
  for (const auto& name : names) {
    const auto text = mtmc::read_file(name);
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find('\n', begin), text.size());
      const auto line = nlohmann::json::parse(text.substr(begin, end - begin));
      requests.push_back({line["custom_id"], name, line["body"]});
      begin = end + 1;
    }
  }
  return requests;
}

/// Answers what has no answer yet, a file for each round, the last request first.
class BatchService {
public:
  explicit BatchService(std::string folder) : folder_(std::move(folder)) {}

  /// Answers all that has none yet, or so many. Answers how many requests it served.
  std::size_t answer(std::size_t most = SIZE_MAX) {
    std::string lines;
    std::size_t count = 0;
    auto requests = batch_requests(folder_);
    std::reverse(requests.begin(), requests.end());
    for (const auto& request : requests) {
      if (count == most) break;
      if (!served_.insert(request.id).second) continue;
      lines += answer_to(request).dump() + '\n';
      ++count;
    }
    if (count > 0)
      mtmc::write_file_atomic(folder_ + "/answers/batch_output_" + std::to_string(++rounds_) + ".jsonl",
                              lines);
    return count;
  }
  [[nodiscard]] int rounds() const noexcept { return rounds_; }
  /// Tokens of all answers that were given for a task: what the account was charged for.
  [[nodiscard]] std::int64_t tokens(const std::string& task) const { return tokens_.at(task); }

private:
  /// What the model says, by what is asked: "0-1-repair" is the repair of the second sample of the first
  /// step.
  [[nodiscard]] nlohmann::json answer_to(const BatchRequest& request) {
    // mtmc-<task>-<step>-<sample>[-repair][-rest]-<hash>[-<asking>]
    const auto dash = request.id.find('-', 5);
    const auto task = request.id.substr(5, dash - 5);
    const auto is = [&](std::string_view label) {
      const auto rest = std::string_view(request.id).substr(dash + 1);
      constexpr std::size_t hash = 8;
      return rest.starts_with(label) &&
             (rest.size() == label.size() + 1 + hash || rest.size() == label.size() + 1 + hash + 2);
    };
    const auto fenced = [](const std::string& code) { return "Faster.\n```cpp\n" + code + "```\n"; };
    const auto says = [&](const std::string& text, const char* finish = "stop") {
      const std::int64_t prompt = 100 + static_cast<std::int64_t>(request.id.size());
      const auto completion = static_cast<std::int64_t>(text.size());
      tokens_[task] += prompt + completion;
      return nlohmann::json{{"id", "batch_req_1"},
                            {"custom_id", request.id},
                            {"response",
                             {{"status_code", 200},
                              {"request_id", "r"},
                              {"body",
                               {{"choices", {{{"message", {{"content", text}}}, {"finish_reason", finish}}}},
                                {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", completion}}}}}}},
                            {"error", nullptr}};
    };
    const auto slow = fenced(columns_slow);
    if (is("0-0")) return says(fenced(columns_rows));
    if (is("0-1")) return says(fenced(columns_not_declared));
    if (is("0-1-repair")) return says("I do not know.");
    if (is("1-0"))
      return {{"custom_id", request.id},
              {"response",
               {{"status_code", 500}, {"request_id", "r"}, {"body", {{"error", {{"message", "broken"}}}}}}},
              {"error", nullptr}};
    if (is("1-1")) return says(slow.substr(0, slow.size() / 2), "length");
    if (is("1-1-rest")) return says(slow.substr(slow.size() / 2));
    if (is("2-0") && !request.id.ends_with("-2"))
      return {{"custom_id", request.id},
              {"response", nullptr},
              {"error", {{"code", "batch_expired"}, {"message", "it took too long"}}}};
    if (is("2-0")) return says(fenced(columns_wrong));
    if (is("2-0-repair")) return says("There is nothing to mend.");
    if (is("2-1")) return says(fenced(columns_rows));
    unexpected_.push_back(request.id);
    return says("What is this?");
  }

public:
  /// Requests that the script does not know.
  [[nodiscard]] const std::vector<std::string>& unexpected() const noexcept { return unexpected_; }

private:
  std::string folder_;
  std::set<std::string> served_;
  std::map<std::string, std::int64_t> tokens_;
  std::vector<std::string> unexpected_;
  int rounds_ = 0;
};

} // namespace played
