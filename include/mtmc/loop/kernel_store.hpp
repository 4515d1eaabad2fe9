#pragma once
/// The kernels and answers of a run as files that a person can open. A candidate is stored before it is
/// compiled, so that whatever comes of it, its text is there.

#include <mtmc/core/kernel.hpp>
#include <mtmc/loop/run_folder.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Stores texts once, by content: a kernel in the folder `kernels`, any other text in the folder `texts`. A
/// file is called after the first 16 digits of the id, or of the SHA-256. Safe to use from several threads of
/// one process.
class KernelStore {
public:
  /// `folder` is the run's folder; it is created with the first text. With `durable`, a stored text is on the
  /// disk when its call returns.
  explicit KernelStore(std::string folder, bool durable = false)
      : folder_{std::move(folder)}, durable_{durable} {}

  /// Where a kernel lies, relative to the run's folder: "kernels/0123456789abcdef.cu".
  [[nodiscard]] static std::string kernel_file(std::string_view id, const Language& language) {
    return "kernels/" + std::string(id.substr(0, name_length)) + language.file_extension();
  }
  /// Where an answer lies, relative to the run's folder.
  [[nodiscard]] static std::string text_file(std::string_view id) {
    return "texts/" + std::string(id.substr(0, name_length)) + ".txt";
  }

  /// Stores a kernel unless it is there already, and answers its id. Throws `Error` (`mtmc.journal.001`).
  std::string save(const Kernel& kernel) {
    auto id = kernel.id();
    save(kernel, id);
    return id;
  }
  /// Same, for a kernel whose id is known.
  void save(const Kernel& kernel, std::string_view id) {
    save_file(kernel_file(id, kernel.language), kernel.source);
  }
  /// Stores an answer unless it is there already, and answers its id. Throws `Error` (`mtmc.journal.001`).
  std::string save_text(std::string_view text) {
    auto id = sha256_hex(text);
    save_file(text_file(id), text);
    return id;
  }

  /// The kernel of that id. Throws `Error` (`mtmc.journal.002`) if it is missing or was changed.
  [[nodiscard]] Kernel load(std::string_view id, const Language& language) const {
    const auto path = folder_ + '/' + kernel_file(id, language);
    Kernel kernel{language, detail::read_run_file(path)};
    if (kernel.id() != id) changed(path);
    return kernel;
  }
  /// The answer of that id. Throws `Error` (`mtmc.journal.002`) if it is missing or was changed.
  [[nodiscard]] std::string load_text(std::string_view id) const {
    const auto path = folder_ + '/' + text_file(id);
    auto text = detail::read_run_file(path);
    if (sha256_hex(text) != id) changed(path);
    return text;
  }

private:
  static constexpr std::size_t name_length = 16;

  [[noreturn]] static void changed(const std::string& path) {
    throw Error(error_id::journal_read, "the file's content is not what the journal says",
                "Restore the file; copies may be edited, but not those in the run's folder", path);
  }

  void save_file(const std::string& name, std::string_view text) {
    const std::lock_guard lock{mutex_};
    if (stored_.contains(name)) return;
    const auto path = folder_ + '/' + name;
    // An earlier session may have put it there; after a power failure perhaps only its name.
    if (detail::file_size(path) != static_cast<std::int64_t>(text.size())) {
      const auto part = folder_ + '/' + name.substr(0, name.find('/'));
      if (!made_.contains(part)) detail::make_run_folder(part);
      made_.insert(part);
      detail::write_run_file(path, text, durable_);
    }
    stored_.insert(name);
  }

  std::string folder_;
  bool durable_;
  std::mutex mutex_;
  std::set<std::string> stored_;
  std::set<std::string> made_;
};

} // namespace mtmc
