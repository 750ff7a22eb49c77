import datetime


def hours(day):
    start = datetime.datetime.combine(day, datetime.time())
    return [start + datetime.timedelta(hours=n) for n in range(24)]
