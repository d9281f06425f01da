"""Writing outputs: whole or not at all, never over what is not ours, one owner a folder at a time.

Standard library alone: whatever writes a file, in the jobs or in training, stands above this.
"""

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
    new_file,
    new_folder,
    scratch_folder,
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
from keras_bert.base.files.system_errors import is_temporary, system_errors, temporary_name

__all__ = [
    "NotJson",
    "Owner",
    "temporary_name",
    "check_object",
    "check_output_file",
    "check_output_folder",
    "check_regular",
    "clear_leftovers",
    "clear_leftovers_in",
    "delete",
    "held_names",
    "is_temporary",
    "new_file",
    "new_folder",
    "owned",
    "parse_json",
    "read_json",
    "read_small",
    "reject_input_as_output",
    "same_files",
    "scratch_folder",
    "system_errors",
    "write_json",
    "write_text",
    "write_texts",
]
