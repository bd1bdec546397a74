"""Languages that are only recognised: no validator asks for their grammar."""

from codechat.languages import Plain, register

register(Plain(("lua",)))
register(Plain(("julia", "jl")))
register(Plain(("prolog",)))
register(Plain(("coffeescript", "coffee")))
