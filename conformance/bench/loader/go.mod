module loader

go 1.22
