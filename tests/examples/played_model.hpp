#pragma once
/// The part of a language model in a run over three tasks of examples/tasks/cpu, played by a script: right
/// and much faster kernels, and everything that can go wrong on the way.

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../net/fake_server.hpp"

namespace played {

// ---- kernels: each new best is several times faster than the one before it

/// The four launches as one, and the exponential by a polynomial.
inline const std::string chain_fused = R"cpp(#include <bit>
#include <cstdint>
#include <limits>

static inline float exponential(float value) {
  const float x = value < -87.0f ? -87.0f : value > 88.72f ? 88.72f : value;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::int32_t exponent = static_cast<std::int32_t>(n) + 127;
  const float power = p * std::bit_cast<float>((exponent > 254 ? 254 : exponent) << 23) * (exponent > 254 ? 2.0f : 1.0f);
  return value > 88.72f ? std::numeric_limits<float>::infinity() : value < -87.0f ? 0.0f : power;
}

void gate(const float* x, const float* bias, const float* up, float factor, float* y, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    const float v = x[i] + bias[i];
    y[i] = factor * (v / (1.0f + exponential(-v)) * up[i]);
  }
}
//@ launch gate(x, bias, up, factor, y, N)
)cpp";

/// One launch as well, but one element at a time and in double precision: correct, and far slower.
inline const std::string chain_slow = R"cpp(#include <cmath>

void gate(const float* x, const float* bias, const float* up, float factor, float* y, int n) {
  for (int i = 0; i < n; ++i) {
    const float v = x[i] + bias[i];
    const double e = std::exp(-static_cast<double>(v));
    y[i] = factor * (static_cast<float>(v / (1.0 + e)) * up[i]);
  }
}
//@ launch gate(x, bias, up, factor, y, N)
)cpp";

/// Forgets the bias.
inline const std::string chain_wrong = R"cpp(#include <cmath>

void gate(const float* x, const float* up, float factor, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = factor * (x[i] / (1.0f + std::exp(-x[i])) * up[i]);
}
//@ launch gate(x, up, factor, y, N)
)cpp";

inline const std::string chain_not_declared = R"cpp(#include <cmath>

void gate(const float* x, const float* up, float factor, float* y, int n) {
  for (int i = 0; i < n; i += TILE) y[i] = factor * (x[i] / (1.0f + std::exp(-x[i])) * up[i]);
}
//@ launch gate(x, up, factor, y, N)
)cpp";

/// The exponential by a polynomial, in loops that become vectors.
inline const std::string softmax_vectors = R"cpp(#include <bit>
#include <cstdint>

static inline float exponential(float value) {
  const float x = value < -87.0f ? -87.0f : value;
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::int32_t exponent = static_cast<std::int32_t>(n) + 127;
  return value < -87.0f ? 0.0f : p * std::bit_cast<float>(exponent << 23);
}

void softmax(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    const float* row = in + i * N;
    float* result = out + i * N;
    float largest = row[0];
#pragma omp simd reduction(max : largest)
    for (int j = 1; j < N; ++j) largest = row[j] > largest ? row[j] : largest;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < N; ++j) {
      const float e = exponential(row[j] - largest);
      result[j] = e;
      sum += e;
    }
    const float factor = 1.0f / sum;
#pragma omp simd
    for (int j = 0; j < N; ++j) result[j] *= factor;
  }
}
//@ launch softmax(in, out, M, N)
)cpp";

/// Row by row, the neighbourhood in the outer loops.
inline const std::string stencil_rows =
    R"cpp(void stencil2d(const float* in, const float* weight, float* out, int H, int W, int R) {
  const int side = 2 * R + 1;
  for (int y = 0; y < H; ++y) {
    if (y < R || y >= H - R) {
      for (int x = 0; x < W; ++x) out[y * W + x] = in[y * W + x];
      continue;
    }
    for (int x = 0; x < W; ++x) out[y * W + x] = x < R || x >= W - R ? in[y * W + x] : 0.0f;
    for (int dy = -R; dy <= R; ++dy)
      for (int dx = -R; dx <= R; ++dx) {
        const float factor = weight[(dy + R) * side + dx + R];
        const float* from = in + (y + dy) * W + dx;
        float* to = out + y * W;
#pragma omp simd
        for (int x = R; x < W - R; ++x) to[x] += from[x] * factor;
      }
  }
}
//@ launch stencil2d(in, weight, out, H, W, R)
)cpp";

// ---- answers

/// What happens to one request.
using Turn = std::function<void(const fake::Request&, fake::Connection&)>;

inline std::string fenced(const std::string& code) {
  return "This makes it faster.\n```cpp\n" + code + "```\n";
}

/// The events of an answer that streams, up to the end of its text.
inline std::vector<std::string> events_of(const std::string& text) {
  std::vector<std::string> events;
  constexpr std::size_t piece = 400;
  for (std::size_t at = 0; at < text.size(); at += piece)
    events.push_back(
        nlohmann::json{{"choices", {{{"index", 0}, {"delta", {{"content", text.substr(at, piece)}}}}}}}
            .dump());
  return events;
}

