#include <mtmc/analysis/syntax/lexer.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sample_kernels.hpp"

using mtmc::lex;
using mtmc::LexerOptions;
using mtmc::Token;
using mtmc::TokenKind;

namespace {

std::string join(std::string_view source, const std::vector<Token>& tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text(source);
  return text;
}

/// The texts of the significant tokens.
std::vector<std::string> texts(std::string_view source, const LexerOptions& options = {}) {
  std::vector<std::string> result;
  for (const Token& token : lex(source, options))
    if (!mtmc::is_trivia(token.kind)) result.emplace_back(token.text(source));
  return result;
}

/// The kind of a text that is one token.
TokenKind kind_of(std::string_view source) {
  const std::vector<Token> tokens = lex(source);
  REQUIRE_MESSAGE(tokens.size() == 1, source);
  return tokens.front().kind;
}

using Texts = std::vector<std::string>;

} // namespace

TEST_SUITE("lexer") {
  TEST_CASE("the texts of all tokens, one after the other, are the source") {
    for (const auto& sample : mtmc::samples::all) {
      CAPTURE(sample.name);
      CHECK(join(sample.source, lex(sample.source)) == sample.source);
    }
  }

  TEST_CASE("operators are read longest first") {
    CHECK(texts("a+++b--->c") == Texts{"a", "++", "+", "b", "--", "->", "c"});
    CHECK(texts("a<<=b>>=c<=>d") == Texts{"a", "<<=", "b", ">>=", "c", "<=>", "d"});
    CHECK(texts("x::y...z.*w->*v") == Texts{"x", "::", "y", "...", "z", ".*", "w", "->*", "v"});
    CHECK(texts("a&&b||!c!=~d^=e%=f") ==
          Texts{"a", "&&", "b", "||", "!", "c", "!=", "~", "d", "^=", "e", "%=", "f"});
  }

  TEST_CASE("launch brackets are one token only in CUDA") {
    CHECK(texts("f<<<1, 2>>>(x)", {.cuda_launches = true}) ==
          Texts{"f", "<<<", "1", ",", "2", ">>>", "(", "x", ")"});
    CHECK(texts("a<<<b") == Texts{"a", "<<", "<", "b"});
  }

  TEST_CASE("numbers of all kinds are one token") {
    for (const std::string_view number : {"0", "42u", "0x1F", "0b1010", "017", "1'000'000", "1.5f", ".5",
                                          "1e-3", "1E+10L", "0x1.8p-3f", "2.f", "0xFFull", "1.0_half"}) {
      CAPTURE(number);
      CHECK(kind_of(number) == TokenKind::number);
    }
    CHECK(texts("1.5f-x") == Texts{"1.5f", "-", "x"});
    CHECK(texts("0xE+1") == Texts{"0xE", "+", "1"});
    CHECK(texts("a[1].b") == Texts{"a", "[", "1", "]", ".", "b"});
  }

  TEST_CASE("strings and characters keep their escapes, prefixes and quotes") {
    for (const std::string_view text :
         {R"("")", R"("a\"b")", R"(u8"x")", R"(L"//")", R"("/* no comment */")", "\"\xc3\xa4\""}) {
      CAPTURE(text);
      CHECK(kind_of(text) == TokenKind::string);
    }
    for (const std::string_view text : {"'a'", R"('\'')", R"('\\')", "L'x'", "u8'c'"}) {
      CAPTURE(text);
      CHECK(kind_of(text) == TokenKind::character);
    }
    CHECK(kind_of("R\"(a \" ) b)\"") == TokenKind::string);
    CHECK(kind_of("u8R\"xy(a )\" )x\" \n)xy\"") == TokenKind::string);
    CHECK(texts("R(\"x\")") == Texts{"R", "(", "\"x\"", ")"});
  }

  TEST_CASE("comments are trivia, launch lines are not") {
    CHECK(kind_of("// text \\\n goes on") == TokenKind::line_comment);
    CHECK(kind_of("/* a // * \n */") == TokenKind::block_comment);
    CHECK(kind_of("//@ launch f(A)") == TokenKind::launch_comment);
    CHECK(texts("  /* x */ //@ scratch T: f32[N]\n") == Texts{"//@ scratch T: f32[N]"});
    CHECK(texts("a; //@ not first on its line") == Texts{"a", ";"});
    CHECK(texts("// plain //@ comment\nb") == Texts{"b"});
  }

  TEST_CASE("a directive reaches to the end of its logical line") {
    CHECK(kind_of("#define A(x) \\\n  (x) + 1") == TokenKind::directive);
    CHECK(kind_of("#define B \\\r\n  2") == TokenKind::directive);
    CHECK(kind_of("#define C 1 /* spans\n lines */ + 2") == TokenKind::directive);
    CHECK(texts("#include <a>\n  #pragma omp for\nx # y") ==
          Texts{"#include <a>", "#pragma omp for", "x", "#", "y"});
    CHECK(texts("#error don't // \"\nx") == Texts{"#error don't // \"", "x"});
  }

  TEST_CASE("lines and columns count from one") {
    const std::string_view source = "a\n  bb /* \n */ c\r\nd \\\n e";
    std::vector<std::pair<int, int>> places;
    for (const Token& token : lex(source))
      if (!mtmc::is_trivia(token.kind)) places.emplace_back(token.line, token.column);
    CHECK(places == std::vector<std::pair<int, int>>{{1, 1}, {2, 3}, {3, 5}, {4, 1}, {5, 2}});
  }

  TEST_CASE("what is not terminated ends with its line or with the text") {
    CHECK(texts("\"abc\nd") == Texts{"\"abc", "d"});
    CHECK(texts("'a\nd") == Texts{"'a", "d"});
    CHECK(texts("R\"(abc\nd") == Texts{"R\"(abc\nd"});
    CHECK(texts("a /* b").size() == 1);
    CHECK(texts("\"\\") == Texts{"\"\\"});
  }

  TEST_CASE("line ends of other systems, NUL bytes and other letters are read") {
    CHECK(texts("// c\r\nx\r\n") == Texts{"x"});
    CHECK(texts("#define X 1\r\ny") == Texts{"#define X 1", "y"});
    CHECK(texts("gr\xc3\xb6\xc3\x9f"
                "e = 1") == Texts{"gr\xc3\xb6\xc3\x9f"
                                  "e",
                                  "=", "1"});
    const std::string with_nul("a\0b", 3);
    CHECK(lex(with_nul).size() == 3);
    CHECK(lex(with_nul)[1].kind == TokenKind::invalid);
  }

  TEST_CASE("any bytes are covered exactly once") {
    std::uint64_t state = 1;
    const auto next = [&state] {
      return state = state * 6364136223846793005U + 1442695040888963407U, state >> 33U;
    };
    const std::string_view favoured = "\"'/*\\\n\r#R(){}<>@. 0e+x";
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (std::uint64_t length = next() % 200; length > 0; --length)
        text += next() % 2 == 0 ? favoured[next() % favoured.size()] : static_cast<char>(next() % 256);
      const std::vector<Token> tokens = lex(text, {.cuda_launches = round % 2 == 0});
      REQUIRE(join(text, tokens) == text);
      for (const Token& token : tokens) REQUIRE(token.begin < token.end);
    }
  }

  TEST_CASE("the number of tokens grows with the text, not faster") {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += mtmc::samples::gemm;
    CHECK(lex(text).size() <= 1000 * (lex(mtmc::samples::gemm).size() + 1));
  }
}
