#pragma once
// Kernels whose text is small or merely long and whose analysis would not be, if any walk over it doubled
// with each level, took every path, or went as deep as the text: one row per construct, for any size.

#include <mtmc/core/task.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hostile {

/// `part` so many times; `@` in it stands for the number, from 0 on, `@+` for the one behind.
inline std::string repeated(std::size_t count, std::string_view part) {
  std::string text;
  text.reserve(count * (part.size() + 4));
  for (std::size_t number = 0; number < count; ++number)
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] != '@') {
        text += part[i];
        continue;
      }
      const bool next = i + 1 < part.size() && part[i + 1] == '+';
      text += std::to_string(number + (next ? 1 : 0));
      i += next ? 1 : 0;
    }
  return text;
}

inline std::string nested(std::size_t depth, std::string_view open, std::string_view core,
                          std::string_view close) {
  return repeated(depth, open) + std::string(core) + repeated(depth, close);
}

/// The text as the body of a kernel of two buffers.
inline std::string kernel(const std::string& body, const std::string& before = {}) {
  return before + "void step(const float* a, const int* n, float* c, int N, int M) {\n" + body + "\n}\n";
}

/// The text as the value of an element.
inline std::string element(const std::string& value) {
  return kernel("for (int i = 0; i < N; ++i) {\n  c[i] = " + value + ";\n}");
}

struct Row {
  std::string_view name;
  std::function<std::string(std::size_t)> text;
  /// The text grows with the square of the number.
  bool squares = false;
};

