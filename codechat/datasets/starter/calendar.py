"""Tasks on dates and times of day."""

from datetime import date, timedelta

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[
        ("2024-02-28", "2024-03-01"), ("2023-02-28", "2023-03-01"), ("2024-01-01", "2024-01-01"),
        ("2024-05-02", "2024-05-01"),
    ],
    plus=[
        ("2000-01-01", "2001-01-01"), ("1900-02-28", "1900-03-01"), ("2023-12-31", "2024-01-01"),
        ("2024-01-01", "2023-01-01"),
        ("0001-01-01", "9999-12-31"), ("1999-12-31", "2000-03-01"), ("2024-02-29", "2025-02-28"),
        ("2024-06-30", "2024-07-01"),
        ("2024-01-01", "2024-12-31"), ("1970-01-01", "2024-07-04"),
    ],
)  # fmt: skip
def days_apart(first: str, second: str) -> int:
    """Return how many days lie between two dates written as YYYY-MM-DD, whichever comes first.

    >>> days_apart("2024-02-28", "2024-03-01")
    2
    >>> days_apart("2024-05-02", "2024-05-01")
    1
    """
    difference = date.fromisoformat(first) - date.fromisoformat(second)
    return abs(difference.days)


@topic.task(
    base=[("23:50", 20), ("10:00", 90), ("00:10", -20), ("08:05", 0)],
    plus=[
        ("00:00", 1440), ("00:00", -1), ("00:00", 1439), ("12:34", -754), ("12:34", 2880), ("23:59", 1),
        ("01:00", -1500),
        ("09:09", 51), ("09:09", 50), ("00:00", 100000), ("05:30", -331), ("11:11", 59),
    ],
)  # fmt: skip
def shift_clock(clock: str, minutes: int) -> str:
    """Move a time of day, written HH:MM on a 24-hour clock, by some minutes, back where they are negative.

    The clock goes on at midnight as on any other day.

    >>> shift_clock("23:50", 20)
    '00:10'
    >>> shift_clock("00:10", -20)
    '23:50'
    """
    hours_text, minutes_text = clock.split(":")
    total = int(hours_text) * 60 + int(minutes_text) + minutes
    total %= 24 * 60
    return f"{total // 60:02d}:{total % 60:02d}"


@topic.task(
    base=[("2024-07-01", "2024-07-31", 0), ("2024-07-02", "2024-07-02", 1), ("2024-07-02", "2024-07-02", 0)],
    plus=[
        ("2024-07-10", "2024-07-01", 0), ("2024-01-01", "2024-12-31", 0), ("2023-01-01", "2023-12-31", 6),
        ("2024-02-01", "2024-02-29", 3),
        ("2024-07-01", "2024-07-07", 6), ("2024-07-01", "2024-07-06", 6), ("2024-07-01", "2024-07-08", 0),
        ("2024-07-02", "2024-07-08", 0),
        ("2024-12-30", "2025-01-06", 0), ("2000-02-28", "2000-03-01", 1), ("2024-07-03", "2024-07-16", 2),
        ("2024-07-05", "2024-07-19", 4),
    ],
)  # fmt: skip
def count_weekday(start: str, end: str, weekday: int) -> int:
    """Count how often a day of the week occurs from one date to another, both included.

    Dates are written YYYY-MM-DD; weekdays are numbered from 0, Monday, to 6, Sunday. An end before the start makes
    an empty period.

    >>> count_weekday("2024-07-01", "2024-07-31", 0)
    5
    >>> count_weekday("2024-07-02", "2024-07-02", 0)
    0
    """
    first = date.fromisoformat(start)
    last = date.fromisoformat(end)
    hit = first + timedelta(days=(weekday - first.weekday()) % 7)
    if hit > last:
        return 0
    return (last - hit).days // 7 + 1


