#pragma once
/// Tensors that a judge and its contestants share, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// sharing.py, which judging.py imports.
inline constexpr std::string_view sharing_text =
    R"python("""Tensors that judge and contestants share, each in memory of its own."""
import base64
import ctypes
import mmap
import os

import torch

from replaying import Refused, TYPES


RED_ZONE = 256 << 10  # bytes before and behind each tensor


class HostBuffers:
    """Inputs and outputs that judge and contestant share, on the host."""

    def __init__(self, inputs, outputs):
        self.views = {"inputs": inputs, "outputs": outputs}
        self.raw = {name: [self.shared(bytes_of(view)) for view in views] for name, views in self.views.items()}

    def shared(self, size):
        place = os.memfd_create("tensor")
        os.ftruncate(place, max(size, 1))
        return torch.frombuffer(mmap.mmap(place, max(size, 1)), dtype=torch.uint8)

    def told(self):
        """What a contestant has to know to find them."""
        return {}

    def fill_zones(self, byte):
        pass  # no kernel runs here

    def zones_changed(self, byte):
        return False

    def tensors(self, name):
        return [tensor_of(raw, view) for raw, view in zip(self.raw[name], self.views[name])]

    def inputs(self):
        return self.tensors("inputs")

    def outputs(self):
        return self.tensors("outputs")


class Foreign:
    """Memory of a device at an address, as PyTorch takes it in."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def memory_at(address, size):
    return torch.as_tensor(Foreign(address, size), device="cuda")


def any_differs(zones, byte):
    return bool(zones) and bool(torch.stack([(zone != byte).any() for zone in zones]).any().item())


class DeviceBuffers(HostBuffers):
    """The same on a device: each an allocation of its own, which the contestants open by its handle, between two zones
    that nobody may write to."""

    HANDLE = 64
    zones = ()

    def shared(self, size):
        return max(size, 1)  # made once the device is in use

    def make(self):
        """In the judge."""
        torch.zeros(1, device="cuda")
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.handles, self.zones = {}, []
        for name, sizes in self.raw.items():
            made = [self.allocated(size) for size in sizes]
            self.raw[name] = [raw for raw, _ in made]
            self.handles[name] = [base64.b64encode(handle).decode() for _, handle in made]

    def allocated(self, size):
        # A peer sees all of the memory that a small allocation is a part of.
        whole = 2 << 20
        whole = (size + 2 * RED_ZONE + whole - 1) // whole * whole
        address = ctypes.c_uint64()
        handle = ctypes.create_string_buffer(self.HANDLE)
        if self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(whole)) != 0:
            raise Refused("the device has not enough memory for inputs and results")
        if self.cuda.cuIpcGetMemHandle(handle, address) != 0:
            raise Refused("this device does not share memory between processes")
        everything = memory_at(address.value, whole)
        self.zones += [everything[:RED_ZONE], everything[RED_ZONE + size:]]
        return memory_at(address.value + RED_ZONE, size), handle.raw

    def fill_zones(self, byte):
        for zone in self.zones:
            zone.fill_(byte)

    def zones_changed(self, byte):
        return any_differs(self.zones, byte)

    def told(self):
        return {**self.views, "handles": self.handles}

    def open(self, handles):
        """In a contestant."""
        torch.zeros(1, device="cuda")
        cuda = ctypes.CDLL("libcuda.so.1")

        class Handle(ctypes.Structure):
            _fields_ = [("reserved", ctypes.c_char * self.HANDLE)]

        for name, sizes in self.raw.items():
            opened = []
            for size, handle in zip(sizes, handles[name]):
                address, given = ctypes.c_uint64(), Handle()
                ctypes.memmove(ctypes.byref(given), base64.b64decode(handle), self.HANDLE)
                if cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), given, 1) != 0:
                    raise Refused("this device does not share memory between processes")
                opened.append(memory_at(address.value + RED_ZONE, size))
            self.raw[name] = opened


def bytes_of(view):
    if 0 in view["sizes"]:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(view["sizes"], view["strides"]))
    return (last + 1) * TYPES[view["type"]].itemsize


def dense(view):
    """The same tensor in rows."""
    strides, step = [], 1
    for size in reversed(view["sizes"]):
        strides.insert(0, step)
        step *= size
    return {**view, "offset": 0, "strides": strides}


def tensor_of(raw, view):
    return torch.empty(0, dtype=TYPES[view["type"]], device=raw.device).set_(raw.untyped_storage(), 0, view["sizes"],
                                                                            view["strides"])
)python";

} // namespace mtmc::detail