/// Constructs that nest: `text(n)` is n levels deep and about n lines or words long.
inline std::vector<Row> nesting_rows() {
  const auto deep = [](std::string_view open, std::string_view core, std::string_view close) {
    return [=](std::size_t n) { return nested(n, open, core, close); };
  };
  const auto in_element = [](std::string_view open, std::string_view core, std::string_view close) {
    return [=](std::size_t n) { return element(nested(n, open, core, close)); };
  };
  const auto in_body = [](std::string_view open, std::string_view core, std::string_view close) {
    return [=](std::size_t n) { return kernel(nested(n, open, core, close)); };
  };
  return {
      {"conditions", in_body("if (n[@] > N) {\n", "c[0] = a[0];", "\n} else { c[@] = 1.0f; }")},
      {"else-if chain",
       [](std::size_t n) {
         return kernel(repeated(n, "if (n[@] > 0) { c[@] = a[@]; } else ") + "c[0] = 0.0f;");
       }},
      {"ternaries to the left", in_element("(n[@] > i ? ", "a[i]", " : a[@])")},
      {"ternaries to the right",
       [](std::size_t n) { return element(repeated(n, "n[@] > i ? a[@] : ") + "a[i]"); }},
      {"ternaries in conditions", in_element("(", "i", " > @ ? i + 1 : i + 2)")},
      {"calls", in_element("fmaxf(a[@], ", "a[i]", ")")},
      {"calls twice the same", in_element("fmaxf(", "a[i]", ", a[i] * 0.5f)")},
      {"subscripts", in_element("a[n[", "i", "]]")},
      {"parentheses", in_element("(", "a[i]", ")")},
      {"parentheses of casts", in_element("((int)(", "i", "))")},
      {"brackets without an end", deep("a[", "", "")},
      {"parentheses without an end", in_element("(", "a[i]", "")},
      {"braces", in_body("{", "c[0] = a[0];", "}")},
      {"braces without an end", in_body("{", "", "")},
      {"closing braces only", in_body("", "", "}")},
      {"initialiser lists",
       [](std::size_t n) { return kernel("int x = " + nested(n, "{", "1", "}") + ";"); }},
      {"minus signs", in_element("- ", "a[i]", "")},
      {"not signs", in_element("!", "a[i]", "")},
      {"stars",
       [](std::size_t n) {
         return kernel("float " + std::string(n, '*') + "p = 0; c[0] = " + std::string(n, '*') + "p;");
       }},
      {"casts", in_element("(float)", "a[i]", "")},
      {"template brackets",
       [](std::size_t n) { return kernel("Pair" + nested(n, "<Pair", "<int>", ">") + " x; c[0] = a[0];"); }},
      {"template brackets of pairs",
       [](std::size_t n) {
         return "template <class A, class B> struct P {};\n" +
                kernel("P" + nested(n, "<int, P", "<int, int>", ">") + " x; c[0] = a[0];");
       }},
      {"smaller signs", in_element("a[i] < ", "a[i]", "")},
      {"greater signs", in_element("a[i] > ", "a[i]", "")},
      {"types that double",
       [](std::size_t n) {
         return "template <class A, class B> struct P {};\ntypedef P<int, int> T0;\n" +
                repeated(n, "typedef P<T@, T@> T@+;\n") + kernel("c[0] = a[0];");
       }},
      {"lambdas", in_body("[&] { ", "c[0] = a[0];", "; }();")},
      {"switches", in_body("switch (n[@]) { case 1: ", "c[0] = a[0];", "}")},
      {"loops", in_body("for (int i@ = 0; i@ < N; ++i@) {\n", "c[i0] += a[i0];", "}\n")},
      {"triangular loops",
       [](std::size_t n) {
         return kernel("int i0 = N;\n" +
                       nested(n, "for (int i@+ = 0; i@+ < i@; ++i@+)\n", "c[i1] += a[i1];", ""));
       }},
      {"loops with sums of all variables",
       [](std::size_t n) {
         return kernel(nested(n, "for (int i@ = 0; i@ < N; ++i@) {\n",
                              "c[" + repeated(n, "i@ * M + ") + "0] = a[" + repeated(n, "i@ * N + ") + "1];",
                              "}\n"));
       },
       true},
      {"loops with products of all variables",
       [](std::size_t n) {
         return kernel(nested(
             n, "for (int i@ = 0; i@ < N; ++i@) {\n",
             "c[" + repeated(n, "(i@ + @) * ") + "1] = a[" + repeated(n, "(i@ + M) * ") + "1];", "}\n"));
       },
       true},
      {"loops bounded by two others",
       [](std::size_t n) {
         return kernel("int i0 = N, i1 = M;\n" + nested(n,
                                                        "for (int i@+ = i@ / 2; i@+ < i@ + i@ / 3; ++i@+)\n",
                                                        "c[i1] += a[i1];", ""));
       }},
      {"loops of minima of others",
       [](std::size_t n) {
         return kernel(
             "int i0 = N, i1 = M;\n" +
             nested(n, "for (int i@+ = std::max(i@, i@ / 2); i@+ < std::min(i@ + 8, N - i@ / 3); ++i@+)\n",
                    "c[i1] += a[i1];", ""));
       }},
      {"while loops", in_body("while (n[@] < N) {\n", "c[0] += a[0];", "}\n")},
      {"do loops", in_body("do {\n", "c[0] += a[0];", "} while (n[@] < N);\n")},
      {"do loops without braces", in_body("do ", "c[0] += a[0];", " while (n[0] < N);\n")},
      {"if without braces", in_body("if (n[@]) ", "c[0] = a[0];", "")},
      {"for without an end", in_body("for (", "", "")},
      {"for without braces", in_body("for (;;) ", "c[0] = a[0];", "")},
      {"scopes", deep("namespace s@ {\n", "void step(float* c, int N) { c[0] = 1.0f; }", "}\n")},
      {"functions in functions", in_body("void f@(float* c) {\n", "c[0] = 1.0f;", "}\n")},
      {"comments in comments", in_body("/* ", "", " */")},
      {"conditions of the preprocessor",
       deep("#if A@\n", "void step(float* c, int N) { c[0] = 1.0f; }\n", "#endif\n")},
  };
}

/// `text` with the number in place of each `#`.
inline std::string with_last(std::string_view text, std::size_t last) {
  std::string result;
  for (const char c : text) c == '#' ? result += std::to_string(last) : result += c;
  return result;
}

