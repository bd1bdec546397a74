"""The bytes between codechat (the parent), the zygote, and the zygote's children.

Parent and zygote talk over a SOCK_SEQPACKET socket: RUN with three descriptors (job, shared memory, results), and with
two more for a command (standard output and error), TESTED, KILL, WARM, and back one STATUS message per run.

A child reports by a stream of frames:

    +--------+---------------+----------------+------------------+
    | kind   | length        | printed        | payload          |
    | 1 byte | 4 bytes (u32) | 2 bytes (u16)  | `length` bytes   |
    +--------+---------------+----------------+------------------+

`printed` is how many bytes of standard output had been kept when the frame was written, so that the parent knows at
which input a program printed. Frames gather in memory that the child shares with the parent, so that they survive the
child's death, and go over the results socket when that memory is full:

    0        CURSOR: bytes gathered, and the position of the first of them in the whole stream
    64       the head of standard output, STDOUT_SIZE bytes at most
    4096     the gathered frames, FRAMES_SIZE bytes at most

The parent reads the socket first. When the child has ended, it reads the frames that are still in the memory, from the
position in the stream at which the socket stopped.
"""

import struct

RUN, KILL = b"R", b"K"
HANDLES = 5  # the most descriptors in a RUN
TESTED = b"T"  # RUN in two processes, with a fourth descriptor: the candidate's own job
WARM = b"W"  # load the modules of assertion tests and the list in its descriptor; the same comes back at the end
STATUS = struct.Struct("<iddq")  # wait status, user and system CPU seconds, peak resident KiB
HEADER = struct.Struct("<cIH")  # kind, length of the payload, bytes printed so far
CURSOR = struct.Struct("<QQ")  # bytes waiting in the buffer, stream position of its start
DOUBLE = struct.Struct("<d")

STDOUT_AT, STDOUT_SIZE = 64, 2048  # the head of the printed bytes, zero-padded
FRAMES_AT, FRAMES_SIZE = 4096, 1 << 20
SHARED_SIZE = FRAMES_AT + FRAMES_SIZE

DIGEST_OVER = 256 * 1024  # bytes of a value beyond which its digest is sent instead
CANONICAL_UP_TO = 16 << 20  # bytes of a value up to which a second, type-blind digest is made on request
MANY = 65_536  # items of a sequence beyond which it is digested in slices

STARTED = b"P"  # sent first, before any of the candidate's code
LOADED, MISSING, SYNTAX = b"L", b"M", b"S"
VALUE, DIGEST, CANONICAL = b"V", b"D", b"C"
ERROR, CPU, DONE = b"X", b"T", b"Z"
AT = b"A"  # the next assertion snippet; in such a job DONE carries the token
INDEX = struct.Struct("<I")

INSIDE = b"I"  # from a tester: these assertions need the program in their own process, for one of the reasons below
BY_PROGRAM = frozenset(("object", "entry", "plain", "array", "kept", "exception", "builtins", "text"))
REASONS = BY_PROGRAM | {"names", "argument", "world", "attribute"}  # all that are known; the parent words them
GARBLED = b"G"  # from a tester: the candidate's messages cannot be read

# Between a tester and its candidate: a kind, a length, and a payload.
MESSAGE = struct.Struct("<cI")
CALL, NAMES = b"C", b"N"  # call a function of the program; say which of some names it has, and what they are
REPLY, PRINTED = b"R", b"O"

NEXT, ASK_CANONICAL = b"n", b"c"  # the parent's answers to a DIGEST

PYTHON = "{python}"  # as a command's program: the box's own interpreter
PATH = "/usr/local/bin:/usr/bin:/bin"  # where commands are looked for

GONE = 29  # exit status of a tester whose candidate is gone
TIMED_OUT = 27  # exit status of a child whose CPU timer rang (SIGPROF's number)
