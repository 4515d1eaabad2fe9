#pragma once
/// Definitions of analysis/region_finder.hpp.

#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/structure_builder.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/threads/opencl_words.hpp>
#include <mtmc/compiled.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Structure AstRegionFinder::find(const Task& task, const Kernel& kernel) const {
  if (kernel.language.syntax != Syntax::c_family) {
    Structure structure;
    structure.kernel_id = kernel.id();
    Diagnostic note;
    note.severity = Severity::note;
    note.message =
        "the language " + kernel.language.name + " is not of the C family: no regions were looked for";
    note.remedy = "Use a region finder of your own for it";
    structure.notes.push_back(std::move(note));
    return structure;
  }
  ParserOptions options;
  options.cuda_launches = kernel.language.name == "cuda";
  SyntaxNode tree = parse(kernel.source, options);
  if (kernel.language.name == languages::opencl.name) (void)detail::OpenClWords(tree);
  return detail::StructureBuilder(task, kernel, tree).run();
}

} // namespace mtmc