/// A whole answer. Tokens are what their length makes them.
inline Turn says(const std::string& text, const std::string& finish = "stop",
                 const nlohmann::json& delta = nlohmann::json::object()) {
  return [=](const fake::Request& request, fake::Connection& connection) {
    auto events = events_of(text);
    events.push_back(
        nlohmann::json{{"choices", {{{"index", 0}, {"delta", delta}, {"finish_reason", finish}}}}}.dump());
    const auto prompt = static_cast<std::int64_t>(request.body.size() / 4);
    const nlohmann::json usage{{"prompt_tokens", prompt},
                               {"completion_tokens", 20 + text.size() / 3},
                               {"prompt_tokens_details", {{"cached_tokens", prompt / 2}}}};
    events.push_back(nlohmann::json{{"choices", nlohmann::json::array()}, {"usage", usage}}.dump());
    events.emplace_back("[DONE]");
    connection.answer_events(events, 1000);
  };
}
inline Turn kernel(const std::string& code) { return says(fenced(code)); }
inline Turn refuses(const std::string& why) { return says("", "stop", {{"refusal", why}}); }

/// The beginning of an answer, after which the connection breaks, or nothing more comes.
inline Turn breaks_off(const std::string& text, bool hangs = false) {
  return [=](const fake::Request&, fake::Connection& connection) {
    connection.begin_chunks(200, {{"Content-Type", "text/event-stream"}});
    for (const auto& event : events_of(text)) connection.chunk("data: " + event + "\n\n");
    if (hangs) connection.hang();
    connection.close();
  };
}
inline Turn never_answers() {
  return [](const fake::Request&, fake::Connection& connection) { connection.hang(); };
}
inline Turn fails(int status, const std::string& message, std::vector<mtmc::HttpHeader> headers = {}) {
  return [=](const fake::Request&, fake::Connection& connection) {
    connection.answer(status, nlohmann::json{{"error", {{"message", message}}}}.dump(), headers);
  };
}
inline Turn page(int status) {
  return [=](const fake::Request&, fake::Connection& connection) { connection.answer_html(status); };
}

/// What is said about each task, in the order in which it is asked.
inline std::map<std::string, std::vector<Turn>> script() {
  const auto rows = fenced(stencil_rows);
  const auto vectors = fenced(softmax_vectors);
  return {
      {"elementwise_chain",
       {
           fails(429, "slow down", {{"Retry-After", "1"}}),
           kernel(chain_fused),
           kernel(chain_not_declared), // and its repair:
           kernel(chain_wrong),
           kernel(chain_slow),
           kernel(chain_fused), // unchanged
           refuses("No more of this."),
           refuses("Nor of that."),
       }},
      {"softmax",
       {
           says(vectors.substr(0, vectors.size() / 2), "length"),
           says(vectors.substr(vectors.size() / 2)), // the rest
           never_answers(), fails(500, "internal error"), page(502),
           kernel("#include <cmath>\nvoid softmax(const float* in, float* out, int M, int N) {\n"
                  "  // ... rest of the kernel unchanged ...\n}\n//@ launch softmax(in, out, M, N)\n"),
           says("I have left nothing out."), // the repair
           says("```cpp\n#include <cmath>\nvoid softmax(", "length"),
           says("const float* in", "length"), // the rest, cut again
           says("I give up."),                // the repair
           kernel(softmax_vectors),           // unchanged
           refuses("I cannot help with that."),
           says("Loop tiling improves locality. Would you like to see it?"),
           says("There is nothing to be gained here."), // the repair
       }},
      {"stencil2d",
       {
           fails(500, "out of memory", {{"x-should-retry", "false"}}), page(200),
           breaks_off(rows.substr(0, rows.size() / 3)), breaks_off(rows.substr(0, rows.size() / 2), true),
           kernel(stencil_rows), fails(503, "overloaded"), refuses("No."), says("Nothing comes to my mind."),
           says("Really nothing."), // the repair
           kernel("int main() {}\n"),
           kernel("int main() { return 0; }\n"), // the repair
       }},
  };
}

/// Gives the answers of a script, each task's in their order.
class Model {
public:
  explicit Model(std::map<std::string, std::vector<Turn>> script) : script_(std::move(script)) {}

  void operator()(const fake::Request& request, fake::Connection& connection) {
    const auto asked = nlohmann::json::parse(request.body);
    const std::string text = asked["messages"][1]["content"];
    const auto name = text.substr(text.find("# Task\n") + 7);
    auto turn = next(name.substr(0, name.find(':')));
    turn(request, connection);
  }
  /// Answers that nobody asked for, and questions without an answer.
  [[nodiscard]] std::size_t left() const {
    const std::scoped_lock lock(mutex_);
    std::size_t count = unanswered_;
    for (const auto& [name, turns] : script_) count += turns.size();
    return count;
  }

private:
  [[nodiscard]] Turn next(const std::string& task) {
    const std::scoped_lock lock(mutex_);
    auto& turns = script_[task];
    if (turns.empty()) {
      ++unanswered_;
      return fails(400, "the script has no more answers for " + task);
    }
    auto turn = std::move(turns.front());
    turns.erase(turns.begin());
    return turn;
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Turn>> script_;
  std::size_t unanswered_ = 0;
};

} // namespace played
