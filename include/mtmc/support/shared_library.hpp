#pragma once

#include <mtmc/requirements.hpp>

#include <dlfcn.h>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Why a shared library or a symbol in it could not be opened; `what()` quotes the loader.
class SharedLibraryError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// How a shared library is opened.
struct SharedLibraryOptions {
  /// Leave it in memory when the last owner goes. For libraries that start threads or register exit handlers,
  /// whose code must not disappear under them, as drivers of devices do.
  bool keep_loaded = false;
};

/// A shared library opened at run time, closed with its owner. Its symbols stay private to it (RTLD_LOCAL),
/// and all its own references are resolved when it opens (RTLD_NOW), so that a broken installation is noticed
/// at once. Move-only.
class SharedLibrary {
public:
  /// Opens the first of `names` that can be opened: names as the loader searches for them ("libm.so.6"),
  /// or paths. Runs the library's initialisers. Throws SharedLibraryError with the loader's reason for every
  /// name.
  [[nodiscard]] static SharedLibrary open(std::span<const std::string> names,
                                          const SharedLibraryOptions& options = {}) {
    std::string reasons;
    for (const std::string& name : names) {
      if (void* handle =
              ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (options.keep_loaded ? RTLD_NODELETE : 0)))
        return SharedLibrary{handle, name};
      const char* reason = ::dlerror();
      if (!reasons.empty()) reasons += "; ";
      reasons += reason != nullptr ? std::string{reason} : name + ": unknown reason";
    }
    if (names.empty()) throw SharedLibraryError{"no shared library was named; give at least one name to try"};
    throw SharedLibraryError{"no shared library could be opened: " + reasons +
                             "; install it, or name its folder in LD_LIBRARY_PATH or /etc/ld.so.conf.d"};
  }

  /// Takes over what the other holds; the other is empty.
  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_{std::exchange(other.handle_, nullptr)}, name_{std::move(other.name_)} {}
  /// Takes over what the other holds.
  SharedLibrary& operator=(SharedLibrary&& other) noexcept {
    if (this != &other) {
      close();
      handle_ = std::exchange(other.handle_, nullptr);
      name_ = std::move(other.name_);
    }
    return *this;
  }
  ~SharedLibrary() { close(); }

  /// The name under which it was found.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// The address of a function or variable of type `T`, as in `find<int(int)>("abs")`, or null if the library
  /// has no such symbol. Whether it really is a `T` cannot be checked. Valid as long as the library is open.
  template <class T> [[nodiscard]] T* find(const std::string& symbol_name) const noexcept {
    if (handle_ == nullptr) return nullptr;
    return reinterpret_cast<T*>(::dlsym(handle_, symbol_name.c_str()));
  }

  /// Like `find`, but throws SharedLibraryError if the library has no such symbol.
  template <class T> [[nodiscard]] T* symbol(const std::string& symbol_name) const {
    if (T* found = find<T>(symbol_name)) return found;
    throw SharedLibraryError{name_ + " has no symbol " + symbol_name +
                             "; another version of the library is needed"};
  }

private:
  SharedLibrary(void* handle, std::string name) noexcept : handle_{handle}, name_{std::move(name)} {}

  void close() noexcept {
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  void* handle_ = nullptr;
  std::string name_;
};

} // namespace mtmc
