// Unpacks a Python that a Go module carries into the folder named, and prints its path: for versions no package of the machine's has.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/kluctl/go-embed-python/python"
)

func main() {
	unpacked, err := python.NewEmbeddedPythonWithTmpDir(os.Args[1], false)
	if err != nil {
		log.Fatal(err)
	}
	path, err := unpacked.GetExePath()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(path)
}
