#pragma once
// Kernels that compute much on little data.

#include "operator.hpp"
#include "pointwise.hpp"
#include "products.hpp"

namespace generated {

/// Iterations of a formula at each element, as often for all.
[[nodiscard]] inline Operator iterated(Draw& draw) {
  struct Iteration {
    std::string name, summary, start, step, result, low, high;
    int cost;
  };
  const std::vector<Iteration> iterations{
      {"logistic_map", "the logistic map from each value on", "float v = @x(i);\n",
       "v = (2.4f + 0.5f * @x(i)) * v * (1.0f - v);", "v", "0.1", "0.9", 2},
      {"newton_root", "square roots by Newton's iteration", "const float wanted = @x(i);\nfloat v = 1.0f;\n",
       "v = 0.5f * (v + wanted / v);", "v", "0.5", "4", 4},
      {"escape_values", "iterations of z squared plus c, which stay bounded",
       "const float c = @x(i);\nfloat re = 0.0f;\nfloat im = 0.0f;\n",
       "const float next = re * re - im * im + c;\nim = 2.0f * re * im + 0.05f;\nre = next;", "re + im",
       "-0.3", "0.2", 3},
      {"damped_oscillator", "position of a damped oscillator after steps of Euler",
       "float place = @x(i);\nfloat speed = 0.0f;\n",
       "const float force = -place - 0.3f * speed;\nspeed += 0.01f * force;\nplace += 0.01f * speed;",
       "place", "0.5", "1.5", 4},
      {"fixed_cosine", "the cosine of the cosine and so on, shifted by x", "float v = @x(i);\n",
       "v = cosf(v) + 0.1f * @x(i);", "v", "0.2", "1.2", 12},
      {"series_of_exp", "the exponential by its series", "float term = 1.0f;\nfloat v = 1.0f;\n",
       "term = term * @x(i) / (float)(k + 1);\nv += term;", "v", "0", "1.5", 5},
      {"series_of_powers", "a series of sines of multiples", "float v = 0.0f;\n",
       "v += sinf((float)(k + 1) * @x(i)) / (float)((k + 1) * (k + 1));", "v", "0.1", "1", 15},
  };
  const auto chosen = draw.pick(iterations);
  Operator made{chosen.name, chosen.summary};
  made.symbols = {{"N", by_language(draw, {10000, 50000, 100000, 200000}, {65536, 300000, 1 << 20, 1 << 22})},
                  {"T", by_language(draw, {16, 20, 32, 50, 100}, {16, 32, 50, 64, 100}), Extent::fixed}};
  made.buffers = {{"x", {"N"}, Role::input, "float", chosen.low, chosen.high}, {"y", {"N"}, Role::output}};
  std::string count = "T";
  if (draw.chance(0.5)) { // a constant in the text
    count = draw.pick({"12", "20", "32", "48", "64"});
    made.symbols.pop_back();
    if (!draw.cuda()) made.symbols[0].timed = {5000, 10000, 30000, 100000, 300000};
  }
  made.nests = {{made.kind,
                 {{"i", "N"}},
                 chosen.start + looped({{"k", count}}, chosen.step) + "@y(i) = " + chosen.result + ";"}};
  made.flops = "4*N*" + count;
  // Compilers vectorise the elements where the steps are cheap.
  made.cost = (chosen.cost > 4 ? std::to_string(chosen.cost) + "*N*" + count : "N*" + count + " / 2");
  return made;
}

/// A polynomial at each point, by powers or by Horner's rule.
[[nodiscard]] inline Operator polynomial(Draw& draw) {
  const auto form = draw.below(4);
  const std::vector<std::string> kinds{"polynomial_horner", "polynomial_powers", "polynomial_pow",
                                       "rational_function"};
  Operator made{kinds[form], form == 3 ? "a quotient of polynomials with given coefficients"
                                       : "a polynomial with given coefficients"};
  made.symbols = {
      {"N", by_language(draw, {100000, 300000, 500000, 1000000, 2000000}, {1 << 20, 3000000, 1 << 22})},
      {"K", {4, 6, 8, 12, 16}, Extent::small}};
  made.buffers = {{"x", {"N"}, Role::input, "float", "0.1", "1"},
                  {"w", {"K"}, Role::input, "float", "0.1", "1"},
                  {"y", {"N"}, Role::output}};
  const std::vector<Axis> loop{{"k", "K"}};
  std::string body;
  if (form == 0)
    body = "float sum = 0.0f;\n" + looped(loop, "sum = sum * @x(i) + @w(K - 1 - k);") + "@y(i) = sum;";
  else if (form == 1)
    body = "float sum = 0.0f;\nfloat power = 1.0f;\n" +
           looped(loop, "sum += @w(k) * power;\npower *= @x(i);") + "@y(i) = sum;";
  else if (form == 2)
    body = "float sum = 0.0f;\n" + looped(loop, "sum += @w(k) * powf(@x(i), (float)k);") + "@y(i) = sum;";
  else
    body = "float upper = 0.0f;\nfloat lower = 1.0f;\n" +
           looped(loop, "upper = upper * @x(i) + @w(k);\nlower = lower * @x(i) + @w(K - 1 - k);") +
           "@y(i) = upper / lower;";
  made.nests = {{made.kind, {{"i", "N"}}, body}};
  made.flops = "3*N*K";
  made.cost = form == 2 ? "20*N*K" : "N*K / 3";
  return made;
}

/// What all points do to each.
[[nodiscard]] inline Operator all_pairs(Draw& draw) {
  const auto which = draw.below(4);
  const std::vector<std::string> kinds{"gravity", "kernel_regression", "mixture_density", "nearest_distance"};
  const std::vector<std::string> summaries{
      "attraction of every point by all others", "averages of values weighted by distance",
      "log density of a mixture of normal distributions", "distance of every point to the nearest of others"};
  Operator made{kinds[which], summaries[which]};
  made.symbols = {{"M", by_language(draw, {200, 500, 1000, 2000}, {2048, 4096, 8192})},
                  {"N", by_language(draw, {200, 500, 1000}, {512, 1024, 4096})}};
  const std::vector<Axis> points{{"i", "M"}};
  const std::vector<Axis> loop{{"j", "N"}};
  made.flops = "10*M*N";
  made.cost = "10*M*N";
  if (which == 0) {
    const std::vector<std::string> extents{"M", "3"};
    made.symbols.pop_back();
    made.flops = "20*M*M";
    made.cost = "6*M*M";
    made.buffers = {{"place", extents},
                    {"mass", {"M"}, Role::input, "float", "0.1", "1"},
                    {"force", extents, Role::output}};
    if (draw.chance(0.5)) made.buffers[0].order = made.buffers[2].order = {1, 0};
    made.nests = {
        {made.kind, points,
         "float fx = 0.0f;\nfloat fy = 0.0f;\nfloat fz = 0.0f;\n" +
             looped({{"j", "M"}},
                    "const float dx = @place(j, 0) - @place(i, 0);\nconst float dy = @place(j, 1) - "
                    "@place(i, 1);\n"
                    "const float dz = @place(j, 2) - @place(i, 2);\nconst float d2 = dx * dx + dy * dy + dz "
                    "* dz + 0.01f;\n" +
                        std::string(draw.chance(0.5) ? "const float f = @mass(j) / (d2 * sqrtf(d2));"
                                                     : "const float f = @mass(j) / powf(d2, 1.5f);") +
                        "\nfx += f * dx;\nfy += f * dy;\nfz += f * dz;") +
             "@force(i, 0) = fx;\n@force(i, 1) = fy;\n@force(i, 2) = fz;"}};
    return made;
  }
  if (which == 1) {
    made.scalars = {{"width", "2.5"}};
    made.buffers = {{"x", {"M"}},
                    {"centre", {"N"}},
                    {"z", {"N"}, Role::input, "float", "0.5", "2"},
                    {"y", {"M"}, Role::output}};
    made.nests = {{made.kind, points,
                   "float top = 0.0f;\nfloat bottom = 0.0f;\n" +
                       looped(loop, "const float d = (@x(i) - @centre(j)) * width;\nconst float e = expf(-d "
                                    "* d);\ntop += e * @z(j);\nbottom += e;") +
                       "@y(i) = top / (bottom + 1e-6f);"}};
  } else if (which == 2) {
    made.buffers = {{"x", {"M"}},
                    {"means", {"N"}},
                    {"widths", {"N"}, Role::input, "float", "0.5", "2"},
                    {"shares", {"N"}, Role::input, "float", "0.1", "1"},
                    {"y", {"M"}, Role::output}};
    made.nests = {{made.kind, points,
                   "float sum = 0.0f;\n" +
                       looped(loop, "const float d = (@x(i) - @means(j)) / @widths(j);\nsum += @shares(j) * "
                                    "expf(-0.5f * d * d) / (@widths(j) * sqrtf(6.2831853f));") +
                       "@y(i) = logf(sum + 1e-6f);"}};
    made.cost = "14*M*N";
  } else {
    made.symbols.push_back({"K", {2, 3, 8, 16}, Extent::small});
    made.buffers = {drawn_matrix(draw, "x", "M", "K"),
                    drawn_matrix(draw, "centre", "N", "K"),
                    {"y", {"M"}, Role::output}};
    made.nests = {{made.kind, points,
                   "float best = 1e30f;\n" +
                       looped(loop, "float sum = 0.0f;\n" +
                                        looped({{"k", "K"}},
                                               "const float d = @x(i, k) - @centre(j, k);\nsum += d * d;") +
                                        "if (sum < best) {\nbest = sum;\n}") +
                       "@y(i) = sqrtf(best);"}};
    made.flops = "3*M*N*K";
    made.cost = "M*N*K";
  }
  return made;
}

/// Formulas of finance, geometry and signals with a helper function.
[[nodiscard]] inline Operator formula(Draw& draw) {
  const auto which = draw.below(4);
  const std::vector<std::string> kinds{"option_price", "great_circle", "window_and_scale", "rotate_pairs"};
  const std::vector<std::string> summaries{"prices of options by Black and Scholes", "distances on a sphere",
                                           "every row times a cosine window",
                                           "pairs of numbers turned by angles that grow along a row"};
  Operator made{kinds[which], summaries[which]};
  made.symbols = {{"N", by_language(draw, {20000, 50000, 100000, 200000}, {1 << 20, 1 << 22, 1 << 23})}};
  const std::vector<Axis> axes{{"i", "N"}};
  if (which == 0) {
    made.helpers = "HELPER normal_share(float v) {\nreturn 0.5f * (1.0f + erff(v * 0.70710678f));\n}\n";
    made.scalars = {{"rate", "0.03"}, {"volatility", "0.25"}};
    made.buffers = {{"price", {"N"}, Role::input, "float", "20", "120"},
                    {"strike", {"N"}, Role::input, "float", "30", "100"},
                    {"years", {"N"}, Role::input, "float", "0.25", "3"},
                    {"y", {"N"}, Role::output}};
    made.nests = {{made.kind, axes,
                   "const float root = volatility * sqrtf(@years(i));\nconst float d1 = (logf(@price(i) / "
                   "@strike(i)) + (rate + 0.5f * volatility * volatility) * @years(i)) / root;\n"
                   "const float d2 = d1 - root;\n@y(i) = @price(i) * normal_share(d1) - @strike(i) * "
                   "expf(-rate * @years(i)) * normal_share(d2);"}};
    made.flops = "60*N";
    made.cost = "60*N";
  } else if (which == 1) {
    made.buffers = {
        {"lat1", {"N"}}, {"lon1", {"N"}}, {"lat2", {"N"}}, {"lon2", {"N"}}, {"y", {"N"}, Role::output}};
    made.nests = {{made.kind, axes,
                   "const float a = sinf(0.5f * (@lat2(i) - @lat1(i)));\nconst float c = sinf(0.5f * "
                   "(@lon2(i) - @lon1(i)));\n"
                   "const float s = a * a + cosf(@lat1(i)) * cosf(@lat2(i)) * c * c;\n@y(i) = 12742.0f * "
                   "atanf(sqrtf(s) / sqrtf(1.0f - s + 1e-4f));"}};
    made.flops = "60*N";
    made.cost = "60*N";
  } else if (which == 2) {
    made.symbols = {{"M", by_language(draw, {50, 100, 500, 1000}, {512, 2048, 8192})},
                    {"N", by_language(draw, {256, 400, 512, 1024}, {400, 512, 1024, 2048})}};
    made.buffers = {{"x", {"M", "N"}}, {"y", {"M", "N"}, Role::output}};
    made.nests = {{made.kind,
                   {{"i", "M"}, {"j", "N"}},
                   "const float share = 0.54f - 0.46f * cosf(6.2831853f * (float)j / (float)N);\n@y(i, j) = "
                   "@x(i, j) * share;"}};
    made.flops = "6*M*N";
    made.cost = "16*M*N";
  } else {
    made.symbols = {{"M", by_language(draw, {100, 256, 512, 1000}, {1024, 4096, 8192})},
                    {"N", by_language(draw, {16, 32, 64, 128}, {32, 64, 128, 256})}};
    made.buffers = {{"x", {"M", "N", "2"}}, {"y", {"M", "N", "2"}, Role::output}};
    if (draw.chance(0.4)) made.buffers[0].order = made.buffers[1].order = {0, 2, 1};
    made.nests = {{made.kind,
                   {{"i", "M"}, {"j", "N"}},
                   "const float angle = (float)i * powf(100.0f, -(float)j / (float)N) * 0.01f;\nconst float "
                   "a = @x(i, j, 0);\nconst float c = @x(i, j, 1);\n"
                   "@y(i, j, 0) = a * cosf(angle) - c * sinf(angle);\n@y(i, j, 1) = a * sinf(angle) + c * "
                   "cosf(angle);"}};
    made.flops = "30*M*N";
    made.cost = "80*M*N";
  }
  return made;
}

} // namespace generated
