// Loadbench measures how fast a dataset is loaded: see package cmd/internal/loadbench, or
// loadbench --help.
package main

import (
	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/loadbench"
)

func main() { cli.Main(loadbench.Command()) }
