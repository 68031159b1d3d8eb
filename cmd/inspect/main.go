// Inspect shows what a dataset holds: see package cmd/internal/inspect, or inspect --help.
package main

import (
	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/inspect"
)

func main() { cli.Main(inspect.Command()) }
