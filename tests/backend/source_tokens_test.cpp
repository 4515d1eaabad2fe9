// What compilers make of texts that are hard to take apart: whatever one of them includes, the screens have
// seen. By asking GCC, Clang and NVRTC.
#include <mtmc/backend/cpu/text_screen.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/backend/cuda/text_rules.hpp>
#include <mtmc/backend/source_tokens.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

struct Text {
  std::string name;
  std::string text;
};

const std::string include = "#include \"sought.h\"\n";

/// Each hides an include from somebody, or from nobody.
const std::vector<Text> texts{
    {"a backslash, then the line", "// c \\\n" + include},
    {"a backslash, a blank", "// c \\ \n" + include},
    {"a backslash, a tab", "// c \\\t\n" + include},
    {"a backslash, a vertical tab", "// c \\\v\n" + include},
    {"a backslash, a form feed", "// c \\\f\n" + include},
    {"a backslash, a null character", std::string("// c \\\0\nauto s = R\"(\n", 20) + include + "// )\";\n"},
    {"a vertical tab hides a raw string", "// c \\\v\nauto s = R\"(\n" + include + "// )\";\n"},
    {"a form feed hides a raw string", "// c \\\f\nauto s = R\"(\n" + include + "// )\";\n"},
    {"a blank hides a raw string", "// c \\ \nauto s = R\"(\n" + include + "// )\";\n"},
    {"a backslash and a blank line", "// c \\\n \n" + include},
    {"two backslashes", "// c \\\\\n\n" + include},
    {"a return in a comment", "// c \r" + include},
    {"a backslash and a return", "// c \\\rx\n" + include},
    {"a suffix that could begin a raw string", "const char* s = \"a\"R\"x(\";\n" + include + "//)x\";\n"},
    {"the same behind an empty literal", "const char* s = \"\"R\"(\";\n" + include + "//)\";\n"},
    {"with a blank between", "const char* s = \"\" R\"(\";\n" + include + "//)\";\n"},
    {"behind an empty literal with a prefix", "auto s = u8\"\"R\"(\";\n" + include + "//)\";\n"},
    {"a longer suffix", "auto s = \"\"u8R\"(\";\n" + include + "//)\";\n"},
    {"a suffix on the next line", "auto s = \"\"\\\nR\"(\";\n" + include + "//)\";\n"},
    {"a suffix of a raw string", "auto s = R\"(a)\"R\"(\";\n" + include + "//)\";\n"},
    {"a suffix of a character", "auto s = 'a'R\"(\";\n" + include + "//)\";\n"},
    {"a suffix of an empty character", "auto s = ''R\"(\";\n" + include + "//)\";\n"},
    {"a suffix that is a macro", "#define R\nauto s = \"\"R\"x(\";\n" + include + "//)x\";\n"},
    {"a macro that begins no raw string", "#define R\nauto s = \"\"R\"x(\";//)x\";\n" + include},
    {"a suffix that is an operator", "auto s = \"\"_Pragma(\"GCC dependency \\\"sought.h\\\"\");\n"},
    {"a number", "auto s = 1R\"(\";\n" + include + "//)\";\n"},
    {"a number with a quote", "int x = 1'\"/*\"';\n" + include + "/* */\n"},
    {"a mark of 16 characters", "auto s = R\"0123456789abcdef(\";\n" + include + "//)0123456789abcdef\";\n"},
    {"a mark of 17 characters",
     "auto s = R\"0123456789abcdefg(\";\n" + include + "//)0123456789abcdefg\";\n"},
    {"a mark with a blank", "auto s = R\" (\";\n" + include + "//) \";\n"},
    {"a mark with a backslash", "auto s = R\"\\(\";\n" + include + "//)\\\";\n"},
    {"a mark that is quoted", "auto s = R\"\"(\";\n" + include + "//)\"\";\n"},
    {"no mark", "auto s = R\"a\";\n" + include + "//(\";\n"},
    {"a dollar in a mark", "auto s = R\"$(\";\n" + include + "//)$\";\n"},
    {"a raw string in a directive", "#define A R\"(\n" + include + ")\"\nauto s = A;\n"},
    {"one in a condition", "#if 1\n#else R\"(\n#endif\n" + include + "//)\"\n"},
    {"a raw string that seems to end over a splice", "auto s = R\"(\\\n)\\\n\";\n" + include + "//)\";\n"},
    {"a raw string that does not end", "auto s = R\"x(abc\n" + include},
    {"a name with a dollar", "int $R\"(\";\n" + include + "//)\";\n"},
    {"a name with a foreign letter", "int \xC3\xA9R\"(\";\n" + include + "//)\";\n"},
    {"a foreign blank before a raw string", "\xC2\xA0R\"(\";\n" + include + "//)\";\n"},
    {"a foreign blank before a directive", "\xC2\xA0" + include},
    {"two of them and a comment", "\xE2\x80\x83/* a */\xC2\xA0 /* b */ " + include},
    {"a byte that is no text", "\xFF" + include},
    {"a byte-order mark", "\xEF\xBB\xBF" + include},
    {"a quote in skipped text", "#if 0\n don't /*\n#endif\n" + include + "#if 0\n*/\n#endif\n"},
    {"an open string", "auto s = \" /*\n;\n" + include + "*/\n"},
    {"a backslash at the end of an open string", "auto s = \"a\\\\\n\n" + include},
    {"a directive among a macro's arguments", "#define F(x)\nF(\n" + include + ")\n"},
    {"a digraph", "%:include \"sought.h\"\n"},
    {"an import", "import \"sought.h\";\n"},
    {"an exported one", "export import \"sought.h\";\n"},
    {"a vertical tab before a directive", "\v" + include},
    {"a comment that seems to end", "/*/\n" + include + "// */\n"},
    {"a comment whose end is spliced", "/* *\\\n/\n" + include},
};

