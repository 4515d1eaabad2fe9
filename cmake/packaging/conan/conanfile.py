"""Conan 2 recipe, run from the repository it lies in:

    conan create cmake/packaging/conan --build=missing -s compiler.cppstd=20
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load
from conan.tools.layout import basic_layout

required_conan_version = ">=2.0"


class MtmcConan(ConanFile):
    name = "mtmc"
    description = "Makes a compute kernel faster, and proves it"
    license = "MIT"
    topics = ("optimization", "kernel", "performance", "cuda", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def _repository(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._repository, "include", "mtmc", "version.hpp"))
        self.version = ".".join(re.findall(r"#define MTMC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        copy(self, "LICENSE", self._repository, self.export_sources_folder)
        copy(self, "include/*", self._repository, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def requirements(self):
        self.requires("nlohmann_json/3.11.3", transitive_headers=True)
        self.requires("tinyxml2/10.0.0", transitive_headers=True, transitive_libs=True)

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*.hpp", os.path.join(self.source_folder, "include"),
             os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "mtmc")
        self.cpp_info.set_property("cmake_target_name", "mtmc::mtmc")
        self.cpp_info.set_property("pkg_config_name", "mtmc")
        self.cpp_info.system_libs = ["dl", "pthread"]
