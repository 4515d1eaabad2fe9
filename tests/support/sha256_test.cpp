#include <mtmc/support/sha256.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace {

// Independent check values: FIPS 180-4 examples, NIST CAVP, and sha256sum of coreutils for the lengths
// around the padding boundary.
constexpr std::string_view million_a_digest =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

} // namespace

TEST_CASE("SHA-256 gives the published NIST digests") {
  CHECK(mtmc::sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(mtmc::sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(mtmc::sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(mtmc::sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu") ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(mtmc::sha256_hex(std::string(1'000'000, 'a')) == million_a_digest);
}

TEST_CASE("SHA-256 pads messages that end next to a block boundary") {
  CHECK(mtmc::sha256_hex(std::string(55, 'a')) ==
        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(mtmc::sha256_hex(std::string(56, 'a')) ==
        "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(mtmc::sha256_hex(std::string(63, 'a')) ==
        "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  CHECK(mtmc::sha256_hex(std::string(64, 'a')) ==
        "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  CHECK(mtmc::sha256_hex(std::string(65, 'a')) ==
        "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
}

TEST_CASE("SHA-256 does not depend on how the message is cut into pieces") {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{55}, std::size_t{63},
                                  std::size_t{64}, std::size_t{65}, std::size_t{4097}}) {
    CAPTURE(piece);
    const std::string text(100'000, 'a');
    mtmc::Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += piece)
      hash.update(std::string_view{text}.substr(at, piece));
    CHECK(hash.hex_digest() == mtmc::sha256_hex(text));
  }
  mtmc::Sha256 growing;
  for (std::size_t piece = 0; piece < 200; ++piece) growing.update(std::string(piece, 'x'));
  CHECK(growing.hex_digest() == mtmc::sha256_hex(std::string(199 * 200 / 2, 'x')));
}

TEST_CASE("SHA-256 can be asked for a digest in the middle and go on") {
  mtmc::Sha256 hash;
  hash.update("a");
  CHECK(hash.hex_digest() == mtmc::sha256_hex("a"));
  CHECK(hash.hex_digest() == mtmc::sha256_hex("a"));
  hash.update("bc");
  CHECK(hash.hex_digest() == mtmc::sha256_hex("abc"));
  hash.update(std::string_view{});
  CHECK(hash.hex_digest() == mtmc::sha256_hex("abc"));
}

TEST_CASE("SHA-256 of raw bytes equals that of the same characters") {
  const std::string text = std::string("zero\0inside", 11) + '\xff';
  const std::string expected = "879283e0de9841d9a01692fab1e5883077cf45ef883ecc9ab21ba5b7e2309808";
  mtmc::Sha256 hash;
  hash.update(std::as_bytes(std::span{text}));
  CHECK(hash.hex_digest() == expected);
  CHECK(mtmc::sha256_hex(text) == expected);
  CHECK(hash.digest().front() == 0x87);
  CHECK(hash.digest().back() == 0x08);
}
