# How to add a benchmark: write tests/bench/<name>_bench.cpp (Google Benchmark; its own main is optional). It becomes
# the executable bench_<name>; `tests/run bench` builds and runs them all.
find_package(benchmark REQUIRED)
add_custom_target(benchmarks)
file(GLOB sources CONFIGURE_DEPENDS bench/*_bench.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  string(REGEX REPLACE "_bench$" "" name ${name})
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE mtmc::mtmc mtmc_warnings benchmark::benchmark_main)
  target_compile_definitions(bench_${name} PRIVATE
    MTMC_REPOSITORY="${PROJECT_SOURCE_DIR}" MTMC_EXAMPLES="${PROJECT_BINARY_DIR}/examples")
  add_dependencies(benchmarks bench_${name})
endforeach()
