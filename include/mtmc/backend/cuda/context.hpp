#pragma once
/// The device's primary context, which this process may share with an engine of its own.

#include <mtmc/backend/cuda/driver.hpp>
#include <mtmc/core/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// The primary context of one device and a stream of its own in it. The context is retained, never reset, and
/// current only within calls of this library. Once a kernel has crashed or never ended, it is lost for the
/// whole process. May be used from several threads.
class CudaContext {
public:
  /// Throws `Error` (`mtmc.backend.004`) where there is no such device, or it cannot be shared.
  CudaContext(const std::string& library, int ordinal) : driver_(library) {
    if (ordinal < 0 || ordinal >= driver_.devices())
      throw Error(error_id::backend_device,
                  "there is no CUDA device " + std::to_string(ordinal) + "; the driver sees " +
                      std::to_string(driver_.devices()),
                  "Choose one of these, or correct CUDA_VISIBLE_DEVICES")
          .about("CudaBackendOptions::device");
    driver_.demand(driver_.device_get(&device_, ordinal), "cuDeviceGet");
    driver_.demand(driver_.context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
    const Use use(*this);
    constexpr unsigned non_blocking = 1;
    driver_.demand(driver_.stream_create(&stream_, non_blocking), "cuStreamCreate");
  }
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  ~CudaContext() {
    // What waits for a kernel that never ends would never end either.
    if (lost()) return;
    {
      const Use use(*this);
      (void)driver_.stream_destroy(stream_);
    }
    (void)driver_.context_release(device_);
  }

  /// Makes the context current in this thread while it lives.
  class Use {
  public:
    explicit Use(const CudaContext& context) : context_(context) {
      context_.driver().demand(context_.driver().context_push(context_.context_), "cuCtxPushCurrent");
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      CudaHandle popped = nullptr;
      (void)context_.driver().context_pop(&popped);
    }

  private:
    const CudaContext& context_;
  };

  [[nodiscard]] const CudaDriver& driver() const noexcept { return driver_; }
  [[nodiscard]] CudaHandle stream() const noexcept { return stream_; }
  /// As the driver numbers it for mapped memory.
  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] int attribute(DeviceAttribute which) const {
    int value = 0;
    driver_.demand(driver_.device_attribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
  }
  [[nodiscard]] std::string name() const {
    std::array<char, 256> text{};
    driver_.demand(driver_.device_name(text.data(), static_cast<int>(text.size()) - 1, device_),
                   "cuDeviceGetName");
    return text.data();
  }
  /// "GPU-" and the number by which the device is known on this machine, as CUDA_VISIBLE_DEVICES takes it.
  [[nodiscard]] std::string uuid() const {
    std::array<unsigned char, 16> bytes{};
    driver_.demand(driver_.device_uuid(bytes.data(), device_), "cuDeviceGetUuid");
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "GPU";
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i == 0 || (i >= 4 && i <= 10 && i % 2 == 0)) text += '-';
      text += digits[bytes[i] >> 4];
      text += digits[bytes[i] & 15];
    }
    return text;
  }
  [[nodiscard]] std::int64_t memory_bytes() const {
    std::size_t bytes = 0;
    driver_.demand(driver_.device_memory(&bytes, device_), "cuDeviceTotalMem");
    return static_cast<std::int64_t>(bytes);
  }

  /// Notes that the context can never be used again, and why; the first reason stays.
  void lose(const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    if (lost_.empty()) lost_ = reason;
  }
  [[nodiscard]] bool lost() const {
    const std::scoped_lock lock(mutex_);
    return !lost_.empty();
  }
  /// Throws `Error` (`mtmc.backend.004`) if the context is lost.
  void demand_alive() const {
    const std::scoped_lock lock(mutex_);
    if (lost_.empty()) return;
    throw Error(error_id::backend_device, "this process cannot use the CUDA device any more: " + lost_,
                "Replace the process; WorkerEvaluator and CudaEvaluator do so by themselves");
  }

private:
  CudaDriver driver_;
  int device_ = 0;
  CudaHandle context_ = nullptr;
  CudaHandle stream_ = nullptr;
  mutable std::mutex mutex_;
  std::string lost_;
};

/// A visit to the device: its context is current, and alive. Throws `Error` (`mtmc.backend.004`) if it is
/// lost.
struct CudaTurn {
  explicit CudaTurn(CudaContext& visited)
      : context(visited), driver(visited.driver()), stream(visited.stream()), use(alive(visited)) {}
  void demand(CudaCode code, std::string_view function) const { driver.demand(code, function); }

  CudaContext& context;
  const CudaDriver& driver;
  CudaHandle stream;
  CudaContext::Use use;

private:
  [[nodiscard]] static const CudaContext& alive(const CudaContext& context) {
    context.demand_alive();
    return context; // NOLINT(bugprone-return-const-ref-from-parameter): private, called with a constructor's
                    // argument
  }
};

} // namespace mtmc::detail
