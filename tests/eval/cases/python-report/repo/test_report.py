import datetime

import report


def test_hours():
    assert len(report.hours(datetime.date(2026, 3, 29))) == 24
