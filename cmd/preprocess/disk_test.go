package main

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/penstock/penstock/internal/testkit/smalldisk"
)

// canMount reports whether this process may mount a file system.
func canMount() bool {
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	unmount, err := smalldisk.Mount(dir, "64k")
	return err == nil && unmount() == nil
}

// smallDiskCmd is "smalldisk FOLDER SIZE": a file system of that size, such as 256k, is
// mounted at the folder until the script ends.
func smallDiskCmd(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	unmount, err := smalldisk.Mount(dir, args[1])
	ts.Check(err)
	ts.Defer(func() { ts.Check(unmount()) })
}
