// Which symbols the object file of a kernel may refer to.
#include <mtmc/backend/cpu/allowed_symbols.hpp>

#include <doctest/doctest.h>

#include <string>

using mtmc::detail::is_allowed_function;

TEST_SUITE("allowed symbols") {
  TEST_CASE("what compilers call for honest kernels is allowed") {
    for (const std::string name : {"expf",
                                   "pow",
                                   "sincosf",
                                   "__expf_finite",
                                   "_ZGVdN8v_sinf",
                                   "_ZGVeN16vv_powf",
                                   "memcpy",
                                   "aligned_alloc",
                                   "_Znwm",
                                   "_ZdlPvmSt11align_val_t",
                                   "_ZnwmRKSt9nothrow_t",
                                   "GOMP_parallel",
                                   "GOMP_loop_ull_dynamic_start",
                                   "__kmpc_for_static_init_4",
                                   "omp_get_thread_num",
                                   "__divti3",
                                   "__mulsc3",
                                   "__powidf2",
                                   "__extendhfsf2",
                                   "__truncsfbf2",
                                   "__floattisf",
                                   "__fixunsdfti",
                                   "__popcountdi2",
                                   "_ZSt20__throw_length_errorPKc",
                                   "_ZNSt12out_of_rangeC1EPKc",
                                   "_ZNKSt13runtime_error4whatEv",
                                   "_ZTVN10__cxxabiv120__si_class_type_infoE",
                                   "_ZTISt9exception",
                                   "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm",
                                   "__cxa_throw",
                                   "__gxx_personality_v0",
                                   "_Unwind_Resume",
                                   "__libc_single_threaded"}) {
      CAPTURE(name);
      CHECK(is_allowed_function(name));
    }
  }

  TEST_CASE("what keeps state, tells time or reaches out is not, however its name begins") {
    for (const std::string name : {"_ZNSt3pmr20set_default_resourceEPNS_15memory_resourceE",
                                   "__cxa_get_globals",
                                   "__cxa_get_globals_fast",
                                   "__cxa_demangle",
                                   "_ZSt5wcerr",
                                   "_ZSt4cout",
                                   "_ZNSt7codecvtIcc11__mbstate_tE2idE",
                                   "_ZNSt6chrono3_V212system_clock3nowEv",
                                   "_ZSt15get_new_handlerv",
                                   "_ZSt13get_terminatev",
                                   "_ZSt17current_exceptionv",
                                   "_ZSt19uncaught_exceptionsv",
                                   "_Unwind_Backtrace",
                                   "_Unwind_Find_FDE",
                                   "__kmpc_threadprivate_cached",
                                   "GOMP_target",
                                   "GOMP_PLUGIN_malloc",
                                   "_ZGVZ4mainE1x",
                                   "__environ",
                                   "__errno_location",
                                   "signgam",
                                   "__progname",
                                   "__libc_start_main",
                                   "__powder",
                                   "__divide",
                                   "_Znew",
                                   "_ZNSt13random_device9_M_getvalEv",
                                   "system",
                                   "clock",
                                   "rand"}) {
      CAPTURE(name);
      CHECK_FALSE(is_allowed_function(name));
    }
  }
}
