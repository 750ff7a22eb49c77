from invoice.total import total


def test_total():
    assert total([{"price": 1, "count": 2}]) == 2