/// Constructs that follow each other: `text(n)` has n of them.
inline std::vector<Row> chain_rows() {
  // `#` in `after`: the number of the last one.
  const auto in_body = [](std::string_view part, std::string_view before = "", std::string_view after = "") {
    return
        [=](std::size_t n) { return kernel(std::string(before) + repeated(n, part) + with_last(after, n)); };
  };
  const auto in_element = [](std::string_view part, std::string_view last) {
    return [=](std::size_t n) { return element(repeated(n, part) + std::string(last)); };
  };
  const auto in_loop = [](std::string_view part, std::string_view before = "", std::string_view after = "") {
    return [=](std::size_t n) {
      return kernel("for (int i = 0; i < N; ++i) {\n" + std::string(before) + repeated(n, part) +
                    with_last(after, n) + "}");
    };
  };
  return {
      {"conjunctions",
       [](std::size_t n) { return kernel("if (" + repeated(n, "n[@] > @ && ") + "N > 0) c[0] = a[0];"); }},
      {"conjunctions of comparisons",
       [](std::size_t n) {
         return kernel("for (int i = 0; i < N; ++i) if (" + repeated(n, "i + @ < N && ") +
                       "N > 0) c[i] = a[i];");
       }},
      {"disjunctions",
       [](std::size_t n) {
         return kernel("for (int i = 0; i < N; ++i) if (" + repeated(n, "(i > @ && i < M + @) || ") +
                       "N > 0) c[i] = a[i];");
       }},
      {"ifs that assign one variable", in_body("if (n[@]) x = x + @;\n", "int x = 0;\n", "c[x] = a[x];")},
      {"ifs that choose one of two values",
       in_body("if (n[@]) x = @; else x = M;\n", "int x = 0;\n", "c[x] = a[x];")},
      {"ifs in a loop", in_loop("if (i > @) c[i] = a[i + @];\n")},
      {"guards that return", in_body("if (n[@] < N) return;\n", "", "c[0] = a[0];")},
      {"guards of one index that return", in_loop("if (i == @ + M) continue;\n", "", "c[i] = a[i];")},
      {"aliases", in_body("float* p@+ = p@ + @;\n", "float* p0 = c;\n", "p#[0] = a[0];")},
      {"aliases in a loop", in_loop("float* p@+ = p@ + i;\n", "float* p0 = c;\n", "p#[i] = a[i];")},
      {"aliases by choice", in_body("float* p@+ = n[@] ? p@ : c;\n", "float* p0 = c;\n", "p#[0] = a[0];")},
      {"sums that double", in_body("int x@+ = x@ + x@;\n", "int x0 = N;\n",
                                   "c[x#] = a[x#];\nfor (int i = 0; i < x#; ++i) c[i + x#] = a[i];")},
      {"sums of different variables that double",
       in_body("int x@+ = x@ * M + x@ + n[@] + @;\n", "int x0 = N;\n",
               "c[x#] = a[x#];\nfor (int i = 0; i < x#; ++i) c[i + x#] = a[i];")},
      {"products that double", in_body("int x@+ = x@ * x@;\n", "int x0 = N + M;\n",
                                       "c[x#] = a[x#];\nfor (int i = 0; i < x#; ++i) c[i + x#] = a[i];")},
      {"products with new terms",
       in_body("int x@+ = x@ * (x@ + y@);\n int y@+ = x@ + M;\n", "int x0 = N; int y0 = M;\n",
               "c[x#] = a[x#];\nfor (int i = 0; i < x#; ++i) c[i + x#] = a[i];")},
      {"quotients that double", in_body("int x@+ = x@ / 2 + x@ % 3 + M;\n", "int x0 = N;\n",
                                        "c[x#] = a[x#];\nfor (int i = 0; i < x#; ++i) c[i + x#] = a[i];")},
      {"quotients of both that double",
       in_body("int x@+ = x@ / (y@ + 1);\nint y@+ = y@ / (x@ + 1);\n", "int x0 = N, y0 = M;\n",
               "c[x#] = a[y#];\nfor (int i = 0; i < x#; ++i) c[i + x#] = a[i];")},
      {"minima that double",
       in_body("int x@+ = std::min(x@ + M, y@);\nint y@+ = std::max(x@, y@ + N);\n", "int x0 = N, y0 = M;\n",
               "c[x#] = a[y#];\nfor (int i = x#; i < y#; ++i) c[i + x#] = a[i];")},
      {"sums of two that double",
       in_body("int x@+ = x@ + y@;\nint y@+ = x@ - y@ * 2;\n", "int x0 = N, y0 = M;\n",
               "c[x#] = a[y#];\nfor (int i = x#; i < y#; ++i) c[i + x#] = a[i];")},
      {"a variable that doubles", in_body("x = x * x + M;\n", "int x = N;\n", "c[x] = a[x];")},
      {"a variable that grows",
       in_body("x += n@ * M; int n@+ = x;\n", "int x = N; int n0 = 1;\n", "c[x] = a[x];")},
      {"an element of long sums", in_element("a[i + @] + ", "0.0f")},
      {"an element of long products", in_element("a[i] * ", "1.0f")},
      {"a subscript of many terms",
       [](std::size_t n) {
         return kernel(repeated(n, "int v@ = n[@];\n") + "for (int i = 0; i < N; ++i) c[i" +
                       repeated(n, " + v@ * i") + "] = a[i];");
       }},
      {"a subscript of many factors",
       [](std::size_t n) {
         return kernel("for (int i = 0; i < N; ++i) c[i" + repeated(n, " * (i + N + @)") + "] = a[i];");
       }},
      {"divisions and remainders",
       [](std::size_t n) {
         return kernel("for (int i = 0; i < N; ++i) { int r0 = i;\n" +
                       repeated(n, "int q@ = r@ % (@ + 2); int r@+ = r@ / (@ + 2);\n") + "c[i] = a[r1];}");
       }},
      {"commas", in_element("a[i], ", "a[i]")},
      {"assignments in one", [](std::size_t n) { return element(repeated(n, "c[@] = ") + "a[i]"); }},
      {"statements", in_body("c[@] = a[@] + 1.0f;\n")},
      {"statements in a loop", in_loop("c[i + @] = a[i] + c[i + @];\n")},
      {"updates of one element", in_loop("c[i] += a[i + @];\n")},
      {"scalars in a loop", in_loop("float t@ = a[i] * @; c[i] = t@;\n")},
      {"uses of one scalar", in_loop("t = t * a[i]; c[i] = t;\n", "float t = 0.0f;\n")},
      {"uses of one scalar outside",
       in_body("for (int i = 0; i < N; ++i) { t = t + a[i]; c[i] = t; }\n", "float t = 0.0f;\n")},
      {"loops", in_body("for (int i = 0; i < N; ++i) c[i] = a[i + @];\n")},
      {"loops over one array", in_body("for (int i = 0; i < N; ++i) c[i] = c[i] + a[i];\n")},
      {"loops over different arrays",
       [](std::size_t n) {
         return kernel(repeated(n, "float t@[64];\n") +
                       repeated(n, "for (int i = 0; i < 64; ++i) t@[i] = a[i];\n") +
                       repeated(n, "for (int i = 0; i < 64; ++i) c[i] += t@[i];\n"));
       }},
      {"loops in a loop",
       [](std::size_t n) {
         return kernel("for (int k = 0; k < M; ++k) {\n" +
                       repeated(n, "for (int i = 0; i < N; ++i) c[i] = a[i + @];\n") + "}");
       }},
      {"nests", in_body("for (int i = 0; i < N; ++i)\n for (int j = 0; j < M; ++j)\n  for (int k = 0; k < 8; "
                        "++k)\n   c[(i * M + j) * 8 + k] = a[(i * M + j) * 8 + k + @];\n")},
      {"functions",
       [](std::size_t n) {
         return repeated(n, "void f@(float* c, int N) { for (int i = 0; i < N; ++i) c[i] = @; }\n") +
                kernel("c[0] = a[0];");
       }},
      {"functions of one name",
       [](std::size_t n) {
         return repeated(n, "void f(float* c, int N) { for (int i = 0; i < N; ++i) c[i] = @; }\n") +
                kernel("c[0] = a[0];");
       }},
      {"functions that call the next twice",
       [](std::size_t n) {
         return "void f0(float* c) { c[0] = 1; }\n" + repeated(n, "void f@+(float* c) { f@(c); f@(c); }\n") +
                kernel("f1(c);");
       }},
      {"functions that call those below",
       [](std::size_t n) {
         return repeated(n, "void f@+(float* c);\n") +
                repeated(n, "void f@(float* c) { f@+(c); f@+(c + 1); }\n") + kernel("f0(c);");
       }},
      {"parameters",
       [](std::size_t n) {
         return "void step(" + repeated(n, "float* p@, ") + "int N) {\n for (int i = 0; i < N; ++i) {" +
                repeated(n, "p@[i] = p0[i];\n") + "}}";
       }},
      {"parameters that may overlap",
       [](std::size_t n) {
         return "void inner(" + repeated(n, "float* p@, ") + "int N) {\n for (int i = 0; i < N; ++i) {" +
                repeated(n, "p@[i] = p0[i];\n") + "}}\n" + kernel("inner(" + repeated(n, "c + @, ") + "N);");
       }},
      {"accesses of many arrays, many each",
       [](std::size_t n) {
         std::string hundred;
         for (int i = 0; i < 100; ++i) hundred += "t@[i] = t@[63 - i];\n";
         return kernel(repeated(n / 100 + 1, "float t@[64];\n") + "for (int i = 0; i < 64; ++i) {\n" +
                       repeated(n / 100 + 1, std::string_view(hundred)) + "}");
       }},
      {"arrays of many dimensions",
       [](std::size_t n) {
         return kernel("float t" + repeated(n, "[2]") + ";\nfor (int i = 0; i < 2; ++i) t" +
                       repeated(n, "[i]") + " = a[i]; c[0] = 1.0f;");
       }},
      {"declarators",
       [](std::size_t n) { return kernel("int x = 0" + repeated(n, ", x@ = @") + "; c[0] = a[0];"); }},
      {"arguments", [](std::size_t n) { return element("f(" + repeated(n, "a[@], ") + "0)"); }},
      {"labels", in_body("l@: c[0] = a[0];\n")},
      {"jumps", in_body("l@: if (n[@]) goto l@+;\n", "", "l1: c[0] = a[0];")},
      {"macros",
       [](std::size_t n) { return repeated(n, "#define A@ (@ + 1)\n") + kernel("c[A0] = a[A1];"); }},
      {"macros that double",
       [](std::size_t n) {
         return "#define A0 1\n" + repeated(n, "#define A@+ A@ + A@\n") + kernel("c[0] = a[0];");
       }},
      {"macros of ten each in a condition",
       [](std::size_t n) {
         return "#define A0 1\n" +
                repeated(n, "#define A@+ A@ + A@ + A@ + A@ + A@ + A@ + A@ + A@ + A@ + A@\n") +
                "#if A9 > 1\n#endif\n" + "#if A" + std::to_string(std::min<std::size_t>(n, 14)) +
                " > 1\n#endif\n" + kernel("c[0] = a[0];");
       }},
      {"macros in a ring in a condition",
       [](std::size_t n) {
         return repeated(n, "#define A@ A@+ + B@+\n#define B@ A@+ + B@+\n") + "#define A" +
                std::to_string(n) + " A0\n#if A0 > 1\n#endif\n" + kernel("c[0] = a[0];");
       }},
      {"one macro defined often",
       [](std::size_t n) {
         return repeated(n, "#define A B@ + B@+ + B0\n") + "#if A\n#endif\n" +
                repeated(n, "#if A > @\n#endif\n") + kernel("c[0] = a[0];");
       }},
      {"a long macro",
       [](std::size_t n) { return "#define A " + repeated(n, "c[@] = a[@]; \\\n") + "\n" + kernel("A"); }},
      {"conditions of the preprocessor",
       [](std::size_t n) { return repeated(n, "#if A@ > @\n#endif\n") + kernel("c[0] = a[0];"); }},
      {"a long comment",
       [](std::size_t n) { return "/* " + repeated(n, "word @\n * ") + "*/\n" + kernel("c[0] = a[0];"); }},
      {"comment lines", [](std::size_t n) { return kernel(repeated(n, "// word @\n") + "c[0] = a[0];"); }},
      {"comments at the end",
       [](std::size_t n) { return kernel("c[0] = a[0];\n" + repeated(n, "   // word @\n")); }},
      {"comments between tokens",
       [](std::size_t n) { return element(repeated(n, "/* @ */ a[i] /* @ */ + ") + "a[i]"); }},
      {"comments on one line", [](std::size_t n) { return kernel(repeated(n, "/* @ */") + "c[0] = a[0];"); }},
      {"slashes and stars", [](std::size_t n) { return kernel(repeated(n, "/ * ") + ";"); }},
      {"a long string",
       [](std::size_t n) {
         return kernel("const char* s = \"" + repeated(n, "word @ ") + "\"; c[0] = a[0];");
       }},
      {"strings side by side",
       [](std::size_t n) {
         return kernel("const char* s = " + repeated(n, "\"word\" ") + "; c[0] = a[0];");
       }},
      {"raw strings without an end",
       [](std::size_t n) { return kernel(repeated(n, "R\"x@( ") + "c[0] = a[0];"); }},
      {"raw strings with almost an end",
       [](std::size_t n) {
         return kernel("auto s = R\"xxxxxxxxxxxx(" + repeated(n, ")xxxxxxxxxxx") +
                       ")xxxxxxxxxxxx\"; c[0] = a[0];");
       }},
      {"a long identifier",
       [](std::size_t n) {
         return kernel("float " + std::string(n * 8, 'x') + " = a[0]; c[0] = " + std::string(n * 8, 'x') +
                       ";");
       }},
      {"a long number", [](std::size_t n) { return element(std::string(n * 8, '1')); }},
      {"splices", [](std::size_t n) { return element(repeated(n, "\\\n") + "a[i]"); }},
      {"backslashes", [](std::size_t n) { return element(std::string(n * 8, '\\') + "a[i]"); }},
      {"blanks behind backslashes", [](std::size_t n) { return element(repeated(n, "\\        x")); }},
      {"long lines",
       [](std::size_t n) { return "void step(float* c) { " + repeated(n, "c[@] = 1.0f; ") + "}"; }},
      {"long lines of blocks",
       [](std::size_t n) {
         return "void step(float* c, int N) { " + repeated(n, "{ if (N) { c[@] = 1.0f; } } ") + "}";
       }},
      {"empty lines", [](std::size_t n) { return kernel(repeated(n, "\n\n  \n") + "c[0] = a[0];"); }},
      {"semicolons", [](std::size_t n) { return kernel(std::string(n * 4, ';') + "c[0] = a[0];"); }},
      {"opaque statements", in_body("switch (n[@]) { case 1: c[@] = a[@]; break; }\n")},
      {"opaque statements in a loop", in_loop("switch (n[i]) { case 1: c[i] = a[@]; break; }\n")},
      {"statements that fail at their ends", in_body("a[@] + c[@] + a[@] + \n")},
      {"blocks in blocks that fail",
       [](std::size_t n) {
         return kernel(nested(std::min<std::size_t>(n, 100), "if (n[@]) { x y z(@; { ",
                              repeated(n, "c[@] = a[@];\n"), "} }"));
       }},
      {"declarations or products", in_body("x@ * y@; \n")},
      {"declarations or calls", in_body("x@ (y@) (z@); \n")},
      {"casts or calls", in_element("(x@)(y@) + ", "a[i]")},
      {"attributes",
       [](std::size_t n) { return repeated(n, "__attribute__((aligned(@))) ") + kernel("c[0] = a[0];"); }},
      {"macro calls in a file",
       [](std::size_t n) { return repeated(n, "MACRO(@) ") + kernel("c[0] = a[0];"); }},
      {"macro calls with braces in a file",
       [](std::size_t n) { return repeated(n, "MACRO(@) noexcept ") + "{}\n" + kernel("c[0] = a[0];"); }},
      {"names in a file", [](std::size_t n) { return repeated(n, "x ") + kernel("c[0] = a[0];"); }},
      {"structs",
       [](std::size_t n) { return repeated(n, "struct S@ { float x; };\n") + kernel("c[0] = a[0];"); }},
      {"globals",
       [](std::size_t n) { return repeated(n, "const int g@ = @;\n") + kernel("c[g0] = a[g1];"); }},
      {"launch lines",
       [](std::size_t n) {
         return repeated(n, "//@ launch step(a, n, c, N, M)\n") + kernel("c[0] = a[0];");
       }},
      {"scratch lines",
       [](std::size_t n) {
         return repeated(n, "//@ scratch t@: f32[N, M + @]\n") + "//@ launch step(a, n, c, N, M)\n" +
                kernel("c[0] = a[0];");
       }},
      {"a launch line with a long expression",
       [](std::size_t n) {
         return "//@ launch step(a, n, c, " + repeated(n, "N + ") + "N, M)\n" + kernel("c[0] = a[0];");
       }},
      {"a launch line with a deep expression",
       [](std::size_t n) {
         return "//@ launch step(a, n, c, " + nested(n, "(", "N", ")") + ", M)\n" + kernel("c[0] = a[0];");
       }},
      {"a launch line with deep minima",
       [](std::size_t n) {
         return "//@ launch step(a, n, c, " + nested(n, "min(N, ", "N", ")") + ", M)\n" +
                kernel("c[0] = a[0];");
       }},
      {"a launch line with signs",
       [](std::size_t n) {
         return "//@ launch step(a, n, c, " + std::string(n, '-') + "N, M)\n" + kernel("c[0] = a[0];");
       }},
      {"a launch line with products that double",
       [](std::size_t n) {
         return "//@ scratch t: f32[" + repeated(n, "(N + M + @) * ") +
                "1]\n//@ launch step(a, n, c, N, M)\n" + kernel("c[0] = a[0];");
       }},
      {"bytes above 127",
       [](std::size_t n) { return kernel(std::string(n * 8, '\xc3') + "; c[0] = a[0];"); }},
      {"zero bytes", [](std::size_t n) { return kernel(std::string(n * 8, '\0') + "; c[0] = a[0];"); }},
      {"accesses of one array in nests of three",
       [](std::size_t n) {
         return kernel(
             "for (int i = 0; i < N; ++i) for (int j = 0; j < M; ++j) for (int k = 0; k < 8; ++k) {\n" +
             repeated(n, "c[(i * M + j) * 8 + k + @] += c[(i * M + j + @) * 8 + k];\n") + "}");
       }},
      {"shared arrays and barriers",
       [](std::size_t n) {
         return "//@ launch step<<<N, 256>>>(a, n, c, N, M)\nextern \"C\" __global__ void step(const float* "
                "a, const int* n, float* c, int N, int M) {\n__shared__ float t[256];\n" +
                repeated(n, "t[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x + @]; __syncthreads(); "
                            "c[threadIdx.x] += t[255 - threadIdx.x]; __syncthreads();\n") +
                "}";
       }},
  };
}

/// A task of the parameters of these texts.
inline mtmc::Task task(std::string source) {
  mtmc::Task task;
  task.name = "hostile";
  const bool cuda = source.find("__global__") != std::string::npos;
  task.kernel = {cuda ? mtmc::languages::cuda : mtmc::languages::cpp, std::move(source), {}};
  task.sizes.emplace_back();
  for (const char* symbol : {"N", "M"}) task.sizes.front().symbols[symbol] = 64;
  return task;
}

} // namespace hostile
