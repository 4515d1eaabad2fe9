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
                            {32, 48, 64, 128, 256, 500, 512, 1000, 1024, 2048, 4096})}};
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

/// A reduction of both dimensions around the middle one, or of the middle one.
[[nodiscard]] inline Operator middle_reduce(Draw& draw) {
  const bool middle = draw.chance(0.5), squares = draw.chance(0.4);
  Operator made{std::string(middle ? "middle_" : "outer_") + (squares ? "mean_square" : "mean"), ""};
  made.summary = std::string(squares ? "mean square" : "mean") +
                 (middle ? " over the middle dimension of a tensor"
                         : " over the first and the last dimension of a tensor");
  made.symbols = {{"P", by_language(draw, {8, 16, 32, 64}, {8, 16, 32, 64})},
                  {"M", by_language(draw, {32, 64, 128, 200}, {128, 256, 512})},
                  {"N", by_language(draw, {32, 64, 128, 300, 512}, {128, 256, 512, 1000})}};
  made.buffers = {{"x", {"P", "M", "N"}}};
  const std::string term = squares ? "@x(b, i, j) * @x(b, i, j)" : "@x(b, i, j)";
  if (middle) {
    made.buffers.push_back({"y", {"P", "N"}, Role::output});
    made.nests =
        sums(draw, {made.kind, {{"b", "P"}, {"j", "N"}}, {{"i", "M"}}, "@y(b, j)", term, "sum / (float)M"});
  } else {
    made.buffers.push_back({"y", {"M"}, Role::output});
    made.nests = sums(
        draw, {made.kind, {{"i", "M"}}, {{"b", "P"}, {"j", "N"}}, "@y(i)", term, "sum / (float)(P * N)"});
  }
  made.flops = squares ? "2*P*M*N" : "P*M*N";
  made.cost = "P*M*N";
  return made;
}

/// Variance of rows or columns, in two passes or with sums and squares together.
[[nodiscard]] inline Operator moments(Draw& draw) {
  const bool columns = draw.chance(0.5), one_pass = draw.chance(0.3), both = draw.chance(0.5);
  Operator made{columns ? "column_moments" : "row_moments", ""};
  made.summary =
      std::string(both ? "mean and variance of every " : "variance of every ") + (columns ? "column" : "row");
  made.symbols = row_symbols(draw);
  Buffer x{"x", {"M", "N"}};
  if (columns) x.order = {1, 0};
  x.padding = drawn_padding(draw);
  made.buffers = {x};
  if (both) made.buffers.push_back({"means", {"M"}, Role::output});
  made.buffers.push_back({"y", {"M"}, Role::output});
  const std::vector<Axis> loop{{"j", "N"}};
  std::string body;
  if (one_pass)
    body = "float mean = 0.0f;\nfloat squares = 0.0f;\n" +
           looped(loop, "mean += @x(i, j);\nsquares += @x(i, j) * @x(i, j);") +
           "mean /= (float)N;\n@y(i) = squares / (float)N - mean * mean;\n";
  else
    body = "float mean = 0.0f;\n" + looped(loop, "mean += @x(i, j);") +
           "mean = mean / (float)N;\nfloat variance = 0.0f;\n" +
           looped(loop, "variance += (@x(i, j) - mean) * (@x(i, j) - mean);") +
           "@y(i) = variance / (float)N;\n";
  made.nests = {{made.kind, {{"i", "M"}}, body + (both ? "@means(i) = mean;" : "")}};
  made.flops = "4*M*N";
  made.cost = "2*M*N";
  return made;
}

