"""The meaning of an endpoint's words: the conversation is too long, or a parameter is refused.

No list of sentences: a text says that the conversation is too long if it names the conversation, or the context, and a
limit of its length. Names and numbers of other limits are taken out before: rates, sizes in bytes, lengths of replies.
"""

import re

LONGEST = 2_000
"""Characters of an error's text that are read: later ones are often the request itself."""
LONGEST_FIELD = 80


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(alternatives)})(?![a-z0-9])")


_RATES = _any(
    r"[tr]p[mdhs]|qp[sm]|per[ -](?:min\w*|day|hour|second|week|month)|/ ?min\w*|today|this month|hourly|daily|monthly",
    r"(?:rate|usage|spend\w*) limits?|too many requests|quotas?|throttl\w+|please wait|retry after",
    r"concurren\w+|billing|credits?|balance|subscription|(?:your|free|current) (?:plan|tier)|resource exhausted",
    r"overloaded",
)
_OTHER = _any(
    r"deadline|time ?outs?|timed out|time limit|seconds?|minutes?|retries|attempts?|nest\w+|recursi\w+|depth|memory",
    r"vocab\w*|logits?|logprobs?|token ids?|(?:stop|eos) (?:sequences?|tokens?|strings?|words?)|too (?:short|small)",
    r"auth\w*|jwt|bearer|api keys?|access tokens?|connections?|streams?|batch\w*",
    r"safety|policy|policies|violat\w+|flagged|moderat\w+|unsafe",
    r"\d[\d.,]{0,12} ?[kmg]i?b|[kmg]egabytes?|content-length",
    r"images?|pictures?|pixels?|videos?|audio|files?|pdfs?|attachments?|documents?|uploads?",
)
"""Limits of another kind: of time, memory, files."""
_BODY = _any(r"bytes|body|payload|entity|request size")
_OF_TOKENS = _any(r"\d[\d,._]* tokens")
_REPLY = _any(
    r"max(?:imum)? (?:completion |output |new |gen\w* |reply |response )?tokens?(?! of \d| allowed| exceeded| limit)",
    r"num predict|n predict|(?:thinking )?budget tokens|thinking budget",
)
"""Parameters that bound the reply."""
_REPLIES = _any(r"(?:maximum )?(?:completion|output|generated|new|response|thinking|reasoning|draft) tokens?")
_CONTEXT = _any(
    r"(?:max(?:imum)?|out ?of|available|model'?s?|input|n|total|whole) (?:model )?(?:context|ctx)|n ctx|text bytes",
    r"(?:context|ctx) (?:length|window|size|len|limit|tokens?|is (?:too|full)|too|overflow\w*|full|max\w*|exceed\w*)",
    r"(?:exceed\w*|reduce|shorten|trim|fit (?:in|into|within)) (?:the |your |this |its )?(?:model'?s? )?context",
    r"(?:max(?:imum)? )?model len(?:gth)?|request (?:is |was )?too long",
)
_CONVERSATION = _any(
    r"prompts?|inputs?|messages?|conversations?|dialog(?:ue)?s?|histor(?:y|ies)|sequence|seq|session|query|questions?"
)
_TOKENS = _any(r"tokens?|text|contents?|contexts?")
_TOO_LONG = _any(
    r"exceed\w*|surpass\w*|overflow\w*|overlong|oversized?|too (?:long|large|big|lengthy|much)",
    r"(?<!must be )(?<!should be )(?:longer|larger|greater|bigger|more) than(?! (?:0|1|zero|one)\b)",
    r"too many (?:\w+ ){0,2}(?:tokens?|characters|words|messages|inputs?|turns)|not fit|n't fit",
    r"(?:above|beyond|over) (?:the|max\w*|\d+)",
)
_LIMIT = re.compile(
    r"\b(?:max\w*|limit\w*|at most|up to|(?:less|fewer|shorter|smaller|lower|no (?:more|higher)) than)\b"
    r"|\b(?:range of|between|reduce|shorten|decrease|truncate|trim)\b|[\w)] ?(?:<=?|≤|>) ?\d"
    r"|(?<!\d)\d{3,9}[\w ,]{0,40}\ballowed\b|\ballowed\b[\w :]{0,40}\d{3,9}"
)
_LENGTH = re.compile(r"\b(?:length|size|len|tokens?|characters|chars|words|items|long)\b|\b\d[\d,._]{2,}")
_NUMBER = re.compile(r"\b\d[\d,._]{2,}")
_LEAST = _any(r"at least|minimum|empty")
_NOTHING_LEFT = re.compile(r"max_(?:completion_)?tokens must be at least 1, got -\d", re.IGNORECASE)
"""A server subtracts the prompt from its context to bound the reply: codechat asks for no negative bound."""
_CHINESE = (
    re.compile("prompt|输入|上下文|提示|对话|消息|文本|内容|请求|token"),
    re.compile("长度|长|token|字数|字符|数量|上下文"),
    re.compile("超过|超出|超长|过长|太长|上限|最大|过多|限制|不能大于|不得超过|大于"),
)
_CHINESE_OTHER = re.compile(
    "频率|频繁|每分钟|每秒|每日|每天|速率|并发|限流|配额|额度|余额|欠费|图片|文件|敏感|输出|max.tokens"
)

