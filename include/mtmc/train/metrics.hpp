#pragma once
/// How training goes, written to a file as it does.
///
/// **The file.** JSON Lines, UTF-8, one object an update or an epoch. `kind` says which: lines of `ppo` have
/// the members of `PpoProgress`, lines of `imitation` those of `ImitationProgress` under their names.

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/train/imitation.hpp>
#include <mtmc/train/ppo.hpp>
#include <mtmc/train/training_files.hpp>

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

inline void visit_fields(JsonFields& visit, PpoProgress& noun) {
  visit.required("steps", noun.steps);
  visit.required("episodes", noun.episodes);
  visit.required("mean_return", noun.mean_return);
  visit.required("mean_length", noun.mean_length);
  visit.required("divergence", noun.divergence);
  visit.required("clipped", noun.clipped);
  visit.required("entropy", noun.entropy);
  visit.required("explained_variance", noun.explained_variance);
  visit.required("first_ratio_error", noun.first_ratio_error);
}
inline void visit_fields(JsonFields& visit, ImitationError& noun) {
  visit.required("divergence", noun.divergence);
  visit.required("agreement", noun.agreement);
  visit.required("value_error", noun.value_error);
}
inline void visit_fields(JsonFields& visit, ImitationProgress& noun) {
  visit.required("round", noun.round);
  visit.required("epoch", noun.epoch);
  visit.required("states", noun.states);
  visit.required("training", noun.training);
  visit.required("held_out", noun.held_out);
}

} // namespace detail

/// Appends to a file of metrics. One writer a file at a time.
class MetricsFile {
public:
  /// Opens the file, or creates it, and cuts off a last line that a writer left unfinished. Throws `Error`
  /// (`mtmc.train.004`) where that fails.
  explicit MetricsFile(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (!file_) detail::training_file_error("the metrics cannot be opened", path_, errno);
    const std::string known = detail::content_of(file_.get());
    const std::size_t whole = known.rfind('\n') + 1; // 0 where there is no line end
    if (whole < known.size() && ::ftruncate(file_.get(), static_cast<off_t>(whole)) != 0)
      detail::training_file_error("the metrics cannot be shortened", path_, errno);
  }

  /// Appends a line for an update. Throws `Error` (`mtmc.train.004`).
  void append(const PpoProgress& progress) { append(progress, "ppo"); }
  /// Appends a line for an epoch of imitation. Throws `Error` (`mtmc.train.004`).
  void append(const ImitationProgress& progress) { append(progress, "imitation"); }

private:
  template <class Progress> void append(const Progress& progress, const char* kind) {
    detail::Json line = progress;
    line["kind"] = kind;
    if (const int error = detail::write_all(file_.get(), line.dump() + '\n'); error != 0)
      detail::training_file_error("the metrics cannot be written", path_, error);
  }

  std::string path_;
  FileDescriptor file_;
};

/// What a file of metrics holds.
struct TrainingMetrics {
  std::vector<ImitationProgress> imitation{}; ///< one an epoch
  std::vector<PpoProgress> ppo{};             ///< one an update
};

/// Reads one, without a last line that is unfinished. Where a training went on from a checkpoint, what it
/// does again counts, and what was written the first time does not. Throws `Error` that names the line where
/// one is damaged (`mtmc.train.001`), or where the file cannot be read (`mtmc.train.004`).
[[nodiscard]] inline TrainingMetrics read_metrics(const std::string& path) {
  const std::string text = read_training_file(path);
  TrainingMetrics metrics;
  int number = 0;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string place = path + ", line " + std::to_string(++number);
    try {
      const detail::Json line = parse_json(std::string_view(text).substr(at, end - at), place);
      const detail::Json kind = line.is_object() ? line.value("kind", detail::Json()) : detail::Json();
      if (kind == "ppo") {
        const auto one = line.get<PpoProgress>();
        while (!metrics.ppo.empty() && metrics.ppo.back().steps >= one.steps) metrics.ppo.pop_back();
        metrics.ppo.push_back(one);
      } else if (kind == "imitation") {
        const auto one = line.get<ImitationProgress>();
        while (!metrics.imitation.empty() && metrics.imitation.back().epoch >= one.epoch)
          metrics.imitation.pop_back();
        metrics.imitation.push_back(one);
      } else {
        throw Error(error_id::train_data, "\"kind\" is neither ppo nor imitation", "Remove the line");
      }
    } catch (const Error& error) {
      throw Error(error_id::train_data, std::string("a line of metrics is damaged: ") + error.message(),
                  "Remove the line", place);
    }
  }
  return metrics;
}

} // namespace mtmc
