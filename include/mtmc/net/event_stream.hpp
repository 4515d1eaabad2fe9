#pragma once
/// Server-sent events: how answers are streamed.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Cuts a stream into the data of its events, however the bytes arrive. Lines end in LF or CRLF; comments and
/// fields other than `data` are left out; several `data` lines of one event are joined by line ends.
class EventStream {
public:
  /// Takes the next bytes and calls `event(std::string)` for each event that is complete. Events larger than
  /// 16 MiB are given as they are so far.
  template <class Event> void feed(std::string_view bytes, Event&& event) {
    for (const char c : bytes) {
      if (c != '\n') {
        line_ += c;
        if (line_.size() > largest) end_line(event);
        continue;
      }
      if (line_.ends_with('\r')) line_.pop_back();
      end_line(event);
    }
  }
  /// What is left at the end: some servers do not end their last event.
  template <class Event> void finish(Event&& event) {
    if (line_.ends_with('\r')) line_.pop_back();
    if (!line_.empty()) end_line(event);
    end_event(event);
  }

private:
  static constexpr std::size_t largest = std::size_t{16} << 20;

  template <class Event> void end_line(Event& event) {
    const std::string_view line = line_;
    if (line.empty()) {
      end_event(event);
    } else if (line.starts_with("data:")) {
      auto value = line.substr(5);
      if (value.starts_with(' ')) value.remove_prefix(1);
      if (has_data_) data_ += '\n';
      data_ += value;
      has_data_ = true;
      if (data_.size() > largest) end_event(event);
    }
    line_.clear();
  }
  template <class Event> void end_event(Event& event) {
    if (has_data_) event(std::exchange(data_, {}));
    has_data_ = false;
  }

  std::string line_;
  std::string data_;
  bool has_data_ = false;
};

} // namespace mtmc