/// Place of the largest or smallest element of each row.
[[nodiscard]] inline Operator arg_extreme(Draw& draw) {
  const bool largest = draw.chance(0.5), columns = draw.chance(0.3), value = draw.chance(0.4);
  Operator made{std::string(columns ? "column_" : "row_") + (largest ? "argmax" : "argmin"), ""};
  made.summary = std::string("place of the ") + (largest ? "largest" : "smallest") + " element of every " +
                 (columns ? "column" : "row");
  made.symbols = row_symbols(draw);
  Buffer x{"x", {"M", "N"}};
  if (columns) x.order = {1, 0};
  made.buffers = {x, {"places", {"M"}, Role::output, "int"}};
  if (value) made.buffers.push_back({"y", {"M"}, Role::output});
  made.nests = {{made.kind,
                 {{"i", "M"}},
                 "float best = @x(i, 0);\nint place = 0;\n" +
                     looped({{"j", "N", "1"}}, std::string("if (@x(i, j) ") + (largest ? ">" : "<") +
                                                   " best) {\nbest = @x(i, j);\nplace = (int)j;\n}") +
                     "@places(i) = place;" + (value ? "\n@y(i) = best;" : "")}};
  made.flops = "M*N";
  return made;
}

/// One number for a whole matrix, through partial results.
[[nodiscard]] inline Operator total_reduce(Draw& draw) {
  struct Total {
    std::string name, term, result;
    bool other;
  };
  const std::vector<Total> totals{
      {"sum_of_squares", "@x(i, j) * @x(i, j)", "sum", false},
      {"frobenius_norm", "@x(i, j) * @x(i, j)", "sqrtf(sum)", false},
      {"absolute_mean", "fabsf(@x(i, j))", "sum / (float)(M * N)", false},
      {"inner_product", "@x(i, j) * @z(i, j)", "sum", true},
      {"mean_squared_error", "(@x(i, j) - @z(i, j)) * (@x(i, j) - @z(i, j))", "sum / (float)(M * N)", true},
      {"mean_absolute_error", "fabsf(@x(i, j) - @z(i, j))", "sum / (float)(M * N)", true}};
  const auto chosen = draw.pick(totals);
  Operator made{chosen.name, chosen.name + " of whole matrices, by rows first"};
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  made.symbols = row_symbols(draw);
  if (draw.cuda()) made.symbols[0].timed = {512, 1024, 2048, 4096};
  made.buffers = {{"x", {"M", "N"}}};
  if (chosen.other) made.buffers.push_back({"z", {"M", "N"}});
  made.buffers[0].order = drawn_order(draw, 2, 0.2);
  made.buffers.push_back({"partial", {"M"}, Role::scratch});
  made.buffers.push_back({"y", {"1"}, Role::output});
  made.nests = followed(sums(draw, {"row_part", {{"i", "M"}}, {{"j", "N"}}, "@partial(i)", chosen.term}),
                        {{"total_of_rows",
                          {{"o", "1"}},
                          "float sum = 0.0f;\n" + looped({{"i", "M"}}, "sum += @partial(i);") +
                              "@y(o) = " + chosen.result + ";"}});
  if (!draw.cuda() && draw.chance(0.5)) {
    made.buffers.erase(made.buffers.end() - 2);
    made.summary = chosen.name + " of whole matrices";
    std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
    made.nests = {{chosen.name,
                   {},
                   "float sum = 0.0f;\n" + looped({{"i", "M"}, {"j", "N"}}, "sum += " + chosen.term + ";") +
                       "@y(0) = " + chosen.result + ";"}};
  }
  made.flops = "2*M*N";
  made.cost = "M*N";
  return made;
}

