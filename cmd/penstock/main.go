// Penstock is preprocess, inspect, loadbench and feed in one program: see package
// cmd/internal/penstock, or penstock --help.
package main

import (
	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/penstock"
)

func main() { cli.Main(penstock.Command()) }
