#pragma once
/// Reading the tables of an ELF file: sections and symbols, as compilers for processors and GPUs write them.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A section of an ELF file.
struct ElfSection {
  /// Such as ".text".
  std::string name{};
  /// SHT_... of <elf.h>.
  std::uint32_t type = SHT_NULL;
  /// SHF_... of <elf.h>.
  std::uint64_t flags = 0;
  /// Bytes in memory; also where the file holds none of them (SHT_NOBITS).
  std::uint64_t size = 0;

  /// Whether it lies in memory at run time.
  [[nodiscard]] bool allocated() const noexcept { return (flags & SHF_ALLOC) != 0; }
  /// Whether it may be written at run time.
  [[nodiscard]] bool writable() const noexcept { return (flags & SHF_WRITE) != 0; }
  /// Whether it holds code.
  [[nodiscard]] bool executable() const noexcept { return (flags & SHF_EXECINSTR) != 0; }
  /// Whether each thread has its own.
  [[nodiscard]] bool thread_local_storage() const noexcept { return (flags & SHF_TLS) != 0; }
};

/// A symbol of an ELF file.
struct ElfSymbol {
  /// As the linker knows it.
  std::string name{};
  /// STB_... of <elf.h>.
  std::uint8_t binding = STB_LOCAL;
  /// STT_... of <elf.h>.
  std::uint8_t type = STT_NOTYPE;
  /// Index into `ElfFile::sections`, or one of the reserved SHN_... numbers.
  std::uint32_t section = SHN_UNDEF;
  std::uint64_t size = 0; ///< in bytes; 0 = unknown

  /// Whether this file defines it.
  [[nodiscard]] bool defined() const noexcept { return section != SHN_UNDEF; }
};

/// The tables of an ELF file.
struct ElfFile {
  /// ET_... of <elf.h>: ET_REL for an object file, ET_DYN for a shared object.
  std::uint16_t type = ET_NONE;
  /// EM_... of <elf.h>.
  std::uint16_t machine = EM_NONE;
  /// In the order of the section table.
  std::vector<ElfSection> sections{};
  /// Those of the full table (`.symtab`); where a file has none, those for the dynamic linker. Of several
  /// tables all: which of them a linker takes is not for the file to say.
  std::vector<ElfSymbol> symbols{};
  /// Bytes of machine code that a loader maps: executable segments. An object file has none.
  std::uint64_t code_bytes = 0;

  /// The section a symbol is defined in, or null.
  [[nodiscard]] const ElfSection* section_of(const ElfSymbol& symbol) const noexcept {
    return symbol.section != SHN_UNDEF && symbol.section < sections.size() ? &sections[symbol.section]
                                                                           : nullptr;
  }
};

namespace detail {

/// A record of an ELF file at an offset; nothing where the file is too short.
template <class Record>
[[nodiscard]] std::optional<Record> elf_record(std::string_view file, std::uint64_t offset) {
  Record record{};
  if (offset > file.size() || file.size() - offset < sizeof record) return std::nullopt;
  std::memcpy(&record, file.data() + offset, sizeof record);
  return record;
}

/// Reads names. They may overlap in their table, so that all together they are far longer than the file: then
/// reading ends, before it takes the square of the file's bytes.
class ElfNames {
public:
  explicit ElfNames(std::string_view file) : file_(file), left_(4 * file.size()) {}

