//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

func canMount() bool { return false }

func smallDiskCmd(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("no small disks here")
}