# What is taken out: beginnings of sentences that only introduce the problem, and fields that are no conversation.
_PREAMBLE = re.compile(
    r"\b(?:invalid|bad|wrong) (?:input|prompt|messages?)(?: error| parameters?)?(?=:)|\berror messages?\b"
    r"|\binput (?:validation )?(?:error|should|parameters?)\b"
    r"|\b(?:system|user|assistant|tool) (?:messages?|prompts?) (?:is|are|must)\b"
)
_PATH = re.compile(r"(?<![\w$])[\w$]+(?:\.\w+|\[\w+\])+")
_ROOTS = ("messages", "input", "prompt", "content", "contents")
_LEAVES = (*_ROOTS, "text", "parts", "str")
_FIELD = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b")
_OF_CONVERSATION = re.compile(
    r"(?:^|_)(?:context|ctx|prompt|inputs?|messages?|seq|sequence|session|model|string|conversation)"
)
_LENGTHS = re.compile("len|token|window|size|limit|exceed|long|max|large")
_OF_LENGTHS = re.compile(
    r"(?:max|above|exceed|many|long|n)_(?:[a-z0-9]+_)?(?:ctx|context|len|length|seq|prompt|input|message|tokens_in)"
    r"|^tokens?_.*(?:exceed|limit|long)|tokens_exceeded|too_many_tokens|^max_(?:\w+_)?(?:tokens|length)$"
    r"|^(?:num|n)_predict$|budget_tokens|rate_limit|quota|throttl|stop_seq|out_?of_context"
)


def is_too_long(text: str) -> bool:
    """Whether an error's code and message say that the conversation is too long for the model."""
    if _NOTHING_LEFT.search(text):
        return True
    plain = _plain(text)
    if all(part.search(plain) for part in _CHINESE):
        return _CHINESE_OTHER.search(plain) is None
    bounds_reply, plain = _REPLY.search(plain) is not None, _REPLIES.sub(" ", _REPLY.sub(" ", plain))
    names_conversation = _CONVERSATION.search(plain) is not None
    if _RATES.search(plain) or (bounds_reply and not names_conversation):
        return False
    if _CONTEXT.search(plain):
        return True
    in_bytes = _BODY.search(plain) is not None and not _OF_TOKENS.search(plain)
    if in_bytes or _OTHER.search(plain) or not (names_conversation or _TOKENS.search(plain)):
        return False
    return _names_a_limit(plain)


def is_surely_too_long(text: str) -> bool:
    """The same for the status 500, whose texts are about anything: only by the context's name."""
    plain = _plain(text)
    sure = _CONTEXT.search(plain) or re.search(r"\b(?:prompt|input) (?:is )?too long\b", plain)
    return sure is not None and is_too_long(text)


def _names_a_limit(plain: str) -> bool:
    """Whether a text about a conversation has the words of a limit, or two numbers of tokens."""
    if _TOO_LONG.search(plain) or (_LIMIT.search(plain) and _LENGTH.search(plain)):
        return True
    return len(_NUMBER.findall(plain)) > 1 and _TOKENS.search(plain) is not None and not _LEAST.search(plain)


def _plain(text: str) -> str:
    """The text in lower case, without fields of the request that are no part of the conversation."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text[:LONGEST]).lower()
    known = _PATH.sub(lambda path: path[0].removeprefix("body.") if _is_of_texts(path[0]) else " ", snake)
    fields = _FIELD.sub(lambda name: _spaced(name[0]), known)
    return _PREAMBLE.sub(" ", " ".join(fields.replace("`", "").split()))


def _is_of_texts(path: str) -> bool:
    """Whether a path like `messages[1].content` ends at a text of the conversation."""
    parts = [part for part in re.split(r"[.\[\]]", path) if part]
    return any(part in _ROOTS for part in parts) and (parts[-1] in _LEAVES or parts[-1].isdigit())


def _spaced(name: str) -> str:
    """The words of a field's name; nothing if the field is no part of the conversation."""
    is_length = _OF_LENGTHS.search(name) or (_OF_CONVERSATION.search(name) and _LENGTHS.search(name))
    return name.replace("_", " ") if len(name) <= LONGEST_FIELD and is_length else " "


_UNSUPPORTED = re.compile(
    r"unsupported|not (?:supported|allowed|accepted|available|permitted)|does(?:n't| not) support|deprecated|no longer"
    r"|unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)",
    re.IGNORECASE,
)
_ZERO = r"(?:0(?:\.0+)?(?![.\d])|zero)"
_NOT_ZERO = re.compile(
    rf"positive|non-?zero|(?:(?:greater|larger|more|higher|bigger) than|above|>) ?{_ZERO}|\({_ZERO},"
    rf"|(?:can(?:no|')t|must not|may not|should not|not allowed to) be {_ZERO}",
    re.IGNORECASE,
)
_ONE_VALUE = re.compile(r"\bonly\b|default|\bmust be (?:set to )?1(?:\.0)?(?!\.?\d)(?! or)|fixed", re.IGNORECASE)
_RANGE = re.compile(
    r"\brange\b|between|m(?:ax|in)imum|above|below|(?:less|greater|lower|larger|higher|smaller) than|[<>]=?|≤|≥"
    r"|at (?:most|least)|too \w+",
    re.IGNORECASE,
)


def is_unsupported(text: str) -> bool:
    """Whether a text says that a parameter is not known or not supported."""
    return _UNSUPPORTED.search(text[:LONGEST]) is not None


def is_out_of_range(text: str) -> bool:
    """Whether a refusal of a value names the range of possible values."""
    words = text[:LONGEST]
    return not (is_unsupported(words) or _ONE_VALUE.search(words)) and _RANGE.search(words) is not None


def wants_more_than_zero(text: str) -> bool:
    """Whether a refusal of the value 0 asks for a larger one, and not for the default."""
    return _NOT_ZERO.search(text[:LONGEST]) is not None or is_out_of_range(text)
