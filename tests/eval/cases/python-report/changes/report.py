import datetime
import zoneinfo

ZONE = zoneinfo.ZoneInfo("Europe/Vienna")


def hours(day):
    start = datetime.datetime.combine(day, datetime.time(), ZONE).astimezone(datetime.timezone.utc)
    return [start + datetime.timedelta(hours=n) for n in range(24)]
