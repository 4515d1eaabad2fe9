#pragma once
/// The files of a batch: what has been asked, in which round, and what came back; for the definitions of
/// net/batch.hpp.

#include <mtmc/core/error.hpp>
#include <mtmc/net/batch_answer.hpp>
#include <mtmc/net/batch_options.hpp>
#include <mtmc/net/line_file.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// "requests-<round>.jsonl" or "requests-<round>-<part>.jsonl".
struct RequestFileName {
  int round = 1;
  int part = 1;

  friend auto operator<=>(const RequestFileName&, const RequestFileName&) = default;

  [[nodiscard]] std::string text() const {
    return std::string(start) + std::to_string(round) + (part == 1 ? "" : '-' + std::to_string(part)) +
           std::string(end);
  }
  [[nodiscard]] static std::optional<RequestFileName> read(std::string_view name) {
    if (!name.starts_with(start) || !name.ends_with(end) || name.size() < start.size() + end.size())
      return std::nullopt;
    RequestFileName result;
    const char* const last = name.data() + name.size() - end.size();
    auto read = std::from_chars(name.data() + start.size(), last, result.round);
    if (read.ec == std::errc{} && read.ptr != last && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, last, result.part);
    // Not the name of a copy, nor one with zeros before its numbers.
    return read.ec == std::errc{} && read.ptr == last && result.text() == name ? std::optional(result)
                                                                               : std::nullopt;
  }

  static constexpr std::string_view start = "requests-";
  static constexpr std::string_view end = ".jsonl";
};

/// Files in a folder whose names end in ".jsonl", in order of their names; none where it does not exist.
[[nodiscard]] inline std::vector<std::string> jsonl_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry{folder, failure}, end; !failure && entry != end;
       entry.increment(failure))
    if (std::error_code ignored; entry->is_regular_file(ignored) && entry->path().extension() == ".jsonl")
      names.push_back(entry->path().filename().string());
  if (failure && failure != std::errc::no_such_file_or_directory)
    line_file_error("the folder cannot be listed", folder, failure.value());
  std::sort(names.begin(), names.end());
  return names;
}

/// Does what may throw std::system_error, and throws `Error` (`mtmc.net.002`) instead.
template <class Work> auto as_record_error(std::string_view what, const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const std::system_error& error) {
    line_file_error(what, path, error.code().value());
  }
}

/// A batch on the disk, held by this process alone. Not for several threads at once.
class BatchFolder {
public:
  explicit BatchFolder(BatchOptions options) : options_(std::move(options)) {
    constexpr int max_askings = 99; // what an id has room for
    if (options_.folder.empty() || options_.max_requests < 1 || options_.max_bytes < 1 ||
        options_.max_askings < 1 || options_.max_askings > max_askings)
      throw Error(error_id::net_options, "a batch needs a folder, limits of at least 1, and 1 to 99 tries",
                  "Correct the options of the batch", options_.folder)
          .about("BatchOptions");
    as_record_error("the folder cannot be created", options_.folder,
                    [&] { create_folders(answers_folder()); });
    lock_ = open_alone(options_.folder + "/lock", "another process is using this batch");
    read_round();
    read_requests();
    read_answers();
  }

  [[nodiscard]] const BatchOptions& options() const noexcept { return options_; }
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept { return problems_; }

  /// The id of a request, whether or not it has been asked.
  [[nodiscard]] std::string id_of(const BatchId& id) const {
    for (std::size_t choice = 0; choice < BatchId::choices; ++choice) {
      const auto found = requests_.find(id.id(choice));
      if (found == requests_.end() || found->second.hash == id.hash) return id.id(choice);
    }
    // Nobody can make eight bodies whose hashes are the same in turn.
    return id.id(0);
  }
  [[nodiscard]] bool asked(const std::string& id) const { return requests_.contains(id); }
  [[nodiscard]] const BatchAnswer* answer(const std::string& id) const {
    const auto found = answers_.find(id);
    return found == answers_.end() ? nullptr : &found->second;
  }

