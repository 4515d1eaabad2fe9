#pragma once
// Reductions of rows and columns, and what is normalised by them.

#include "operator.hpp"
#include "products.hpp"

namespace generated {

/// Extents of a matrix whose rows are gone through.
[[nodiscard]] inline std::vector<Symbol> row_symbols(const Draw& draw) {
  return {{"M", by_language(draw, {32, 64, 128, 200, 256, 500, 512, 1000, 1024, 2048, 4096, 10000},
                            {512, 1024, 2048, 4096, 8192, 16384, 65536})},
          {"N", by_language(draw, {32, 64, 100, 128, 256, 300, 512, 1000, 1024, 2048, 4096, 8192},
                            {64, 128, 256, 500, 512, 1000, 1024, 2048, 4096})}};
}

/// A reduction of each row.
[[nodiscard]] inline Operator row_reduce(Draw& draw) {
  struct Reduction {
    std::string name, start, step, result;
  };
  const std::vector<Reduction> reductions{
      {"sum", "0.0f", "s += v;", "s"},
      {"mean", "0.0f", "s += v;", "s / (float)N"},
      {"norm", "0.0f", "s += v * v;", "sqrtf(s)"},
      {"mean_square", "0.0f", "s += v * v;", "s / (float)N"},
      {"absolute_sum", "0.0f", "s += fabsf(v);", "s"},
      {"max", "@x(i, 0)", "if (v > s) {\ns = v;\n}", "s"},
      {"min", "@x(i, 0)", "s = v < s ? v : s;", "s"},
      {"absolute_max", "0.0f", "s = fmaxf(s, fabsf(v));", "s"},
      {"sum_exp", "0.0f", "s += expf(v);", "s"},
      {"log_sum_exp", "0.0f", "s += expf(v);", "logf(s)"},
      {"positive_sum", "0.0f", "if (v > 0.0f) {\ns += v;\n}", "s"},
  };
  const auto chosen = draw.pick(reductions);
  const bool columns = draw.chance(0.35);
  Operator made{(columns ? "column_" : "row_") + chosen.name,
                chosen.name + " of every " + (columns ? "column" : "row") + " of a matrix"};
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  made.symbols = row_symbols(draw);
  Buffer x{"x", {"M", "N"}};
  if (columns) x.order = {1, 0};
  x.padding = drawn_padding(draw);
  made.buffers = {x, {"y", {"M"}, Role::output}};
  const auto start = draw.chance(0.5) ? "float s = " + chosen.start + ";\n" : "";
  std::string body;
  if (!start.empty()) {
    body = start + looped({{"j", "N"}}, "const float v = @x(i, j);\n" + chosen.step) +
           "@y(i) = " + chosen.result + ";";
  } else {
    const auto direct = [](std::string text) {
      return with_word(with_word(text, "v", "@x(i, j)"), "s", "@y(i)");
    };
    body = "@y(i) = " + chosen.start + ";\n" + looped({{"j", "N"}}, direct(chosen.step));
    if (chosen.result != "s") body += "@y(i) = " + direct(chosen.result) + ";";
  }
  made.nests = {{made.kind, {{"i", "M"}}, body}};
  made.flops = "M*N";
  made.cost = chosen.name.find("exp") == std::string::npos ? "M*N" : "8*M*N";
  return made;
}

/// Softmax or its logarithm, of rows or columns, in one step or several.
[[nodiscard]] inline Operator softmax(Draw& draw) {
  const bool logarithm = draw.chance(0.35), columns = draw.chance(0.25), steps = draw.chance(0.3);
  Operator made{std::string(columns ? "column_" : "row_") + (logarithm ? "log_softmax" : "softmax"), ""};
  made.summary =
      std::string(logarithm ? "log-softmax" : "softmax") + " of every " + (columns ? "column" : "row");
  made.symbols = row_symbols(draw);
  made.buffers = {{"x", {"M", "N"}}, {"y", {"M", "N"}, Role::output}};
  if (columns)
    for (auto& buffer : made.buffers) buffer.order = {1, 0};
  std::string scaled = "@x(i, j)";
  if (draw.chance(0.3)) {
    made.scalars = {{"factor", draw.pick({"0.125", "0.5", "2.0"})}};
    scaled = draw.chance(0.5) ? "factor * @x(i, j)" : "@x(i, j) * factor";
  }
  const auto first = with_word(scaled, "j", "0");
  const std::string peak =
      "float largest = " + first + ";\n" +
      looped({{"j", "N", "1"}}, draw.chance(0.5)
                                    ? "if (" + scaled + " > largest) {\nlargest = " + scaled + ";\n}"
                                    : "largest = fmaxf(largest, " + scaled + ");");
  if (steps) {
    made.buffers.insert(made.buffers.begin() + 1,
                        {{"top", {"M"}, Role::scratch}, {"denom", {"M"}, Role::scratch}});
    made.nests = {{"row_max", {{"i", "M"}}, peak + "@top(i) = largest;"},
                  {"row_sum_exp",
                   {{"i", "M"}},
                   "float total = 0.0f;\n" +
                       looped({{"j", "N"}}, "total += expf(" + scaled + " - @top(i));") +
                       "@denom(i) = total;"},
                  {"normalise",
                   {{"i", "M"}, {"j", "N"}},
                   logarithm ? "@y(i, j) = " + scaled + " - @top(i) - logf(@denom(i));"
                             : "@y(i, j) = expf(" + scaled + " - @top(i)) / @denom(i);"}};
  } else {
    const bool stored = !logarithm && draw.chance(0.5);
    std::string body = peak + "float total = 0.0f;\n";
    if (stored)
      body += looped({{"j", "N"}}, "@y(i, j) = expf(" + scaled + " - largest);\ntotal += @y(i, j);") +
              looped({{"j", "N"}}, draw.chance(0.5) ? "@y(i, j) /= total;" : "@y(i, j) = @y(i, j) / total;");
    else
      body += looped({{"j", "N"}}, "total += expf(" + scaled + " - largest);") +
              looped({{"j", "N"}}, logarithm ? "@y(i, j) = " + scaled + " - largest - logf(total);"
                                             : "@y(i, j) = expf(" + scaled + " - largest) / total;");
    made.nests = {{made.kind, {{"i", "M"}}, body}};
  }
  made.flops = "5*M*N";
  made.cost = logarithm ? "22*M*N" : "16*M*N";
  return made;
}

/// Layer, root-mean-square or Euclidean normalisation of rows.
[[nodiscard]] inline Operator row_norm(Draw& draw) {
  const auto which = draw.below(4);
  const bool affine = draw.chance(0.6), steps = draw.chance(0.25), columns = draw.chance(0.2);
  const std::vector<std::string> kinds{"layer_norm", "rms_norm", "l2_normalise", "standardise"};
  Operator made{kinds[which], ""};
  made.summary =
      kinds[which] + (columns ? " of every column" : " of every row") + (affine ? ", with a scale" : "");
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  made.symbols = row_symbols(draw);
  const bool centred = which == 0 || which == 3;
  Buffer x{"x", {"M", "N"}}, y{"y", {"M", "N"}, Role::output};
  if (columns) x.order = y.order = {1, 0};
  if (!columns) x.padding = drawn_padding(draw);
  made.buffers = {x};
  if (affine) made.buffers.push_back({"gamma", {"N"}});
  if (affine && centred) made.buffers.push_back({"beta", {"N"}});
  const std::string epsilon = draw.pick({"1e-5f", "1e-6f", "1e-3f"});
  const std::vector<Axis> row{{"j", "N"}};
  std::string statistics;
  if (centred)
    statistics += "float mean = 0.0f;\n" + looped(row, "mean += @x(i, j);") + "mean /= (float)N;\n";
  const auto centre = std::string(centred ? "(@x(i, j) - mean)" : "@x(i, j)");
  statistics +=
      "float variance = 0.0f;\n" + (centred && draw.chance(0.6)
                                        ? looped(row, "const float d = @x(i, j) - mean;\nvariance += d * d;")
                                        : looped(row, "variance += " + centre + " * " + centre + ";"));
  const std::string inside = which == 2 ? "variance + " + epsilon : "variance / (float)N + " + epsilon;
  const std::string scale = affine ? " * @gamma(j)" : "", shift = affine && centred ? " + @beta(j)" : "";
  if (steps) {
    if (centred) made.buffers.push_back({"means", {"M"}, Role::scratch});
    made.buffers.push_back({"factors", {"M"}, Role::scratch});
    made.nests = {
        {"row_statistics",
         {{"i", "M"}},
         statistics + (centred ? "@means(i) = mean;\n" : "") + "@factors(i) = 1.0f / sqrtf(" + inside + ");"},
        {"apply",
         {{"i", "M"}, {"j", "N"}},
         "@y(i, j) = " + with_word(centre, "mean", "@means(i)") + " * @factors(i)" + scale + shift + ";"}};
  } else if (draw.chance(0.6)) {
    made.nests = {{made.kind,
                   {{"i", "M"}},
                   statistics + "const float factor = 1.0f / sqrtf(" + inside + ");\n" +
                       looped(row, "@y(i, j) = " + centre + " * factor" + scale + shift + ";")}};
  } else {
    made.nests = {{made.kind,
                   {{"i", "M"}},
                   statistics + looped(row, "@y(i, j) = " + centre + " / sqrtf(" + inside + ")" + scale +
                                                shift + ";")}};
  }
  made.buffers.push_back(y);
  made.flops = "6*M*N";
  made.cost = "5*M*N";
  return made;
}

} // namespace generated
