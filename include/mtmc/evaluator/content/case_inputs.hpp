#pragma once
/// The inputs of one case: as bytes, or as recipes from which they are made where they are needed.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/kept_contents.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Contents before a call. A content that has a recipe may not have been made yet: `host` makes it. Not
/// thread-safe, although `host` is const.
class CaseInputs {
public:
  /// Forgets everything, and makes room for `count` buffers without content. The memory of contents is kept.
  void clear(std::size_t count) {
    contents_.resize(count);
    types_.assign(count, DataType::u8);
    recipes_.assign(count, std::nullopt);
    made_.assign(count, true);
    masked_.assign(count, {});
  }
  /// Room for a content of so many bytes, elements of `type`, to be written at once.
  [[nodiscard]] std::vector<std::byte>& write(std::size_t i, DataType type, std::size_t bytes) {
    types_[i] = type;
    contents_[i].resize(bytes);
    return contents_[i];
  }
  /// Leaves a content to its recipe.
  void leave_to(std::size_t i, const ContentRecipe& recipe) {
    types_[i] = recipe.type;
    recipes_[i] = recipe;
    made_[i] = false;
  }
  /// A content to be changed, which has no recipe any more.
  [[nodiscard]] std::vector<std::byte>& change(std::size_t i) {
    make(i);
    recipes_[i].reset();
    masked_[i] = {};
    return contents_[i];
  }

  /// Number of contents.
  [[nodiscard]] std::size_t size() const noexcept { return contents_.size(); }
  /// Type of a content's elements; u8 where there is no content.
  [[nodiscard]] DataType type(std::size_t i) const noexcept { return types_[i]; }
  /// How a content is made; null where only its bytes are known.
  [[nodiscard]] const ContentRecipe* recipe(std::size_t i) const noexcept {
    return recipes_[i] ? &*recipes_[i] : nullptr;
  }
  /// Where a content without a recipe lies on the device, if it has been put there; `bytes` is 0 if not.
  [[nodiscard]] MaskedContent& masked(std::size_t i) const noexcept { return masked_[i]; }
  /// One content, made if need be.
  [[nodiscard]] const std::vector<std::byte>& host(std::size_t i) const {
    make(i);
    return contents_[i];
  }
  /// All of them.
  [[nodiscard]] const BufferContents& host() const {
    for (std::size_t i = 0; i < contents_.size(); ++i) make(i);
    return contents_;
  }

  /// Whether a content is `wanted`. Makes no more of it than the answer needs.
  [[nodiscard]] bool equals(std::size_t i, std::span<const std::byte> wanted) const {
    constexpr std::size_t beginning = 4096;
    if (!made_[i] && recipes_[i]->bytes() == wanted.size() && wanted.size() > beginning) {
      std::vector<std::byte> first(beginning);
      fill_beginning(first, *recipes_[i]);
      if (std::memcmp(first.data(), wanted.data(), beginning) != 0) return false;
    }
    const auto& content = host(i);
    return content.size() == wanted.size() && std::memcmp(content.data(), wanted.data(), wanted.size()) == 0;
  }

private:
  void make(std::size_t i) const {
    if (made_[i]) return;
    contents_[i].resize(recipes_[i]->bytes());
    fill_values(contents_[i], *recipes_[i]);
    made_[i] = true;
  }

  mutable BufferContents contents_;
  std::vector<DataType> types_;
  std::vector<std::optional<ContentRecipe>> recipes_;
  mutable std::vector<bool> made_;
  mutable std::vector<MaskedContent> masked_;
};

} // namespace mtmc
