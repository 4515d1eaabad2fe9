#pragma once
// Recurrences along rows and columns.

#include "operator.hpp"
#include "reductions.hpp"

namespace generated {

/// A value that is handed on from element to element.
[[nodiscard]] inline Operator scan(Draw& draw) {
  struct Scan {
    std::string name, summary, start, step, low, high;
  };
  const std::vector<Scan> scans{
      {"cumulative_sum", "running sums", "0.0f", "state += @x(i, j);\n@y(i, j) = state;", "", ""},
      {"exclusive_sum", "sums of what stands before each element", "0.0f",
       "@y(i, j) = state;\nstate += @x(i, j);", "", ""},
      {"cumulative_product", "running products", "1.0f", "state *= @x(i, j);\n@y(i, j) = state;", "0.995",
       "1.005"},
      {"running_maximum", "running maxima", "@x(i, 0)", "state = fmaxf(state, @x(i, j));\n@y(i, j) = state;",
       "", ""},
      {"exponential_average", "exponential moving averages", "0.0f",
       "state = 0.9f * state + 0.1f * @x(i, j);\n@y(i, j) = state;", "", ""},
      {"decayed_sum", "sums that decay by given factors", "0.0f",
       "state = state * @z(i, j) + @x(i, j);\n@y(i, j) = state;", "", ""},
      {"running_mean", "means of all elements so far", "0.0f",
       "state += @x(i, j);\n@y(i, j) = state / (float)(j + 1);", "", ""},
      {"cumulative_energy", "running sums of squares, as roots", "0.0f",
       "state += @x(i, j) * @x(i, j);\n@y(i, j) = sqrtf(state);", "", ""},
  };
  const auto chosen = draw.pick(scans);
  const bool columns = draw.chance(0.35);
  Operator made{chosen.name, chosen.summary + (columns ? " down every column" : " along every row")};
  if (columns) made.kind = "column_" + made.kind;
  made.symbols = row_symbols(draw);
  Buffer x{"x", {"M", "N"}, Role::input, "float", chosen.low, chosen.high}, y{"y", {"M", "N"}, Role::output};
  Buffer z{"z", {"M", "N"}, Role::input, "float", "0.5", "0.99"};
  if (columns) x.order = y.order = z.order = {1, 0};
  made.buffers = {x};
  if (chosen.step.find("@z") != std::string::npos) made.buffers.push_back(z);
  made.buffers.push_back(y);
  made.nests = {
      {made.kind, {{"i", "M"}}, "float state = " + chosen.start + ";\n" + looped({{"j", "N"}}, chosen.step)}};
  if (chosen.name == "cumulative_sum" && draw.chance(0.5))
    made.nests[0].body =
        "@y(i, 0) = @x(i, 0);\n" + looped({{"j", "N", "1"}}, "@y(i, j) = @y(i, j - 1) + @x(i, j);");
  if (draw.chance(0.2)) { // something pointwise behind it, in a step of its own
    made.buffers.insert(made.buffers.end() - 1, {"tmp", {"M", "N"}, Role::scratch});
    made.buffers[made.buffers.size() - 2].order = x.order;
    made.nests[0].body = [body = made.nests[0].body]() mutable {
      for (auto at = body.find("@y("); at != std::string::npos; at = body.find("@y("))
        body.replace(at, 2, "@tmp");
      return body;
    }();
    made.nests.push_back({"squash", {{"i", "M"}, {"j", "N"}}, "@y(i, j) = tanhf(0.1f * @tmp(i, j));"});
  }
  made.flops = "2*M*N";
  made.cost = "3*M*N";
  return made;
}

/// One long recurrence, as filters of signals are.
[[nodiscard]] inline Operator long_recurrence(Draw& draw) {
  const auto which = draw.below(draw.cuda() ? 3 : 4);
  const std::vector<std::string> kinds{"biquad_filter", "tridiagonal_sweep", "smoothed_and_roots",
                                       "prefix_sum"};
  const std::vector<std::string> summaries{
      "a recursive filter of second order over every channel", "forward elimination of tridiagonal systems",
      "every row smoothed by a recurrence, and the roots of its elements",
      "prefix sums of one long sequence"};
  Operator made{kinds[which], summaries[which]};
  if (which == 3) {
    made.symbols = {{"N", {500000, 1000000, 2000000, 3000000}}};
    made.buffers = {{"x", {"N"}}, {"y", {"N"}, Role::output}};
    const bool weighted = draw.chance(0.5);
    made.nests = {
        {made.kind,
         {},
         "float state = 0.0f;\n" +
             looped({{"i", "N"}}, std::string("state += ") + (weighted ? "0.5f * @x(i) * @x(i)" : "@x(i)") +
                                      ";\n@y(i) = state;")}};
    made.flops = weighted ? "3*N" : "N";
    made.cost = "3*N";
    return made;
  }
  made.symbols = row_symbols(draw);
  const bool turned = draw.chance(0.4);
  const std::vector<std::size_t> order = turned ? std::vector<std::size_t>{1, 0} : std::vector<std::size_t>{};
  Buffer x{"x", {"M", "N"}}, y{"y", {"M", "N"}, Role::output};
  x.order = y.order = order;
  made.cost = "6*M*N";
  if (which == 0) {
    made.buffers = {x, y};
    made.scalars = {{"b0", "0.2"}, {"b1", "0.3"}, {"a1", "0.4"}, {"a2", "0.1"}};
    made.nests = {
        {made.kind,
         {{"i", "M"}},
         "float last = 0.0f;\nfloat before = 0.0f;\nfloat input = 0.0f;\n" +
             looped({{"j", "N"}}, "const float v = b0 * @x(i, j) + b1 * input + a1 * last - a2 * "
                                  "before;\ninput = @x(i, j);\nbefore = last;\nlast = v;\n@y(i, j) = v;")}};
    made.flops = "7*M*N";
  } else if (which == 2) {
    Buffer roots{"roots", {"M", "N"}, Role::output};
    roots.order = order;
    made.buffers = {x, y, roots};
    made.nests = {{made.kind,
                   {{"i", "M"}},
                   "@y(i, 0) = @x(i, 0);\n@roots(i, 0) = sqrtf(fabsf(@x(i, 0)));\n" +
                       looped({{"j", "N", "1"}}, "@y(i, j) = 0.75f * @y(i, j - 1) + 0.25f * @x(i, "
                                                 "j);\n@roots(i, j) = sqrtf(fabsf(@x(i, j)));")}};
    made.flops = "6*M*N";
  } else {
    Buffer lower{"lower", {"M", "N"}, Role::input, "float", "-0.4", "0.4"},
        upper{"upper", {"M", "N"}, Role::input, "float", "-0.4", "0.4"};
    lower.order = upper.order = order;
    made.buffers = {lower, upper, x, y};
    made.nests = {
        {made.kind,
         {{"i", "M"}},
         "float ratio = 0.0f;\nfloat last = 0.0f;\n" +
             looped({{"j", "N"}},
                    "const float pivot = 1.0f - @lower(i, j) * ratio;\nlast = (@x(i, j) - @lower(i, j) * "
                    "last) / pivot;\nratio = @upper(i, j) / pivot;\n@y(i, j) = last;")}};
    made.flops = "6*M*N";
    made.cost = "12*M*N";
  }
  return made;
}

} // namespace generated
