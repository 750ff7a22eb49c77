import datetime

FORMS = ("%Y-%m-%d", "%d/%m/%Y")


def parse(text):
    for form in FORMS:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            continue
    raise ValueError(text)