  /// The line that asks.
  [[nodiscard]] static std::string request_line(const std::string& id, const std::string& url,
                                                const std::string& canonical_body) {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":")" + url + R"(","body":)" + canonical_body +
           '}';
  }

  /// Writes a request into a file of the current round.
  void ask(const std::string& id, const std::string& hash, const std::string& model, const std::string& url,
           std::string line) {
    auto& file = file_for(model, url, line.size() + 1);
    const auto index = static_cast<std::size_t>(&file - files_.data());
    if (!file.writer) file.writer = std::make_unique<LineFile>(path_of(file.name));
    file.writer->append(std::move(line));
    file.model = model;
    file.url = url;
    file.bytes = file.writer->size();
    ++file.requests;
    requests_.emplace(id, Request{hash, index});
  }

  [[nodiscard]] std::size_t waiting() const {
    std::size_t count = 0;
    for (const auto& [id, request] : requests_) count += answers_.contains(id) ? 0 : 1;
    return count;
  }

  [[nodiscard]] std::vector<BatchFile> unanswered_files() const {
    std::vector<BatchFile> all;
    for (const auto& file : files_)
      all.push_back({path_of(file.name), file.model, file.url, file.requests, 0});
    for (const auto& [id, request] : requests_) all[request.file].answered += answers_.contains(id) ? 1 : 0;
    std::erase_if(all, [](const BatchFile& file) { return file.answered == file.requests; });
    return all;
  }

  /// Reads all files of answers anew. The first answer to a file of the current round ends that round, so
  /// that nothing is appended to what has been carried over.
  void read_answers() {
    answers_.clear();
    problems_.clear();
    for (const auto& name : jsonl_names(options_.folder))
      if (!name.starts_with(RequestFileName::start)) read_answers_of(options_.folder + '/' + name);
    for (const auto& name : jsonl_names(answers_folder())) read_answers_of(answers_folder() + '/' + name);
    for (const auto& [id, request] : requests_)
      if (files_[request.file].name.round == round_ && answers_.contains(id)) return close_round();
  }

  void close_round() {
    const bool begun = std::any_of(files_.begin(), files_.end(), [this](const WrittenFile& file) {
      return file.name.round == round_ && file.requests > 0;
    });
    if (!begun) return;
    const auto path = options_.folder + "/round";
    as_record_error("the round cannot be noted", path,
                    [&] { write_file_atomic(path, std::to_string(round_ + 1) + '\n', {.durable = true}); });
    ++round_;
    for (auto& file : files_) file.writer.reset();
  }

private:
  struct WrittenFile {
    RequestFileName name;
    std::string model{};
    std::string url{};
    std::size_t requests = 0;
    std::size_t bytes = 0;
    /// Only while this process appends to it.
    std::unique_ptr<LineFile> writer{};
  };
  struct Request {
    std::string hash;
    /// Place in `files_`.
    std::size_t file = 0;
  };

  [[nodiscard]] std::string answers_folder() const { return options_.folder + "/answers"; }
  [[nodiscard]] std::string path_of(const RequestFileName& name) const {
    return options_.folder + '/' + name.text();
  }

