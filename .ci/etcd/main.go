// The real etcd, for tests of storage in it: `go build` makes the program from its module, where no package of the machine has it.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
