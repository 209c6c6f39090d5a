"""PyInstaller's hook for the package: the modules and files that it loads by name, and its sources, some of which run as scripts."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

# pydantic_core is imported inside of a function of C, where PyInstaller doesn't look
hiddenimports = [*collect_submodules("fakeapiserver"), *collect_submodules("pydantic_core")]
datas = collect_data_files("fakeapiserver") + copy_metadata("fakeapiserver")
module_collection_mode = "pyz+py"
