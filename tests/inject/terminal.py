"""Runs a command on a terminal of its own and types Ctrl-C: terminal.py READY COMMAND...

Ctrl-C is typed once the file READY is there; the whole foreground process group gets the signal from the
terminal. Prints what came on the terminal, then ends with the status of the command.
"""
import os
import pty
import sys
import time

ready, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
for _ in range(6000):
    if os.path.exists(ready):
        break
    time.sleep(0.01)
os.write(terminal, b"\x03")
while True:
    try:
        text = os.read(terminal, 4096)
    except OSError:
        # Nobody has the other side open any more.
        break
    if not text:
        break
    sys.stdout.buffer.write(text)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
