// What concerns CUDA and needs neither GPU nor compiler: texts in, texts out.
#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/backend/cuda/nvrtc_log.hpp>
#include <mtmc/backend/cuda/ptx_screen.hpp>
#include <mtmc/backend/cuda/tensor_map.hpp>
#include <mtmc/backend/cuda/text_rules.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

const std::vector<LaunchSignature> launches{
    {"add", 4, {{LaunchArgument::Kind::buffer, DataType::f32, "A"}}},
    {"gone", 5, {{LaunchArgument::Kind::buffer, DataType::f32, "A"}}}};
const std::string kernel = "one\ntwo\nthree\n//@ launch add(A)\n//@ launch gone(A)\n";

std::vector<Diagnostic> read(const std::string& log, bool failed = true) {
  return read_nvrtc_log(log, kernel, launches, {"/usr/local/cuda/include"}, failed);
}

LaunchArgument integer(std::int64_t value) {
  LaunchArgument argument;
  argument.kind = LaunchArgument::Kind::scalar;
  argument.type = DataType::i64;
  argument.integer = value;
  return argument;
}

LaunchArgument tensor_map(std::vector<std::int64_t> extents, std::vector<std::int64_t> box,
                          std::map<std::string, std::int64_t> options = {}) {
  LaunchArgument argument;
  argument.kind = LaunchArgument::Kind::tensor_map;
  argument.type = DataType::f16;
  argument.name = "A";
  argument.extents = std::move(extents);
  argument.operands = std::move(box);
  argument.options = std::move(options);
  return argument;
}

} // namespace

