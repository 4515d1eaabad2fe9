// Reports of Nsight Compute, in and out. Needs neither the tool nor a GPU.
#include <mtmc/backend/cuda/ncu_report.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

// Written as the tool writes it: words of its own and of the program before the table, a line of units, and
// numbers with commas. The first launch is a short one.
const std::string report =
    R"csv(==PROF== Connected to process 4711 (/usr/bin/mtmc-worker)
==WARNING== Unable to set clocks.
==PROF== Profiling "prepare" - 0: 0%....50%....100% - 9 passes
==PROF== Profiling "gemm" - 1: 0%....50%....100% - 9 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","l1tex__t_sector_hit_rate.pct","l1tex__throughput.avg.pct_of_peak_sustained_active","launch__registers_per_thread","launch__waves_per_multiprocessor","lts__t_sector_hit_rate.pct","lts__throughput.avg.pct_of_peak_sustained_elapsed","sm__maximum_warps_per_active_cycle_pct","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","sm__throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_not_issued_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio","smsp__average_warps_issue_stalled_selected_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"
"","","","","","","","","","","","byte","byte","%","ns","%","%","register/thread","","%","%","%","%","%","%","inst","inst","inst","inst","inst","inst"
"0","4711","mtmc-worker","127.0.0.1","prepare(float *, int)","1","13","(256, 1, 1)","(8, 1, 1)","0","9.0","1,024","0","1.50","2,112","0","3.1","16","0.01","50","2.0","100","0","0.5","12.5","0","1","5","0","1","2"
"1","4711","mtmc-worker","127.0.0.1","gemm(const float *, ""x"", int)","1","13","(16, 16, 1)","(64, 64, 1)","0","9.0","33,554,432","4,194,304","21.25","152,320","82.4","91.7","40","3.88","71.5","40.0","75","n/a","63.0","71.25","1.5","6","6.0","2.5","1.0","2.5"
)csv";

} // namespace

TEST_SUITE("reports of Nsight Compute") {
  TEST_CASE("the launch that took longest becomes the profile") {
    const auto profile = read_ncu_report(report);
    REQUIRE(profile);
    CHECK(profile->evidence == Evidence::counters);
    CHECK(profile->bound == BoundBy::cache);
    CHECK(profile->find("duration")->value == doctest::Approx(152.32e-6));
    CHECK(profile->find("duration")->unit == "s");
    CHECK(profile->find("memory_throughput")->value == 21.25);
    CHECK(profile->find("cache_throughput")->value == 91.7);
    CHECK(profile->find("compute_throughput")->value == 63);
    CHECK(profile->find("memory_bytes")->value == 37'748'736);
    CHECK(profile->find("achieved_occupancy")->value == 71.25);
    CHECK(profile->find("possible_occupancy")->value == 75);
    CHECK(profile->find("registers")->value == 40);
    CHECK(profile->find("waves")->value == 3.88);
    CHECK(profile->find("l1_hit_rate")->value == 82.4);
    CHECK(profile->find("l2_hit_rate")->value == 71.5);
    CHECK(profile->find("matrix_throughput") == nullptr); // n/a
    CHECK(profile->reason == "caches or shared memory move 92 % of what they can; 60 % of their waiting time "
                             "warps wait for global or local memory; of 2 launches `gemm(const float *, "
                             "\"x\", int)` takes longest");
  }

  TEST_CASE("waiting is told in per cent of all waiting; being chosen, or not, is none") {
    const auto profile = read_ncu_report(report);
    REQUIRE(profile);
    CHECK(profile->find("stall_long_scoreboard")->value == doctest::Approx(60));
    CHECK(profile->find("stall_wait")->value == doctest::Approx(25));
    CHECK(profile->find("stall_barrier")->value == doctest::Approx(15));
    CHECK(profile->find("stall_selected") == nullptr);
    CHECK(profile->find("stall_not_selected") == nullptr);
    CHECK(profile->find("stall_long_scoreboard_not_issued") == nullptr);
  }

  TEST_CASE("older versions write units in full") {
    auto old = report;
    old.replace(old.find("\"ns\""), 4, "\"nsecond\"");
    CHECK(read_ncu_report(old)->find("duration")->value == doctest::Approx(152.32e-6));
  }

  TEST_CASE("what holds no counted launch is no profile") {
    CHECK_FALSE(read_ncu_report(""));
    CHECK_FALSE(read_ncu_report("==PROF== Connected\nhello\n\"a\",\"b\"\n"));
    CHECK_FALSE(read_ncu_report(report.substr(0, report.find("\"0\",\"4711\""))));
    CHECK_FALSE(read_ncu_report("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"ns\"\n"
                                "\"0\",\"f\",\"n/a\"\n"));
    CHECK(read_ncu_rows(report).size() == 2);
    CHECK(read_ncu_rows(report + "\"2\",\"too\",\"short\"\n").size() == 2);
  }

  TEST_CASE("why there are no counters is said") {
    CHECK(
        why_no_counters("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
                        "Performance Counters on the target device 0.\n")
            .find("NVreg_RestrictProfilingToAdminUsers=0") != std::string::npos);
    CHECK(why_no_counters("==PROF== x\n==ERROR== The application returned an error code (2).\n") ==
          "Nsight Compute says: The application returned an error code (2).");
    CHECK(why_no_counters("") == "Nsight Compute counted nothing");
  }

  TEST_CASE("fields keep their commas and quotes") {
    CHECK(split_csv(R"("a,b","say ""x""",c,"")") == std::vector<std::string>{"a,b", "say \"x\"", "c", ""});
    CHECK(read_ncu_number("1,234.5") == 1234.5);
    CHECK(read_ncu_number("4.0e-05") == 4e-5);
    for (const char* none : {"", "n/a", "(!) nan", "12 x"}) CHECK_FALSE(read_ncu_number(none));
  }
}
