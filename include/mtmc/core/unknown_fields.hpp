#pragma once
/// What a newer version or a host wrote into a JSON object and this version does not know.

#include <mtmc/requirements.hpp>

#include <map>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Fields of a JSON object that the reader did not know, name to JSON text. They are written back unchanged,
/// so that nothing is lost when an older version passes a document on.
struct UnknownFields {
  std::map<std::string, std::string> json; ///< name of the field to its JSON text

  friend bool operator==(const UnknownFields&, const UnknownFields&) = default; ///< member by member
};

} // namespace mtmc
