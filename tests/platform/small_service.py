"""A service that only lives, or does not even that: what the supervisor's tests start."""

import signal
import socket
import sys

if __name__ == "__main__":
    role, *words = sys.argv[1:]
    if role == "fails":
        sys.exit(3)
    if role == "listens":
        server = socket.socket(socket.AF_UNIX)
        server.bind(words[0])
        server.listen()
    signal.pause()
