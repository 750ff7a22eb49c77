from decimal import ROUND_HALF_UP, Decimal


def total(lines):
    whole = sum(Decimal(line["price"]) * line["count"] for line in lines)
    return whole.quantize(Decimal("0.01"), ROUND_HALF_UP)
