"""The bytes between the two sides.

Parent and zygote talk over a SOCK_SEQPACKET socket: RUN with three descriptors (job, shared memory, results), and with
two more for a command (standard output and error), TESTED, KILL, WARM, and back one STATUS message per run. The child
writes a stream of frames: kind, length, how much was printed, payload. Frames gather in shared memory, so that they
survive the child's death, and go over the results socket when it fills.
"""

import struct

RUN, KILL = b"R", b"K"
HANDLES = 5  # the most descriptors in a RUN
TESTED = b"T"  # RUN in two processes, with a fourth descriptor: the candidate's own job
WARM = b"W"  # load the modules of assertion tests, and those that its descriptor lists; the same comes back at the end
STATUS = struct.Struct("<iddq")  # wait status, user and system CPU seconds, peak resident KiB
HEADER = struct.Struct("<cIH")  # kind, length of the payload, bytes printed so far
CURSOR = struct.Struct("<QQ")  # bytes waiting in the buffer, stream position of its start
DOUBLE = struct.Struct("<d")

STDOUT_AT, STDOUT_ROOM = 64, 2048  # the head of the printed bytes, zero-padded
FRAMES_AT, FRAMES_ROOM = 4096, 1 << 20
SHARED_SIZE = FRAMES_AT + FRAMES_ROOM

DIGEST_OVER = 256 * 1024  # bytes of a value beyond which its digest is sent instead
CANONICAL_UP_TO = 16 << 20  # bytes of a value up to which a second, type-blind digest is made on request
MANY = 65_536  # items of a sequence beyond which it is digested in slices

STARTED = b"P"  # sent first, before any of the candidate's code
LOADED, MISSING, SYNTAX = b"L", b"M", b"S"
VALUE, DIGEST, CANONICAL = b"V", b"D", b"C"
ERROR, CPU, DONE = b"X", b"T", b"Z"
AT = b"A"  # the next assertion snippet; in such a job DONE carries the token
INDEX = struct.Struct("<I")

INSIDE = b"I"  # from a tester: why these assertions need the program in their own process
GARBLED = b"G"  # from a tester: the candidate's messages cannot be read

# Between a tester and its candidate: a kind, a length, and a payload.
MESSAGE = struct.Struct("<cI")
CALL, NAME = b"C", b"N"  # call a function of the program; say what a name of it is
REPLY, PRINTED = b"R", b"O"

NEXT, ASK_CANONICAL = b"n", b"c"  # the parent's answers to a DIGEST

PYTHON = "{python}"  # as a command's program: the box's own interpreter

GONE = 29  # exit status of a tester whose candidate is gone
TIMED_OUT = 27  # exit status of a child whose CPU timer rang (SIGPROF's number)
