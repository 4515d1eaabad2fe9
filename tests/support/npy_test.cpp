#include <mtmc/support/npy.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

#include "npy_bytes.hpp"

using namespace mtmc;
using Shape = std::vector<std::int64_t>;

namespace {

// numpy.save(file, numpy.arange(6, dtype='<f4').reshape(2, 3)) with NumPy 2.4.6.
constexpr std::string_view from_numpy{
    "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    "                                                          \n"
    "\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@",
    152};

struct Written {
  TemporaryFolder folder{};
  std::string path = folder.path() + "/array.npy";

  explicit Written(std::string_view bytes) { write_file_atomic(path, bytes); }
};

NpyHeader header_of(const std::string& dictionary, int version = 1) {
  return parse_npy_header(npy_bytes::header(dictionary, version));
}

/// Why a file is refused, with the remedy; empty if it is not.
std::string refusal_of(std::string_view bytes) {
  const Written file(bytes);
  try {
    (void)NpyFile(file.path).read();
    return {};
  } catch (const NpyError& error) {
    CHECK_FALSE(error.remedy().empty());
    return error.what() + std::string(". ") + error.remedy();
  }
}

std::string refusal_of_header(const std::string& dictionary) {
  return refusal_of(npy_bytes::header(dictionary));
}

bool says(const std::string& text, std::string_view part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return true;
}

} // namespace

TEST_CASE("a file written by NumPy is read") {
  const Written written(from_numpy);
  const NpyFile file(written.path);
  CHECK(file.header().type == "<f4");
  CHECK(file.header().kind == 'f');
  CHECK(file.header().width == 4);
  CHECK(file.header().shape == Shape{2, 3});
  CHECK(file.header().offset == 128);
  CHECK(file.header().bytes == 24);
  const auto elements = file.read();
  const std::vector<float> wanted{0, 1, 2, 3, 4, 5};
  REQUIRE(elements.size() == 24);
  CHECK(std::memcmp(elements.data(), wanted.data(), 24) == 0);
  // The files of the other tests are made like this one.
  CHECK(npy_bytes::file("<f4", "(2, 3)", wanted) == from_numpy);
}

TEST_CASE("all versions, orders of keys, quotes and blanks are read") {
  for (const int version : {1, 2, 3}) {
    const auto header = header_of("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", version);
    CHECK(header.shape == Shape{2});
    CHECK(header.offset == 128);
  }
  CHECK(header_of("{'shape':(4,5),\"fortran_order\" :False , 'descr':\"<f8\"}").shape == Shape{4, 5});
  CHECK(header_of("  {\t'descr': '<f8', 'fortran_order': False, 'shape': ( 7 , ) } \n ").shape == Shape{7});
  CHECK(header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (), }").shape.empty());
  CHECK(header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (), }").bytes == 8);
  CHECK(header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }").bytes == 0);
  // As Python 2 wrote long integers; and order does not matter in one dimension.
  CHECK(header_of("{'descr': '<f8', 'fortran_order': True, 'shape': (12L,), }").shape == Shape{12});
}

TEST_CASE("element types are told apart, and those no buffer has are refused") {
  const auto of = [](const std::string& type) {
    return header_of("{'descr': '" + type + "', 'fortran_order': False, 'shape': (3,), }");
  };
  for (const std::string type : {"<f2", "<f4", "<f8", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "|i1", "|u1",
                                 "|b1", "<V2", "|V2", "=f4", ">u1"}) {
    CAPTURE(type);
    const auto header = of(type);
    CHECK(header.kind == type[1]);
    CHECK(header.width == static_cast<std::size_t>(type[2] - '0'));
    CHECK(header.bytes == 3 * header.width);
  }
  for (const std::string type : {"", "f4", "<f1", "<f16", "<c8", "|O", "<U2", "<M8[s]", "<b4", "<V4", "|S3",
                                 "<f3", "?f4", "<i0", "<f", "\x01\x02\x03"}) {
    CAPTURE(type);
    CHECK_THROWS_WITH_AS((void)of(type), doctest::Contains("its elements are of the type"), NpyError);
  }
  CHECK_THROWS_WITH_AS((void)of(">f4"), doctest::Contains("big-endian"), NpyError);
  says(refusal_of_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), "records");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"), "ascontiguousarray");
}

