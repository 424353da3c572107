"""What the launcher gives the Jupyter server. Imported by that server only."""

from __future__ import annotations

from typing import Any

from ipykernel.kernelspec import RESOURCES, get_kernel_dict
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, KernelSpec, KernelSpecManager
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

__all__ = ["OwnKernelSpecs", "PromptWebsocket"]


class PromptWebsocket(ZMQChannelsWebsocketConnection):
    """Sets TCP_NODELAY: an answer is two small frames, and the second would wait for an ACK."""

    def connect(self) -> Any:
        """Open the channels without Nagle's delay."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()


class OwnKernelSpecs(KernelSpecManager):
    """Makes `python3` the interpreter that has this package.

    Outside a virtual environment a kernel of the same name in the person's Jupyter folder would
    win, and a notebook would then fail on `import codesmith_lab`.
    """

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """The spec of a kernel by its name; other kernels are found as ever."""
        if kernel_name.lower() == NATIVE_KERNEL_NAME:
            return KernelSpec(resource_dir=str(RESOURCES), **get_kernel_dict())
        return super().get_kernel_spec(kernel_name)
