// What scalars are to the loops that use them.

#include <doctest/doctest.h>

#include <string>

#include "../analysed.hpp"

namespace {

std::string role_of(const mtmc::LoopInfo& loop, const std::string& variable) {
  for (const auto& scalar : mtmc::classify_scalars(loop)) {
    if (scalar.variable->name != variable) continue;
    std::string role;
    switch (scalar.role) {
    case mtmc::ScalarRole::invariant:
      role = "invariant";
      break;
    case mtmc::ScalarRole::privatizable:
      role = "private";
      break;
    case mtmc::ScalarRole::induction:
      role = "induction";
      break;
    case mtmc::ScalarRole::reduction:
      role = "reduction " + std::string(to_string(scalar.operation));
      break;
    case mtmc::ScalarRole::carried:
      role = "carried";
      break;
    }
    if (scalar.declared_inside) role += ", inside";
    if (scalar.live_out) role += ", live";
    return role;
  }
  return "absent";
}

/// The role of `s` in the i loop of a body.
std::string role_in(const std::string& body, const std::string& path = "f/i") {
  const analysed::Text text("void f(const float* a, float* b, int n) {\n" + body + "\n}\n");
  return role_of(text.loop(path), "s");
}

} // namespace

TEST_CASE("scalars: updates by one operation are reductions, however they are spelt") {
  const auto sum = [](const std::string& update) {
    return role_in("float s = 0; for (int i = 0; i < n; ++i) { " + update + " } b[0] = s;");
  };
  CHECK(sum("s += a[i];") == "reduction +, live");
  CHECK(sum("s -= a[i];") == "reduction +, live");
  CHECK(sum("s = s + a[i];") == "reduction +, live");
  CHECK(sum("s = a[i] + s;") == "reduction +, live");
  CHECK(sum("s = s + a[i] * 2.0f - b[i];") == "reduction +, live");
  CHECK(sum("s *= a[i];") == "reduction *, live");
  CHECK(sum("s = a[i] * s;") == "reduction *, live");
  CHECK(sum("s = std::max(s, a[i]);") == "reduction max, live");
  CHECK(sum("s = fmaxf(a[i], s);") == "reduction max, live");
  CHECK(sum("s = std::min<float>(s, a[i]);") == "reduction min, live");
  CHECK(sum("s = a[i] > s ? a[i] : s;") == "reduction max, live");
  CHECK(sum("s = s <= a[i] ? s : a[i];") == "reduction min, live");
  CHECK(sum("if (a[i] > s) s = a[i];") == "reduction max, live");
  CHECK(sum("if (s > a[i]) { s = a[i]; }") == "reduction min, live");
  CHECK(sum("if (a[i] > 0) s += a[i];") == "reduction +, live");
  CHECK(sum("s += a[i]; s += b[i];") == "reduction +, live");
}

TEST_CASE("scalars: what looks like a reduction but is none is carried") {
  const auto role = [](const std::string& update) {
    return role_in("float s = 0; for (int i = 0; i < n; ++i) { " + update + " } b[0] = s;");
  };
  CHECK(role("s += a[i]; b[i] = s;") == "carried, live");           // a running sum
  CHECK(role("b[i] = s += a[i];") == "carried, live");              // the same, in one expression
  CHECK(role("s = a[i] - s;") == "carried, live");                  // the sign changes
  CHECK(role("s = s * a[i] + b[i];") == "carried, live");           // Horner
  CHECK(role("s += a[i]; s *= 2.0f;") == "carried, live");          // two operations
  CHECK(role("s = s + s * a[i];") == "carried, live");              // it depends on itself twice
  CHECK(role("if (a[i] > s) s = a[i] + 1.0f;") == "carried, live"); // not what was compared
  CHECK(role("s = a[i] > s ? s : b[i];") == "carried, live");
}

TEST_CASE("scalars: written before it is read in every iteration") {
  CHECK(role_in("for (int i = 0; i < n; ++i) { float s = a[i]; b[i] = s; }") == "private, inside");
  CHECK(role_in("float s; for (int i = 0; i < n; ++i) { s = a[i]; b[i] = s; }") == "private");
  CHECK(role_in("float s; for (int i = 0; i < n; ++i) { s = a[i]; b[i] = s; } b[0] = s;") == "private, live");
  CHECK(role_in("float s; for (int i = 0; i < n; ++i) { if (a[i] > 0) { s = a[i]; b[i] = s; } }") ==
        "private");
  CHECK(role_in("float s = 0; for (int i = 0; i < n; ++i) { if (a[i] > 0) s = a[i]; b[i] = s; }") ==
        "carried"); // not in every iteration
  CHECK(role_in("float s = 0; for (int i = 0; i < n; ++i) { b[i] = s; s = a[i]; }") == "carried");
  CHECK(role_in("float s; for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j) s = a[j]; b[i] = s; }") ==
        "carried"); // the inner loop may not run at all
}

