"""Conan 2 recipe, run from the repository it lies in:

    conan create cmake/packaging/conan --build=missing -s compiler.cppstd=20

Without a network, with the system's copies of the two libraries (Debian: nlohmann-json3-dev, libtinyxml2-dev), a profile
says so, and is named when creating and when using the package (`-pr default -pr system.profile`):

    [platform_requires]
    nlohmann_json/3.11.3
    tinyxml2/10.0.0

With `-o "mtmc/*:compiled=True"` the package holds mtmc::compiled built, for one compiler and build type; without, hosts build
it, with their own flags.

The versions there are the ones that this recipe asks for, whatever the system's are: mtmc takes nlohmann/json from 3.11
and tinyxml2 from 9 on.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class MtmcConan(ConanFile):
    name = "mtmc"
    description = "Makes a compute kernel faster, and proves it"
    license = "MIT"
    topics = ("optimization", "kernel", "performance", "cuda", "header-only")
    settings = "os", "arch", "compiler", "build_type"
    options = {"compiled": [True, False]}
    default_options = {"compiled": False}
    no_copy_source = True

    def configure(self):
        self.package_type = "static-library" if self.options.compiled else "header-library"

    @property
    def _repository(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._repository, "include", "mtmc", "version.hpp"))
        self.version = ".".join(re.findall(r"#define MTMC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        for files in ("LICENSE", "CMakeLists.txt", "cmake/*.cmake", "cmake/*.in", "include/*"):
            copy(self, files, self._repository, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def requirements(self):
        self.requires("nlohmann_json/3.11.3", transitive_headers=True)
        self.requires("tinyxml2/10.0.0", transitive_headers=True, transitive_libs=True)

    def package_id(self):
        if not self.info.options.compiled:
            self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("TESTS", "EXAMPLES"):
            toolchain.cache_variables["MTMC_BUILD_" + option] = False
        toolchain.cache_variables["MTMC_INSTALL"] = True
        toolchain.cache_variables["MTMC_INSTALL_COMPILED"] = bool(self.options.compiled)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.bindirs = []
        if self.options.compiled:
            self.cpp_info.libs = ["mtmc"]
            self.cpp_info.defines = ["MTMC_SEPARATE_COMPILATION"]
        else:
            self.cpp_info.libdirs = []
        self.cpp_info.system_libs = ["dl", "pthread"]
        # CMake gets mtmc's own package, which alone has mtmc::compiled; other build systems what is said here.
        self.cpp_info.builddirs = [os.path.join("share", "mtmc")]
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.set_property("pkg_config_name", "mtmc")
