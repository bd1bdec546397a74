"""Languages that are only recognised: no validator asks for their grammar."""

from codechat.languages import register
from codechat.languages.coded import Recognised

register(Recognised(("lua",)))
register(Recognised(("julia", "jl")))
register(Recognised(("prolog",)))
register(Recognised(("coffeescript", "coffee")))
