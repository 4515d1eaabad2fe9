# How to add a benchmark: write tests/bench/<name>_bench.cpp, for Google Benchmark or with a `main` of its own that ends
# with 1 where a bound is broken, with 77 where the machine lacks what it measures. It becomes the executable
# bench_<name>; `tests/run bench` builds them all and runs each without options, which should take no more than a minute.
# What benchmarks share is a header of the folder; bench/headers_test.cpp, one of the tests, includes all of them.
find_package(benchmark REQUIRED)
mtmc_find_or_fetch_cli11()
add_custom_target(benchmarks)
file(GLOB sources CONFIGURE_DEPENDS bench/*_bench.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_bench$" "" name ${name})
  add_executable(bench_${name} ${source})
  # A library: its main counts only where the program has none.
  target_link_libraries(bench_${name} PRIVATE mtmc::compiled mtmc_warnings benchmark::benchmark_main CLI11::CLI11)
  target_compile_definitions(bench_${name} PRIVATE
    MTMC_REPOSITORY="${PROJECT_SOURCE_DIR}" MTMC_EXAMPLES="${PROJECT_BINARY_DIR}/examples")
  add_dependencies(benchmarks bench_${name})
endforeach()
