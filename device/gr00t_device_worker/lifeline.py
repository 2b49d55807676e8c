"""The worker ends with its client, even in the middle of a call that never returns."""

import fcntl
import os
import select
import signal


def arm(descriptor: int) -> None:
    """Lets the kernel end this process when nobody can write to the pipe any more.

    No thread could do it: a call into tt-metal may hold the interpreter's lock for ever.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
    hung_up = select.poll()
    hung_up.register(descriptor, select.POLLIN)
    if hung_up.poll(0):
        os.kill(os.getpid(), signal.SIGIO)