@topic.task(
    base=[(2024, 5, 4), (2024, 2, 3), (2023, 12, 6), (2024, 9, 0)],
    plus=[
        (2024, 2, 0), (2023, 2, 1), (2024, 12, 1), (2024, 6, 6), (2024, 3, 5), (1999, 12, 4), (2000, 2, 2),
        (2024, 1, 2),
        (2024, 11, 5), (2025, 8, 6), (2024, 4, 1), (2024, 4, 2), (2024, 7, 3), (2023, 10, 1),
    ],
)  # fmt: skip
def last_weekday(year: int, month: int, weekday: int) -> str:
    """Return the date, as YYYY-MM-DD, of the last given day of the week in a month.

    Weekdays are numbered from 0, Monday, to 6, Sunday.

    >>> last_weekday(2024, 5, 4)
    '2024-05-31'
    >>> last_weekday(2024, 2, 3)
    '2024-02-29'
    """
    # the day before the first of the next month
    next_month = date(year + month // 12, month % 12 + 1, 1)
    day = next_month - timedelta(days=1)
    while day.weekday() != weekday:
        day -= timedelta(days=1)
    return day.isoformat()


@topic.task(
    base=[("09:00-10:30", "10:00-11:00"), ("09:00-10:00", "10:00-11:00"), ("08:00-12:00", "09:00-09:45")],
    plus=[
        ("10:00-11:00", "09:00-10:30"), ("00:00-23:59", "00:00-23:59"), ("09:00-09:00", "08:00-10:00"),
        ("01:00-02:00", "03:00-04:00"),
        ("03:00-04:00", "01:00-02:00"), ("09:15-10:45", "09:30-10:30"), ("09:30-10:30", "09:15-10:45"),
        ("12:00-13:00", "12:59-14:00"),
        ("00:00-00:01", "00:00-12:00"), ("10:10-10:20", "10:19-10:21"), ("07:05-08:10", "07:45-19:00"),
    ],
)  # fmt: skip
def shared_minutes(first: str, second: str) -> int:
    """Return for how many minutes two meetings on the same day, written as HH:MM-HH:MM, are held at the same time.

    >>> shared_minutes("09:00-10:30", "10:00-11:00")
    30
    >>> shared_minutes("09:00-10:00", "10:00-11:00")
    0
    """

    def to_minutes(clock: str) -> int:
        hours, minutes = clock.split(":")
        return 60 * int(hours) + int(minutes)

    first_start, first_end = map(to_minutes, first.split("-"))
    second_start, second_end = map(to_minutes, second.split("-"))
    start = max(first_start, second_start)
    end = min(first_end, second_end)
    if start < end:
        return end - start
    return 0


@topic.task(
    base=[("2024-05-17", 1), ("2024-05-17", 4), ("2024-02-01", 4), ("2024-12-31", 1)],
    plus=[
        ("2024-01-01", 1), ("2024-03-31", 1), ("2024-04-01", 1), ("2024-03-31", 4), ("2024-04-01", 4),
        ("2024-09-30", 10),
        ("2024-10-01", 10), ("2024-01-15", 2), ("2024-02-15", 2), ("2023-12-31", 12), ("2024-11-30", 12),
        ("2024-06-10", 7),
        ("2024-07-10", 7), ("2024-10-10", 7), ("0999-08-01", 9), ("2024-01-10", 4),
    ],
)  # fmt: skip
def fiscal_quarter(day: str, first_month: int) -> str:
    """Name the quarter of the business year that a date (YYYY-MM-DD) falls in, such as '2024-Q2'.

    The business year begins on the first day of `first_month` and bears the number of the calendar year in which it
    begins. Its quarters have three months each. The year is written without leading zeros.

    >>> fiscal_quarter("2024-05-17", 1)
    '2024-Q2'
    >>> fiscal_quarter("2024-02-01", 4)
    '2023-Q4'
    """
    year_text, month_text, _ = day.split("-")
    year, month = int(year_text), int(month_text)
    if month < first_month:
        year -= 1
        month += 12
    quarter = (month - first_month) // 3 + 1
    return f"{year}-Q{quarter}"
