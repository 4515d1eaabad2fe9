// What a PTX text says about clocks, chance and places, and which waits of a library are let through.
#include <mtmc/backend/cuda/time_and_place.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

using mtmc::detail::time_and_place_in;
using mtmc::detail::waits_by_library_alone;

TEST_CASE("special registers and sleeping are found by their names") {
  const auto found = [](const std::string& text) { return time_and_place_in(".version 9.0\n" + text); };
  using Names = std::set<std::string, std::less<>>;
  CHECK(found("mov.u32 %r1, %clock;\n") == Names{"%clock"});
  CHECK(found("mov.u64 %rd1, %clock64; mov.u64 a,%globaltimer_lo;\n") ==
        Names{"%clock64", "%globaltimer_lo"});
  CHECK(found("here:{mov.u32 a,%smid;}\n") == Names{"%smid"});
  CHECK(found("/* nothing */ mov /* else */ .u32 a, %warpid;\n") == Names{"%warpid"});
  CHECK(found("@p nanosleep.u32 100;\n") == Names{"nanosleep"});
  CHECK(found("mov.u64 a, %gridid;\nmov.u32 b, %pm0;\n") == Names{"%gridid", "%pm0"});
  CHECK(found("// mov.u32 %r1, %clock;\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %laneid;\n"
              "setp.ne.u32 %p1, %r1, 0;\n.reg .pred %p<3>;\n")
            .empty());
}

TEST_CASE("only a text that can do neither itself may wait by a library's loop") {
  const std::string barrier = "#include <cuda/barrier>\n";
  CHECK(waits_by_library_alone(barrier + "void f() { b.arrive_and_wait(); }\n"));
  CHECK(waits_by_library_alone("#include <cuda/pipeline>\nvoid f() { p.consumer_wait(); }\n"));
  CHECK_FALSE(waits_by_library_alone("void f() { b.arrive_and_wait(); }\n"));
  for (const std::string more :
       {"asm(\"\");", "__asm__(\"\");", "__nanosleep(1);", "clock64();", "cuda::ptx::get_sreg_globaltimer();",
        "b.try_wait_for(t, d);", "b.try_wait_until(t, d);", "cuda::std::chrono::system_clock::now();",
        "J(a, b)\n#define J(a, b) a##b\n"})
    CHECK_FALSE_MESSAGE(waits_by_library_alone(barrier + "void f() { " + more + " }\n"), more);
}
