from invoice.total import total


def test_total():
    assert total([{"price": "0.335", "count": 2}]) == 1