  void read_round() {
    const auto path = options_.folder + "/round";
    if (!std::filesystem::exists(path)) return;
    const auto text = as_record_error("the round cannot be read", path, [&] { return read_file(path); });
    const auto digits = trim(text);
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), round_);
    if (failure != std::errc{} || end != digits.data() + digits.size() || round_ < 1)
      throw Error(
          error_id::net_record, "the file does not hold the number of a round",
          "Write the number of the current round into it, above those of all files that were carried over",
          path);
  }

  void read_requests() {
    std::vector<RequestFileName> names;
    for (const auto& name : jsonl_names(options_.folder))
      if (const auto read = RequestFileName::read(name)) names.push_back(*read);
    std::sort(names.begin(), names.end());
    for (const auto& name : names) read_requests_of(name);
  }

  void read_requests_of(const RequestFileName& name) {
    const auto path = path_of(name);
    auto text = as_record_error("the requests cannot be read", path, [&] { return read_file(path); });
    if (open_end_of(text) != text.size())
      text = LineFile(path).mended(
          [](std::string_view line) { return !parse_text(line, false).is_discarded(); });
    round_ = std::max(round_, name.round);
    files_.push_back({name});
    auto& file = files_.back();
    file.bytes = text.size();
    for_each_line(text, [&](std::string_view line, std::size_t number) {
      const auto json = parse_text(line, false);
      auto id = string_member(json, "custom_id");
      const auto& body = member_or_null(json, "body");
      const auto refuse = [&](std::string_view what) {
        throw Error(error_id::net_record, what,
                    "Put the file back as it was written; what was asked is known by it alone",
                    line_place(path, number));
      };
      if (id.empty() || !body.is_object()) refuse("the line is not a request");
      auto hash = sha256_hex(dumped(body));
      if (!is_id_of(id, hash)) refuse("the request is not the one that its id stands for");
      if (file.requests == 0) {
        file.model = string_member(body, "model");
        file.url = string_member(json, "url");
      }
      ++file.requests;
      requests_.emplace(std::move(id), Request{std::move(hash), files_.size() - 1});
    });
  }

  /// Whether an id holds digits of the hash of a body.
  [[nodiscard]] static bool is_id_of(std::string_view id, const std::string& hash) {
    const auto digits = parts_of_batch_id(id).digits;
    for (std::size_t choice = 0; choice < BatchId::choices; ++choice)
      if (hash.substr(choice * BatchId::digits, BatchId::digits) == digits) return true;
    return false;
  }

  void read_answers_of(const std::string& path) {
    const auto text = as_record_error("the answers cannot be read", path, [&] { return read_file(path); });
    // A file of something else would fill the screen.
    constexpr std::size_t max_told = 10;
    std::size_t told = 0;
    const auto complain = [&](std::size_t number, const std::string& what) {
      if (++told <= max_told) problems_.push_back(line_place(path, number) + ": " + what);
    };
    for_each_line(text, [&](std::string_view line, std::size_t number) {
      auto answer = read_batch_answer(line);
      if (answer.id.empty())
        return complain(number, "the line is not an answer of a batch: " + answer.response.message);
      if (!asked(answer.id)) complain(number, stranger(answer.id));
      const auto [place, first] = answers_.try_emplace(answer.id);
      if (first || answer.response.ok() || !place->second.response.ok()) place->second = std::move(answer);
    });
    if (told > max_told)
      problems_.push_back(path + ": " + std::to_string(told - max_told) + " more lines of this kind");
  }

  /// What is wrong with an answer whose id belongs to no request.
  [[nodiscard]] std::string stranger(const std::string& id) const {
    const auto stem = parts_of_batch_id(id).stem;
    for (auto near = requests_.lower_bound(std::string(stem)); !stem.empty() && near != requests_.end();
         ++near) {
      if (!near->first.starts_with(stem)) break;
      if (parts_of_batch_id(near->first).stem == stem)
        return "the answer belongs to another body: its id is \"" + id + "\", what was asked is \"" +
               near->first + '"';
    }
    return "nothing was asked with the id \"" + id + '"';
  }

  /// The file that the next request goes to.
  [[nodiscard]] WrittenFile& file_for(const std::string& model, const std::string& url, std::size_t bytes) {
    RequestFileName next{round_, 1};
    for (auto& file : files_) {
      if (file.name.round != round_) continue;
      const bool suits = file.requests == 0 || (file.model == model && file.url == url);
      if (suits && file.requests < options_.max_requests && file.bytes + bytes <= options_.max_bytes)
        return file;
      next.part = std::max(next.part, file.name.part + 1);
    }
    files_.push_back({next});
    return files_.back();
  }

  BatchOptions options_;
  FileDescriptor lock_;
  int round_ = 1;
  /// In order of round and part.
  std::vector<WrittenFile> files_;
  std::map<std::string, Request> requests_;
  std::map<std::string, BatchAnswer> answers_;
  std::vector<std::string> problems_;
};

} // namespace mtmc::detail