TEST_SUITE("log of the CUDA compiler") {
  TEST_CASE("an error has its line in the kernel's text") {
    const auto found =
        read("kernel.cu(2): error: identifier \"x\" is undefined\n    y = x;\n        ^\n\n1 error "
             "detected in the compilation of \"program.cu\".\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].severity == Severity::error);
    CHECK(found[0].line == 2);
    CHECK(found[0].message == "identifier \"x\" is undefined");
  }

  TEST_CASE("warnings come after errors, with their numbers left out") {
    const auto found = read("kernel.cu(1): warning #177-D: variable \"y\" was declared but never referenced\n"
                            "kernel.cu(3): error: expected a \";\"\n");
    REQUIRE(found.size() == 2);
    CHECK(found[0].message == "expected a \";\"");
    CHECK(found[1].severity == Severity::warning);
    CHECK(found[1].message == "variable \"y\" was declared but never referenced");
  }

  TEST_CASE("sentences about launch lines are told as they were meant") {
    const auto found = read(
        "kernel.cu(4): error: static assertion failed with \"mtmc: this launch line passes 1 argument, but "
        "'add' has 2 parameters\"\n"
        "kernel.cu(4): error: whatever follows from it\n"
        "kernel.cu(5): error: identifier \"gone\" is undefined\n"
        "__nv_name_map(8): error: identifier \"gone\" is undefined\n");
    REQUIRE(found.size() == 2);
    CHECK(found[0].line == 4);
    CHECK(found[0].message == "this launch line passes 1 argument, but `add` has 2 parameters");
    CHECK(found[0].remedy.find("`add`") != std::string::npos);
    CHECK(found[1].message == "the launch line calls `gone`, which the kernel does not define");
  }

  TEST_CASE("a text that ends too early is told once, at its last line") {
    const auto found = read("end-of-kernel(1): error: namespace definition is not allowed\n"
                            "kernel.cu(4): error: linkage specification is not allowed\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].line == 6);
    CHECK(found[0].message.find("the text is incomplete") != std::string::npos);
  }

  TEST_CASE("an error in a header names the header, not its folder") {
    const auto found = read("/usr/local/cuda/include/mma.h(12): error: no such architecture\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].line == 0);
    CHECK(found[0].message == "no such architecture (in <mma.h>)");
  }

  TEST_CASE("words of a file that is no header are not passed on") {
    for (const std::string file :
         {"/etc/passwd", "/usr/local/cuda/include/../../../../etc/passwd", "notes.txt"}) {
      const auto found = read(file + "(1): error: identifier \"root\" is undefined\n  root:x:0\n  ^\n");
      REQUIRE(found.size() == 1);
      CHECK(found[0].message == "the text includes a file that is not a header of the toolkit");
    }
    CHECK(read("  root:x:0\nit failed\n").front().message == "the compiler failed: it failed\n");
  }

  TEST_CASE("a failure without a remark gives the log itself, and long lists end") {
    CHECK(read("Killed by the weather").front().message.find("the weather") != std::string::npos);
    CHECK(read("nothing to say", false).empty());
    CHECK(read("kernel.cu(3): error: \n", false).empty());
    std::string many;
    for (int line = 10; line < 40; ++line) many += "kernel.cu(" + std::to_string(line) + "): error: no\n";
    CHECK(read(many).size() == 8);
  }

  TEST_CASE("a message with the name of a type that takes up megabytes is cut") {
    std::string name = "P";
    for (int i = 0; i < 100'000; ++i) name += "<P";
    const auto found = read("kernel.cu(2): error: no suitable conversion from \"" + name + "\"\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].message.size() < 500);
    CHECK(found[0].message.starts_with("no suitable conversion"));
  }

  TEST_CASE("the report of the assembler is read by function") {
    const auto report =
        read_ptxas_report("ptxas info    : 3 bytes gmem\n"
                          "ptxas info    : Compiling entry function '_Z3addPf' for 'sm_90a'\n"
                          "ptxas info    : Function properties for _Z3addPf\n"
                          "    40 bytes stack frame, 36 bytes spill stores, 32 bytes spill loads\n"
                          "ptxas info    : Used 255 registers, used 1 barriers, 8192 bytes smem\n"
                          "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
                          "ptxas info    : Used 8 registers\n");
    REQUIRE(report.contains("_Z3addPf"));
    const auto& add = report.at("_Z3addPf");
    CHECK(add.at("stack_bytes") == 40);
    CHECK(add.at("spill_store_bytes") == 36);
    CHECK(add.at("spill_load_bytes") == 32);
    CHECK(add.at("registers") == 255);
    CHECK(add.at("shared_bytes") == 8192);
    CHECK(report.at("other").at("registers") == 8);
  }
}

TEST_SUITE("variables of the device") {
  TEST_CASE("tables that are only read are constants") {
    const PtxVariables variables(
        ".global .align 4 .b8 table[16] = {0, 0, 128, 63};\n"
        ".visible .entry f(.param .u64 p)\n{\n"
        "  mov.u64 %rd1, table;\n  add.s64 %rd2, %rd1, %rd9;\n"
        "  ld.global.nc.f32 %f1, [%rd2];\n  st.global.f32 [%rd7], %f1;\n  ret;\n}\n");
    CHECK(variables.knows("table"));
    CHECK_FALSE(variables.may_change("table"));
  }

  TEST_CASE("a variable changes by a store, an atomic, through a pointer, round a loop") {
    const std::string head = ".global .align 4 .u32 seen;\n.entry f()\n{\n";
    const auto changes = [&](const std::string& body) {
      return PtxVariables(head + body + "  ret;\n}\n").may_change("seen");
    };
    CHECK(changes("  st.global.u32 [seen], %r1;\n"));
    CHECK(changes("  @%p1 st.global.u32 [seen+4], %r1;\n"));
    CHECK(changes("  atom.global.add.u32 %r1, [seen], 1;\n"));
    CHECK(changes("  red.global.add.u32 [seen], 1;\n"));
    CHECK(changes("  mov.u64 %rd1, seen;\n  cvta.global.u64 %rd2, %rd1;\n  st.u32 [%rd2], %r1;\n"));
    CHECK(changes("  st.global.u32 [%rd3], %r1;\n  add.s64 %rd3, %rd2, 4;\n  mov.u64 %rd2, seen;\n"));
    // Its address leaves the code that can be followed.
    CHECK(changes("  mov.u64 %rd1, seen;\n  st.global.u64 [%rd7], %rd1;\n"));
    CHECK(changes("  mov.u64 %rd1, seen;\n  st.param.b64 [param0+0], %rd1;\n"));
    CHECK_FALSE(changes("  ld.global.u32 %r1, [seen];\n"));
    CHECK_FALSE(changes("  st.global.u32 [%rd1], %r1;\n"));
  }

  TEST_CASE("inline assembly hides no store, however its lines look") {
    const std::string head = ".version 9.0\n.target sm_90a\n.address_size 64\n.global .align 4 .u32 seen;\n"
                             ".entry f()\n{\n  mov.u64 %rd1, seen;\n";
    const auto changes = [&](const std::string& body) {
      return PtxVariables(head + body + "  ret;\n}\n").may_change("seen");
    };
    CHECK(changes("  ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1;\n"));
    CHECK(changes("  st.global.u32\n    [%rd1], %r1;\n"));
    CHECK(changes("  /*//*/ st.global.u32 [%rd1], %r1;\n"));
    CHECK(changes("  .pragma \"//\"; st.global.u32 [%rd1], %r1;\n"));
    CHECK(changes("  { here: st.global.u32 [%rd1], %r1; }\n"));
    CHECK(changes("  @ p st.global.u32 [%rd1], %r1;\n"));
    CHECK(changes("  @p\nst.global.u32 [%rd1], %r1;\n"));
    CHECK(changes("  mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd2, {%r9, %r2}; st.global.u32 [%rd2], 1;\n"));
    CHECK_FALSE(changes("  // st.global.u32 [%rd1], %r1;\n  /* st.global.u32 [%rd1], %r1; */\n"));
    CHECK_FALSE(changes("  $L__BB0_1:\n  ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd7], %r1;\n"));
  }

  TEST_CASE("a variable changes through its address in another one; tables of tables are constants") {
    const std::string head =
        ".global .align 4 .u32 seen;\n.global .align 8 .u64 where[1] = {generic(seen)};\n"
        ".entry f()\n{\n  ld.global.u64 %rd1, [where];\n";
    CHECK(PtxVariables(head + "  st.u32 [%rd1], 1;\n}\n").may_change("seen"));
    const PtxVariables read(head + "  ld.u32 %r1, [%rd1];\n  st.u32 [%rd2], %r1;\n}\n");
    CHECK_FALSE(read.may_change("seen"));
    CHECK_FALSE(read.may_change("where"));
  }

  TEST_CASE("an address is followed through statements in any order, each read once") {
    // Twenty thousand registers, each made of the one behind it.
    std::string chain;
    for (int i = 0; i < 20'000; ++i)
      chain += "mov.u64 %r" + std::to_string(i) + ", %r" + std::to_string(i + 1) + ";\n";
    const std::string head = ".global .align 4 .u32 seen;\n.entry f()\n{\nbegin:\n";
    const std::string end = "mov.u64 %r20000, seen;\nbra begin;\n}\n";
    CHECK_FALSE(PtxVariables(head + chain + end).may_change("seen"));
    CHECK(PtxVariables(head + "st.u32 [%r0], 1;\n" + chain + end).may_change("seen"));
  }

  TEST_CASE("of more addresses in more registers than can be followed, all may change") {
    std::string text;
    for (int i = 0; i < 4000; ++i) text += ".global .u32 table" + std::to_string(i) + ";\n";
    text += ".entry f()\n{\n";
    for (int i = 0; i < 4000; ++i)
      text += "add.u64 %r" + std::to_string(i) + ", %r" + std::to_string(i + 1) + ", table" +
              std::to_string(i) + ";\n";
    CHECK(PtxVariables(text + "}\n").may_change("table7"));
  }

  TEST_CASE("constant memory can be written like any other") {
    const std::string head = ".const .align 4 .b8 table[16];\n.entry f()\n{\n";
    const PtxVariables written(head + "  cvta.const.u64 %rd1, table;\n  st.u32 [%rd1+4], 1;\n}\n");
    CHECK(written.knows("table"));
    CHECK(written.may_change("table"));
    CHECK_FALSE(PtxVariables(head + "  ld.const.u32 %r1, [table+4];\n}\n").may_change("table"));
  }

  TEST_CASE("registers of one function are not those of another") {
    const PtxVariables variables(".global .u32 seen;\n.entry f()\n{\n  mov.u64 %rd1, seen;\n  ld.u32 %r1, "
                                 "[%rd1];\n}\n.entry g()\n{\n  st.global.u32 [%rd1], 1;\n}\n");
    CHECK_FALSE(variables.may_change("seen"));
  }
}

TEST_SUITE("tensor maps") {
  TEST_CASE("the driver is told of a buffer from its innermost extent outwards") {
    TensorMapRequest request;
    const auto map = tensor_map({3, 100, 64}, {1, 50, 32}, {{"swizzle", 64}, {"l2", 256}, {"nan_fill", 1}});
    CHECK(read_tensor_map(map, 4096, request).empty());
    CHECK(request.type == 6);
    CHECK(request.rank == 3);
    CHECK(request.extents == std::array<std::uint64_t, 5>{64, 100, 3, 0, 0});
    CHECK(request.strides == std::array<std::uint64_t, 5>{128, 12800, 0, 0, 0});
    CHECK(request.box == std::array<std::uint32_t, 5>{32, 50, 1, 0, 0});
    CHECK(request.interleave == 0);
    CHECK(request.swizzle == 2);
    CHECK(request.promotion == 3);
    CHECK(request.fill == 1);
  }

  TEST_CASE("what the hardware cannot do is refused with the number and the limit") {
    const auto reason = [](const LaunchArgument& map, std::uint64_t address = 4096) {
      TensorMapRequest request;
      return read_tensor_map(map, address, request);
    };
    const auto says = [](const std::string& text, const char* part) {
      return text.find(part) != std::string::npos;
    };
    CHECK(says(reason(tensor_map({64, 64}, {64})), "the box of its tensor map 1"));
    CHECK(says(reason(tensor_map({}, {})), "one to five"));
    CHECK(says(reason(tensor_map({64, 64}, {257, 64})), "257"));
    CHECK(says(reason(tensor_map({64, 64}, {0, 64})), "1 to 256"));
    CHECK(says(reason(tensor_map({64, 63}, {8, 8})), "rows of 126 bytes"));
    CHECK(says(reason(tensor_map({64, 64}, {8, 4})), "innermost extent is 8 bytes"));
    CHECK(says(reason(tensor_map({64, 64}, {8, 8}), 4100), "no multiple of 16"));
    CHECK(says(reason(tensor_map({64, 64}, {8, 64}, {{"swizzle", 64}})), "with swizzle=64"));
    CHECK(says(reason(tensor_map({64, 64}, {8, 8}, {{"swizzle", 16}})), "32, 64, 128"));
    CHECK(says(reason(tensor_map({64, 64}, {8, 8}, {{"l2", 32}})), "l2=32"));
    CHECK(says(reason(tensor_map({64, 64}, {8, 8}, {{"interleave", 16}})), "three extents"));
    CHECK(says(reason(tensor_map({8, 64, 64}, {8, 8, 8}, {{"interleave", 32}})), "without swizzle=32"));
    auto integers = tensor_map({64, 64}, {8, 8}, {{"nan_fill", 1}});
    integers.type = DataType::i16;
    CHECK(says(reason(integers), "integers"));
    // One extent has no rows, whatever its length.
    CHECK(reason(tensor_map({63}, {8})).empty());
  }
}

TEST_SUITE("texts of CUDA kernels") {
  TEST_CASE("headers that compute are allowed, files of the machine are not") {
    const auto refused = [](const std::string& text) {
      return !DirectiveScreen(cuda_text_rules).screen(text).empty();
    };
    CHECK_FALSE(
        refused("#include <cuda_fp16.h>\n#include <mma.h>\n#include <cuda/std/array>\n#pragma unroll 4\n"));
    CHECK_FALSE(refused("#include <cstdint>\n#if __CUDA_ARCH__ >= 900\n#endif\n"));
    CHECK(refused("#include \"/etc/passwd\"\n"));
    CHECK(refused("#include </etc/passwd>\n"));
    CHECK(refused("#include <cuda/../../../etc/passwd>\n"));
    CHECK(refused("#inc\\\nlude \"/etc/passwd\"\n"));
    CHECK(refused("#define F </etc/passwd>\n#include F\n"));
    CHECK(refused("#if __has_include(\"/etc/passwd\")\n#endif\n"));
    CHECK(refused("#embed \"/etc/passwd\"\n"));
    CHECK(refused("#line 1 \"kernel.cu\"\n"));
    CHECK(refused("int mtmc_parameter_0_0;\n"));
  }

  TEST_CASE("headers of the toolkit before anything else are the ones to precompile") {
    const std::string text = "// a comment\n#pragma once\n#include <mma.h>\n#include <cstdint>\n"
                             "#include \"cuda_fp16.h\"\n#include <mma.h>\n";
    const std::string both = "#include <cuda_fp16.h>\n#include <mma.h>\n";
    CHECK(leading_cuda_includes(text) == both);
    CHECK(leading_cuda_includes(text + "int x;\n#include <cuda/barrier>\n") == both);
    // What comes before these could change their meaning.
    CHECK(leading_cuda_includes("#define min max\n" + text).empty());
    CHECK(leading_cuda_includes("#if 0\n" + text + "#endif\n").empty());
    CHECK(leading_cuda_includes("using half = int;\n" + text).empty());
    CHECK(leading_cuda_includes("#include </etc/passwd>\n" + text).empty());
    CHECK(leading_cuda_includes("").empty());
  }

  TEST_CASE("integers of a launch line become what their parameters are, if they fit") {
    CHECK(cuda_parameter_bits(integer(-2), CudaParameter::i32) == 0xfffffffeu);
    CHECK(cuda_parameter_bits(integer(-2), CudaParameter::i8) == 0xfeu);
    CHECK(cuda_parameter_bits(integer(-2), CudaParameter::i64) == std::uint64_t(-2));
    CHECK(cuda_parameter_bits(integer(3), CudaParameter::f32) == 0x40400000u);
    CHECK(cuda_parameter_bits(integer(3), CudaParameter::f64) == 0x4008000000000000u);
    CHECK_FALSE(cuda_parameter_bits(integer(-2), CudaParameter::u32));
    CHECK_FALSE(cuda_parameter_bits(integer(300), CudaParameter::u8));
    CHECK_FALSE(cuda_parameter_bits(integer(std::int64_t{1} << 40), CudaParameter::i32));
    CHECK_FALSE(cuda_parameter_bits(integer(1), CudaParameter::pointer));
    LaunchArgument real = integer(0);
    real.type = DataType::f32;
    real.real = 0.5;
    CHECK(cuda_parameter_bits(real, CudaParameter::f32) == 0x3f000000u);
    CHECK_FALSE(cuda_parameter_bits(real, CudaParameter::i32));
  }
}