TEST_CASE("headers that are malformed are refused with the reason") {
  says(refusal_of_header(""), "a { is missing");
  says(refusal_of_header("{"), "a quoted word is missing");
  says(refusal_of_header("{'descr"), "not closed");
  says(refusal_of_header("{'descr' '<f4'}"), "a : is missing");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)"), "a } is missing");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 1"), "closing brace");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False}"), "lacks one of");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"), "neither True nor False");
  says(refusal_of_header("{'descr': '<f4', 'descr': '<f4'}"), "twice");
  says(refusal_of_header("{'os.system': 'true'}"), "besides descr");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': 1}"), "a ( is missing");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}"), "not a tuple");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), "an extent is missing");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (,)}"), "an extent is missing");
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}"), "is missing");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1, ";
  says(refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + many + ")}"),
       "64 dimensions");
}

TEST_CASE("headers that promise more than the file holds, or than memory can, are refused") {
  const auto shaped = [](const std::string& shape) {
    return refusal_of_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}");
  };
  says(shaped("(99999999999999999999,)"), "64 bits");
  says(shaped("(9223372036854775807, 4)"), "more elements than memory");
  says(shaped("(4294967296, 4294967296)"), "more elements than memory");
  says(shaped("(1000000000000,)"), "cut off: its header names 4000000000000 bytes of elements, but 0 follow");
  says(refusal_of(from_numpy.substr(0, 150)),
       "cut off: its header names 24 bytes of elements, but 22 follow");
  says(refusal_of(std::string(from_numpy) + "x"), "too long: its header names 24");
  auto long_header = std::string(from_numpy);
  long_header[8] = '\xff';
  says(refusal_of(long_header), "cut off in its header");
  const std::string giant("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
  says(refusal_of(giant + std::string(1000, ' ')), "a header of 4294967295 bytes");
  auto future = std::string(from_numpy);
  future[6] = 4;
  says(refusal_of(future), "version 4.0");
}

TEST_CASE("no beginning of a file, and no file with a changed byte, does anything but fit or be refused") {
  for (std::size_t length = 0; length < from_numpy.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS((void)NpyFile(Written(from_numpy.substr(0, length)).path), NpyError);
  }
  int refused = 0;
  for (std::size_t at = 0; at < 128; ++at)
    for (const char byte : {'\0', '\'', '9', ')', '\xff'}) {
      auto bytes = std::string(from_numpy);
      bytes[at] = byte;
      try {
        const auto header = parse_npy_header(bytes);
        CHECK(header.offset <= bytes.size());
      } catch (const NpyError&) {
        ++refused;
      }
    }
  CHECK(refused > 500);
}

TEST_CASE("what is no .npy file at all is refused, without waiting and without an end") {
  says(refusal_of(""), "is not a .npy file");
  says(refusal_of("PK\x03\x04 an archive of numpy.savez"), "is not a .npy file");
  CHECK_THROWS_WITH_AS((void)NpyFile("/dev/zero"), doctest::Contains("is not a regular file"), NpyError);
  const TemporaryFolder folder;
  const auto pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS((void)NpyFile(pipe), doctest::Contains("is not a regular file"), NpyError);
  CHECK_THROWS_WITH_AS((void)NpyFile(folder.path()), doctest::Contains("it is a folder"), std::system_error);
  CHECK_THROWS_WITH_AS((void)NpyFile(folder.path() + "/none.npy"), doctest::Contains("none.npy"),
                       std::system_error);
}

TEST_CASE("a file that becomes shorter between header and elements is refused") {
  const Written written(from_numpy);
  const NpyFile file(written.path);
  REQUIRE(::truncate(written.path.c_str(), 130) == 0);
  CHECK_THROWS_WITH_AS((void)file.read(), doctest::Contains("became shorter"), NpyError);
}
