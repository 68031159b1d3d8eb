// Loadbench measures how fast a dataset is loaded: see package internal/loadbench, or
// loadbench --help.
package main

import (
	"github.com/penstock/penstock/internal/cli"
	"github.com/penstock/penstock/internal/loadbench"
)

func main() { cli.Main(loadbench.Command()) }
