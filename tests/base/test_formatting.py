"""How messages count and list."""

from keras_bert.base.formatting import as_written, counted, listed, percent, quoted, text_table


def test_one_is_not_many():
    assert [counted(n, "document") for n in (0, 1, 2000)] == [
        "0 documents",
        "1 document",
        "2,000 documents",
    ]


def test_a_fraction_has_one_form():
    assert (percent(0.125), percent(1.0), percent(0.00049, decimals=2)) == (
        "12.5 %",
        "100.0 %",
        "0.05 %",
    )


def test_a_long_list_is_cut_and_says_so():
    assert listed(range(500), most=3) == "0, 1, 2, … and 497 more"
    assert listed("abc", most=3) == "a, b, c"
    assert listed([]) == ""
    assert quoted(["x", "y y"]) == '"x", "y y"'


def test_a_long_name_is_cut_and_says_so():
    assert listed(["x" * 80, "y" * 3000]) == f"{'x' * 80}, {'y' * 79}…"
    assert quoted(["y" * 3000]) == f'"{"y" * 79}…"'


def test_a_small_number_is_written_as_one_writes_it():
    assert [as_written(x) for x in (5e-5, 1e-4, -1.25e-6)] == ["5e-5", "1e-4", "-1.25e-6"]
    assert [as_written(x) for x in (1e-3, 0.0, 3, "a")] == ["0.001", "0.0", "3", "'a'"]


def test_a_table_aligns_its_cells_and_has_no_negative_zero():
    assert text_table([("a", -1e-9), ("bc", 1234)]).splitlines() == ["a   0.0000", "bc   1,234"]
