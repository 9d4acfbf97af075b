"""Worker processes that end with the process that started them, even if that was killed and could not end them."""

import os
import sys
import threading
import time

POLL_SECONDS = 0.5


def exit_with_parent(parent: int) -> None:
    """Exit this process soon after its parent, even in the middle of a fit; to be called when the process starts.

    A worker of a killed process would otherwise wait for work forever, and keep the output of its parent open.

    Parameters
    ----------
    parent : process number of the parent, which may have ended already
    """

    def watch() -> None:
        _wait_for_end(parent)
        os._exit(1)

    threading.Thread(target=watch, name="cmvmed-exit-with-parent", daemon=True).start()


if sys.platform == "win32":

    def _wait_for_end(parent: int) -> None:
        """Wait until a process has ended; the number of a parent never changes on Windows."""
        import _winapi

        try:
            handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        except OSError:  # it has ended
            return
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)

else:

    def _wait_for_end(parent: int) -> None:
        """Wait until the parent of this process is another one, which adopts it when its own has ended."""
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
