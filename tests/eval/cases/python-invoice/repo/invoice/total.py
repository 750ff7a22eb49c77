def total(lines):
    return sum(line["price"] * line["count"] for line in lines)