  /// The text at an offset of a string table, up to its zero byte; empty where there is none.
  [[nodiscard]] std::string at(const Elf64_Shdr& table, std::uint64_t offset) {
    if (table.sh_offset > file_.size() || table.sh_size > file_.size() - table.sh_offset ||
        offset >= table.sh_size)
      return {};
    // One byte more than is left, to see whether it is too much.
    const auto text = file_.substr(table.sh_offset, table.sh_size).substr(offset, left_ + 1);
    const auto name = text.substr(0, text.find('\0'));
    exhausted_ = exhausted_ || name.size() > left_;
    left_ -= std::min(left_, name.size());
    return std::string(name);
  }
  /// Whether names were too long.
  [[nodiscard]] bool exhausted() const noexcept { return exhausted_; }

private:
  std::string_view file_;
  std::size_t left_;
  bool exhausted_ = false;
};

[[nodiscard]] inline std::vector<Elf64_Shdr> elf_section_headers(std::string_view file,
                                                                 const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> headers;
  std::uint64_t count = header.e_shnum;
  // A file of 65,280 sections and more has their number in the first one.
  if (const auto first = elf_record<Elf64_Shdr>(file, header.e_shoff); count == 0 && first)
    count = first->sh_size;
  for (std::uint64_t i = 0; i < count && header.e_shoff != 0; ++i) {
    const auto section = elf_record<Elf64_Shdr>(file, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) break;
    headers.push_back(*section);
  }
  return headers;
}

/// Adds the symbols of a table.
inline void add_elf_symbols(std::string_view file, const std::vector<Elf64_Shdr>& headers, std::size_t table,
                            ElfNames& names, std::vector<ElfSymbol>& symbols) {
  const auto& section = headers[table];
  // The numbers of sections that do not fit a symbol's 16 bits stand in a table beside it.
  const Elf64_Shdr* wide = nullptr;
  for (const auto& other : headers)
    if (other.sh_type == SHT_SYMTAB_SHNDX && other.sh_link == table) wide = &other;
  for (std::uint64_t i = 1; i < section.sh_size / sizeof(Elf64_Sym) && !names.exhausted(); ++i) {
    const auto entry = elf_record<Elf64_Sym>(file, section.sh_offset + i * sizeof(Elf64_Sym));
    if (!entry) break;
    ElfSymbol symbol;
    if (section.sh_link < headers.size()) symbol.name = names.at(headers[section.sh_link], entry->st_name);
    symbol.binding = ELF64_ST_BIND(entry->st_info);
    symbol.type = ELF64_ST_TYPE(entry->st_info);
    symbol.section = entry->st_shndx;
    symbol.size = entry->st_size;
    if (entry->st_shndx == SHN_XINDEX && wide != nullptr)
      symbol.section =
          elf_record<std::uint32_t>(file, wide->sh_offset + i * sizeof(std::uint32_t)).value_or(0);
    symbols.push_back(std::move(symbol));
  }
}

} // namespace detail

/// The tables of a 64-bit little-endian ELF file; nothing if the bytes are none, or if its names together are
/// more than four times as long as itself or its tables of symbols lie one over the other. Tables that lie
/// beyond the end of the file are left out, so whatever bytes are given, none beyond them is read.
[[nodiscard]] inline std::optional<ElfFile> read_elf(std::string_view file) {
  const auto header = detail::elf_record<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return std::nullopt;
  ElfFile result;
  result.type = header->e_type;
  result.machine = header->e_machine;
  const auto headers = detail::elf_section_headers(file, *header);
  detail::ElfNames names(file);
  std::uint32_t table = header->e_shstrndx;
  if (table == SHN_XINDEX && !headers.empty()) table = headers.front().sh_link;
  for (const auto& section : headers) {
    if (names.exhausted()) return std::nullopt;
    ElfSection& added = result.sections.emplace_back();
    if (table < headers.size()) added.name = names.at(headers[table], section.sh_name);
    added.type = section.sh_type;
    added.flags = section.sh_flags;
    added.size = section.sh_size;
  }
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = detail::elf_record<Elf64_Phdr>(file, header->e_phoff + i * header->e_phentsize);
    if (!segment) break;
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) result.code_bytes += segment->p_filesz;
  }
  for (const auto wanted : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    for (std::size_t i = 0; i < headers.size(); ++i)
      if (headers[i].sh_type == wanted) {
        detail::add_elf_symbols(file, headers, i, names, result.symbols);
        const bool overlapping = result.symbols.size() > file.size() / sizeof(Elf64_Sym);
        if (overlapping || names.exhausted()) return std::nullopt;
      }
    if (!result.symbols.empty()) break;
  }
  return result;
}

} // namespace mtmc