TEST_CASE("scalars: an assignment that may not happen, or of one member only, defines nothing") {
  CHECK(role_in("float s = 0; for (int i = 0; i < n; ++i) { a[i] > 0 ? (s = a[i]) : 0.0f; b[i] = s; }") ==
        "carried");
  CHECK(role_in("float s = 0; for (int i = 0; i < n; ++i) { a[i] > 0 && (s = a[i]); b[i] = s; }") ==
        "carried");
  CHECK(role_in("Pair s; for (int i = 0; i < n; ++i) { s.x = a[i]; b[i] = s.x + s.y; s.y = a[i]; }") ==
        "carried");
}

TEST_CASE("scalars: the sum of a row is private to the row and a reduction along it") {
  const std::string body = R"(
    for (int i = 0; i < n; ++i) {
      float s = 0.0f;
      for (int j = 0; j < n; ++j) s += a[i * n + j];
      b[i] = s;
    })";
  CHECK(role_in(body) == "private, inside");
  CHECK(role_in(body, "f/i/j") == "reduction +, live");
}

TEST_CASE("scalars: a variable set anew before its next use does not live on") {
  const std::string body = R"(
    float s;
    for (int i = 0; i < n; ++i) { s = a[i]; b[i] = s; }
    for (int k = 0; k < n; ++k) { s = b[k]; b[k] = s + 1.0f; })";
  CHECK(role_in(body) == "private");
  CHECK(role_in(body, "f/k") == "private");
}

TEST_CASE("scalars: induction variables move once in every iteration by the same amount") {
  CHECK(role_in("int s = 0; for (int i = 0; i < n; ++i) { b[s] = a[i]; s += 2; }") == "induction");
  CHECK(role_in("int s = 0; for (int i = 0; i < n; ++i) { b[s++] = a[i]; }") == "carried"); // not a statement
  CHECK(role_in("int s = 0; for (int i = 0; i < n; ++i) { b[s] = a[i]; ++s; }") == "induction");
  CHECK(role_in("int s = 0; for (int i = 0; i < n; ++i) { b[s] = a[i]; if (a[i] > 0) s += 2; }") ==
        "carried");
  CHECK(role_in("const float* s = a; for (int i = 0; i < n; ++i) { b[i] = *s; s += 4; }") == "induction");
  CHECK(role_in("int s = 0; for (int i = 0; i < n; ++i) { if (a[i] > 0) ++s; } b[0] = s;") ==
        "reduction +, live"); // counting
}

TEST_CASE("scalars: invariants, control variables, and what may change behind one's back") {
  CHECK(role_in("float s = a[0]; for (int i = 0; i < n; ++i) b[i] = s;") == "invariant");
  CHECK(role_in("int s; for (int i = 0; i < n; ++i) for (s = 0; s < n; ++s) b[s] = a[i];") == "private");
  CHECK(role_in("float s = 0; float* p = &s; for (int i = 0; i < n; ++i) { s = a[i]; b[i] = s; *p = 1; }") ==
        "carried, live");
  CHECK(role_in("static float s = 0; for (int i = 0; i < n; ++i) { s = a[i]; b[i] = s; }") ==
        "carried, live");
  CHECK(role_in("float t = 0; float& s = t; for (int i = 0; i < n; ++i) s += a[i]; b[0] = t;") == "absent");
  const analysed::Text text("void f(const float* a, float* b, int n) { float t = 0; float& s = t;"
                            " for (int i = 0; i < n; ++i) s += a[i]; b[0] = t; }");
  CHECK(role_of(text.loop("f/i"), "t") == "reduction +, live"); // through its reference
}

TEST_CASE(
    "scalars: of a variable with thousands of uses nothing is claimed that takes a look at all of them") {
  std::string uses;
  for (int i = 0; i < 1500; ++i) uses += "s = a[" + std::to_string(i) + "]; b[0] = s;\n";
  // Its value is never read behind the loop.
  const std::string loop = "for (int i = 0; i < n; ++i) { s = a[i]; b[i] = s; }";
  CHECK(role_in("float s = 0; " + loop) == "private");
  CHECK(role_in("float s = 0; " + uses + loop) == "private, live");
}
