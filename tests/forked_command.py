"""Stands for a command that a fork server starts, so that scripts can use one.

A script finds it as `siftlog`: it asks the server at the address given first for a
process with the words that follow, passes signals on to it and ends as it ends.
`ForkServer.write_command` writes the call; it starts without `site`, in 20 ms.
"""

import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress

NUMBER = struct.Struct("=i")
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def main() -> int:
    address, *words = sys.argv[1:]
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes long to import
    message = json.dumps([words, folder, dict(os.environ)]).encode()
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    status, theirs = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as server, theirs:
        server.connect(address)
        fds = [0, 1, 2, theirs.fileno()]
        socket.send_fds(server, [NUMBER.pack(len(message))], fds)
        server.sendall(message)
        (pid,) = NUMBER.unpack(status.recv(NUMBER.size))

    def pass_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, number)

    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    (code,) = NUMBER.unpack(status.recv(NUMBER.size))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
