#pragma once
/// What the conformance suite cannot know of a backend: its language, and small kernels in it.

#include <mtmc/core/data_type.hpp>
#include <mtmc/core/kernel.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The conformance suite for backends, which a host runs on its own.
namespace mtmc::inline MTMC_ABI::test {

/// Small kernels in a backend's language, each with its launch lines. Their arguments are, by name: buffers
/// `A` and `B` (inputs), `C` (output) of `n` f32 each, and the i32 scalars `n` and `repeats`.
struct BackendProbe {
  /// Language of all the texts.
  Language language{};
  /// C[i] = A[i] + B[i], in one launch of A, B, C and n.
  std::string vector_add{};
  /// The same result after `repeats` dependent multiplications for each element, in one launch of A, B, C, n
  /// and repeats: one call with repeats = 2000 takes at least twice as long as `vector_add`.
  std::string slow_add{};
  /// Is given C and n, and leaves C as it is.
  std::string writes_nothing{};
  /// C[i] = 3 A[i] + 2 B[i], in three launches of vector_add's function with a scratch buffer T of n f32:
  /// T = A + B, C = T + A, C = C + T.
  std::string several_launches{};
  /// C[i] = A[i], in two launches of vector_add's function with a scratch buffer T of n f32 that every call
  /// finds full of zeros: C = T + A, T = A + B. Empty: not tried.
  std::string zeroed{};
  /// Does not compile, for one error in line `wrong_line` (1-based).
  std::string does_not_compile{};
  /// 1-based line of the error in `does_not_compile`.
  int wrong_line = 0;
  /// For each of `scalar_types` in turn a parameter `s_<type>`; writes them into the i64 buffer `S`, floating
  /// ones times four. See `scalars_text`.
  std::string scalars{};
  /// What types the parameters of `scalars` have.
  std::vector<DataType> scalar_types{};
  /// Is launched with C, 3 * n as an i32 parameter and 2 * n as an f32 parameter (a launch line's expressions
  /// are i64, the parameter's own type decides), and writes their sum into C[0].
  std::string converted_scalars{};
  /// Never ends, in one launch of C and n. Empty: not tried, for a backend that cannot end it.
  std::string never_ends{};
  /// Crashes, in one launch of C and n: a write far out of bounds, say. Empty: not tried, for a backend whose
  /// own process it would end.
  std::string crashes{};
  /// Bytes of the largest buffer that is tried.
  std::size_t largest_buffer = std::size_t{64} << 20;
};

/// How a C-like language writes the kernels of a probe.
struct ProbeSpelling {
  /// Before a kernel's name: "void", "__kernel void", ...
  std::string function = "void";
  /// Before a pointer: "__global ", or nothing.
  std::string memory{};
  /// Before everything else: includes, or nothing.
  std::string preamble{};
  /// Between a launch line's entry and its arguments, with `n` elements: "<<<...>>>", or nothing.
  std::string configuration{};
  /// The same for one single element.
  std::string single{};
  /// Opens and closes the loop over, or the choice of, element `i` of `n`.
  std::string each_element{};
  /// Names of the scalar types; others are left out.
  std::map<DataType, std::string> types{};
};

/// The probe of a C-like language.
[[nodiscard]] inline BackendProbe make_probe(Language language, const ProbeSpelling& spelling) {
  const auto in = "const " + spelling.memory + "float* ";
  const auto out = spelling.memory + "float* ";
  const auto head = [&](std::string_view name, const std::string& parameters) {
    return spelling.preamble + spelling.function + " " + std::string(name) + "(" + parameters + ") {\n";
  };
  const auto each = [&](const std::string& body) { return "  " + spelling.each_element + " " + body + "\n"; };
  const auto launch = [&](std::string_view name, std::string_view arguments) {
    return "//@ launch " + std::string(name) + spelling.configuration + "(" + std::string(arguments) + ")\n";
  };
  const auto single = [&](std::string_view name, const std::string& arguments) {
    return "//@ launch " + std::string(name) + spelling.single + "(" + arguments + ")\n";
  };
  const auto add =
      head("vector_add", in + "A, " + in + "B, " + out + "C, int n") + each("C[i] = A[i] + B[i];") + "}\n";
  BackendProbe probe;
  probe.language = std::move(language);
  probe.vector_add = add + launch("vector_add", "A, B, C, n");
  // The rest of 0 times a number is kept because that number might be infinite.
  probe.slow_add = head("slow_add", in + "A, " + in + "B, " + out + "C, int n, int repeats") +
                   each("{\n    float rest = A[i];\n"
                        "    for (int k = 0; k < repeats; ++k) rest = rest * 0.999f + 0.001f;\n"
                        "    C[i] = A[i] + B[i] + 0.0f * rest;\n  }") +
                   "}\n" + launch("slow_add", "A, B, C, n, repeats");
  probe.writes_nothing = head("writes_nothing", out + "C, int n") + "  if (n < 0) C[0] = 1.0f;\n}\n" +
                         launch("writes_nothing", "C, n");
  // Its own restrict-free copy of the function: C is both read and written by the last launch.
  probe.several_launches = add + "//@ scratch T: f32[n]\n" + launch("vector_add", "A, B, T, n") +
                           launch("vector_add", "T, A, C, n") + launch("vector_add", "C, T, C, n");
  probe.zeroed = add + "//@ scratch T: f32[n] zero\n" + launch("vector_add", "T, A, C, n") +
                 launch("vector_add", "A, B, T, n");
  const auto wrong = head("wrong", out + "C, int n");
  probe.does_not_compile = wrong + "  C[0] = undeclared_name;\n}\n" + single("wrong", "C, n");
  probe.wrong_line = 1;
  for (const char c : wrong) probe.wrong_line += c == '\n' ? 1 : 0;

  std::string parameters = spelling.memory + spelling.types.at(DataType::i64) + "* S";
  std::string body;
  std::string arguments = "S";
  for (const auto& [type, name] : spelling.types) {
    const auto scalar = "s_" + std::string(to_string(type));
    body += "  S[" + std::to_string(probe.scalar_types.size()) + "] = (" + spelling.types.at(DataType::i64) +
            ")(" + scalar + (is_floating(type) ? " * 4" : "") + ");\n";
    probe.scalar_types.push_back(type);
    parameters += ", " + name + " " + scalar;
    arguments += ", " + scalar;
  }
  probe.scalars = head("scalars", parameters) + body + "}\n" + single("scalars", arguments);
  probe.converted_scalars = head("converted", out + "C, int thrice, float twice") +
                            "  C[0] = (float)thrice + twice;\n}\n" + single("converted", "C, 3 * n, 2 * n");
  // Through memory, because compilers for GPUs leave out loops that do nothing else but go on.
  probe.never_ends = head("never_ends", out + "C, int n") + "  volatile " + out + "seen = C;\n" +
                     "  seen[0] = (float)n;\n  while (seen[0] == (float)n) seen[0] = (float)n;\n}\n" +
                     single("never_ends", "C, n");
  probe.crashes = head("crashes", out + "C, int n") + "  C[((" + spelling.types.at(DataType::i64) +
                  ")1 << 44) + n] = 1.0f;\n}\n" + single("crashes", "C, n");
  return probe;
}

/// The probe for backends that take C++ (`mtmc::CpuBackend`).
[[nodiscard]] inline BackendProbe cpp_probe() {
  ProbeSpelling spelling;
  spelling.preamble = "#include <cstdint>\n";
  spelling.each_element = "for (int i = 0; i < n; ++i)";
  spelling.types = {{DataType::f64, "double"},        {DataType::f32, "float"},
                    {DataType::i64, "std::int64_t"},  {DataType::i32, "std::int32_t"},
                    {DataType::i16, "std::int16_t"},  {DataType::i8, "std::int8_t"},
                    {DataType::u64, "std::uint64_t"}, {DataType::u32, "std::uint32_t"},
                    {DataType::u16, "std::uint16_t"}, {DataType::u8, "std::uint8_t"}};
  return make_probe(languages::cpp, spelling);
}

/// The probe for backends that take OpenCL C. `doubles`: whether the device has cl_khr_fp64. Where kernels
/// run in the host's own process, as on PoCL, clear `never_ends` and `crashes`.
[[nodiscard]] inline BackendProbe opencl_probe(bool doubles = true) {
  ProbeSpelling spelling;
  spelling.function = "__kernel void";
  spelling.memory = "__global ";
  spelling.configuration = "<<<ceil_div(n, 64), 64>>>";
  spelling.single = "<<<1, 1>>>";
  spelling.each_element = "int i = get_global_id(0); if (i < n)";
  spelling.types = {{DataType::f32, "float"}, {DataType::i64, "long"},   {DataType::i32, "int"},
                    {DataType::i16, "short"}, {DataType::i8, "char"},    {DataType::u64, "ulong"},
                    {DataType::u32, "uint"},  {DataType::u16, "ushort"}, {DataType::u8, "uchar"}};
  if (doubles) spelling.types[DataType::f64] = "double";
  return make_probe(languages::opencl, spelling);
}

/// The probe for backends that take CUDA C++.
[[nodiscard]] inline BackendProbe cuda_probe() {
  ProbeSpelling spelling;
  spelling.function = "extern \"C\" __global__ void";
  spelling.configuration = "<<<ceil_div(n, 128), 128>>>";
  spelling.single = "<<<1, 1>>>";
  spelling.each_element = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)";
  spelling.types = {{DataType::f64, "double"},
                    {DataType::f32, "float"},
                    {DataType::i64, "long long"},
                    {DataType::i32, "int"},
                    {DataType::i16, "short"},
                    {DataType::i8, "signed char"},
                    {DataType::u64, "unsigned long long"},
                    {DataType::u32, "unsigned"},
                    {DataType::u16, "unsigned short"},
                    {DataType::u8, "unsigned char"}};
  return make_probe(languages::cuda, spelling);
}

} // namespace mtmc::test
