"""The kernel websocket that our launcher uses. Imported by the Jupyter server only."""

from __future__ import annotations

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

__all__ = ["PromptWebsocket"]


class PromptWebsocket(ZMQChannelsWebsocketConnection):
    """Sets TCP_NODELAY: an answer is two small frames, and the second would wait for an ACK."""

    def connect(self) -> Any:
        """Open the channels without Nagle's delay."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
