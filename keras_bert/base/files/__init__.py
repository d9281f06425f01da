"""Writing outputs: whole or not at all, never over what is not ours, one owner per folder.

Standard library alone: whatever writes a file, in the jobs or in training, imports this.
"""

# ruff: noqa: F401 (the package's names are defined in its modules)
from keras_bert.base.files.ownership import (
    Owner,
    check_output_file,
    check_output_folder,
    held_names,
    owned,
    reject_input_as_output,
    same_files,
)
from keras_bert.base.files.publishing import (
    clear_leftovers,
    clear_leftovers_in,
    delete,
    is_temporary,
    new_file,
    new_folder,
    scratch_folder,
    system_errors,
    temporary_name,
    write_json,
    write_text,
    write_texts,
)
from keras_bert.base.files.reading import (
    NotJson,
    check_object,
    check_regular,
    parse_json,
    read_json,
    read_small,
)