/// A loss of each row.
[[nodiscard]] inline Operator row_loss(Draw& draw) {
  const auto which = draw.below(5);
  const std::vector<std::string> kinds{"cross_entropy", "kl_divergence", "row_mse", "cosine_similarity",
                                       "huber_loss"};
  const std::vector<std::string> summaries{
      "cross entropy of every row of logits with a class", "Kullback-Leibler divergence of every two rows",
      "mean squared difference of every two rows", "cosine of the angle between every two rows",
      "mean Huber loss of every two rows"};
  Operator made{kinds[which], summaries[which]};
  made.symbols = row_symbols(draw);
  const Buffer y{"y", {"M"}, Role::output};
  const std::vector<Axis> row{{"i", "M"}}, loop{{"j", "N"}};
  made.flops = "4*M*N";
  made.cost = "2*M*N";
  if (which == 0) {
    made.buffers = {{"x", {"M", "N"}}, {"labels", {"M"}, Role::input, "int", "0", "N - 1"}, y};
    made.nests = {{made.kind, row,
                   "float largest = @x(i, 0);\n" +
                       looped({{"j", "N", "1"}}, "largest = fmaxf(largest, @x(i, j));") +
                       "float total = 0.0f;\n" + looped(loop, "total += expf(@x(i, j) - largest);") +
                       "@y(i) = logf(total) + largest - @x(i, @labels(i));"}};
    made.cost = "9*M*N";
  } else if (which == 1) {
    made.buffers = {{"x", {"M", "N"}, Role::input, "float", "0.1", "1"},
                    {"z", {"M", "N"}, Role::input, "float", "0.1", "1"},
                    y};
    made.nests = sums(draw, {made.kind, row, loop, "@y(i)",
                             draw.chance(0.5) ? "@x(i, j) * logf(@x(i, j) / @z(i, j))"
                                              : "@x(i, j) * (logf(@x(i, j)) - logf(@z(i, j)))"});
    made.cost = "14*M*N";
  } else if (which == 2) {
    made.buffers = {{"x", {"M", "N"}}, {"z", {"M", "N"}}, y};
    made.nests = sums(draw, {made.kind, row, loop, "@y(i)", "(@x(i, j) - @z(i, j)) * (@x(i, j) - @z(i, j))",
                             "sum / (float)N"});
  } else if (which == 3) {
    made.buffers = {{"x", {"M", "N"}}, {"z", {"M", "N"}}, y};
    const bool apart = draw.chance(0.5);
    made.nests = {{made.kind, row,
                   "float dot = 0.0f;\nfloat xx = 0.0f;\nfloat zz = 0.0f;\n" +
                       (apart ? looped(loop, "dot += @x(i, j) * @z(i, j);") +
                                    looped(loop, "xx += @x(i, j) * @x(i, j);") +
                                    looped(loop, "zz += @z(i, j) * @z(i, j);")
                              : looped(loop, "dot += @x(i, j) * @z(i, j);\nxx += @x(i, j) * @x(i, j);\nzz += "
                                             "@z(i, j) * @z(i, j);")) +
                       "@y(i) = dot / (sqrtf(xx) * sqrtf(zz) + 1e-6f);"}};
    made.flops = "6*M*N";
  } else {
    made.buffers = {{"x", {"M", "N"}}, {"z", {"M", "N"}}, y};
    made.nests = {{made.kind, row,
                   "float sum = 0.0f;\n" +
                       looped(loop, "const float d = fabsf(@x(i, j) - @z(i, j));\nif (d < 0.5f) {\nsum += "
                                    "0.5f * d * d;\n} else {\nsum += 0.5f * (d - 0.25f);\n}") +
                       "@y(i) = sum / (float)N;"}};
  }
  return made;
}