/// What nobody should refuse.
const std::vector<Text> honest_texts{
    {"literals",
     "auto s = \"a\" \"b\"; char c = '\"'; auto f = 1.5e-3f; int n = 1'000'000; auto h = 0x1p-3;\n"},
    {"suffixes", "struct S {}; S operator\"\"_s(const char*, unsigned long); auto s = \"a\"_s;\n"},
    {"raw strings", "auto s = R\"x(a\n#b\n)x\";\n"},
    {"macros on many lines", "#define F(x) \\\n  ((x) + \\\n   1)\nint f = F(2);\n"},
    {"comments in any language", "// \xE2\x80\x99 don't // \\\n// \xCF\x83\n/* \xCE\xBB */ int x = 0;\n"},
    {"letters of any language", "double \xCF\x83 = 1; // \xCF\x83\ndouble x = \xCF\x83 % 2 + \xCF\x83;\n"},
    {"brackets", "int a[3]; int b = a[a[a[0]]]; auto f = [](int i) { return i; };\n"}};

/// Whether a compiler looks for the header.
bool looks_for_it(const std::string& compiler, const std::string& folder, const std::string& text) {
  write_file_atomic(folder + "/text.cpp", text);
  const auto said =
      run_process({.arguments = {compiler, "-std=gnu++20", "-w", "-E", "-o", "/dev/null", "text.cpp"},
                   .working_folder = folder,
                   .extra_environment = {"LC_ALL=C", "CCACHE_DISABLE=1"}})
          .error;
  return said.find("sought.h: No such file") != std::string::npos ||
         said.find("'sought.h' file not found") != std::string::npos;
}
bool looks_for_it(const Nvrtc& compiler, const std::string& text) {
  NvrtcRequest request;
  request.source = text.c_str(); // as it is handed over
  request.options = {"--std=c++17"};
  return compiler.compile(request).log.find("cannot open source file \"sought.h\"") != std::string::npos;
}

} // namespace

TEST_SUITE("texts as compilers see them") {
  TEST_CASE("what GCC or Clang includes, the screen of C++ refuses") {
    const TemporaryFolder folder;
    for (const char* const compiler : {"/usr/bin/g++", "/usr/bin/clang++"}) {
      if (::access(compiler, X_OK) != 0) continue;
      for (const auto& [name, text] : texts) {
        CAPTURE(compiler);
        const auto& shown = name;
        CAPTURE(shown);
        if (looks_for_it(compiler, folder.path(), text)) CHECK_FALSE(screen_text(text).empty());
      }
    }
  }

  TEST_CASE("what NVRTC includes, the screen of CUDA C++ refuses") {
    std::unique_ptr<Nvrtc> compiler;
    try {
      compiler = std::make_unique<Nvrtc>("", "/usr/local/cuda");
    } catch (const Error& error) {
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return;
    }
    for (const auto& [name, text] : texts) {
      const auto& shown = name;
      CAPTURE(shown);
      if (looks_for_it(*compiler, text)) CHECK_FALSE(DirectiveScreen(cuda_text_rules).screen(text).empty());
    }
  }

  TEST_CASE("honest texts are refused by neither") {
    for (const auto& [name, text] : honest_texts) {
      const auto& shown = name;
      CAPTURE(shown);
      CHECK(screen_text(text).empty());
      CHECK(DirectiveScreen(cuda_text_rules).screen(text).empty());
    }
  }

  TEST_CASE("a literal takes the name behind it along, and says so") {
    SourceTokens tokens("\"a\"_x R\"(b)\"R 'c'u8 \"d\"R\"(\"");
    const auto first = tokens.next();
    CHECK(first.spelling == "a");
    CHECK(first.suffix == "_x");
    CHECK(first.unclear.empty());
    const auto raw = tokens.next();
    CHECK(raw.spelling == "b");
    CHECK(raw.suffix == "R");
    CHECK(tokens.next().suffix == "u8");
    const auto doubtful = tokens.next();
    CHECK(doubtful.suffix == "R");
    CHECK_FALSE(doubtful.unclear.empty());
    CHECK(tokens.next().spelling == "(");
  }

  TEST_CASE("lines are joined as the compiler of the language joins them") {
    const std::string text = "// a \\\v\nb\n";
    CHECK(SourceTokens(text).next().kind == SourceToken::Kind::end);
    CHECK(SourceTokens(text, LineSplices::bare).next().spelling == "b");
    CHECK(SourceTokens("// a \\\nb\n", LineSplices::bare).next().kind == SourceToken::Kind::end);
  }
}
