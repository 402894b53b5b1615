"""A port that stays one's own while nobody listens on it."""

import socket


class ReservedPort:
    """Keeps a free port from being given to anybody who asks for any port.

    The socket is bound and does not listen: others who name the port, and allow addresses to be reused as servers do,
    can listen on it meanwhile, stop, and listen again. While nobody does, connections are refused.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, 0))
        self.number: int = self._socket.getsockname()[1]

    def close(self) -> None:
        """Let the port go."""
        self._socket.close()