/// Normalisation of groups of channels, of channels over a batch, or with statistics that are given.
[[nodiscard]] inline Operator channel_norm(Draw& draw) {
  const auto which = draw.below(3);
  const std::vector<std::string> kinds{"instance_norm", "batch_norm_training", "batch_norm_inference"};
  const std::vector<std::string> summaries{"normalisation of every plane of images",
                                           "batch normalisation with the batch's own statistics",
                                           "batch normalisation with given statistics"};
  const bool channels_last = which > 0 && draw.chance(0.4);
  Operator made{kinds[which] + (channels_last ? "_nhwc" : ""),
                summaries[which] + (channels_last ? ", channels last" : "")};
  made.symbols = {{"P", by_language(draw, {2, 4, 8, 16}, {8, 16, 32}), Extent::small},
                  {"Q", by_language(draw, {8, 16, 32, 64}, {32, 64, 128}), Extent::small},
                  {"N", by_language(draw, {100, 256, 784, 1024}, {784, 1024, 3136})}};
  Buffer x{"x", {"P", "Q", "N"}}, y{"y", {"P", "Q", "N"}, Role::output};
  if (channels_last) x.order = y.order = {0, 2, 1};
  made.buffers = {x, {"gamma", {"Q"}}, {"beta", {"Q"}}};
  const std::string element = "@x(b, q, j)";
  made.flops = "6*P*Q*N";
  made.cost = "4*P*Q*N";
  if (which == 2) {
    made.buffers.push_back({"means", {"Q"}});
    made.buffers.push_back({"variances", {"Q"}, Role::input, "float", "0.1", "2"});
    made.nests = {{made.kind,
                   {{"b", "P"}, {"q", "Q"}, {"j", "N"}},
                   "@y(b, q, j) = (" + element +
                       " - @means(q)) / sqrtf(@variances(q) + 1e-5f) * @gamma(q) + @beta(q);"}};
  } else if (which == 0) {
    const std::vector<Axis> loop{{"j", "N"}};
    made.nests = {{made.kind,
                   {{"b", "P"}, {"q", "Q"}},
                   "float mean = 0.0f;\n" + looped(loop, "mean += " + element + ";") +
                       "mean /= (float)N;\nfloat variance = 0.0f;\n" +
                       looped(loop, "variance += (" + element + " - mean) * (" + element + " - mean);") +
                       "variance /= (float)N;\n" +
                       looped(loop, "@y(b, q, j) = (" + element +
                                        " - mean) / sqrtf(variance + 1e-5f) * @gamma(q) + @beta(q);")}};
  } else {
    const std::vector<Axis> loops{{"b", "P"}, {"j", "N"}};
    made.buffers.push_back({"means", {"Q"}, Role::scratch});
    made.buffers.push_back({"variances", {"Q"}, Role::scratch});
    made.nests = followed(
        sums(draw, {"channel_means", {{"q", "Q"}}, loops, "@means(q)", element, "sum / (float)(P * N)"}),
        sums(draw, {"channel_variances",
                    {{"q", "Q"}},
                    loops,
                    "@variances(q)",
                    "(" + element + " - @means(q)) * (" + element + " - @means(q))",
                    "sum / (float)(P * N)"}));
    made.nests.push_back({"apply_norm",
                          {{"b", "P"}, {"q", "Q"}, {"j", "N"}},
                          "@y(b, q, j) = (" + element +
                              " - @means(q)) / sqrtf(@variances(q) + 1e-5f) * @gamma(q) + @beta(q);"});
  }
  made.buffers.push_back(y);
  return made;
}

/// Rows scaled to sum up to one, or to lie between 0 and 1.
[[nodiscard]] inline Operator row_rescale(Draw& draw) {
  const auto which = draw.below(3);
  const std::vector<std::string> kinds{"l1_normalise", "min_max_normalise", "max_normalise"};
  Operator made{kinds[which], kinds[which] + " of every row"};
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  made.symbols = row_symbols(draw);
  made.buffers = {drawn_matrix(draw, "x", "M", "N"), {"y", {"M", "N"}, Role::output}};
  const std::vector<Axis> loop{{"j", "N"}};
  std::string body;
  if (which == 0)
    body = "float s = 0.0f;\n" + looped(loop, "s += fabsf(@x(i, j));") +
           looped(loop, "@y(i, j) = @x(i, j) / (s + 1e-6f);");
  else if (which == 1)
    body = "float low = @x(i, 0);\nfloat high = @x(i, 0);\n" +
           (draw.chance(0.5)
                ? looped(loop, "low = fminf(low, @x(i, j));") + looped(loop, "high = fmaxf(high, @x(i, j));")
                : looped(loop, "low = fminf(low, @x(i, j));\nhigh = fmaxf(high, @x(i, j));")) +
           looped(loop, "@y(i, j) = (@x(i, j) - low + 0.01f) / (high - low + 0.01f);");
  else
    body = "float peak = 0.0f;\n" +
           looped(loop, "if (fabsf(@x(i, j)) > peak) {\npeak = fabsf(@x(i, j));\n}") +
           looped(loop, "@y(i, j) = @x(i, j) / (peak + 1e-6f);");
  made.nests = {{made.kind, {{"i", "M"}}, body}};
  made.flops = "3*M*N";
  return made;
}

} // namespace generated
