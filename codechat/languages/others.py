"""Languages that are only recognised: no validator asks for their grammar."""

from codechat.languages import Plain, register

register(Plain(("lua",), unfenced=True))
register(Plain(("julia", "jl"), unfenced=True))
register(Plain(("prolog",), unfenced=True))
register(Plain(("coffeescript", "coffee"), unfenced=True))
