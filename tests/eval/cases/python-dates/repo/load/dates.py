import datetime


def parse(text):
    return datetime.datetime.strptime(text, "%d/%m/%Y").date()
