"""The candidate's side of the sandbox: standard library only, nothing of codechat, no expected value.

`zygote` is a warm interpreter that forks one child per candidate; the child isolates itself (`isolate`, `seccomp`),
runs the program (`candidate`) and writes the results as bytes (`encode`) in the frames of `wire`. Assertions run in
another process (`tester`, which talks to the program's `responder` in the values of `carry`) or in the program's.
"""
