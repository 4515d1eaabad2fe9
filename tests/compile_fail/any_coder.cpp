// expect: constraints not satisfied
#include <mtmc/core/any.hpp>

struct NoCoder {
  mtmc::Draft implement(const mtmc::CodingRequest&);
};
mtmc::AnyCoder coder{NoCoder{}};
